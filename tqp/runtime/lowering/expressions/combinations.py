"""Predictions over all combinations of values that some columns may take: scored once, then looked up row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import torch

from tqp.core.datatypes import TypeKind
from tqp.operators.rows import keys as key_kernels
from tqp.operators.rows.domain_tables import look_up
from tqp.planner.algebra.explain import format_expression
from tqp.planner.algebra.expressions import ColumnRef, Predict, walk
from tqp.planner.algebra.may_raise import may_raise
from tqp.runtime.breakers.collect import Collect
from tqp.runtime.frame import Frame, FrameColumn
from tqp.runtime.lowering.layouts import Form, Layout
from tqp.runtime.lowering.stream import StoredColumn, Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering
    from tqp.runtime.lowering.program_builder import ProgramBuilder


@dataclass(frozen=True, slots=True)
class _Axis:
    """A column's values, one after the other: NULL first if there may be some."""

    layout: Layout
    low: int
    span: int

    def column(self, codes: torch.Tensor) -> FrameColumn:
        nullable = self.layout.nullable
        values = (codes - int(nullable)).clamp_(min=0) + self.low
        return FrameColumn(values.to(self.layout.dtype), codes > 0 if nullable else None)


def lower_over_combinations(lowering: ExpressionLowering, call: Predict) -> Value | None:
    """The call through a table of what it gives for every combination.

    None if a column's layout does not tell its values, or one that no row may have raises.
    """
    stream, build = lowering.stream, lowering.stream.builder
    known = lowering.fields()
    if may_raise(call, known):
        return None
    columns = list({node.id: node for node in walk(call) if isinstance(node, ColumnRef)}.values())
    values = [lowering.materialise(lowering.lower(column)) for column in columns]
    axes = []
    for column, value in zip(columns, values, strict=True):
        field = known.get(column.id)
        axis = _axis(value.layout, value.layout.nullable and (field is None or field.nullable))
        if axis is None:
            return None
        axes.append(axis)
    if prod(axis.span for axis in axes) > 2 * call.combinations:
        return None
    slot, layout = _table(lowering.program, lowering, call, columns, axes)
    parts = [(axis.low, axis.span, axis.layout.nullable) for axis in axes]
    place = build.call(
        key_kernels.pack, [(value.node, value.validity) for value in values], parts, name="place"
    )
    clamped = any(value.layout.nullable for value in values)
    node = build.call(look_up, stream.whole(slot, 0, "table"), place, 0, clamped, name=call.model.title)
    return Value(layout, node)


def _axis(layout: Layout, nullable: bool) -> _Axis | None:
    layout = replace(layout, nullable=nullable)
    if layout.form is Form.CODES and layout.pool is not None and layout.pool.size is not None:
        return _Axis(layout, 0, layout.pool.size + nullable)
    if layout.form is not Form.NUMBER:
        return None
    if layout.data_type.kind is TypeKind.BOOLEAN:
        return _Axis(layout, 0, 2 + nullable)
    if layout.value_range is None:
        return None
    low, high = layout.value_range
    return _Axis(layout, low, high - low + 1 + nullable)


def _table(
    program: ProgramBuilder,
    outer: ExpressionLowering,
    call: Predict,
    columns: Sequence[ColumnRef],
    axes: Sequence[_Axis],
) -> tuple[str, Layout]:
    """The slot of a frame with one column: what the call gives for each combination, the last axis running fastest."""
    size = prod(axis.span for axis in axes)
    codes = torch.arange(size, device=program.device)
    frame_columns = []
    for axis in reversed(axes):
        frame_columns.append(axis.column(codes % axis.span))
        codes = codes // axis.span
    source = program.slot("combinations")
    program.constants[source] = Frame(size, tuple(reversed(frame_columns)))
    stream = Stream(source)
    known = outer.fields()
    for position, (column, axis) in enumerate(zip(columns, axes, strict=True)):
        stream.add_source_column(column.id, column.name, StoredColumn(axis.layout, source, position))
        if column.id in known:
            stream.fields[column.id] = known[column.id]
    lowering = type(outer)(stream, program)
    title = f"{format_expression(call)} for every combination of values"
    with stream.builder.fragment(title):
        value = lowering.materialise(lowering.lower(replace(call, combinations=0)))
    slot = program.slot("predicted")
    program.close(stream, [value], Collect(slot), title)
    return slot, value.layout
