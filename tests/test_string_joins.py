"""Joins on strings, against DuckDB: dictionaries on both sides, on one and on none; NULLs; every join type."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import tqp

_ROWS = 6_000  # more than what always gets a dictionary


def _table(seed: int, values: list[str | None]) -> pa.Table:
    numbers = [random.Random(seed + row).randrange(1000) for row in range(len(values))]
    return pa.table({"name": pa.array(values, pa.string()), "kind": [n % 3 for n in numbers], "n": numbers})


def _odd(chance: random.Random) -> list[str | None]:
    letters = ["a", "b", "\0", "é", "日", "🙂", " ", "Z"]
    texts: list[str | None] = [
        "".join(chance.choices(letters, k=chance.randrange(7 if row % 2 else 30))) for row in range(_ROWS)
    ]
    return [None, "", "a", "a\0", *texts, "name 00007", "name 000070"]


def _tables() -> dict[str, pa.Table]:
    chance = random.Random(0)
    names = [f"name {number:05d}" for number in range(_ROWS)]
    return {
        "few": _table(1, [chance.choice([*names[:50], "", "only few", None]) for _ in range(_ROWS)]),
        "others": _table(2, [chance.choice([*names[20:90], "only others", None]) for _ in range(300)]),
        "keys": _table(3, names),  # unique, hence without a dictionary
        "missing": _table(4, [None] * 10),
        "odd": _table(5, _odd(chance)),  # most are unique, and neither bytes nor lengths are alike
    }


_GROUPS = "WITH g AS (SELECT name, kind, sum(n) AS n FROM {0} GROUP BY name, kind) "
QUERIES = [
    "SELECT count(*), sum(a.n * b.n) FROM {0} a JOIN {1} b ON a.name = b.name",
    "SELECT count(*), sum(a.n), sum(b.n) FROM {0} a LEFT JOIN {1} b ON a.name = b.name",
    "SELECT count(*), sum(a.n), sum(b.n) FROM {0} a FULL JOIN {1} b ON a.name = b.name AND a.kind = b.kind",
    "SELECT count(*), sum(a.n * b.n) FROM {0} a JOIN {1} b ON a.name = b.name AND a.kind = b.kind",
    "SELECT count(*), sum(a.n) FROM {0} a WHERE name IN (SELECT name FROM {1})",
    "SELECT count(*), sum(a.n) FROM {0} a WHERE name NOT IN (SELECT name FROM {1})",
    "SELECT count(*), sum(a.n) FROM {0} a WHERE NOT EXISTS (SELECT 1 FROM {1} b WHERE b.name = a.name AND b.n > a.n)",
    "SELECT count(*), sum(a.n * b.n) FROM {0} a JOIN {1} b ON a.name IS NOT DISTINCT FROM b.name AND a.kind = b.kind",
    "SELECT a.name, count(*) AS c FROM {0} a JOIN {1} b ON a.name = b.name GROUP BY a.name ORDER BY c DESC, a.name LIMIT 5",
    "SELECT count(*) FROM {0} a JOIN {1} b ON upper(a.name) = upper(b.name)",
    # a plan that is read several times: each of its readers has a column of its own for the names
    _GROUPS + "SELECT count(*), sum(a.n * b.n) FROM g a JOIN g b ON a.name = b.name AND a.kind = b.kind + 1",
    _GROUPS
    + "SELECT count(*), sum(a.n), sum(b.n) FROM g a LEFT JOIN g b ON a.name = b.name AND b.kind = 1 AND b.n > a.n",
    _GROUPS
    + "SELECT count(*), sum(a.n) FROM g a JOIN g b ON a.name IS NOT DISTINCT FROM b.name JOIN {1} c ON b.name = c.name",
    _GROUPS + "SELECT count(*) FROM g a WHERE name NOT IN (SELECT name FROM g WHERE kind = 1)",
]


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return _tables()


@pytest.fixture(scope="module")
def expected(tables: dict[str, pa.Table]) -> dict[str, list[Any]]:
    """DuckDB's answers."""
    reference = duckdb.connect()
    for name, table in tables.items():
        reference.register(name, table)
    pairs = [(query, left, right) for query in QUERIES for left in tables for right in tables]
    texts = dict.fromkeys(query.format(left, right) for query, left, right in pairs)
    return {text: reference.execute(text).fetchall() for text in texts}


@pytest.mark.parametrize(
    "disabled", [(), ("dictionary_join",), ("string_join",), ("swap_join_sides",)], ids=str
)
def test_joins_on_strings(
    disabled: tuple[str, ...], tables: dict[str, pa.Table], expected: dict[str, list[Any]]
) -> None:
    connection = tqp.connect(threads=1, disabled_rules=disabled, batch_rows=1000)
    for name, table in tables.items():
        connection.register(name, table)
    for text, answer in expected.items():
        assert connection.sql(text).fetchall() == answer, text


def test_the_plan_says_so(tables: dict[str, pa.Table]) -> None:
    connection = tqp.connect(threads=1)
    for name, table in tables.items():
        connection.register(name, table)
    assert "perfect-hash join" in connection.explain("SELECT few.n + keys.n FROM few JOIN keys USING (name)")
    assert "offset-array join" in connection.explain(
        "SELECT few.n + others.n FROM few JOIN others USING (name)"
    )
    assert "string join" in connection.explain("SELECT odd.n + keys.n FROM odd JOIN keys USING (name)")
    groups = _GROUPS.format("few")
    shared = connection.explain(
        groups + "SELECT a.n + b.n FROM g a JOIN g b ON a.name = b.name AND a.kind = 1"
    )
    assert "offset-array join" in shared
