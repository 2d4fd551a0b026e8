"""Ranges hold every value an expression takes, and are tight where that is easy to see."""

from __future__ import annotations

import datetime
import itertools

import duckdb
import pytest

from tests.reference_plan import evaluate
from tqp.core.datatypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    INTEGER,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMP_TZ,
    VARCHAR,
    DataType,
    decimal,
)
from tqp.core.schema import ColumnFacts, Field
from tqp.planner.algebra.expressions import Call, Case, Cast, ColumnRef, Expression, InList, Literal
from tqp.planner.algebra.value_ranges import is_finite, operand_range, value_range

RANGES = [(-3, 2), (0, 4), (1, 3), (-5, -2)]


def column(identifier: int, data_type: DataType = BIGINT) -> ColumnRef:
    return ColumnRef(identifier, data_type, f"c{identifier}")


def field(identifier: int, low: int | None, high: int | None, data_type: DataType = BIGINT) -> Field:
    return Field(identifier, f"c{identifier}", data_type, True, ColumnFacts(low, high))


def text(value: str) -> Literal:
    return Literal(value, VARCHAR)


@pytest.mark.parametrize("first, second", list(itertools.product(RANGES, RANGES)))
def test_arithmetic_is_sound(first: tuple[int, int], second: tuple[int, int]) -> None:
    fields = {0: field(0, *first), 1: field(1, *second)}
    x, y = column(0), column(1)
    positive = Call("less", (x, y), BOOLEAN)
    expressions: list[Expression] = [
        *(Call(function, (x, y), BIGINT) for function in ("add", "subtract", "multiply", "coalesce")),
        *(Call(function, (x,), BIGINT) for function in ("negate", "abs")),
        Call("modulo", (x, Literal(3, BIGINT)), BIGINT),
        Case(((positive, x),), y, BIGINT),
        Call("add", (Call("multiply", (x, x), BIGINT), Call("negate", (y,), BIGINT)), BIGINT),
    ]
    for expression in expressions:
        known = value_range(expression, fields)
        assert known is not None
        for a in range(first[0], first[1] + 1):
            for b in range(second[0], second[1] + 1):
                assert known[0] <= evaluate(expression, {0: a, 1: b}) <= known[1], expression


def test_sums_and_products_are_tight() -> None:
    fields = {0: field(0, -3, 2), 1: field(1, 4, 5)}
    assert value_range(Call("add", (column(0), column(1)), BIGINT), fields) == (1, 7)
    assert value_range(Call("subtract", (column(0), column(1)), BIGINT), fields) == (-8, -2)
    assert value_range(Call("multiply", (column(0), column(1)), BIGINT), fields) == (-15, 10)


def test_overflow_shows_but_does_not_spread() -> None:
    fields = {0: field(0, 0, 2**31 - 1, INTEGER)}
    x = column(0, INTEGER)
    total = Call("add", (x, x), INTEGER)
    assert value_range(total, fields) == (0, 2**32 - 2)  # may overflow INTEGER ...
    assert operand_range(total, fields) == (0, 2**31 - 1)  # ... but raises where it does


def test_unknown_columns() -> None:
    x = column(0, INTEGER)
    assert value_range(x, {}) is None
    assert value_range(x, {0: field(0, None, None, INTEGER)}) is None
    assert operand_range(x, {}) == INTEGER.bounds
    assert value_range(Call("add", (x, Literal(1, INTEGER)), INTEGER), {}) == (-(2**31) + 1, 2**31)
    assert value_range(column(1, VARCHAR), {}) is None
    assert value_range(Call("gcd", (x, x), INTEGER), {}) is None


def test_range_of_takes_a_schema() -> None:
    assert value_range(column(1), {0: field(0, 1, 2), 1: field(1, 3, 4)}) == (3, 4)


def test_decimal_scales() -> None:
    price, discount = decimal(15, 2), decimal(15, 4)
    fields = {0: field(0, -100, 1050, price)}
    x = column(0, price)
    assert value_range(Cast(x, discount), fields) == (-10_000, 105_000)
    assert value_range(Cast(x, BIGINT), fields) == (-1, 11)  # 10.50 rounds away from zero
    assert value_range(Cast(x, decimal(15, 1)), fields) == (-10, 105)
    assert value_range(Call("multiply", (x, x), decimal(30, 4)), fields) == (-105_000, 1_102_500)
    assert value_range(Call("add", (x, Cast(x, discount)), discount), fields) is None  # scales differ


def test_casts() -> None:
    fields = {0: field(0, -5, 300), 1: field(1, 0, 10, DATE)}
    assert value_range(Cast(Call("is_null", (column(0),), BOOLEAN), INTEGER), fields) == (0, 1)
    tiny = DataType(decimal(2, 0).kind, precision=2)
    assert value_range(Cast(column(0), tiny, is_try=True), fields) == (-5, 99)
    assert value_range(Cast(column(0), tiny), fields) == (-5, 300)
    assert value_range(Cast(column(5, VARCHAR), INTEGER), fields) is None
    ticks = value_range(Cast(column(1, DATE), TIMESTAMP), fields)
    assert ticks is not None and ticks[0] <= 0 and ticks[1] >= 10 * 86_400 * 10**6


