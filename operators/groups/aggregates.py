"""Aggregates: primitive reductions by dense group id, and of all rows as one group.

`group_ids`: integers [n] in [0, num_groups). `validity` (bool [n] or None): rows that count. `out`: accumulators of a
previous call, updated in place, so that batches add up; else fresh ones are made. An empty group holds the identity of
its reduction; whether a group is empty is for `count_by_group` to say. Scatters run in row order on one thread on CPU,
so that float results do not depend on the number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.memory import allocation
from tqp.operators.memory.arrays import TORCH_DTYPES, Array, Values, as_tensor
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.wide import SIGN_BIT, is_wide, less, order_keys
from tqp.operators.numbers.wide import sum_all as wide_sum_all
from tqp.operators.operation import Operation
from tqp.operators.rows.keys import from_ordered_bits, ordered_bits
from tqp.operators.rows.selection import row_indices, take

#: The reduction of torch that gives the least or the greatest value.
Which = Literal["amin", "amax"]


def sum_by_group(
    values: Tensor,
    group_ids: Tensor,
    num_groups: int,
    validity: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Sums [num_groups]: int64 of integers and booleans (the caller proves that they fit), float64 of floats."""
    # Ids that are one number for all rows: there is no GROUP BY. The one group of a partition adds up as those of others do.
    is_whole = num_groups == 1 and group_ids.stride(0) == 0
    if is_whole and out is None and is_host(values) and not values.requires_grad:
        counted = None if validity is None else validity.numpy()
        return torch.from_numpy(_sum_of_array(values.numpy(), counted).reshape(1))
    values = _summands(values, validity)
    is_dense = num_groups * _ROWS_COUNTED <= values.shape[0] > 0  # of no rows, bincount makes integers
    if is_host(values) and values.is_floating_point() and is_dense and group_ids.dtype is not torch.int64:
        # in row order, as the scatter, which takes two thirds of the time, but group ids of 64 bits only
        sums = torch.bincount(group_ids, values, minlength=num_groups)
        return sums if out is None else out.add_(sums)
    if out is None:
        out = allocation.zeros(num_groups, values.dtype, values.device)
    return out.scatter_add_(0, group_ids.to(torch.int64), values)


