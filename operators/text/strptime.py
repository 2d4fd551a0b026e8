"""strptime: instants out of text by a pattern.

Rows in which every field has all its digits are read all at once; each other distinct text goes through a regular
expression in Python, which also says what is wrong with it.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.core.patterns import parse_format
from tqp.core.text_numbers import WHITE_SPACE
from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.rows.selection import row_indices
from tqp.operators.string_keys.codes import distinct_slices, distinct_values
from tqp.operators.strings.layout import take, to_list
from tqp.operators.temporal import dates
from tqp.operators.temporal.make_dates import make_date
from tqp.operators.text.fields import Item, read_fields, width_of
from tqp.operators.text.plain_forms import read_instants
from tqp.operators.text.strftime import DAY_NAMES, MONTH_NAMES

_WIDTHS = {"Y": 4, "y": 2, "m": 2, "d": 2, "j": 3, "H": 2, "I": 2, "M": 2, "S": 2, "f": 6, "g": 3, "n": 9}
_SHORT_MONTHS = tuple(name[:3] for name in MONTH_NAMES)
_HALVES = ("AM", "PM")
#: The patterns as which casts read instants.
_AS_CASTS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d")
_COMPOSED = {"c": "Y-m-d H:M:S", "x": "Y-m-d", "X": "H:M:S", "T": "H:M:S"}


def strptime(strings: Strings, pattern: str, validity: Tensor | None = None) -> Tensor:
    """Microseconds, int64 [n], of text in the form of a strftime pattern; raises ExecutionError for a valid row of none."""
    expression, letters = _pattern_expression(pattern)
    shared = distinct_slices(strings, validity)
    if shared is not None:
        codes, slices = shared
        return torch.index_select(strptime(slices, pattern), 0, codes)
    places = _layout(pattern)
    if places is not None and places in map(_layout, _AS_CASTS):
        instants = read_instants(strings, validity, width_of(places[0]))
        if instants is not None:
            return instants
    device = strings.starts.device
    values, fits = _read_plain(strings, places)
    others = ~fits if validity is None else ~fits & validity
    rows = row_indices(others)
    if rows.shape[0] == 0:
        return values
    codes, distinct = distinct_values(take(strings, rows))
    read = [_parse_one(raw.decode(), expression, letters, pattern) for raw in to_list(distinct)]
    return values.index_copy_(0, rows, torch.tensor(read, device=device)[codes])


def _layout(pattern: str) -> tuple[list[Item], list[str]] | None:
    """The pattern as places of fields, and their letters; None if it has fields of no fixed width, or none at all.

    Without fields it may be a word that is read as an instant.
    """
    layout: list[Item] = []
    letters: list[str] = []
    for is_code, text in parse_format(pattern):
        if not is_code:
            if not text.isascii():
                return None
            layout.append(text)
            continue
        for letter in _COMPOSED.get(text[-1], text[-1]):
            if not letter.isalpha():
                layout.append(letter)
                continue
            names = {"b": _SHORT_MONTHS, "h": _SHORT_MONTHS, "p": _HALVES}.get(letter)
            if letter not in _WIDTHS and names is None or letter in letters:
                return None
            layout.append(names or _WIDTHS[letter])
            letters.append(letter)
    return (layout, letters) if letters else None


def _read_plain(strings: Strings, places: tuple[list[Item], list[str]] | None) -> tuple[Tensor, Tensor]:
    """Microseconds, int64 [n], and bool [n]: the rows that are read, in which all fields have all their digits."""
    if places is None or strings.num_rows == 0:
        return torch.zeros_like(strings.starts), torch.zeros_like(strings.starts, dtype=torch.bool)
    layout, letters = places
    numbers, fits = read_fields(strings, layout)
    lengths: Any = strings.lengths.numpy() if is_host(strings.starts) else strings.lengths
    fields: dict[str, Any] = dict(zip(letters, numbers, strict=True))
    inside = fits & (lengths == width_of(layout))
    year = fields.get("Y", 1900)
    if "y" in fields:
        year = fields["y"] + 2000 - 100 * (fields["y"] >= 69)
    month = fields["b"] + 1 if "b" in fields else fields["h"] + 1 if "h" in fields else fields.get("m", 1)
    days, inside = dates.days_of_fields(year, month, fields.get("d", 1), inside)
    if "j" in fields:
        inside = inside & (fields["j"] >= 1) & (fields["j"] <= 366)
        days = dates.days_of_fields(year, 1, 1, inside)[0] + fields["j"] - 1
    hour, minute, second = (fields.get(letter, 0) for letter in "HMS")
    if "I" in fields:
        inside = inside & (fields["I"] >= 1) & (fields["I"] <= 12)
        hour = fields["I"] % 12
    if "p" in fields:
        hour = hour + (fields["p"] == 1) * (hour % 12 + 12 - hour)
    inside = inside & (hour < 24) & (minute < 60) & (second < 60)
    seconds = days * time_limits.SECONDS_PER_DAY + (hour * 3600 + minute * 60 + second)
    values = seconds * time_limits.MICROSECONDS_PER_SECOND
    fraction = next((letter for letter in "fng" if letter in fields), None)
    if fraction is not None:
        nanoseconds = fields[fraction] * {"f": 1_000, "n": 1, "g": 1_000_000}[fraction]
        values = values + nanoseconds // 1_000
    return torch.as_tensor(values * inside), torch.as_tensor(inside)


# One text at a time ---------------------------------------------------------------------------------------------------

#: As many digits as there are, up to so many, and none of them is given back to what follows.
_DIGITS = {
    "Y": r"\d{1,4}+",
    "j": r"\d{1,3}+",
    "g": r"\d{1,3}+",
    "f": r"\d{1,6}+",
    "n": r"\d{1,9}+",
}


def _pattern_expression(pattern: str) -> tuple[re.Pattern[str], list[str]]:
    """A regular expression with one group per specifier, and the specifiers' letters."""
    parts: list[str] = []
    letters: list[str] = []
    for is_code, text in parse_format(pattern):
        if not is_code:
            parts.append(re.escape(text).replace(r"\ ", r"\s+"))
            continue
        for letter_or_text in _COMPOSED.get(text[-1], text[-1]):
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
                parts.append(r"([+-]\d{2}(?::?\d{2})?+)")
            elif letter_or_text == "Z":
                parts.append(r"(\w*+)")
            else:
                parts.append("(" + _DIGITS.get(letter_or_text, r"\d{1,2}+") + ")")
            letters.append(letter_or_text)
    return re.compile(r"\s*" + "".join(parts) + r"\s*", re.IGNORECASE), letters


