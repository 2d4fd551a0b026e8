"""Lowering of model calls: arguments to the columns that the model scores, raw scores to what the call gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tqp.core.datatypes import DOUBLE, TypeKind
from tqp.core.errors import BindError
from tqp.core.frozen import dataclass
from tqp.operators.rows import keys as key_kernels
from tqp.operators.rows.domain_tables import look_up
from tqp.operators.rows.selection import select_most, take, take_optional
from tqp.planner.algebra.expression_text import format_expression
from tqp.planner.algebra.expressions import ColumnRef, Literal, Predict, walk
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.outcomes import nullable as may_be_null
from tqp.runtime.breakers.collect import Collect
from tqp.runtime.frame import Frame, FrameColumn
from tqp.runtime.lowering.graph_builder import NamedKernel
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout
from tqp.runtime.lowering.stream import StoredColumn, Stream, Value

if TYPE_CHECKING:
    from tqp.ml.model import Model
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

#: Nanoseconds to gather or scatter a number.
_MOVE = 0.6


def lower_predict(lowering: ExpressionLowering, call: Predict) -> Value:
    """The model's output for the rows of the current space; equal calls are scored once in a pipeline.

    Where something before has decided some of the rows (`lowering.guard`), only the others are scored, if that is less.
    """
    stream, program = lowering.stream, lowering.program
    model: Model = call.model  # type: ignore[assignment]
    columns: list[tuple[Any, Any]] = []
    for item, argument in zip(model.inputs, call.arguments, strict=True):
        # Whatever stands there: weights of zero would make NaN of infinity.
        asked = argument if item.is_read or item.size else Literal(0.0, DOUBLE)
        value = lowering.materialised(asked)
        validity = value.validity
        if validity is not None and not item.takes_null:
            if may_be_null(argument, lowering.fields()):
                raise BindError(
                    f'{model.name}(): the input "{item.name}" may be NULL, and the model does not take missing values; '
                    f"write coalesce(..., ...) around it, or WHERE ... IS NOT NULL",
                    call.span,
                )
            validity = None
        columns.append((lowering.tensor(value), validity))
    build = stream.builder
    scorer = stream.object(program.module(model.scorer, model.title))
    score = NamedKernel(_score, model.title, call.span)
    arguments = (scorer, tuple(columns), stream.num_rows())
    if lowering.guard is None or build.known(score, *arguments) is not None:
        raw = build.call(score, *arguments, name=f"{model.title}_scores")
    else:
        some = NamedKernel(_score_some, model.title, call.span)
        most = _worth_selecting(model)
        raw = build.call(some, *arguments, lowering.guard(), most, name=f"{model.title}_scores")
    head = stream.object(program.module(model.head(call.output), f"{model.title}_{call.output.kind}"))
    values = build.call(NamedKernel(_apply, call.output.kind, call.span), head, raw, name=model.title)
    return Value(_layout(lowering, call), values)


def is_score(target: object) -> bool:
    """Is it what makes raw scores, its first argument the `Scorer`?"""
    return isinstance(target, NamedKernel) and target.function in (_score, _score_some)


def is_head(target: object) -> bool:
    """Is it what makes a model's output of raw scores?"""
    return isinstance(target, NamedKernel) and target.function is _apply


def _layout(lowering: ExpressionLowering, call: Predict) -> Layout:
    labels = call.output.labels
    if labels is not None:
        pool = lowering.program.literal_dictionary([label.encode() for label in labels])
        return Layout(call.data_type, Form.CODES, torch.int64, False, None, pool)
    return canonical_layout(call.data_type, False)


def _score(scorer: nn.Module, columns: Sequence[tuple[Any, Any]], num_rows: int) -> Any:
    return scorer(columns, num_rows)


def _worth_selecting(model: Model) -> float:
    """Up to which share of rows only these are scored: where it costs less to gather their inputs and to scatter their
    scores than to score all, and always where another row could make the model fail."""
    if any(item.refuses_unseen for item in model.inputs):
        return 1.0
    moved = _MOVE * (len(model.inputs) + 1)
    return model.cost / (model.cost + moved)


def _score_some(
    scorer: nn.Module, columns: Sequence[tuple[Any, Any]], num_rows: int, asked: Tensor, most: float
) -> Any:
    """Raw scores [n, k], zero in rows that nobody asks for unless most are asked for; `asked`: bool [n]."""
    # The other rows may hold anything; NaN would be in the gradients of all parameters.
    rows, _, count = select_most(asked, num_rows, 1.0 if torch.is_grad_enabled() else most)
    if rows is None:
        return scorer(columns, num_rows)
    kept = [(take(values, rows), take_optional(validity, rows)) for values, validity in columns]
    raw: Tensor = scorer(kept, count)
    return raw.new_zeros((num_rows, *raw.shape[1:])).index_copy_(0, rows.long(), raw)


def _apply(head: nn.Module, raw: Any) -> Any:
    return head(raw)


# over all combinations of values that some columns may take: scored once, then looked up row by row


@dataclass(frozen=True, slots=True)
class _Axis:
    """A column's values, one after the other: NULL first if there may be some."""

    layout: Layout
    low: int
    span: int

    def column(self, codes: Tensor) -> FrameColumn:
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
    values = [lowering.materialised(column) for column in columns]
    axes = []
    for column, value in zip(columns, values, strict=True):
        field = known.get(column.id)
        axis = _axis(value.layout, value.layout.nullable and (field is None or field.nullable))
        if axis is None:
            return None
        axes.append(axis)
    if prod(axis.span for axis in axes) > 2 * call.combinations:
        return None
    slot, layout = _combinations(lowering, call, columns, axes)
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


def _combinations(
    outer: ExpressionLowering, call: Predict, columns: Sequence[ColumnRef], axes: Sequence[_Axis]
) -> tuple[str, Layout]:
    """The slot of a frame with one column: what the call gives for each combination, the last axis running fastest."""
    program, size = outer.program, prod(axis.span for axis in axes)
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
        value = lowering.materialised(replace(call, combinations=0))
    slot = program.slot("predicted")
    program.close(stream, [value], Collect(slot), title)
    return slot, value.layout
