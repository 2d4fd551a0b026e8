"""Conditions without columns, which decide once whether there are rows."""

import pytest

import tqp

FALSE, TRUE, UNKNOWN = (f"list_has_all([1, length('a')], [{each}])" for each in (2, 1, "NULL"))
QUERIES = (
    "SELECT k, sum(i) AS s FROM t WHERE {} GROUP BY k",
    "SELECT count(*) AS c FROM t WHERE {} AND i > 5",
    "SELECT * FROM (SELECT DISTINCT k FROM t ORDER BY k DESC) WHERE {}",
    "SELECT a.i, b.k FROM t a LEFT JOIN (SELECT * FROM t WHERE {}) b ON a.i = b.i + 1",
    "SELECT i FROM t WHERE i IN (SELECT i + 1 FROM t WHERE {})",
    "WITH w AS MATERIALIZED (SELECT i FROM t) SELECT * FROM w WHERE {} UNION ALL SELECT i + 100 FROM w",
    "SELECT * FROM (SELECT i FROM t ORDER BY i DESC LIMIT 3) WHERE {}",
)


@pytest.mark.parametrize("condition", [FALSE, TRUE, UNKNOWN, f"{TRUE} AND {TRUE}", f"NOT {FALSE} AND NULL"])
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("backend", ["host", "torch"])
def test_answers_stay(query: str, condition: str, backend: str) -> None:
    text = query.format(condition)
    answers = []
    for disabled in ((), ("constant_conditions",)):
        with tqp.connect(disabled_rules=disabled, batch_rows=7, backend=backend) as connection:
            connection.execute("CREATE TABLE t AS SELECT range AS i, range % 3 AS k FROM range(20)")
            answers.append(connection.sql(text).fetchall())
    assert answers[0] == answers[1] or sorted(map(str, answers[0])) == sorted(map(str, answers[1]))


def test_what_decides_is_computed_once_and_first() -> None:
    with tqp.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS i FROM range(20)")
        plan = connection.explain(f"SELECT DISTINCT i + 1 FROM t WHERE {FALSE} AND i > 3")
        assert "Join inner" in plan and plan.count("Filter list_has_all") == 2  # logical and physical
        with pytest.raises(tqp.ExecutionError):  # what may raise does so where there are rows
            connection.sql("SELECT i FROM t WHERE CAST(lower('A') AS INTEGER) = 1").fetchall()
        assert "Join" not in connection.explain("SELECT i FROM t WHERE CAST(lower('A') AS INTEGER) = 1")
        assert "Join" not in connection.explain(f"SELECT 1 WHERE {TRUE}")
