"""strptime: instants out of text by a pattern.

Rows in which every field has all its digits are read all at once; each other distinct text goes through a regular
expression in Python, which also says what is wrong with it.
"""

from __future__ import annotations

import operator
import re
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.core.patterns import parse_format
from tqp.core.text.numbers import WHITE_SPACE
from tqp.data.strings import Strings
from tqp.operators.memory.arrays import host_form
from tqp.operators.rows.selection import row_indices
from tqp.operators.string_keys.codes import distinct_slices, distinct_values
from tqp.operators.strings.layout import take, to_list
from tqp.operators.temporal import dates
from tqp.operators.text.fields import Item, read_fields, width_of
from tqp.operators.text.plain_forms import read_instants
from tqp.operators.text.strftime import DAY_NAMES, MONTH_NAMES

_WIDTHS = {"Y": 4, "y": 2, "m": 2, "d": 2, "j": 3, "H": 2, "I": 2, "M": 2, "S": 2, "f": 6, "g": 3, "n": 9}
_NAMES = {"A": DAY_NAMES, "B": MONTH_NAMES, "p": ("AM", "PM")}
_NAMES["a"], _NAMES["b"] = (tuple(name[:3] for name in names) for names in (DAY_NAMES, MONTH_NAMES))
_NAMES["h"] = _NAMES["b"]
#: The patterns as which casts read instants.
_AS_CASTS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d")
#: Weeks of a year, and days of a week: their numbers.
_WEEKS = (("U", 0, 53), ("W", 0, 53), ("V", 1, 53), ("u", 1, 7), ("w", 0, 6))
_IN_WEEKS, _IN_MONTHS = frozenset("UWVG"), frozenset("md")
_COMPOSED = {"c": "Y-m-d H:M:S", "x": "Y-m-d", "X": "H:M:S", "T": "H:M:S"}


def strptime(strings: Strings, pattern: str, validity: Tensor | None = None) -> Tensor:
    """Microseconds, int64 [n], of text in the form of a strftime pattern; raises ExecutionError for a valid row of none."""
    return _read(strings, pattern, validity, is_try=False)[0]


def try_strptime(strings: Strings, pattern: str) -> tuple[Tensor, Tensor | None]:
    """As `strptime`, and bool [n]: which rows are in that form; None if all are."""
    return _read(strings, pattern, None, is_try=True)


def _read(
    strings: Strings, pattern: str, validity: Tensor | None, is_try: bool
) -> tuple[Tensor, Tensor | None]:
    """Microseconds, int64 [n], and which rows have some (None: all); without `is_try` all valid ones have, or it raises."""
    expression, letters = _pattern_expression(pattern)
    shared = distinct_slices(strings, validity)
    if shared is not None:
        codes, slices = shared
        values, found = _read(slices, pattern, None, is_try)
        return torch.index_select(values, 0, codes), found if found is None else found[codes]
    places = _layout(pattern)
    if places is not None and places in map(_layout, _AS_CASTS):
        instants = read_instants(strings, validity, width_of(places[0]))
        if instants is not None:
            return instants, None
    device = strings.starts.device
    values, fits = _read_plain(strings, places)
    others = ~fits if validity is None else ~fits & validity
    rows = row_indices(others)
    if rows.shape[0] == 0:
        return values, None
    codes, distinct = distinct_values(take(strings, rows))
    read, is_read = _parse([raw.decode() for raw in to_list(distinct)], expression, letters, pattern, is_try)
    values.index_copy_(0, rows, torch.tensor(read, device=device)[codes])
    found = torch.ones(values.shape, dtype=torch.bool, device=device)
    return values, found.index_copy_(0, rows, torch.tensor(is_read, device=device)[codes])


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
            item = _WIDTHS.get(letter, _NAMES[letter] if letter in "bhp" else None)
            if item is None or letter in letters:
                return None
            layout.append(item)
            letters.append(letter)
    return (layout, letters) if letters else None


