"""Lowering of window functions: what rows are sorted by, what each call reads, and how its result is made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tqp.core.errors import UnsupportedError
from tqp.core.frozen import dataclass
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import TRUE, AggregateCall
from tqp.planner.algebra.window_calls import BoundKind, FrameBound, WindowCall
from tqp.planner.functions.registry import WINDOWS
from tqp.planner.physical import plan as physical
from tqp.planner.physical.plan import GroupAlgorithm
from tqp.runtime.breakers.reductions import Order
from tqp.runtime.breakers.sorted_rows import Bound, FrameSpec
from tqp.runtime.breakers.windows import Call, Fill, Pick, Rank, Reduce, WindowRows
from tqp.runtime.lowering.aggregate_calls import AggregateCalls
from tqp.runtime.lowering.expressions.scalars import ExpressionLowering
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout
from tqp.runtime.lowering.pending import Pending
from tqp.runtime.lowering.sorts import lower_key
from tqp.runtime.lowering.stream import StoredColumn, Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering


@dataclass(frozen=True, slots=True)
class _Column:
    """A call's result that is one column as it is."""

    field: Field
    layout: Layout
    call: int


@dataclass(frozen=True, slots=True)
class _Aggregate:
    """A call's result that is made of reductions; `reduced`: their numbers among the calls, as `pending` counts them."""

    field: Field
    call: AggregateCall
    pending: Pending
    reduced: list[int]


def lower_window(plan: PlanLowering, node: physical.Window) -> Stream:
    """A stream of the rows in order, with the results of the calls."""
    if plan.program.carries_gradients:
        raise UnsupportedError("window functions in a query with gradients are not supported")
    stream = plan.lower(node.input)
    return _WindowLowering(plan, plan.enter(stream, node), node).lower()


