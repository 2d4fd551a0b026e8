"""Which rows of a table a pipeline reads, where filters and joins on its way keep nothing of some of its zones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tqp.data.encoding.zones import Zones
from tqp.operators.joins.zone_rows import spans_of_zones, zones_in_build, zones_in_ranges

#: Fewer rows between two spans are read with them: a batch of their own would cost more.
_SMALLEST_GAP = 262_144

Wanted = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ZoneFilter(ABC):
    """Drops rows by a column, of whose zones this is the slot."""

    zones: str

    @property
    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The slots of the program's state that it reads."""

    @abstractmethod
    def wanted(self, zones: Zones, state: Mapping[str, Any]) -> Wanted | None:
        """bool [z]: may it leave rows of the zone? None: of any."""


@dataclass(frozen=True, slots=True)
class KeyFilter(ZoneFilter):
    """Rows go whose key the build side in a slot lacks: keys 0 to `size` - 1 have the value `minimum` in the column, the next ones
    the next value."""

    minimum: int
    size: int
    build: str

    @property
    def reads(self) -> tuple[str, ...]:
        return self.zones, self.build

    def wanted(self, zones: Zones, state: Mapping[str, Any]) -> Wanted | None:
        return zones_in_build(zones, self.minimum, self.size, state[self.build])


@dataclass(frozen=True, slots=True)
class RangeFilter(ZoneFilter):
    """Rows go whose value lies in none of the ranges in a slot: the least and the greatest value of each, in order."""

    ranges: str

    @property
    def reads(self) -> tuple[str, ...]:
        return self.zones, self.ranges

    def wanted(self, zones: Zones, state: Mapping[str, Any]) -> Wanted | None:
        return zones_in_ranges(zones, state[self.ranges])


def spans_to_read(
    filters: Sequence[ZoneFilter], state: Mapping[str, Any], num_rows: int
) -> list[tuple[int, int]]:
    """Ascending spans [start, stop) of `num_rows` rows in which all filters may leave some; none of no rows."""
    wanted = None
    for each in filters if num_rows else ():
        zones = state[each.zones]
        found = each.wanted(zones, state)
        if found is not None:
            wanted = found if wanted is None else wanted & found
    if wanted is not None:
        return spans_of_zones(wanted, zones.rows, num_rows, _SMALLEST_GAP)
    return [(0, num_rows)] if num_rows else []
