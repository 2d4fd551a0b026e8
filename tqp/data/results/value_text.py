"""Single values as DuckDB prints them: what a table in a terminal shows, and what Python's own types cannot hold."""

from __future__ import annotations

import numpy as np

from tqp.core import time_limits
from tqp.core.datatypes import TICKS_PER_SECOND, TypeKind
from tqp.core.zoned_times import clock_of_stored, offset_of_stored


def date_text(days: int) -> str:
    """Days since 1970 in the proleptic Gregorian calendar.

    >>> date_text(0), date_text(-735_174)
    ('1970-01-01', '0044-03-01 (BC)')
    """
    if abs(days) == time_limits.INFINITE_DAY:
        return "infinity" if days > 0 else "-infinity"
    year, month, day = map(int, str(np.datetime64(days, "D")).rsplit("-", 2))
    text = f"{year if year > 0 else 1 - year:04}-{month:02}-{day:02}"
    return text if year > 0 else text + " (BC)"


def time_text(ticks: int, ticks_per_second: int = 1_000_000) -> str:
    """A time of day, or a span of non-negative length.

    >>> time_text(3_723_500_000)
    '01:02:03.5'
    """
    seconds, fraction = divmod(ticks, ticks_per_second)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if fraction:
        digits = len(str(ticks_per_second)) - 1
        text += "." + f"{fraction:0{digits}}".rstrip("0")
    return text


def time_with_zone_text(stored: int) -> str:
    """Of the stored integer (`zoned_times`).

    >>> from tqp.core.zoned_times import stored_time
    >>> time_with_zone_text(stored_time(3_723_500_000, -5400)), time_with_zone_text(stored_time(0, 7205))
    ('01:02:03.5-01:30', '00:00:00+02:00:05')
    """
    offset = offset_of_stored(stored)
    text = time_text(abs(offset), 1).removesuffix(":00").removesuffix(":00")
    return f"{time_text(clock_of_stored(stored))}{'-' if offset < 0 else '+'}{text}"


def timestamp_text(ticks: int, kind: TypeKind) -> str:
    """Ticks since 1970 in the unit of the timestamp type; with `+00` for a point in time.

    >>> timestamp_text(-1, TypeKind.TIMESTAMP_NS)
    '1969-12-31 23:59:59.999999999'
    """
    if abs(ticks) == time_limits.INFINITE_TICK:
        return "infinity" if ticks > 0 else "-infinity"
    per_second = TICKS_PER_SECOND[kind]
    days, rest = divmod(ticks, 86_400 * per_second)
    text = f"{date_text(days)} {time_text(rest, per_second)}"
    return text + "+00" if kind is TypeKind.TIMESTAMP_TZ else text


def interval_text(months: int, days: int, microseconds: int) -> str:
    """Each part that is not zero; `00:00:00` if none is.

    >>> interval_text(14, -3, 500_000)
    '1 year 2 months -3 days 00:00:00.5'
    """
    sign = -1 if months < 0 else 1
    parts = [(sign * (abs(months) // 12), "year"), (sign * (abs(months) % 12), "month"), (days, "day")]
    words = [f"{count} {unit}{'' if abs(count) == 1 else 's'}" for count, unit in parts if count]
    if microseconds or not words:
        words.append(("-" if microseconds < 0 else "") + time_text(abs(microseconds)))
    return " ".join(words)


def needs_quotes(text: str) -> bool:
    """Does a value stand in quotes inside of a list or a struct?

    >>> needs_quotes("a b"), needs_quotes(" a"), needs_quotes("null"), needs_quotes("a:b")
    (False, True, True, True)
    """
    if not text or text[0] in _SPACES or text[-1] in _SPACES or text.lower() == "null":
        return True
    return not _MARKS.isdisjoint(text)


def quoted_text(text: str) -> str:
    """A value, or the name of a field, in quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def inner_text(text: str | None) -> str:
    """A value as it stands inside of a list or a struct.

    >>> print(inner_text("a b"), inner_text("a,b"), inner_text(None))
    a b 'a,b' NULL
    """
    if text is None:
        return "NULL"
    return quoted_text(text) if needs_quotes(text) else text


_SPACES = " \t\n\v\f\r"
_MARKS = frozenset("\"'(),:=[]{}\\")
