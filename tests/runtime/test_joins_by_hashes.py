"""Joins that ask whether a row has a partner, by keys that are hashed and compared: many rows of one key are met once."""

from __future__ import annotations

import duckdb
import pytest

import tqp
from tests.oracle import arrow_of, assert_same_rows

_TABLE = (
    "SELECT i, CASE WHEN i % 7 > 0 THEN INTERVAL 1 DAY * (i % 3) END AS v, (i % 5)::HUGEINT * 10 ** 20 AS h,"
    " CASE WHEN i % 4 > 0 THEN {{'a': i % 5, 'b': [INTERVAL 1 MONTH, NULL]}} END AS s, 0.5 * (i % 9)::DOUBLE AS f FROM range({}) r(i)"
)
_CONDITIONS = [
    "v IN (SELECT v FROM t)",
    "v IN (SELECT v + INTERVAL '24 hours' FROM t)",
    "v NOT IN (SELECT v FROM t WHERE v > INTERVAL 1 DAY)",
    "v NOT IN (SELECT v FROM t)",
    "s IN (SELECT {'a': 1, 'b': [INTERVAL 30 DAYS, NULL]} FROM t)",
    "s NOT IN (SELECT s FROM t WHERE s.a > 1)",
    "(h, f) IN (SELECT h, f FROM t WHERE i > 10)",
    "(v, s) IN (SELECT v, s FROM t)",
    "EXISTS (SELECT 1 FROM t u WHERE u.v = t.v AND u.h = t.h)",
    "EXISTS (SELECT 1 FROM t u WHERE u.v IS NOT DISTINCT FROM t.v AND u.f IS NOT DISTINCT FROM -t.f)",
    "NOT EXISTS (SELECT 1 FROM t u WHERE u.v = t.v AND u.i <> t.i)",
]


@pytest.mark.parametrize("rule", [(), ("distinct_build_side",)])
@pytest.mark.parametrize("condition", _CONDITIONS)
def test_answers_are_those_of_duckdb(condition: str, rule: tuple[str, ...]) -> None:
    tables = {"t": arrow_of(duckdb.sql(_TABLE.format(300)))}
    query = f"SELECT {condition} AS found, count(*) AS n, sum(i) AS i FROM t GROUP BY found ORDER BY ALL"
    assert_same_rows(tables, query, disabled_rules=rule)
    assert_same_rows(tables, f"SELECT i FROM t WHERE {condition} ORDER BY i", disabled_rules=rule)


@pytest.mark.parametrize("condition", _CONDITIONS[:10])
def test_equal_rows_are_met_once(condition: str) -> None:
    """They are grouped, or looked up by the bytes that stand for nested values."""
    assert _meets_equal_rows_once(condition, ())
    assert not _meets_equal_rows_once(condition, ("distinct_build_side",))


@pytest.mark.parametrize(
    "subquery", ["SELECT v, g FROM t", "SELECT v, g FROM t UNION ALL SELECT v, g FROM t"]
)
def test_rows_that_a_key_tells_apart_are_not_grouped(subquery: str) -> None:
    assert not _meets_equal_rows_once(f"(v, g) IN ({subquery})", ())


def _meets_equal_rows_once(condition: str, rule: tuple[str, ...]) -> bool:
    with tqp.connect(backend="host", disabled_rules=rule) as connection:
        connection.sql(f"CREATE TABLE t AS SELECT *, i * 1_000_000_007 AS g FROM ({_TABLE.format(2_000)})")
        found = connection.sql(f"EXPLAIN SELECT count(*) FROM t WHERE {condition}").fetchone()
    assert found is not None
    _, plan = str(found[-1]).split("Physical plan")
    assert " join]" in plan
    return "group-by] by" in plan or "group-by, " in plan or "[string join]" in plan
