"""CAST of one storage value in plain Python, with DuckDB's rules; what constant folding and parameters rest on.

Covers what literals need; `cast_value` answers NotImplemented for the rest, which is then left to the kernels.
"""

from __future__ import annotations

import ctypes
import datetime
import math
import re
from typing import Any

from tqp.core.datatypes import DOUBLE, FLOAT, TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.planner.expressions import Value

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_MICROS_PER_DAY = 86_400_000_000

_INTERVAL_UNITS: dict[str, tuple[int, int, int]] = {
    "microsecond": (0, 0, 1),
    "millisecond": (0, 0, 1_000),
    "second": (0, 0, 1_000_000),
    "minute": (0, 0, 60_000_000),
    "hour": (0, 0, 3_600_000_000),
    "day": (0, 1, 0),
    "week": (0, 7, 0),
    "month": (1, 0, 0),
    "quarter": (3, 0, 0),
    "year": (12, 0, 0),
    "decade": (120, 0, 0),
    "century": (1200, 0, 0),
    "millennium": (12000, 0, 0),
}
_UNIT_SPELLINGS = {
    **{unit: unit for unit in _INTERVAL_UNITS},
    **{unit + "s": unit for unit in _INTERVAL_UNITS},
    **dict.fromkeys(("us", "usec", "usecs", "microsec"), "microsecond"),
    **dict.fromkeys(("ms", "msec", "msecs", "millisec"), "millisecond"),
    **dict.fromkeys(("s", "sec", "secs"), "second"),
    **dict.fromkeys(("m", "min", "mins"), "minute"),
    **dict.fromkeys(("h", "hr", "hrs"), "hour"),
    "d": "day",
    "w": "week",
    **dict.fromkeys(("mon", "mons"), "month"),
    **dict.fromkeys(("y", "yr", "yrs"), "year"),
    **dict.fromkeys(("dec", "decs"), "decade"),
    **dict.fromkeys(("c", "cent", "centuries"), "century"),
    **dict.fromkeys(("mil", "mils", "millennia"), "millennium"),
}


def unit_name(text: str) -> str | None:
    """The unit that a spelling stands for (`mins` is `minute`), or None."""
    return _UNIT_SPELLINGS.get(text.lower())


def interval_of(unit: str, count: float) -> tuple[int, int, int]:
    """`count` units as (months, days, microseconds); raises ExecutionError where that overflows."""
    months, days, micros = _INTERVAL_UNITS[unit]
    interval = (months * int(count), days * int(count), round(micros * count) if micros else 0)
    if max(abs(interval[0]), abs(interval[1])) >= 2**31 or abs(interval[2]) >= 2**63:
        raise ExecutionError(f"{count} {unit}s do not fit an INTERVAL")
    return interval


def cast_value(value: Value, source: DataType, target: DataType) -> Any:
    """`value` of type `source` as a storage value of `target`.

    Raises ExecutionError if the value cannot be converted; returns NotImplemented for casts it does not know.
    """
    if value is None or source == target:
        return value
    if source.kind is TypeKind.VARCHAR and isinstance(value, str):
        return _parse(value, target)
    if target.is_integer or target.is_decimal:
        return _to_whole(value, source, target)
    if target.is_float:
        return _to_float(value, source, target)
    if target.kind is TypeKind.BOOLEAN and (source.is_integer or source.is_float):
        return bool(value)
    if target.is_temporal and source.is_temporal and isinstance(value, int):
        return _convert_temporal(value, source, target)
    if target.kind is TypeKind.VARCHAR:
        return _to_text(value, source)
    return NotImplemented


def bounds_error(value: object, source: DataType, target: DataType) -> ExecutionError:
    """The error for a constant that the target type cannot hold."""
    return ExecutionError(
        f"{value} ({source}) is out of range for {target}; cast to a wider type, or use TRY_CAST"
    )


def _to_whole(value: Value, source: DataType, target: DataType) -> Any:
    """To an integer or a decimal, rounding half away from zero (floats to integers: half to even)."""
    shift = target.scale - source.scale
    if isinstance(value, bool) or (isinstance(value, int) and (source.is_integer or source.is_decimal)):
        whole = int(value) * 10**shift if shift >= 0 else _divide_rounded(int(value), 10**-shift)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise bounds_error(value, source, target)
        scaled = value * 10.0**target.scale
        whole = round(scaled) if target.is_integer else int(scaled + math.copysign(0.5, scaled))
    else:
        return NotImplemented
    low, high = target.bounds
    if not low <= whole <= high:
        shown = value if not source.scale else f"{int(value) / 10**source.scale}"
        raise bounds_error(shown, source, target)
    return whole


