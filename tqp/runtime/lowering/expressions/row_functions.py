"""An expression as a function of rows that a kernel chooses: a graph of its own, which the kernel calls as often as it likes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tqp.data.nested import Vector, take_vector
from tqp.operators.nested.layout import validity_of
from tqp.planner.algebra.element_expressions import ElementRef
from tqp.planner.algebra.expressions import Expression, column_ids, walk
from tqp.runtime.graph_function import GraphFunction, lowered_for_torch
from tqp.runtime.lowering.expressions.elements import as_elements
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.layouts import Layout
from tqp.runtime.lowering.stream import BATCH_KINDS, Input, InputKind, Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

_NUM_ROWS = Input(InputKind.NUM_ROWS)
#: Values, and which of them are there.
_Column = tuple[Any, Tensor | None]


class RowFunction:
    """The graph of an expression, over rows of its own, and the call of it.

    Its inputs are values and validity of columns, the number of rows, and what it shares with the graph around it.
    `parameters`: what the expression calls its own, and how that is stored. `arguments`: the columns of the graph around it
    that it reads, equal where the values are, and what it shares: what a kernel hands to `call`.
    """

    def __init__(
        self,
        lowering: ExpressionLowering,
        body: Expression,
        parameters: Sequence[tuple[ElementRef, Layout]] = (),
    ) -> None:
        around = lowering.stream
        columns = {
            id: lowering.comparable(lowering.materialise(around.column(id)))
            for id in _columns_read(lowering, body)
        }
        stream = Stream("")
        stream.fields = around.fields
        inner = type(lowering)(stream, lowering.program)
        inner.element_columns = dict(lowering.element_columns)
        self._columns: list[int] = []
        for parameter, layout in parameters:
            id = inner.element_columns[parameter.id] = lowering.program.hidden_id()
            self._add_column(stream, id, Value(layout, None), layout.nullable)
        for id, column in columns.items():
            self._add_column(stream, id, column, column.validity is not None)
        graph, self._inputs = stream.builder.graph(as_elements(inner, inner.lower(body)))
        self._function = GraphFunction(graph if lowering.program.on_host else lowered_for_torch(graph))
        self._shared = [each for each in self._inputs if isinstance(each, Input) and each != _NUM_ROWS]
        assert not any(each.kind in BATCH_KINDS for each in self._shared)
        self.arguments: tuple[list[tuple[Node | None, Node | None]], list[Node]] = (
            [(column.node, column.validity) for column in columns.values()],
            [around.input(each.slot, *each) for each in self._shared],
        )

    def _add_column(self, stream: Stream, id: int, like: Value, has_validity: bool) -> None:
        self._columns.append(id)
        values = stream.builder.input("values", (id, "values"))
        validity = stream.builder.input("validity", (id, "validity")) if has_validity else None
        stream.add_computed_column(id, "values", Value(like.layout, values, validity))

    def call(
        self, rows: Tensor, own: Sequence[Vector], columns: Sequence[_Column], shared: Sequence[Any]
    ) -> Vector:
        """The expression over the given rows of the columns; `own`: its parameters, a row for each of these."""
        taken = [take_vector(Vector(*column), rows) for column in columns]
        given: dict[Any, Any] = dict(zip(self._shared, shared, strict=True))
        given[_NUM_ROWS] = rows.shape[0]
        for id, vector in zip(self._columns, [*own, *taken], strict=True):
            given[id, "values"], given[id, "validity"] = vector.values, validity_of(vector)
        return Vector(*self._function(*(given[each] for each in self._inputs)))


def _columns_read(lowering: ExpressionLowering, body: Expression) -> list[int]:
    """The columns of the stream that the body reads, among them the elements of lambdas around it."""
    elements = {each.id for each in walk(body) if isinstance(each, ElementRef)}
    around = {lowering.element_columns[id] for id in elements & lowering.element_columns.keys()}
    return sorted(column_ids(body) | around)
