"""Dates from and to pieces and text: make_date, make_timestamp, dayname, monthname, strftime, strptime.

Text is made once per distinct value, in Python, and gathered; rows then share the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.core.time_limits import MICROSECONDS_PER_DAY
from tqp.data.strings import Strings
from tqp.operators import dates, string_layout, wide
from tqp.operators.casts import round_half_away
from tqp.operators.kernel import Kernel, Overload

DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


# ---- from pieces ---------------------------------------------------------------------------------------------------


def make_date(year: Tensor, month: Tensor, day: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """Day numbers, int64 [n]; raises ExecutionError for a day that does not exist or is out of DATE's range."""
    year, month, day = torch.broadcast_tensors(*(part.to(torch.int64) for part in (year, month, day)))  # type: ignore[no-untyped-call]
    good = (month >= 1) & (month <= 12) & (year.abs() < 6_000_000)
    year, month = year * good, torch.where(good, month, 1)
    good = good & (day >= 1) & (day <= dates.days_in_month(year, month))
    result = dates.days_from_civil(year, month, torch.where(good, day, 1))
    good = good & (result >= time_limits.FIRST_DAY) & (result <= time_limits.LAST_DAY)
    wide.raise_where(~good, "Date out of range: the year, month and day name no date", validity)
    return result