def _divide_rounded(value: int, divisor: int) -> int:
    whole, rest = divmod(abs(value), divisor)
    whole += 2 * rest >= divisor
    return whole if value >= 0 else -whole


def _to_float(value: Value, source: DataType, target: DataType) -> Any:
    if isinstance(value, (bool, int)) and (source.is_numeric or source.kind is TypeKind.BOOLEAN):
        number = int(value) / 10**source.scale if source.scale else float(value)
    elif isinstance(value, float):
        number = value
    else:
        return NotImplemented
    return NotImplemented if target.kind is TypeKind.FLOAT and not _is_float32(number) else number


def _is_float32(number: float) -> bool:
    """Exactly representable in 32 bits; others are left for the kernels to round."""
    try:
        return rounded_to_float32(number) == number or math.isnan(number)
    except ExecutionError:
        return False


def rounded_to_float32(number: float) -> float:
    """The nearest number that has 32 bits. Raises ExecutionError if all are smaller."""
    rounded: float = ctypes.c_float(number).value
    if math.isinf(rounded) and not math.isinf(number):
        raise bounds_error(number, DOUBLE, FLOAT)
    return rounded


def _convert_temporal(value: int, source: DataType, target: DataType) -> Any:
    if source.kind is TypeKind.DATE and target.is_timestamp:
        return value * 86_400 * TICKS_PER_SECOND[target.kind]
    if source.is_timestamp and target.is_timestamp:
        up, down = TICKS_PER_SECOND[target.kind], TICKS_PER_SECOND[source.kind]
        return value * (up // down) if up >= down else value // (down // up)
    if source.is_timestamp and target.kind is TypeKind.DATE:
        return value // (86_400 * TICKS_PER_SECOND[source.kind])
    return NotImplemented


def _to_text(value: Value, source: DataType) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and source.is_integer:
        return str(value)
    if isinstance(value, int) and source.is_decimal:
        digits = str(abs(value)).rjust(source.scale + 1, "0")
        sign = "-" if value < 0 else ""
        return sign + (f"{digits[: -source.scale]}.{digits[-source.scale :]}" if source.scale else digits)
    if isinstance(value, int) and source.kind is TypeKind.DATE and -719_162 <= value <= 2_932_896:
        return datetime.date.fromordinal(value + _EPOCH).isoformat()
    return NotImplemented


# ---- from text ----


def _parse(text: str, target: DataType) -> Any:
    stripped = text.strip(" \t\n\r\f\v")
    result: Any = NotImplemented
    if target.is_integer or target.is_decimal:
        result = _parse_whole(stripped, target)
    elif target.is_float:
        result = _parse_float(stripped, target)
    elif target.kind is TypeKind.BOOLEAN:
        result = _BOOLEANS.get(text.lower())  # spaces are not ignored here
    elif target.kind is TypeKind.DATE:
        result = _parse_date(stripped)
    elif target.is_timestamp:
        result = _parse_timestamp(stripped, target)
    elif target.kind is TypeKind.TIME:
        result = _parse_time(stripped)
    elif target.kind is TypeKind.INTERVAL:
        result = parse_interval(stripped)
    if result is None:
        raise ExecutionError(f"could not convert the string '{text}' to {target}{_hint(target)}")
    return result


def _hint(target: DataType) -> str:
    if target.kind is TypeKind.DATE:
        return "; dates are written YYYY-MM-DD"
    if target.is_timestamp:
        return "; timestamps are written YYYY-MM-DD HH:MM:SS[.ffffff]"
    return ""


_BOOLEANS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
_NUMBER = re.compile(r"([+-]?)(\d+(?:_\d+)*)?(?:\.(\d*))?(?:[eE]([+-]?\d+))?", re.ASCII)
_RADIX = re.compile(r"0[xX][0-9a-fA-F]+|0[bB][01]+")


def _parse_whole(text: str, target: DataType) -> int | None:
    match = _NUMBER.fullmatch(text)
    if target.is_integer and _RADIX.fullmatch(text):
        value = int(text, 0)
        return value if value <= target.bounds[1] else None
    if match is None or not (match[2] or match[3]):
        return None
    whole_digits, fraction = (match[2] or "").replace("_", ""), match[3] or ""
    exponent = int(match[4] or 0) + target.scale - len(fraction)
    value = int(whole_digits + fraction or "0")
    if abs(exponent) > 400:
        return 0 if exponent < 0 or not value else None
    value = value * 10**exponent if exponent >= 0 else _divide_rounded(value, 10**-exponent)
    value = -value if match[1] == "-" else value
    low, high = target.bounds
    return value if low <= value <= high else None


def _parse_float(text: str, target: DataType) -> Any:
    if text.lower().lstrip("+-") in ("inf", "infinity", "nan"):
        return float(text)
    if _NUMBER.fullmatch(text) is None or not any(character.isdigit() for character in text):
        return None
    number = float(text.replace("_", ""))
    return NotImplemented if target.kind is TypeKind.FLOAT and not _is_float32(number) else number


_DATE = re.compile(r"(\d{1,4})([-/ \\])(\d{1,2})\2(\d{1,2})", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9})\d*)?)?", re.ASCII)
_ZONE = re.compile(r"\s*(?:(Z)|([+-])(\d{2})(?::?(\d{2}))?)")


