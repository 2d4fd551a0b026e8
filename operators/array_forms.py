"""Kernels that also work on numpy arrays, for graphs on the CPU that go from call to call without tensors in between.

A tensor over an array takes a microsecond to make and to drop, and the interpreter lock is given away and taken again with
it, where another thread may step in; of a call on 100 thousand rows that is a tenth (see docs/performance.md).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from tqp.operators.groups import aggregates
from tqp.operators.joins import pairs as join_pairs
from tqp.operators.joins import run_rows
from tqp.operators.memory.arrays import Array, converted
from tqp.operators.numbers import elementwise, logic
from tqp.operators.numbers.math import OfFloats
from tqp.operators.rows import batches, domain_tables, keys
from tqp.operators.rows import selection as rows


def _index_select(values: Array, dimension: int, indices: Array) -> Array:
    assert dimension == 0
    return rows.take_of_array(values, indices)


def _calculation(function: Callable[..., Any]) -> Callable[..., Any]:
    return functools.partial(elementwise.calculate_arrays, function)


def _of_floats(on_host: np.ufunc, elsewhere: Callable[..., Any]) -> Callable[..., Any]:
    return functools.partial(elementwise.calculate_floats, on_host, elsewhere)


#: Functions of floats that numpy computes as torch does, bit by bit, or that are numpy's on the CPU anyway.
_FLOAT_FORMS: Mapping[Any, Callable[..., Any]] = {
    operator.add: _of_floats(np.add, operator.add),
    operator.sub: _of_floats(np.subtract, operator.sub),
    operator.mul: _of_floats(np.multiply, operator.mul),
    operator.truediv: _of_floats(np.divide, operator.truediv),
    operator.neg: _of_floats(np.negative, operator.neg),
    torch.true_divide: _of_floats(np.divide, torch.true_divide),
    torch.abs: _of_floats(np.abs, torch.abs),
    **{
        kernel: _of_floats(function, kernel)
        for kernel, function in (
            (elementwise.square_root, np.sqrt),
            (elementwise.exponential, np.exp),
            (elementwise.natural_logarithm, np.log),
            (elementwise.binary_logarithm, np.log2),
            (elementwise.decimal_logarithm, np.log10),
        )
        if elementwise.has_vector_loop(function.__name__)
    },
}


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
    aggregates.count_all: aggregates.count_all_of_array,
    aggregates.sum_all: aggregates.sum_all_of_array,
    aggregates.sum_where: aggregates.sum_where,
    aggregates.total: aggregates.total,
    aggregates.min_all: aggregates.min_all_of_array,
    aggregates.max_all: aggregates.max_all_of_array,
    **_FLOAT_FORMS,
    **{method: _question(method) for method in ("contains", "matches", "matches_equal", "first_match")},
}


def array_form(target: Any) -> Callable[..., Any] | None:
    """The array form of a kernel or method, if it has one; `target` may hold the kernel as its `function`."""
    if target in EITHER_FORM:
        return target  # type: ignore[no-any-return]
    kernel = getattr(target, "function", target)
    if not isinstance(kernel, OfFloats):
        return ARRAY_FORMS.get(kernel)
    form = _FLOAT_FORMS.get(kernel.function)
    return None if form is None else functools.partial(_converting, form, kernel.dtype)


def _converting(form: Callable[..., Any], dtype: torch.dtype, *values: Any, out: Array | None = None) -> Any:
    return form(*(converted(value, dtype) for value in values), out=out)


def follows_arrays(target: Any) -> bool:
    """Is the array form only worth it where an argument is an array anyway?"""
    return takes_out(target) and target not in _CALCULATIONS or target in _REDUCTIONS or target in EITHER_FORM


def takes_out(target: Any) -> bool:
    """May the array form be given an array, as `out`, to write its result to? If it does not fit, a new one is made."""
    kernel = getattr(target, "function", target)
    kernel = kernel.function if isinstance(kernel, OfFloats) else kernel
    return kernel in _FLOAT_FORMS or kernel in _CALCULATIONS


def keeps_nothing(target: Any) -> bool:
    """Has what the array form gives memory of its own, or that of `out`, whatever it is given?"""
    return takes_out(target) or target in _REDUCTIONS


_CALCULATIONS = frozenset({elementwise.add, elementwise.subtract, elementwise.multiply})
_REDUCTIONS = frozenset(
    {
        aggregates.count_all,
        aggregates.sum_all,
        aggregates.sum_where,
        aggregates.total,
        aggregates.min_all,
        aggregates.max_all,
    }
)
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
        logic.combine_validity,
    }
)
