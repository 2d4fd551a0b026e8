"""Dates, timestamps and intervals against DuckDB; the calendar against Python's for every day of ten centuries."""

from __future__ import annotations

import datetime
import random

import duckdb
import pytest
import torch

from tests.operators.oracle import check, duckdb_rows, run
from tqp.core import datatypes as t
from tqp.core import time_limits
from tqp.core.datatypes import DataType
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.operators.scalar_kernels import resolve
from tqp.operators.strings import layout as string_layout
from tqp.operators.temporal import dates

DAYS = [
    0,
    1,
    -1,
    18_321,
    18_322,
    11_016,
    -25_567,
    -719_162,
    -719_163,
    -719_528,
    -800_000,
    -1_100_000,
    2_932_896,
    100_000,
]
DAYS += [random.Random(1).randint(-1_500_000, 3_000_000) for _ in range(60)]
DAYS += [
    datetime.date(year, 12, 28).toordinal() - 719_163 + day
    for year in (1999, 2004, 2015, 2020)
    for day in range(9)
]
DAY = 86_400_000_000
INSTANTS = [
    day * DAY + random.Random(day).choice((0, 1, 999_999, 1_000_000, 3_723_456_789, DAY - 1)) for day in DAYS
]
TIMES = [0, 1, 999, 59_999_999, 60_000_000, 3_723_456_789, DAY - 1]
INTERVALS = [
    (0, 0, 0),
    (14, 40, 360_000_000_000),
    (-14, -40, -360_030_500_000),
    (1, 0, 0),
    (-1, 1, 1),
    (12_345, 7, 61_500_000),
    (0, -1, DAY),
    (24, 29, -1),
]

DAY_PARTS = [
    "year",
    "month",
    "day",
    "decade",
    "century",
    "millennium",
    "quarter",
    "dow",
    "isodow",
    "week",
    "isoyear",
]
DAY_PARTS += ["yearweek", "doy", "era"]
CLOCK_PARTS = ["hour", "minute", "second", "millisecond", "microsecond"]
#: DuckDB's calendar of TIMESTAMP WITH TIME ZONE counts years before Christ from 1 up.
RECENT = [instant for instant in INSTANTS if instant > -50_000_000_000_000_000]


def date_part(part: str, data_type: DataType, values: list[object]) -> None:
    result = t.DOUBLE if part in ("epoch", "julian") else t.BIGINT
    check(f"date_part('{part}', a)", "date_part", [data_type], [values], result, [part], True, [t.VARCHAR])


def test_calendar_against_python() -> None:
    days = torch.arange(-200_000, 200_000)
    year, month, day = dates.civil_from_days(days)
    expected = [datetime.date.fromordinal(d + 719_163) for d in range(-200_000, 200_000)]
    assert year.tolist() == [d.year for d in expected]
    assert month.tolist() == [d.month for d in expected]
    assert day.tolist() == [d.day for d in expected]
    assert dates.year_from_days(days).tolist() == year.tolist()
    assert dates.days_from_civil(year, month, day).tolist() == days.tolist()
    iso_year, iso_week = dates.iso_year_and_week(days)
    assert list(zip(iso_year.tolist(), iso_week.tolist())) == [d.isocalendar()[:2] for d in expected]


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("rows", [0, 1, 5_000])
def test_narrow_days_and_tables(dtype: torch.dtype, rows: int) -> None:
    days = torch.randint(-20_000, 20_000, (rows,), generator=torch.Generator().manual_seed(1)) % 3_000
    expected = [(datetime.date(1970, 1, 1) + datetime.timedelta(int(d))).year for d in days]
    kernel = resolve("date_part", (t.VARCHAR, t.DATE), t.BIGINT)
    assert kernel.function("YEARS", days.to(dtype))[0].tolist() == expected
    assert kernel.function("year", days.to(dtype))[1] is None


@pytest.mark.parametrize("part", [*DAY_PARTS, *CLOCK_PARTS, "epoch", "julian"])
@pytest.mark.parametrize("data_type", [t.DATE, t.TIMESTAMP, t.TIMESTAMP_TZ], ids=str)
def test_date_part(part: str, data_type: DataType) -> None:
    date_part(part, data_type, [*{t.DATE: DAYS, t.TIMESTAMP: INSTANTS}.get(data_type, RECENT), None])


