"""list_reduce(): one step as a function of rows, which a kernel calls for one place of all lists after the other."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tqp.data.nested import Lists, Vector
from tqp.operators.nested.layout import validity_of
from tqp.operators.nested.reductions import reduce_lists
from tqp.planner.algebra.element_expressions import ReduceElements
from tqp.runtime.lowering.expressions.elements import as_elements
from tqp.runtime.lowering.expressions.row_functions import RowFunction
from tqp.runtime.lowering.graph_builder import NamedKernel
from tqp.runtime.lowering.layouts import PLACE_LAYOUT, element_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


def lower_reduce_elements(lowering: ExpressionLowering, expression: ReduceElements) -> Value:
    """What the elements of each list come to."""
    stream = lowering.stream
    lists = lowering.materialised(expression.input)
    initial = as_elements(lowering, lowering.lower(expression.initial))
    parameters = [
        (each, PLACE_LAYOUT if each is expression.index else element_layout(each.data_type))
        for each in expression.parameters
    ]
    step = RowFunction(lowering, expression.body, parameters)
    made = stream.builder.call(
        NamedKernel(_Steps(step, len(parameters), expression.from_first), "list_reduce", expression.span),
        lists.node,
        lowering.active(lists.validity),
        initial,
        *step.arguments,
    )
    values, validity = (stream.builder.call(operator.getitem, made, part) for part in range(2))
    return Value(element_layout(expression.data_type), values, lowering.all_valid(validity, lists.validity))


class _Steps:
    """The call of the function of one step for each place."""

    def __init__(self, step: RowFunction, num_parameters: int, from_first: bool) -> None:
        self._step, self._num_parameters, self._from_first = step, num_parameters, from_first

    def __call__(
        self,
        lists: Lists,
        kept: Tensor | None,
        initial: tuple[Any, Tensor | None],
        columns: Sequence[tuple[Any, Tensor | None]],
        shared: Sequence[Any],
    ) -> Vector:
        def step(reduced: Vector, element: Vector, place: int, rows: Tensor) -> Vector:
            own = [reduced, element, Vector(torch.full_like(rows, place), None)][: self._num_parameters]
            return self._step.call(rows, own, columns, shared)

        reduced = reduce_lists(lists, kept, Vector(*initial), self._from_first, step)
        return Vector(reduced.values, validity_of(reduced))
