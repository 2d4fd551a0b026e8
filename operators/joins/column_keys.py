"""Which values of a column the build side of a join has: by comparisons where its keys are few, or all those of a few ranges.

Days of a month or a year have numbers in a row, and so have the rows of many a table: comparing a value with both ends takes a
quarter of what packing it as a key and looking that up does. Several comparisons of narrow values still take less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.joins.pairs import ask_with_arrays
from tqp.operators.joins.perfect_hash_join import MembershipBuild
from tqp.operators.memory.arrays import Array, as_array
from tqp.operators.rows.keys import Part, pack
from tqp.operators.rows.selection import true_positions

#: Rows for which it is worth to look at all keys that there may be, up to so many.
_MANY_ROWS, _MOST_KEYS = 65_536, 1 << 20
#: As many comparisons take half of a look-up, or the whole of one of 64 bits, by the bytes of a value.
_MOST_COMPARISONS = {1: 9, 2: 8, 4: 5, 8: 3}
#: Of so many rows the values are compared to tell which share of the rows another build side keeps. Where that is less than one
#: in _FEW, finding and gathering them takes less than looking up all.
_SAMPLED_ROWS, _FEW = 1024, 16

#: A column and a build side: the first four arguments of `values_in_build`.
Asked = tuple[Any, Any, Part, Any]


def values_in_build(
    values: Tensor, validity: Tensor | None, part: Part, build: Any, also: Sequence[Asked] = ()
) -> Tensor:
    """bool [n]: has the build side a row with the key? `values`: integers [n] that `part`, which has no NULL, packs into keys.

    `also`: other columns of the same rows and their build sides. A row that one of them lacks may be false.
    """
    if is_host(values):
        arrays = [(as_array(each), as_array(valid), *rest) for each, valid, *rest in also]
        return torch.from_numpy(
            values_in_build_array(as_array(values), as_array(validity), part, build, arrays)
        )
    found: Tensor = build.contains(pack([(values, validity)], [part]), validity)
    return found


def values_in_build_array(
    values: Array, validity: Array | None, part: Part, build: Any, also: Sequence[Any] = ()
) -> Array:
    """As `values_in_build`, of arrays."""
    if values.shape[0] < _MANY_ROWS:
        return _look_up(values, validity, part, build)
    ranges = _ranges_of_keys(build, values)
    if ranges is not None:
        return _is_in_ranges(values, validity, part[0], ranges)
    rows = _rows_in_ranges(also)
    if rows is None:
        return _look_up(values, validity, part, build)
    found = np.zeros(values.shape[0], np.bool_)
    found[rows] = _look_up(values.take(rows), None if validity is None else validity.take(rows), part, build)
    return found


def _look_up(values: Array, validity: Array | None, part: Part, build: Any) -> Array:
    found: Array = ask_with_arrays(build, "contains", pack([(values, validity)], [part]), validity)
    return found


def _rows_in_ranges(asked: Sequence[Any]) -> Array | None:
    """The rows that the build side has which keeps the fewest of those that comparisons tell; None if none keeps few."""
    best, fewest = None, 1 / _FEW
    for values, validity, part, build in asked:
        ranges = _ranges_of_keys(build, values)
        if ranges is None:
            continue
        step = max(1, values.shape[0] // _SAMPLED_ROWS)
        some = _is_in_ranges(values[::step], None if validity is None else validity[::step], part[0], ranges)
        kept = np.count_nonzero(some) / some.shape[0]
        if kept < fewest:
            best, fewest = (values, validity, part[0], ranges), kept
    return None if best is None else true_positions(_is_in_ranges(*best))


def _is_in_ranges(
    values: Array, validity: Array | None, minimum: int, ranges: Sequence[tuple[int, int]]
) -> Array:
    """bool [n]: is the value `minimum` + i for an i of one of the ranges [first, end)?"""
    found = _is_in(values, minimum, ranges[0])
    for other in ranges[1:]:
        found |= _is_in(values, minimum, other)
    if validity is not None:
        found &= validity
    return found


def _is_in(values: Array, minimum: int, keys: tuple[int, int]) -> Array:
    """bool [n]: is the value `minimum` + i for an i of the range [first, end)?"""
    first, end = keys
    if end - first == 1:
        return np.asarray(values == first + minimum)
    found = np.asarray(values >= first + minimum)
    found &= values < end + minimum
    return found


def _ranges_of_keys(build: Any, values: Array) -> list[tuple[int, int]] | None:
    """Ranges [first, end) with all keys of the build side; None if they are not few, or that takes long to tell."""
    if not isinstance(build, MembershipBuild) or build.table.shape[0] > _MOST_KEYS:
        return None
    present = build.table.numpy()
    first = int(present.argmax()) if present.shape[0] else 0
    end = present.shape[0] - int(present[::-1].argmax()) if present.any() else first
    inside = present[first:end]
    if inside.all():
        return [(first, end)]
    changes, most = inside[1:] != inside[:-1], _MOST_COMPARISONS[values.dtype.itemsize]
    if inside.shape[0] > values.shape[0] or np.count_nonzero(changes) > 2 * (most - 1):
        return None
    places: list[int] = (np.flatnonzero(changes) + (first + 1)).tolist()
    ranges = list(zip([first, *places[1::2]], [*places[::2], end], strict=True))
    comparisons = sum(1 if stop - start == 1 else 2 for start, stop in ranges)
    return ranges if comparisons <= most else None
