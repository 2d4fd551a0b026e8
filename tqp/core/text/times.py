"""Read dates, times, timestamps and intervals out of one string at a time, as DuckDB's casts do."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from tqp.core import time_limits
from tqp.core.datatypes import TICKS_PER_SECOND, TIMESTAMP, TIMESTAMP_TZ, DataType, TypeKind
from tqp.core.text.numbers import WHITE_SPACE, ParseFailure, not_convertible, round_half_away
from tqp.core.units import DAYS_OF_UNITS, MICROSECONDS_OF_UNITS, MONTHS_OF_UNITS, UNIT_NAMES
from tqp.core.zoned_times import LAST_OFFSET, stored_time

_DATE = (
    r"(?P<year>-?[0-9]+)(?P<mark>[-/ \\])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})(?P<bc> \(BC\))?"
)
_SECONDS = r"(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?"
_CLOCK = rf"(?P<hour>[0-9]+):(?:(?P<minute>[0-9]{{1,2}})(?::(?:{_SECONDS})?)?)?"
_ZONE = r"(?P<utc>Z)|(?P<gap> ?)(?P<offset>[+-][0-9]{2}(?::[0-9]{2}(?::[0-9]{2})?|[0-9]{2})?)| (?P<zone>[A-Za-z][A-Za-z0-9_/+-]*)"
_DATE_ONLY = re.compile(_DATE, re.IGNORECASE)
_TIMESTAMP = re.compile(rf"{_DATE}(?:(?: +|(?-i:T)){_CLOCK}(?:{_ZONE})?)?", re.IGNORECASE)
#: What follows the seconds is read of a time with a zone only.
_TIME = re.compile(
    rf"(?P<hour>[0-9]+):(?:(?P<minute>[0-9]{{1,2}})(?::(?:{_SECONDS}(?P<after>.*))?)?)?", re.DOTALL
)
#: What may follow the seconds of a time with a zone: an offset, and anything.
_OFFSET = re.compile(
    r"[+-](?P<hours>[0-9]{2})(?::(?P<minutes>[0-9]{2})(?::(?P<seconds>[0-9]{2})|(?!:))|(?P<digits>[0-9]{2})|(?!:))"
)
_SPECIAL = {"infinity": 1, "inf": 1, "-infinity": -1, "-inf": -1}

_DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_NANOSECONDS_PER_SECOND = 10**9

_TIMESTAMP_FORMAT = "(YYYY-MM-DD HH:MM[:SS[.US]][±HH[:MM[:SS]]| ZONE])"


def parse_date(text: str, target: DataType) -> int:
    """Days since 1970-01-01; a time of day after the date is dropped. Raises ParseFailure."""
    stripped = text.strip(WHITE_SPACE)
    if stripped.lower() in _SPECIAL:
        return _SPECIAL[stripped.lower()] * time_limits.INFINITE_DAY
    if stripped.lower() == "epoch":
        return 0
    match = _DATE_ONLY.fullmatch(stripped)
    if match is None:
        match = _TIMESTAMP.fullmatch(stripped)
        if match is None or (match["hour"] and _clock_nanoseconds(match) is None and int(match["hour"]) < 24):
            raise ParseFailure(f'invalid date field format: "{text}", expected format is (YYYY-MM-DD)')
        if _clock_nanoseconds(match) is None:
            raise ParseFailure(f'date field value out of range: "{text}"')
    days = _days(match)
    if days is None and match["bc"] and int(match["year"]) <= 0:
        raise ParseFailure(f'invalid date field format: "{text}", expected format is (YYYY-MM-DD)')
    if days is None or not time_limits.FIRST_DAY <= days <= time_limits.LAST_DAY:
        raise ParseFailure(f'date field value out of range: "{text}"')
    return days


def _days(match: re.Match[str]) -> int | None:
    """The day number, None if there is no such day."""
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if match["bc"]:
        if year <= 0:
            return None
        year = 1 - year
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS_IN_MONTH[month - 1] + (month == 2 and is_leap):
        return None
    # 400 years have 146,097 days: shift the year into the range of datetime.
    eras, year_of_era = divmod(year - 1, 400)
    return datetime(year_of_era + 1, month, day).toordinal() - 719_163 + eras * 146_097


def _clock_nanoseconds(match: re.Match[str]) -> int | None:
    """Nanoseconds since midnight, None if there is no such time; 24:00:00 is one."""
    hour, minute, second = int(match["hour"]), int(match["minute"] or 0), int(match["second"] or 0)
    fraction = int((match["fraction"] or "")[:9].ljust(9, "0"))
    if minute > 59 or second > 59 or hour > 24 or (hour == 24 and (minute or second or fraction)):
        return None
    return (hour * 3600 + minute * 60 + second) * _NANOSECONDS_PER_SECOND + fraction


def parse_timestamp(text: str, target: DataType) -> int:
    """Ticks since 1970-01-01 in the target's unit. An offset or zone counts for TIMESTAMP WITH TIME ZONE only, where
    a text without one is in UTC. Raises ParseFailure."""
    stripped = text.strip(WHITE_SPACE)
    if stripped.lower() in _SPECIAL:
        return _SPECIAL[stripped.lower()] * time_limits.INFINITE_TICK
    if stripped.lower() == "epoch":
        return 0
    match = _TIMESTAMP.fullmatch(stripped)
    with_zone = target.kind is TypeKind.TIMESTAMP_TZ
    if match is not None and with_zone and match["gap"]:
        match = None  # a space before an offset is read, and ignored, by types without a time zone only
    if match is None or (match["hour"] and max(int(match["minute"] or 0), int(match["second"] or 0)) > 59):
        raise ParseFailure(
            f'invalid timestamp field format: "{text}", expected format is {_TIMESTAMP_FORMAT}'
        )
    days = _days(match)
    clock = _clock_nanoseconds(match) if match["hour"] else 0
    if days is None or clock is None:
        raise ParseFailure(f'timestamp field value out of range: "{text}"')
    nanoseconds = days * time_limits.SECONDS_PER_DAY * _NANOSECONDS_PER_SECOND + clock
    if with_zone:
        nanoseconds -= _utc_offset(match, nanoseconds) * _NANOSECONDS_PER_SECOND
    ticks = TICKS_PER_SECOND[target.kind]
    # Digits beyond microseconds are dropped, then coarser units round half away from zero.
    unit = 1
    if ticks == _NANOSECONDS_PER_SECOND:
        value, limits = nanoseconds, (-time_limits.INFINITE_TICK + 1, time_limits.INFINITE_TICK - 1)
    else:
        microseconds = nanoseconds // 1000
        limits = (time_limits.FIRST_MICROSECOND, time_limits.LAST_MICROSECOND)
        if not limits[0] <= microseconds <= limits[1]:
            raise ParseFailure(f'timestamp field value out of range: "{text}"')
        unit = time_limits.MICROSECONDS_PER_SECOND // ticks
        value = round_half_away(microseconds, unit)
    if not limits[0] <= value * unit <= limits[1]:
        raise ParseFailure(f'timestamp field value out of range: "{text}"')
    return value


def _utc_offset(match: re.Match[str], local_nanoseconds: int) -> int:
    """Seconds by which the match's local time is ahead of UTC."""
    if match["offset"]:
        sign = -1 if match["offset"][0] == "-" else 1
        fields = re.findall("[0-9]{2}", match["offset"])
        return sign * sum(int(field) * unit for field, unit in zip(fields, (3600, 60, 1), strict=False))
    if not match["zone"] or match["zone"].upper() in ("UTC", "GMT"):
        return 0
    seconds = local_nanoseconds // _NANOSECONDS_PER_SECOND
    try:
        local = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=ZoneInfo(match["zone"]))
    except (OSError, ValueError, KeyError) as error:
        raise ParseFailure(f"Unknown TimeZone '{match['zone']}'") from error
    offset = local.utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def parse_time(text: str, target: DataType) -> int:
    """Microseconds since midnight; a date before the time is dropped. Raises ParseFailure."""
    match = _TIME.fullmatch(text.lstrip(WHITE_SPACE))
    nanoseconds = _clock_nanoseconds(match) if match is not None else _clock_of_timestamp(text, TIMESTAMP)
    if nanoseconds is None:
        raise _no_time(text)
    return nanoseconds // 1000


