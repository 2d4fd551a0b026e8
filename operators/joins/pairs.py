"""Pairs of matching rows: what every join build answers, and what join types make of a list of pairs.

A pair list is two tensors of equal length, `probe_rows` and `build_rows` (int32 or int64), ordered by probe row and,
within one, by build row. After a residual predicate the surviving pairs are such a list again.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.core.process.memory_budget import bytes_left
from tqp.data.backend import is_host
from tqp.operators.memory.arrays import Array, Values, as_array, as_tensor, converted, running_sums
from tqp.operators.numbers.logic import all_true
from tqp.operators.rows.runs import Runs
from tqp.operators.rows.selection import row_indices, take

#: Pairs that one batch may form at once, by kind of device; more, and the batch is cut (see `TooManyPairs`).
MAX_PAIRS = {"cpu": 1 << 23}
_MAX_PAIRS_ELSEWHERE = 1 << 28
#: So many are formed at once whatever the memory limit; beyond, a pair may take so many bytes with what is gathered for it,
#: by several workers at a time.
_FEW_PAIRS, _BYTES_OF_A_PAIR = 1 << 16, 256
_CPU = torch.device("cpu")
#: From so many ranges on, arrays of them are expanded as tensors.
_MANY_RANGES = 4096


class TooManyPairs(Exception):
    """A batch of several probe rows would form too many pairs. Whoever runs it is to cut it into `pieces` and go on."""

    def __init__(self, pairs: int, limit: int) -> None:
        super().__init__(f"{pairs} pairs")
        self.pieces = -(-pairs // limit)


def check_pairs(num_probe: int, num_pairs: int, device: torch.device) -> None:
    """Raises TooManyPairs where a smaller batch would form fewer pairs than the limit, which is lower where memory is scarce."""
    limit = pairs_at_once(num_pairs, device)
    if num_pairs > limit and num_probe > 1:
        raise TooManyPairs(num_pairs, limit)


def pairs_at_once(num_pairs: int, device: torch.device) -> int:
    """How many pairs may be formed at once, if these are to be: fewer where memory is scarce."""
    limit = MAX_PAIRS.get(device.type, _MAX_PAIRS_ELSEWHERE)
    if num_pairs > _FEW_PAIRS and (left := bytes_left()) is not None:
        limit = min(limit, max(_FEW_PAIRS, left // _BYTES_OF_A_PAIR))
    return limit


class BuildNulls(NamedTuple):
    """What IN has to know of its set besides the values."""

    is_empty: bool
    has_null: bool


NO_NULLS = BuildNulls(is_empty=False, has_null=False)


def build_nulls(keys: Tensor, validity: Tensor | None) -> BuildNulls:
    """The facts about the build keys [n]; reads one flag."""
    return BuildNulls(keys.shape[0] == 0, validity is not None and not all_true(validity))


class Membership(Protocol):
    """A set of build keys. Keys are integers [n]; a row with False in `validity` matches nothing."""

    @property
    def nulls(self) -> BuildNulls:
        """Whether the build side has rows, and a NULL among them."""

    def contains(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """bool [n]: has the probe row a match?"""


class JoinBuild(Membership, Protocol):
    """The build side of an equality join."""

    @property
    def unique(self) -> bool:
        """True if it is known that no two build rows have one key."""

    def matches(self, keys: Tensor, validity: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All pairs (probe_rows, build_rows) with equal keys."""

    def first_match(self, keys: Tensor, validity: Tensor | None = None) -> Tensor:
        """int32 [n]: the first build row that matches, or -1."""


def ask_with_arrays(build: Any, method: str, *arguments: Any) -> Any:
    """What a method of a build says of keys and validity as arrays, as arrays, whether or not it takes such itself."""
    ask = getattr(build, method)
    if getattr(build, "takes_arrays", False):
        return ask(*arguments)
    return as_array(ask(*as_tensor(arguments)))


def expand_ranges(starts: Values, counts: Values) -> tuple[Values, Values]:
    """As `expand_all_ranges`; raises TooManyPairs where there are more places than are to be made at once."""
    if isinstance(starts, np.ndarray):
        if starts.shape[0] < _MANY_RANGES:
            return _expand_few(starts, counts)
        rows, positions = expand_ranges(torch.from_numpy(starts), torch.from_numpy(counts))
        return rows.numpy(), positions.numpy()
    ends, total = _ends(counts)
    check_pairs(counts.shape[0], total, counts.device)
    return _expand(starts, counts, ends, total)


