"""Medians and quantiles of groups whose rows are in order: numbers half-way, or some way, between two of their values.

`values` [n], or [n, 2] of wide ones; `ordered`: their rows, group by group (`ordered.py`). Of an empty group anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from tqp.core.datatypes import DATE, TIMESTAMP
from tqp.core.errors import ExecutionError
from tqp.core.time_limits import MICROSECONDS_PER_DAY
from tqp.core.zoned_times import universal_clock_of_stored
from tqp.operators.groups.ordered import RowsInOrder, middle_rows, order_values
from tqp.operators.numbers import elementwise, wide
from tqp.operators.numbers.casts import resolve_cast, round_half_away
from tqp.operators.numbers.float_pairs import multiply_add
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.selection import take, take_padded
from tqp.operators.temporal.clocks import in_universal_time


def median_by_group(values: Tensor, ordered: RowsInOrder) -> Tensor:
    """float64 [num_groups]: half-way between the two middle ones of each group's numbers [n]."""
    lower_rows, upper_rows = middle_rows(ordered)
    lower = take_padded(values, lower_rows).to(torch.float64)
    upper = take_padded(values, upper_rows).to(torch.float64)
    # half of the least number is zero
    is_one = elementwise.equal(lower_rows, upper_rows)
    return elementwise.choose(is_one, lower, lower * 0.5 + upper * 0.5, torch.float64)


#: Which way half of an odd number goes: DuckDB takes another one for each family of types.
Halves = Literal["down", "up", "to_zero", "away"]


def median_integers_by_group(values: Tensor, ordered: RowsInOrder, halves: Halves = "down") -> Tensor:
    """Medians of each group's integers [n] (or [n, 2]): int64 [num_groups] (or [num_groups, 2]).

    Half-way between the two middle values; `halves` are rounded towards zero for decimals, down for those of 128 bits
    (which are always rounded so), and away from zero for times.
    """
    lower_rows, upper_rows = middle_rows(ordered)
    lower = take_padded(values, lower_rows).to(torch.int64)
    upper = take_padded(values, upper_rows).to(torch.int64)
    if wide.is_wide(values):
        return _half_way_wide(lower, upper)
    return _half_way(lower, upper, halves)


def _half_way(lower: Tensor, upper: Tensor, halves: Halves) -> Tensor:
    """(lower + upper) / 2 of int64 [n], without the carry: what both have, and half of what one of them has."""
    either = lower ^ upper
    middle = (lower & upper) + (either >> 1)
    if halves == "down":
        return middle
    half = either & 1
    if halves == "up":
        return middle + half
    return middle + (half & ((middle < 0) if halves == "to_zero" else (middle >= 0)))


def _half_way_wide(lower: Tensor, upper: Tensor) -> Tensor:
    """As `_half_way`, of int64 [n, 2], rounded down."""
    either = lower ^ upper
    half = torch.stack([either[:, 0] >> 1, ((either[:, 1] >> 1) & (2**63 - 1)) | (either[:, 0] << 63)], 1)
    return wide.add(lower & upper, half)


def median_days_by_group(values: Tensor, ordered: RowsInOrder) -> Tensor:
    """int64 [num_groups]: medians of each group's dates [n], as microseconds. Only the middle ones need be instants."""
    rows = middle_rows(ordered)
    lower, upper = (_instants(take_padded(values, each), each >= 0) for each in rows)
    return _half_way(lower, upper, "away")


def _instants(days: Tensor, validity: Tensor | None) -> Tensor:
    """The microseconds of dates [n]. Raises ExecutionError for a valid one that is no TIMESTAMP."""
    found: Tensor = resolve_cast(DATE, TIMESTAMP, False).function(days, validity=validity)
    return found


#: Days and microseconds of the least and the greatest 64-bit number of microseconds.
_FIRST_LENGTH, _LAST_LENGTH = (divmod(each, MICROSECONDS_PER_DAY) for each in (-(2**63), 2**63 - 1))


def median_intervals_by_group(values: Tensor, ordered: RowsInOrder) -> Tensor:
    """int64 [num_groups, 3]: medians of each group's intervals [n, 3].

    The middle one as it stands; between two, half-way in days and microseconds, a month being 30 days: the lower one and
    half of what is between them, as in DuckDB, so that half a microsecond is rounded up. Raises
    ExecutionError if one of the two does not fit in 64 bits of microseconds.
    """
    lower_rows, upper_rows = middle_rows(ordered)
    lower, upper = take_padded(values, lower_rows), take_padded(values, upper_rows)
    is_between = lower_rows != upper_rows
    middle = _half_way(_microseconds(lower, is_between), _microseconds(upper, is_between), "up")
    days = torch.div(middle, MICROSECONDS_PER_DAY, rounding_mode="trunc")
    between = torch.stack([torch.zeros_like(days), days, middle - days * MICROSECONDS_PER_DAY], 1)
    return torch.where(is_between.unsqueeze(1), between, lower)