def parse_time_with_zone(text: str, target: DataType) -> int:
    """The stored integer (`zoned_times`): in UTC where there is no offset, as that of a date and time. Raises ParseFailure."""
    match, offset = _TIME.fullmatch(text.lstrip(WHITE_SPACE)), 0
    if match is None:
        dated = _TIMESTAMP.fullmatch(text.strip(WHITE_SPACE))
        is_elsewhere = dated is not None and (dated["zone"] or "UTC").upper() != "UTC"
        nanoseconds = None if is_elsewhere else _clock_of_timestamp(text, TIMESTAMP_TZ)
    else:
        nanoseconds, after = _clock_nanoseconds(match), (match["after"] or "").lstrip(WHITE_SPACE)
        written = _OFFSET.match(after)
        if written is not None:
            minutes = int(written["hours"]) * 60 + int(written["minutes"] or written["digits"] or 0)
            offset = (-1 if after.startswith("-") else 1) * (minutes * 60 + int(written["seconds"] or 0))
        elif after:
            nanoseconds = None
    if nanoseconds is None or abs(offset) > LAST_OFFSET:
        raise _no_time(text)
    stored: int = stored_time(nanoseconds // 1000, offset)
    return stored


def _no_time(text: str) -> ParseFailure:
    expected = "([YYYY-MM-DD ]HH:MM:SS[.MS])"
    return ParseFailure(f'time field value out of range: "{text}", expected format is {expected}')


def _clock_of_timestamp(text: str, target: DataType) -> int | None:
    """Nanoseconds since the midnight before; None if it is infinite, or no such timestamp."""
    try:
        ticks = parse_timestamp(text, target)
    except ParseFailure:
        return None
    if abs(ticks) == time_limits.INFINITE_TICK:
        return None
    return ticks % time_limits.MICROSECONDS_PER_DAY * 1000


# Intervals ------------------------------------------------------------------------------------------------------------

_PART = re.compile(
    rf"\s*(?:(?P<clock>(?P<sign>-?){_TIME.pattern}$)"
    r"|(?P<number>-?[0-9]+)(?:\.(?P<rest>[0-9]*))?\s*(?P<unit>[A-Za-z]*))",
    re.DOTALL,
)

_MICROSECONDS_PER_DAY = time_limits.MICROSECONDS_PER_DAY


def parse_interval(text: str, target: DataType) -> tuple[int, int, int]:
    """(months, days, microseconds) of '1 year 2 days 03:04:05', '90 minutes', '1 day ago'. Raises ParseFailure."""
    rest = text.lstrip(WHITE_SPACE).removeprefix("@").lstrip(WHITE_SPACE)
    ago = False
    months = days = microseconds = 0
    if not rest:
        raise ParseFailure(not_convertible(text, target))
    first = True
    while rest:
        if not first and rest.lower() == "ago":
            ago = True
            break
        match = _PART.match(rest)
        if match is None:
            raise ParseFailure(not_convertible(text, target))
        if match["clock"]:
            minutes, seconds = int(match["minute"] or 0), int(match["second"] or 0)
            if max(minutes, seconds) > 59:
                raise ParseFailure(not_convertible(text, target))
            seconds += (int(match["hour"]) * 60 + minutes) * 60
            clock = seconds * 10**6 + int((match["fraction"] or "")[:6].ljust(6, "0"))
            microseconds += -clock if match["sign"] else clock
            break
        rest = rest[match.end() :].lstrip(WHITE_SPACE)
        unit = match["unit"].lower()
        if first and not unit and not rest:
            unit = "second"
        if unit not in UNIT_NAMES:
            message = f'; "{unit}" is no unit of an interval' if unit else ""
            raise ParseFailure(not_convertible(text, target) + message)
        added = _amount(match["number"], match["rest"] or "", UNIT_NAMES[unit])
        months, days, microseconds = months + added[0], days + added[1], microseconds + added[2]
        first = False
    if ago:
        months, days, microseconds = -months, -days, -microseconds
    if not (-(2**31) <= months < 2**31 and -(2**31) <= days < 2**31 and -(2**63) <= microseconds < 2**63):
        raise ParseFailure(not_convertible(text, target) + "; a field is out of range")
    return months, days, microseconds


def _amount(number: str, rest: str, unit: str) -> tuple[int, int, int]:
    """`number`.`rest` units; a fraction of a unit is carried into the smaller fields, 30 days to the month; a part of a
    quarter makes whole days, one of longer units whole months."""
    sign = -1 if number.startswith("-") else 1
    whole, part, parts = abs(int(number)), int(rest or 0), 10 ** len(rest)
    months = days = microseconds = 0
    if unit in MONTHS_OF_UNITS:
        factor = MONTHS_OF_UNITS[unit]
        if factor >= time_limits.MONTHS_PER_YEAR:
            return sign * (whole * factor + _round_half_up(part * factor, parts)), 0, 0
        months, part = divmod(part * factor, parts)
        months += whole * factor
        if factor > 1:
            return sign * months, sign * _round_half_up(part * time_limits.DAYS_PER_MONTH, parts), 0
        days, part = divmod(part * time_limits.DAYS_PER_MONTH, parts)
        microseconds = _round_half_up(part * _MICROSECONDS_PER_DAY, parts)
    elif unit in DAYS_OF_UNITS:
        days, part = divmod(part * DAYS_OF_UNITS[unit], parts)
        days += whole * DAYS_OF_UNITS[unit]
        microseconds = _round_half_up(part * _MICROSECONDS_PER_DAY, parts)
    else:
        factor = MICROSECONDS_OF_UNITS[unit]
        microseconds = whole * factor + (_round_half_up(part * factor, parts) if factor > 1 else 0)
    return sign * months, sign * days, sign * microseconds


def _round_half_up(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)
