"""Deep and long queries: answered as DuckDB does, on any thread, under the caller's recursion limit; linear in the text."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest

import tqp
from tqp.core.process.deep_recursion import call_deep


def nested(count: int, before: str, inside: str, after: str) -> str:
    return before * count + inside + after * count


DEEP = {
    "AND": f"SELECT count(*) FROM t WHERE {' AND '.join(f'a <> {i + 10}' for i in range(5000))}",
    "OR": f"SELECT count(*) FROM t WHERE {' OR '.join(f'a = {i + 2}' for i in range(5000))}",
    "AND as a value": f"SELECT {' AND '.join(f'a <> {i + 2}' for i in range(5000))} FROM t",
    "OR of AND": f"SELECT a FROM t WHERE {' OR '.join(f'(a = {i + 2} AND b > {i})' for i in range(1000))}",
    "sum": f"SELECT {' + '.join(['a'] * 300)} FROM t",
    "differences": f"SELECT {' - '.join(['a'] * 300)} FROM t WHERE {' + '.join(['b'] * 300)} > 500",
    "concatenation": f"SELECT {' || '.join(['s'] * 300)} FROM t",
    "parentheses": f"SELECT {nested(500, '(', 'a', ')')} FROM t",
    "calls": f"SELECT {nested(500, 'abs(', '-a', ')')} FROM t",
    "CASE in CASE": f"SELECT {nested(500, 'CASE WHEN a > 1 THEN ', 'a', ' ELSE 0 END')} FROM t",
    "CASE in ELSE": "SELECT "
    + "".join(f"CASE WHEN a > {i} THEN {i} ELSE " for i in range(500))
    + "a"
    + " END" * 500
    + " FROM t",
    "NOT": f"SELECT {nested(501, 'NOT (', 'a > 1', ')')} FROM t",
    "casts": f"SELECT a{'::BIGINT::INTEGER' * 250} FROM t",
    "derived tables": f"SELECT * FROM {nested(100, '(SELECT * FROM ', 't', ')')}",
    "scalar subqueries": f"SELECT {nested(100, '(SELECT 1 + max(a) + ', 'min(a)', ' FROM t)')}",
    "IN": f"SELECT a FROM t WHERE {nested(60, 'a IN (SELECT a FROM t WHERE ', 'a > 1', ')')}",
    "CTEs": "WITH c0 AS (SELECT a FROM t)"
    + "".join(f", c{i + 1} AS (SELECT a + 1 AS a FROM c{i})" for i in range(300))
    + " SELECT * FROM c300",
    "union": " UNION ALL ".join(["SELECT a FROM t"] * 500),
}

TABLE = "CREATE TABLE t AS SELECT i::INTEGER a, i * 1.5::DOUBLE b, 's' || i s FROM range(1, 6) r(i)"


def connect() -> tuple[tqp.Connection, duckdb.DuckDBPyConnection]:
    duck, con = duckdb.connect(), tqp.connect(threads=2)
    duck.execute(TABLE)
    con.register("t", duck.table("t").to_arrow_table())
    return con, duck


@pytest.mark.parametrize("name", DEEP)
def test_deep_queries_are_answered(name: str) -> None:
    con, duck = connect()
    limit = sys.getrecursionlimit()
    start = time.perf_counter()
    answer = con.sql(DEEP[name]).fetchall()
    assert time.perf_counter() - start < 10  # quadratic planning of 5,000 terms would take minutes
    assert sorted(answer) == sorted(duck.execute(DEEP[name]).fetchall())
    assert con.explain(DEEP[name]).startswith("Logical plan")
    assert sys.getrecursionlimit() == limit


def test_deep_queries_on_any_thread() -> None:
    con, duck = connect()
    names = ["parentheses", "calls", "sum", "CTEs"] * 3
    limit = sys.getrecursionlimit()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda name: con.sql(DEEP[name]).fetchall(), names))
    for name, answer in zip(names, answers, strict=True):
        assert answer == duck.execute(DEEP[name]).fetchall()
    assert sys.getrecursionlimit() == limit
    assert threading.stack_size() == 0


def test_a_query_where_the_caller_has_little_room_left() -> None:
    con, _ = connect()

    def deeper(count: int) -> list[tuple[object, ...]]:
        return deeper(count - 1) if count else con.sql("SELECT max(a) FROM t WHERE a < 4").fetchall()

    room = sys.getrecursionlimit() - len(_stack()) - 120
    assert deeper(room) == [(3,)]


def _stack() -> list[object]:
    frames: list[object] = []
    frame = sys._getframe()
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


@pytest.mark.parametrize(
    "expression",
    [
        nested(20_000, "(", "a", ")"),
        nested(20_000, "abs(", "a", ")"),
        nested(20_000, "(SELECT ", "1", ")"),
    ],
)
def test_what_is_deeper_than_that_is_refused(expression: str) -> None:
    con, _ = connect()
    limit = sys.getrecursionlimit()
    with pytest.raises(tqp.UnsupportedError, match="nested too deeply"):
        con.sql(f"SELECT {expression} FROM t")
    assert sys.getrecursionlimit() == limit
    assert con.sql("SELECT count(*) FROM t").fetchall() == [(5,)]


def test_an_error_in_a_deep_query_points_at_the_sql() -> None:
    con, _ = connect()
    with pytest.raises(tqp.BindError, match='no column "c"') as raised:
        con.sql(f"SELECT {nested(300, '(', 'c', ')')} FROM t")
    assert "^" in str(raised.value)


def test_call_deep_passes_results_errors_and_interrupts_on() -> None:
    def depth(count: int) -> int:
        return 1 + depth(count - 1) if count else 0

    def then_raise(error: BaseException) -> None:
        depth(5000)
        raise error

    assert call_deep(lambda: depth(5000)) == 5000
    assert call_deep(lambda: call_deep(lambda: depth(5000))) == 5000
    for error in (ValueError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            call_deep(lambda error=error: then_raise(error))


TWICE = {
    "join": "SELECT x.a FROM c{0} x JOIN c{0} y USING (a)",
    "aggregate": "SELECT x.a, count(*) n FROM c{0} x, c{0} y WHERE x.a = y.a AND x.a > 0 GROUP BY x.a",
    "union": "SELECT a FROM c{0} UNION SELECT a + 1 FROM c{0} WHERE a < 100",
    "IN": "SELECT a FROM c{0} WHERE a IN (SELECT a FROM c{0})",
    "scalar subquery": "SELECT a FROM c{0} WHERE a <= (SELECT max(a) FROM c{0})",
}


@pytest.mark.parametrize("name", TWICE)
def test_chains_of_ctes_that_are_read_twice(name: str) -> None:
    con, duck = connect()

    def chain(length: int) -> str:
        steps = "".join(f", c{i + 1} AS ({TWICE[name].format(i)})" for i in range(length))
        return f"WITH c0 AS (SELECT a FROM t WHERE a < 3){steps} SELECT count(*), sum(a) FROM c{length}"

    for length in (5, 12):
        assert con.sql(chain(length)).fetchall() == duck.execute(chain(length)).fetchall()
    start = time.perf_counter()
    con.compile(chain(30))
    assert time.perf_counter() - start < 20  # copied at every reference it would have 2**30 parts


def test_only_large_ctes_are_kept_as_they_are() -> None:
    con, _ = connect()
    pushed = con.explain(
        "WITH c AS (SELECT a, b FROM t) SELECT * FROM c WHERE a = 1 UNION ALL SELECT * FROM c"
    )
    assert "Shared" not in pushed
    joins = " ".join(f"JOIN t t{i} ON t{i}.a = t.a" for i in range(60))
    large = con.explain(f"WITH c AS (SELECT t.a FROM t {joins}) SELECT * FROM c x JOIN c y ON x.a = y.a + 1")
    assert large.count("Shared") == 4  # two references in the logical plan, two in the physical one
    once = con.explain(f"WITH c AS (SELECT t.a FROM t {joins}) SELECT * FROM c")
    assert "Shared" not in once


@pytest.mark.parametrize("operator", ["AND", "OR"])
def test_planning_is_linear_in_the_terms(operator: str) -> None:
    con, _ = connect()

    def seconds(count: int) -> float:
        terms = f" {operator} ".join(f"(a <> {i} AND b < {i})" for i in range(count))
        start = time.process_time()
        con.compile(f"SELECT count(*) FROM t WHERE {terms}")
        return time.process_time() - start

    seconds(100)
    assert seconds(2000) < 3 * seconds(1000)  # twice the text: 2 if linear, 4 if quadratic
