"""Functions of dates, times and intervals: their table, and moving a constant date."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable, Sequence
from typing import Any

from tqp.core import time_limits
from tqp.core.datatypes import TypeKind
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.patterns import parse_format
from tqp.planner.algebra.expressions import Call, Expression, column_ids, is_null_literal
from tqp.planner.functions.constants import constant_text
from tqp.planner.functions.declaration import (
    Fold,
    Infix,
    NullRule,
    RangeRule,
    ScalarFunction,
    Work,
    scalar,
)
from tqp.planner.functions.granularity import of_bucket, of_format, of_part, whole_day
from tqp.planner.functions.ranges import EPOCH_ORDINAL, added, is_in_calendar, subtracted
from tqp.planner.functions.temporal_ranges import (
    bucket_range,
    leaves_calendar,
    may_be_no_instant,
    may_have_no_bucket,
    moves_out_of_calendar,
    nanosecond_range,
    needs_more_ticks,
    number_of_unit_range,
    part_range,
    range_of_counts,
    range_of_shifted_days,
    range_of_ticks,
    shifted_range,
    start_of_unit_range,
    ticks_between_range,
    truncated_range,
    truncation_leaves_calendar,
    varies,
)

_INSTANTS = ("DATE", "TIMESTAMP", "TIMESTAMP_TZ")
_TIMES = ("TIME", "TIME_TZ")
_MICROS_PER_DAY = time_limits.MICROSECONDS_PER_DAY

# ---- calls of literals ----


def _date_of(day: int) -> datetime.date | None:
    return datetime.date.fromordinal(day + EPOCH_ORDINAL) if is_in_calendar((day, day)) else None


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


def shifted_instant(micros_since_epoch: int, interval: tuple[int, int, int], sign: int) -> Any:
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
            return shifted_instant(start * _MICROS_PER_DAY, interval, sign)
        return shifted_instant(start, interval, sign) if kind is TypeKind.TIMESTAMP else NotImplemented

    return evaluate


def _check_format(arguments: Sequence[Expression]) -> None:
    pattern = constant_text(arguments[1])
    if pattern is not None:
        parse_format(pattern)
    elif column_ids(arguments[1]) and not is_null_literal(arguments[0]):
        if arguments[0].data_type.kind is TypeKind.TIMESTAMP_TZ:
            raise UnsupportedError("strftime() by a format that is no constant is not supported")
        raise BindError("a format of dates must be a constant")


def _check_read_format(arguments: Sequence[Expression]) -> None:
    """With nanoseconds DuckDB makes a TIMESTAMP_NS; names of time zones it looks up."""
    if column_ids(arguments[1]):
        raise BindError("a format of dates must be a constant")
    _check_format(arguments)
    pattern = constant_text(arguments[1])
    letters = [] if pattern is None else [code[-1] for is_code, code in parse_format(pattern) if is_code]
    if "n" in letters:
        raise UnsupportedError(
            "strptime: the specifier %n (nanoseconds) is not supported; %f reads microseconds"
        )
    if "Z" in letters:
        raise UnsupportedError(
            "strptime: the specifier %Z (the name of a time zone) is not supported; %z reads an offset, "
            "and AT TIME ZONE takes a name"
        )


def _check_zoned(arguments: Sequence[Expression]) -> None:
    """Of other types DuckDB makes instants of nanoseconds, or times of day with a zone."""
    if arguments[1].data_type.kind not in (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_TZ, TypeKind.VARCHAR):
        raise UnsupportedError(f"a time zone of {arguments[1].data_type} is not supported; cast to TIMESTAMP")


def _check_bucket(arguments: Sequence[Expression]) -> None:
    """A text that does not leave open what it means is the name of a time zone."""
    if arguments[2:] and arguments[2].data_type.is_string:
        raise UnsupportedError("time_bucket() in a time zone is not supported; use AT TIME ZONE before it")


def _no_text_alone(arguments: Sequence[Expression]) -> None:
    if len(arguments) == 1 and arguments[0].data_type.is_string:
        raise BindError("make_date() of a text may mean days or a struct; cast it to INTEGER")


# ---- signatures ----


def _part(spellings: str, *sources: str, part: str = "", result: str = "BIGINT") -> tuple[str, ...]:
    """`year(x)` and friends: date_part with a constant."""
    constant = part or spellings.split()[0]
    return tuple(
        f"{spellings}: [{constant}] {each} -> {result}" for each in (*_INSTANTS, "INTERVAL", *sources)
    )


def _of_each(template: str, types: Sequence[str]) -> tuple[str, ...]:
    return tuple(template.format(each) for each in types)


_PARTS = "year month decade century millennium quarter isodow isoyear yearweek era"
_PART_LINES = (
    *(line for part in _PARTS.split() for line in _part(part)),
    *(*_part("day dayofmonth"), *_part("week weekofyear")),
    *(*_part("dayofweek weekday", part="dow"), *_part("dayofyear", part="doy")),
    *(line for part in "hour minute second millisecond microsecond".split() for line in _part(part, *_TIMES)),
    *(*_part("epoch", *_TIMES, result="DOUBLE"), *_part("epoch_ms", *_TIMES)),
    *(f"julian: [julian] {each} -> DOUBLE" for each in _INSTANTS),
    # of these only what has a time zone has any; a call that leaves open what it is of is refused all the same
    *(line for part in "timezone timezone_hour timezone_minute".split() for line in _part(part, *_TIMES)),
)
STRICT, STRICT_IF_FINITE, PROPAGATES = NullRule.STRICT, NullRule.STRICT_IF_FINITE, NullRule.PROPAGATES


def _moves(
    name: str, sign: str, lines: Sequence[str], null: NullRule, range: RangeRule, fold: Fold
) -> ScalarFunction:
    """An instant moved by days or an interval."""
    spelling, raises, infix = "add" if sign == "+" else "subtract", moves_out_of_calendar, Infix(sign, 6)
    lines = [f"{spelling}: {line}" for line in lines]
    return scalar(
        name,
        *lines,
        null=null,
        raises=raises,
        range=range,
        fold=fold,
        work=Work.CALENDAR,
        infix=infix,
        constants_vary=True,
    )


_BY_INTERVAL = (
    *("DATE INTERVAL -> TIMESTAMP", "TIME INTERVAL -> TIME", "TIME_TZ INTERVAL -> TIME_TZ"),
    *("TIMESTAMP INTERVAL -> TIMESTAMP", "TIMESTAMP_TZ INTERVAL -> TIMESTAMP_TZ"),
)
_INTERVAL_FIRST = (
    *("~ INTERVAL DATE -> TIMESTAMP", "~ INTERVAL TIME -> TIME", "~ INTERVAL TIME_TZ -> TIME_TZ"),
    *("~ INTERVAL TIMESTAMP -> TIMESTAMP", "~ INTERVAL TIMESTAMP_TZ -> TIMESTAMP_TZ"),
)
_PATTERN_FIRST = ("{} VARCHAR -> VARCHAR", "~ VARCHAR {} -> VARCHAR")

TEMPORAL = (
    scalar("epoch_ms", "BIGINT -> TIMESTAMP", "make_timestamp_ms: BIGINT -> TIMESTAMP", raises=True),
    *(
        scalar(
            name,
            *_of_each("{} -> BIGINT", (*_INSTANTS, "INTERVAL", *_TIMES, *more)),
            null=STRICT_IF_FINITE,
            raises=needs_more_ticks(frozenset(kinds)),
        )
        for name, more, kinds in (
            ("epoch_us", (), (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_TZ, TypeKind.TIME, TypeKind.TIME_TZ)),
            ("epoch_ns", ("TIMESTAMP_NS",), (TypeKind.TIMESTAMP_NS,)),
        )
    ),
    scalar(
        "nanosecond",
        *_of_each("{} -> BIGINT", (*_INSTANTS, "INTERVAL", *_TIMES, "TIMESTAMP_NS")),
        null=STRICT_IF_FINITE,
        range=nanosecond_range,
    ),
    scalar("to_timestamp", "DOUBLE -> TIMESTAMP_TZ", raises=True),
    scalar("make_timestamp_ns", "BIGINT -> TIMESTAMP_NS", raises=True),
    scalar(
        "age",
        "TIMESTAMP TIMESTAMP -> INTERVAL",
        "TIMESTAMP_TZ TIMESTAMP_TZ -> INTERVAL",
        null=STRICT_IF_FINITE,
    ),
    scalar(
        "time_bucket",
        *_of_each("INTERVAL {0} -> {0}", (*_INSTANTS, "TIME")),
        *_of_each("INTERVAL {0} INTERVAL -> {0}", (*_INSTANTS, "TIME")),
        *_of_each("INTERVAL {0} {0} -> {0}", (*_INSTANTS, "TIME")),
        "INTERVAL TIMESTAMP_TZ VARCHAR -> TIMESTAMP_TZ",
        check=_check_bucket,
        null=PROPAGATES,
        raises=may_have_no_bucket,
        range=bucket_range,
        granularity=of_bucket,
        work=Work.CALENDAR,
    ),
    scalar(
        "timezone",
        *("VARCHAR TIMESTAMP -> TIMESTAMP_TZ", "VARCHAR TIMESTAMP_TZ -> TIMESTAMP"),
        raises=True,
        check_types=_check_zoned,
        work=Work.CALENDAR,
    ),
    scalar("timezone_of_time", "timezone: INTERVAL TIME_TZ -> TIME_TZ", raises=True, work=Work.CALENDAR),
    scalar(
        "universal_clock"
    ),  # of the average of times with zones; SQL has no name for it, nor for the next ones
    scalar(
        "ticks_between", range=ticks_between_range, work=Work.ARITHMETIC, infix=Infix("-", 6)
    ),  # of finite instants
    scalar("epoch_of_ticks", work=Work.CALCULATION),
    scalar("interval_of_ticks", work=Work.CALCULATION),
    scalar("number_of_unit", range=number_of_unit_range, work=Work.CALCULATION),
    scalar("start_of_unit", range=start_of_unit_range, work=Work.CALCULATION),
    scalar("timetz_byte_comparable", "TIME_TZ -> UBIGINT"),
    scalar(
        "try_strptime",
        "VARCHAR VARCHAR -> TIMESTAMP",
        null=PROPAGATES,
        check=_check_read_format,
        computes_all=True,
    ),
    scalar(
        "date_part datepart",
        *_of_each("VARCHAR {} -> part", (*_INSTANTS, *_TIMES, "INTERVAL")),
        *_PART_LINES,
        null=STRICT_IF_FINITE,
        raises=varies,
        range=part_range,
        granularity=of_part,
        work=Work.CALENDAR,
    ),
    scalar(
        "date_trunc datetrunc",
        *("VARCHAR DATE -> TIMESTAMP", "VARCHAR TIMESTAMP -> TIMESTAMP"),
        *("VARCHAR TIMESTAMP_TZ -> TIMESTAMP_TZ", "VARCHAR INTERVAL -> INTERVAL"),
        null=STRICT_IF_FINITE,
        raises=truncation_leaves_calendar,
        range=truncated_range,
        granularity=of_part,
        work=Work.CALENDAR,
    ),
    *(
        scalar(
            names,
            *_of_each("VARCHAR {0} {0} -> BIGINT", (*_INSTANTS, "TIME")),
            null=STRICT_IF_FINITE,
            raises=lambda *known: leaves_calendar(*known) or varies(*known),
            range=range_of_counts,
            work=Work.CALENDAR,
            constants_vary=True,
        )
        for names in ("date_diff datediff", "date_sub datesub")
    ),
    _moves(
        "add_days",
        "+",
        ("DATE INTEGER -> DATE", "~ INTEGER DATE -> DATE"),
        STRICT,
        range_of_shifted_days(added),
        _move_days(1),
    ),
    _moves(
        "subtract_days",
        "-",
        ("DATE INTEGER -> DATE",),
        STRICT,
        range_of_shifted_days(subtracted),
        _move_days(-1),
    ),
    _moves(
        "add_interval", "+", (*_BY_INTERVAL, *_INTERVAL_FIRST), STRICT_IF_FINITE, shifted_range(1), _move(1)
    ),
    _moves("subtract_interval", "-", _BY_INTERVAL, STRICT_IF_FINITE, shifted_range(-1), _move(-1)),
    scalar(
        "subtract_dates",
        "subtract: DATE DATE -> BIGINT",
        range=subtracted,
        fold=_fold_subtract_dates,
        work=Work.CALENDAR,
        infix=Infix("-", 6),
        constants_vary=True,
    ),
    scalar(
        "subtract_timestamps",
        *("subtract: TIMESTAMP TIMESTAMP -> INTERVAL", "subtract: TIMESTAMP_TZ TIMESTAMP_TZ -> INTERVAL"),
        null=STRICT_IF_FINITE,
        raises=leaves_calendar,
        infix=Infix("-", 6),
    ),
    scalar(
        "add_time",
        *("add: DATE TIME -> TIMESTAMP", "add: ~ TIME DATE -> TIMESTAMP"),
        *("add: DATE TIME_TZ -> TIMESTAMP_TZ", "add: ~ TIME_TZ DATE -> TIMESTAMP_TZ"),
        null=PROPAGATES,
        raises=leaves_calendar,
    ),
    scalar(
        "make_date",
        *("INTEGER -> DATE", "BIGINT BIGINT BIGINT -> DATE"),
        raises=lambda call, ranges, result: len(call.arguments) > 1,
        check_types=_no_text_alone,
    ),
    scalar("make_time", "BIGINT BIGINT DOUBLE -> TIME", raises=True),
    scalar(
        "make_timestamp",
        *("BIGINT -> TIMESTAMP", "BIGINT BIGINT BIGINT BIGINT BIGINT DOUBLE -> TIMESTAMP"),
        "make_timestamptz: BIGINT -> TIMESTAMP_TZ",
        raises=may_be_no_instant,
        range=range_of_ticks,
    ),
    scalar(
        "last_day",
        *_of_each("{} -> DATE", _INSTANTS),
        null=STRICT_IF_FINITE,
        raises=leaves_calendar,
        granularity=whole_day,
        work=Work.CALENDAR,
    ),
    *(
        scalar(name, *_of_each("{} -> VARCHAR", _INSTANTS), null=STRICT_IF_FINITE, granularity=whole_day)
        for name in ("dayname", "monthname")
    ),
    scalar(
        "strftime",
        *(line.format(each) for each in (*_INSTANTS, "TIMESTAMP_NS") for line in _PATTERN_FIRST),
        null=PROPAGATES,
        check=_check_format,
        granularity=of_format,
    ),
    scalar(
        "strptime",
        "VARCHAR VARCHAR -> TIMESTAMP",
        null=PROPAGATES,
        raises=True,
        check=_check_read_format,
        computes_all=True,
        reads_text=True,
    ),
)
