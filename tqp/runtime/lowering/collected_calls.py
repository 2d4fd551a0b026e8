"""Lowering of aggregates that need all rows of a group at once: choices of a row, quantiles, formulas of moments, string_agg."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import BOOLEAN, DOUBLE, VARCHAR, DataType, TypeKind
from tqp.core.errors import UnsupportedError
from tqp.operators.groups.bit_strings import BitRange
from tqp.operators.groups.moment_formulas import FORMULAS
from tqp.operators.nested.bins import binned_histograms
from tqp.planner.algebra.expression_text import format_literal
from tqp.planner.algebra.expressions import AggregateCall, Cast, Literal
from tqp.planner.functions.constants import constant_number
from tqp.planner.functions.registry import AGGREGATES
from tqp.runtime.breakers.reductions import Order
from tqp.runtime.lowering.expressions.elements import as_elements
from tqp.runtime.lowering.graph_builder import NamedKernel, Node
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout, element_layout
from tqp.runtime.lowering.pending import Pending
from tqp.runtime.lowering.sorts import lower_key
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.aggregate_calls import AggregateCalls, Finish
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

_BOOLEANS = canonical_layout(BOOLEAN, False)


def _comparable(calls: AggregateCalls, call: AggregateCall) -> Value:
    """The argument, which is compared with those of other rows; a nested one gets a key for that (`Reduction.key`)."""
    return calls.lowering.comparable(calls.lowering.materialised(call.arguments[0]))


def _with_validity(value: Value, validity: Node | None) -> Value:
    return replace(value, validity=validity, layout=value.layout.with_nullable(validity is not None))


def _counted(calls: AggregateCalls, value: Value, kept: Node | None) -> Value:
    """The value, its validity telling the rows that count."""
    return _with_validity(value, calls.lowering.all_valid(kept, value.validity))


def _order(calls: AggregateCalls, call: AggregateCall) -> Order:
    """The columns by which the rows of a group are ordered for the call."""
    keys = (calls.lowering.order_key(lower_key(calls.lowering, key)) for key in call.order)
    return tuple(
        (calls.column(value), key.descending, key.nulls_first)
        for key, value in zip(call.order, keys, strict=True)
    )


# ---- choices of a row ----

#: Which arguments must not be NULL in a row that counts.
_NOT_NULL: dict[str, tuple[int, ...]] = {
    "first": (),
    "last": (),
    "arg_min": (0, 1),
    "arg_max": (0, 1),
    "arg_min_null": (1,),
    "arg_max_null": (1,),
    "arg_min_nulls_last": (),
    "arg_max_nulls_last": (),
}


def _choice(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    """The value of one row, NULL if that is or if there is no row."""
    if (
        call.function == "first"
        and len(call.order) == 1
        and not call.order[0].nulls_first
        and not call.distinct
    ):
        key = call.order[0]  # no sort is needed for the first row
        extreme = "arg_max_nulls_last" if key.descending else "arg_min_nulls_last"
        read = (*call.arguments, key.expression)
        return _choice(calls, replace(call, function=extreme, arguments=read, order=()), kept)
    value, *keys = map(calls.lowering.materialised, call.arguments)
    arguments = [value, *map(calls.lowering.order_key, keys)]
    masks = (arguments[place].validity for place in _NOT_NULL[call.function])
    counted = calls.lowering.all_valid(kept, *masks)
    others = tuple(map(calls.column, arguments[1:]))
    return _chosen(calls, call, arguments[0], counted, call.function.removesuffix("_null"), others)


def _chosen(
    calls: AggregateCalls,
    call: AggregateCall,
    value: Value,
    counted: Node | None,
    kind: str,
    others: tuple[int, ...] = (),
    parameter: float | None = None,
) -> Pending:
    kind_of_rows: dict[str, Any] = {
        "others": others,
        "counted": -1 if counted is None else calls.column(Value(_BOOLEANS, counted)),
        "parameter": parameter,
        "order": _order(calls, call),
    }
    if counted is None and value.validity is not None:
        kind_of_rows["counted"] = calls.column(Value(_BOOLEANS, _everywhere(calls)))
    chosen = calls.reduce(kind, value, call.distinct, **kind_of_rows)
    layout = value.layout.with_nullable(False)
    if value.validity is None and counted is None and calls.node.keys:
        return Pending((chosen,), lambda _, nodes: Value(layout, nodes[0]))
    valid = calls.reduce(kind, value, call.distinct, of_validity=True, **kind_of_rows)
    return Pending((chosen, valid), lambda _, nodes: Value(layout.with_nullable(True), nodes[0], nodes[1]))


def _everywhere(calls: AggregateCalls) -> Node:
    return calls.lowering.tensor(calls.lowering.lower(Literal(True, BOOLEAN)))


def _any_value(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    """The first value that is not NULL, in the order that is asked for."""
    value = calls.lowering.materialised(call.arguments[0])
    return calls.plain(_counted(calls, value, kept), "first", value.layout, order=_order(calls, call))


def _mode(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    value = _counted(calls, _comparable(calls, call), kept)
    return calls.plain(value, "mode", value.layout, call.distinct, order=_order(calls, call))


# ---- numbers ----


def _entropy(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    value = _counted(calls, _comparable(calls, call), kept)
    found = calls.reduce("entropy", value, call.distinct)
    return Pending((found,), lambda _, nodes: Value(canonical_layout(call.data_type, False), nodes[0]))


def _without_nulls(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> list[Value]:
    """The arguments; rows count in which none is NULL."""
    values = list(map(calls.lowering.materialised, call.arguments))
    validity = calls.lowering.all_valid(kept, *(each.validity for each in values))
    return [_with_validity(each, validity) for each in values]


def _formula(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    """An aggregate that a formula makes of several reductions, of rows in which no argument is NULL."""
    values = _without_nulls(calls, call, kept)
    reductions, compute = FORMULAS[call.function]
    whole = tuple(map(calls.column, values)) if call.distinct and len(values) > 1 else ()

    def reduced(kind: str, places: tuple[int, ...]) -> int:
        first, *others = (values[place] for place in places)
        read = tuple(map(calls.column, others))
        return calls.reduce(kind, first, call.distinct, others=read, whole=whole)

    numbers = [reduced(*each) for each in (*reductions, ("count", (0,)))]
    fewest = AGGREGATES[call.function].fewest_values

    def finish(lowering: ExpressionLowering, nodes: list[Node]) -> Value:
        build = lowering.stream.builder
        made = build.call(compute, *nodes, name=call.function)
        enough = build.call(operator.ge, nodes[-1], fewest)
        if call.function in _WITH_VALIDITY:
            made, there = (build.call(operator.getitem, made, place) for place in (0, 1))
            enough = build.call(operator.and_, enough, there)
        return Value(canonical_layout(call.data_type, True), made, enough)

    return Pending(tuple(numbers), finish)


#: Formulas that say themselves where there is a result.
_WITH_VALIDITY = frozenset(("skewness", "kurtosis", "kurtosis_pop", "regr_intercept", "regr_r2"))


def _count_pairs(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    """regr_count: rows in which no argument is NULL."""
    values = _without_nulls(calls, call, kept)
    whole = tuple(map(calls.column, values)) if call.distinct else ()
    count = calls.reduce("count", values[0], call.distinct, whole=whole)
    layout = replace(canonical_layout(call.data_type, False), dtype=torch.int64)
    return Pending((count,), lambda _, nodes: Value(layout, nodes[0]))


# ---- quantiles ----

#: Halves between two DECIMALs of more digits are rounded down, of fewer to zero, as DuckDB computes with 128 or 64 bits.
_DIGITS_OF_64_BITS = 18


def _kind(prefix: str, source: DataType) -> str:
    """The reduction that is right for a type."""
    if source.is_decimal:
        return f"{prefix}_down" if source.precision > _DIGITS_OF_64_BITS else f"{prefix}_to_zero"
    if source.kind is TypeKind.DATE:
        return f"{prefix}_days"
    if source.kind is TypeKind.INTERVAL:
        return f"{prefix}_interval"
    if source.kind is TypeKind.TIME_TZ:
        return f"{prefix}_times"
    return f"{prefix}_away" if source.is_temporal else prefix


#: Types of which no value lies half-way between two.
_IN_ORDER_ONLY = (TypeKind.BOOLEAN, TypeKind.ENUM, TypeKind.UUID, TypeKind.NULL)


def _median(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    source = call.arguments[0].data_type
    if source.is_string or source.is_composed or source.kind in _IN_ORDER_ONLY:
        value = _counted(calls, _comparable(calls, call), kept)
        return calls.plain(value, "median_lower", value.layout, call.distinct)
    return _interpolated(calls, call, kept, _kind("median", source), None)


def _interpolated(
    calls: AggregateCalls, call: AggregateCall, kept: Node | None, kind: str, parameter: float | None
) -> Pending:
    """A number between two values, of the type that the call has; of integers one of DOUBLEs."""
    (argument, *_), target = call.arguments, call.data_type
    source = argument.data_type
    is_number = source.is_float or source.is_whole
    as_double = source.is_whole or (is_number and parameter is None)
    value = calls.lowering.materialised(Cast(argument, DOUBLE) if as_double else argument)
    value = _counted(calls, value, kept)
    layout = canonical_layout(target, False)
    if source.is_decimal:
        layout = replace(value.layout, dtype=torch.int64)
    elif source == target and not is_number and source.kind is not TypeKind.TIME_TZ:
        layout = replace(value.layout, dtype=layout.dtype)
    # values that are distinct may be equal as DOUBLEs
    whole = (calls.column(calls.lowering.materialised(argument)),) if call.distinct and is_number else ()
    reduction = calls.reduce(kind, value, call.distinct, parameter=parameter, whole=whole)
    return calls.optional(value, reduction, _result(layout, converts=is_number))


def _of_64_bits(calls: AggregateCalls, call: AggregateCall, narrower: str = "DOUBLE") -> Value:
    """The argument. Raises UnsupportedError, with what to cast it to, if it has more bits."""
    value = calls.lowering.materialised(call.arguments[0])
    if value.layout.form is Form.WIDE:
        raise UnsupportedError(
            f"{call.function}() of {call.arguments[0].data_type} values of more than 64 bits is not supported; "
            f"cast to {narrower} first",
            call.span,
        )
    return value


def _result(layout: Layout, *, converts: bool = False) -> Finish:
    """What finishes a result that is one reduction, which may have another dtype."""

    def finish(lowering: ExpressionLowering, nodes: list[Node]) -> tuple[Layout, Node]:
        return layout, lowering.stream.builder.method("to", nodes[0], layout.dtype) if converts else nodes[0]

    return finish


def _fraction(call: AggregateCall) -> float:
    fraction = constant_number(call.arguments[1])
    assert fraction is not None
    is_last = fraction == 0 and math.copysign(1.0, fraction) < 0  # none, from the greatest value
    return 1.0 if is_last else fraction


def _continuous(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    source, fraction = call.arguments[0].data_type, _fraction(call)
    if fraction == 0.5:
        return _interpolated(calls, call, kept, _kind("median", source), None)
    kind = "quantile_of_floats" if source.kind is TypeKind.FLOAT else _kind("quantile", source)
    if kind == "quantile_down":
        return _quantile_of_many_digits(calls, call, kept, fraction)
    return _interpolated(calls, call, kept, kind, fraction)


def _quantile_of_many_digits(
    calls: AggregateCalls, call: AggregateCall, kept: Node | None, fraction: float
) -> Pending:
    """Of DECIMALs that may have 128 bits: as of narrower ones, if these have no more than 64."""
    _of_64_bits(calls, call, "DOUBLE or to a narrower type")
    return _interpolated(calls, call, kept, "quantile_to_zero", fraction)


def _discrete(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    value = _counted(calls, _comparable(calls, call), kept)
    return calls.plain(value, call.function, value.layout, call.distinct, parameter=_fraction(call))


def _approximate(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    """approx_quantile: the exact one, where half of each value lies on either side of its place."""
    target, value = call.data_type, _counted(calls, _of_64_bits(calls, call), kept)
    kind = "approximate_quantile" if target.is_float else "approximate_integer_quantile"
    layout = canonical_layout(target, False)
    if not target.is_float:
        layout = replace(value.layout, dtype=torch.int64)
    reduction = calls.reduce(kind, value, call.distinct, parameter=_fraction(call))
    return calls.optional(value, reduction, _result(layout, converts=True))


def _deviation(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    value = _counted(calls, _of_64_bits(calls, call), kept)
    layout = canonical_layout(call.data_type, False)
    if call.data_type.is_decimal:
        layout = Layout(call.data_type, Form.NUMBER, torch.int64, False, call.data_type.bounds)
    reduction = calls.reduce(_kind("mad", call.arguments[0].data_type), value, call.distinct)
    return calls.optional(value, reduction, _result(layout, converts=layout.dtype.is_floating_point))


# ---- text and bits ----


def _string_agg(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    lowering, pool = calls.lowering, ""
    value = calls.lowering.materialised(call.arguments[0])
    if (
        value.layout.pool is not None
        and value.layout.has_dictionary
        and calls.node.keys
        and not calls.of_frames
    ):
        pool = value.layout.pool.slot  # fewer bytes to move than places and lengths
    else:
        value = replace(
            value, node=lowering.strings(value), layout=canonical_layout(VARCHAR, value.layout.nullable)
        )
    value = _counted(calls, value, kept)
    separator = (
        call.arguments[1].value if len(call.arguments) > 1 and isinstance(call.arguments[1], Literal) else ","
    )
    if separator is None:
        value = _with_validity(value, lowering.tensor(lowering.lower(Literal(False, BOOLEAN))))
    text = "" if separator is None else str(separator)
    layout = canonical_layout(VARCHAR, False)
    order = _order(calls, call)
    return calls.plain(value, "string_agg", layout, call.distinct, parameter=text, pool=pool, order=order)


def _bitstring(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    """A bit for each of the integers between two constants."""
    value = _counted(calls, calls.lowering.materialised(call.arguments[0]), kept)
    low, high = (each for each in call.arguments[1:] if isinstance(each, Literal))
    assert isinstance(low.value, int) and isinstance(high.value, int)
    bounds = BitRange(low.value, high.value, (format_literal(low), format_literal(high)))
    return calls.plain(value, "bitstring_agg", canonical_layout(call.data_type, False), parameter=bounds)


def _list(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    """All values, NULLs too; NULL of no rows."""
    value = calls.lowering.materialised(call.arguments[0])
    node, validity = as_elements(calls.lowering, value)
    value = replace(value, node=node, validity=validity, layout=element_layout(call.arguments[0].data_type))
    counted = Value(_BOOLEANS, _everywhere(calls) if kept is None else kept, kept)
    layout = canonical_layout(call.data_type, False)
    made = calls.reduce(
        "list", value, call.distinct, counted=calls.column(counted), order=_order(calls, call)
    )
    return calls.optional(None if kept is None else counted, made, _result(layout))


def _histogram(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    """A map of the values, or of the bins that are given, to how often each occurs; NULL where there is none."""
    return _histogram_of_values(calls, call, kept) if len(call.arguments) == 1 else _binned(calls, call, kept)


def _counted_histogram(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    """The same, where a second argument says how often each value occurs."""
    return _histogram_of_values(calls, call, kept, calls.lowering.materialised(call.arguments[1]))


def _histogram_of_values(
    calls: AggregateCalls, call: AggregateCall, kept: Node | None, counts: Value | None = None
) -> Pending:
    value = _comparable(calls, call)
    node, validity = as_elements(calls.lowering, value)
    layout = element_layout(value.layout.data_type)
    value = _with_validity(Value(layout, node, validity), calls.lowering.all_valid(kept, value.validity))
    others = () if counts is None else (calls.column(counts),)
    made = calls.reduce("histogram", value, call.distinct, others=others)
    return calls.optional(value, made, _result(canonical_layout(call.data_type, False)))


def _binned(calls: AggregateCalls, call: AggregateCall, kept: Node | None) -> Pending:
    """The histogram of the values, put into the bins of the first row that counts."""
    value, bins = call.arguments
    counted = calls.lowering.all_valid(kept, calls.lowering.materialised(value).validity)
    of_values = _histogram_of_values(calls, replace(call, function="histogram", arguments=(value,)), kept)
    given = calls.lowering.materialised(bins)
    of_bins = _chosen(calls, replace(call, distinct=False), given, counted, "first")
    kernel = partial(binned_histograms, key_type=value.data_type, exact=call.function == "histogram_exact")

    def finish(lowering: ExpressionLowering, nodes: list[Node]) -> Value:
        split = len(of_values.reductions)
        counts, first = of_values.finish(lowering, nodes[:split]), of_bins.finish(lowering, nodes[split:])
        named = NamedKernel(kernel, call.function, call.span)
        made = lowering.stream.builder.call(named, counts.node, first.node, first.validity, name="histogram")
        return replace(counts, node=made)

    return Pending((*of_values.reductions, *of_bins.reductions), finish)


#: Aggregates that need all rows of a group, by name.
COLLECTED_CALLS: dict[str, Callable[[AggregateCalls, AggregateCall, Node | None], Pending]] = {
    **dict.fromkeys(_NOT_NULL, _choice),
    **dict.fromkeys(FORMULAS, _formula),
    "any_value": _any_value,
    "mode": _mode,
    "entropy": _entropy,
    "regr_count": _count_pairs,
    "median": _median,
    "quantile_cont": _continuous,
    **dict.fromkeys(("quantile_disc", "reservoir_quantile"), _discrete),
    "approx_quantile": _approximate,
    "mad": _deviation,
    "string_agg": _string_agg,
    "bitstring_agg": _bitstring,
    "list": _list,
    "histogram": _histogram,
    "counted_histogram": _counted_histogram,
    "histogram_exact": _binned,
}
