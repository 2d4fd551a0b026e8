"""What all benchmarks share: how a query's order is read, and answers are compared."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tqp.measuring import compare
from tqp.measuring.measure import Engine, measure
from tqp.measuring.query import Query

ORDERS = {
    "SELECT a FROM t": ((), None, "SELECT a FROM t"),
    "SELECT a, b FROM t ORDER BY a DESC NULLS LAST, 2 LIMIT 10": (
        ("a", "2"),
        10,
        "SELECT a, b FROM t ORDER BY a DESC NULLS LAST, 2",
    ),
    'select a from t order by "a b", lower(a, 1), a\nlimit 10': (
        ("a b",),
        10,
        'select a from t order by "a b", lower(a, 1), a',
    ),
    "SELECT a FROM t ORDER BY t.a": ((), None, "SELECT a FROM t ORDER BY t.a"),
    "SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3)": (
        (),
        None,
        "SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3)",
    ),
    "SELECT 'ORDER BY x' AS y, -- ORDER BY z\nsum(a) OVER (ORDER BY a) FROM t ORDER BY y -- LIMIT 1": (
        ("y",),
        None,
        None,
    ),
    "SELECT a FROM t ORDER BY a LIMIT 3 OFFSET 2": ((), None, None),
}


@pytest.mark.parametrize("text", ORDERS)
def test_order_and_limit(text: str) -> None:
    query = Query(1, "1", text)
    order_by, limit, without_limit = ORDERS[text]
    assert (query.order_by, query.limit, query.text_without_limit) == (order_by, limit, without_limit or text)


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    """One table in one file."""
    pq.write_table(pa.table({"k": [1, 2, 2, None], "s": ["a", "b", "c", "é"]}), tmp_path / "t.parquet")
    return {"t": tmp_path / "t.parquet"}


@pytest.mark.parametrize("columns", [("same",), ("new",), ("parquet",), ("same", "new", "parquet")])
@pytest.mark.parametrize("is_compared", [True, False])
def test_what_is_asked_for_is_measured(
    columns: tuple[str, ...], is_compared: bool, tables: dict[str, Path]
) -> None:
    query = Query(1, "1", "SELECT s FROM t WHERE k = 1")
    others = {1: [Query(1, "1", f"SELECT s FROM t WHERE k = {k}") for k in (2, 3)]}
    engine = Engine(threads=1, runs=1, compare=is_compared, columns=columns)
    (report,), _ = measure(engine, tables, [query], Console(quiet=True), others)
    assert report.is_equal and report.rows == 1
    assert tuple(report.times) == columns
    assert all(("duckdb" in times) == is_compared for times in report.times.values())
    assert all(report.median(name) for name in columns)


def test_an_answer_to_other_constants_that_differs_is_found(
    tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    query, other = (Query(1, "1", f"SELECT s FROM t WHERE k = {k}") for k in (1, 2))
    right = compare.DuckDBRun.answer
    monkeypatch.setattr(compare.DuckDBRun, "answer", lambda run, number, constants=0: right(run, number, 0))
    engine = Engine(threads=1, runs=1, columns=("same", "new"))
    (report,), _ = measure(engine, tables, [query], Console(quiet=True), {1: [other]})
    assert report.is_equal is False and str(report.problem).endswith(f"with other constants:\n{other.text}")


def test_a_query_that_either_engine_refuses_is_named_and_stops_no_other(tables: dict[str, Path]) -> None:
    queries = [
        Query(1, "1", "SELECT nothing FROM t"),
        Query(2, "2", "SELECT count(*) AS n FROM t"),
        Query(3, "3", "SELECT s FROM t ORDER BY k LIMIT 2"),
    ]
    engine = Engine(threads=1, runs=1, compare=True, columns=("same", "parquet"))
    reports, _ = measure(engine, tables, queries, Console(quiet=True))
    assert [report.is_equal for report in reports] == [False, True, True]
    assert "BindError" in str(reports[0].problem) and reports[0].rows is None
    assert reports[1].ratio("same") and reports[1].ratio("parquet")