def _parse_date(text: str) -> Any:
    match = _DATE.match(text)
    if match is None:
        return NotImplemented if re.match(r"[+-]?\d{5,}-|.*\((?i:bc)\)|-\d|(?i:epoch|-?inf)", text) else None
    rest = text[match.end() :]
    if rest and not re.fullmatch(r"[ T]\s*[\d:.]*\s*(Z|[+-]\d\d(:?\d\d)?)?", rest):
        return NotImplemented if "(" in rest.lower() or "bc" in rest.lower() else None
    try:
        return datetime.date(int(match[1]), int(match[3]), int(match[4])).toordinal() - _EPOCH
    except ValueError:
        return NotImplemented if match[1].strip("0") == "" else None


def _parse_clock(text: str) -> tuple[int, int] | None:
    """(nanoseconds of the day, characters read)."""
    match = _TIME.match(text)
    if match is None:
        return None
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    nanos = ((hour * 60 + minute) * 60 + second) * 10**9 + int((match[4] or "").ljust(9, "0"))
    if minute > 59 or second > 59 or nanos > 86_400 * 10**9:
        return None
    return nanos, match.end()


def _parse_time(text: str) -> Any:
    clock = _parse_clock(text)
    if clock is None or clock[1] != len(text):
        return NotImplemented  # perhaps with a date before or a zone behind it
    return clock[0] // 1000


def _parse_timestamp(text: str, target: DataType) -> Any:
    match = _DATE.match(text)
    if match is None:
        return _parse_date(text)
    day = _parse_date(match[0])
    if not isinstance(day, int):
        return day
    rest = re.sub(r"\AT(?=\d)", "", text[match.end() :]).strip()
    nanos = 0
    if rest:
        clock = _parse_clock(rest)
        if clock is None:
            return None
        nanos = clock[0]
        zone_text = rest[clock[1] :].strip()
        if zone_text:
            zone = _ZONE.fullmatch(zone_text)
            if zone is None:
                return NotImplemented
            if zone[2] and target.kind is TypeKind.TIMESTAMP_TZ:  # a plain TIMESTAMP is what the clock shows
                offset = (int(zone[3]) * 60 + int(zone[4] or 0)) * 60 * 10**9
                nanos += -offset if zone[2] == "+" else offset
        elif target.kind is TypeKind.TIMESTAMP_TZ:
            return NotImplemented  # depends on the session's zone
    elif target.kind is TypeKind.TIMESTAMP_TZ:
        return NotImplemented
    ticks = TICKS_PER_SECOND[target.kind]
    return day * 86_400 * ticks + nanos * ticks // 10**9


_INTERVAL_PART = re.compile(r"\s*([+-]?\d+)(\.\d+)?\s*([A-Za-z]+)")
_INTERVAL_CLOCK = re.compile(r"\s*([+-]?)(\d+):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d*)?)?\s*")


def parse_interval(text: str) -> Any:
    """`'1 year 2 months'`, `'3 days 04:05:06'`, ... as (months, days, microseconds); None if it is none."""
    months = days = micros = 0
    position, found = 0, False
    while position < len(text):
        part = _INTERVAL_PART.match(text, position)
        if part is None:
            clock = _INTERVAL_CLOCK.fullmatch(text, position)
            if clock is None:
                return NotImplemented if found or text.isdigit() or "ago" in text.lower() else None
            seconds = (int(clock[2]) * 60 + int(clock[3])) * 60 + int(clock[4] or 0)
            step = seconds * 1_000_000 + int((clock[5] or "").ljust(6, "0"))
            micros += -step if clock[1] == "-" else step
            return (months, days, micros)
        unit = unit_name(part[3])
        if unit is None:
            return NotImplemented if part[3].lower() == "ago" else None
        if part[2] and unit not in ("second", "millisecond", "minute", "hour"):
            return NotImplemented
        count = float(part[1] + part[2]) if part[2] else int(part[1])
        step_months, step_days, step_micros = interval_of(unit, count)
        months, days, micros = months + step_months, days + step_days, micros + step_micros
        position, found = part.end(), True
    return (months, days, micros) if found else None
