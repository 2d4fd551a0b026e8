"""Telling a table which of its columns the query will probably read, so that it encodes them at once, in parallel.

Binding asks for one column after the other. What is announced here is a guess from the names in the text: it may hold
a column too many or lack one, and nothing but time depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from tqp.core.errors import Error
from tqp.core.schema import TableSource
from tqp.planner.binder.context import BindContext


def announce_columns(context: BindContext, table: TableSource, node: exp.Table, alias: str) -> None:
    """Call `table.encode` with the columns that the query names under `alias`, or without saying of what."""
    names = table.column_names
    if not _is_all_put_out(node):
        named = _columns_named(context, node)
        qualifier = alias.lower()
        lowered = [(name, name.lower()) for name in names]
        names = [name for name, low in lowered if ("", low) in named or (qualifier, low) in named]
    if len(names) > 1:
        try:
            table.encode(names)
        except Error:  # about a column that may not be needed: whoever does need it meets the error again
            return


def announce_names(context: BindContext, node: exp.Expr, names: Iterable[str]) -> None:
    """Note that the query reads columns of these names, though they do not stand in the text."""
    context.columns_named = _columns_named(context, node) | {("", name.lower()) for name in names}


def _is_all_put_out(node: exp.Table) -> bool:
    """True for a table of the outermost SELECT with a star, or of stars that lead there."""
    select = node.find_ancestor(exp.Select)
    while select is not None and any(
        isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
        for item in select.expressions
    ):
        if select.parent is None:
            return True
        select = select.find_ancestor(exp.Select)
    return False


def _columns_named(context: BindContext, node: exp.Expr) -> frozenset[tuple[str, str]]:
    if context.columns_named is None:
        found = set()
        left: list[object] = [node.root()]
        while left:  # a third of the time of sqlglot's walk
            part = left.pop()
            if isinstance(part, list):
                left.extend(part)
            elif isinstance(part, exp.Column):
                found.add((part.table.lower(), part.name.lower()))
            elif isinstance(part, exp.Expr):
                if isinstance(part, exp.Join):  # USING (a, b)
                    found.update(("", each.name.lower()) for each in part.args.get("using") or ())
                left.extend(part.args.values())
        context.columns_named = frozenset(found)
    return context.columns_named
