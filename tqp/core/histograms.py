"""Histograms: the bin for values that lie in no other, and bins of equal width."""

from __future__ import annotations

import math
from calendar import monthrange
from datetime import datetime, timedelta
from fractions import Fraction

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.core.time_limits import DAYS_PER_MONTH, INFINITE_DAY, INFINITE_TICK

_SECOND = 10**6
_MINUTE, _HOUR, _DAY = 60 * _SECOND, 3600 * _SECOND, 24 * 3600 * _SECOND
_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)
_MONTHS_OF_HALF_A_YEAR = 6
#: Of intervals of so many microseconds at least, what they are rounded to.
_NICE_UNITS = (
    *((6 * _HOUR, _HOUR), (_HOUR, 15 * _MINUTE)),
    *((10 * _MINUTE, _MINUTE), (_MINUTE, 15 * _SECOND), (10 * _SECOND, _SECOND)),
)
#: DuckDB's limit.
_MOST_BINS = 1_000_000
#: Bins of integers are computed with so many parts of one.
_PARTS = 1000
_LAST_INTEGER = 2**63 - 1


def other_bin(data_type: DataType) -> int | float | str | bytes | None:
    """The key of the bin for all that lies in no bin, as a literal of the type holds it; None if the type has none."""
    if data_type.is_float:
        return math.inf
    if data_type.is_whole or data_type.is_decimal or data_type.kind is TypeKind.TIME_TZ:
        return data_type.bounds[1]
    if data_type.is_timestamp:
        return INFINITE_TICK
    return None if data_type.is_json else _OTHER_BINS.get(data_type.kind)


_OTHER_BINS: dict[TypeKind, int | str | bytes] = {
    TypeKind.VARCHAR: "",
    TypeKind.BLOB: b"",
    TypeKind.DATE: INFINITE_DAY,
    TypeKind.TIME: _DAY,
}


