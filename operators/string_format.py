"""Write values as DuckDB prints them: anything to VARCHAR."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.data.strings import Strings
from tqp.operators import dates, wide
from tqp.operators.float_text import float32_to_write
from tqp.operators.string_build import join
from tqp.operators.string_layout import choose, from_arrow, from_list, take

Formatter = Callable[[Tensor], Strings]


def formatter(source: DataType) -> Formatter | None:
    """The function that writes a tensor of values of a type as Strings [n]; None if the type has no text."""
    if source.is_integer:
        return format_integers
    if source.is_decimal:
        return lambda values: format_decimals(values, source)
    if source.is_float:
        return format_floats
    if source.is_timestamp:
        return lambda values: format_timestamps(values, source)
    by_kind: dict[TypeKind, Formatter] = {
        TypeKind.BOOLEAN: format_booleans,
        TypeKind.DATE: format_dates,
        TypeKind.TIME: format_times,
        TypeKind.INTERVAL: format_intervals,
        TypeKind.ARRAY: _format_arrays,
    }
    return by_kind.get(source.kind)


def format_booleans(values: Tensor) -> Strings:
    """'true' or 'false'."""
    return take(from_list(["false", "true"], values.device), values.reshape(-1).to(torch.int32))


def format_integers(values: Tensor) -> Strings:
    """Decimal digits of integers [n] of any width, or wide [n, 2]."""
    if wide.is_wide(values):
        return from_list([str(value) for value in wide.to_ints(values)], values.device)
    return from_arrow(pa.array(values.reshape(-1).cpu().numpy()).cast(pa.large_string()), values.device)


def format_decimals(values: Tensor, source: DataType) -> Strings:
    """Scaled integers with their `scale` digits after the point; no zero before it if there is no whole digit."""
    scale = source.scale
    if scale == 0:
        return format_integers(values)
    if wide.is_wide(values) or scale > 17:
        whole_digits = source.precision > scale
        texts = [_decimal_text(number, scale, whole_digits) for number in wide.to_ints(wide.widen(values))]
        return from_list(texts, values.device)
    device = values.device
    numbers = values.reshape(-1).to(torch.int64)
    # The remainder's sign is cut off after dividing: the least int64 has no positive counterpart.
    whole = torch.div(numbers, 10**scale, rounding_mode="trunc")
    fraction = (numbers - whole * 10**scale).abs_()
    sign = from_list(["-"], device)
    signs = Strings(torch.zeros_like(numbers), (numbers < 0).to(torch.int32), sign.data)
    parts = [signs, from_list(["."], device), _digits(fraction, scale)]
    if source.precision > scale:
        parts.insert(1, format_integers(whole.abs_()))
    return join(parts)


def _decimal_text(number: int, scale: int, whole_digits: bool) -> str:
    digits = str(abs(number)).rjust(scale + whole_digits, "0")
    return f"{'-' if number < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _digits(values: Tensor, width: int) -> Strings:
    """Non-negative int64 [n] below 10**width with leading zeros."""
    padded = format_integers(values + 10**width)
    return Strings(padded.starts + 1, padded.lengths - 1, padded.data)


def format_floats(values: Tensor) -> Strings:
    """The shortest digits that read back as the same float: '1.0', '1e+20'."""
    flat = values.reshape(-1).cpu()
    if flat.dtype is torch.float32:
        # The shortest digits of the 32-bit float are then written by the rules for doubles.
        texts = [_float_text(float32_to_write(value)) for value in flat.numpy()]
    else:
        texts = [_float_text(value) for value in flat.tolist()]
    if bool(flat.isnan().any()):
        negative = flat.isnan() & torch.signbit(flat)
        for row in np.flatnonzero(negative.numpy()).tolist():
            texts[row] = "-nan"
    return from_list(texts, values.device)


def _float_text(value: float) -> str:
    return (
        repr(value)
        if math.isfinite(value)
        else ("nan" if math.isnan(value) else "inf" if value > 0 else "-inf")
    )


def _format_distinct(values: Tensor, text: Callable[[int], str]) -> Strings:
    """Write each distinct value of integers [n] once."""
    distinct, codes = torch.unique(values, return_inverse=True)
    return take(from_list([text(value) for value in distinct.tolist()], values.device), codes)


def format_dates(values: Tensor) -> Strings:
    """'2024-02-29', '0044-03-15 (BC)', 'infinity'."""
    days, codes = torch.unique(values.reshape(-1).to(torch.int64), return_inverse=True)
    fields = torch.stack(dates.civil_from_days(days), 1).tolist()
    texts = [
        ("infinity" if day > 0 else "-infinity") if abs(day) >= time_limits.INFINITE_DAY else _date_text(*row)
        for day, row in zip(days.tolist(), fields, strict=True)
    ]
    return take(from_list(texts, values.device), codes)


def _date_text(year: int, month: int, day: int) -> str:
    if year <= 0:
        return f"{1 - year:04}-{month:02}-{day:02} (BC)"
    return f"{year:04}-{month:02}-{day:02}"


def format_times(values: Tensor) -> Strings:
    """'23:59:59', '00:00:00.25'."""
    return join(_clock_parts(values.reshape(-1).to(torch.int64), time_limits.MICROSECONDS_PER_SECOND))


def _clock_parts(ticks: Tensor, per_second: int) -> list[Strings]:
    """Time of day in ticks as hours, minutes and seconds, and the fraction with its trailing zeros cut."""
    seconds = torch.div(ticks, per_second, rounding_mode="floor")
    fraction = ticks - seconds * per_second
    parts = [_format_distinct(seconds, _clock_text)]
    if bool((fraction != 0).any()):
        width = len(str(per_second)) - 1
        parts.append(_format_distinct(fraction, lambda value: f".{value:0{width}}".rstrip("0").rstrip(".")))
    return parts


def _clock_text(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def format_timestamps(values: Tensor, source: DataType) -> Strings:
    """'2024-02-29 12:00:00.5', with '+00' for TIMESTAMP WITH TIME ZONE; 'infinity'."""
    ticks = values.reshape(-1).to(torch.int64)
    per_second = TICKS_PER_SECOND[source.kind]
    per_day = time_limits.SECONDS_PER_DAY * per_second
    infinite = (ticks >= time_limits.INFINITE_TICK) | (ticks <= -time_limits.INFINITE_TICK)
    days = torch.div(ticks, per_day, rounding_mode="floor")
    if bool(infinite.any()):
        days = days.masked_fill(infinite, 0)
    clock = (ticks - days * per_day).masked_fill_(infinite, 0)
    parts = [format_dates(days), from_list([" "], values.device), *_clock_parts(clock, per_second)]
    if source.kind is TypeKind.TIMESTAMP_TZ:
        parts.append(from_list(["+00"], values.device))
    result = join(parts)
    if not bool(infinite.any()):
        return result
    words = [from_list([word], values.device) for word in ("infinity", "-infinity")]
    return choose([infinite & (ticks > 0), infinite], words, result)


def format_intervals(values: Tensor) -> Strings:
    """'1 year 2 months 3 days 04:05:06'; '00:00:00' if all fields are zero."""
    distinct, codes = torch.unique(values.reshape(-1, 3), dim=0, return_inverse=True)
    return take(
        from_list([interval_text(*row) for row in distinct.tolist()], values.device), codes.reshape(-1)
    )


def interval_text(months: int, days: int, microseconds: int) -> str:
    """One interval as DuckDB prints it.

    >>> interval_text(14, -3, 1_500_000)
    '1 year 2 months -3 days 00:00:01.5'
    """
    sign = -1 if months < 0 else 1
    counts = [(sign * (abs(months) // 12), "year"), (sign * (abs(months) % 12), "month"), (days, "day")]
    parts = [f"{count} {unit}{'' if abs(count) == 1 else 's'}" for count, unit in counts if count]
    if microseconds or not parts:
        seconds, fraction = divmod(abs(microseconds), 10**6)
        clock = f"{'-' if microseconds < 0 else ''}{_clock_text(seconds)}"
        parts.append(f"{clock}.{fraction:06}".rstrip("0") if fraction else clock)
    return " ".join(parts)


def _format_arrays(values: Tensor) -> Strings:
    size = values.shape[-1]
    numbers = format_floats(values)
    rows = values.reshape(-1, size).shape[0]
    columns = [
        take(numbers, torch.arange(index, rows * size, size, device=values.device)) for index in range(size)
    ]
    comma = from_list([", "], values.device)
    parts = [from_list(["["], values.device)]
    for index, column in enumerate(columns):
        parts += [comma, column] if index else [column]
    return join([*parts, from_list(["]"], values.device)])