def _microseconds(intervals: Tensor, validity: Tensor) -> Tensor:
    """How long intervals [n, 3] are, a month being 30 days, int64 [n]; raises for a valid row beyond 64 bits."""
    clock = intervals[:, 2]
    whole = torch.div(clock, MICROSECONDS_PER_DAY, rounding_mode="floor")
    days, rest = intervals[:, 0] * 30 + intervals[:, 1] + whole, clock - whole * MICROSECONDS_PER_DAY
    (first, first_rest), (last, last_rest) = _FIRST_LENGTH, _LAST_LENGTH
    beyond = (days > last) | (days < first) | ((days == last) & (rest > last_rest))
    if any_true(validity & (beyond | ((days == first) & (rest < first_rest)))):
        raise ExecutionError("The median of INTERVALs of more than 292471 years is out of range")
    return days * MICROSECONDS_PER_DAY + rest


def median_times_by_group(values: Tensor, ordered: RowsInOrder) -> Tensor:
    """int64 [num_groups]: medians of each group's stored times with a zone [n]; between two, half-way in UTC."""
    lower, upper = (take_padded(values, rows).to(torch.int64) for rows in middle_rows(ordered))
    clocks = (universal_clock_of_stored(lower), universal_clock_of_stored(upper))
    return torch.where(lower == upper, lower, in_universal_time(_half_way(*clocks, "up")))


#: By kind of reduction: `kernel(values, ordered)`, [num_groups].
MEDIANS: dict[str, Callable[..., Tensor]] = {
    "median": median_by_group,
    "median_days": median_days_by_group,
    "median_interval": median_intervals_by_group,
    "median_down": partial(median_integers_by_group, halves="down"),
    "median_to_zero": partial(median_integers_by_group, halves="to_zero"),
    "median_away": partial(median_integers_by_group, halves="away"),
    "median_times": median_times_by_group,
}


# ---- quantiles; a fraction below 0 counts from the greatest value ----


def quantile_row(ordered: RowsInOrder, fraction: float) -> Tensor:
    """int64 [num_groups]: the row of the least value that at least this fraction of the values do not exceed; -1 if empty."""
    counts = ordered.counts.to(torch.float64)
    left = (counts - counts * abs(fraction)).floor().to(torch.int64)
    place = (ordered.counts - left).clamp(min=1) - 1
    return ordered.at(_from_end(place, ordered) if fraction < 0 else place)


def sampled_row(ordered: RowsInOrder, fraction: float) -> Tensor:
    """int64 [num_groups]: the row of the value with so much of the others before it, as of a sample that has them all; -1 if empty."""
    others = (ordered.counts - 1).clamp(min=0).to(torch.float64)
    return ordered.at((others * fraction).floor().to(torch.int64))


#: Quantiles that are the value of a row, by kind of reduction.
ROWS: dict[str, Callable[[RowsInOrder, float], Tensor]] = {
    "quantile_disc": quantile_row,
    "reservoir_quantile": sampled_row,
}


def _from_end(place: Tensor, ordered: RowsInOrder) -> Tensor:
    return (ordered.counts - 1 - place).clamp(min=0)


