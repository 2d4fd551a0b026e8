"""Functions of the bins of histograms: equi_width_bins() and is_histogram_other_bin()."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tqp.core.datatypes import BIGINT, BOOLEAN, DOUBLE, NULL, TIMESTAMP, DataType, TypeKind, list_of
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.histograms import other_bin
from tqp.planner.algebra.expressions import Call, Expression, Literal, is_null_literal
from tqp.planner.binder.expressions.coercion import cast_to, common_type_of, compare
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.functions.type_rules import implicit_cast_cost, settle
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

_INTEGERS = {
    *(TypeKind.TINYINT, TypeKind.SMALLINT, TypeKind.INTEGER, TypeKind.BIGINT),
    *(TypeKind.UTINYINT, TypeKind.USMALLINT, TypeKind.UINTEGER),
}
_INSTANTS = {
    *(TypeKind.DATE, TypeKind.TIMESTAMP_S, TypeKind.TIMESTAMP_MS, TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NS)
}


def _equal_width(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """equi_width_bins(least, greatest, count, nice): the upper ends of the bins, of the type of the greatest value."""
    bound = [binder.bind_flexible(node) for node in nodes]
    if any(each.data_type == NULL for each in bound):
        return Literal(None, NULL)
    low, high = bound[0], settle(bound[1])
    result = list_of(DOUBLE if high.data_type.is_decimal else high.data_type)
    if any(map(is_null_literal, bound)):
        return Literal(None, result)
    for argument, target in zip(bound[2:], (BIGINT, BOOLEAN), strict=True):
        if implicit_cast_cost(argument, target) is None:
            raise BindError(
                f"equi_width_bins() takes the number of bins and whether they are nice, not {argument.data_type}",
                span,
            )
    if high.data_type.is_string or (low.data_type.is_string and high.data_type.is_numeric):
        raise UnsupportedError("equi_width_bins() of texts is not supported; cast them", span)
    common = common_type_of(bound[:2], "equi_width_bins()", span)
    computed = _computed_as(common, high.data_type, span)
    count, is_nice = cast_to(bound[2], BIGINT, span), cast_to(bound[3], BOOLEAN, span)
    ends = (cast_to(each, computed, span) for each in (low, high))
    made = Call("equi_width_bins", (*ends, count, is_nice), list_of(computed), span)
    return cast_to(made, result, span)


def _computed_as(low: DataType, high: DataType, span: Span | None) -> DataType:
    """The type in which bins between values of two types are computed; raises BindError where there is none."""
    kinds = {low.kind, high.kind}
    if kinds <= _INTEGERS:
        return BIGINT
    if low.is_numeric and high.is_numeric:
        return DOUBLE
    if kinds <= _INSTANTS:
        return TIMESTAMP
    raise BindError(f"equi_width_bins() takes two numbers, dates or timestamps, not {low} and {high}", span)


def _is_other(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """is_histogram_other_bin(x): whether it is the key of the bin for what lies in no other."""
    value = binder.bind(nodes[0])
    if is_null_literal(value):
        return Literal(None, BOOLEAN)
    if value.data_type.is_nested:
        raise UnsupportedError(f"is_histogram_other_bin() of {value.data_type} is not supported", span)
    marker = other_bin(value.data_type)
    if marker is None:  # such a value is in no other bin, not even NULL, as in DuckDB
        return compare("is_distinct_from", value, value, span)
    return compare("equal", value, Literal(marker, value.data_type), span)


HISTOGRAM_FORMS: Forms = {
    "equi_width_bins": (_equal_width, 4, 4),
    "is_histogram_other_bin": (_is_other, 1, 1),
}
