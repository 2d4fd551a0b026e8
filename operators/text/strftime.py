"""strftime: dates and instants as text by a pattern.

Fields of one width are written as digits at fixed places, for all rows at once; what depends on the day alone once for each
day where the days lie close together. Years that four digits do not write, and infinity, are written one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.patterns import Piece, parse_format
from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.numbers.elementwise import floor_divide
from tqp.operators.strings.build import join
from tqp.operators.strings.layout import broadcast, from_list, replace_rows, take
from tqp.operators.temporal import dates
from tqp.operators.text.number_format import format_integers
from tqp.operators.text.runs import Run, digits, literal, look_up, paste, strings_of, table_of
from tqp.operators.text.time_format import by_value, clock_run, date_run, plain_days, run_by_day

DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

_FRACTION_DIGITS = {"f": 6, "g": 3, "n": 9}
_NUMBER_WIDTHS = {"Y": 4, "G": 4, "j": 3, "w": 1, "u": 1}  # of others two
#: What a specifier reads: the day, the second of the day or the fraction of the second.
_OF_CLOCK = frozenset("HIMSpTX")


def strftime(values: Tensor, pattern: str, data_type: DataType) -> Strings:
    """The text of DATE or timestamp storage [n]; raises ExecutionError for a pattern that is none."""
    zone = "UTC" if data_type.kind is TypeKind.TIMESTAMP_TZ else ""
    pieces = _expanded(parse_format(pattern), zone)
    numbers = values.reshape(-1).to(torch.int64)
    days, nanoseconds, others = _split(numbers, data_type)
    text = _write(_segments(pieces), days, nanoseconds)
    if others is None:
        return text
    per_second = TICKS_PER_SECOND.get(data_type.kind, 0)
    texts = [_format_one(value, pieces, per_second) for value in numbers[others].tolist()]
    return replace_rows(text, others, from_list(texts, values.device))


def _expanded(pieces: Sequence[Piece], zone: str) -> list[Piece]:
    """Without the specifiers that stand for others or for the same text in all rows; `zone`: the name of the time zone."""
    expanded: list[Piece] = []
    for is_code, text in pieces:
        if is_code and text == "c":
            expanded += [(True, "x"), (False, " "), (True, "T")]
        elif is_code and text in "zZ":
            expanded.append((False, "+00" if text == "z" else zone))
        else:
            expanded.append((is_code, text))
    return expanded


def _split(numbers: Tensor, data_type: DataType) -> tuple[Any, Any, Tensor | None]:
    """Days and nanoseconds into the day (None: 0), arrays on the CPU, and the rows that are to be written one by one."""
    if data_type.kind is TypeKind.DATE:
        days, others = plain_days(numbers)
        return days, None, others
    ticks = TICKS_PER_SECOND[data_type.kind]
    days = floor_divide(numbers, ticks * time_limits.SECONDS_PER_DAY)
    nanoseconds: Any = numbers - days * (ticks * time_limits.SECONDS_PER_DAY)
    if ticks < 10**9:
        nanoseconds = nanoseconds * (10**9 // ticks)
    infinite = numbers.abs() == time_limits.INFINITE_TICK
    if ticks == 10**9 and bool(infinite.any()):  # of other units the year has more than four digits
        days = days.masked_fill(infinite, time_limits.INFINITE_DAY)
    plain, others = plain_days(days)
    return plain, nanoseconds.numpy() if is_host(numbers) else nanoseconds, others


def _segments(pieces: list[Piece]) -> list[tuple[str, list[Piece]]]:
    """Neighbours that read the same part of the value together: "day", "clock" or "fraction"."""
    segments: list[tuple[str, list[Piece]]] = []
    for is_code, text in pieces:
        kind = segments[-1][0] if segments else "day"
        if is_code:
            letter = text[-1]
            kind = "clock" if letter in _OF_CLOCK else "fraction" if letter in _FRACTION_DIGITS else "day"
        if segments and segments[-1][0] == kind:
            segments[-1][1].append((is_code, text))
        else:
            segments.append((kind, [(is_code, text)]))
    return segments


def _write(segments: list[tuple[str, list[Piece]]], days: Any, nanoseconds: Any) -> Strings:
    seconds = days * 0 if nanoseconds is None else floor_divide(nanoseconds, 10**9)
    fraction = seconds if nanoseconds is None else nanoseconds - seconds * 10**9
    parts: list[Run | Strings] = []
    for kind, pieces in segments:
        values, write = {
            "day": (days, _day_field),
            "clock": (seconds, _clock_field),
            "fraction": (fraction, _fraction_field),
        }[kind]
        if not all(_has_fixed_width(piece) for piece in pieces):
            parts.append(_write_words(pieces, values, write))
            continue

        def run_of(numbers: Any, pieces: list[Piece] = pieces, write: Any = write) -> Run:
            return paste([write(text, numbers) if is_code else literal(text) for is_code, text in pieces])

        run = run_of(values) if kind == "fraction" else run_by_day(values, run_of)
        if parts and isinstance(parts[-1], Run):
            parts[-1] = paste([parts[-1], run])
        else:
            parts.append(run)
    texts = [strings_of(part, days) if isinstance(part, Run) else part for part in parts]
    return texts[0] if len(texts) == 1 else join(texts)


def _has_fixed_width(piece: Piece) -> bool:
    is_code, text = piece
    return text not in ("A", "B") and "-" not in text if is_code else text.isascii()


def _write_words(pieces: list[Piece], values: Any, write: Callable[[str, Any], Run]) -> Strings:
    """Pieces of which some have no fixed width."""
    numbers = torch.from_numpy(values) if isinstance(values, np.ndarray) else values

    def text_of(distinct: Tensor) -> Strings:
        like = distinct.numpy() if is_host(distinct) else distinct
        parts: list[Strings] = []
        for piece in pieces:
            is_code, text = piece
            if not is_code:
                parts.append(from_list([text], distinct.device))
            elif _has_fixed_width(piece):
                parts.append(strings_of(write(text, like), like))
            elif text in ("A", "B"):
                names = DAY_NAMES if text == "A" else MONTH_NAMES
                codes = dates.day_of_week(distinct) if text == "A" else dates.civil_from_days(distinct)[1] - 1
                parts.append(take(from_list(names, distinct.device), codes))
            else:
                parts.append(format_integers(_tensor(_number(text[-1], like))))
        return broadcast(join(parts) if len(parts) > 1 else parts[0], distinct.shape[0])

    return by_value(numbers, text_of)


def _tensor(values: Any) -> Tensor:
    return torch.from_numpy(values) if isinstance(values, np.ndarray) else values


def _number(letter: str, values: Any) -> Any:
    """The number that a specifier writes, of days or of seconds of the day: int64 [n]."""
    if letter in "HIMS":
        hour = floor_divide(values, 3600)
        if letter == "H":
            return hour
        if letter == "I":
            return hour + 12 * (hour == 0) - 12 * (hour > 12)
        minute = floor_divide(values, 60)
        return minute - hour * 60 if letter == "M" else values - minute * 60
    days = _tensor(values)
    year, month, day = dates.civil_from_days(days)
    weekday = dates.day_of_week(days)
    if letter in "YymdG":
        number = {"Y": year, "y": year - floor_divide(year, 100) * 100, "m": month, "d": day}.get(letter)
        if number is None:
            number = dates.iso_year_and_week(days)[0]
    elif letter == "V":
        number = dates.iso_year_and_week(days)[1]
    elif letter in "wu":
        number = weekday if letter == "w" else (weekday + 6) % 7 + 1
    else:
        index = days - dates.first_day_of_year(days)
        first = weekday if letter == "U" else (weekday + 6) % 7
        number = index + 1 if letter == "j" else floor_divide(index + 7 - first, 7)
    return number.numpy() if isinstance(values, np.ndarray) else number


def _day_field(code: str, days: Any) -> Run:
    if code == "x":
        return date_run(days)
    if code in "abh":
        names = DAY_NAMES if code == "a" else MONTH_NAMES
        number = _number("w", days) if code == "a" else _number("m", days) - 1
        return Run([look_up(table_of([name[:3] for name in names]), number)], 3)
    return digits(_number(code, days), _NUMBER_WIDTHS.get(code, 2))


def _clock_field(code: str, seconds: Any) -> Run:
    if code in "TX":
        return clock_run(seconds)
    if code == "p":
        return Run([look_up(table_of(["AM", "PM"]), (seconds >= 43_200) * 1)], 2)
    return digits(_number(code, seconds), 2)


def _fraction_field(code: str, nanoseconds: Any) -> Run:
    width = _FRACTION_DIGITS[code]
    return digits(floor_divide(nanoseconds, 10 ** (9 - width)), width)


# One value at a time --------------------------------------------------------------------------------------------------


def _format_one(value: int, pieces: list[Piece], per_second: int) -> str:
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
    if letter in "TX":
        return f"{hour:02}:{minute:02}:{second:02}"
    if letter in "HIMS":
        number = {"H": hour, "I": (hour + 11) % 12 + 1, "M": minute, "S": second}[letter]
        return str(number) if code[0] == "-" else f"{number:02}"
    if letter == "p":
        return "AM" if hour < 12 else "PM"
    if letter in _FRACTION_DIGITS:
        return f"{fraction:09}"[: _FRACTION_DIGITS[letter]]
    day_tensor = torch.tensor([days])
    year, month, day = (int(part) for part in dates.civil_from_days(day_tensor))
    weekday = (days + 4) % 7
    if letter in "dmyj":
        day_of_year = days - int(dates.first_day_of_year(day_tensor)) + 1
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
        day_index = days - int(dates.first_day_of_year(day_tensor))
        return f"{(day_index + 7 - (weekday - first_weekday) % 7) // 7:02}"
    iso_year, iso_week = (int(part) for part in dates.iso_year_and_week(day_tensor))
    return {"Y": _year(year), "w": str(weekday), "u": str((weekday + 6) % 7 + 1),
            "G": _year(iso_year), "V": f"{iso_week:02}"}[letter]  # fmt: skip


def _year(year: int) -> str:
    return f"{year:04}" if year >= 0 else str(year)
