"""Which rows of a table a pipeline reads, where joins on its way keep nothing of some of its zones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tqp.operators.joins.zone_rows import spans_of_zones, zones_in_build

#: Fewer rows between two spans are read with them: a batch of their own would cost more.
_SMALLEST_GAP = 262_144


class ZoneFilter(NamedTuple):
    """Rows go whose key the build side lacks. The slots of the zones of its first column and of the build; keys 0 to `size` - 1
    have the value `minimum` in that column, the next ones the next value."""

    zones: str
    minimum: int
    size: int
    build: str


def spans_to_read(
    filters: Sequence[ZoneFilter], state: Mapping[str, Any], num_rows: int
) -> list[tuple[int, int]]:
    """Ascending spans [start, stop) of `num_rows` rows in which all filters may leave some; none of no rows."""
    wanted = None
    for each in filters if num_rows else ():
        zones = state[each.zones]
        found = zones_in_build(zones, each.minimum, each.size, state[each.build])
        if found is not None:
            wanted = found if wanted is None else wanted & found
    if wanted is not None:
        return spans_of_zones(wanted, zones.rows, num_rows, _SMALLEST_GAP)
    return [(0, num_rows)] if num_rows else []
