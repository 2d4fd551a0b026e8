"""Write dates, times, timestamps and intervals as DuckDB prints them: digits at fixed places, all rows at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.core import time_limits, zoned_times
from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.data.strings import Strings
from tqp.operators.memory.arrays import Array, host_form
from tqp.operators.numbers.arithmetic import value_range
from tqp.operators.numbers.elementwise import floor_divide, truncate_divide
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.build import join
from tqp.operators.strings.layout import choose, from_list, replace_rows, take
from tqp.operators.temporal import dates
from tqp.operators.text.number_format import format_integers
from tqp.operators.text.runs import WORD, Run, digit_counts, digits, literal, look_up, paste, strings_of

#: Digits of the years of DATE.
LONGEST_YEAR = 7


#: A table of days that is kept begins and ends at multiples of so many, so that batches with other ends find the same ...
_CALENDAR_STEP = 1024
#: ... spans so many at most, 179 years: a megabyte of two words a day ...
_CALENDAR_DAYS = 64 * _CALENDAR_STEP
#: ... and so many for each row of the batch that first asks for it.
_CALENDAR_SHARE = 4


def by_value(values: Any, write: Callable[[Any], Any]) -> Any:
    """write(values), Strings or a run, of int64 [n], a tensor or an array: once for each integer of a short range."""
    rows = values.shape[0]
    low, high = (int(values.min()), int(values.max())) if rows else (0, 0)
    if high - low >= rows // 2:
        return write(values)
    span = low + np.arange(high - low + 1)  # the end itself may be the last of 64 bits, behind a NULL
    return _looked_up(
        write(torch.from_numpy(span).to(values.device) if isinstance(values, Tensor) else span), values - low
    )


def by_day(days: Any, write: Callable[[Any], Any]) -> Any:
    """As `by_value` of day numbers; what arrays look up is kept, so that only the first batch writes it.

    `write` is known again as the same object: a function of a module, or what the caller keeps.
    """
    rows = days.shape[0]
    if not isinstance(days, np.ndarray) or not rows:
        return by_value(days, write)
    first = int(days.min()) // _CALENDAR_STEP * _CALENDAR_STEP
    size = (int(days.max()) - first) // _CALENDAR_STEP * _CALENDAR_STEP + _CALENDAR_STEP
    if size > min(_CALENDAR_DAYS, _CALENDAR_SHARE * rows):
        return by_value(days, write)
    return _looked_up(_calendar(write, first, size), days - first)


@lru_cache(maxsize=32)
def _calendar(write: Callable[[Any], Any], first: int, size: int) -> Any:
    """write(days) of the days from `first` on."""
    return write(np.arange(first, first + size))


def _looked_up(table: Any, places: Any) -> Any:
    """The rows of Strings or of a run at the places, int64 [n]."""
    if isinstance(table, Strings):
        return take(table, torch.as_tensor(places))
    return Run(
        [word if isinstance(word, int) else look_up(word, places) for word in table.words], table.width
    )


def format_dates(values: Tensor) -> Strings:
    """'2024-02-29', '0044-03-15 (BC)', 'infinity'."""
    written: Strings = by_value(values.reshape(-1).to(torch.int64), _dates_row_by_row)
    return written


#: Days of the years that four digits write: 0001-01-01 to 9999-12-31.
_FIRST_PLAIN_DAY, _LAST_PLAIN_DAY = -719_162, 2_932_896


def _dates_row_by_row(days: Tensor) -> Strings:
    plain, others = plain_days(days)
    written = strings_of(date_run(plain), plain)
    if others is None:
        return written
    return replace_rows(written, others, with_infinity(days[others], _far_dates(days[others])))


def plain_days(days: Tensor) -> tuple[Any, Tensor | None]:
    """The days, an array on the CPU, with a plain one in place of each whose year has not four digits, and the rows of these."""
    if not days.numel() or (int(days.min()) >= _FIRST_PLAIN_DAY and int(days.max()) <= _LAST_PLAIN_DAY):
        return host_form(days), None
    is_plain = (days >= _FIRST_PLAIN_DAY) & (days <= _LAST_PLAIN_DAY)
    return host_form(days * is_plain), row_indices(~is_plain)


def date_run(days: Any) -> Run:
    """'2024-02-29' of day numbers int64 [n], a tensor or an array, of years with four digits."""
    year, month, day = dates.civil_from_days(days)
    return paste([digits(year, 4), literal("-"), digits(month, 2), literal("-"), digits(day, 2)])


def _far_dates(days: Tensor) -> Strings:
    """'12024-02-29', '0044-03-15 (BC)' of any day numbers int64 [n]; under a NULL may be one beyond all dates."""
    days = days.clamp(-time_limits.INFINITE_DAY, time_limits.INFINITE_DAY)
    year, month, day = dates.civil_from_days(host_form(days))
    is_before = year <= 0
    year = year + (1 - 2 * year) * is_before
    parts = [digits(year, LONGEST_YEAR), literal("-"), digits(month, 2), literal("-"), digits(day, 2)]
    run = paste([*parts, literal(" (BC)")])
    first = LONGEST_YEAR - digit_counts(year, LONGEST_YEAR).clip(min=4)
    return strings_of(run, year, first, run.width - len(" (BC)") * ~is_before)


def days_and_ticks(values: Tensor, data_type: DataType) -> tuple[Tensor, Tensor | None]:
    """As `dates.split_days`, int64 [n]; the days of infinite timestamps are infinite too."""
    days, ticks = dates.split_days(values.reshape(-1).to(torch.int64), data_type)
    finite = None if ticks is None else dates.finite_validity(values.reshape(-1), data_type)
    if finite is not None:
        days = torch.where(finite, days, torch.where(days > 0, 1, -1) * time_limits.INFINITE_DAY)
    return days, ticks


def with_infinity(days: Tensor, text: Strings) -> Strings:
    """The text of each row, but for those whose day is infinite."""
    words = [from_list([word], days.device) for word in ("infinity", "-infinity")]
    limit = time_limits.INFINITE_DAY
    return choose([days >= limit, days <= -limit], words, text)


def format_times(values: Tensor) -> Strings:
    """'23:59:59', '00:00:00.25'."""
    ticks = values.reshape(-1).to(torch.int64)
    return _with_clock([], ticks, time_limits.MICROSECONDS_PER_SECOND)


def format_times_with_zone(values: Tensor) -> Strings:
    """'23:59:59.25+01', '00:00:00-00:30:15'."""
    stored = values.reshape(-1).to(torch.int64)
    offsets = zoned_times.offset_of_stored(stored)
    return join([format_times(zoned_times.clock_of_stored(stored)), by_value(offsets, _format_offsets)])


def _format_offsets(offsets: Tensor) -> Strings:
    """'+01', '-00:30', '+05:45:15' of seconds east of UTC, int64 [n]: as much as is not zero behind the hours."""
    seconds = host_form(offsets.abs())
    colon = literal(":")
    parts = [digits(part, 2) for part in (seconds // 3600, seconds // 60 % 60, seconds % 60)]
    run = paste([literal("-"), parts[0], colon, parts[1], colon, parts[2]])
    shorter = 3 * (seconds % 60 == 0) + 3 * (seconds % 3600 == 0)
    text = strings_of(run, seconds, 0, run.width - shorter)
    east = row_indices(offsets >= 0)
    text.data[text.starts[east]] = ord("+")
    return text


def clock_run(seconds: Any) -> Run:
    """'23:59:59' of seconds since midnight, int64 [n], a tensor or an array."""
    return Run([look_up(_clock_table(), seconds)], 8)


@lru_cache
def _clock_table() -> Array:
    """All times of day as words: int64 [86401], 24:00:00 among them."""
    seconds = np.arange(time_limits.SECONDS_PER_DAY + 1)
    colon = literal(":")
    hour, minute, second = (digits(part, 2) for part in (seconds // 3600, seconds // 60 % 60, seconds % 60))
    (word,) = paste([hour, colon, minute, colon, second]).words
    return np.asarray(word)


def _with_clock(before: list[Run], ticks: Any, per_second: int, first: Any = 0) -> Strings:
    """Runs from byte `first` on, then the time of day in ticks: hours, minutes and seconds, and the fraction with its trailing
    zeros cut."""
    ticks = host_form(ticks)
    seconds = floor_divide(ticks, per_second)
    fraction = ticks - seconds * per_second
    runs = [*before, clock_run(seconds)]
    width = len(str(per_second)) - 1
    if not width or not bool((fraction != 0).any()):
        return strings_of(paste(runs), seconds, first)
    run = paste([*runs, literal("."), digits(fraction, width)])
    significant = (fraction != 0) * (width + 1)
    for zeros in range(1, width):
        is_round = fraction == floor_divide(fraction, 10**zeros) * 10**zeros
        if not bool(is_round.any()):
            break
        significant -= (is_round & (fraction != 0)) * 1  # torch subtracts no booleans
    return strings_of(run, seconds, first, run.width - width - 1 + significant)


def format_timestamps(values: Tensor, source: DataType) -> Strings:
    """'2024-02-29 12:00:00.5', with '+00' for TIMESTAMP WITH TIME ZONE; 'infinity'."""
    days, ticks = days_and_ticks(values, source)
    assert ticks is not None
    per_second = TICKS_PER_SECOND[source.kind]
    zone = [from_list(["+00"], values.device)] if source.kind is TypeKind.TIMESTAMP_TZ else []
    plain, others = plain_days(days)
    written = _with_clock([by_day(plain, date_run), literal(" ")], ticks, per_second)
    if zone:
        written = join([written, *zone])
    if others is None:
        return written
    clock = _with_clock([literal(" ")], ticks[others], per_second)
    far = join([_far_dates(days[others]), clock, *zone])
    return replace_rows(written, others, with_infinity(days[others], far))


def format_intervals(values: Tensor) -> Strings:
    """'1 year 2 months 3 days 04:05:06'; '00:00:00' if all fields are zero."""
    months, days, microseconds = values.reshape(-1, 3).unbind(1)
    if not bool((months != 0).any()):
        written = _days_with_clock(days, microseconds)
        if written is not None:
            return written
    years = truncate_divide(months, 12)
    parts: list[Strings] = []
    started = torch.zeros(months.shape[0], dtype=torch.bool, device=values.device)
    for count, unit in ((years, "year"), (months - years * 12, "month"), (days, "day")):
        present = count != 0
        if bool(present.any()):
            parts.append(_part(by_value(count.contiguous(), _counter_of(unit)), started, present))
            started = started | present
    clock = (microseconds != 0) | ~started
    if not parts or bool(clock.any()):
        parts.append(_part(_format_durations(microseconds), started, clock))
    return join(parts) if len(parts) > 1 else parts[0]


#: Before a clock stand at most so many bytes: '-12345678 days -'.
_DAYS_WIDTH = 16
_MOST_DAYS = 10**8


def _days_with_clock(days: Tensor, microseconds: Tensor) -> Strings | None:
    """As `format_intervals`, of days within a short range and a clock of less than a day; None of others.

    What stands before the clock comes from a table, with its end where the clock begins.
    """
    if not days.shape[0]:
        return None
    days, microseconds = days.contiguous(), microseconds.contiguous()  # out of rows of three
    low, high = value_range(days)
    is_short = high - low < days.shape[0] // 2 and low > -_MOST_DAYS and high < _MOST_DAYS
    day = time_limits.MICROSECONDS_PER_DAY
    shortest, longest = value_range(microseconds)
    if not is_short or shortest <= -day or longest >= day:
        return None
    words, lengths = _before_clock(low, high)
    codes = (days - low) * 2 + (microseconds < 0)
    of_rows = host_form(codes)
    before = Run([look_up(word, of_rows) for word in words], _DAYS_WIDTH)
    size = look_up(lengths, of_rows)
    written = _with_clock(
        [before], microseconds.abs(), time_limits.MICROSECONDS_PER_SECOND, _DAYS_WIDTH - size
    )
    no_clock = row_indices((microseconds == 0) & (days != 0))
    if no_clock.shape[0]:
        alone = (torch.as_tensor(size)[no_clock] - 1).to(torch.int32)  # without the blank
        written.lengths.index_copy_(0, no_clock, alone)
    return written


def _before_clock(low: int, high: int) -> tuple[list[Array], Array]:
    """'-3 days ' and '-3 days -' of each number of days, one after the other: two words, right-aligned, and the length.

    int64 [2 * numbers]. No days are no bytes.
    """
    counts = np.repeat(np.arange(low, high + 1), 2)
    is_minus = np.arange(len(counts)) % 2 == 1
    sizes = digit_counts(np.abs(counts), len(str(_MOST_DAYS)))
    number = np.asarray(digits(np.abs(counts), WORD).words[0])
    text = np.zeros((len(counts), _DAYS_WIDTH), np.uint8)
    lengths = is_minus.astype(np.int64)
    text[:, -1] = ord("-")
    for unit, of_unit in (("day", np.abs(counts) == 1), ("days", np.abs(counts) > 1)):
        for end, of_end in ((" ", ~is_minus), (" -", is_minus)):
            rows = np.flatnonzero(of_unit & of_end)
            behind = f" {unit}{end}".encode()
            stop = _DAYS_WIDTH - len(behind)
            text[rows, stop - WORD : stop] = number[rows].view(np.uint8).reshape(-1, WORD)
            text[rows, stop:] = np.frombuffer(behind, np.uint8)
            lengths[rows] = sizes[rows] + len(behind)
    negative = np.flatnonzero(counts < 0)
    lengths[negative] += 1
    text[negative, _DAYS_WIDTH - lengths[negative]] = ord("-")
    words = text.view(np.int64)
    return [np.ascontiguousarray(words[:, place]) for place in range(2)], lengths


def _part(text: Strings, started: Tensor, present: Tensor) -> Strings:
    """A part of an interval where it is present, without its leading blank where nothing stands before it."""
    skipped = (~started).to(torch.int32)
    return Strings(text.starts + skipped, (text.lengths - skipped) * present, text.data)


def _counter_of(unit: str) -> Callable[[Tensor], Strings]:
    def write(counts: Tensor) -> Strings:
        """' 1 day', ' -2 days'."""
        units = from_list([f" {unit}s"], counts.device)
        lengths = units.lengths - ((counts == 1) | (counts == -1)).to(torch.int32)
        numbers = [from_list([" "], counts.device), format_integers(counts)]
        return join([*numbers, Strings(torch.zeros_like(counts), lengths, units.data)])

    return write


def _format_durations(microseconds: Tensor) -> Strings:
    """' -04:05:06.5': a clock of as many hours as there are."""
    # Whole seconds first: the least int64 has no positive counterpart.
    seconds = truncate_divide(microseconds, time_limits.MICROSECONDS_PER_SECOND)
    fraction = (microseconds - seconds * time_limits.MICROSECONDS_PER_SECOND).abs_()
    seconds = seconds.abs_()
    hours = floor_divide(seconds, 3600)
    is_short = hours < 24  # the table of times of day ends there
    ticks = (seconds - hours * 3600 * ~is_short) * time_limits.MICROSECONDS_PER_SECOND + fraction
    negative = microseconds < 0
    signs = (~negative).to(torch.int64)
    text = _with_clock(
        [literal(" -")],
        ticks,
        time_limits.MICROSECONDS_PER_SECOND,
        host_form(signs),
    )
    plain = row_indices(~negative)
    text.data[text.starts[plain]] = ord(" ")
    long = row_indices(~is_short)
    if not long.shape[0]:
        return text
    # Hours beyond a day's stand before the minutes.
    head, rest = negative[long] + 1, take(text, long)
    skipped = head + 2
    parts = [
        Strings(rest.starts, head.to(torch.int32), rest.data),
        format_integers(hours[long]),
        Strings(rest.starts + skipped, (rest.lengths - skipped).to(torch.int32), rest.data),
    ]
    return replace_rows(text, long, join(parts))
