"""Result types and refusals of expressions over columns and literals of many types, held against DuckDB."""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pytest

import tqp
from tests.oracle import duckdb_database
from tests.planner.binding import T_COLUMNS, described, duckdb_described, duckdb_with_tables

_COLUMNS = "ti i bi hi ut ub d93 d182 f d s dt ts tm b iv bl tz tns".split()
_LITERALS = [
    "17",
    "300",
    "-5",
    "- -4",
    "+5",
    "3000000000",
    "NULL",
    "'1'",
    "1.5",
    "true",
    "NULL + 1.5",
    "(SELECT 5)",
]
_VALUES = _COLUMNS + _LITERALS
_PAIRS = (
    "CASE WHEN b THEN {} ELSE {} END",
    "if(b, {}, {})",
    "coalesce({}, {})",
    "greatest({}, {})",
    "nullif({}, {})",
    "{} = {}",
    "{} < {}",
    "{} IS DISTINCT FROM {}",
    "{} + {}",
    "{} * {}",
    "{} % {}",
    "{} || {}",
)
_TRIPLES = (
    "CASE WHEN b THEN {} WHEN NOT b THEN {} ELSE {} END",
    "CASE {} WHEN {} THEN {} END",
    "coalesce({}, {}, {})",
    "least({}, {}, {})",
    "{} BETWEEN {} AND {}",
    "{} IN ({}, {})",
    "(SELECT x FROM (VALUES ({}), ({}), ({})) v(x))",
)


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with one row in `t`, as some casts that do not exist are refused only when a row arrives."""
    with duckdb_with_tables() as connection:
        row = [_one(str(data_type)) for data_type in T_COLUMNS.values()]
        connection.execute(f"INSERT INTO t VALUES ({', '.join(row)})")
        yield connection


def _one(data_type: str) -> str:
    return {"DATE": "'2024-01-01'", "TIME": "'01:00:00'", "INTERVAL": "'1 day'", "BOOLEAN": "true"}.get(
        data_type, "'2024-01-01'" if data_type.startswith("TIMESTAMP") else "'1'"
    )


def _type_in_duckdb(duck: duckdb.DuckDBPyConnection, expression: str) -> str | None:
    """The type, "refused", or None where DuckDB fails otherwise."""
    try:
        return duckdb_described(duck, f"SELECT {expression} FROM t")[0][1]
    except duckdb.BinderException:
        return "refused"
    except duckdb.Error:
        return None


def _type_here(expression: str) -> str:
    try:
        return described(f"SELECT {expression} FROM t")[0][1]
    except (tqp.BindError, tqp.ExecutionError):
        return "refused"


def _differences(duck: duckdb.DuckDBPyConnection, expressions: Iterable[str]) -> list[str]:
    found = []
    for expression in expressions:
        wanted = _type_in_duckdb(duck, expression)
        if wanted is not None and _type_here(expression) != wanted:
            found.append(f"{expression}: DuckDB {wanted}, here {_type_here(expression)}")
    return found


@pytest.mark.parametrize("form", _PAIRS)
def test_types_of_two_values(duck: duckdb.DuckDBPyConnection, form: str) -> None:
    pairs = [pair for pair in itertools.product(_VALUES, _VALUES) if set(pair) & set(_LITERALS)]
    columns = itertools.product(_COLUMNS, _COLUMNS)
    pairs = random.Random(form).sample([*pairs, *columns], 250)
    assert _differences(duck, (form.format(*pair) for pair in pairs)) == []


@pytest.mark.parametrize("form", _TRIPLES)
def test_types_of_three_values(duck: duckdb.DuckDBPyConnection, form: str) -> None:
    values = random.Random(form)
    triples = [(values.choice(_VALUES), values.choice(_LITERALS), values.choice(_VALUES)) for _ in range(150)]
    triples += [(values.choice(_LITERALS), *pair[:2]) for pair in triples]
    triples = [triple for triple in triples if not (triple[0].startswith("NULL") and "IN (" in form)]
    assert _differences(duck, (form.format(*triple) for triple in triples)) == []


_NULL_CALLS = """
NULL + 1|- NULL|+NULL|NULL * 2.5|d93 % NULL|upper(NULL)|length(NULL)|round(d93, NULL)|round(1, NULL)|abs(NULL)|floor(NULL)
extract(year FROM NULL::DATE)|date_part(NULL, dt)|extract(year FROM dt)|extract(epoch FROM dt)|date_trunc(NULL, dt)
regexp_matches(s, NULL)|s LIKE 'a' ESCAPE NULL|s ILIKE 'a' ESCAPE NULL|strftime(dt, NULL)|greatest(NULL, NULL)
sum(1.5 + NULL)|sum(NULL)|median(NULL)|median(d93 + NULL)|avg(NULL)|max(d93 + NULL)|count_if(NULL)|count_if(b)
count_if('true')|count_if(i)|count_if(s)|d93 + nullif(1, 1)|NULL::DECIMAL(4,1) + 1|dt + NULL|NULL - dt|iv * NULL
CASE WHEN b THEN ti ELSE NULL + 1 END|CASE WHEN b THEN dt ELSE upper(NULL) END|CASE WHEN b THEN ti ELSE d93 * NULL END
year(NULL)|NULL & 1|gcd(NULL, 1)|(SELECT NULL) + 1.5|ti + -(2147483648)|- -2147483648|ut + (+(0))|+s|+'a'|+dt|+true
"""


def test_types_where_an_argument_is_null(duck: duckdb.DuckDBPyConnection) -> None:
    expressions = [each for line in _NULL_CALLS.strip().splitlines() for each in line.split("|")]
    assert _differences(duck, expressions) == []


_PARAMETERS: list[Any] = [
    *(sign * (2**bits + offset) for bits in (7, 31, 32, 63, 64) for offset in (-1, 0, 1) for sign in (1, -1)),
    *(
        2**127 - 1,
        -(2**127),
        True,
        None,
        1.5,
        -0.0,
        "a",
        b"a",
        bytearray(b"a"),
        memoryview(b"a"),
        np.str_("a"),
    ),
    *(
        Decimal(text)
        for text in "0 0.0 0.00 0.3 0.003 -0.003 1.500 100 1e5 1E-5 1e37 1e38 1e-37 1e-38 1e-39".split()
    ),
    *(Decimal("9" * 38), Decimal("9" * 39), Decimal("NaN"), Decimal("-Infinity"), datetime.date(2024, 1, 1)),
    *(datetime.datetime(2024, 1, 1, 1, 2, 3, 4), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)),
    *(
        datetime.time(1, 2, 3, 4),
        datetime.time(1, tzinfo=datetime.UTC),
        datetime.timedelta(days=1, seconds=5),
        datetime.timedelta(days=-1),
    ),
    np.datetime64("2024-01-01"),
]


@pytest.mark.parametrize(
    "value", _PARAMETERS, ids=lambda value: f"{type(value).__name__} {str(value)[:40]}".partition(" <")[0]
)
def test_type_of_a_parameter(value: Any) -> None:
    with duckdb_database() as oracle:
        (made,) = oracle.execute("SELECT $1", [value]).description
    assert described("SELECT $1", [value])[0][1] == str(made[1])


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        (2**128, "does not fit a HUGEINT or UHUGEINT"),
        (Decimal("sNaN"), "signaling NaN"),
        (datetime.time(1, tzinfo=ZoneInfo("Europe/Oslo")), "no known offset"),
        ({1, 2}, "is a set"),
    ],
)
def test_parameters_that_have_no_type(value: Any, pattern: str) -> None:
    with pytest.raises(tqp.Error, match=pattern):
        described("SELECT $1", [value])