def count_by_group(
    group_ids: Tensor, num_groups: int, validity: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """Number of (valid) rows of each group: int64 [num_groups]."""
    if validity is not None:
        return sum_by_group(validity, group_ids, num_groups, None, out)
    if num_groups == 1 and out is None:
        return torch.tensor([group_ids.shape[0]], device=group_ids.device)
    if num_groups <= group_ids.shape[0]:
        counts = torch.bincount(group_ids, minlength=num_groups)
        return counts if out is None else out.add_(counts)
    if out is None:
        out = allocation.zeros(num_groups, torch.int64, group_ids.device)
    ones = torch.ones(group_ids.shape[0], dtype=torch.int64, device=group_ids.device)
    return out.scatter_add_(0, group_ids.to(torch.int64), ones)


def merge_extremes(a: Tensor, b: Tensor, which: Which) -> Tensor:
    """Row by row the lesser ("amin") or greater ("amax") of two states of `min_by_group` or `max_by_group`."""
    if a.dim() == 2:
        takes_a = less(a, b) if which == "amin" else less(b, a)
        return torch.where(takes_a.unsqueeze(1), a, b)
    if which == "amax":
        return torch.maximum(a, b)  # NaN wins, as it should
    return torch.fmin(a, b) if a.is_floating_point() else torch.minimum(a, b)  # NaN loses


def first_by_group(group_ids: Tensor, num_groups: int, validity: Tensor | None = None) -> Tensor:
    """int64 [num_groups]: the first (valid) row of each group, -1 if there is none."""
    return least_by_group(*_valid_rows(group_ids, validity), num_groups)


def last_by_group(group_ids: Tensor, num_groups: int, validity: Tensor | None = None) -> Tensor:
    """int64 [num_groups]: the last (valid) row of each group, -1 if there is none."""
    rows, group_ids = _valid_rows(group_ids, validity)
    last = allocation.full(num_groups, -1, torch.int64, group_ids.device)
    return last.scatter_reduce_(0, group_ids.to(torch.int64), rows, "amax")


def least_by_group(numbers: Tensor, group_ids: Tensor, num_groups: int) -> Tensor:
    """int64 [num_groups]: the least of the numbers of each group, int64 [n] from 0 on; -1 if there is none."""
    nothing = _identity("amin")
    least = allocation.full(num_groups, nothing, torch.int64, group_ids.device)
    least.scatter_reduce_(0, group_ids.to(torch.int64), numbers, "amin")
    return least.masked_fill_(least == nothing, -1)


def _valid_rows(group_ids: Tensor, validity: Tensor | None) -> tuple[Tensor, Tensor]:
    """int64 [m]: the valid rows, and their groups."""
    if validity is None:
        return torch.arange(group_ids.shape[0], device=group_ids.device), group_ids
    rows = row_indices(validity)
    return rows, take(group_ids, rows)


def _bool_by_group(
    values: Tensor,
    group_ids: Tensor,
    num_groups: int,
    validity: Tensor | None = None,
    out: Tensor | None = None,
    *,
    decisive: bool,
) -> Tensor:
    """bool [num_groups]: `decisive` where any (valid) value of the group is that, else the opposite."""
    if out is None:
        out = allocation.full(num_groups, not decisive, torch.bool, values.device)
    rows = row_indices(values if decisive else ~values, validity)
    fill = torch.full((), decisive, dtype=torch.bool, device=out.device)
    return out.scatter_(0, take(group_ids, rows).to(torch.int64), fill.expand(rows.shape[0]))


#: bool [num_groups]: are all (valid) values of the group true? True for an empty group.
bool_and_by_group = functools.partial(_bool_by_group, decisive=False)
#: bool [num_groups]: is any (valid) value of the group true? False for an empty group.
bool_or_by_group = functools.partial(_bool_by_group, decisive=True)


def sum_all_by_torch(values: Tensor, validity: Tensor | None = None, largest: int | None = None) -> Tensor:
    """As `sum_all`, on any device."""
    if validity is not None:
        values = elementwise.keep_where(values, validity)
    return values.to(torch.float64).sum() if values.is_floating_point() else values.sum(dtype=torch.int64)


def _sum_of_array(values: Array, validity: Array | None = None, largest: int | None = None) -> Array:
    if values.dtype.kind == "f":
        return _sum_of_floats(values) if validity is None else _sum_where(values, validity)
    if validity is not None:
        values = elementwise.keep_where_array(values, validity)
    if values.dtype.kind == "b":
        return np.asarray(np.count_nonzero(values))
    if largest is None:
        largest = -int(np.iinfo(values.dtype).min)
    return np.asarray(_sum_of_integers(values, largest), np.int64)


def sum_where_by_torch(values: Tensor | float, condition: Tensor) -> Tensor:
    """As `sum_where`, on any device."""
    if not isinstance(values, Tensor):
        values = torch.full_like(condition, values, dtype=torch.float64)
    return sum_all_by_torch(values, condition)


def total_in_order(sums: Sequence[Values]) -> Values:
    """As `total`, of tensors or arrays."""
    result = sums[0]
    for other in sums[1:]:
        result = result + other
    return result


def sum_wide_all(values: Tensor, validity: Tensor | None = None) -> Tensor:
    """The exact sum in 128 bits, int64 [2], of integers [n] or int64 [n, 2]. Raises ExecutionError beyond 128 bits."""
    if validity is not None:
        values = (
            values * validity.unsqueeze(1) if is_wide(values) else elementwise.keep_where(values, validity)
        )
    return wide_sum_all(values)[0]


def count_all_by_torch(num_rows: int, validity: Tensor | None, device: torch.device | str = "cpu") -> Tensor:
    """As `count_all`, on any device."""
    if validity is None:
        return torch.tensor(num_rows, dtype=torch.int64, device=device)
    return validity.sum(dtype=torch.int64)


def _count_of_array(num_rows: int, validity: Array | None, device: object = None) -> Array:
    return np.asarray(num_rows if validity is None else np.count_nonzero(validity), np.int64)


def bool_or_all(values: Tensor, validity: Tensor | None = None) -> Tensor:
    """Is any (valid) value true? bool 0-d."""
    return (values if validity is None else values & validity).any()


def bool_and_all(values: Tensor, validity: Tensor | None = None) -> Tensor:
    """Are all (valid) values true? bool 0-d."""
    return bool_or_all(~values, validity).logical_not()


def _summands(values: Tensor, validity: Tensor | None) -> Tensor:
    """int64 or float64 values, zero where NULL."""
    if validity is not None:
        values = elementwise.keep_where(values, validity)
    return values.to(torch.float64 if values.is_floating_point() else torch.int64)


#: Integers added in 32 bits at least, for which that is worth it.
_MANY_SUMMANDS = 256


def _sum_of_integers(values: npt.NDArray[Any], largest: int) -> int:
    """Of integers of up to 32 bits on the CPU: as many as fit are added in 32 bits, in a quarter of the time of 64."""
    at_once = (2**31 - 1) // max(1, largest)
    if at_once < _MANY_SUMMANDS:
        return int(np.add.reduce(values, dtype=np.int64))
    end = values.shape[0] - values.shape[0] % at_once
    total = int(np.add.reduce(values[end:], dtype=np.int32))
    if end:
        sums = np.add.reduce(values[:end].reshape(-1, at_once), axis=1, dtype=np.int32)
        total += int(np.add.reduce(sums, dtype=np.int64))
    return total


def _sum_where(values: Array | float, condition: Array) -> Array:
    if not isinstance(values, np.ndarray):
        count = int(np.count_nonzero(condition))
        return np.asarray(values * count if count else 0.0)
    # one pass, which widens the condition a few rows at a time; choosing by bits and adding up takes two to four
    result = np.asarray(np.einsum("i,i->", condition, values, dtype=np.float64))
    if np.isnan(result):  # maybe of an infinity times zero, in a row that does not count
        return _sum_of_floats(elementwise.keep_where_array(values, condition))
    return result


def _sum_of_floats(values: Array) -> Array:
    """In an order that the number of threads does not change: torch would share one long sum among its threads."""
    with np.errstate(all="ignore"):
        return np.asarray(np.add.reduce(values, dtype=np.float64))


def _identity(which: Which, dtype: torch.dtype = torch.int64) -> int:
    limits = torch.iinfo(dtype)
    return limits.max if which == "amin" else limits.min


def _extreme_by_group(
    values: Tensor,
    group_ids: Tensor,
    num_groups: int,
    validity: Tensor | None = None,
    out: Tensor | None = None,
    *,
    which: Which,
) -> Tensor:
    if values.dtype is torch.bool:
        values = values.to(torch.int8)
    if values.dim() == 1 and is_host(values):
        head = _ROWS_FOR_STATES * num_groups
        if out is None and 0 < head <= values.shape[0] // 2:
            of_head = None if validity is None else validity[:head]
            out = _extreme_by_group(values[:head], group_ids[:head], num_groups, of_head, which=which)
            values, group_ids = values[head:], group_ids[head:]
            validity = None if validity is None else validity[head:]
        if out is not None and 0 < num_groups * _FEW <= values.shape[0]:
            better = _better_rows(values, group_ids, validity, out, which)
            if better is not None:
                return _improve(out, values, group_ids, better, which)
    if validity is not None:
        rows = row_indices(validity)
        values, group_ids = take(values, rows), take(group_ids, rows)
    group_ids = group_ids.to(torch.int64)
    if values.dim() == 1 and not values.is_floating_point():
        if out is None:
            out = allocation.full(num_groups, _identity(which, values.dtype), values.dtype, values.device)
        return out.scatter_reduce_(0, group_ids, values.to(out.dtype), which)
    if values.dim() == 2:
        extremes = _wide_extreme(values, group_ids, num_groups, which)
    else:
        extremes = _float_extreme(values, group_ids, num_groups, which)
    return extremes if out is None else out.copy_(merge_extremes(out, extremes, which))


#: Least value of each group, in the dtype of the values (int8 of booleans), [g, 2] of wide ones; NaN is the greatest float. Of
#: an empty group: the greatest value of the type (NaN for floats).
min_by_group = functools.partial(_extreme_by_group, which="amin")
#: Greatest value of each group, as `min_by_group`; of an empty group the least value (-infinity for floats).
max_by_group = functools.partial(_extreme_by_group, which="amax")


#: Rows for each group from which on torch counts, or sums floats of, a batch by itself faster than rows are added to states.
_ROWS_COUNTED = 4
#: Rows for each group after which few of the next ones are better than any group's extreme, if values do not depend on groups.
_ROWS_FOR_STATES = 128
#: Rows by which it is foreseen whether few are better; one in so many rows are few, and very few; and so are groups.
_FIRST_ROWS, _FEW, _VERY_FEW = 4_096, 16, 128


def _better_rows(
    values: Tensor,
    group_ids: Tensor,
    validity: Tensor | None,
    extremes: Tensor,
    which: Which,
) -> Array | None:
    """int64 [m]: rows of values [n] on the CPU that are better than the worst of the extremes so far: no other ones change any.

    None where these rows are not few, or one belongs to a group that has no extreme yet. A comparison of all rows and a scatter
    of few take a third of the time of a scatter of all.
    """
    array, states = values.numpy(), extremes.numpy()
    if array.dtype.kind == "f":
        unknown = np.isnan(states) if which == "amin" else states == -np.inf
    else:
        unknown = states == _identity(which, extremes.dtype)
    some_unknown = unknown.any()
    known = states[~unknown] if some_unknown else states
    if not known.size:
        return None
    worst = known.max() if which == "amin" else np.fmin.reduce(known)

    def is_better(some: Array) -> Array:
        better: Array = np.less(some, worst) if which == "amin" else np.less_equal(some, worst)
        return better if which == "amin" else np.logical_not(better, out=better)  # NaN is the greatest

    first = is_better(array[:_FIRST_ROWS])
    if _FEW * np.count_nonzero(first) > first.size:
        return None
    if some_unknown:
        counts = torch.bincount(group_ids, minlength=states.shape[0]).numpy()
        if counts[unknown].any():
            return None
    better = is_better(array)
    if validity is not None:
        better &= validity.numpy()
    count = np.count_nonzero(better)
    if _FEW * count > better.size:
        return None
    return better.nonzero()[0] if _VERY_FEW * count < better.size else row_indices(better)


def _improve(extremes: Tensor, values: Tensor, group_ids: Tensor, rows: Array, which: Which) -> Tensor:
    """The extremes, changed in place, with these rows: as arrays, as each of these short calls would give the interpreter lock away."""
    better, ids = values.numpy().take(rows), group_ids.numpy().take(rows).astype(np.int64, copy=False)
    if better.dtype.kind == "f":
        better += 0.0  # which of two zeros comes first is chance: the positive one
    candidates = torch.from_numpy(better).to(extremes.dtype)
    return torch.scatter_reduce(extremes, 0, torch.from_numpy(ids), candidates, which, out=extremes)


def _float_extreme(values: Tensor, group_ids: Tensor, num_groups: int, which: Which) -> Tensor:
    """On the CPU by torch's own reduction, in which NaN always wins; least values from the rows without NaN."""
    if is_host(values) and which == "amin" and np.isnan(_greatest(values.numpy())):
        rows = row_indices(elementwise.equal(values, values))
        values, group_ids = take(values, rows), take(group_ids, rows)
    identity = torch.inf if which == "amin" else -torch.inf
    if is_host(values) and (which == "amax" or _greatest(values.numpy()) < identity):
        extremes = allocation.full(num_groups, identity, values.dtype, values.device)
        # which of two zeros comes first is chance: zero is added to have the positive one
        extremes.scatter_reduce_(0, group_ids, values, which).add_(0.0)
        return extremes.masked_fill_(extremes == identity, torch.nan) if which == "amin" else extremes
    bits = allocation.full(num_groups, _identity(which), torch.int64, values.device)
    bits.scatter_reduce_(0, group_ids, ordered_bits(values), which)
    return _floats(bits, values.dtype)


def _greatest(values: Array) -> float:
    """Of floats: NaN if there is one, -infinity of none."""
    return float(np.maximum.reduce(values, initial=-np.inf))


def _least(values: Array) -> float:
    """Of floats: NaN of none and of nothing but NaN, as fmin passes NaN over."""
    return float(np.fmin.reduce(values, initial=np.nan))


def _floats(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """Inverts `ordered_bits`; the identities of the two reductions become NaN and -infinity."""
    if dtype is torch.float32:
        bits = bits.clamp(torch.iinfo(torch.int32).min, torch.iinfo(torch.int32).max)
    floats = from_ordered_bits(bits, dtype)
    least = -torch.inf
    return floats.masked_fill_(bits < ordered_bits(floats.new_full((1,), least)), least)


def _wide_extreme(values: Tensor, group_ids: Tensor, num_groups: int, which: Which) -> Tensor:
    """The high words decide; among the rows with the best high word of their group, the low words do."""
    high, low = order_keys(values)
    identity = allocation.full(num_groups, _identity(which), torch.int64, values.device)
    best_high = identity.clone().scatter_reduce_(0, group_ids, high, which)
    rows = row_indices(high == take(best_high, group_ids))
    best_low = identity.scatter_reduce_(0, take(group_ids, rows), take(low, rows), which)
    return torch.stack([best_high, best_low ^ SIGN_BIT], 1)


def min_all_by_torch(values: Tensor, validity: Tensor | None = None) -> Tensor:
    """As `min_all`, on any device."""
    return _extreme_all(values, validity, "amin")


def max_all_by_torch(values: Tensor, validity: Tensor | None = None) -> Tensor:
    """As `max_all`, on any device."""
    return _extreme_all(values, validity, "amax")


def _extreme_all(values: Tensor, validity: Tensor | None, which: Which) -> Tensor:
    if values.dim() == 2 or values.is_floating_point():
        group_ids = torch.zeros(values.shape[0], dtype=torch.int64, device=values.device)
        return _extreme_by_group(values, group_ids, 1, validity, which=which)[0]
    if values.dtype is torch.bool:
        values = values.to(torch.int8)
    if validity is not None:
        values = take(values, row_indices(validity))
    if values.shape[0] == 0:
        return torch.tensor(_identity(which, values.dtype), dtype=values.dtype, device=values.device)
    return values.amin() if which == "amin" else values.amax()


def _extreme_of_array(values: Array, validity: Array | None = None, *, which: Which) -> Array:
    if values.ndim == 2:
        return _extreme_all(torch.from_numpy(values), as_tensor(validity), which).numpy()
    if values.dtype.kind == "b":
        values = values.view(np.int8)
    if validity is not None and values.shape[0]:
        # where most rows are valid, so is mostly that of the extreme, which takes a fifth of selecting them to find
        row = int(values.argmin() if which == "amin" else values.argmax())
        is_found = validity[row : row + 1].all() and (
            which == "amax" or values[row] == values[row]
        )  # not NaN
        values = values[row : row + 1] if is_found else take(values, row_indices(validity))
    if values.dtype.kind == "f":
        return np.asarray((_least if which == "amin" else _greatest)(values) + 0.0, values.dtype)
    identity = _identity(which, TORCH_DTYPES[values.dtype])  # torch takes six times as long for 64 bits
    return np.asarray((np.minimum if which == "amin" else np.maximum).reduce(values, initial=identity))


def _of_all(name: str, device: Callable[..., Tensor], host: Callable[..., Array]) -> Operation:
    return Operation(name, device, host, only_of_arrays=True, owns_result=True)


#: Number of (valid) rows: int64 0-d, of how many there are, their validity or None, and the device.
count_all = _of_all("count_all", count_all_by_torch, _count_of_array)
#: The sum (0-d) of (valid) values: int64 of integers and booleans (the caller proves that it fits), float64 of floats. A third
#: argument: magnitude that no integer exceeds, where more is known than the dtype says.
sum_all = _of_all("sum_all", sum_all_by_torch, _sum_of_array)
#: float64 0-d: the sum of floats [n], or of one float as often, where the condition (bool [n]) is true.
sum_where = _of_all("sum_where", sum_where_by_torch, _sum_where)
#: Least (valid) value: 0-d (wide: [2]); dtypes, NaN and the value for no rows as in `min_by_group`.
min_all = _of_all("min_all", min_all_by_torch, functools.partial(_extreme_of_array, which="amin"))
#: Greatest (valid) value: 0-d (wide: [2]); dtypes, NaN and the value for no rows as in `max_by_group`.
max_all = _of_all("max_all", max_all_by_torch, functools.partial(_extreme_of_array, which="amax"))
#: float64 0-d: the sum of sums, one after the other.
total = _of_all("total", total_in_order, total_in_order)
