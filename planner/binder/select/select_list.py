"""The SELECT list: an item for each output column, and names where they are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.columns_calls import expanded, filtered_star
from tqp.planner.binder.select.nested_names import is_path
from tqp.planner.binder.select.output import Item
from tqp.planner.binder.select.stars import star_items, star_of
from tqp.planner.parse import span_of


def expand_items(context: BindContext, scope: Scope, nodes: Sequence[exp.Expr]) -> list[Item]:
    """One item for each output column."""
    items: list[Item] = []
    for written in nodes:
        alias, node = (written.alias, written.this) if isinstance(written, exp.Alias) else (None, written)
        star = star_of(node)
        columns = filtered_star(scope, node, alias or None) if star is None else list(star_items(scope, star))
        if columns is not None:
            # an alias of a star is the name of each of its columns
            if alias and star is not None:
                columns = [replace(item, name=alias, alias=alias, is_aliased=True) for item in columns]
            items += columns
        elif isinstance(node, exp.Aliases):
            raise UnsupportedError("several aliases for one expression are not supported", span_of(node))
        elif (several := expanded(context, scope, node, alias)) is not None:
            items += several
        else:
            name = node.name if is_path(written) else alias
            items.append(Item(node, alias, name, is_aliased=alias is not None))
    if not items:
        raise BindError("SELECT without anything to select: EXCLUDE leaves no column", span_of(nodes[0]))
    return items