def integer_bins(low: int, high: int, count: int, is_nice: bool) -> list[int]:
    """The upper ends of `count` bins from `low` to `high`, ascending, each once; if nice, of about as many with round ends.

    Raises ExecutionError for ends or counts that are wrong.
    """
    _check(low, high, count)
    if low == high:
        return [low]
    first, last = low * _PARTS, high * _PARTS
    step = max((last - first) // count, 1)
    if is_nice:
        step = _round_integer(step)
        last = _truncated(last + step - 1, step) * step  # of negative ends, too, as in DuckDB
        count *= 2
    ends: list[int] = []
    end = last
    while end > first and len(ends) < count:
        whole = _truncated(end, _PARTS)
        if whole > _LAST_INTEGER:
            whole = high
        if not ends or whole != ends[-1]:
            ends.append(whole)
        if step > _LAST_INTEGER * _PARTS:
            break  # as in DuckDB, whose steps are integers of 64 bits here
        end -= step
    return ends[::-1]


def instant_bins(low: int, high: int, count: int, is_nice: bool) -> list[int]:
    """As `integer_bins`, of microseconds; nice ones end at the turn of a unit, a nice interval apart.

    Raises ExecutionError for infinite ones that differ, UnsupportedError for nice ones outside of the years 1 to 9999.
    """
    _check(low, high, count)
    if low == high:
        return [low]
    if INFINITE_TICK in (abs(low), abs(high)):
        raise ExecutionError("equi_width_bins() takes finite instants")
    if not is_nice:
        return integer_bins(low, high, count, False)
    try:
        return _nice_instants(low, high, count)
    except (OverflowError, ValueError):
        raise UnsupportedError(
            "nice bins of dates outside of the years 1 to 9999 are not supported; ask for bins of equal width"
        ) from None


def _nice_instants(low: int, high: int, count: int) -> list[int]:
    first, last = (_EPOCH + timedelta(microseconds=each) for each in (low, high))
    months, days, micros = _nice_interval(*_difference_divided(first, last, count))
    end = _turn_of_unit(last, months, days, micros)
    ends: list[int] = []
    while end >= first and len(ends) < count:
        ends.append((end - _EPOCH) // _MICROSECOND)
        end = _months_before(end, months) - timedelta(days=days, microseconds=micros)
    return ends[::-1]


def _difference_divided(first: datetime, last: datetime, count: int) -> tuple[int, int, int]:
    """Months, days and microseconds, each less in one than in the other, a part of them; what is left of one goes to the next."""
    months = (12 * (last.year - first.year) + last.month - first.month) / count
    days = _multiply_add(math.modf(months)[0], DAYS_PER_MONTH, (last.day - first.day) / count)
    clocks = [each - each.replace(hour=0, minute=0, second=0, microsecond=0) for each in (first, last)]
    micros = _multiply_add(math.modf(days)[0], _DAY, (clocks[1] - clocks[0]) / _MICROSECOND / count)
    whole = int(months), int(days), int(micros)
    return whole if max(whole) > 0 else (0, 0, 1)


def _multiply_add(number: float, factor: int, added: float) -> float:
    """number * factor + added, rounded once, which decides whether there is another whole day."""
    return float(Fraction(number) * factor + Fraction(added))


def _nice_interval(months: int, days: int, micros: int) -> tuple[int, int, int]:
    """An interval without the units that are small beside it."""
    if months >= _MONTHS_OF_HALF_A_YEAR:
        return months, 0, 0
    if months > 0 or days >= 5:
        return months, days, 0
    if days > 0:
        return months, days, _rounded(micros, _HOUR)
    for least, unit in _NICE_UNITS:
        if micros >= least:
            return months, days, _rounded(micros, unit)
    return months, days, micros


def _rounded(micros: int, unit: int) -> int:
    return _truncated(micros + unit // 2, unit) * unit


def _turn_of_unit(instant: datetime, months: int, days: int, micros: int) -> datetime:
    """The first instant from this one on at which a month, day, hour, minute or second begins, as the interval is long."""
    if months >= 12:
        begin = instant.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return begin if begin == instant else _months_before(begin, -1)
    units = (_HOUR, _MINUTE, _SECOND)
    unit = _DAY if months > 0 or days > 0 else next((each for each in units if micros >= each), 1)
    since_midnight = (instant - instant.replace(hour=0, minute=0, second=0, microsecond=0)) // _MICROSECOND
    return instant + timedelta(microseconds=-since_midnight % unit)


def _months_before(instant: datetime, months: int) -> datetime:
    """The same day of an earlier month, or its last one."""
    year, month = divmod(12 * instant.year + instant.month - 1 - months, 12)
    return instant.replace(year=year, month=month + 1, day=min(instant.day, monthrange(year, month + 1)[1]))


def float_bins(low: float, high: float, count: int, is_nice: bool) -> list[float]:
    """As `integer_bins`, of floats. Raises UnsupportedError where the difference of the ends is infinite."""
    _check(low, high, count)
    if low == high:
        return [low]
    if not math.isfinite(low) or not math.isfinite(high):
        raise ExecutionError("equi_width_bins() takes finite numbers")
    if math.isinf(high - low):
        raise UnsupportedError("equi_width_bins() of numbers whose difference is infinite is not supported")
    step, last, precision = (high - low) / count, high, 0.0
    if is_nice and step > 0:
        power = _power_of_ten(step)
        step = _round_factor(step / power) * power
        nice = math.ceil(high / step) * step
        last = high if math.isinf(nice) else nice
        precision = 10 / _power_of_ten(step)
        count *= 2
    ends: list[float] = []
    end = last
    while len(ends) < count:
        rounded = _nearest(end * precision) / precision if precision else end
        if rounded <= low:
            break
        if not ends or rounded != ends[-1]:
            ends.append(rounded)
        if end - step == end:
            break
        end -= step
    return ends[::-1]


def _check(low: float, high: float, count: int) -> None:
    if high < low:
        raise ExecutionError("equi_width_bins(): the greatest value is less than the least one")
    if count < 1:
        raise ExecutionError("equi_width_bins() makes one bin at least")
    if count > _MOST_BINS:
        raise ExecutionError(f"equi_width_bins() makes {_MOST_BINS} bins at most")


def _truncated(number: int, divisor: int) -> int:
    quotient = abs(number) // divisor
    return quotient if number > 0 else -quotient


def _round_factor(factor: float) -> int:
    """The round number for one from 1 to 10."""
    limits = ((1.5, 1), (3, 2), (7.5, 5))
    return next((number for limit, number in limits if factor < limit), 10)


def _power_of_ten(number: float) -> float:
    """The greatest that is no more than a positive number, come to by as many steps, whose errors DuckDB has too."""
    power = 1.0
    while power > number:
        power /= 10
    while power * 10 <= number:
        power *= 10
    return power


def _round_integer(number: int) -> int:
    power: int = 10 ** (len(str(number)) - 1)
    return _round_factor(number / power) * power


def _nearest(number: float) -> float:
    """Rounded half away from zero."""
    return math.copysign(math.floor(abs(number) + 0.5), number)
