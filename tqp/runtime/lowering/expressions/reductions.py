"""list_reduce(): a graph of its own for one step, which a kernel calls for one place of all lists after the other."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tqp.data.nested import Lists, Vector, take_vector
from tqp.operators.nested.layout import validity_of
from tqp.operators.nested.reductions import reduce_lists
from tqp.planner.algebra.element_expressions import ElementRef, ReduceElements
from tqp.planner.algebra.expressions import column_ids, walk
from tqp.runtime.graph_function import GraphFunction, lowered_for_torch
from tqp.runtime.lowering.expressions.elements import as_elements
from tqp.runtime.lowering.graph_builder import NamedKernel
from tqp.runtime.lowering.layouts import PLACE_LAYOUT, element_layout
from tqp.runtime.lowering.stream import BATCH_KINDS, Input, InputKind, Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


def lower_reduce_elements(lowering: ExpressionLowering, expression: ReduceElements) -> Value:
    """What the elements of each list come to."""
    stream = lowering.stream
    lists = lowering.materialised(expression.input)
    initial = as_elements(lowering, lowering.lower(expression.initial))
    columns = {id: lowering.materialise(stream.column(id)) for id in _columns_read(lowering, expression)}
    steps = _Steps(lowering, expression, columns)
    made = stream.builder.call(
        NamedKernel(steps, "list_reduce", expression.span),
        lists.node,
        lowering.active(lists.validity),
        initial,
        [(column.node, column.validity) for column in columns.values()],
        [stream.input(each.slot, *each) for each in steps.shared],
    )
    values, validity = (stream.builder.call(operator.getitem, made, part) for part in range(2))
    return Value(element_layout(expression.data_type), values, lowering.all_valid(validity, lists.validity))


def _columns_read(lowering: ExpressionLowering, expression: ReduceElements) -> list[int]:
    """The columns of the stream that the body reads, among them the elements of lambdas around it."""
    elements = {each.id for each in walk(expression.body) if isinstance(each, ElementRef)}
    around = {lowering.element_columns[id] for id in elements & lowering.element_columns.keys()}
    return sorted(column_ids(expression.body) | around)


class _Steps:
    """The graph of one step, over rows of its own, and the call of it for each place.

    Its inputs are values and validity of columns, the number of rows, and what it shares with the graph around it.
    """

    def __init__(
        self, lowering: ExpressionLowering, expression: ReduceElements, columns: Mapping[int, Value]
    ) -> None:
        self._from_first = expression.from_first
        stream = Stream("")
        stream.fields = lowering.stream.fields
        step = type(lowering)(stream, lowering.program)
        step.element_columns = dict(lowering.element_columns)
        self._columns: list[int] = []
        for parameter in expression.parameters:
            id = step.element_columns[parameter.id] = lowering.program.hidden_id()
            layout = PLACE_LAYOUT if parameter is expression.index else element_layout(parameter.data_type)
            self._add_column(stream, id, Value(layout, None), layout.nullable)
        for id, column in columns.items():
            self._add_column(stream, id, column, column.validity is not None)
        graph, self._inputs = stream.builder.graph(as_elements(step, step.lower(expression.body)))
        self._step = GraphFunction(graph if lowering.program.on_host else lowered_for_torch(graph))
        self.shared = [each for each in self._inputs if isinstance(each, Input) and each != _NUM_ROWS]
        assert not any(each.kind in BATCH_KINDS for each in self.shared)

    def _add_column(self, stream: Stream, id: int, like: Value, has_validity: bool) -> None:
        self._columns.append(id)
        values = stream.builder.input("values", (id, "values"))
        validity = stream.builder.input("validity", (id, "validity")) if has_validity else None
        stream.add_computed_column(id, "values", Value(like.layout, values, validity))

    def __call__(
        self,
        lists: Lists,
        kept: Tensor | None,
        initial: tuple[Any, Tensor | None],
        columns: Sequence[tuple[Any, Tensor | None]],
        shared: Sequence[Any],
    ) -> Vector:
        def step(reduced: Vector, element: Vector, place: int, rows: Tensor) -> Vector:
            own = [reduced, element, Vector(torch.full_like(rows, place), None)]
            taken = [take_vector(Vector(*column), rows) for column in columns]
            given: dict[Any, Any] = dict(zip(self.shared, shared, strict=True))
            given[_NUM_ROWS] = rows.shape[0]
            for id, vector in zip(self._columns, [*own[: len(self._columns) - len(columns)], *taken]):
                given[id, "values"], given[id, "validity"] = vector.values, validity_of(vector)
            return Vector(*self._step(*(given[each] for each in self._inputs)))

        reduced = reduce_lists(lists, kept, Vector(*initial), self._from_first, step)
        return Vector(reduced.values, validity_of(reduced))


_NUM_ROWS = Input(InputKind.NUM_ROWS)
