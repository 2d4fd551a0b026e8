"""Lowering of keys that are one column of integers: arrays of its values are asked for as they are, no keys are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from tqp.operators.joins.column_keys import values_in_build
from tqp.planner.algebra.expressions import ColumnRef, Expression
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.join_builds import JoinSlot
from tqp.runtime.lowering.keys import key_validity, lower_values, packed_key
from tqp.runtime.lowering.layouts import Form

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


def contains_column(lowering: ExpressionLowering, keys: Sequence[Expression], join: JoinSlot) -> Node | None:
    """A mask of the rows whose key the build side has; None where the key is something else than a column, or NULL has one."""
    packing, stream = join.packing, lowering.stream
    if packing is None or len(packing.parts) != 1 or not lowering.program.on_host:
        return None
    part = packing.parts[0]
    if part.nullable or part.dictionary is not None or not isinstance(keys[0], ColumnRef):
        return None
    values = lower_values(lowering, keys)
    layout = values[0].layout
    if layout.form is not Form.NUMBER or not layout.data_type.is_integer_like or layout.dtype is torch.bool:
        return None
    validity, build = key_validity(lowering, values, join.null_equal), stream.object(join.build)
    known = part.minimum, part.span, part.nullable
    return stream.builder.call(values_in_build, values[0].node, validity, known, build, name="found")


def key_of_valid(lowering: ExpressionLowering, keys: Sequence[Expression], join: JoinSlot) -> Node:
    """The key of rows of which none is NULL: `contains_column` has left the others out."""
    assert join.packing is not None
    values = [replace(value, validity=None) for value in lower_values(lowering, keys)]
    return packed_key(lowering, values, join.packing)
