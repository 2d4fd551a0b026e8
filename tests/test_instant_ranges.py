"""Days, months and years of instants that are compared with constants, as ranges of the instants: answers are those of DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

import tqp
from tests.oracle import duckdb_database
from tqp.compiled import KnownShape

_INSTANTS = """SELECT i, CASE WHEN i % 13 > 0 THEN TIMESTAMP '1998-11-28 23:59:59.999999' + to_minutes(i * 977) + to_microseconds(i % 3) END AS t,
    (TIMESTAMP '1969-10-30 00:00:00' + to_hours(i * 7))::TIMESTAMP_S AS s, (TIMESTAMP '1969-12-30 22:00:00' + to_minutes(i * 71))::TIMESTAMP_NS AS n,
    (TIMESTAMP '2024-02-28 22:00:00' + to_minutes(i * 31))::TIMESTAMPTZ AS z, DATE '1999-12-20' + (i // 5)::INTEGER AS d,
    CASE i % 5 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE '2000-01-03 00:00:00' END::TIMESTAMP AS e
    FROM range(700) AS r(i)"""
_COMPARED = [
    ("t::DATE", ["DATE '1999-01-01'", "DATE '1900-01-01'", "DATE 'infinity'", "'1999-02-28'"]),
    ("CAST(s AS DATE)", ["DATE '1970-01-01'", "DATE '1969-12-31'", "DATE '5881580-07-10'"]),
    ("n::DATE", ["DATE '1970-01-01'", "DATE '2300-01-01'"]),
    ("z::DATE", ["DATE '2024-02-29'", "DATE '2024-03-01'"]),
    ("e::DATE", ["DATE '2000-01-03'", "DATE 'infinity'", "DATE '-infinity'"]),
    ("TRY_CAST(t AS DATE)", ["DATE '1999-01-01'"]),
    ("date_trunc('month', t)", ["TIMESTAMP '1999-03-01'", "TIMESTAMP '1999-03-01 00:00:01'", "'1999-01-31'"]),
    ("date_trunc('WEEK', t)", ["TIMESTAMP '1999-03-01'", "TIMESTAMP '1999-03-02'", "DATE '1999-03-08'"]),
    ("date_trunc('quarter', d)", ["DATE '2000-01-01'", "DATE '2000-02-01'"]),
    ("date_trunc('year', t)::DATE", ["DATE '1999-01-01'", "DATE '1999-06-01'"]),
    ("date_trunc('hour', t)", ["TIMESTAMP '1999-03-01 07:00:00'", "TIMESTAMP '1999-03-01 07:00:00.5'"]),
    ("date_trunc('day', z)", ["TIMESTAMPTZ '2024-02-29 00:00:00+00'", "TIMESTAMPTZ '2024-02-29 01:00:00+00'"]),
    ("date_trunc('month', e)", ["TIMESTAMP '2000-01-01'", "TIMESTAMP 'infinity'"]),
    ("date_trunc('decade', t)", ["TIMESTAMP '1990-01-01'"]),
    ("time_bucket(INTERVAL '15 minutes', t)", ["TIMESTAMP '1999-03-01 07:15:00'", "TIMESTAMP '1999-03-01 07:14:00'"]),
    ("time_bucket(INTERVAL '10 days', d)", ["DATE '2000-01-03'", "DATE '2000-01-13'", "DATE '2000-01-14'"]),
    ("time_bucket(INTERVAL '2 months', d)", ["DATE '2000-01-01'", "DATE '2000-02-01'"]),
    ("year(t)", ["1999", "1998", "2000", "-7", "123456789"]),
    ("extract(year FROM d)", ["1999", "2000"]),
    ("year(e)", ["1999", "2000"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def expected() -> Iterator[Callable[[str], list[Any]]]:
    """DuckDB's answers, which both backends are held against."""
    with duckdb_database() as connection:
        connection.execute(f"SET TimeZone = 'UTC'; CREATE TABLE x AS {_INSTANTS}")
        yield cache(lambda query: connection.sql(query).fetchall())


def _queries(value: str, constants: list[str]) -> Iterator[str]:
    for operator in ("=", "<>", "<", "<=", ">", ">="):
        for constant in constants:
            yield f"SELECT i FROM x WHERE {value} {operator} {constant} ORDER BY i"
            yield f"SELECT count(*), min(i) FROM x WHERE NOT ({constant} {operator} {value}) OR i = 3"


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("value, constants", _COMPARED)
def test_answers_are_those_of_duckdb(
    value: str,
    constants: list[str],
    backend: str,
    expected: Callable[[str], list[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(KnownShape, "is_worth_parameters", lambda *_: True)
    with tqp.connect(threads=1, backend=backend) as connection:
        connection.execute(f"CREATE TABLE x AS {_INSTANTS}")
        for query in _queries(value, constants):
            assert connection.sql(query).fetchall() == expected(query), query


def _plan(condition: str) -> str:
    with tqp.connect() as connection:
        connection.execute(f"CREATE TABLE x AS {_INSTANTS}")
        text: str = connection.sql(f"EXPLAIN SELECT i FROM x WHERE {condition}").fetchall()[0][-1]
    return next(line for line in text.splitlines() if "Filter" in line)


@pytest.mark.parametrize("condition, expected", [
    ("t::DATE = '1999-03-01'", "t >= TIMESTAMP '1999-03-01 00:00:00' AND t < TIMESTAMP '1999-03-02 00:00:00'"),
    ("date_trunc('month', t)::DATE = '1999-03-01'", "t >= TIMESTAMP '1999-03-01 00:00:00' AND t < TIMESTAMP '1999-04-01 00:00:00'"),
    ("year(d) <= 1999", "d < DATE '2000-01-01'"),
    ("time_bucket(INTERVAL '1 hour', t) > TIMESTAMP '1999-03-01 00:30:00'", "t >= TIMESTAMP '1999-03-01 01:00:00'"),
])  # fmt: skip
def test_instants_are_compared(condition: str, expected: str) -> None:
    assert expected in _plan(condition)


def test_what_may_be_infinite_stays() -> None:
    assert "date_trunc('month', e)" in _plan("date_trunc('month', e) = TIMESTAMP '2000-01-01'")
    assert "e >= TIMESTAMP '2000-01-03" in _plan("e::DATE = '2000-01-03'")  # an infinity has a day
