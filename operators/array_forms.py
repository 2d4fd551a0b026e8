"""Kernels that also work on numpy arrays, for graphs on the CPU that go from call to call without tensors in between.

A tensor over an array takes a microsecond to make and to drop, and the interpreter lock is given away and taken again with
it, where another thread may step in; of a call on 100 thousand rows that is a tenth (see docs/performance.md).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from tqp.operators import aggregates, batches, domain_tables, elementwise, join_pairs, keys, rows, run_rows
from tqp.operators.arrays import Array, converted


def _index_select(values: Array, dimension: int, indices: Array) -> Array:
    assert dimension == 0
    return rows.take_of_array(values, indices)


def _calculation(function: Callable[..., Any]) -> Callable[..., Any]:
    def calculate(a: Any, b: Any) -> Any:
        return elementwise.calculate_arrays(function, a, b)

    return calculate


def _question(method: str) -> Callable[..., Any]:
    def ask(build: Any, *arguments: Any) -> Any:
        return join_pairs.ask_with_arrays(build, method, *arguments)

    return ask


#: By kernel, or name of a method, the function that takes arrays where the kernel takes tensors, and gives arrays.
ARRAY_FORMS: Mapping[Any, Callable[..., Any]] = {
    elementwise.equal: np.equal,
    elementwise.not_equal: np.not_equal,
    elementwise.less: np.less,
    elementwise.less_equal: np.less_equal,
    elementwise.greater: np.greater,
    elementwise.greater_equal: np.greater_equal,
    elementwise.add: _calculation(np.add),
    elementwise.subtract: _calculation(np.subtract),
    elementwise.multiply: _calculation(np.multiply),
    elementwise.all_of: elementwise.all_of,
    elementwise.any_of: elementwise.any_of,
    elementwise.put_where: elementwise.put_where_array,
    elementwise.keep_where: elementwise.keep_where_array,
    elementwise.choose: elementwise.choose_array,
    aggregates.sum_where: aggregates.sum_where,
    aggregates.total: aggregates.total,
    rows.row_indices: rows.row_indices_of_array,
    rows.select_most: rows.select_most,
    rows.take_selected: rows.take_selected,
    rows.take_padded: rows.take_padded,
    rows.compose_padded: rows.compose_padded,
    rows.padding_validity: rows.padding_validity,
    torch.index_select: _index_select,
    keys.pack: keys.pack,
    keys.pack_narrow: keys.pack_narrow,
    keys.unpack: keys.unpack,
    domain_tables.look_up: domain_tables.look_up,
    run_rows.rows_in_build: run_rows.rows_in_build_array,
    "to": converted,
    **{method: _question(method) for method in ("contains", "matches", "matches_equal", "first_match")},
}
#: Functions that mean the same for arrays and tensors, of masks and of integers of any width.
EITHER_FORM = frozenset(
    {
        operator.and_,
        operator.or_,
        operator.xor,
        operator.invert,
        operator.gt,
        operator.ge,
        operator.getitem,
        batches.count,
    }
)
