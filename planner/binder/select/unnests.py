"""unnest() in SELECT: the lists of a query block whose elements become rows, and structs whose fields become columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, TypeGuard

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BOOLEAN, NULL, TypeKind, list_of
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef, Expression, Literal
from tqp.planner.algebra.logical_plan import LogicalPlan, Unnest
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import as_list, cast_to
from tqp.planner.binder.expressions.nested.parts import field_at
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.functions.constant_folding import fold
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


_OPTIONS = {"recursive": BOOLEAN, "max_depth": BIGINT, "keep_parent_names": BOOLEAN}
_OPTIONS_SHOWN = "recursive := true, max_depth := a number from 1 on or keep_parent_names := true"


@dataclass(slots=True)
class UnnestCollector:
    """The lists of one query block that are unnested; equal ones once."""

    context: BindContext
    lists: dict[Expression, Field] = field(default_factory=dict)
    is_inside: bool = False
    is_deep: bool = False  # one is of lists of lists, which DuckDB takes apart level by level

    def bind(self, binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
        """The one column of a call within an expression."""
        columns = self.columns(binder, node)
        if columns[0][0] is not None:
            by_alias = binder.clause == "ORDER BY"  # which means one of the columns in DuckDB
            raise (UnsupportedError if by_alias else BindError)(
                f"unnest() of structs makes a column of each field, and in {binder.clause} may only stand by itself "
                "as an item of SELECT; unnest in a subquery",
                span_of(node),
            )
        return columns[0][1]

    def columns(
        self, binder: ExpressionBinder, node: exp.Anonymous
    ) -> Sequence[tuple[str | None, Expression]]:
        """The elements, without a name; of structs each field, by its name."""
        span = span_of(node)
        if self.is_inside:
            raise UnsupportedError("unnest() inside unnest() is not supported; use a subquery", span)
        if not node.expressions or isinstance(node.expressions[0], exp.PropertyEQ):
            raise BindError("unnest() takes a list", span)
        levels, keeps_parents = _options(binder, node.expressions[1:])
        self.is_inside = True
        try:
            value = as_list(binder.bind(node.expressions[0]), span)
        finally:
            self.is_inside = False
        if value.data_type.kind is not TypeKind.STRUCT:
            value, levels = self._elements(unnested(value, span), levels, span)
        if levels == 0 or value.data_type.kind is not TypeKind.STRUCT:
            return [(None, value)]
        return list(_fields(value, levels, keeps_parents, span))

    def _elements(self, value: Expression, levels: float, span: Span | None) -> tuple[Expression, float]:
        """A reference to the column of the elements, and how many levels of these are still to be taken apart."""
        levels -= 1
        while levels and value.data_type.element.kind in (TypeKind.LIST, TypeKind.ARRAY):
            inner = list_of(value.data_type.element.element)
            value = apply("flatten", (cast_to(value, list_of(inner), span),), span, "unnest()")
            levels, self.is_deep = levels - 1, True
        made = self.lists.get(value)
        if made is None:
            made = self.lists[value] = self.context.new_field("unnest", value.data_type.element)
        if self.is_deep and len(self.lists) > 1:
            raise UnsupportedError("unnest() of lists of lists beside another one is not supported", span)
        return ColumnRef.of(made), levels

    def rewritten(self, rewrite: Callable[[Expression], Expression]) -> None:
        """What the lists are above the groups of the block."""
        self.lists = {rewrite(value): made for value, made in self.lists.items()}

    def over(self, plan: LogicalPlan) -> LogicalPlan:
        """The rows of the plan, each once for each element of its lists."""
        return Unnest(plan, tuple(self.lists), tuple(self.lists.values())) if self.lists else plan


def is_unnest(node: exp.Expr) -> TypeGuard[exp.Anonymous]:
    """Whether it is a call of unnest(), under any of its names."""
    return isinstance(node, exp.Anonymous) and lower_ascii(node.name) in ("unnest", "unlist")


def _options(binder: ExpressionBinder, options: Sequence[exp.Expr]) -> tuple[float, bool]:
    """How many levels of lists and structs are taken apart, as the last one says, and whether fields are named with the structs that hold them."""
    levels, keeps_parents = 1.0, False
    for option in options:
        span = span_of(option)
        name = lower_ascii(option.this.name) if isinstance(option, exp.PropertyEQ) else ""
        if name not in _OPTIONS:
            raise BindError(f"unnest() takes a list, and {_OPTIONS_SHOWN}", span)
        value = fold(cast_to(binder.bind_flexible(option.expression), _OPTIONS[name], span))
        given = value.value if isinstance(value, Literal) else None
        if not isinstance(given, int) or name == "max_depth" and given < 1:
            raise BindError(f"unnest() takes a list, and {_OPTIONS_SHOWN}", span)
        if name == "keep_parent_names":
            keeps_parents = bool(given)
        elif name == "max_depth":
            levels = given
        elif given:
            levels = inf
    return levels, keeps_parents


def _fields(
    value: Expression, levels: float, keeps_parents: bool, span: Span | None, parent: str = ""
) -> Iterator[tuple[str, Expression]]:
    """The fields of a struct, and of structs in it, down to so many levels."""
    data_type = value.data_type
    for place, name in enumerate(data_type.names, 1):
        name = name or f"element{place}"
        made = field_at(value, place, span)
        shown = parent + name
        if levels > 1 and made.data_type.kind is TypeKind.STRUCT:
            yield from _fields(made, levels - 1, keeps_parents, span, f"{shown}." if keeps_parents else "")
        else:
            yield shown, made


def unnested(value: Expression, span: Span | None) -> Expression:
    """A list whose elements become rows; NULL has none."""
    if value.data_type == NULL:
        return Literal(None, list_of(NULL))
    value = as_list(value, span)
    if value.data_type.kind is not TypeKind.LIST:
        raise BindError(f"unnest() takes a list or a struct, not {value.data_type}", span)
    return value