def _read_plain(strings: Strings, places: tuple[list[Item], list[str]] | None) -> tuple[Tensor, Tensor]:
    """Microseconds, int64 [n], and bool [n]: the rows that are read, in which all fields have all their digits."""
    if places is None or strings.num_rows == 0:
        return torch.zeros_like(strings.starts), torch.zeros_like(strings.starts, dtype=torch.bool)
    layout, letters = places
    numbers, fits = read_fields(strings, layout)
    values, checks = _instants(dict(zip(letters, numbers, strict=True)), fits)
    fits = reduce(operator.and_, checks.values(), fits & (host_form(strings.lengths) == width_of(layout)))
    return torch.as_tensor(values * fits), torch.as_tensor(fits)


def _instants(fields: dict[str, Any], fits: Any) -> tuple[Any, dict[str, Any]]:
    """Microseconds, int64 [n], of the numbers of each specifier, int64 [n], and what may be wrong: where it is not, bool [n].

    The number of a name is its place among all, a fraction has as many digits as it may have, `z` is in seconds. Rows that do
    not fit (bool [n]) may be anything. Arrays or tensors.
    """
    year = fields.get("Y", 1900)
    if "y" in fields:
        year = fields["y"] + 2000 - 100 * (fields["y"] >= 69)
    month = next((fields[letter] + 1 for letter in "Bbh" if letter in fields), fields.get("m", 1))
    checks = {}
    days, checks["the year, month and day name no date"] = dates.days_of_fields(
        year, month, fields.get("d", 1), fits
    )
    has_date = not _IN_MONTHS.isdisjoint(fields)  # which then counts, whatever else the text says
    if "j" in fields:
        checks["the day of the year is out of range"] = (fields["j"] >= 1) & (fields["j"] <= 366)
    if "j" in fields and not has_date:
        days = dates.days_of_fields(year, 1, 1, fits)[0] + fields["j"] - 1
    is_week = [
        (fields[letter] >= low) & (fields[letter] <= high) for letter, low, high in _WEEKS if letter in fields
    ]
    if is_week:
        checks["the week, or the day of the week, is out of range"] = reduce(operator.and_, is_week)
    if not _IN_WEEKS.isdisjoint(fields) and not has_date:
        days = _days_of_weeks(fields, year, fits)
    hour, minute, second = (fields.get(letter, 0) for letter in "HMS")
    is_time = (minute < 60) & (second < 60)
    if "I" in fields:
        is_time = is_time & (fields["I"] >= 1) & (fields["I"] <= 12)
        hour = fields["I"] % 12
    if "p" in fields:
        is_time = is_time & (hour <= 12)
        hour = hour % 12 + (fields["p"] == 1) * 12
    checks["the time is out of range"] = is_time & (hour < 24)
    seconds = days * time_limits.SECONDS_PER_DAY + (hour * 3600 + minute * 60 + second) - fields.get("z", 0)
    values = seconds * time_limits.MICROSECONDS_PER_SECOND
    fraction = next((letter for letter in "fng" if letter in fields), None)
    if fraction is not None:
        values = values + fields[fraction] * 10**9 // (1_000 * 10 ** _WIDTHS[fraction])
    return values, checks


def _days_of_weeks(fields: dict[str, Any], year: Any, fits: Any) -> Any:
    """Days of a year, its week, and a day of this: weeks that begin on Sundays (`U`) or Mondays (`W`), or those of ISO 8601."""
    if "U" not in fields and "W" not in fields:
        fourth = dates.days_of_fields(fields.get("G", 1900), 1, 4, fits)[0]  # always in the first week
        first = fourth - (fourth + 3) % 7
        return first + (fields.get("V", 1) - 1) * 7 + fields.get("u", 1) - 1
    from_monday = int("W" in fields)
    first_day = dates.days_of_fields(year, 1, 1, fits)[0]
    first = first_day - (first_day + 3) % 7 - (1 - from_monday)
    first = first - 7 * (first >= first_day)  # of week 0
    weekday = (fields.get("w", from_monday) + 7 - from_monday) % 7  # `u` says nothing here, as in DuckDB
    return first + fields["W" if from_monday else "U"] * 7 + weekday


# One text at a time ---------------------------------------------------------------------------------------------------

#: As many digits as there are, up to so many, and none of them is given back to what follows.
_DIGITS = {
    "Y": r"\d{1,4}+",
    "G": r"\d{1,4}+",
    "u": r"\d",
    "w": r"\d",
    "j": r"\d{1,3}+",
    "g": r"\d{1,3}+",
    "f": r"\d{1,6}+",
    "n": r"\d{1,9}+",
}