@pytest.mark.parametrize("part", ["hour", "minute", "second"])
@pytest.mark.parametrize("data_type", [t.TIMESTAMP_S, t.TIMESTAMP_MS, t.TIMESTAMP], ids=str)
def test_clock_fields_from_1970_on(part: str, data_type: DataType) -> None:
    values = [instant * dates.ticks_per_day(data_type) // DAY for instant in INSTANTS if instant >= 0]
    date_part(part, data_type, values)
    kernel = resolve("date_part", (t.VARCHAR, data_type), t.BIGINT)
    recent = [value for value in values if value < 2**30 * dates.ticks_per_day(data_type) // 86_400]
    seen, validity = kernel.function(part, torch.tensor(recent))
    assert (seen.dtype, validity) == (torch.int8, None)
    expected, validity = kernel.function(part, torch.tensor([*recent, -(2**63) + 1]))
    assert expected.tolist()[:-1] == seen.tolist()
    assert validity.tolist() == [True] * len(recent) + [False]


@pytest.mark.parametrize("part", [*CLOCK_PARTS, "epoch"])
def test_date_part_of_time(part: str) -> None:
    date_part(part, t.TIME, [*TIMES, None])


@pytest.mark.parametrize(
    "part", ["year", "month", "day", "decade", "century", "millennium", "quarter", *CLOCK_PARTS, "epoch"]
)
def test_date_part_of_interval(part: str) -> None:
    date_part(part, t.INTERVAL, [*INTERVALS, None])


def test_unknown_parts_are_errors() -> None:
    kernel = resolve("date_part", (t.VARCHAR, t.DATE), t.BIGINT)
    with pytest.raises(UnsupportedError, match='no part "yaer".*did you mean "year"'):
        kernel.function("yaer", torch.tensor([1]))


def test_infinite_dates_have_no_parts() -> None:
    infinite = torch.tensor([2**31 - 1, 0, -(2**31) + 1], dtype=torch.int32)
    values, validity = resolve("date_part", (t.VARCHAR, t.DATE), t.BIGINT).function("year", infinite)
    assert validity.tolist() == [False, True, False]
    assert values.tolist()[1] == 1970
    truncated = resolve("date_trunc", (t.VARCHAR, t.DATE), t.TIMESTAMP).function("year", infinite)
    assert truncated.tolist() == [2**63 - 1, 0, -(2**63) + 1]


TRUNC_PARTS = [*(p for p in DAY_PARTS if p != "era"), *CLOCK_PARTS]


@pytest.mark.parametrize("part", TRUNC_PARTS)
@pytest.mark.parametrize("data_type", [t.DATE, t.TIMESTAMP, t.TIMESTAMP_TZ, t.INTERVAL], ids=str)
def test_date_trunc(part: str, data_type: DataType) -> None:
    values = {t.DATE: DAYS, t.INTERVAL: INTERVALS, t.TIMESTAMP: INSTANTS}.get(data_type, RECENT)
    result = t.TIMESTAMP if data_type == t.DATE else data_type
    check(
        f"date_trunc('{part}', a)",
        "date_trunc",
        [data_type],
        [[*values, None]],
        result,
        [part],
        True,
        [t.VARCHAR],
    )


@pytest.mark.parametrize("part", [*TRUNC_PARTS, "epoch", "julian"])
@pytest.mark.parametrize("function", ["date_diff", "date_sub"])
@pytest.mark.parametrize("data_type", [t.DATE, t.TIMESTAMP], ids=str)
def test_date_diff_and_sub(function: str, part: str, data_type: DataType) -> None:
    rng = random.Random(4)
    starts = [v for v in (DAYS if data_type == t.DATE else INSTANTS) for _ in range(3)]
    span = 1 if data_type == t.DATE else DAY
    ends = [
        start
        + rng.choice((0, 1, -1, 28, 30, 31, 365, rng.randint(-4_000, 4_000))) * span
        + rng.choice((0, 0, span // 3))
        for start in starts
    ]
    check(
        f"{function}('{part}', a, b)",
        function,
        [data_type] * 2,
        [[*starts, None], [*ends, 0]],
        t.BIGINT,
        [part],
        True,
        [t.VARCHAR],
    )


@pytest.mark.parametrize("part", CLOCK_PARTS)
@pytest.mark.parametrize("function", ["date_diff", "date_sub"])
def test_date_diff_of_times(function: str, part: str) -> None:
    check(
        f"{function}('{part}', a, b)",
        function,
        [t.TIME] * 2,
        [TIMES, TIMES[::-1]],
        t.BIGINT,
        [part],
        True,
        [t.VARCHAR],
    )


@pytest.mark.parametrize("sign", ["+", "-"])
@pytest.mark.parametrize("data_type", [t.DATE, t.TIMESTAMP, t.TIMESTAMP_TZ, t.TIME], ids=str)
def test_add_intervals_to_dates(sign: str, data_type: DataType) -> None:
    values = {t.DATE: DAYS, t.TIME: TIMES, t.TIMESTAMP: INSTANTS}.get(data_type, RECENT)
    rows = [(value, interval) for value in values for interval in [*INTERVALS, None]]
    result = t.TIMESTAMP if data_type == t.DATE else data_type
    function = "add_interval" if sign == "+" else "subtract_interval"
    check(
        f"a {sign} b", function, [data_type, t.INTERVAL], [[a for a, _ in rows], [b for _, b in rows]], result
    )
    kernel = resolve(function, (data_type, t.INTERVAL), result)  # a literal interval takes another path
    table = torch.tensor(values)
    for interval in INTERVALS:
        literal = kernel.function(table, torch.tensor([interval]))
        assert literal.tolist() == kernel.function(table, torch.tensor([interval] * len(values))).tolist()


@pytest.mark.parametrize(
    "data_type", [t.DATE, t.TIMESTAMP_S, t.TIMESTAMP, t.TIMESTAMP_NS, t.TIMESTAMP_TZ], ids=str
)
@pytest.mark.parametrize("infinite", [False, True])
def test_add_one_interval_to_many_rows(data_type: DataType, infinite: bool) -> None:
    rows = 5_000  # enough for a table of the days
    per_day = 1 if data_type == t.DATE else dates.ticks_per_day(data_type)
    generator = torch.Generator().manual_seed(3)
    values = torch.randint(-400 * per_day, 800 * per_day, (rows,), generator=generator)
    validity = torch.rand(rows, generator=generator) < 0.9
    if infinite:
        limit = time_limits.INFINITE_DAY if data_type == t.DATE else time_limits.INFINITE_TICK
        values[::100], values[1::100] = limit, -limit
    kernel = resolve("add_interval", (data_type, t.INTERVAL), t.TIMESTAMP)
    for interval in INTERVALS:
        literal = kernel.function(values, torch.tensor([interval]), validity=validity)
        by_row = kernel.function(values, torch.tensor([interval] * rows), validity=validity)
        assert torch.equal(literal, by_row)


def test_add_one_interval_beyond_the_range() -> None:
    kernel = resolve("add_interval", (t.DATE, t.INTERVAL), t.TIMESTAMP)
    days = torch.arange(time_limits.LAST_MICROSECOND // DAY - 3_000, time_limits.LAST_MICROSECOND // DAY)
    interval = torch.tensor([[1, 0, 0]])
    valid = days < days[-1] - 31
    by_row = kernel.function(days, interval.expand(days.shape[0], 3), validity=valid)
    assert torch.equal(kernel.function(days, interval, validity=valid), by_row)
    with pytest.raises(ExecutionError, match="not in timestamp range"):
        kernel.function(days, interval)


def test_adding_beyond_the_range_raises() -> None:
    last = 294_247 * 366 * DAY
    for instant, interval in (
        (9_223_372_036_854_775_000, (0, 0, 900)),
        (0, (12 * 300_000, 0, 0)),
        (0, (0, -200_000_000, 0)),
        (-9_223_372_022_400_000_000, (0, 0, -1)),
        (last // 10, (0, 2_000_000_000, 2**62)),
    ):
        check("a + b", "add_interval", [t.TIMESTAMP, t.INTERVAL], [[instant], [interval]], t.TIMESTAMP)


def test_days_and_differences() -> None:
    counts = [0, 1, -1, 40_000, None, -300]
    days = [0, 18_321, -719_528, 5, 6, None]
    check("a + b::INTEGER", "add_days", [t.DATE, t.INTEGER], [days, counts], t.DATE)
    check("a - b::INTEGER", "subtract_days", [t.DATE, t.INTEGER], [days, counts], t.DATE)
    check("a - b", "subtract_dates", [t.DATE, t.DATE], [days, days[::-1]], t.BIGINT)
    check("a + b", "add_time", [t.DATE, t.TIME], [days, [*TIMES[:5], None]], t.TIMESTAMP)
    check("a - b", "subtract_timestamps", [t.TIMESTAMP] * 2, [INSTANTS, INSTANTS[::-1]], t.INTERVAL)
    with pytest.raises(ExecutionError, match="Date out of range"):
        run("add_days", [t.DATE, t.INTEGER], [[5], [2**31 - 5]], t.DATE)


def test_intervals_alone() -> None:
    pairs = [(a, b) for a in INTERVALS for b in INTERVALS]
    columns = [[a for a, _ in pairs], [b for _, b in pairs]]
    check("a + b", "add_intervals", [t.INTERVAL] * 2, columns, t.INTERVAL)
    check("a - b", "subtract_intervals", [t.INTERVAL] * 2, columns, t.INTERVAL)
    check("-a", "negate_interval", [t.INTERVAL], [INTERVALS], t.INTERVAL)
    for factor in (0, 1, -3, 1_000):
        check(
            "a * b",
            "multiply_interval",
            [t.INTERVAL, t.BIGINT],
            [INTERVALS, [factor] * len(INTERVALS)],
            t.INTERVAL,
        )
    for number in (2.0, 2.5, 0.3, 7.0, -1.5):
        column = [number] * len(INTERVALS)
        check("a * b", "multiply_interval", [t.INTERVAL, t.DOUBLE], [INTERVALS, column], t.INTERVAL)
        check("a / b", "divide_interval", [t.INTERVAL, t.DOUBLE], [INTERVALS, column], t.INTERVAL)
    with pytest.raises(ExecutionError, match="INTERVAL"):
        run("add_intervals", [t.INTERVAL] * 2, [[(2**31 - 1, 0, 0)], [(1, 0, 0)]], t.INTERVAL)
    with pytest.raises(ExecutionError, match="out of range"):
        run("divide_interval", [t.INTERVAL, t.DOUBLE], [[(1, 0, 0)], [0.0]], t.INTERVAL)


@pytest.mark.parametrize(
    "unit",
    [
        "years",
        "quarters",
        "months",
        "weeks",
        "days",
        "centuries",
        "decades",
        "millennia",
        "hours",
        "minutes",
        "microseconds",
    ],
)
def test_to_interval_of_integers(unit: str) -> None:
    check(
        f"to_{unit}(a)",
        "to_interval",
        [t.BIGINT],
        [[0, 1, -7, 1_000, None]],
        t.INTERVAL,
        [unit],
        True,
        [t.VARCHAR],
    )
    check(f"to_{unit}(a)", "to_interval", [t.BIGINT], [[2**62]], t.INTERVAL, [unit], True, [t.VARCHAR])


@pytest.mark.parametrize("unit", ["seconds", "milliseconds"])
def test_to_interval_of_floats(unit: str) -> None:
    values = [0.0, 1.5, -2.25, 0.1234567, 1e6, None]
    check(f"to_{unit}(a)", "to_interval", [t.DOUBLE], [values], t.INTERVAL, [unit], True, [t.VARCHAR])


def test_make_date_and_timestamp() -> None:
    rng = random.Random(6)
    rows = [(rng.randint(-5_000, 9_999), rng.randint(1, 12), rng.randint(1, 28)) for _ in range(50)] + [
        (2020, 2, 29),
        (0, 12, 31),
    ]
    check("make_date(a, b, c)", "make_date", [t.BIGINT] * 3, [list(c) for c in zip(*rows)], t.DATE)
    for row in ((2021, 2, 29), (2020, 13, 1), (2020, 0, 1), (2020, 1, 0), (5_881_581, 1, 1), (2**40, 1, 1)):
        check("make_date(a, b, c)", "make_date", [t.BIGINT] * 3, [[part] for part in row], t.DATE)
    types = [*[t.BIGINT] * 5, t.DOUBLE]
    clocks = [
        (0, 0, 0.0),
        (23, 59, 59.999999),
        (1, 2, 3.4567891),
        (1, 2, 59.9999999),
        (24, 0, 0.0),
        (5, 6, 60.5),
        (1, 1, 1.0000005),
    ]
    for clock in [*clocks, (24, 0, 0.1), (23, 60, 0.0), (-1, 0, 0.0), (1, 1, 61.0), (1, 1, -0.5)]:
        check(
            "make_timestamp(a, b, c, d, e, f)",
            "make_timestamp",
            types,
            [[part] for part in (2020, 2, 29, *clock)],
            t.TIMESTAMP,
        )


def test_last_day_and_epoch() -> None:
    check("last_day(a)", "last_day", [t.DATE], [[*DAYS, None]], t.DATE)
    check("last_day(a)", "last_day", [t.TIMESTAMP], [INSTANTS], t.DATE)
    check("epoch_ms(a)", "epoch_ms", [t.BIGINT], [[0, 5, -5, 10**12, None]], t.TIMESTAMP)
    check("epoch_ms(a)", "epoch_ms", [t.BIGINT], [[2**62]], t.TIMESTAMP)
    for part in ("epoch_ms", "epoch_us"):
        for data_type, values in (
            (t.DATE, DAYS),
            (t.TIMESTAMP, INSTANTS),
            (t.TIME, TIMES),
            (t.INTERVAL, INTERVALS),
        ):
            check(f"{part}(a)", "date_part", [data_type], [values], t.BIGINT, [part], True, [t.VARCHAR])


@pytest.mark.parametrize("function", ["dayname", "monthname"])
@pytest.mark.parametrize("data_type", [t.DATE, t.TIMESTAMP], ids=str)
def test_names(function: str, data_type: DataType) -> None:
    values = DAYS if data_type == t.DATE else INSTANTS
    check(f"{function}(a)", function, [data_type], [[*values, None]], t.VARCHAR)


@pytest.mark.parametrize(
    "pattern",
    [
        "%Y-%m-%d",
        "%A %a %w %u %j %-j %U %W %V %G",
        "%B %b %h %-d/%-m/%y %-y %x",
        "%H:%M:%S.%f %g %n %I %p %-H %-I %-M %-S",
        "%c|%X|%T|%z%Z|100%%",
        "é%Y",
    ],
)
@pytest.mark.parametrize("data_type", [t.DATE, t.TIMESTAMP], ids=str)
def test_strftime(pattern: str, data_type: DataType) -> None:
    values = DAYS if data_type == t.DATE else INSTANTS
    sql = f"strftime(a, '{pattern.replace('%n', '%f000')}')"  # DuckDB pads %n with bytes of other memory
    check(sql, "strftime", [data_type], [[*values, None]], t.VARCHAR, [pattern], False, [t.VARCHAR])
    with pytest.raises(ExecutionError, match="%Q is not known"):
        resolve("strftime", (data_type, t.VARCHAR), t.VARCHAR).function(torch.tensor([1]), "%Q")


STRPTIME = [
    ("2020-02-01", "%Y-%m-%d"), ("1/2/99", "%-d/%-m/%y"), ("01/12/68", "%d/%m/%y"), ("20200201", "%Y%m%d"), ("10 PM", "%I %p"), ("12 am", "%I %p"),
    ("2020 60", "%Y %j"), ("2020-01-01 10:20:30.123", "%Y-%m-%d %H:%M:%S.%f"), ("2020-01-01 10:20:30.123", "%Y-%m-%d %H:%M:%S.%g"),
    ("Sat Feb 1 2020", "%a %b %d %Y"), ("february 3 2021", "%B %d %Y"), (" 2020-2-3 ", "%Y-%m-%d"), ("10:20", "%H:%M"), ("2020-01-01 01:02:03", "%c"),
    ("2020-02-30", "%Y-%m-%d"), ("x", "%Y"), ("2020-01-01 24:00:00", "%Y-%m-%d %H:%M:%S"), ("12020-02-03", "%Y-%m-%d"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "pattern"), STRPTIME)
def test_strptime(text: str, pattern: str) -> None:
    kernel = resolve("strptime", (t.VARCHAR, t.VARCHAR), t.TIMESTAMP)
    try:
        _, expected = duckdb_rows(f"epoch_us(strptime(a, '{pattern}'))", [t.VARCHAR], [[text]])
    except duckdb.Error:
        with pytest.raises(ExecutionError, match="Could not parse"):
            kernel.function(string_layout.from_list([text]), pattern)
        return
    assert kernel.function(string_layout.from_list([text]), pattern).tolist() == expected


def test_whole_parts_between_instants_further_apart_than_64_bits() -> None:
    generator = random.Random(3)
    ends = (time_limits.FIRST_MICROSECOND, time_limits.LAST_MICROSECOND, 0, -1, 1, 999, -86_400_000_000)
    pairs = [(a, b) for a in ends for b in ends]
    pairs += [(generator.randrange(*ends[:2]), generator.randrange(*ends[:2])) for _ in range(500)]
    start, end = (torch.tensor(each) for each in zip(*pairs, strict=True))
    for part, unit in (("millisecond", 10**3), ("hour", 3_600 * 10**6), ("week", 7 * 86_400 * 10**6)):
        kernel = resolve("date_sub", (t.VARCHAR, t.TIMESTAMP, t.TIMESTAMP), t.BIGINT)
        counts, _ = kernel.function(part, start, end)
        exact = [abs(b - a) // unit * (1 if b > a else -1) for a, b in pairs]
        assert counts.tolist() == exact
