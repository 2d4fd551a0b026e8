"""Which rows of a table can find a join partner, or lie in ranges, by the least and the greatest value of each zone: others are not read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tqp.data.encoding.zones import Zones
from tqp.operators.joins.hash_join import HashBuild
from tqp.operators.joins.offset_array_join import OffsetArrayBuild
from tqp.operators.joins.perfect_hash_join import MembershipBuild, PerfectHashBuild
from tqp.operators.memory.arrays import Array
from tqp.operators.rows.selection import true_positions

#: Up to so many keys that there may be, those that there are get looked at: a byte or some for each.
_MOST_KEYS = 1 << 20


def zones_in_build(zones: Zones, minimum: int, size: int, build: object) -> npt.NDArray[np.bool_] | None:
    """bool [z]: may the zone have a key of the build side? None: any may.

    Keys 0 to `size` - 1 of the build side stand for `minimum`, the next ones for `minimum` + 1, ...: `size` is more than one
    where other columns are packed behind this one.
    """
    keys = _keys(build)
    if keys is None or zones.least.shape[0] == 0:
        return None
    keys = keys // size if size > 1 else keys
    filled = zones.least <= zones.greatest
    if keys.shape[0] == 0:
        return np.zeros(filled.shape[0], np.bool_)
    least, greatest = (each.astype(np.int64) - minimum for each in (zones.least, zones.greatest))
    # No zone lies between two keys of a range that has all of them, as days of a month are, hardly one where keys are many; of a
    # hash join only the ends are known.
    are_all = size == 1 and keys[-1] - keys[0] < keys.shape[0]
    if are_all or keys.shape[0] > filled.shape[0] or isinstance(build, HashBuild):
        found = (greatest >= keys[0]) & (least <= keys[-1])
    else:
        found = keys.searchsorted(least) < keys.searchsorted(greatest, "right")
    return np.asarray(found & filled)


def zones_in_ranges(zones: Zones, ranges: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """bool [z]: may the zone have a value of one of these ranges: int64 [n, 2], their ends, in order?

    >>> zones = Zones(10, np.array([0, 5, 9]), np.array([4, 9, 20]))
    >>> zones_in_ranges(zones, np.array([[3, 4], [10, 11]]))
    array([ True, False,  True])
    """
    firsts, lasts = ranges[:, 0], ranges[:, 1]
    if firsts.shape[0] == 1:
        found = (zones.greatest >= firsts[0]) & (zones.least <= lasts[0])
    else:
        found = lasts.searchsorted(zones.least) < firsts.searchsorted(zones.greatest, "right")
    return np.asarray(found & (zones.least <= zones.greatest))


def _keys(build: object) -> Array | None:
    """The keys of the build side, int64 in order; of a hash join the least and the greatest. None where that takes long to tell."""
    if isinstance(build, HashBuild):
        return None if build.key_range is None else np.array(build.key_range, np.int64)
    present = _present(build)
    return None if present is None else true_positions(present)


def _present(build: object) -> npt.NDArray[np.bool_] | None:
    """bool [size]: which keys has the build side?"""
    match build:
        case MembershipBuild(table=table) | OffsetArrayBuild(present=table) if table is not None:
            return table.numpy() if table.shape[0] <= _MOST_KEYS else None
        case PerfectHashBuild(table=table):
            return np.asarray(table.numpy() >= 0) if table.shape[0] <= _MOST_KEYS else None
        case OffsetArrayBuild(offsets=offsets, numbers=None):
            ends = offsets.numpy()
            return np.asarray(ends[1:] > ends[:-1]) if ends.shape[0] <= _MOST_KEYS else None
    return None


def spans_of_zones(
    wanted: npt.NDArray[np.bool_], zone_rows: int, num_rows: int, smallest_gap: int
) -> list[tuple[int, int]]:
    """Ascending spans of rows [start, stop) that cover the wanted zones (bool [z]); none for none.

    `smallest_gap`: so many rows of other zones part two spans.

    >>> spans_of_zones(np.array([False, True, True, False, False, False, True]), 10, 65, smallest_gap=20)
    [(10, 30), (60, 65)]
    """
    zones: Array = true_positions(wanted)
    if zones.shape[0] == 0:
        return []
    gaps = np.flatnonzero((zones[1:] - zones[:-1] - 1) * zone_rows >= max(1, smallest_gap))
    firsts = np.concatenate([zones[:1], zones[gaps + 1]])
    lasts = np.concatenate([zones[gaps], zones[-1:]])
    return [
        (first * zone_rows, min((last + 1) * zone_rows, num_rows))
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
    ]
