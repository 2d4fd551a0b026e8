"""TRY(): what is tried as a function of rows, which a kernel calls again for fewer rows where it raises."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tqp.data.nested import Vector, count_of
from tqp.operators.nested.layout import validity_of
from tqp.operators.rows.attempts import attempted
from tqp.operators.rows.selection import row_indices
from tqp.planner.algebra.expressions import Literal, Try
from tqp.runtime.lowering.expressions.elements import as_elements
from tqp.runtime.lowering.expressions.row_functions import RowFunction
from tqp.runtime.lowering.graph_builder import NamedKernel
from tqp.runtime.lowering.layouts import element_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


def lower_try(lowering: ExpressionLowering, expression: Try) -> Value:
    """The values of the rows that count, NULL where computing one raises."""
    data_type, build = expression.data_type, lowering.stream.builder
    body = RowFunction(lowering, expression.input)
    null = as_elements(lowering, lowering.materialised(Literal(None, data_type)))
    kernel = NamedKernel(_Attempts(body, expression.most_calls), "attempt", expression.span)
    made = build.call(kernel, null, lowering.active(None), *body.arguments)
    values, validity = (build.call(operator.getitem, made, part) for part in range(2))
    return Value(element_layout(data_type), values, validity)


class _Attempts:
    """The calls of a function of rows."""

    def __init__(self, body: RowFunction, most_calls: int | None) -> None:
        self._body, self._most_calls = body, most_calls

    def __call__(
        self,
        null: tuple[Any, Tensor],
        kept: Tensor | None,
        columns: Sequence[tuple[Any, Tensor | None]],
        shared: Sequence[Any],
    ) -> Vector:
        values, validity = null  # of each row
        num_rows = count_of(values)
        rows = torch.arange(num_rows, device=validity.device) if kept is None else row_indices(kept)
        if not rows.shape[0]:
            return Vector(values, validity)
        read = [Vector(*column) for column in columns]
        tried = attempted(
            lambda some: self._body.call(some, (), columns, shared), rows, num_rows, read, self._most_calls
        )
        return Vector(values, validity) if tried is None else Vector(tried.values, validity_of(tried))