def _rows_between(ordered: RowsInOrder, places: Tensor, from_end: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The rows around places (float64 [num_groups], 0 being the first row), and how far these are from the first of both."""
    lower, upper = places.floor(), places.ceil()
    rows = [each.to(torch.int64) for each in (lower, upper)]
    if from_end:
        rows = [_from_end(each, ordered) for each in rows]
    return ordered.at(rows[0]), ordered.at(rows[1]), places - lower


def _rows_of_quantile(ordered: RowsInOrder, fraction: float) -> tuple[Tensor, Tensor, Tensor]:
    places = (ordered.counts - 1).clamp(min=0).to(torch.float64) * abs(fraction)
    return _rows_between(ordered, places, fraction < 0)


def _around(
    values: Tensor, ordered: RowsInOrder, fraction: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """The two values around the fraction, in a dtype, and how far it is from the first of both."""
    first, second, part = _rows_of_quantile(ordered, fraction)
    return take_padded(values, first).to(dtype), take_padded(values, second).to(dtype), part


def _between(a: Tensor, b: Tensor, part: Tensor) -> Tensor:
    """float64 [n]: a part of the way from a to b; the product and the sum are rounded once, as in DuckDB's machine code."""
    return torch.where(part == 0, a, multiply_add(a, 1.0 - part, b * part))


def quantile_of_doubles(values: Tensor, ordered: RowsInOrder, fraction: float) -> Tensor:
    """float64 [num_groups]: between the two values around the fraction of numbers [n]."""
    return _between(*_around(values, ordered, fraction, torch.float64))


def quantile_of_floats(values: Tensor, ordered: RowsInOrder, fraction: float) -> Tensor:
    """As `quantile_of_doubles`, of float32: the first value and a part of the difference, as DuckDB rounds it."""
    a, b, part = _around(values, ordered, fraction, torch.float64)
    return torch.where(part == 0, a, multiply_add(b - a, part, a))


def quantile_of_decimals(values: Tensor, ordered: RowsInOrder, fraction: float) -> Tensor:
    """int64 [num_groups]: between the scaled integers [n] around the fraction, rounded to zero as the sum of two doubles is."""
    a, b, part = _around(values, ordered, fraction, torch.int64)
    between = multiply_add((b - a).to(torch.float64), part, a.to(torch.float64))
    return torch.where(part == 0, a, between.to(torch.int64))


def quantile_of_instants(values: Tensor, ordered: RowsInOrder, fraction: float) -> Tensor:
    """int64 [num_groups]: between the microseconds [n] around the fraction, halves rounded away from zero."""
    return _between_instants(*_around(values, ordered, fraction, torch.int64))


def quantile_of_days(values: Tensor, ordered: RowsInOrder, fraction: float) -> Tensor:
    """As `quantile_of_instants`, of dates [n]."""
    *rows, part = _rows_of_quantile(ordered, fraction)
    a, b = (_instants(take_padded(values, each), each >= 0) for each in rows)
    return _between_instants(a, b, part)


def quantile_of_times(values: Tensor, ordered: RowsInOrder, fraction: float) -> Tensor:
    """int64 [num_groups]: between the stored times with a zone [n] around the fraction, in UTC."""
    a, b, part = _around(values, ordered, fraction, torch.int64)
    clocks = (universal_clock_of_stored(a), universal_clock_of_stored(b))
    between = in_universal_time(_between_instants(*clocks, part))
    return torch.where((part == 0) | (a == b), a, between)


def _between_instants(a: Tensor, b: Tensor, part: Tensor) -> Tensor:
    between = _between(a.to(torch.float64), b.to(torch.float64), part)
    return torch.where(part == 0, a, round_half_away(between).to(torch.int64))


def approximate_quantile(values: Tensor, ordered: RowsInOrder, fraction: float) -> Tensor:
    """float64 [num_groups]: where half of each value lies on either side of its place, as in a t-digest of few values."""
    counts = ordered.counts.to(torch.float64)
    places = torch.minimum((counts * fraction - 0.5).clamp(min=0.0), (counts - 1.0).clamp(min=0.0))
    first, second, part = _rows_between(ordered, places, False)
    a, b = (take_padded(values, rows).to(torch.float64) for rows in (first, second))
    return _between(a, b, part)


def approximate_integer_quantile(values: Tensor, ordered: RowsInOrder, fraction: float) -> Tensor:
    """int64 [num_groups]: as `approximate_quantile`, halves rounded to even numbers, of integers [n]."""
    return approximate_quantile(values, ordered, fraction).round().to(torch.int64)


#: By kind of reduction: `kernel(values, ordered, fraction)`, [num_groups].
QUANTILES: dict[str, Callable[[Tensor, RowsInOrder, float], Tensor]] = {
    "quantile": quantile_of_doubles,
    "quantile_of_floats": quantile_of_floats,
    "quantile_to_zero": quantile_of_decimals,
    "quantile_away": quantile_of_instants,
    "quantile_days": quantile_of_days,
    "quantile_times": quantile_of_times,
    "approximate_quantile": approximate_quantile,
    "approximate_integer_quantile": approximate_integer_quantile,
}


# ---- median absolute deviations ----


def _deviation_by_group(
    values: Tensor, ids: Tensor, count: int, validity: Tensor | None, median: Callable[..., Tensor]
) -> Tensor:
    """The median of how far values are from the median of their group, [count]."""
    middle = median(values, order_values(values, ids, count, validity))
    away = (values - (middle if count == 1 else take(middle, ids))).abs_()
    return median(away, order_values(away, ids, count, validity))


def deviation_of_numbers(values: Tensor, ids: Tensor, count: int, validity: Tensor | None) -> Tensor:
    """Of numbers [n], float64 [count]."""
    return _deviation_by_group(values.to(torch.float64), ids, count, validity, median_by_group)


def deviation_of_integers(
    values: Tensor, ids: Tensor, count: int, validity: Tensor | None, halves: Halves
) -> Tensor:
    """Of integers [n], int64 [count], `halves` rounded so."""
    median = partial(median_integers_by_group, halves=halves)
    return _deviation_by_group(values.to(torch.int64), ids, count, validity, median)


def deviation_of_instants(values: Tensor, ids: Tensor, count: int, validity: Tensor | None) -> Tensor:
    """Of microseconds [n], as intervals int64 [count, 3]."""
    away = deviation_of_integers(values, ids, count, validity, "away")
    days = torch.div(away, MICROSECONDS_PER_DAY, rounding_mode="trunc")
    return torch.stack([torch.zeros_like(days), days, away - days * MICROSECONDS_PER_DAY], 1)


def deviation_of_days(values: Tensor, ids: Tensor, count: int, validity: Tensor | None) -> Tensor:
    """Of dates [n], as intervals int64 [count, 3]."""
    return deviation_of_instants(_instants(values, validity), ids, count, validity)


#: By kind of reduction: `kernel(values, group_ids, num_groups, validity)`, [num_groups].
DEVIATIONS: dict[str, Callable[..., Tensor]] = {
    "mad": deviation_of_numbers,
    "mad_to_zero": partial(deviation_of_integers, halves="to_zero"),
    "mad_down": partial(deviation_of_integers, halves="down"),
    "mad_away": deviation_of_instants,
    "mad_days": deviation_of_days,
}