#: Read whatever the pattern.
_INSTANTS = {"epoch": 0, "infinity": time_limits.INFINITE_TICK, "-infinity": -time_limits.INFINITE_TICK}


def _parse_one(text: str, expression: re.Pattern[str], letters: list[str], pattern: str) -> int:
    instant = _INSTANTS.get(text.strip(WHITE_SPACE).lower())
    if instant is not None:
        return instant
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
    if hour > 23 or minute > 59 or second > 59 or not 1 <= int(fields.get("I", 12)) <= 12:
        raise ExecutionError(f"{failure}: the time is out of range")
    if not 1 <= int(fields.get("j", 1)) <= 366:
        raise ExecutionError(f"{failure}: the day of the year is out of range")
    days = (
        int(date)
        if "j" not in fields
        else int(make_date(*(torch.tensor(x) for x in (year, 1, 1)))) + int(fields["j"]) - 1
    )
    seconds = days * time_limits.SECONDS_PER_DAY + hour * 3_600 + minute * 60 + second - offset
    return seconds * 1_000_000 + int(fraction)


def _offset_seconds(text: str) -> int:
    match = re.fullmatch(r"([+-])(\d{2}):?(\d{2})?", text)
    if match is None:
        return 0
    seconds = int(match[2]) * 3_600 + int(match[3] or 0) * 60
    return -seconds if match[1] == "-" else seconds