#: What may stand beside a week.
_SOLE_WEEKS = (frozenset("YyU"), frozenset("YyW"), frozenset("GV"))
#: Weeks that stand beside a date, which is all that counts.
_WEEKS_OF_DATES = (frozenset("YymdU"), frozenset("YymdW"))


def _pattern_expression(pattern: str) -> tuple[re.Pattern[str], list[str]]:
    """A regular expression with one group per specifier, and the specifiers' letters."""
    parts: list[str] = []
    letters: list[str] = []
    for is_code, text in parse_format(pattern):
        if not is_code:
            parts.append(re.escape(text).replace(r"\ ", r"\s+"))
            continue
        for letter_or_text in _COMPOSED.get(text[-1], text[-1]):
            if not letter_or_text.isalpha():
                parts.append(re.escape(letter_or_text))
                continue
            if letter_or_text in _NAMES:
                parts.append(f"({'|'.join(_NAMES[letter_or_text])})")
            elif letter_or_text == "z":
                parts.append(r"([+-]\d{2}(?::?\d{2})?+)")
            else:
                parts.append("(" + _DIGITS.get(letter_or_text, r"\d{1,2}+") + ")")
            letters.append(letter_or_text)
    others = set(letters) - set("uwaAHIMSpfngz")
    if not _IN_WEEKS.isdisjoint(others) and not any(others <= each for each in _SOLE_WEEKS + _WEEKS_OF_DATES):
        raise UnsupportedError(
            f'strptime: the pattern "{pattern}" of weeks beside other dates is not supported'
        )
    return re.compile(r"\s*" + "".join(parts) + r"\s*", re.IGNORECASE), letters


#: The first instant of 1900.
_WITHOUT_FIELDS = -2_208_988_800_000_000
#: Read whatever the pattern.
_INSTANTS = {"epoch": 0, "infinity": time_limits.INFINITE_TICK, "-infinity": -time_limits.INFINITE_TICK}


def _parse(
    texts: list[str], expression: re.Pattern[str], letters: list[str], pattern: str, is_try: bool
) -> tuple[list[int], list[bool]]:
    """Microseconds of each text, and whether it is an instant; without `is_try` raises ExecutionError for one that is none."""
    instants = [_INSTANTS.get(text.strip(WHITE_SPACE).lower()) for text in texts]
    if is_try:  # DuckDB then forgets which of these it was, and that no field was read
        instants = [None if instant is None else _WITHOUT_FIELDS for instant in instants]
    others = [text for text, instant in zip(texts, instants, strict=True) if instant is None]
    matches = [expression.fullmatch(text) for text in others]
    numbers = [
        [_number(letter, match[group]) if match else 0 for match in matches]
        for group, letter in enumerate(letters, 1)
    ]
    fields = {letter: np.array(column, np.int64) for letter, column in zip(letters, numbers, strict=True)}
    is_match = np.array([match is not None for match in matches], np.bool_)
    values, checks = _instants(fields, is_match)
    is_instant = np.array(is_match)
    for reason, is_sound in {
        "": is_match,
        **{f": {reason}": sound for reason, sound in checks.items()},
    }.items():
        failed = np.flatnonzero(~np.broadcast_to(is_sound, is_match.shape))
        is_instant &= is_sound
        if len(failed) and not is_try:
            raise ExecutionError(
                f'Could not parse string "{others[failed[0]]}" according to format specifier "{pattern}"{reason}'
            )
    read = iter(zip((values * is_instant).tolist(), is_instant.tolist(), strict=True))
    found = [next(read) if instant is None else (instant, True) for instant in instants]
    return [value for value, _ in found], [is_known for _, is_known in found]


def _number(letter: str, text: str) -> int:
    """Of what a specifier matched."""
    if letter in _NAMES:
        return [name.lower() for name in _NAMES[letter]].index(text.lower())
    if letter == "z":
        seconds = int(text[1:3]) * 3_600 + int(text[3:].strip(":") or 0) * 60
        return -seconds if text[0] == "-" else seconds
    return int(text.ljust(_WIDTHS[letter], "0") if letter in "fgn" else text)