class _WindowLowering:
    def __init__(self, plan: PlanLowering, lowering: ExpressionLowering, node: physical.Window) -> None:
        self.plan, self.lowering, self.node = plan, lowering, node
        self.outputs: list[Value] = []  # keys, the columns that are kept, then what the calls read
        self.calls: list[Call] = []
        self.results: list[_Column | _Aggregate] = []
        self._reductions: dict[Reduce, int] = {}

    def lower(self) -> Stream:
        node, program, lowering = self.node, self.plan.program, self.lowering
        stream, build = lowering.stream, lowering.stream.builder
        keys = [lower_key(lowering, key) for key in node.keys]
        split = len(node.partition)
        self.outputs += [*map(lowering.equality_key, keys[:split]), *map(lowering.order_key, keys[split:])]
        fields = node.fields[: len(node.fields) - len(node.calls)]
        kept = [lowering.materialise(stream.column(field.id)) for field in fields]
        places = list(map(self._column, kept))
        for field, call in zip(node.call_fields, node.calls, strict=True):
            with build.fragment(call.aggregate, " OVER ..."):
                self._call(field, call)
        slot = program.slot("windows")
        directions = [(key.descending, key.nulls_first) for key in node.keys]
        breaker = WindowRows(
            slot, directions, len(node.partition), places, self.calls, program.device, node.most
        )
        program.close(stream, self.outputs, breaker, "window functions")
        stored = [StoredColumn(value.layout, slot, index) for index, value in enumerate(kept)]
        return self._result(slot, stored, fields)

    def _result(self, slot: str, stored: list[StoredColumn], fields: tuple[Field, ...]) -> Stream:
        result = self.plan.stream_of(slot, stored, fields)
        lowering = self.plan.enter(result, self.node)
        for made in self.results:
            field = made.field
            if isinstance(made, _Column):
                column = StoredColumn(made.layout, slot, len(stored) + made.call)
                result.add_source_column(field.id, field.name, column)
                continue
            nodes = [
                result.source_values(f"{field.name}_{place}", slot, len(stored) + made.reduced[number])
                for place, number in enumerate(made.pending.reductions)
            ]
            with result.builder.fragment(made.call, f" AS {field.name}"):
                result.add_computed_column(field.id, field.name, made.pending.finish(lowering, nodes))
        return result

    def _column(self, value: Value) -> int:
        """Where the value is put out, once: a key may be kept, and be read by calls."""
        for index, known in enumerate(self.outputs):
            if known.node is value.node and known.validity is value.validity:
                return index
        self.outputs.append(value)
        return len(self.outputs) - 1

    def _call(self, field: Field, call: WindowCall) -> None:
        function = WINDOWS.get(call.function)
        if function is None:
            self._aggregate(field, call)
        elif function.picks_value:
            self._pick(field, call)
        elif function.fills:
            self._fill(field, call)
        else:
            self._rank(field, call)

    def _rank(self, field: Field, call: WindowCall) -> None:
        tiles = self.lowering.materialised(call.arguments[0]) if call.arguments else None
        if tiles is not None and tiles.layout.form is not Form.NUMBER:
            raise UnsupportedError(
                f"{call.function}() of {tiles.layout.data_type} is not supported", call.span
            )
        nullable = tiles is not None and tiles.layout.nullable
        order = self._order(call)
        if tiles is not None and order:
            nullable = True  # where the frame is empty
        layout = canonical_layout(call.data_type, nullable, field.facts.range)
        self.results.append(_Column(field, layout, len(self.calls)))
        column = None if tiles is None else self._column(tiles)
        self.calls.append(Rank(call.function, self._frame(call), column, order))

    def _pick(self, field: Field, call: WindowCall) -> None:
        value = self.lowering.materialised(call.arguments[0])
        number = default = None
        if len(call.arguments) > 1:
            number = self._column(self.lowering.materialised(call.arguments[1]))
        if len(call.arguments) > 2:
            other = self.lowering.materialised(call.arguments[2])
            layout = self.lowering.common_layout([value, other], call.data_type)
            if layout.form is Form.CODES:
                layout = canonical_layout(call.data_type, layout.nullable)
            value = self.lowering.in_layout(value, layout)
            default = self._column(self.lowering.in_layout(other, layout))
        self.results.append(_Column(field, value.layout.with_nullable(True), len(self.calls)))
        column, frame = self._column(value), self._frame(call)
        order = self._order(call)
        self.calls.append(Pick(call.function, column, frame, call.ignore_nulls, number, default, order))

    def _fill(self, field: Field, call: WindowCall) -> None:
        columns = []
        for argument in call.arguments:
            layout = canonical_layout(argument.data_type, True)
            columns.append(
                self._column(self.lowering.in_layout(self.lowering.materialised(argument), layout))
            )
        types = [argument.data_type for argument in call.arguments]
        self.results.append(
            _Column(field, canonical_layout(call.data_type, True, field.facts.range), len(self.calls))
        )
        self.calls.append(Fill(columns[0], types[0], columns[1], types[1]))

    def _aggregate(self, field: Field, call: WindowCall) -> None:
        aggregate = replace(call.aggregate, span=call.span or (0, 0))
        is_never_empty = call.frame.has_current_row and call.filter is None
        group = physical.Aggregate(
            (field,),
            self.node.estimated_rows,
            self.node.max_rows,
            self.node.input,
            GroupAlgorithm.SORT,
            (TRUE,) if is_never_empty else (),
            (aggregate,),
            None,
        )
        reductions = AggregateCalls(self.lowering, group, self.outputs, of_frames=True)
        pending = reductions.lower(aggregate)
        assert isinstance(pending, Pending)
        frame = self._frame(call)
        reduced = [self._reduce(Reduce(reduction, frame)) for reduction in reductions.reductions]
        self.results.append(_Aggregate(field, aggregate, pending, reduced))

    def _reduce(self, reduce: Reduce) -> int:
        """The number of the reduction among the calls; equal ones are computed once."""
        number = self._reductions.setdefault(reduce, len(self.calls))
        if number == len(self.calls):
            self.calls.append(reduce)
        return number

    def _order(self, call: WindowCall) -> Order:
        """The columns by which the rows of a frame are ordered for the call."""
        keys = (self.lowering.order_key(lower_key(self.lowering, key)) for key in call.order)
        return tuple(
            (self._column(value), key.descending, key.nulls_first)
            for key, value in zip(call.order, keys, strict=True)
        )

    # frames

    def _frame(self, call: WindowCall) -> FrameSpec:
        frame = call.frame
        if frame.key is None:
            start, end = (self._bound(bound) for bound in (frame.start, frame.end))
            return self._normal(FrameSpec(frame.mode, start, end, frame.exclusion))
        expressions = [bound.value for bound in (frame.start, frame.end) if bound.value is not None]
        values = [self.lowering.materialised(each) for each in (frame.key, *expressions)]
        layout = self.lowering.common_layout(values, frame.key.data_type)
        if layout.form not in (Form.NUMBER, Form.WIDE):
            raise UnsupportedError(
                f"RANGE with an offset over {frame.key.data_type} values is not supported", call.span
            )
        key, *columns = [self._column(self.lowering.in_layout(value, layout)) for value in values]
        left = iter(columns)
        start, end = (
            Bound(bound.kind, None if bound.value is None else next(left))
            for bound in (frame.start, frame.end)
        )
        nulls_first = bool(self.node.order) and self.node.order[0].nulls_first  # a constant is no key
        return FrameSpec(frame.mode, start, end, frame.exclusion, key, frame.descending, nulls_first)

    def _bound(self, bound: FrameBound) -> Bound:
        return Bound(
            bound.kind, None if bound.value is None else self._column(self.lowering.materialised(bound.value))
        )

    def _normal(self, spec: FrameSpec) -> FrameSpec:
        """Without ORDER BY all rows of a partition are peers."""
        if self.node.order or spec.mode.value == "ROWS":
            return spec
        start, end = spec.start, spec.end
        if start.kind is BoundKind.CURRENT_ROW:
            start = Bound(BoundKind.UNBOUNDED_PRECEDING)
        if end.kind is BoundKind.CURRENT_ROW:
            end = Bound(BoundKind.UNBOUNDED_FOLLOWING)
        return replace(spec, start=start, end=end)