def test_nulls_leave_ranges_alone() -> None:
    fields = {0: field(0, 1, 2)}
    null = Literal(None, BIGINT)
    assert value_range(Call("coalesce", (column(0), null), BIGINT), fields) == (1, 2)
    assert value_range(
        Case(((Call("is_null", (column(0),), BOOLEAN), null),), column(0), BIGINT), fields
    ) == (1, 2)
    assert value_range(null, fields) is None
    assert value_range(InList(column(0), (Literal(1, BIGINT),)), fields) is None


DAYS = [-200_000, -719_000, -1, 0, 59, 10_956, 11_016, 20_000, 47_482]
PARTS = ["year", "month", "day", "quarter", "week", "dow", "isodow", "doy", "isoyear", "hour"]


@pytest.mark.parametrize("part", PARTS)
def test_date_parts_agree_with_duckdb(part: str) -> None:
    x = column(0, DATE)
    for day in DAYS:
        expression = Call("date_part", (text(part), x), BIGINT)
        known = value_range(expression, {0: field(0, day, day + 40, DATE)})
        assert known is not None
        shown = datetime.date(1970, 1, 1).isoformat()
        values = duckdb.sql(
            f"SELECT date_part('{part}', DATE '{shown}' + {day}::INT + i::INT) FROM range(41) t(i)"
        )
        assert all(known[0] <= row[0] <= known[1] for row in values.fetchall())


@pytest.mark.parametrize(
    "part", ["week", "month", "quarter", "year", "decade", "century", "millennium", "day"]
)
def test_date_trunc_agrees_with_duckdb(part: str) -> None:
    for day in (-1, 0, 59, 10_956, 11_016, 20_000):
        known = value_range(
            Call("date_trunc", (text(part), column(0, DATE)), DATE), {0: field(0, day, day + 40, DATE)}
        )
        assert known is not None
        query = f"SELECT date_trunc('{part}', DATE '1970-01-01' + {day}::INT + i::INT)::DATE - DATE '1970-01-01' FROM range(41) t(i)"
        assert all(known[0] <= row[0] <= known[1] for row in duckdb.sql(query).fetchall())


def test_shifted_dates() -> None:
    fields = {0: field(0, 100, 200, DATE), 1: field(1, -2, 3)}
    assert value_range(Call("add_days", (column(0, DATE), column(1)), DATE), fields) == (98, 203)
    assert value_range(Call("subtract_dates", (column(0, DATE), column(0, DATE)), BIGINT), fields) == (
        -100,
        100,
    )
    month = Literal((1, 0, 0), INTERVAL)
    shifted = value_range(Call("add_interval", (column(0, DATE), month), TIMESTAMP), fields)
    day = 86_400 * 10**6
    assert shifted is not None and shifted[0] <= 128 * day and shifted[1] >= 231 * day


@pytest.mark.parametrize("function", ["date_diff", "date_sub"])
@pytest.mark.parametrize("part", ["day", "week", "month", "quarter", "year", "isoyear", "decade"])
def test_counts_of_parts_agree_with_duckdb(function: str, part: str) -> None:
    fields = {0: field(0, 10_950, 10_960, DATE), 1: field(1, 10_940, 11_330, DATE)}
    known = value_range(Call(function, (text(part), column(0, DATE), column(1, DATE)), BIGINT), fields)
    assert known == (-20, 380)
    counts = f"{function}('{part}', DATE '1970-01-01' + a::INT, DATE '1970-01-01' + b::INT)"
    rows = duckdb.sql(f"SELECT {counts} FROM range(10950, 10961) x(a), range(10940, 11331) y(b)").fetchall()
    assert all(known[0] <= count <= known[1] for (count,) in rows)
    assert (
        value_range(Call(function, (text("hour"), column(0, DATE), column(1, DATE)), BIGINT), fields) is None
    )


def test_infinite_dates_are_unknown() -> None:
    infinity = 2**31 - 1
    fields = {0: field(0, 0, infinity, DATE), 1: field(1, 0, 1, DATE)}
    assert not is_finite(column(0, DATE), fields)
    assert is_finite(column(1, DATE), fields)
    assert value_range(Call("date_part", (text("year"), column(0, DATE)), BIGINT), fields) is None
    assert value_range(Cast(column(0, DATE), TIMESTAMP), fields) is None


def test_time_zones_get_a_day_of_slack() -> None:
    midnight = field(0, 0, 0, TIMESTAMP_TZ)
    year = Call("date_part", (text("year"), column(0, TIMESTAMP_TZ)), BIGINT)
    assert value_range(year, {0: midnight}) == (1969, 1970)
