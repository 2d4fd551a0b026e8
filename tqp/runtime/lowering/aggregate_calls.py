"""Lowering of aggregate functions: which accumulators each needs, and how its result is made of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import BIGINT, BOOLEAN, INTEGER, TypeKind
from tqp.core.errors import UnsupportedError
from tqp.data.unsigned_words import turned, words_of
from tqp.operators.groups import averages
from tqp.operators.groups.distinct_sets import ValueRange
from tqp.operators.numbers import arithmetic
from tqp.operators.temporal.clocks import in_universal_time
from tqp.planner.algebra.expressions import AggregateCall, ColumnRef
from tqp.planner.algebra.float_averages import divides_float_sum
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.physical import plan as physical
from tqp.runtime.breakers.reductions import Reduction
from tqp.runtime.lowering.collected_calls import COLLECTED_CALLS
from tqp.runtime.lowering.expressions.numbers import range_of, scale_of
from tqp.runtime.lowering.graph_builder import NamedKernel, Node
from tqp.runtime.lowering.layouts import PLACE_LAYOUT, Form, Layout, canonical_layout, integer_layout
from tqp.runtime.lowering.pending import Pending, Reference
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

_INT64 = (-(2**63), 2**63 - 1)
#: Reductions that can be made of the sets of values that groups have, and how many values may come at most.
_OF_SETS = ("count", "sum", "sum_wide")
_LARGEST_DOMAIN = 1 << 27
#: Reductions that compare values, and so need a key for nested ones; DISTINCT needs one, too.
_COMPARED = ("least", "greatest", "mode", "entropy", "histogram", "median_lower", "quantile_disc")

#: Makes the layout and values of a result from what its reductions came to.
Finish = Callable[["ExpressionLowering", list[Node]], tuple[Layout, Node]]


class AggregateCalls:
    """The aggregates of one GROUP BY. They share accumulators, and columns of `outputs` that these read.

    `of_frames`: the groups are frames of window functions.
    """

    def __init__(
        self,
        lowering: ExpressionLowering,
        node: physical.Aggregate,
        outputs: list[Value],
        of_frames: bool = False,
    ) -> None:
        self.lowering, self.node, self.outputs, self.of_frames = lowering, node, outputs, of_frames
        self.reductions: list[Reduction] = []
        self._reduction_numbers: dict[Reduction, int] = {}
        self._columns: dict[
            tuple[Node | None, Node | None], int
        ] = {}  # of the outputs, by values and validity

    def lower(self, call: AggregateCall, factored: physical.FactoredSum | None = None) -> Pending | Reference:
        """Adds what the call needs to the outputs and reductions; `factored`: what its sum is made of."""
        if factored is not None:
            return self._factored(call, factored)
        reference = self._reference(call)
        if reference is not None:
            return reference
        if call.filter is None:
            return self._lower(call, None)
        kept = self.lowering.condition(call.filter)
        with self.lowering.only_where(lambda: [kept]):
            return self._lower(call, kept)

    def _lower(self, call: AggregateCall, kept: Node | None) -> Pending:
        of_collected = COLLECTED_CALLS.get(call.function)
        if of_collected is not None and not self._takes_greatest(call):
            return of_collected(self, call, kept)
        argument = self._argument(call, kept)
        lower = _LOWERED.get(call.function)
        if lower is not None:
            return lower(self, call, argument)
        assert argument is not None
        return self.plain(argument, call.function, canonical_layout(call.data_type, False), call.distinct)

    def _reference(self, call: AggregateCall) -> Reference | None:
        """Of a stored column that the group keys determine, one row; columns from one place share it.

        A call from no place in the SQL is the optimizer's, for such a key.
        """
        if (
            call.function != "any_value"
            or call.span is not None
            or not isinstance(call.arguments[0], ColumnRef)
        ):
            return None
        stream = self.lowering.stream
        column = stream.columns[call.arguments[0].id]
        if column.stored is None or column.home is None:
            return None
        found = stream.rows_of(column.home)
        if found is None:
            return None
        rows = Value(PLACE_LAYOUT, found[0])
        return Reference(self.reduce("reference", rows), column.stored, column.home, found[1])

    # accumulators

    def _argument(self, call: AggregateCall, kept: Node | None) -> Value | None:
        """The argument, its validity telling the rows that count."""
        lowering = self.lowering
        if not call.arguments:
            return None if kept is None else Value(canonical_layout(BOOLEAN, True), kept, kept)
        argument = lowering.materialised(call.arguments[0])
        if kept is None:
            return argument
        both = lowering.all_valid(kept, argument.validity)
        return replace(argument, validity=both, layout=argument.layout.with_nullable(True))

    def column(self, value: Value) -> int:
        """Where a value is among the outputs, once."""
        if not self._columns:  # keys stand before what the calls read
            for index, known in enumerate(self.outputs):
                self._columns.setdefault((known.node, known.validity), index)
        column = self._columns.setdefault((value.node, value.validity), len(self.outputs))
        if column == len(self.outputs):
            self.outputs.append(value)
        return column

    def reduce(
        self,
        kind: str,
        value: Value | None,
        distinct: bool = False,
        tables: tuple[physical.Table | None, ...] = (),
        combine: str = "sum",
        **reads: Any,
    ) -> int:
        """The number of an accumulator; `reads`: what else there is to say of it, see `Reduction`."""
        if kind == "count" and not distinct and (value is None or value.validity is None):
            kind, value = "count_star", None
        if value is not None and value.layout.data_type.is_composed and (distinct or kind in _COMPARED):
            reads["key"] = self.column(self.lowering.order_key(value))
        summands = (
            range_of(value)
            if kind == "sum" and value is not None and value.layout.dtype is not torch.bool
            else (0, 1)
        )
        of_sets = distinct and kind in _OF_SETS and not reads.get("whole")
        domain = _domain(value) if of_sets and value is not None else None
        column = -1 if value is None else self.column(value)
        reduction = Reduction(
            kind,
            column,
            distinct,
            value_range=summands,
            domain=domain,
            tables=tables,
            combine=combine,
            **reads,
        )
        number = self._reduction_numbers.setdefault(reduction, len(self.reductions))
        if number == len(self.reductions):
            self.reductions.append(reduction)
        return number

    def plain(
        self, argument: Value, kind: str, layout: Layout, distinct: bool = False, **reads: Any
    ) -> Pending:
        """An aggregate that is one reduction, NULL for no values; `reads` as of `reduce`."""
        reduction = self.reduce(kind, argument, distinct, **reads)
        return self.optional(argument, reduction, lambda _, nodes: (layout.with_nullable(False), nodes[0]))

    def optional(self, argument: Value | None, reduction: int, finish: Finish) -> Pending:
        """A result that is NULL where a group has no values; without an argument, of rows."""
        if (argument is None or argument.validity is None) and self.node.keys:
            return Pending((reduction,), lambda lowering, nodes: Value(*finish(lowering, nodes)))
        count = self.reduce("count", argument)

        def with_validity(lowering: ExpressionLowering, nodes: list[Node]) -> Value:
            layout, node = finish(lowering, nodes)
            validity = lowering.stream.builder.call(operator.ge, nodes[-1], 1)
            return Value(layout.with_nullable(True), node, validity)

        return Pending((reduction, count), with_validity)

    # functions

    def _count(self, call: AggregateCall, argument: Value | None) -> Pending:
        if argument is not None and call.distinct:
            argument = self.lowering.equality_key(argument)
        elif (
            argument is not None
            and call.arguments
            and may_raise(call.arguments[0], self.lowering.stream.fields)
        ):
            validity = self.lowering.checked_validity(call.arguments[0], argument)
            argument = replace(argument, validity=validity, layout=argument.layout.with_nullable(True))
        index = self.reduce("count", argument, call.distinct)
        layout = integer_layout(call.data_type, (0, self.node.input.max_rows), False)
        return Pending((index,), lambda _, nodes: Value(replace(layout, dtype=torch.int64), nodes[0]))

    def _sum(self, call: AggregateCall, argument: Value) -> Pending:
        if argument.layout.data_type.kind is TypeKind.INTERVAL:
            raise UnsupportedError(f"{call.function} of INTERVAL values is not supported", call.span)
        if argument.layout.data_type.is_float:
            return self.plain(argument, "sum_float", canonical_layout(call.data_type, False), call.distinct)
        is_wide, known = self._sum_range(argument)
        form = Form.WIDE if is_wide else Form.NUMBER
        layout = Layout(call.data_type, form, torch.int64, False, None if is_wide else known)
        bounds = call.data_type.bounds
        total = self.reduce("sum_wide" if is_wide else "sum", argument, call.distinct)

        def checked(lowering: ExpressionLowering, nodes: list[Node]) -> tuple[Layout, Node]:
            if bounds[0] <= known[0] and known[1] <= bounds[1]:
                return layout, nodes[0]
            check = NamedKernel(arithmetic.check_bounds, "check_bounds", call.span)
            message = f"Overflow in sum: the result does not fit {call.data_type}; cast the operand to DOUBLE"
            return layout, lowering.stream.builder.call(check, nodes[0], bounds, message, name="sum")

        return self.optional(argument, total, checked)

    def _merged_sum(self, call: AggregateCall, argument: Value) -> Pending:
        """A sum of sums or counts of parts, which is no further from 0 than these may be."""
        if argument.layout.data_type.is_float:
            return self.plain(argument, "sum_float", canonical_layout(call.data_type, False))
        is_wide = argument.layout.form is Form.WIDE
        low, high = (0, 0) if is_wide else range_of(argument)
        known = None if is_wide else (min(low, 0), max(high, 0))
        layout = Layout(call.data_type, argument.layout.form, torch.int64, False, known)
        total = self.reduce("sum_wide" if is_wide else "sum", argument)
        if call.function == "sum_of_counts":
            return Pending((total,), lambda _, nodes: Value(layout, nodes[0]))
        return self.optional(argument, total, lambda _, nodes: (layout, nodes[0]))

    def _factored(self, call: AggregateCall, factored: physical.FactoredSum) -> Pending:
        """A sum or an average whose sum is multiplied by group, or an extreme of values counted by group."""
        lowering, base = self.lowering, factored.base
        argument = None if base is None else lowering.materialised(base)
        combine = call.function if call.function in ("min", "max") else "sum"
        kind = "count" if argument is None else "sum"
        total = self.reduce(kind, argument, tables=factored.tables, combine=combine)
        if call.function == "avg":
            return self._quotient(call, argument, total, self.reduce("count", argument))
        layout = Layout(call.data_type, Form.NUMBER, torch.int64, False, factored.total)
        return self.optional(argument, total, lambda _, nodes: (layout, nodes[0]))

    def _sum_range(self, argument: Value) -> tuple[bool, tuple[int, int]]:
        """Does the sum of integers need 128 bits, and where does it lie?"""
        low, high = (0, 1) if argument.layout.dtype is torch.bool else range_of(argument)
        rows = self.node.input.max_rows
        known = (min(0, low * rows), max(0, high * rows))
        return argument.layout.form is Form.WIDE or known[0] < _INT64[0] or known[1] > _INT64[1], known

    def _average(self, call: AggregateCall, argument: Value) -> Pending:
        if argument.layout.data_type.kind is TypeKind.INTERVAL:
            return self._average_interval(call, argument)
        if argument.layout.data_type.is_float:
            kind = "sum_float"
        else:
            kind = "sum_wide" if self._sum_range(argument)[0] else "sum"
        total = self.reduce(kind, argument, call.distinct)
        return self._quotient(call, argument, total, self.reduce("count", argument, call.distinct))

    def _average_interval(self, call: AggregateCall, argument: Value) -> Pending:
        """Of the sums of months, of days and of microseconds; intervals are distinct as wholes."""
        whole = (self.column(argument),) if call.distinct else ()
        totals = []
        for place, bounds in enumerate((INTEGER.bounds, INTEGER.bounds, BIGINT.bounds)):
            node = self.lowering.stream.builder.call(torch.select, argument.node, -1, place)
            layout = integer_layout(BIGINT, bounds, argument.layout.nullable)
            part = Value(replace(layout, dtype=torch.int64), node, argument.validity)
            kind = "sum_wide" if self._sum_range(part)[0] else "sum"
            totals.append(self.reduce(kind, part, call.distinct, whole=whole))
        count = self.reduce("count", argument, call.distinct)

        def average(lowering: ExpressionLowering, nodes: list[Node]) -> Value:
            build = lowering.stream.builder
            kernel = NamedKernel(averages.average_interval, "avg", call.span)
            made, enough = build.call(kernel, *nodes, name="avg"), build.call(operator.gt, nodes[-1], 0)
            return Value(canonical_layout(call.data_type, True), made, enough)

        return Pending((*totals, count), average)

    def _quotient(self, call: AggregateCall, argument: Value | None, total: int, count: int) -> Pending:
        """An average of a sum and a count; without an argument, of rows."""
        data_type = call.arguments[0].data_type
        kernel = averages.average_of_float_sum if self._divides_float_sum(call) else averages.average

        def average(lowering: ExpressionLowering, nodes: list[Node]) -> Value:
            build = lowering.stream.builder
            if data_type.is_float:
                node = build.call(operator.truediv, nodes[0], nodes[1])
            elif data_type.is_temporal:
                node = build.call(averages.average_instant, nodes[0], nodes[1], name="avg")
                if call.data_type.kind is TypeKind.TIME_TZ:
                    node = build.call(in_universal_time, node, name="avg")
            else:
                node = build.call(kernel, nodes[0], nodes[1], scale_of(data_type), name="avg")
            if (argument is None or argument.validity is None) and self.node.keys:
                return Value(canonical_layout(call.data_type, False), node)
            return Value(canonical_layout(call.data_type, True), node, build.call(operator.gt, nodes[1], 0))

        return Pending((total, count), average)

    def _divides_float_sum(self, call: AggregateCall) -> bool:
        """Is the average rounded as sum(x) / count(x)? Over windows it is not."""
        node, fields = self.node, self.lowering.stream.fields
        return not self.of_frames and divides_float_sum(call, node.aggregates, bool(node.keys), fields)

    def _extreme(self, call: AggregateCall, argument: Value) -> Pending:
        layout = argument.layout
        if layout.dtype is torch.bool:
            return self.plain(argument, "bool_and" if call.function == "min" else "bool_or", layout)
        if layout.form in (Form.NUMBER, Form.WIDE) or layout.has_dictionary:
            return self._folded_extreme(self.lowering.comparable(argument), call.function)
        argument = self.lowering.comparable(argument)
        return self.plain(argument, "least" if call.function == "min" else "greatest", argument.layout)

    def _folded_extreme(self, argument: Value, kind: str) -> Pending:
        """The extreme of numbers or codes, batch by batch, in the dtype of the argument."""
        layout = argument.layout.with_nullable(False)

        def narrowed(lowering: ExpressionLowering, nodes: list[Node]) -> tuple[Layout, Node]:
            build, node = lowering.stream.builder, nodes[0]
            if layout.form is Form.CODES and len(nodes) > 1:
                # a group without values has the identity, which is no code
                node = build.call(operator.mul, node, build.call(operator.ge, nodes[-1], 1))
            if not layout.dtype.is_floating_point:
                node = build.method("to", node, layout.dtype)
            return layout, node

        return self.optional(argument, self.reduce(kind, argument), narrowed)

    def _takes_greatest(self, call: AggregateCall) -> bool:
        """Is it any value of equal ones (see `_reference`), of which the greatest is found batch by batch?

        Not of floats: the greatest of zeros has no sign.
        """
        if call.function != "any_value" or call.span is not None:
            return False
        layout = self.lowering.materialised(call.arguments[0]).layout
        return layout.form in (Form.NUMBER, Form.WIDE, Form.CODES) and not layout.dtype.is_floating_point

    def _greatest(self, call: AggregateCall, argument: Value) -> Pending:
        if argument.layout.dtype is torch.bool:
            return self.plain(argument, "bool_or", argument.layout)
        return self._folded_extreme(argument, "max")

    def _bits(self, call: AggregateCall, argument: Value) -> Pending:
        """bit_and, bit_or, bit_xor: what has no more bits than the values."""
        if call.data_type.kind is TypeKind.UHUGEINT:
            return self._bits_of_unsigned(call, argument)
        if call.data_type.kind is TypeKind.BIT:
            layout = canonical_layout(call.data_type, argument.layout.nullable)
            argument = replace(argument, node=self.lowering.strings(argument), layout=layout)
            return self.plain(argument, "combined_bits", layout, call.distinct, parameter=call.function)
        low, high = range_of(argument)
        bits = max(low.bit_length(), high.bit_length())
        known = (0 if low >= 0 else -(1 << bits), (1 << bits) - 1)
        layout = replace(argument.layout, value_range=known)
        return self.plain(argument, call.function, layout, call.distinct)

    def _bits_of_unsigned(self, call: AggregateCall, argument: Value) -> Pending:
        """Of what is stored with its first bit turned."""
        words = self.lowering.stream.builder.call(words_of, argument.node, name="words")
        layout = canonical_layout(call.data_type, argument.layout.nullable)
        argument = replace(argument, node=words, layout=layout)
        reduction = self.reduce(call.function, argument, call.distinct)

        def finish(lowering: ExpressionLowering, nodes: list[Node]) -> tuple[Layout, Node]:
            return layout.with_nullable(False), lowering.stream.builder.call(
                turned, nodes[0], name=call.function
            )

        return self.optional(argument, reduction, finish)


#: Aggregates with a form of their own; the others are in `collected_calls`, or one reduction of the same name.
_LOWERED: dict[str, Callable[[AggregateCalls, AggregateCall, Any], Pending]] = {
    "count_star": AggregateCalls._count,
    "count": AggregateCalls._count,
    "sum": AggregateCalls._sum,
    "sum_of_sums": AggregateCalls._merged_sum,
    "sum_of_counts": AggregateCalls._merged_sum,
    "avg": AggregateCalls._average,
    "min": AggregateCalls._extreme,
    "max": AggregateCalls._extreme,
    "any_value": AggregateCalls._greatest,
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), AggregateCalls._bits),
    "approx_count_distinct": lambda calls, call, argument: calls._count(
        replace(call, distinct=True), argument
    ),
}


def _domain(value: Value) -> ValueRange | None:
    """The range of integers, booleans or codes, if a small one is known."""
    layout = value.layout
    if layout.dtype is torch.bool:
        return ValueRange.of(0, 1)
    if layout.has_dictionary:
        assert layout.pool is not None
        return None if layout.pool.size is None else ValueRange.of(0, max(0, layout.pool.size - 1))
    if layout.form is not Form.NUMBER or layout.dtype.is_floating_point:
        return None
    low, high = range_of(value)
    return ValueRange.of(low, high) if high - low < _LARGEST_DOMAIN else None