def make_timestamp(
    year: Tensor,
    month: Tensor,
    day: Tensor,
    hour: Tensor,
    minute: Tensor,
    second: Tensor,
    *,
    validity: Tensor | None = None,
) -> Tensor:
    """Microseconds, int64 [n], of integers and float64 seconds; raises ExecutionError for what does not exist."""
    days = make_date(year, month, day, validity=validity)
    hour, minute = hour.to(torch.int64), minute.to(torch.int64)
    micros = round_half_away(second.to(torch.float64) * 1_000_000)
    midnight = (hour == 24) & (minute == 0) & (micros == 0)  # the end of the day
    good = (hour >= 0) & (hour <= 23) & (minute >= 0) & (minute <= 59) & (micros >= 0) & (second < 61)
    wide.raise_where(
        ~(good | midnight), "Time out of range: the hour, minute and second name no time", validity
    )
    clock = (hour * 60 + minute) * 60_000_000 + torch.where(good, micros, 0.0).to(torch.int64)
    first = -(-time_limits.FIRST_MICROSECOND // MICROSECONDS_PER_DAY)
    last = time_limits.LAST_MICROSECOND // MICROSECONDS_PER_DAY
    wide.raise_where((days < first) | (days >= last), "Date and time not in timestamp range", validity)
    return days * MICROSECONDS_PER_DAY + clock


# ---- names ---------------------------------------------------------------------------------------------------------


def _resolve_name(names: tuple[str, ...], index: Callable[[Tensor], Tensor]) -> Overload:
    """The name of each day's `index`: Strings that share one small buffer; NULL for infinite dates."""

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        (data_type,) = argument_types
        if not (data_type.is_timestamp or data_type.kind is TypeKind.DATE):
            return None

        def name_of(values: Tensor) -> tuple[Strings, Tensor | None]:
            positions = dates.by_day(dates.days_of(values, data_type).reshape(-1), index)
            table = string_layout.from_list(names, values.device)
            return string_layout.take(table, positions), dates.finite_validity(values, data_type)

        return Kernel(name_of, returns_validity=True)

    return resolve


def _month_position(days: Tensor) -> Tensor:
    return dates.civil_from_days(days)[1] - 1


# ---- strftime ------------------------------------------------------------------------------------------------------

#: Specifiers of the day alone; any other makes the result depend on the time of day.
_CLOCK_SPECIFIERS = frozenset("HIpMSfgnTXc")
_NUMERIC_SPECIFIERS = frozenset("dmyHIMSj")  # those that take "-", for no padding


def _resolve_format(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    data_type = argument_types[0]
    if not (data_type.is_timestamp or data_type.kind is TypeKind.DATE):
        return None

    def strftime(values: Tensor, pattern: str | bytes) -> Strings:
        return _format(values, _text(pattern), data_type)

    return Kernel(strftime, constant_arguments=frozenset({1}))


def _format(values: Tensor, pattern: str, data_type: DataType) -> Strings:
    pieces = parse_format(pattern)
    if data_type.kind is TypeKind.TIMESTAMP_TZ:  # others have no zone to name
        pieces = [(False, "UTC") if piece == (True, "Z") else piece for piece in pieces]
    if data_type.is_timestamp and not any(
        kind[-1] in _CLOCK_SPECIFIERS for is_code, kind in pieces if is_code
    ):
        finite = dates.finite_validity(values, data_type)
        if finite is None:  # one text per day, not per instant
            values, data_type = dates.days_of(values, data_type), DataType(TypeKind.DATE)
    distinct, positions = torch.unique(values.to(torch.int64).reshape(-1), return_inverse=True)
    per_second = TICKS_PER_SECOND.get(data_type.kind, 0)
    texts = [_format_one(value, pieces, per_second) for value in distinct.tolist()]
    return string_layout.take(string_layout.from_list(texts, values.device), positions)


def _format_one(value: int, pieces: list[tuple[bool, str]], per_second: int) -> str:
    limit = time_limits.INFINITE_TICK if per_second else time_limits.INFINITE_DAY
    if abs(value) == limit:
        return "infinity" if value > 0 else "-infinity"
    days, nanoseconds = value, 0
    if per_second:
        days, ticks = divmod(value, per_second * time_limits.SECONDS_PER_DAY)
        nanoseconds = ticks * (1_000_000_000 // per_second)
    return "".join(_field(text, days, nanoseconds) if is_code else text for is_code, text in pieces)


def _field(code: str, days: int, nanoseconds: int) -> str:
    """One specifier ("Y", "-d", ...) of a day and the nanoseconds into it."""
    letter = code[-1]
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    hour, minute, second = seconds // 3_600, seconds // 60 % 60, seconds % 60
    if letter in "TXc":
        clock = f"{hour:02}:{minute:02}:{second:02}"
        return clock if letter != "c" else f"{_field('x', days, 0)} {clock}"
    if letter in "HIMS":
        number = {"H": hour, "I": (hour + 11) % 12 + 1, "M": minute, "S": second}[letter]
        return str(number) if code[0] == "-" else f"{number:02}"
    if letter == "p":
        return "AM" if hour < 12 else "PM"
    if letter in "fgn":
        return f"{fraction:09}"[: {"f": 6, "g": 3, "n": 9}[letter]]
    if letter in "zZ":
        return "+00" if letter == "z" else ""
    year, month, day = (int(part) for part in dates.civil_from_days(torch.tensor(days)))
    weekday = (days + 4) % 7
    if letter in "dmyj":
        day_of_year = days - int(dates.first_day_of_year(torch.tensor(days))) + 1
        number = {"d": day, "m": month, "y": abs(year) % 100, "j": day_of_year}[letter]
        return str(number) if code[0] == "-" else str(number).rjust(3 if letter == "j" else 2, "0")
    if letter in "aA":
        return DAY_NAMES[weekday][: 3 if letter == "a" else None]
    if letter in "bhB":
        return MONTH_NAMES[month - 1][: None if letter == "B" else 3]
    if letter == "x":
        return f"{_year(year)}-{month:02}-{day:02}"
    if letter in "UW":
        first_weekday = 0 if letter == "U" else 1
        day_index = days - int(dates.first_day_of_year(torch.tensor(days)))
        return f"{(day_index + 7 - (weekday - first_weekday) % 7) // 7:02}"
    iso_year, iso_week = (int(part) for part in dates.iso_year_and_week(torch.tensor(days)))
    return {"Y": _year(year), "w": str(weekday), "u": str((weekday + 6) % 7 + 1),
            "G": _year(iso_year), "V": f"{iso_week:02}"}[letter]  # fmt: skip


def _year(year: int) -> str:
    return f"{year:04}" if year >= 0 else str(year)


def parse_format(pattern: str) -> list[tuple[bool, str]]:
    """A strftime pattern as (is a specifier, its letters or literal text); raises ExecutionError if it is none."""
    if not pattern:
        raise ExecutionError("Failed to parse format specifier: the format is empty")
    pieces: list[tuple[bool, str]] = []
    position = 0
    while position < len(pattern):
        if pattern[position] != "%":
            stop = pattern.find("%", position)
            stop = len(pattern) if stop < 0 else stop
            pieces.append((False, pattern[position:stop]))
            position = stop
            continue
        length = 2 if pattern[position + 1 : position + 2] == "-" else 1
        code = pattern[position + 1 : position + 1 + length]
        position += 1 + length
        if code == "%":
            pieces.append((False, "%"))
        elif code in _SPECIFIERS:
            pieces.append((True, code))
        else:
            raise ExecutionError(f'Failed to parse format specifier "{pattern}": %{code} is not known')
    return pieces


_SPECIFIERS = frozenset("aAwubBhmyYdHIpMSgfnjzZUWVGcxXT") | {f"-{letter}" for letter in _NUMERIC_SPECIFIERS}


# ---- strptime ------------------------------------------------------------------------------------------------------

_DIGITS = {
    "Y": r"\d{1,4}",
    "j": r"\d{1,3}",
    "g": r"\d{1,3}",
    "f": r"\d{1,6}",
    "n": r"\d{1,9}",
}


def _resolve_parse(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    if argument_types[0].kind is not TypeKind.VARCHAR or result_type.kind is not TypeKind.TIMESTAMP:
        return None
    return Kernel(strptime, constant_arguments=frozenset({1}), checks=True)


def strptime(strings: Strings, pattern: str | bytes, *, validity: Tensor | None = None) -> Tensor:
    """Microseconds, int64 [n], of text in the form of a strftime pattern; raises ExecutionError where it is not."""
    expression, letters = _pattern_expression(_text(pattern))
    texts = string_layout.to_list(strings)
    valid = [True] * len(texts) if validity is None else validity.expand(len(texts)).tolist()
    cache: dict[bytes, int] = {}
    result = []
    for raw, counts in zip(texts, valid, strict=True):
        if not counts:
            result.append(0)
            continue
        if raw not in cache:
            cache[raw] = _parse_one(raw.decode(), expression, letters, _text(pattern))
        result.append(cache[raw])
    return torch.tensor(result, dtype=torch.int64, device=strings.starts.device)


def _pattern_expression(pattern: str) -> tuple[re.Pattern[str], list[str]]:
    """A regular expression with one group per specifier, and the specifiers' letters."""
    parts: list[str] = []
    letters: list[str] = []
    for is_code, text in parse_format(pattern):
        if not is_code:
            parts.append(re.escape(text).replace(r"\ ", r"\s+"))
            continue
        for letter_or_text in {"c": "Y-m-d H:M:S", "x": "Y-m-d", "X": "H:M:S", "T": "H:M:S"}.get(
            text[-1], text[-1]
        ):
            if letter_or_text in "UWVGuw":
                raise UnsupportedError(f"strptime: the specifier %{letter_or_text} (weeks) is not supported")
            if not letter_or_text.isalpha():
                parts.append(re.escape(letter_or_text))
                continue
            names = {"a": [n[:3] for n in DAY_NAMES], "A": DAY_NAMES, "b": [n[:3] for n in MONTH_NAMES],
                     "h": [n[:3] for n in MONTH_NAMES], "B": MONTH_NAMES, "p": ("AM", "PM")}.get(letter_or_text)  # fmt: skip
            if names is not None:
                parts.append(f"({'|'.join(names)})")
            elif letter_or_text == "z":
                parts.append(r"([+-]\d{1,2}(?::?\d{2})?|Z)")
            elif letter_or_text == "Z":
                parts.append(r"(\w*)")
            else:
                parts.append("(" + _DIGITS.get(letter_or_text, r"\d{1,2}") + ")")
            letters.append(letter_or_text)
    return re.compile(r"\s*" + "".join(parts) + r"\s*", re.IGNORECASE), letters


def _parse_one(text: str, expression: re.Pattern[str], letters: list[str], pattern: str) -> int:
    match = expression.fullmatch(text)
    failure = f'Could not parse string "{text}" according to format specifier "{pattern}"'
    if match is None:
        raise ExecutionError(failure)
    fields = dict(zip(letters, match.groups(), strict=True))
    year = int(fields.get("Y", 1900))
    if "y" in fields:
        year = int(fields["y"]) + (1900 if int(fields["y"]) >= 69 else 2000)
    month = int(fields.get("m", 1))
    for letter, names in (("b", MONTH_NAMES), ("h", MONTH_NAMES), ("B", MONTH_NAMES)):
        if letter in fields:
            month = [name[:3].lower() for name in names].index(fields[letter][:3].lower()) + 1
    hour, minute, second = (int(fields.get(letter, 0)) for letter in "HMS")
    if "I" in fields:
        hour = int(fields["I"]) % 12
    if fields.get("p", "AM").upper() == "PM":
        hour = hour % 12 + 12
    fraction = next((fields[x].ljust(6, "0")[:6] for x in "fng" if x in fields), "0")
    offset = _offset_seconds(fields.get("z") or "")
    day = int(fields.get("d", 1))
    try:
        date = make_date(*(torch.tensor(part) for part in (year, month, day)))
    except ExecutionError as error:
        raise ExecutionError(f"{failure}: {error.message}") from None
    if hour > 23 or minute > 59 or second > 59:
        raise ExecutionError(f"{failure}: the time is out of range")
    days = (
        int(date)
        if "j" not in fields
        else int(make_date(*(torch.tensor(x) for x in (year, 1, 1)))) + int(fields["j"]) - 1
    )
    seconds = days * time_limits.SECONDS_PER_DAY + hour * 3_600 + minute * 60 + second - offset
    return seconds * 1_000_000 + int(fraction)


def _offset_seconds(text: str) -> int:
    match = re.fullmatch(r"([+-])(\d{1,2}):?(\d{2})?", text)
    if match is None:
        return 0
    seconds = int(match[2]) * 3_600 + int(match[3] or 0) * 60
    return -seconds if match[1] == "-" else seconds


def _text(constant: str | bytes) -> str:
    return constant.decode() if isinstance(constant, bytes) else constant


FORMAT_KERNELS: dict[str, Overload] = {
    "make_date": lambda argument_types, result_type: Kernel(make_date, checks=True),
    "make_timestamp": lambda argument_types, result_type: Kernel(make_timestamp, checks=True),
    "dayname": _resolve_name(DAY_NAMES, dates.day_of_week),
    "monthname": _resolve_name(MONTH_NAMES, _month_position),
    "strftime": _resolve_format,
    "strptime": _resolve_parse,
}
