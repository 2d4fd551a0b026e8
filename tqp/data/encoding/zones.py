"""Zone maps: the least and the greatest value of each few thousand rows of a column whose neighbours have similar values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tqp.data.arrow_buffers import AnyArray, BoolArray
from tqp.data.column import Column

#: Rows of a zone.
ZONE_ROWS = 1024
#: Zones are kept if they span less than this share of the column's range in the mean ...
_LARGEST_SHARE = 0.5
#: ... and made if so many of them, spread over the column, do.
_SAMPLED_ZONES = 32
#: Zones that are made at once: their rows stay in the caches.
_ZONES_OF_A_PIECE = 64


@dataclass(frozen=True, slots=True)
class Zones:
    """Zone i has the rows from i * `rows` on; its valid values lie in [least[i], greatest[i]], of none least > greatest.

    `least`, `greatest`: arrays [z] in the column's dtype, [0] where zones would not tell rows apart.
    """

    KEPT: ClassVar[str] = "zones"

    rows: int
    least: AnyArray
    greatest: AnyArray

    @property
    def nbytes(self) -> int:
        return self.least.nbytes + self.greatest.nbytes


def zones_of_column(column: Column) -> Zones:
    """The zones of a column of integers in main memory, if values that are near each other lie in rows that are."""
    assert column.values is not None
    values = column.values.numpy()
    validity = None if column.validity is None else column.validity.numpy()
    minimum, maximum = column.facts.minimum, column.facts.maximum
    num_zones = -(-len(values) // ZONE_ROWS)
    none = Zones(ZONE_ROWS, values[:0], values[:0])
    if minimum is None or maximum is None or num_zones < _SAMPLED_ZONES:
        return none
    sampled = np.linspace(0, num_zones - 1, _SAMPLED_ZONES, dtype=np.int64)
    least = greatest = values[:0]
    # a sample first: most columns are in no order at all
    for firsts, count in ((sampled.tolist(), 1), (range(0, num_zones, _ZONES_OF_A_PIECE), _ZONES_OF_A_PIECE)):
        pieces = [_extremes(values, validity, first, min(first + count, num_zones)) for first in firsts]
        least, greatest = (np.concatenate(part) for part in zip(*pieces, strict=True))
        if not _are_narrow(least, greatest, maximum - minimum):
            return none
    return Zones(ZONE_ROWS, least, greatest)


def zones_of_parts(num_rows: Sequence[int], bounds: Sequence[tuple[int, int] | None]) -> Zones:
    """The zones of a column of which parts of so many rows have values between these bounds, None without any; [0] where they would
    not tell rows apart."""
    num_zones = -(-sum(num_rows) // ZONE_ROWS)
    least = np.full(num_zones, np.iinfo(np.int64).max)
    greatest = np.full(num_zones, np.iinfo(np.int64).min)
    start = 0
    for count, between in zip(num_rows, bounds, strict=True):
        own = slice(start // ZONE_ROWS, -(-(start + count) // ZONE_ROWS))
        if between is not None:
            np.minimum(least[own], between[0], out=least[own])
            np.maximum(greatest[own], between[1], out=greatest[own])
        start += count
    known = [between for between in bounds if between is not None]
    span = max(high for _, high in known) - min(low for low, _ in known) if known else 0
    return (
        Zones(ZONE_ROWS, least, greatest)
        if _are_narrow(least, greatest, span)
        else Zones(ZONE_ROWS, least[:0], greatest[:0])
    )


def _extremes(
    values: AnyArray, validity: BoolArray | None, first: int, end: int
) -> tuple[AnyArray, AnyArray]:
    """The least and the greatest valid value of each zone from `first` to `end` (exclusive)."""
    rows = slice(first * ZONE_ROWS, end * ZONE_ROWS)
    low = high = values[rows]
    limits = np.iinfo(values.dtype)
    if validity is not None:
        low = np.where(validity[rows], low, limits.max).astype(values.dtype, copy=False)
        high = np.where(validity[rows], high, limits.min).astype(values.dtype, copy=False)
    missing = (end - first) * ZONE_ROWS - len(low)
    if missing:  # of the last zone: filled up with what changes nothing
        low = np.concatenate([low, np.full(missing, limits.max, values.dtype)])
        high = np.concatenate([high, np.full(missing, limits.min, values.dtype)])
    return low.reshape(-1, ZONE_ROWS).min(1), high.reshape(-1, ZONE_ROWS).max(1)


def _are_narrow(least: AnyArray, greatest: AnyArray, span: int) -> bool:
    """Do zones, those without values left out, span little of the column's range?"""
    filled = least <= greatest
    widths = greatest[filled].astype(np.float64) - least[filled]
    return bool(widths.sum() < _LARGEST_SHARE * span * len(widths))