def expand_all_ranges(starts: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """(rows, positions): row i is repeated counts[i] times with positions starts[i], starts[i] + 1, ...

    `starts`, `counts`: int32 or int64 [n]. Returns rows int32 [sum], positions of the dtype of `starts`
    (int64 from 2^31 on).
    """
    return _expand(starts, counts, *_ends(counts))


def _ends(counts: Tensor) -> tuple[Tensor, int]:
    """The running sum of `counts`, int64, and the sum; reads one number."""
    ends = counts.to(torch.int64).cumsum(0)
    return ends, int(ends[-1]) if ends.shape[0] else 0


def _expand(starts: Tensor, counts: Tensor, ends: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """As `expand_all_ranges`. `ends` and `total`: see `_ends`."""
    num_rows = counts.shape[0]
    if num_rows == 0:
        return counts.new_zeros(0, dtype=torch.int32), starts.new_zeros(0)
    # Count at each output place how many rows have ended: the running sum is the row. (repeat_interleave costs thrice.)
    ended = torch.zeros(total + 1, dtype=torch.int32, device=counts.device)
    ended.scatter_add_(0, ends, torch.ones(num_rows, dtype=torch.int32, device=counts.device))
    rows = torch.cumsum(ended[:total], 0, dtype=torch.int32)
    dtype = starts.dtype if total < 2**31 else torch.int64
    shifts = (starts.to(dtype) - ends.to(dtype)).add_(counts)  # from output place to position
    places = torch.arange(total, dtype=dtype, device=starts.device)
    return rows, take(shifts, rows).add_(places)


def _expand_few(starts: Array, counts: Array) -> tuple[Array, Array]:
    """As `expand_ranges`, in fewer calls and without tensors: both results are running sums of steps from place to place."""
    num_rows = counts.shape[0]
    if num_rows and counts.min() <= 0:  # a row without a place would begin where the next one does
        filled = row_indices(counts > 0)
        rows, positions = _expand_few(take(starts, filled), take(counts, filled))
        return converted(take(filled, rows), torch.int32), positions
    ends = running_sums(counts, np.int64)
    total = int(ends[-1]) if num_rows else 0
    check_pairs(num_rows, total, _CPU)
    rows = np.zeros(total, np.int32)
    rows[ends[:-1]] = 1
    return running_sums(rows, rows.dtype, out=rows), positions_in_ranges(starts, counts, ends)


def positions_in_ranges(starts: Array, counts: Array, ends: Array) -> Array:
    """starts[0], starts[0] + 1, ..., then starts[1], ...: counts[i] > 0 positions each, `ends` being their running sum.

    In the dtype of `starts`, integers; int64 from 2^31 positions on.
    """
    total = int(ends[-1]) if ends.shape[0] else 0
    positions = np.ones(total, starts.dtype if total < 2**31 else np.int64)
    if total:
        positions[0] = starts[0]
        positions[ends[:-1]] = starts[1:] - starts[:-1] - counts[:-1] + 1
    return running_sums(positions, positions.dtype, out=positions)


def all_pairs(num_probe: int, num_build: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Every pair (probe_rows, build_rows), ordered by probe row, then build row. Raises TooManyPairs."""
    check_pairs(num_probe, num_probe * num_build, device)
    numbers = torch.arange(num_probe * num_build, device=device)
    if num_probe == 1:
        return torch.zeros_like(numbers), numbers
    probe_rows = torch.div(numbers, num_build, rounding_mode="floor") if num_build > 1 else numbers
    return probe_rows, numbers - probe_rows * num_build


def only_row(num_probe: int, num_build: int, device: torch.device) -> Tensor:
    """int32 [num_probe]: the row of a build side of at most one row, or -1."""
    return torch.full((num_probe,), 0 if num_build > 0 else -1, dtype=torch.int32, device=device)


def any_by_row(probe_rows: Tensor, num_probe: int) -> Tensor:
    """bool [num_probe]: does the row occur among the pairs?"""
    found = torch.zeros(num_probe, dtype=torch.bool, device=probe_rows.device)
    return mark_rows(found, probe_rows)


def mark_rows(table: Tensor, rows: Tensor) -> Tensor:
    """Sets table[rows] to True in place and returns the table (bool [n])."""
    rows = rows if rows.dtype is torch.int64 else rows.to(torch.int64)
    if is_host(table):  # a quarter faster than a scatter of as many values
        table.numpy()[rows.numpy()] = True
        return table
    # a value for each row: scattering one expanded value costs twice as much
    true = torch.ones(rows.shape[0], dtype=torch.bool, device=rows.device)
    # in place; it takes the interpreter lock once, `scatter_` six times
    return torch.scatter(table, 0, rows, true, out=table)


def first_by_row(probe_rows: Tensor, build_rows: Tensor, num_probe: int) -> Tensor:
    """int32 [num_probe]: the build row of each row's first pair, or -1."""
    first = torch.full((num_probe,), -1, dtype=torch.int32, device=probe_rows.device)
    places = Runs(probe_rows).first_rows
    return first.scatter_(
        0, take(probe_rows, places).to(torch.int64), take(build_rows, places).to(torch.int32)
    )


def unmet_rows(build_rows: Tensor, num_build: int) -> Tensor:
    """int64: the build rows of [0, num_build) that are not among those of pairs (integers [n], -1 where there is none)."""
    met = torch.zeros(num_build + 1, dtype=torch.bool, device=build_rows.device)
    return row_indices(mark_rows(met, build_rows + 1)[1:].logical_not())


def matches_or_none(
    build: JoinBuild, keys: Any, validity: Tensor | None, num_probe: int
) -> tuple[Tensor, Tensor]:
    """The pairs with equal keys, and a pair with build row -1 for each of the probe rows without any."""
    if build.unique:
        first = build.first_match(keys, validity)
        return torch.arange(num_probe, device=first.device), first
    return left_outer_pairs(*build.matches(keys, validity), num_probe)


def left_outer_pairs(probe_rows: Tensor, build_rows: Tensor, num_probe: int) -> tuple[Tensor, Tensor]:
    """The pairs, and for each probe row without any a pair with build row -1; still ordered by probe row."""
    missing = any_by_row(probe_rows, num_probe).logical_not_()
    num_pairs = probe_rows.shape[0]
    if num_pairs == 0:
        every = torch.arange(num_probe, dtype=probe_rows.dtype, device=probe_rows.device)
        return every, torch.full_like(every, -1, dtype=build_rows.dtype)
    missing_before = missing.cumsum(0)
    total = num_pairs + int(missing_before[-1])
    if total == num_pairs:
        return probe_rows, build_rows
    # a pair moves down by the number of rows without pairs that come before its row; the gaps are those rows
    places = take(missing_before, probe_rows)
    places.add_(torch.arange(num_pairs, device=probe_rows.device))
    padded_build = torch.full((total,), -1, dtype=build_rows.dtype, device=build_rows.device)
    padded_build.scatter_(0, places, build_rows)
    gaps = row_indices(padded_build < 0)
    padded_probe = torch.empty(total, dtype=probe_rows.dtype, device=probe_rows.device)
    padded_probe.scatter_(0, places, probe_rows)
    padded_probe.scatter_(0, gaps, row_indices(missing).to(probe_rows.dtype))
    return padded_probe, padded_build


def mark_values(true_rows: Tensor, null_rows: Tensor | None, num_probe: int) -> tuple[Tensor, Tensor | None]:
    """(values, validity), each bool [num_probe], of a mark (x IN, EXISTS, = ANY) per probe row.

    `true_rows`, `null_rows`: probe rows of the pairs for which the condition is true or NULL. True if any pair is
    true, else NULL if any is NULL, else false. Validity is None if null_rows is.
    """
    values = any_by_row(true_rows, num_probe)
    if null_rows is None:
        return values, None
    return values, any_by_row(null_rows, num_probe).logical_not_().logical_or_(values)


def marks_of_pairs(
    probe_rows: Tensor, condition: Tensor, validity: Tensor | None, num_probe: int
) -> tuple[Tensor, Tensor | None]:
    """The marks of `mark_values`, from a condition (bool [m], and its validity) on every pair of a row."""
    true_rows = take(probe_rows, row_indices(condition, validity))
    null_rows = None if validity is None else take(probe_rows, row_indices(validity.logical_not()))
    return mark_values(true_rows, null_rows, num_probe)


def marks_of_found(build: Membership, found: Tensor, validity: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """(values, validity) of `x IN (build)` where `found`, bool [n], tells which x are; `validity` is that of x.

    Nothing is IN an empty set, NULL included. Else, where x is NULL, or where the set holds a NULL but not x: NULL.
    """
    if build.nulls.is_empty:
        return found, None
    if build.nulls.has_null:
        return found, found  # a NULL x is not found either
    return found, validity


def check_single(probe_rows: Tensor, num_probe: int) -> Tensor:
    """The probe rows again; ExecutionError if one of them has two pairs (a scalar subquery gave two rows)."""
    if probe_rows.shape[0] > num_probe or bool((probe_rows[1:] == probe_rows[:-1]).any()):
        raise ExecutionError(
            "More than one row returned by a subquery used as an expression; a scalar subquery must return at most "
            "one row: add LIMIT 1, an aggregate such as max(), or a condition that picks one row"
        )
    return probe_rows
