"""Aggregates of whole partitions as a GROUP BY, joined with the rows; answers are DuckDB's."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database
from tqp.planner.rules import aggregate_partitions as rule

_ROWS = 3_000


def _tables() -> dict[str, pa.Table]:
    chance = random.Random(0)

    def column(values: list[object], data_type: pa.DataType | None = None) -> pa.Array:
        return pa.array([chance.choice(values) for _ in range(_ROWS)], data_type)

    rows = pa.table(
        {
            "id": list(range(_ROWS)),
            "k": column([None, 0, 1, 5, 7]),
            "f": column([None, 0.0, -0.0, 1.5, float("nan"), float("inf")]),
            "s": column([None, "", "a", "b", "longer than eight bytes"]),
            "day": column([0, 1, 400, None], pa.date32()),
            "flag": column([True, False, None], pa.bool_()),
            "h": column([2**40, -(2**61), 3]),
            "v": column([None, *range(-50, 50)]),
            "x": column([None, *(each / 4 for each in range(40))]),
        }
    )
    names = pa.table({"k": [0, 1, 5], "name": ["zero", "one", "five"]})
    return {"rows": rows, "none": rows.slice(0, 0), "single": rows.slice(7, 1), "names": names}


TABLES = _tables()
#: With the joins that stand for windows.
QUERIES = {
    "SELECT id, v - avg(v) OVER (PARTITION BY k) AS w FROM {0}": 1,
    "SELECT id, sum(v) OVER (PARTITION BY f) AS a, count(*) OVER (PARTITION BY f) AS b FROM {0}": 1,
    "SELECT id, max(s) OVER (PARTITION BY s, k) AS w, any_value(s) OVER (PARTITION BY s, k) AS z FROM {0}": 1,
    "SELECT id, min(day) OVER (PARTITION BY day, flag, h) AS w FROM {0}": 1,
    "SELECT id, median(v) OVER (PARTITION BY h // 2, k % 2) AS w FROM {0}": 1,
    "SELECT id, count(DISTINCT v) OVER (PARTITION BY k) AS a, sum(v) FILTER (WHERE x > 3) OVER (PARTITION BY k) AS b FROM {0}": 1,
    "SELECT id, v - avg(v) OVER () AS w, count(*) OVER () AS n FROM {0}": 1,
    "SELECT id, sum(x) OVER (PARTITION BY k) AS a, max(v) OVER (PARTITION BY flag) AS b, rank() OVER (ORDER BY v) AS c FROM {0}": 2,
    "SELECT id, sum(v) OVER (PARTITION BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS w FROM {0}": 1,
    "SELECT id, v FROM {0} WHERE x > 2 QUALIFY v > avg(v) OVER (PARTITION BY k)": 1,
    "SELECT id, a FROM (SELECT *, count(*) OVER (PARTITION BY k) AS a FROM {0}) WHERE k = 5 AND v < 10": 1,
    "SELECT id, sum(n) OVER (PARTITION BY n) AS w FROM (SELECT *, count(*) OVER (PARTITION BY k) AS n FROM {0})": 2,
    "SELECT id, name, sum(v) OVER (PARTITION BY name) AS w FROM {0} JOIN names USING (k) WHERE v > 0": 2,
    "SELECT id, (SELECT max(w) FROM (SELECT v - min(v) OVER (PARTITION BY flag) AS w FROM {0} WHERE k = names.k)) AS z "
    "FROM names JOIN {0} USING (k)": 5,
}
#: Nothing there is an aggregate of whole partitions, or not alone.
UNCHANGED = [
    "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id) AS w FROM {0}",
    "SELECT id, count(*) OVER (PARTITION BY k) AS a, ntile(1) OVER (PARTITION BY k) AS b FROM {0}",
    "SELECT id, count(*) OVER (PARTITION BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) AS w FROM {0}",
    "SELECT id, count(*) OVER (PARTITION BY s || 'x') AS w FROM {0}",
]


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "_FEWEST_ROWS", 0.0)


def _joins(connection: tqp.Connection, query: str) -> int:
    logical, _, _ = connection.explain(query).partition("Physical plan")
    return logical.count("Join")


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("table", ["rows", "none", "single"])
def test_answers(backend: str, table: str) -> None:
    with (
        tqp.connect(threads=2, backend=backend, batch_rows=1000) as connection,
        duckdb_database() as oracle,
    ):
        for name, data in TABLES.items():
            connection.register(name, data)
            oracle.register(name, data)
        for query in [*QUERIES, *UNCHANGED]:
            text = f"{query.format(table)} ORDER BY ALL"
            # as text, so that NaN equals NaN
            assert repr(connection.sql(text).fetchall()) == repr(oracle.sql(text).fetchall()), text
            if table == "rows":
                assert _joins(connection, text) == QUERIES.get(query, 0), text


def test_only_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    query = next(iter(QUERIES)).format("rows")
    with tqp.connect() as connection:
        for name, data in TABLES.items():
            connection.register(name, data)
        assert _joins(connection, query) == 1
        monkeypatch.setattr(rule, "_FEWEST_ROWS", _ROWS + 1.0)
        assert _joins(connection, f"{query} ") == 0


def test_a_filter_and_a_join_are_computed_once_and_a_table_is_read_twice() -> None:
    with tqp.connect() as connection:
        for name, data in TABLES.items():
            connection.register(name, data)
        window = "sum(v) OVER (PARTITION BY k) AS w"
        assert "Shared" not in connection.explain(f"SELECT id, {window} FROM rows")
        for source in ("rows WHERE s LIKE '%a%'", "rows JOIN names USING (k)"):
            logical, _, _ = connection.explain(f"SELECT id, {window} FROM {source}").partition(
                "Physical plan"
            )
            assert logical.count("Shared $0") == 2 and logical.count("Scan rows") == 1, logical


def test_conditions_on_other_columns_sink_below_the_join() -> None:
    with tqp.connect() as connection:
        connection.register("rows", TABLES["rows"])
        lines = connection.explain(
            "SELECT w FROM (SELECT id, sum(v) OVER (PARTITION BY k) AS w FROM rows) WHERE id < 10"
        ).splitlines()
        join = next(number for number, line in enumerate(lines) if "Join" in line)
        assert "Filter id" in lines[join + 1]


def test_partitions_of_strings_without_a_dictionary_are_not_joined() -> None:
    names = pa.table({"name": [f"a name of its own {each}" for each in range(10_000)], "v": range(10_000)})
    with tqp.connect() as connection:
        connection.register("t", names)
        assert not _joins(connection, "SELECT v, count(*) OVER (PARTITION BY name) FROM t")
