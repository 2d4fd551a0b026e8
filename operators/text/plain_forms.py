"""Read text in its plain forms, all rows at once: numbers, dates, times and intervals as they are mostly written.

What is read here has one meaning, the same as DuckDB's; every other text is left to the parsers of `tqp.core.text_values`, which know all forms and say what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.core.datatypes import MAX_DECIMAL_PRECISION, TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.text_times import DAYS_OF_UNITS, MICROSECONDS_OF_UNITS, MONTHS_OF_UNITS, UNIT_NAMES
from tqp.data.strings import Strings
from tqp.operators.numbers import wide
from tqp.operators.strings.layout import compact, from_arrow, to_arrow, to_host
from tqp.operators.strings.words import leading_words
from tqp.operators.temporal import dates
from tqp.operators.text.fields import read_fields, read_fraction, read_integers

#: Values in the storage of the type, and bool [n]: the rows that were read (None: all valid ones).
Reading = tuple[Tensor, Tensor | None]


def read_plain(strings: Strings, validity: Tensor | None, target: DataType) -> Reading | None:
    """The rows in a plain form of the type; None if it has none."""
    if strings.num_rows == 0:
        return None
    if target.is_integer:
        return _read_integers(strings, target)
    if target.is_decimal:
        return _read_decimals(strings, validity, target)
    if target.is_float:
        return _read_floats(strings, validity, target)
    if target.is_timestamp:
        return _read_timestamps(strings, target)
    match target.kind:
        case TypeKind.DATE:
            values, fits = _dates_at_start(strings)
            return values, fits & (strings.lengths == _DATE_WIDTH)
        case TypeKind.TIME:
            nanoseconds, fits = _clock_to_end(strings, 0)
            return nanoseconds // 1000, fits
        case TypeKind.INTERVAL:
            return _read_intervals(strings)
    return None


# Numbers --------------------------------------------------------------------------------------------------------------


def _read_integers(strings: Strings, target: DataType) -> Reading:
    values, fits = read_integers(strings)
    low, high = target.bounds
    if low == 0:  # an unsigned type takes no minus
        fits &= leading_words(strings, 1)[0] != ord("-")
    if low > -(2**63):
        fits &= (values >= low) & (values <= min(high, 2**63 - 1))
    return values * fits, fits


def _read_decimals(strings: Strings, validity: Tensor | None, target: DataType) -> Reading:
    if _has_plain_decimals(strings, target.scale):
        read = _by_arrow(strings, validity, pa.decimal128(target.precision, target.scale))
        if read is not None:
            return _decimal_storage(read, validity), None
    # The digits without the point, for rows with at most one, which has digits on both sides.
    text = to_arrow(strings)
    points = torch.from_numpy(np.array(pc.find_substring(text, "."), np.int64)).to(strings.starts.device)
    values, fits = read_integers(from_arrow(_without_first_point(text), strings.starts.device))
    has_point = points >= 0
    fraction = (strings.lengths - points - 1) * has_point
    first_digit = (leading_words(strings, 1)[0] < ord("0")).to(torch.int64)  # behind a sign
    fits &= ~has_point | ((points > first_digit) & (fraction > 0))
    missing = target.scale - fraction
    fits &= (missing >= 0) & (missing <= 18)
    powers = torch.tensor([10**power for power in range(19)], device=values.device)
    # The digits before the point are limited, whatever the number.
    whole = 10 ** min(target.precision - target.scale, 18)
    magnitude = torch.where(fits, values, 0).abs()
    shift = powers[missing.clamp(0, 18)]
    fits &= magnitude < (2**63 - 1) // shift
    fits &= magnitude < whole * powers[fraction.clamp(0, 18)].clamp(max=(2**63 - 1) // whole)
    return torch.where(fits, values, 0) * shift * fits, fits


def _without_first_point(text: pa.LargeStringArray) -> pa.LargeStringArray:
    return pc.replace_substring(text, ".", "", max_replacements=1)


def _read_floats(strings: Strings, validity: Tensor | None, target: DataType) -> Reading:
    arrow_type = pa.float32() if target.kind is TypeKind.FLOAT else pa.float64()
    read = _by_arrow(strings, validity, arrow_type)
    if read is not None:
        values = torch.from_numpy(np.array(read.fill_null(0)))
        if not bool(values.isnan().any()):  # Arrow takes more spellings of it
            return values.to(strings.starts.device), None
    # Digits, with a point between some of them or without.
    mask = pc.match_substring_regex(to_arrow(strings), r"^-?[0-9]+(\.[0-9]+)?$")
    fits = torch.from_numpy(np.array(mask, np.bool_))
    host = to_host(strings)
    text = to_arrow(host._replace(lengths=host.lengths * fits), fits)
    values = torch.from_numpy(np.array(text.cast(arrow_type).fill_null(0)))
    return values.to(strings.starts.device), fits.to(strings.starts.device)


def _by_arrow(strings: Strings, validity: Tensor | None, arrow_type: pa.DataType) -> Any:
    """All valid rows read by Arrow, on the host; None if one is in another form."""
    try:
        return to_arrow(strings, validity).cast(arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _has_plain_decimals(strings: Strings, scale: int) -> bool:
    """Whether none has an exponent, or more digits than Arrow can count and scale without wrapping round."""
    if int(strings.lengths.max()) + scale > MAX_DECIMAL_PRECISION:
        return False
    data = compact(strings).data
    return data.shape[0] == 0 or int(data.max()) <= ord("9")


def _decimal_storage(parsed: pa.Array[Any], validity: Tensor | None) -> Tensor:
    """The scaled integers of a decimal128 array: int64 [n], or wide [n, 2]."""
    halves = np.frombuffer(parsed.buffers()[1], dtype=np.int64).reshape(-1, 2)
    halves = halves[parsed.offset : parsed.offset + len(parsed)]
    values = torch.from_numpy(np.ascontiguousarray(halves[:, ::-1]))  # Arrow has the low half first
    if validity is not None:
        values = values * validity.cpu().unsqueeze(1)
    return values[:, 1].contiguous() if bool(wide.fits_narrow(values).all()) else values


# Dates and times ------------------------------------------------------------------------------------------------------

_DATE_WIDTH = 10
_CLOCK_WIDTH = 8


def _dates_at_start(strings: Strings) -> tuple[Tensor, Tensor]:
    """Day numbers, int64 [n], of rows that begin like 2024-02-29, and which do: bool [n]."""
    fields, fits = read_fields(strings, (4, "-", 2, "-", 2))
    year, month, day = (torch.as_tensor(field) for field in fields)
    sound = torch.as_tensor(fits) & (month >= 1) & (month <= 12)
    month = torch.where(sound, month, 1)
    sound &= (day >= 1) & (day <= dates.days_in_month(year, month))
    return dates.days_from_civil(year, month, day) * sound, sound


def _clock_to_end(strings: Strings, offset: int) -> tuple[Tensor, Tensor]:
    """Nanoseconds since midnight, int64 [n], of rows like 23:59:59.25 from `offset` on, and which are: bool [n]."""
    skipped = (strings.lengths - offset).clamp_(min=0)
    rest = Strings(strings.starts + offset * (skipped > 0), skipped, strings.data)
    fields, fits = read_fields(rest, (2, ":", 2, ":", 2))
    hour, minute, second = (torch.as_tensor(field) for field in fields)
    sound = torch.as_tensor(fits) & (hour < 24) & (minute < 60) & (second < 60)
    nanoseconds = (hour * 3600 + minute * 60 + second) * 10**9
    if bool((rest.lengths > _CLOCK_WIDTH).any()):
        fraction, ends = read_fraction(rest, _CLOCK_WIDTH)
        sound &= torch.as_tensor(ends)
        nanoseconds = nanoseconds + torch.as_tensor(fraction)
    return nanoseconds * sound, sound


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
    nanoseconds, is_clock = _clock_to_end(strings, _DATE_WIDTH + 1)
    fits &= ~has_clock | (is_clock & ((mark == ord(" ")) | (mark == ord("T"))))
    values = values + nanoseconds // (10**9 // ticks) * has_clock
    return values * fits, fits


def _without_utc(strings: Strings) -> Strings:
    """The rows without +00 at their ends."""
    is_long = strings.lengths > _DATE_WIDTH + 3
    tail = Strings(strings.starts + (strings.lengths - 3) * is_long, is_long * 3, strings.data)
    word = leading_words(tail._replace(lengths=tail.lengths.to(torch.int32)), 3)[0]
    is_utc = word == int.from_bytes(b"+00", "little")
    return strings._replace(lengths=strings.lengths - 3 * is_utc.to(torch.int32))


# Intervals ------------------------------------------------------------------------------------------------------------

_WORDS = list(UNIT_NAMES)
#: How many months, days and microseconds each word means: int64 [3, words].
_AMOUNTS = np.array(
    [
        [table.get(UNIT_NAMES[word], 0) for word in _WORDS]
        for table in (MONTHS_OF_UNITS, DAYS_OF_UNITS, MICROSECONDS_OF_UNITS)
    ],
    np.int64,
)
#: Numbers of so few digits times any unit, a few times over, fit 64 bits.
_FEW_DIGITS = 7


def _read_intervals(strings: Strings) -> Reading:
    """Numbers, each with its unit behind a blank, and a clock at the end: '1 year -2 days 03:04:05'."""
    device = strings.starts.device
    split = pc.split_pattern(to_arrow(strings), " ")
    offsets = torch.from_numpy(np.array(split.offsets, np.int64))
    tokens = from_arrow(split.values)
    counts = offsets[1:] - offsets[:-1]
    rows = torch.repeat_interleave(counts)
    place = torch.arange(tokens.num_rows) - offsets[:-1][rows]
    is_unit_place = place % 2 == 1
    is_last = place == counts[rows] - 1
    numbers, is_number = read_integers(tokens)
    is_number &= (tokens.lengths <= _FEW_DIGITS) & (leading_words(tokens, 1)[0] != ord("+"))
    words = pc.index_in(split.values, value_set=pa.array(_WORDS, pa.large_string()))
    codes = torch.from_numpy(np.array(words.fill_null(-1), np.int64))
    fits_token = torch.where(is_unit_place, codes >= 0, is_number & ~is_last)
    # A number counts by the unit behind it.
    counted = numbers * (is_number & ~is_unit_place & ~is_last)
    units = torch.roll(codes, -1).clamp(min=0)
    amounts = [torch.from_numpy(_AMOUNTS[part])[units] * counted for part in range(3)]
    if bool((tokens.data == ord(":")).any()):
        nanoseconds, is_clock = _signed_clock(tokens)
        is_clock &= is_last & ~is_unit_place
        fits_token |= is_clock
        amounts[2] = amounts[2] + nanoseconds // 1000 * is_clock
    values = torch.stack([_sums_between(amount, offsets) for amount in amounts], 1)
    fits = _sums_between(~fits_token, offsets) == 0
    fits &= (values[:, :2].abs() < 2**31 - 1).all(1)
    return (values * fits.unsqueeze(1)).to(device), fits.to(device)


def _sums_between(amounts: Tensor, offsets: Tensor) -> Tensor:
    """The sums of amounts [m] between each two neighbours of offsets [n + 1]: int64 [n]."""
    sums = torch.zeros(amounts.shape[0] + 1, dtype=torch.int64)
    torch.cumsum(amounts, 0, out=sums[1:])
    found = torch.index_select(sums, 0, offsets)
    return found[1:] - found[:-1]


def _signed_clock(tokens: Strings) -> tuple[Tensor, Tensor]:
    """As `_clock_to_end`, with a minus before it or none, to microseconds."""
    is_negative = leading_words(tokens, 1)[0] == ord("-")
    signs = is_negative.to(torch.int32)
    unsigned = Strings(tokens.starts + signs, tokens.lengths - signs, tokens.data)
    nanoseconds, fits = _clock_to_end(unsigned, 0)
    nanoseconds = nanoseconds // 1000 * 1000
    return torch.where(is_negative, -nanoseconds, nanoseconds), fits
