"""Time zones by their names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from tqp.core.errors import UnsupportedError, nearest


@lru_cache(maxsize=1)
def _names() -> Mapping[str, str]:
    return {name.lower(): name for name in available_timezones()}


def zone_of(name: str) -> ZoneInfo:
    """The zone, whatever the case of the name; raises UnsupportedError for one that is not known."""
    known = _names().get(name.lower())
    if known is None:
        raise UnsupportedError(f'the time zone "{name}" is not known{nearest(name, _names().values())}')
    return ZoneInfo(known)
