"""Lowering of calls of Python functions: they get the rows that count as columns, and give values of their type."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.data.column import column_of
from tqp.data.nested import Vector
from tqp.operators.rows.selection import select_most
from tqp.planner.algebra.expressions import PythonCall
from tqp.planner.algebra.outcomes import nullable as may_be_null
from tqp.runtime.frame import take_values
from tqp.runtime.lowering.graph_builder import NamedKernel
from tqp.runtime.lowering.layouts import element_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.ml.python_functions import PythonFunction
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


def lower_python_call(lowering: ExpressionLowering, call: PythonCall) -> Value:
    """The function's values for the rows of the current space; equal calls run once in a pipeline.

    It sees no row that something before has decided (`lowering.guard`), and none with a NULL unless it takes them.
    """
    stream, build = lowering.stream, lowering.stream.builder
    function: PythonFunction = call.function  # type: ignore[assignment]
    values = [lowering.materialised(argument) for argument in call.arguments]
    columns = tuple(
        (lowering.strings(each) if each.layout.data_type.is_string else lowering.tensor(each), each.validity)
        for each in values
    )
    types = tuple(each.layout.data_type for each in values)
    asked = lowering.active(None if function.takes_null else lowering.combine_validity(*values))
    kernel = NamedKernel(_Caller(function), function.name, call.span)
    made = build.call(kernel, columns, types, stream.num_rows(), asked, stream.object("device"))
    made.counts_rows = function.has_side_effects
    result = build.call(operator.getitem, made, 0, name=function.name)
    is_nullable = may_be_null(call, lowering.fields())
    validity = stream.or_all_rows(build.call(operator.getitem, made, 1)) if is_nullable else None
    return Value(element_layout(call.data_type).with_nullable(is_nullable), result, validity)


class _Caller:
    """What the graph calls."""

    def __init__(self, function: PythonFunction) -> None:
        self.function = function

    def __call__(
        self,
        columns: Sequence[tuple[Any, Tensor | None]],
        types: Sequence[DataType],
        num_rows: int,
        asked: Tensor | None,
        device: torch.device,
    ) -> Vector:
        """Values and validity of `num_rows` rows; where not `asked` (bool [n]), NULL."""
        rows, count = None, num_rows
        if asked is not None:
            rows, _, count = select_most(asked, num_rows, 1.0)
        if asked is not None and not count:
            return self.function.nulls(num_rows, device)
        if rows is not None:
            columns = [(take_values(values, rows), take_values(valid, rows)) for values, valid in columns]
        given = [
            column_of(each, count, values, validity)
            for each, (values, validity) in zip(types, columns, strict=True)
        ]
        made = self.function.call(given, count, device)
        if rows is None or asked is None:
            return made
        places = (torch.cumsum(asked, 0) - 1).clamp_(min=0)
        valid = asked if made.validity is None else asked & made.validity[places]
        return Vector(take_values(made.values, places), valid)
