"""Read text in its plain forms, all rows at once: numbers, dates, times and intervals as they are mostly written.

What is read here has one meaning, the same as DuckDB's; every other text is left to the parsers of `tqp.core.text.parsers`, which know all forms and say what is wrong.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.core.datatypes import MAX_DECIMAL_PRECISION, TICKS_PER_SECOND, TIMESTAMP, DataType, TypeKind
from tqp.core.text.numbers import FALSE_TEXTS, TRUE_TEXTS
from tqp.core.units import UNIT_NAMES, UNITS
from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.memory.arrays import host_form
from tqp.operators.numbers.elementwise import floor_divide
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.layout import from_list, take, to_arrow, to_host
from tqp.operators.strings.words import WORD, leading_words, word_of
from tqp.operators.temporal import dates
from tqp.operators.text.fields import byte_mask, digits_of_word, read_fields, read_fraction, read_integers
from tqp.operators.text.uuids import read_uuids

#: Values in the storage of the type, and bool [n]: the rows that were read (None: all valid ones).
Reading = tuple[Tensor, Tensor | None]


def read_plain(strings: Strings, validity: Tensor | None, target: DataType) -> Reading | None:
    """The rows in a plain form of the type; None if it has none."""
    if strings.num_rows == 0:
        return None
    if is_host(strings.starts) or target.is_decimal or target.is_float:
        values = _read_by_arrow(strings, validity, target)
        if values is not None:
            return values.to(strings.starts.device), None
    if target.is_integer:
        return _read_integers(strings, target)
    if target.is_decimal or target.is_float:
        return _read_fractions(strings, target)
    if target.is_timestamp:
        return _read_timestamps(strings, target)
    match target.kind:
        case TypeKind.BOOLEAN:
            return _read_booleans(strings)
        case TypeKind.DATE:
            values, fits = _dates_at_start(strings)
            return values, fits & (strings.lengths == _DATE_WIDTH)
        case TypeKind.TIME:
            return _clock_to_end(strings, 0, time_limits.MICROSECONDS_PER_SECOND)
        case TypeKind.INTERVAL:
            return _read_intervals(strings)
        case TypeKind.UUID:
            return read_uuids(strings)
    return None


def _arrow_type(target: DataType) -> pa.DataType | None:
    """The type as which Arrow reads text like DuckDB; None if it does not."""
    if target.is_integer:
        return pa.int64()
    if target.is_decimal:
        return pa.decimal128(target.precision, target.scale)
    return {
        TypeKind.FLOAT: pa.float32(),
        TypeKind.DOUBLE: pa.float64(),
        TypeKind.DATE: pa.date32(),
        TypeKind.TIMESTAMP: pa.timestamp("us"),
        TypeKind.TIMESTAMP_TZ: pa.timestamp("us"),
    }.get(target.kind)


def _read_by_arrow(
    strings: Strings, validity: Tensor | None, target: DataType, width: int | None = None
) -> Tensor | None:
    """All valid rows in one call of Arrow's, on the host: 10 to 30 ns a row, where the steps below take 40 to 100.

    None if a row is in a form that Arrow does not read, or may be in one that it reads in another way than DuckDB, or if
    a valid row has another `width`, or a T between day and time where one is asked for.
    """
    arrow_type = _arrow_type(target)
    if arrow_type is None:
        return None
    text, lengths = to_arrow(strings, validity), strings.lengths.cpu().numpy()
    if (target.is_integer or target.is_decimal) and _highest_byte(text) > ord("9"):
        return None  # exponents, or digits of base 16
    if target.is_decimal:
        longest = int(lengths.max())
        short = _short_decimals(text, target) if longest <= _DIGITS_OF_DOUBLE else None
        if short is not None:
            return short
        if longest + target.scale > MAX_DECIMAL_PRECISION:
            return None  # digits that are counted and scaled wrap round
    if target.is_timestamp and (lengths == _HOUR_WIDTH).any():
        return None
    if width is not None:
        is_other = (lengths != width) & (lengths > 0)
        if is_other.any() or _highest_byte(text) > ord(":"):
            return None
    try:
        read = text.cast(arrow_type).fill_null(0)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if target.is_decimal:
        return _decimal_storage(read)
    if target.kind is TypeKind.DATE:
        read = read.cast(pa.int32())
    values = torch.from_numpy(np.array(read if target.is_float else read.cast(pa.int64())))
    if target.is_float:  # Arrow takes more spellings of NaN
        return None if bool(values.isnan().any()) else values
    if target.is_integer:
        low, high = target.bounds
        array = values.numpy()
        return values if low <= array.min() and array.max() <= high else None
    return values


#: Decimal digits that a DOUBLE keeps, and numbers below which two roundings and that of a power of ten take it off by 0.1 at most.
_DIGITS_OF_DOUBLE, _MOST_NEAR = 15, 2**48


def _short_decimals(text: pa.LargeStringArray, target: DataType) -> Tensor | None:
    """The scaled integers of decimals of up to 15 digits, read as DOUBLEs, which takes two fifths of the time of Arrow's decimals.

    A DOUBLE is near enough to its text to tell which integer is next to it, but where it is about half-way between two.
    None if one is, or a row is in another form, or beyond the type's range.
    """
    try:
        read = text.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    scaled = np.array(read.fill_null(0.0) if read.null_count else read)
    scaled *= 10.0**target.scale
    nearest = np.rint(scaled)
    np.abs(np.subtract(scaled, nearest, out=scaled), out=scaled)
    limit = min(_MOST_NEAR, 10**target.precision)
    if scaled.max() > _CLEARLY_NEAR or nearest.max() >= limit or nearest.min() <= -limit:
        return None
    return torch.from_numpy(nearest.astype(np.int64))


#: How far from an integer what a DOUBLE says is on the same side of the half, whatever it is off by.
_CLEARLY_NEAR = 0.4


def _highest_byte(text: pa.LargeStringArray) -> int:
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int64)
    used = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data else ends[:0]
    return int(used.max(initial=0))


def read_instants(strings: Strings, validity: Tensor | None, width: int) -> Tensor | None:
    """Microseconds, int64 [n], where all valid rows are like 2024-02-29 or, by `width`, 2024-02-29 23:59:59; else None."""
    return _read_by_arrow(strings, validity, TIMESTAMP, width) if is_host(strings.starts) else None


def _read_booleans(strings: Strings) -> Reading:
    """The words for truth in small letters."""
    word, lengths = host_form(leading_words(strings, WORD)[0]), host_form(strings.lengths)
    found: dict[bool, Any] = {}
    for truth, texts in ((True, TRUE_TEXTS), (False, FALSE_TEXTS)):
        found[truth] = lengths < 0
        for text in texts:
            found[truth] = found[truth] | ((word == word_of(text.encode())) & (lengths == len(text)))
    return torch.as_tensor(found[True]), torch.as_tensor(found[True] | found[False])


# Numbers --------------------------------------------------------------------------------------------------------------


def _read_integers(strings: Strings, target: DataType) -> Reading:
    values, fits = read_integers(strings)
    low, high = target.bounds
    if low == 0:  # an unsigned type takes no minus
        fits &= leading_words(strings, 1)[0] != ord("-")
    if low > -(2**63):
        fits &= (values >= low) & (values <= min(high, 2**63 - 1))
    return values * fits, fits


def _read_fractions(strings: Strings, target: DataType) -> Reading:
    """Decimals and floats by Arrow, of rows that are digits, with a point between some of them or without."""
    whole, fraction = "[0-9]+", r"(\.[0-9]+)?"
    if (
        target.is_decimal
    ):  # the digits before the point are limited, whatever the number; more behind it are rounded
        most = target.precision - target.scale
        whole = rf"[0-9]{{1,{most}}}" if most else "0"
        fraction = rf"(\.[0-9]{{1,{target.scale}}})?" if target.scale else ""
    mask = pc.match_substring_regex(to_arrow(strings), f"^-?{whole}{fraction}$")
    fits = torch.from_numpy(np.array(mask, np.bool_))
    host = to_host(strings)
    read = to_arrow(host._replace(lengths=host.lengths * fits), fits).cast(_arrow_type(target)).fill_null(0)
    values = _decimal_storage(read) if target.is_decimal else torch.from_numpy(np.array(read))
    return values.to(strings.starts.device), fits.to(strings.starts.device)


def _decimal_storage(parsed: pa.Array[Any]) -> Tensor:
    """The scaled integers of a decimal128 array without NULLs: int64 [n], or wide [n, 2] where one exceeds 64 bits."""
    halves = np.frombuffer(parsed.buffers()[1], dtype=np.int64).reshape(-1, 2)
    low, high = halves[parsed.offset : parsed.offset + len(parsed)].T  # Arrow has the low half first
    if np.array_equal(high, low >> 63):
        return torch.from_numpy(low.copy())
    return torch.from_numpy(np.stack([high, low], 1))


# Dates and times ------------------------------------------------------------------------------------------------------

_DATE_WIDTH = 10
_HOUR_WIDTH = 13  # 2024-02-29 23, which DuckDB does not take
_CLOCK_WIDTH = 8


def _dates_at_start(strings: Strings) -> tuple[Tensor, Tensor]:
    """Day numbers, int64 [n], of rows that begin like 2024-02-29, and which do: bool [n]."""
    (year, month, day), fits = read_fields(strings, (4, "-", 2, "-", 2))
    days, fits = dates.days_of_fields(year, month, day, fits)
    return torch.as_tensor(days * fits), torch.as_tensor(fits)


def _clock_to_end(strings: Strings, offset: int, per_second: int) -> tuple[Tensor, Tensor]:
    """Ticks since midnight, int64 [n], of rows like 23:59:59.25 from `offset` on, and which are: bool [n].

    What is less than a tick is cut off.
    """
    rest = strings
    if offset:
        skipped = (strings.lengths - offset).clamp_(min=0)
        rest = Strings(strings.starts + offset * (skipped > 0), skipped, strings.data)
    (hour, minute, second), fits = read_fields(rest, (2, ":", 2, ":", 2))
    fits = fits & (hour < 24) & (minute < 60) & (second < 60)
    ticks = torch.as_tensor((hour * 3600 + minute * 60 + second) * per_second)
    sound = torch.as_tensor(fits)
    if int(rest.lengths.max()) > _CLOCK_WIDTH:
        fraction, ends = read_fraction(rest, _CLOCK_WIDTH)
        sound &= torch.as_tensor(ends)
        ticks = ticks + floor_divide(torch.as_tensor(fraction), 10**9 // per_second)
    return ticks * sound, sound


def _read_timestamps(strings: Strings, target: DataType) -> Reading | None:
    ticks = TICKS_PER_SECOND[target.kind]
    if ticks < time_limits.MICROSECONDS_PER_SECOND:  # these round
        return None
    if target.kind is TypeKind.TIMESTAMP_TZ:
        strings = _without_utc(strings)
    days, fits = _dates_at_start(strings)
    if ticks == 10**9:
        fits &= (days > -106_000) & (days < 106_000)  # what 64 bits hold
    has_clock = strings.lengths > _DATE_WIDTH
    values = days * (time_limits.SECONDS_PER_DAY * ticks)
    if not bool(has_clock.any()):
        return values * fits, fits
    blank = Strings(strings.starts + _DATE_WIDTH * has_clock, has_clock.to(torch.int32), strings.data)
    mark = leading_words(blank, 1)[0]
    clock, is_clock = _clock_to_end(strings, _DATE_WIDTH + 1, ticks)
    fits &= ~has_clock | (is_clock & ((mark == ord(" ")) | (mark == ord("T"))))
    values = values + clock * has_clock
    return values * fits, fits


def _without_utc(strings: Strings) -> Strings:
    """The rows without +00 at their ends."""
    is_long = strings.lengths > _DATE_WIDTH + 3
    tail = Strings(strings.starts + (strings.lengths - 3) * is_long, is_long * 3, strings.data)
    word = leading_words(tail._replace(lengths=tail.lengths.to(torch.int32)), 3)[0]
    is_utc = word == int.from_bytes(b"+00", "little")
    return strings._replace(lengths=strings.lengths - 3 * is_utc.to(torch.int32))


# Intervals ------------------------------------------------------------------------------------------------------------

#: Those of months first, then days.
_WORDS = sorted(UNIT_NAMES, key=lambda word: UNITS[UNIT_NAMES[word]], reverse=True)
#: How many months, days and microseconds each word means: int64 [3, words].
_AMOUNTS = np.array([UNITS[UNIT_NAMES[word]] for word in _WORDS], np.int64).T.copy()
#: More numbers than any sensible interval has.
_MOST_NUMBERS = 16
_LONGEST_UNIT = 16


def _read_intervals(strings: Strings) -> Reading:
    """Numbers, each with its unit behind a blank, and a clock at the end: '1 year -2 days 03:04:05'.

    The next number of all rows that have one is read at once.
    """
    device = strings.starts.device
    # Months, days and microseconds.
    fields = [torch.zeros(strings.num_rows, dtype=torch.int64, device=device) for _ in range(3)]
    fits = strings.lengths > 0
    rest, rows = strings, torch.arange(strings.num_rows, device=device)
    for _ in range(_MOST_NUMBERS):
        word = leading_words(rest, WORD)[0]
        blank, has_blank = _first_blank(word)
        last = row_indices(~has_blank)
        if last.shape[0]:  # a clock, or nothing that is known
            microseconds, is_clock = _signed_clock(take(rest, last))
            fields[2].index_add_(0, rows[last], microseconds * is_clock)
            fits.index_fill_(0, rows[last[~is_clock]], False)
            more = row_indices(has_blank)
            rest, rows, blank, word = take(rest, more), rows[more], blank[more], word[more]
        if not rows.shape[0]:
            break
        numbers, is_sound = _few_digits(word, blank)
        rest = _behind(rest, blank)
        unit, lengths, is_unit = _units(rest)
        is_sound &= is_unit
        if not bool(is_sound.all()):
            fits.index_fill_(0, rows[row_indices(~is_sound)], False)
            numbers *= is_sound
        low, high = int(unit.min()), int(unit.max())
        for field, amounts in zip(fields, torch.from_numpy(_AMOUNTS).to(device), strict=True):
            if bool(amounts[low : high + 1].any()):
                amount = torch.index_select(amounts, 0, unit) * numbers
                if rows.shape[0] == strings.num_rows:
                    field += amount
                else:
                    field.index_add_(0, rows, amount)
        left = row_indices(is_sound & (rest.lengths > lengths))
        if not left.shape[0]:
            break
        rest, rows = take(_behind(rest, lengths), left), rows[left]
    else:
        fits.index_fill_(0, rows, False)
    for field in fields[:2]:
        if max(int(field.max()), -int(field.min())) >= 2**31 - 1:
            fits &= field.abs() < 2**31 - 1
    values = torch.stack(fields, 1)
    return values if bool(fits.all()) else values * fits.unsqueeze(1), fits


def _few_digits(word: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """The integer, with a minus or none, in the first `count` bytes of a word, up to seven: int64 [n], and whether it is one."""
    is_negative = (word & 0xFF) == ord("-")
    has_signs = bool(is_negative.any())
    if has_signs:
        signs = is_negative.to(torch.int64)
        word, count = word >> (signs * 8), count - signs
    number, is_number = map(torch.as_tensor, digits_of_word(host_form(word), host_form(count)))
    return torch.where(is_negative, -number, number) if has_signs else number, is_number & (count > 0)


_ONES = 0x0101010101010101
_HIGHEST = -0x7F7F7F7F7F7F7F80  # the highest bit of each byte


def _first_blank(word: Tensor) -> tuple[Tensor, Tensor]:
    """Which of the eight bytes of a word is the first blank (int64 [n], any number if none is), and whether one is."""
    others = word ^ (_ONES * ord(" "))
    found = (others - _ONES) & ~others & _HIGHEST  # set in the first byte that is zero, and in none before it
    below = (found & -found) - 1
    return (((below & _ONES) * _ONES) >> 56) - 1, found != 0


def _behind(strings: Strings, lengths: Tensor) -> Strings:
    """What is left of each row behind its first `lengths` bytes and the blank after them."""
    skipped = torch.minimum(lengths + 1, strings.lengths).to(torch.int32)
    return Strings(strings.starts + skipped, strings.lengths - skipped, strings.data)


@lru_cache
def _unit_keys() -> tuple[Tensor, ...]:
    """Of each unit's name a number, ascending, its two words, its length and its place in `_WORDS`: int64 [words] each."""
    names = from_list(_WORDS)
    first, second = leading_words(names, _LONGEST_UNIT)
    keys, order = _unit_key(first, second).sort()
    return keys, first[order], second[order], names.lengths[order].to(torch.int64), order


