"""Functions of dates, times and intervals: their ranges, when they leave the calendar, and moving a constant date."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tqp.core import time_limits
from tqp.core.datatypes import TypeKind
from tqp.core.patterns import parse_format
from tqp.planner.algebra.expressions import Call, Expression, Literal
from tqp.planner.functions.declaration import Infix, NullRule, Work, constant_text, scalar
from tqp.planner.functions.literal_casts import interval_of, unit_name
from tqp.planner.functions.ranges import (
    CALENDAR_DAYS,
    EPOCH_ORDINAL,
    SECONDS_PER_DAY,
    Range,
    Ranges,
    days,
    is_finite,
    operand,
    ticks_per_day,
)

_INSTANTS = ("DATE", "TIMESTAMP", "TIMESTAMP_TZ")
_MICROS_PER_DAY = time_limits.MICROSECONDS_PER_DAY

# ---- ranges ----

_PART_RANGES: dict[str, Range] = {
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "doy": (1, 366),
    "dow": (0, 6),
    "isodow": (1, 7),
    "hour": (0, 24),
    "minute": (0, 59),
    "second": (0, 59),
    "millisecond": (0, 59_999),
    "microsecond": (0, 59_999_999),
}


def _constant_part(call: Call) -> str | None:
    """The part of a date that the first argument names, in lower case."""
    part = constant_text(call.arguments[0])
    return None if part is None else part.lower()


def _is_in_calendar(known: Range | None) -> bool:
    return known is not None and CALENDAR_DAYS[0] <= known[0] and known[1] <= CALENDAR_DAYS[1]


def _date_part(call: Call, ranges: Ranges) -> Range | None:
    part, source = _constant_part(call), call.arguments[1].data_type
    if part is None or not call.data_type.is_integer or not source.is_temporal:
        return None  # an interval's parts are not bounded by the calendar
    if part not in ("year", "isoyear"):
        return _PART_RANGES.get(part)
    known = days(ranges[1], source)
    if known is None or not _is_in_calendar(known):
        return None
    first, last = (datetime.date.fromordinal(day + EPOCH_ORDINAL).year for day in known)
    return (first, last) if part == "year" else (first - 1, last + 1)


#: At most how many days date_trunc goes back.
_TRUNC_DAYS = {
    **dict.fromkeys(("day", "hour", "minute", "second", "millisecond", "microsecond"), 0),
    "week": 6,
    "month": 30,
    "quarter": 91,
    "year": 365,
    "isoyear": 371,
    "decade": 3_652,
    "century": 36_525,
}


def _date_trunc(call: Call, ranges: Ranges) -> Range | None:
    part, per_day = _constant_part(call), ticks_per_day(call.data_type)
    known = days(ranges[1], call.arguments[1].data_type)
    if part is None or per_day is None or known is None or not _is_in_calendar(known):
        return None
    back = _TRUNC_DAYS.get(part, 365_250)
    return (known[0] - back) * per_day, (known[1] + 1) * per_day - 1


def _operands(call: Call, ranges: Ranges) -> tuple[Range, Range] | None:
    left, right = (operand(known, each.data_type) for known, each in zip(ranges, call.arguments, strict=True))
    return None if left is None or right is None else (left, right)


def _shift_days(sign: int) -> Callable[[Call, Ranges], Range | None]:
    def rule(call: Call, ranges: Ranges) -> Range | None:
        if (operands := _operands(call, ranges)) is None:
            return None
        (a, b), (c, d) = operands
        low, high = (a + c, b + d) if sign > 0 else (a - d, b - c)
        if {a, b} & _INFINITE_DATES:  # which stay where they are
            return min(a, low), max(b, high)
        return low, high

    return rule


def _subtract_dates(call: Call, ranges: Ranges) -> Range | None:
    if (operands := _operands(call, ranges)) is None:
        return None
    (a, b), (c, d) = operands
    return a - d, b - c


#: -infinity and infinity as days.
_INFINITE_DATES = frozenset((-time_limits.INFINITE_DAY, time_limits.INFINITE_DAY))


def _shift_interval(sign: int) -> Callable[[Call, Ranges], Range | None]:
    """A month is 28 to 31 days; known for a constant interval only."""

    def rule(call: Call, ranges: Ranges) -> Range | None:
        source, interval = call.arguments[0].data_type, call.arguments[1]
        known, per_day = days(ranges[0], source), ticks_per_day(call.data_type)
        if known is None or per_day is None or not isinstance(interval, Literal):
            return None
        if not isinstance(interval.value, tuple) or not is_finite(ranges[0], source):
            return None
        months, whole_days, microseconds = (sign * int(component) for component in interval.value)
        shifts = (months * 28 + whole_days, months * 31 + whole_days)
        extra = -(-abs(microseconds) // (SECONDS_PER_DAY * 10**6))
        low, high = known[0] + min(shifts) - extra, known[1] + 1 + max(shifts) + extra
        return low * per_day, high * per_day

    return rule


#: Parts that are whole days: between two instants lie no more of them than days.
_PARTS_OF_DAYS = frozenset(
    ("day", "week", "month", "quarter", "year", "isoyear", "decade", "century", "millennium")
)


def _count_of_parts(call: Call, ranges: Ranges) -> Range | None:
    """What date_diff and date_sub count; NULL where a date is infinite."""
    if _constant_part(call) not in _PARTS_OF_DAYS:
        return None
    first, last = (days(ranges[place], call.arguments[place].data_type) for place in (1, 2))
    if first is None or last is None:
        return None
    return min(0, last[0] - first[1]), max(0, last[1] - first[0])


# ---- errors: dates and timestamps far beyond the calendar leave TIMESTAMP's range ----


def _leaves_calendar(call: Call, ranges: Ranges, result: Range | None) -> bool:
    return not all(
        is_finite(known, each.data_type)
        for known, each in zip(ranges, call.arguments, strict=True)
        if each.data_type.is_temporal
    )


def _moves_out_of_calendar(call: Call, ranges: Ranges, result: Range | None) -> bool:
    return _leaves_calendar(call, ranges, result) or not is_finite(result, call.data_type)


def _truncation_leaves_calendar(call: Call, ranges: Ranges, result: Range | None) -> bool:
    return call.data_type.kind is not TypeKind.INTERVAL and _leaves_calendar(call, ranges, result)


# ---- calls of literals ----


def _date_of(day: int) -> datetime.date | None:
    ordinal = day + EPOCH_ORDINAL
    return datetime.date.fromordinal(ordinal) if 1 <= ordinal <= 3_652_059 else None


def _move_days(sign: int) -> Callable[..., Any]:
    def evaluate(_: Call, day: int, count: int) -> Any:
        if abs(day) == time_limits.INFINITE_DAY:
            return day
        moved = day + sign * count
        inside = time_limits.FIRST_DAY <= moved <= time_limits.LAST_DAY
        return moved if inside else NotImplemented  # the kernel raises

    return evaluate


def _fold_subtract_dates(_: Call, left: int, right: int) -> Any:
    infinite = time_limits.INFINITE_DAY in (abs(left), abs(right))
    return NotImplemented if infinite else left - right


def _shift(micros_since_epoch: int, interval: tuple[int, int, int], sign: int) -> Any:
    """A timestamp moved by months (to the last day where the month is shorter), then days, then microseconds.

    Left to the kernel where it comes near the end of what there is: beyond the years 1 to 9999.
    """
    whole_days, clock = divmod(micros_since_epoch, _MICROS_PER_DAY)
    date = _date_of(whole_days)
    if date is None:
        return NotImplemented
    month = date.year * 12 + date.month - 1 + sign * interval[0]
    year, month = divmod(month, 12)
    if not 1 <= year <= 9999:
        return NotImplemented
    day = min(date.day, calendar.monthrange(year, month + 1)[1])
    whole_days = datetime.date(year, month + 1, day).toordinal() - EPOCH_ORDINAL + sign * interval[1]
    moved = whole_days * _MICROS_PER_DAY + clock + sign * interval[2]
    inside = _date_of(whole_days) is not None and _date_of(moved // _MICROS_PER_DAY) is not None
    return moved if inside else NotImplemented


def _move(sign: int) -> Callable[..., Any]:
    def evaluate(call: Call, start: int, interval: tuple[int, int, int]) -> Any:
        kind = call.arguments[0].data_type.kind
        if kind is TypeKind.DATE:
            return _shift(start * _MICROS_PER_DAY, interval, sign)
        return _shift(start, interval, sign) if kind is TypeKind.TIMESTAMP else NotImplemented

    return evaluate


def _combine_intervals(sign: int) -> Callable[..., Any]:
    def evaluate(_: Call, left: tuple[int, int, int], right: tuple[int, int, int]) -> Any:
        return _interval(a + sign * b for a, b in zip(left, right))

    return evaluate


def _interval(fields: Iterable[int]) -> Any:
    """The fields, or NotImplemented where one is out of range: the kernel raises."""
    months, whole_days, micros = fields
    fits = max(abs(months), abs(whole_days)) < 2**31 and abs(micros) < 2**63
    return (months, whole_days, micros) if fits else NotImplemented


def _to_interval(_: Call, unit: str, count: float) -> Any:
    name = unit_name(unit)
    return NotImplemented if name is None else interval_of(name, count) or NotImplemented


def _check_format(arguments: Sequence[Expression]) -> None:
    pattern = constant_text(arguments[1])
    if pattern is not None:
        parse_format(pattern)


# ---- signatures ----


def _part(part: str, *sources: str, result: str = "BIGINT") -> tuple[str, ...]:
    """`year(x)` and friends: date_part with a constant."""
    return tuple(f"[{part}] {source} -> {result}" for source in (*_INSTANTS, "INTERVAL", *sources))


def _intervals(unit: str, *sources: str) -> tuple[str, ...]:
    return tuple(f"[{unit}] {source} -> INTERVAL" for source in sources)


def _of_each(template: str, types: Sequence[str]) -> tuple[str, ...]:
    return tuple(template.format(each) for each in types)


_PARTS = "year month decade century millennium quarter isodow isoyear yearweek era".split()
_PART_FORMS = {
    **{name: _part(name) for name in _PARTS},
    "day dayofmonth": _part("day"),
    "week weekofyear": _part("week"),
    "dayofweek weekday": _part("dow"),
    "dayofyear": _part("doy"),
    **{name: _part(name, "TIME") for name in ("hour", "minute", "second", "millisecond", "microsecond")},
    "epoch": _part("epoch", "TIME", result="DOUBLE"),
    "epoch_ms": _part("epoch_ms", "TIME"),
}
_INTERVAL_FORMS = {
    **{f"to_{unit}s": _intervals(unit, "INTEGER", "BIGINT") for unit in "year quarter month week day decade".split()},
    "to_centuries": _intervals("century", "INTEGER", "BIGINT"),
    "to_millennia": _intervals("millennium", "INTEGER", "BIGINT"),
    **{f"to_{unit}s": _intervals(unit, "BIGINT") for unit in ("hour", "minute", "microsecond")},
    **{f"to_{unit}s": _intervals(unit, "DOUBLE") for unit in ("second", "millisecond")},
}  # fmt: skip


def _moved(sign: str, *, swapped: bool) -> dict[str, tuple[str, ...]]:
    """An instant and an interval, in this order, and for + in the other as well."""
    results = {"DATE": "TIMESTAMP", "TIME": "TIME", "TIMESTAMP": "TIMESTAMP", "TIMESTAMP_TZ": "TIMESTAMP_TZ"}
    lines = [f"{source} INTERVAL -> {result}" for source, result in results.items()]
    lines += [f"~ INTERVAL {source} -> {result}" for source, result in results.items() if swapped]
    return {sign: tuple(lines)}


STRICT, STRICT_IF_FINITE, PROPAGATES = NullRule.STRICT, NullRule.STRICT_IF_FINITE, NullRule.PROPAGATES

TEMPORAL = (
    scalar("epoch_ms", "BIGINT -> TIMESTAMP", null=STRICT, raises=True),
    scalar(
        "date_part datepart",
        *_of_each("VARCHAR {} -> part", (*_INSTANTS, "TIME", "INTERVAL")),
        forms=_PART_FORMS,
        null=STRICT_IF_FINITE,
        raises=False,
        range=_date_part,
        work=Work.CALENDAR,
    ),
    scalar(
        "date_trunc datetrunc",
        "VARCHAR DATE -> TIMESTAMP",
        "VARCHAR TIMESTAMP -> TIMESTAMP",
        "VARCHAR TIMESTAMP_TZ -> TIMESTAMP_TZ",
        "VARCHAR INTERVAL -> INTERVAL",
        null=STRICT_IF_FINITE,
        raises=_truncation_leaves_calendar,
        range=_date_trunc,
        work=Work.CALENDAR,
    ),
    *(
        scalar(
            names,
            *_of_each("VARCHAR {0} {0} -> BIGINT", (*_INSTANTS, "TIME")),
            null=STRICT_IF_FINITE,
            raises=_leaves_calendar,
            range=_count_of_parts,
        )
        for names in ("date_diff datediff", "date_sub datesub")
    ),
    scalar(
        "add_days",
        forms={"add": ("DATE INTEGER -> DATE", "~ INTEGER DATE -> DATE")},
        null=STRICT,
        raises=_moves_out_of_calendar,
        range=_shift_days(1),
        fold=_move_days(1),
        work=Work.CALENDAR,
        infix=Infix("+", 6),
    ),
    scalar(
        "subtract_dates",
        forms={"subtract": ("DATE DATE -> BIGINT",)},
        null=STRICT,
        raises=False,
        range=_subtract_dates,
        fold=_fold_subtract_dates,
        work=Work.CALENDAR,
        infix=Infix("-", 6),
    ),
    scalar(
        "subtract_days",
        forms={"subtract": ("DATE INTEGER -> DATE",)},
        null=STRICT,
        raises=_moves_out_of_calendar,
        range=_shift_days(-1),
        fold=_move_days(-1),
        work=Work.CALENDAR,
        infix=Infix("-", 6),
    ),
    scalar(
        "subtract_timestamps",
        forms={
            "subtract": (
                "TIMESTAMP TIMESTAMP -> INTERVAL",
                "TIMESTAMP_TZ TIMESTAMP_TZ -> INTERVAL",
            )
        },
        null=STRICT_IF_FINITE,
        raises=_leaves_calendar,
        infix=Infix("-", 6),
    ),
    scalar(
        "add_intervals",
        forms={"add": ("INTERVAL INTERVAL -> INTERVAL",)},
        null=STRICT,
        raises=True,
        fold=_combine_intervals(1),
    ),
    scalar(
        "subtract_intervals",
        forms={"subtract": ("INTERVAL INTERVAL -> INTERVAL",)},
        null=STRICT,
        raises=True,
        fold=_combine_intervals(-1),
    ),
    scalar(
        "add_interval",
        forms=_moved("add", swapped=True),
        null=STRICT_IF_FINITE,
        raises=_moves_out_of_calendar,
        range=_shift_interval(1),
        fold=_move(1),
        work=Work.CALENDAR,
        infix=Infix("+", 6),
    ),
    scalar(
        "subtract_interval",
        forms=_moved("subtract", swapped=False),
        null=STRICT_IF_FINITE,
        raises=_moves_out_of_calendar,
        range=_shift_interval(-1),
        fold=_move(-1),
        work=Work.CALENDAR,
        infix=Infix("-", 6),
    ),
    scalar(
        "add_time",
        forms={"add": ("DATE TIME -> TIMESTAMP", "~ TIME DATE -> TIMESTAMP")},
        null=PROPAGATES,
        raises=_leaves_calendar,
    ),
    scalar(
        "negate_interval",
        forms={"-": ("INTERVAL -> INTERVAL",)},
        null=STRICT,
        raises=True,
        fold=lambda _, interval: _interval(-part for part in interval),
    ),
    scalar(
        "multiply_interval",
        forms={
            "multiply": (
                *("INTERVAL BIGINT -> INTERVAL", "INTERVAL DOUBLE -> INTERVAL"),
                *("~ BIGINT INTERVAL -> INTERVAL", "~ DOUBLE INTERVAL -> INTERVAL"),
            )
        },
        null=STRICT,
        raises=True,
    ),
    scalar("divide_interval", forms={"/": ("INTERVAL DOUBLE -> INTERVAL",)}, null=PROPAGATES, raises=True),
    scalar("to_interval", forms=_INTERVAL_FORMS, null=STRICT, raises=True, fold=_to_interval),
    scalar("make_date", "BIGINT BIGINT BIGINT -> DATE", null=STRICT, raises=True),
    scalar(
        "make_timestamp",
        "BIGINT BIGINT BIGINT BIGINT BIGINT DOUBLE -> TIMESTAMP",
        null=STRICT,
        raises=True,
    ),
    scalar("last_day", *_of_each("{} -> DATE", _INSTANTS), null=STRICT_IF_FINITE, raises=_leaves_calendar),
    scalar("dayname", *_of_each("{} -> VARCHAR", _INSTANTS), null=STRICT_IF_FINITE, raises=False),
    scalar("monthname", *_of_each("{} -> VARCHAR", _INSTANTS), null=STRICT_IF_FINITE, raises=False),
    scalar(
        "strftime",
        *(
            line
            for each in (*_INSTANTS, "TIMESTAMP_NS")
            for line in (f"{each} VARCHAR -> VARCHAR", f"~ VARCHAR {each} -> VARCHAR")
        ),
        null=PROPAGATES,
        raises=False,
        check=_check_format,
    ),
    scalar("strptime", "VARCHAR VARCHAR -> TIMESTAMP", null=PROPAGATES, raises=True, check=_check_format),
)
