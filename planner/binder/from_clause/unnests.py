"""unnest(list) in FROM, whose elements are rows; WITH ORDINALITY also their places."""

from __future__ import annotations

from sqlglot import exp

from tqp.core.datatypes import BIGINT, NULL, TypeKind
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.logical_plan import Unnest, Values
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.from_clause.row_arguments import row_arguments
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.binder.select.unnests import unnested
from tqp.planner.parse import span_of


def bind_unnest(context: BindContext, node: exp.Unnest, siblings: Scope) -> BoundQuery:
    """The elements as a table of one column; it may read the tables before it (LATERAL)."""
    span = span_of(node)
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.PropertyEQ):
        raise UnsupportedError("UNNEST of anything but one list is not supported in FROM", span)
    binder, (argument,) = row_arguments(context, node.expressions, siblings, "UNNEST")
    value = binder.bind(argument)
    if value.data_type == NULL or value.data_type.kind is TypeKind.STRUCT:
        raise BindError("UNNEST in FROM takes one list", span)
    value = unnested(value, span)
    offset = node.args.get("offset")
    element = context.new_field("unnest", value.data_type.element)
    places = (context.new_field("ordinality", BIGINT, nullable=False),) if offset else ()
    plan = Unnest(Values(((),), ()), (value,), (element,), places)
    names = ["unnest"]
    if offset:
        names.append(offset.name if isinstance(offset, exp.Identifier) else "ordinality")
    return BoundQuery.exact(plan, names)
