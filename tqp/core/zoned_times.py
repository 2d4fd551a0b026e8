"""TIME WITH TIME ZONE as one integer that sorts as DuckDB sorts the type: by the instant, then from east to west.

The bits above `OFFSET_BITS` are the microseconds of the time in UTC, counted so that none is negative; those below say how far
the offset lies west of the easternmost one. DuckDB's timetz_byte_comparable() gives the same number.
"""

from __future__ import annotations

import datetime
from typing import Any

from tqp.core.time_limits import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND

OFFSET_BITS = 24
#: Seconds east of UTC at most, and west.
LAST_OFFSET = 16 * 3600 - 1


def stored_time(clock: Any, offset: Any) -> Any:
    """The stored integer of microseconds since the local midnight and seconds east of UTC: numbers, or tensors int64 [n].

    >>> stored_time(0, LAST_OFFSET)
    0
    """
    west = LAST_OFFSET - offset
    return ((clock + west * MICROSECONDS_PER_SECOND) << OFFSET_BITS) | west


def offset_of_stored(stored: Any) -> Any:
    """Seconds east of UTC.

    >>> offset_of_stored(stored_time(5, -3600))
    -3600
    """
    return LAST_OFFSET - (stored & ((1 << OFFSET_BITS) - 1))


def clock_of_stored(stored: Any) -> Any:
    """Microseconds since the local midnight.

    >>> clock_of_stored(stored_time(5, -3600))
    5
    """
    return universal_clock_of_stored(stored) + offset_of_stored(stored) * MICROSECONDS_PER_SECOND


def universal_clock_of_stored(stored: Any) -> Any:
    """Microseconds since the midnight in UTC of the local date; negative on the day before.

    >>> universal_clock_of_stored(stored_time(0, 3600))
    -3600000000
    """
    return (stored >> OFFSET_BITS) - LAST_OFFSET * MICROSECONDS_PER_SECOND


def by_clock(stored: Any) -> Any:
    """The number that sorts by what the clock shows, then from east to west.

    >>> by_clock(stored_time(0, 0)) < by_clock(stored_time(1, 3600)), stored_time(0, 0) < stored_time(1, 3600)
    (True, False)
    """
    return (clock_of_stored(stored) << OFFSET_BITS) | (stored & ((1 << OFFSET_BITS) - 1))


#: Of the stored integers; 24:00:00 is a time.
BOUNDS = (stored_time(0, LAST_OFFSET), stored_time(MICROSECONDS_PER_DAY, -LAST_OFFSET))


def stored_of_time(time: datetime.time) -> int | None:
    """Of Python's time, in UTC where it has no zone; None where its offset is not known, or is 16 hours or more.

    >>> stored_of_time(datetime.time(1)) == stored_time(3600 * 10**6, 0)
    True
    """
    offset = time.utcoffset() if time.tzinfo is not None else datetime.timedelta()
    seconds = None if offset is None else offset // datetime.timedelta(seconds=1)
    if seconds is None or abs(seconds) > LAST_OFFSET:
        return None
    stored: int = stored_time(clock_of_time(time), seconds)
    return stored


def clock_of_time(time: datetime.time) -> int:
    """Microseconds since midnight of Python's time, whatever its zone."""
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return seconds * MICROSECONDS_PER_SECOND + time.microsecond
