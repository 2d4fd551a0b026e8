"""Lowering of model calls: arguments to the columns that the model scores, raw scores to what the call gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from tqp.core.errors import BindError
from tqp.planner.expressions import Predict
from tqp.planner.null_facts import nullable as may_be_null
from tqp.runtime.lowering.graph_builder import NamedKernel
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.ml.model import Model
    from tqp.runtime.lowering.expressions import ExpressionLowering


def lower_predict(lowering: ExpressionLowering, call: Predict) -> Value:
    """The model's output for the rows of the current space; equal calls are scored once in a pipeline."""
    stream, program = lowering.stream, lowering.program
    model: Model = call.model  # type: ignore[assignment]
    columns: list[tuple[Any, Any]] = []
    for item, argument in zip(model.inputs, call.arguments, strict=True):
        value = lowering.materialise(lowering.lower(argument))
        validity = value.validity
        if validity is not None and not item.takes_null:
            if may_be_null(argument, stream.fields):
                raise BindError(
                    f'{model.name}(): the input "{item.name}" may be NULL, and the model does not take missing values; '
                    f"write coalesce(..., ...) around it, or WHERE ... IS NOT NULL",
                    call.span,
                )
            validity = None
        columns.append((lowering.tensor(value), validity))
    build = stream.builder
    scorer = stream.object(program.module(model.scorer, model.name))
    score = NamedKernel(_score, model.name, call.span)
    raw = build.call(score, scorer, tuple(columns), stream.num_rows(), name=f"{model.name}_scores")
    head = stream.object(program.module(model.head(call.output), f"{model.name}_{call.output.kind}"))
    values = build.call(NamedKernel(_apply, call.output.kind, call.span), head, raw, name=model.name)
    return Value(_layout(lowering, call), values)


def _layout(lowering: ExpressionLowering, call: Predict) -> Layout:
    labels = call.output.labels
    if labels is not None:
        pool = lowering.program.literal_dictionary([label.encode() for label in labels])
        return Layout(call.data_type, Form.CODES, torch.int64, False, None, pool)
    return canonical_layout(call.data_type, False)


def _score(scorer: nn.Module, columns: Sequence[tuple[Any, Any]], num_rows: int) -> Any:
    return scorer(columns, num_rows)


def _apply(head: nn.Module, raw: Any) -> Any:
    return head(raw)
