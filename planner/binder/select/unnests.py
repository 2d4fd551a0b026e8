"""unnest() in SELECT: the lists of a query block whose elements become rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import NULL, TypeKind, list_of
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef, Expression, Literal
from tqp.planner.algebra.logical_plan import LogicalPlan, Unnest
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import as_list, cast_to
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


@dataclass(slots=True)
class UnnestCollector:
    """The lists of one query block that are unnested; equal ones once."""

    context: BindContext
    lists: dict[Expression, Field] = field(default_factory=dict)
    is_inside: bool = False
    is_deep: bool = False  # one is of lists of lists, which DuckDB takes apart level by level

    def bind(self, binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
        """A reference to the column of the elements."""
        span = span_of(node)
        if self.is_inside:
            raise UnsupportedError("unnest() inside unnest() is not supported; use a subquery", span)
        if not node.expressions or isinstance(node.expressions[0], exp.PropertyEQ):
            raise BindError("unnest() takes a list", span)
        depth = _depth(node.expressions[1:], span)
        self.is_inside = True
        try:
            value = unnested(binder.bind(node.expressions[0]), span)
            flattened = value if depth == 1 else _flattened(value, depth, span)
            self.is_deep = self.is_deep or flattened is not value
            value = flattened
        finally:
            self.is_inside = False
        made = self.lists.get(value)
        if made is None:
            made = self.lists[value] = self.context.new_field("unnest", value.data_type.element)
        if self.is_deep and len(self.lists) > 1:
            raise UnsupportedError("unnest() of lists of lists beside another one is not supported", span)
        return ColumnRef.of(made)

    def rewritten(self, rewrite: Callable[[Expression], Expression]) -> None:
        """What the lists are above the groups of the block."""
        self.lists = {rewrite(value): made for value, made in self.lists.items()}

    def over(self, plan: LogicalPlan) -> LogicalPlan:
        """The rows of the plan, each once for each element of its lists."""
        return Unnest(plan, tuple(self.lists), tuple(self.lists.values())) if self.lists else plan


def _depth(options: Sequence[exp.Expr], span: Span | None) -> int | None:
    """How many lists around an element are unnested; None stands for all of them."""
    depth: int | None = 1
    for option in options:
        name = option.this.name.lower() if isinstance(option, exp.PropertyEQ) else None
        value = option.expression if isinstance(option, exp.PropertyEQ) else option
        if name == "recursive" and isinstance(value, exp.Boolean):
            depth = None if value.this else depth
        elif name == "max_depth" and isinstance(value, exp.Literal) and value.is_int and int(value.name) > 0:
            depth = int(value.name)
        else:
            raise BindError(
                "unnest() takes a list, and recursive := true or max_depth := a number from 1 on", span
            )
    return depth


def _flattened(value: Expression, depth: int | None, span: Span | None) -> Expression:
    """The elements of the lists in it, and of those in these: so many lists around them become one."""
    while (depth is None or depth > 1) and value.data_type.element.kind in (TypeKind.LIST, TypeKind.ARRAY):
        inner = list_of(value.data_type.element.element)
        value = apply("flatten", (cast_to(value, list_of(inner), span),), span, "unnest()")
        depth = None if depth is None else depth - 1
    if (depth is None or depth > 1) and value.data_type.element.kind is TypeKind.STRUCT:
        raise UnsupportedError(
            "unnest() of the fields of structs in lists is not supported; unnest the list in a subquery", span
        )
    return value


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