def _unit_key(first: Tensor, second: Tensor) -> Tensor:
    return first ^ (second * 0x2545F4914F6CDD1D)


def _units(strings: Strings) -> tuple[Tensor, Tensor, Tensor]:
    """The unit that each row begins with, up to a blank or its end: its place in `_WORDS`, its bytes, and whether it is one.

    One place where all rows are the same unit.
    """
    first, second = leading_words(strings, _LONGEST_UNIT)
    if all(bool((part == part[0]).all()) for part in (first, second, strings.lengths)):
        first, second = first[:1], second[:1]
    place, is_unit = _unit(first, second, strings.lengths[: first.shape[0]])
    if bool(is_unit.all()):
        return place, strings.lengths, is_unit
    lengths = strings.lengths.clamp(max=_LONGEST_UNIT).to(torch.int64)
    for offset, word in ((WORD, second), (0, first)):
        blank, has_blank = _first_blank(word)
        lengths = torch.where(has_blank, blank + offset, lengths)
    first, second = first & byte_mask(lengths), second & byte_mask(lengths - WORD)
    place, is_unit = _unit(first, second, lengths)
    return place, lengths, is_unit


def _unit(first: Tensor, second: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The unit of these two words and so many bytes: its place in `_WORDS`, and whether there is one."""
    keys, firsts, seconds, sizes, places = (each.to(first.device) for each in _unit_keys())
    found = torch.searchsorted(keys, _unit_key(first, second)).clamp_(max=keys.shape[0] - 1)
    is_unit = (
        (torch.index_select(firsts, 0, found) == first)
        & (torch.index_select(seconds, 0, found) == second)
        & (torch.index_select(sizes, 0, found) == lengths)
    )
    return torch.index_select(places, 0, found), is_unit


def _signed_clock(tokens: Strings) -> tuple[Tensor, Tensor]:
    """As `_clock_to_end` in microseconds, with a minus before it or none."""
    is_negative = leading_words(tokens, 1)[0] == ord("-")
    signs = is_negative.to(torch.int32)
    unsigned = Strings(tokens.starts + signs, tokens.lengths - signs, tokens.data)
    microseconds, fits = _clock_to_end(unsigned, 0, time_limits.MICROSECONDS_PER_SECOND)
    return torch.where(is_negative, -microseconds, microseconds), fits
