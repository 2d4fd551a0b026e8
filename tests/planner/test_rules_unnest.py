"""Subqueries of every kind: the unnested plan's rows are DuckDB's, on tables with NULLs, duplicates and no rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import duckdb
import pytest

from tests.oracle import duckdb_database
from tests.planner.plans import Catalog, bound, example_tables, kinds, optimized
from tests.reference_plan import MemoryTable, sorted_rows
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    LogicalPlan,
    Project,
    Scan,
    Shared,
    Window,
)
from tqp.planner.algebra.node import walk_plan
from tqp.planner.optimizer import REQUIRED, RULES

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")

QUERIES = [
    # EXISTS and IN, correlated and not, as conjuncts
    "SELECT k FROM t WHERE EXISTS (SELECT * FROM u WHERE u.k = t.k)",
    "SELECT k FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.a = t.a AND u.b <> t.b)",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a > t.b LIMIT 1)",
    "SELECT k, (SELECT a FROM u WHERE u.a > t.b ORDER BY a LIMIT 1) FROM t",
    "SELECT k, (SELECT a + t.b FROM u WHERE u.a > t.b ORDER BY a DESC NULLS FIRST LIMIT 1) FROM t",
    "SELECT k FROM t WHERE t.b IN (SELECT a FROM u WHERE u.a >= t.b ORDER BY u.a - t.b, a LIMIT 1)",
    "SELECT k, m FROM t, LATERAL (SELECT max(a) AS m FROM (SELECT a FROM u WHERE u.a > t.b ORDER BY a LIMIT 1))",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a > t.b LIMIT 0)",
    "SELECT k FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.a = t.a)",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u) AND NOT EXISTS (SELECT 1 FROM e)",
    "SELECT k FROM t WHERE a IN (SELECT a FROM u)",
    "SELECT k FROM t WHERE a NOT IN (SELECT a FROM u)",
    "SELECT k FROM t WHERE a NOT IN (SELECT a FROM e)",
    "SELECT k FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL)",
    "SELECT k FROM t WHERE a NOT IN (SELECT a FROM u WHERE u.b = t.b)",
    "SELECT k FROM t WHERE a NOT IN (SELECT a FROM u WHERE u.b < t.b)",
    "SELECT k FROM t WHERE NOT (a IN (SELECT a FROM u WHERE u.b = t.b) OR k > 2)",
    "SELECT k FROM t WHERE (a, b) IN (SELECT a, b FROM u)",
    "SELECT k FROM t WHERE (a, b) NOT IN (SELECT a, b FROM u)",
    "SELECT k FROM t WHERE a IN (SELECT count(*) FROM u WHERE u.a = t.a)",
    "SELECT k FROM t WHERE a NOT IN (SELECT count(*) FROM u WHERE u.a = t.a)",
    "SELECT k FROM t WHERE a NOT IN (SELECT max(b) FROM u WHERE u.a = t.a)",
    "SELECT k FROM t WHERE a IN (SELECT a FROM u GROUP BY a HAVING count(*) > 1)",
    "SELECT k FROM t WHERE a IN (SELECT max(a) FROM u WHERE u.b = t.b GROUP BY u.k)",
    "SELECT k FROM t WHERE a IN (SELECT a FROM u UNION ALL SELECT b FROM u WHERE u.k = t.k)",
    # the same as values
    "SELECT k, EXISTS (SELECT 1 FROM u WHERE u.a = t.a) FROM t",
    "SELECT k, NOT EXISTS (SELECT 1 FROM u WHERE u.a < t.a) FROM t",
    "SELECT k, a IN (SELECT a FROM u) FROM t",
    "SELECT k, a NOT IN (SELECT a FROM u) FROM t",
    "SELECT k, a IN (SELECT a FROM e), a NOT IN (SELECT a FROM e) FROM t",
    "SELECT k, a IN (SELECT a FROM u WHERE u.b = t.b) FROM t",
    "SELECT k, a IN (SELECT a FROM u WHERE u.b > t.b) FROM t",
    "SELECT k FROM t WHERE a IN (SELECT a FROM u) OR b IN (SELECT b FROM u WHERE u.a = t.a)",
    "SELECT k, CASE WHEN a IN (SELECT a FROM u) THEN 1 WHEN NOT EXISTS (SELECT 1 FROM u WHERE u.b = t.b) THEN 2 END FROM t",
    "SELECT sum(CASE WHEN a IN (SELECT a FROM u) THEN 1 ELSE 0 END) FROM t",
    # scalar subqueries
    "SELECT k, (SELECT max(a) FROM u) FROM t",
    "SELECT k, (SELECT max(a) FROM e) FROM t",
    "SELECT k, (SELECT max(a) FROM u WHERE u.b = t.b) FROM t",
    "SELECT k, (SELECT count(*) FROM u WHERE u.b = t.b) FROM t",
    "SELECT k, (SELECT count(a) + 1 FROM u WHERE u.b = t.b) FROM t",
    "SELECT k, (SELECT count(*) FROM u WHERE u.b < t.b) FROM t",
    "SELECT k, (SELECT count(*) + max(a) FROM u WHERE u.b < t.b) FROM t",
    "SELECT k, (SELECT coalesce(sum(a), -1) FROM u WHERE u.b = t.b) FROM t",
    "SELECT k, (SELECT CASE WHEN count(*) = 0 THEN 7 ELSE 8 END FROM u WHERE u.b = t.b) FROM t",
    "SELECT k, (SELECT count(*) FROM u WHERE u.b = t.b HAVING count(*) > 1) FROM t",
    "SELECT k, (SELECT count(*) FROM u WHERE u.b = t.b HAVING count(*) < 2) FROM t",
    "SELECT k, (SELECT t.a + count(*) FROM u WHERE u.b = t.b) FROM t",
    "SELECT k, (SELECT a FROM u WHERE u.k = t.k) FROM t",
    "SELECT k, (SELECT t.a) FROM t",
    "SELECT k FROM t WHERE a = (SELECT min(a) FROM u WHERE u.b = t.b)",
    "SELECT k FROM t WHERE a > (SELECT count(*) FROM u WHERE u.b = t.b)",
    "SELECT k FROM t WHERE (SELECT count(*) FROM u WHERE u.b = t.b) = 0",
    "SELECT k FROM t ORDER BY (SELECT max(a) FROM u WHERE u.b = t.b), k",
    "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) >= (SELECT count(*) FROM u WHERE u.a = t.a)",
    "SELECT k, (SELECT max(x) FROM (SELECT a + t.a AS x FROM u WHERE u.b = t.b) AS s) FROM t",
    "SELECT k, (SELECT sum(x) FROM (SELECT DISTINCT a AS x FROM u WHERE u.b <> t.b) AS s) FROM t",
    "SELECT k, (SELECT count(*) FROM u LEFT JOIN v ON u.k = v.k AND v.a = t.a) FROM t",
    "SELECT k, (SELECT count(v.k) FROM u FULL JOIN v ON u.k = v.k AND v.a = t.a) FROM t",
    "SELECT k, (SELECT count(*) FROM u WHERE u.b = t.b OR u.a = t.a) FROM t",
    # nested, reading queries further out
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND EXISTS (SELECT 1 FROM v WHERE v.b = t.b AND v.a = u.a))",
    "SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.b = t.b AND v.a = u.a))",
    "SELECT k, (SELECT count(*) FROM u WHERE u.a = (SELECT max(v.a) FROM v WHERE v.b = t.b AND v.k <> u.k)) FROM t",
    "SELECT k FROM t WHERE a IN (SELECT a FROM u WHERE u.b IN (SELECT b FROM v WHERE v.k >= t.k))",
    "SELECT k, (SELECT (SELECT (SELECT count(*) FROM v WHERE v.a = t.a) FROM u WHERE u.k = t.k)) FROM t",
    # dependent joins
    "SELECT t.k, s.a FROM t, LATERAL (SELECT a FROM u WHERE u.b = t.b) AS s",
    "SELECT t.k, s.c FROM t, LATERAL (SELECT count(*) AS c FROM u WHERE u.b = t.b) AS s",
    "SELECT t.k, s.c FROM t LEFT JOIN LATERAL (SELECT max(a) AS c FROM u WHERE u.b < t.b) AS s ON true",
    "SELECT t.k, s.c FROM t, LATERAL (SELECT t.a + u.a AS c FROM u WHERE u.k = t.k UNION ALL SELECT t.b) AS s",
    # one row for each left row, or none
    "SELECT k, x FROM t, LATERAL (SELECT a + 1 AS x)",
    "SELECT k, x FROM t LEFT JOIN LATERAL (SELECT a + 1 AS x) ON true",
    "SELECT k, x FROM t LEFT JOIN LATERAL (SELECT coalesce(a, 7) AS x) ON x > b",
    "SELECT k, x FROM t CROSS JOIN LATERAL (SELECT a + 1 AS x WHERE b > 0)",
    "SELECT k, x FROM t LEFT JOIN LATERAL (SELECT coalesce(a, 7) AS x WHERE b > 0) ON x <> 1",
    "SELECT k, x FROM t LEFT JOIN LATERAL (SELECT y + 1 AS x FROM (SELECT coalesce(a, 0) AS y WHERE b > 0) WHERE y > 0) ON true",
    "SELECT k, x, y FROM t, LATERAL (SELECT a + 1 AS x) AS p, LATERAL (SELECT x + b AS y WHERE x > 1) AS q",
    "SELECT k, z FROM t, LATERAL (SELECT x + y AS z FROM (SELECT a AS x) AS p, LATERAL (SELECT x * b AS y) AS q)",
    "SELECT k, z FROM t LEFT JOIN LATERAL (SELECT x + y AS z FROM (SELECT a AS x) AS p JOIN (SELECT b AS y) AS q ON x < y) ON true",
    "SELECT k, x FROM t, LATERAL (SELECT DISTINCT a AS x)",
    "SELECT k, x FROM t, LATERAL (SELECT a AS x ORDER BY x LIMIT 3)",
    "SELECT k, x FROM t, LATERAL (SELECT t.a + m AS x FROM (SELECT max(b) AS m FROM u))",
    "SELECT k, x FROM t, LATERAL (SELECT t.a + count(*) AS x FROM u WHERE u.b = t.b)",
    "SELECT k, x FROM t LEFT JOIN LATERAL (SELECT t.a + count(*) AS x FROM u WHERE u.b = t.b) ON x > 2",
    "SELECT k, (SELECT a WHERE b > 0), (SELECT 5 WHERE b > 0) FROM t",
    "SELECT k, EXISTS (SELECT 1 WHERE b > 0), a IN (SELECT b WHERE k > 2), a NOT IN (SELECT b WHERE k > 2) FROM t",
    "SELECT k FROM t WHERE a IN (SELECT b WHERE k > 2)",
    "SELECT k FROM t WHERE a NOT IN (SELECT b WHERE k > 2)",
    "SELECT k FROM t WHERE NOT EXISTS (SELECT 1 WHERE b > 0)",
    # outputs that read both sides
    "SELECT t.k, x FROM t, LATERAL (SELECT u.a + t.a AS x FROM u WHERE u.b = t.b)",
    "SELECT t.k, x FROM t, LATERAL (SELECT x FROM (SELECT u.a + t.a AS x FROM u WHERE u.b = t.b) WHERE x > t.b)",
    "SELECT t.k, x, y FROM t LEFT JOIN LATERAL (SELECT u.a + t.a AS x, t.a AS y FROM u WHERE u.b = t.b) ON true",
    "SELECT t.k, x, y FROM t LEFT JOIN LATERAL (SELECT u.a + t.a AS x, t.a AS y FROM u WHERE u.b < t.b) ON x > y",
    "SELECT t.k, x FROM t LEFT JOIN LATERAL (SELECT coalesce(u.a, t.a) AS x FROM u ORDER BY u.k) ON x = t.b",
    "SELECT t.k, x FROM t LEFT JOIN LATERAL (SELECT x FROM (SELECT coalesce(u.a, t.a) AS x FROM u) WHERE x > 1) ON x = t.b",
    "SELECT t.k, x FROM t LEFT JOIN LATERAL (SELECT t.a AS x FROM e) ON true",
    "SELECT k, (SELECT coalesce(u.a, t.a) FROM u WHERE u.k = t.k) FROM t",
    # subqueries in ON
    "SELECT t.k, u.k FROM t JOIN u ON t.a = u.a AND EXISTS (SELECT 1 FROM v WHERE v.k = t.k AND v.b = u.b)",
    "SELECT t.k, u.k FROM t LEFT JOIN u ON t.a = u.a AND u.b IN (SELECT b FROM v)",
    "SELECT t.k, u.k FROM t LEFT JOIN u ON t.a = u.a AND t.b > (SELECT min(b) FROM v WHERE v.a = t.a)",
]
QUERIES += [
    f"SELECT k, a {comparison} {quantifier} (SELECT {column} FROM {table} {where}) FROM t"
    for comparison, quantifier, (column, table, where) in product(
        COMPARISONS, ("ANY", "ALL"), (("a", "u", ""), ("a", "e", ""), ("b", "u", "WHERE u.a = t.a"))
    )
]
QUERIES += [
    f"SELECT k FROM t WHERE {negation} a {comparison} {quantifier} (SELECT b FROM u WHERE u.k > t.k)"
    for comparison, quantifier, negation in product(COMPARISONS, ("ANY", "ALL"), ("", "NOT"))
]


Database = tuple[list[MemoryTable], duckdb.DuckDBPyConnection]


@pytest.fixture(scope="module", params=range(3))
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """The example tables, for the planner and in DuckDB."""
    tables = example_tables(request.param)
    with duckdb_database() as connection:
        for table in tables:
            connection.execute(f"CREATE TABLE {table.name} (k BIGINT, a BIGINT, b BIGINT)")
            for row in zip(*table.columns.values(), strict=True):
                connection.execute(f"INSERT INTO {table.name} VALUES (?, ?, ?)", row)
        yield tables, connection


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_duckdb(query: str, database: Database) -> None:
    tables, connection = database
    expected = connection.execute(query).fetchall()
    rows = sorted_rows(optimized(query, tables))
    assert rows == sorted(expected, key=lambda row: tuple((v is not None, v or 0, str(v)) for v in row))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT k FROM t WHERE EXISTS (SELECT * FROM u WHERE u.k = t.k)", {JoinType.SEMI}),
        ("SELECT k FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.k = t.k)", {JoinType.ANTI}),
        ("SELECT k FROM t WHERE k NOT IN (SELECT k FROM u)", {JoinType.ANTI}),
        ("SELECT k FROM t WHERE a NOT IN (SELECT a FROM u)", {JoinType.NULL_AWARE_ANTI}),
        ("SELECT k, a IN (SELECT a FROM u) FROM t", {JoinType.MARK}),
        ("SELECT k FROM t WHERE (a IN (SELECT a FROM u)) IS TRUE", {JoinType.MARK}),
        ("SELECT k FROM t WHERE a = (SELECT max(a) FROM u)", {JoinType.INNER}),
        ("SELECT k FROM t WHERE a = (SELECT max(a) FROM u WHERE u.b = t.b)", {JoinType.INNER}),
        ("SELECT k, (SELECT max(a) FROM u WHERE u.b = t.b) FROM t", {JoinType.LEFT}),
        ("SELECT k, (SELECT a FROM u WHERE u.b = t.b) FROM t", {JoinType.SINGLE}),
    ],
)
def test_which_join_a_subquery_becomes(query: str, expected: set[JoinType]) -> None:
    plan = optimized(query, example_tables(0))
    assert {node.join_type for node in walk_plan(plan) if isinstance(node, Join)} == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT x FROM t, LATERAL (SELECT a + 1 AS x)", [Project, Scan]),
        ("SELECT x FROM t CROSS JOIN LATERAL (SELECT a + 1 AS x WHERE b > k)", [Project, Filter, Scan]),
        ("SELECT x FROM t LEFT JOIN LATERAL (SELECT a + 1 AS x) ON true", [Project, Scan]),
        (
            "SELECT x FROM t LEFT JOIN LATERAL (SELECT a + 1 AS x WHERE b > k) ON true",
            [Project, Project, Scan],
        ),
        ("SELECT x FROM t LEFT JOIN LATERAL (SELECT a + 1 AS x) ON x > b", [Project, Project, Project, Scan]),
        ("SELECT (SELECT a + 1) FROM t", [Project, Scan]),
        ("SELECT k FROM t WHERE a IN (SELECT b WHERE b > k)", [Project, Filter, Scan]),
        (
            "SELECT x FROM t, LATERAL (SELECT u.a + t.a AS x FROM u WHERE u.k = t.k)",
            [Project, Join, Scan, Scan],
        ),
        ("SELECT (SELECT u.a + t.a FROM u WHERE u.k = t.k) FROM t", [Project, Join, Scan, Scan]),
    ],
)
def test_a_subquery_that_computes_row_by_row_is_a_projection(
    query: str, expected: list[type[LogicalPlan]]
) -> None:
    for disabled in ((), *((name,) for name, _ in RULES if name not in REQUIRED)):
        plan = optimized(query, example_tables(0), *disabled)
        assert Aggregate not in kinds(plan), disabled
        assert Shared not in kinds(plan), disabled
    assert [type(node) for node in walk_plan(optimized(query, example_tables(0)))] == expected


@pytest.mark.parametrize("kind", ["CROSS", "LEFT"])
def test_pairs_are_compared_once_for_each_value_where_no_key_joins_them(kind: str) -> None:
    on = " ON true" if kind == "LEFT" else ""
    query = f"SELECT x FROM t {kind} JOIN LATERAL (SELECT u.a + t.a AS x FROM u WHERE u.k <> t.a){on}"
    plan = optimized(query, example_tables(0))
    assert kinds(plan)[Shared] > 0
    assert sorted_rows(plan) == sorted_rows(bound(query, Catalog(example_tables(0))))


def test_an_aggregate_on_equal_keys_needs_no_domain() -> None:
    plan = optimized("SELECT k FROM t WHERE a < (SELECT max(a) FROM u WHERE u.b = t.b)", example_tables(0))
    assert Shared not in kinds(plan)
    (grouped,) = (node for node in walk_plan(plan) if isinstance(node, Aggregate))
    assert [field.name for field in grouped.key_fields] == ["b"]


def test_more_rows_than_one_are_told_by_their_numbers() -> None:
    query = "SELECT a FROM t, LATERAL (SELECT b FROM u WHERE u.b > t.b ORDER BY a LIMIT 2 OFFSET 1)"
    (window,) = (node for node in walk_plan(optimized(query, example_tables(0))) if isinstance(node, Window))
    assert [field.name for field in window.fields] == ["row_number"] and len(window.partition) == 1
