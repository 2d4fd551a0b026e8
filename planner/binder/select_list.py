"""The SELECT list: stars written out, with EXCLUDE and REPLACE; names where they are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.planner.binder.output import Item
from tqp.planner.binder.scope import MergedColumn, Scope, ScopeColumn
from tqp.planner.binder.understood import check_understood
from tqp.planner.parse import head_span, span_of


def expand_items(scope: Scope, nodes: Sequence[exp.Expr]) -> list[Item]:
    """One item for each output column."""
    items: list[Item] = []
    for written in nodes:
        alias, node = (written.alias, written.this) if isinstance(written, exp.Alias) else (None, written)
        star = star_of(node)
        if star is not None:
            plain = star if isinstance(star, exp.Star) else star.this
            columns = _star(scope, plain, star.args.get("table"))
            # an alias of a star is the name of each of its columns
            items += [replace(item, name=alias, alias=alias) for item in columns] if alias else columns
        elif isinstance(node, exp.Aliases):
            raise UnsupportedError("several aliases for one expression are not supported", span_of(node))
        else:
            items.append(Item(node, alias, node.name if isinstance(written, exp.Column) else alias))
    if not items:
        raise BindError("SELECT without anything to select")
    return items


def star_of(node: exp.Expr) -> exp.Expr | None:
    """`*` or `t.*` without the parentheses around it; None for anything else."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node if isinstance(node.this if isinstance(node, exp.Column) else node, exp.Star) else None


def _star(scope: Scope, star: exp.Star, table: exp.Identifier | None) -> Iterator[Item]:
    qualifier = table.name if table is not None else None
    span = head_span(table) if table is not None else head_span(star)
    if not scope.relations:
        raise BindError("* without FROM: there are no columns", span)
    if qualifier is not None and not any(
        relation.alias.lower() == qualifier.lower() for relation in scope.relations
    ):
        raise scope.unknown_column("*", qualifier, span)
    check_understood(star)
    excluded = _by_name("EXCLUDE", [(each.name, each) for each in star.args.get("except_") or ()])
    replaced = _by_name("REPLACE", [(each.alias, each) for each in star.args.get("replace") or ()])
    columns: list[tuple[str, ScopeColumn | MergedColumn]] = list(scope.star(qualifier, span))
    names = [name for name, _ in columns]
    known = {name.lower() for name in names}
    for name, node in [*excluded.items(), *replaced.items()]:
        if name not in known:
            raise BindError(f'* has no column "{name}"{nearest(name, names)}', span_of(node))
    for name, node in replaced.items():
        if name in excluded:
            raise BindError(f'column "{name}" stands in both EXCLUDE and REPLACE', span_of(node))
    for node in excluded.values():
        if isinstance(node, exp.Column) and node.table and not scope.has_column(node.name, node.table):
            raise scope.unknown_column(node.name, node.table, span_of(node))
    kept = [(name, column) for name, column in columns if name.lower() not in excluded]
    if not kept:
        raise BindError("* EXCLUDE leaves no column", span)
    for name, column in kept:
        replacement = replaced.get(name.lower())
        if replacement is not None:
            yield Item(replacement.this, name, name)
        else:
            yield Item(None, name, name, column)


def _by_name(keyword: str, entries: Sequence[tuple[str, exp.Expr]]) -> dict[str, exp.Expr]:
    found: dict[str, exp.Expr] = {}
    for name, node in entries:
        if name.lower() in found:
            raise BindError(f'column "{name}" stands twice in {keyword}', span_of(node))
        found[name.lower()] = node
    return found
