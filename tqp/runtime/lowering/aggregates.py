"""Lowering of GROUP BY: which accumulators an aggregate needs, and how its result is made of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from tqp.core.datatypes import TypeKind
from tqp.core.errors import UnsupportedError
from tqp.operators import keys as key_kernels
from tqp.operators import wide
from tqp.planner import physical_plan as physical
from tqp.planner.explain import format_expression
from tqp.planner.expressions import AggregateCall
from tqp.planner.physical_plan import GroupAlgorithm
from tqp.runtime.breakers.aggregate import CollectGroups, FoldGroups, Reduction
from tqp.runtime.lowering.expressions import ExpressionLowering
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.keys import lower_values, packed_key
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout, integer_layout
from tqp.runtime.lowering.numbers import range_of, scale_of
from tqp.runtime.lowering.stream import StoredColumn, Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering

_INT64 = (-(2**63), 2**63 - 1)
#: Sums of floats keep an accumulator per batch, for a result that does not depend on threads; so only few groups fold.
_MAX_ORDERED_GROUPS = 4096


@dataclass(frozen=True, slots=True)
class _Pending:
    """An aggregate whose accumulators are known: `finish(lowering, reduced values)` makes the result from them."""

    reductions: tuple[int, ...]
    finish: Callable[[ExpressionLowering, list[Node]], Value]


def lower_aggregate(plan: PlanLowering, node: physical.Aggregate) -> Stream:
    stream = plan.lower(node.input)
    lowering = plan.enter(stream, node)
    return _AggregateLowering(plan, lowering, node).lower()


class _AggregateLowering:
    def __init__(self, plan: PlanLowering, lowering: ExpressionLowering, node: physical.Aggregate) -> None:
        self.plan, self.lowering, self.node = plan, lowering, node
        self.outputs: list[Value] = []  # what the pipeline puts out: keys, then what the reductions read
        self.reductions: list[Reduction] = []

    def lower(self) -> Stream:
        node, program, stream = self.node, self.plan.program, self.lowering.stream
        with stream.builder.fragment("GROUP BY " + ", ".join(format_expression(key) for key in node.keys)):
            keys = lower_values(self.lowering, node.keys)
            packing = node.packing if self._packs(keys) else None
            if node.keys:
                self._add_keys(keys, packing)
        num_keys = len(self.outputs)
        pending = []
        for call in node.aggregates:
            with stream.builder.fragment(format_expression(call)):
                pending.append(self._pend(call))
        slot = program.slot("groups")
        folds = self._folds(packing)
        breaker: FoldGroups | CollectGroups
        if folds:
            if node.algorithm is GroupAlgorithm.DIRECT and Reduction("count_star") not in self.reductions:
                self.reductions.append(Reduction("present"))
            size = packing.size if packing is not None else 1
            breaker = FoldGroups(slot, node.algorithm, size, self.reductions, program.device)
        else:
            breaker = CollectGroups(slot, num_keys, self.reductions, program.device)
        program.close(stream, self.outputs, breaker, "GROUP BY")
        return self._results(slot, keys, packing, num_keys, pending)

    # keys

    def _packs(self, keys: list[Value]) -> bool:
        """The planner packs string keys by the size of their dictionary: they must have one."""
        return self.node.packing is not None and all(
            value.layout.form is Form.NUMBER
            or value.layout.form is Form.CODES
            and value.layout.pool is not None
            and value.layout.pool.is_dictionary
            and value.layout.pool.size is not None
            and value.layout.pool.size <= part.span - part.nullable
            for value, part in zip(keys, self.node.packing.parts, strict=True)
        )

    def _folds(self, packing: physical.KeyPacking | None) -> bool:
        algorithm = self.node.algorithm
        if algorithm is GroupAlgorithm.SORT or (self.node.keys and packing is None):
            return False
        if not all(reduction.folds for reduction in self.reductions):
            return False
        if algorithm is GroupAlgorithm.DIRECT and any(
            reduction.kind == "sum_float" for reduction in self.reductions
        ):
            assert packing is not None
            return packing.size <= _MAX_ORDERED_GROUPS
        return True

    def _add_keys(self, keys: list[Value], packing: physical.KeyPacking | None) -> None:
        if packing is not None:
            code = packed_key(self.lowering, keys, packing)
            layout = Layout(self.node.keys[0].data_type, Form.NUMBER, torch.int64, False)
            self.outputs.append(Value(layout, code))
            return
        for value in keys:
            if value.layout.form is Form.CODES and not (
                value.layout.pool is not None and value.layout.pool.is_dictionary
            ):
                value = replace(
                    value,
                    node=self.lowering.strings(value),
                    layout=canonical_layout(value.layout.data_type, value.layout.nullable),
                )
            self.outputs.append(value)

    # aggregates

    def _column(self, value: Value) -> int:
        for index, known in enumerate(self.outputs):
            if known.node is value.node and known.validity is value.validity:
                return index
        self.outputs.append(value)
        return len(self.outputs) - 1

    def _reduce(self, kind: str, value: Value | None, distinct: bool = False) -> int:
        column = -1 if value is None else self._column(value)
        if kind == "count" and not distinct and (value is None or value.validity is None):
            kind, column = "count_star", -1
        reduction = Reduction(kind, column, distinct)
        if reduction not in self.reductions:
            self.reductions.append(reduction)
        return self.reductions.index(reduction)

    def _pend(self, call: AggregateCall) -> _Pending:
        lowering = self.lowering
        argument: Value | None = None
        if call.arguments:
            argument = lowering.materialise(lowering.lower(call.arguments[0]))
        if call.filter is not None:
            kept = lowering.condition(call.filter)
            if argument is None:
                argument = Value(Layout(call.filter.data_type, Form.NUMBER, torch.bool, False), kept)
            validity = argument.validity
            both = kept if validity is None else lowering.stream.builder.call(operator.and_, kept, validity)
            argument = replace(argument, validity=both, layout=argument.layout.with_nullable(True))
        distinct = call.distinct and call.function not in ("min", "max", "any_value", "bool_and", "bool_or")
        match call.function:
            case "count_star" | "count":
                return self._count(call, argument, distinct)
            case "sum" | "avg":
                assert argument is not None
                return self._sum(call, argument, distinct)
            case "min" | "max" | "any_value":
                assert argument is not None
                return self._extreme(call, argument)
            case "bool_and" | "bool_or":
                assert argument is not None
                return self._optional(
                    argument,
                    [self._reduce(call.function, argument)],
                    lambda _, nodes: (canonical_layout(call.data_type, False), nodes[0]),
                )
            case "stddev_samp" | "stddev_pop" | "var_samp" | "var_pop":
                assert argument is not None
                return self._variance(call, argument, distinct)
            case "median":
                assert argument is not None
                moved = lowering.materialise(self._as_double(argument))
                return self._optional(
                    argument,
                    [self._reduce("median", moved, distinct)],
                    lambda _, nodes: (canonical_layout(call.data_type, False), nodes[0]),
                )
        raise UnsupportedError(f"the aggregate function {call.function} is not supported", call.span)

    def _count(self, call: AggregateCall, argument: Value | None, distinct: bool) -> _Pending:
        if distinct and argument is not None:
            argument = self._comparable(argument)
        index = self._reduce("count", argument, distinct)
        layout = integer_layout(call.data_type, (0, self.node.input.max_rows), False)
        return _Pending((index,), lambda _, nodes: Value(replace(layout, dtype=torch.int64), nodes[0]))

    def _comparable(self, value: Value) -> Value:
        """Strings without a dictionary as strings: equal ones may have different codes."""
        if value.layout.form is Form.CODES and not (
            value.layout.pool is not None and value.layout.pool.is_dictionary
        ):
            layout = canonical_layout(value.layout.data_type, value.layout.nullable)
            return replace(value, node=self.lowering.strings(value), layout=layout)
        return value

    def _optional(
        self,
        argument: Value,
        reductions: list[int],
        finish: Callable[[ExpressionLowering, list[Node]], tuple[Layout, Node]],
        minimum: int = 1,
    ) -> _Pending:
        """A result that is NULL where a group has fewer than `minimum` values."""
        if minimum == 1 and argument.validity is None and self.node.keys:

            def always(lowering: ExpressionLowering, nodes: list[Node]) -> Value:
                layout, node = finish(lowering, nodes)
                return Value(layout, node)

            return _Pending(tuple(reductions), always)
        count = self._reduce("count", argument)

        def with_validity(lowering: ExpressionLowering, nodes: list[Node]) -> Value:
            layout, node = finish(lowering, nodes)
            validity = lowering.stream.builder.call(operator.ge, nodes[-1], minimum)
            return Value(layout.with_nullable(True), node, validity)

        return _Pending((*reductions, count), with_validity)

    def _sum(self, call: AggregateCall, argument: Value, distinct: bool) -> _Pending:
        data_type = argument.layout.data_type
        is_average = call.function == "avg"
        if data_type.kind is TypeKind.INTERVAL:
            raise UnsupportedError(f"{call.function} of INTERVAL values is not supported", call.span)
        if data_type.is_float or not data_type.is_integer_like and data_type.kind is not TypeKind.BOOLEAN:
            total = self._reduce("sum_float", argument, distinct)
            result = canonical_layout(call.data_type, False)
            if not is_average:
                return self._optional(argument, [total], lambda _, nodes: (result, nodes[0]))
        else:
            low, high = (0, 1) if data_type.kind is TypeKind.BOOLEAN else range_of(argument)
            rows = self.node.input.max_rows
            known = (min(0, low * rows), max(0, high * rows))
            is_wide = argument.layout.form is Form.WIDE or known[0] < _INT64[0] or known[1] > _INT64[1]
            total = self._reduce("sum_wide" if is_wide else "sum", argument, distinct)
            result = Layout(call.data_type, Form.WIDE if is_wide else Form.NUMBER, torch.int64, False, known)
            if not is_average:
                if is_wide:
                    result = replace(result, value_range=None)
                return self._optional(argument, [total], lambda _, nodes: (result, nodes[0]))
        count = self._reduce("count", argument, distinct)
        divisor = float(10 ** scale_of(data_type))

        def average(lowering: ExpressionLowering, nodes: list[Node]) -> Value:
            build = lowering.stream.builder
            total = nodes[0]
            if result.form is Form.WIDE:
                total = build.call(wide.to_float64, total)
            count = build.method("to", nodes[1], torch.float64)
            if divisor != 1.0:
                count = build.call(operator.mul, count, divisor)
            node = build.call(operator.truediv, build.method("to", total, torch.float64), count)
            if argument.validity is None and self.node.keys:
                return Value(canonical_layout(call.data_type, False), node)
            return Value(canonical_layout(call.data_type, True), node, build.call(operator.gt, nodes[1], 0))

        return _Pending((total, count), average)

    def _extreme(self, call: AggregateCall, argument: Value) -> _Pending:
        layout, form = argument.layout, argument.layout.form
        coded = (
            form is Form.CODES
            and layout.pool is not None
            and (layout.pool.is_dictionary or call.function == "any_value")
        )
        if form is Form.NUMBER and layout.dtype is torch.bool:
            kind = "bool_and" if call.function == "min" else "bool_or"
            return self._optional(
                argument,
                [self._reduce(kind, argument)],
                lambda _, nodes: (layout.with_nullable(False), nodes[0]),
            )
        if form in (Form.NUMBER, Form.WIDE) or coded:
            index = self._reduce("min" if call.function == "min" else "max", argument)

            def narrowed(lowering: ExpressionLowering, nodes: list[Node]) -> tuple[Layout, Node]:
                node = nodes[0]
                if form is Form.CODES and len(nodes) > 1:  # a group without values has the identity, which is no code
                    some = lowering.stream.builder.call(operator.ge, nodes[-1], 1)
                    node = lowering.stream.builder.call(operator.mul, node, some)
                if layout.dtype.is_floating_point:
                    return layout.with_nullable(False), node
                return layout.with_nullable(False), lowering.stream.builder.method("to", node, layout.dtype)

            return self._optional(argument, [index], narrowed)
        if layout.data_type.is_string:
            argument = self._comparable(argument)
            kind = "first" if call.function == "any_value" else f"{call.function}_string"
        elif call.function == "any_value":
            kind = "first"
        else:
            raise UnsupportedError(
                f"{call.function} of {layout.data_type} values is not supported", call.span
            )
        result = argument.layout.with_nullable(False)
        return self._optional(argument, [self._reduce(kind, argument)], lambda _, nodes: (result, nodes[0]))

    def _variance(self, call: AggregateCall, argument: Value, distinct: bool) -> _Pending:
        value = self.lowering.materialise(self._as_double(argument))
        moment = self._reduce("second_moment", value, distinct)
        count = self._reduce("count", value, distinct)
        sample = call.function.endswith("samp")

        def finish(lowering: ExpressionLowering, nodes: list[Node]) -> Value:
            build = lowering.stream.builder
            number = build.call(operator.sub, nodes[1], 1) if sample else nodes[1]
            node = build.call(operator.truediv, nodes[0], build.call(torch.clamp, number, 1))
            if call.function.startswith("stddev"):
                node = build.call(torch.sqrt, node)
            return Value(
                canonical_layout(call.data_type, True), node, build.call(operator.gt, nodes[1], int(sample))
            )

        return _Pending((moment, count), finish)

    def _as_double(self, value: Value) -> Value:
        from tqp.core.datatypes import DOUBLE
        from tqp.planner.expressions import Cast, Literal
        from tqp.runtime.lowering.numbers import lower_numeric_cast

        if value.layout.dtype is torch.float64:
            return value
        if value.layout.data_type.is_float:
            return replace(
                value,
                node=self.lowering.to_dtype(value, torch.float64),
                layout=canonical_layout(DOUBLE, value.layout.nullable),
            )
        converted = lower_numeric_cast(
            self.lowering, Cast(Literal(None, value.layout.data_type), DOUBLE), value
        )
        assert converted is not None
        return converted

    # results

    def _results(
        self,
        slot: str,
        keys: list[Value],
        packing: physical.KeyPacking | None,
        num_keys: int,
        pending: list[_Pending],
    ) -> Stream:
        node = self.node
        stream = Stream(slot)
        lowering = self.plan.enter(stream, node)
        build = stream.builder
        key_fields, aggregate_fields = node.fields[: len(node.keys)], node.fields[len(node.keys) :]
        if packing is not None and node.keys:
            codes = stream.source_values("key", StoredColumn(self.outputs[0].layout, slot, 0))
            parts = [(part.minimum, part.span, part.nullable) for part in packing.parts]
            unpacked = build.call(key_kernels.unpack, codes, parts, name="keys")
            for position, (field, value) in enumerate(zip(key_fields, keys, strict=True)):
                pair = build.call(operator.getitem, unpacked, position)
                values = build.method(
                    "to", build.call(operator.getitem, pair, 0), value.layout.dtype, name=field.name
                )
                validity = None
                layout = value.layout.with_nullable(packing.parts[position].nullable)
                if layout.nullable:
                    validity = build.call(operator.getitem, pair, 1, name=f"{field.name}_valid")
                stream.add_computed_column(field.id, field.name, Value(layout, values, validity))
        else:
            for position, field in enumerate(key_fields):
                stream.add_source_column(
                    field.id, field.name, StoredColumn(self.outputs[position].layout, slot, position)
                )
        for field, item in zip(aggregate_fields, pending, strict=True):
            nodes = []
            for index in item.reductions:
                layout = Layout(field.data_type, Form.NUMBER, torch.int64, False)
                kind = self.reductions[index].kind
                nodes.append(stream.source_values(kind, StoredColumn(layout, slot, num_keys + index)))
            with build.fragment(
                f"{format_expression(node.aggregates[aggregate_fields.index(field)])} AS {field.name}"
            ):
                stream.add_computed_column(field.id, field.name, item.finish(lowering, nodes))
        return stream
