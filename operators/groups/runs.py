"""Reductions of groups that stand one after the other, as the elements of lists do: no row asks for the number of its group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.repeats import numbers_of
from tqp.operators.groups.folds import FOLDS
from tqp.operators.memory.arrays import Array, Values, as_array, as_tensor
from tqp.operators.numbers.wide import from_narrow
from tqp.operators.rows.runs import ROWS_REDUCED, Runs, sums_before

#: The greatest absolute sum of 64 bits.
_LARGEST = 2**63 - 1
#: Rows by which it is foreseen whether runs are long, and how many rows a long run has on average.
_FIRST_ROWS, _LONG = 4_096, 16

#: Reductions of which those of runs, reduced once more, are those of the groups.
REDUCED_TWICE = ("min", "max", "reference", "sum_float", "present")


def long_runs(group_ids: Values) -> Runs[Array] | None:
    """The runs of equal ids [n] where they are long, as of rows in order of time that are grouped by day; None on a device.

    Where group after group comes up, each row waits for the accumulator that the row before it has written to.
    """
    num_rows = group_ids.shape[0]
    if num_rows < _FIRST_ROWS or not (isinstance(group_ids, np.ndarray) or is_host(group_ids)):
        return None
    ids = as_array(group_ids)
    if _LONG * np.count_nonzero(ids[1:_FIRST_ROWS] != ids[: _FIRST_ROWS - 1]) > _FIRST_ROWS:
        return None
    runs = Runs(ids)
    return runs if _LONG * runs.count <= num_rows else None


def fold_runs(
    kind: str, values: Any, validity: Tensor | None, runs: Runs[Array], ids: Tensor, size: int, out: Tensor | None
) -> Tensor:  # fmt: skip
    """What `FOLDS[kind].by_group` makes of the rows of ids [n], for a kind of `REDUCED_TWICE`."""
    lengths, of_runs = as_tensor((runs.lengths(), ids.numpy().take(runs.first_rows)))
    reduced = None if values is None else reduce_runs(kind, values, validity, lengths)
    return FOLDS[kind].by_group(reduced, of_runs, size, None, out)


def reduce_runs(kind: str, values: Any, validity: Tensor | None, lengths: Tensor) -> Tensor:
    """What `FOLDS[kind].by_group` makes of `values` [n], of groups of `lengths` rows (int64 [g], whose sum is n)."""
    is_tensor = isinstance(values, Tensor)
    if is_host(lengths) and kind in _OF_RUNS and not (is_tensor and values.requires_grad):
        array = values.numpy() if is_tensor else None
        counted = None if validity is None or bool(validity.all()) else validity.numpy()
        found = _OF_RUNS[kind](array, counted, lengths.numpy())
        if found is not None:
            return torch.from_numpy(found)
    return FOLDS[kind].by_group(values, numbers_of(lengths), lengths.shape[0], validity, None)


def _are_long(values: Array, lengths: Array) -> bool:
    """Is each run reduced by itself in less time than all are in other ways?"""
    return bool(lengths.shape[0] * ROWS_REDUCED <= values.shape[0])


def _reduced(ufunc: np.ufunc, values: Array, lengths: Array, nothing: Any, dtype: Any = None) -> Array:
    """Of each run, in the dtype of the values or this one; `nothing` of an empty one."""
    found = np.full(lengths.shape[0], nothing, dtype or values.dtype)
    ends = np.cumsum(lengths)
    if values.shape[0]:
        rows = int(np.searchsorted(ends, values.shape[0])) + 1  # behind them all are empty
        # not with `out`, for which numpy keeps the interpreter lock
        found[:rows] = ufunc.reduceat(values, ends[:rows] - lengths[:rows], dtype=dtype)
        np.copyto(found, nothing, where=lengths == 0)  # of these it takes the next value
    return found


def _count(values: Array | None, validity: Array | None, lengths: Array) -> Array:
    return lengths if validity is None else _summed(validity, lengths)


def _sum(values: Array, validity: Array | None, lengths: Array) -> Array | None:
    if values.dtype.kind == "f":
        return _of_segments(
            "sum", _counted(values.astype(np.float64, copy=False), validity, 0.0), lengths, 0.0
        )
    return _summed(values if validity is None else values * validity, lengths)


def _of_segments(kind: str, values: Array, lengths: Array, initial: float) -> Array:
    """Of floats, in row order, which a reduction of numpy leaves; maxima of short runs in two fifths of its time."""
    offsets = np.zeros(lengths.shape[0] + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    segments = torch.from_numpy(offsets)
    found: Array = torch.segment_reduce(
        torch.from_numpy(values), kind, offsets=segments, unsafe=True, initial=initial
    ).numpy()
    return found


def _counted(values: Array, validity: Array | None, otherwise: Any) -> Array:
    """The values that count, and another one in place of those that do not."""
    if validity is None:
        return values
    counted = values.copy()
    np.copyto(counted, otherwise, where=~validity)
    return counted


def _summed(values: Array, lengths: Array) -> Array:
    """Sums of integers: of short runs differences of running sums, right even where these leave 64 bits, if each run's sum fits."""
    if _are_long(values, lengths):
        return _reduced(np.add, values, lengths, 0, np.int64)
    return np.diff(sums_before(values).take(np.cumsum(lengths)), prepend=0)


def _sum_wide(values: Array, validity: Array | None, lengths: Array) -> Array | None:
    if values.ndim == 2:
        return None
    longest = int(lengths.max(initial=0))
    low, high = torch.aminmax(torch.from_numpy(values)) if values.size else (0, 0)
    largest = max(int(high), -int(low))
    if largest * longest > _LARGEST:
        return None
    sums = _sum(values, validity, lengths)
    assert sums is not None
    return from_narrow(torch.from_numpy(sums)).numpy()


def _least(values: Array, validity: Array | None, lengths: Array) -> Array | None:
    return _extreme(values, validity, lengths, np.minimum, np.fmin, np.nan)


def _greatest(values: Array, validity: Array | None, lengths: Array) -> Array | None:
    return _extreme(values, validity, lengths, np.maximum, np.maximum, -np.inf)


def _extreme(
    values: Array,
    validity: Array | None,
    lengths: Array,
    of_integers: np.ufunc,
    of_floats: np.ufunc,
    of_no_float: float,
) -> Array | None:
    """Of floats NaN is the greatest."""
    if values.ndim == 2 or values.dtype.kind not in "if":
        return None
    if values.dtype.kind == "f":
        ufunc, nothing = of_floats, of_no_float
    else:
        limits = np.iinfo(values.dtype)
        ufunc, nothing = of_integers, limits.max if of_integers is np.minimum else limits.min
    counted = _counted(values, validity, nothing)
    if ufunc is np.maximum and values.dtype.kind == "f" and not _are_long(values, lengths):
        return _of_segments("max", counted, lengths, nothing)
    return _reduced(ufunc, counted, lengths, nothing)


_OF_RUNS: dict[str, Callable[[Any, Array | None, Array], Array | None]] = {
    "count_star": lambda values, validity, lengths: lengths,
    "count": _count,
    "sum": _sum,
    "sum_float": _sum,
    "sum_wide": _sum_wide,
    "min": _least,
    "max": _greatest,
    "reference": _greatest,
}
