"""unnest() in SELECT: the lists of a query block whose elements become rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import NULL, TypeKind, list_of
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef, Expression, Literal
from tqp.planner.algebra.logical_plan import LogicalPlan, Unnest
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import as_list
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


@dataclass(slots=True)
class UnnestCollector:
    """The lists of one query block that are unnested; equal ones once."""

    context: BindContext
    lists: dict[Expression, Field] = field(default_factory=dict)
    is_inside: bool = False

    def bind(self, binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
        """A reference to the column of the elements."""
        span = span_of(node)
        if self.is_inside:
            raise UnsupportedError("unnest() inside unnest() is not supported; use a subquery", span)
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.PropertyEQ):
            raise UnsupportedError("unnest() of anything but one list is not supported", span)
        self.is_inside = True
        try:
            value = unnested(binder.bind(node.expressions[0]), span)
        finally:
            self.is_inside = False
        made = self.lists.get(value)
        if made is None:
            made = self.lists[value] = self.context.new_field("unnest", value.data_type.element)
        return ColumnRef.of(made)

    def rewritten(self, rewrite: Callable[[Expression], Expression]) -> None:
        """What the lists are above the groups of the block."""
        self.lists = {rewrite(value): made for value, made in self.lists.items()}

    def over(self, plan: LogicalPlan) -> LogicalPlan:
        """The rows of the plan, each once for each element of its lists."""
        return Unnest(plan, tuple(self.lists), tuple(self.lists.values())) if self.lists else plan


def unnested(value: Expression, span: Span | None) -> Expression:
    """A list whose elements become rows; NULL has none."""
    if value.data_type == NULL:
        return Literal(None, list_of(NULL))
    value = as_list(value, span)
    if value.data_type.kind is TypeKind.STRUCT:
        raise UnsupportedError(f"unnest() of {value.data_type} is not supported", span)
    if value.data_type.kind is not TypeKind.LIST:
        raise BindError(f"unnest() takes a list, not {value.data_type}", span)
    return value
