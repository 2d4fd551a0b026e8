"""Worker threads, batches, limits and cancellation."""

from __future__ import annotations

import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp
from tqp.operators.joins import pairs as join_pairs
from tqp.runtime import executor
from tqp.runtime.pipeline import Cost, Pipeline, State


def _numbers(count: int) -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table(
        {
            "k": random.integers(0, 50, count),
            "x": random.normal(size=count) * 10.0 ** random.integers(-8, 8, count),
            "s": pa.array([f"name {i % 97}" for i in range(count)]),
        }
    )


_QUERIES = (
    "SELECT k, sum(x), avg(x), min(x), count(*) FROM t GROUP BY k",
    "SELECT sum(x), avg(x), stddev_samp(x) FROM t",
    "SELECT k % 7 AS g, s, sum(x) FROM t GROUP BY g, s",
    "SELECT t.k, t.x FROM t JOIN u ON t.k = u.k WHERE t.x > u.x",
    "SELECT x, s FROM t ORDER BY k, s LIMIT 100",
    "SELECT k, x FROM t WHERE x > 0 LIMIT 10",
    "SELECT DISTINCT s FROM t",
)


@pytest.mark.cpu
@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("batch_rows", [None, 100])
def test_results_are_bit_identical_for_any_number_of_threads(
    query: str, batch_rows: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        executor, "_WORTH_A_WORKER", 64 * Cost().row_seconds
    )  # the batches differ with the number of workers
    answers = []
    for threads in (1, 2, 3, 8):
        with tqp.connect(threads=threads, batch_rows=batch_rows) as connection:
            connection.register("t", _numbers(5000))
            connection.register("u", _numbers(60))
            answers.append(connection.sql(query).to_arrow())
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("threads", "num_rows", "row_seconds", "expected"),
    [
        (1, 10, 1.0, 10),
        (2, 0, 1.0, 1),
        (2, 19, 1.0, 19),
        (2, 20, 1.0, 10),
        (2, 5, 4.0, 3),
        (2, 5, 3.0, 5),
        (2, 99, 1.0, 50),
        (2, 100, 1.0, 50),
        (2, 201, 1.0, 51),
        (2, 201, 0.01, 67),
        (3, 29, 1.0, 15),
        (3, 301, 1.0, 51),
        (8, 3, 100.0, 1),
    ],
)
def test_workers_get_equal_shares_of_the_work(
    threads: int, num_rows: int, row_seconds: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "_WORTH_A_WORKER", 10)
    monkeypatch.setattr(executor, "_SHARE_ROWS", 1)
    with tqp.connect(threads=threads, batch_rows=100) as connection:
        assert connection._executor._even_batch(num_rows, num_rows * row_seconds, 100) == expected


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize(
    ("num_rows", "expected"), [(0, 1), (9, 9), (19, 10), (20, 5), (39, 10), (100, 25), (500, 63)]
)
def test_fixed_batches_depend_on_rows_alone(
    threads: int, num_rows: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "_FEW_ROWS", 10)
    with tqp.connect(threads=threads, batch_rows=100) as connection:
        assert connection._executor._even_batch(num_rows, None, 100) == expected


@pytest.mark.cpu
def test_few_rows_are_shared_only_if_they_take_long() -> None:
    with tqp.connect(threads=2) as connection:
        even_batch = connection._executor._even_batch
        least, short = 2 * executor._SHARE_ROWS, 1.9 * executor._SHARE_SECONDS
        assert even_batch(least, short, 1 << 20) == least // 2
        assert even_batch(least - 1, short, 1 << 20) == least - 1
        assert even_batch(1_000, 2.0 * executor._SHARE_SECONDS, 1 << 20) == 500
        assert even_batch(1, 1.0, 1 << 20) == 1


def test_the_next_run_is_divided_by_what_a_row_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_SHARE_ROWS", 1)
    with tqp.connect(threads=2) as connection:
        connection.register("t", pa.table({"s": ["1"] * 1000}))
        query = "SELECT sum(CAST(s || '0' AS INTEGER)) FROM t"
        pipeline = connection.compile(query).steps()[-2]
        expected = pipeline.cost.row_seconds
        assert connection.sql(query).fetchall() == [(10_000,)]
        assert 0 < pipeline.cost.row_seconds != expected
        for seconds in (1.0, 0.0):
            pipeline.cost.row_seconds = seconds
            assert connection.sql(query).fetchall() == [(10_000,)]


@pytest.mark.cpu
def test_batches_of_text_are_long_where_few_rows_have_any() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", pa.table({"k": [1, 2**40]}))
        query = "SELECT max('x' || k) FROM t WHERE k % 50 = 7"
        (pipeline,) = (step for step in connection.compile(query).steps() if step.makes_text)
        steps = []
        for seconds in (pipeline.cost.row_seconds, 1e-6, 1e-8, 0.0):
            pipeline.cost.row_seconds = seconds
            steps.append(connection._executor._step(pipeline, 2_000_000))
        assert steps == [125_000, 125_000, 500_000, 2_000_000]


def test_what_is_merged_in_as_long_as_it_takes_is_not_shared() -> None:
    assert Cost(row_seconds=2.0, merge_seconds=0.0).worth_sharing(10) == 20.0
    assert Cost(row_seconds=2.0, merge_seconds=15.0).worth_sharing(10) == 5.0


@pytest.mark.cpu
def test_batches_of_wide_rows_are_shorter() -> None:
    with tqp.connect(threads=2) as connection:
        connection.register("t", _numbers(10))
        narrow = connection.compile("SELECT sum(x) FROM t").steps()[0]
        sums = (
            "sum(x * 0.5::DOUBLE), sum(x / 3), sum(sqrt(x)), sum(exp(x)), "
            "sum(x * 5.0::DOUBLE), sum(x / 7), sum(sin(x)), sum(cos(x)) FROM t"
        )
        wide = connection.compile(f"SELECT x > 3, {sums} GROUP BY x > 3").steps()[0]
        assert 8 * 8 <= wide.row_bytes <= 11 * 8 and narrow.row_bytes <= 2 * 8
        # where all rows are one group, each sum is taken before the next one's summands are computed
        assert connection.compile(f"SELECT {sums}").steps()[0].row_bytes <= 3 * 8
        most = connection._executor._most_rows
        assert most(wide.row_bytes) < most(narrow.row_bytes) <= most(0) == most(1) == executor.CPU_BATCH_ROWS
        assert all(
            most(size) * size <= max(8 << 20, 196_608 * size) for size in (narrow.row_bytes, wide.row_bytes)
        )
        assert most(1 << 20) == 196_608  # calls of fewer rows cost more than the caches gain


def test_batches_are_not_cut_for_groups_beside_which_text_is_searched() -> None:
    texts = [f"{i:>9}" for i in range(10_000)]
    with tqp.connect() as connection:
        connection.register("t", pa.table({"x": pa.array(range(10_000), pa.int64()), "s": texts}))
        sizes = [
            connection.compile(query).steps()[0].row_bytes
            for query in (
                "SELECT x, count(*) FROM t WHERE s NOT LIKE '%9%' GROUP BY x",
                "SELECT x, count(*) FROM t WHERE x > 7 GROUP BY x",
                "SELECT x, count(*) FROM t WHERE s <> '9' GROUP BY x",
                "SELECT sum(CASE WHEN s NOT LIKE '%9%' THEN x END) FROM t",
            )
        ]
        assert sizes[0] == 0 < min(sizes[1:]), sizes


def test_batches_are_not_cut_for_columns_that_the_first_rows_are_only_taken_of() -> None:
    with tqp.connect() as connection:
        connection.register("t", _numbers(10))
        whole, computed, sorted_ = (
            connection.compile(query).steps()[0].row_bytes
            for query in (
                "SELECT x FROM t ORDER BY x LIMIT 3",
                "SELECT x FROM t ORDER BY x * 0.5::DOUBLE LIMIT 3",
                "SELECT x FROM t ORDER BY x",
            )
        )
        assert whole == 0 < min(sorted_, computed)


def test_workers_leave_the_callers_torch_threads_alone() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with tqp.connect(threads=3) as connection:
            connection.register("t", _numbers(1000))
            connection.sql("SELECT sum(x) FROM t")
            assert (
                connection._executor.call(lambda _: (torch.arange(100_000) + 1, torch.get_num_threads())[1])
                == 1
            )
            assert torch.get_num_threads() == 2
            seen: list[int] = []
            thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
            thread.start()
            thread.join()
            assert seen == [2]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_connections_made_at_once_leave_the_callers_torch_threads_alone() -> None:
    before = torch.get_num_threads()

    def connect(_: int) -> int:
        with tqp.connect(threads=2):
            return torch.get_num_threads()

    try:
        torch.set_num_threads(3)
        with ThreadPoolExecutor(6) as pool:
            assert set(pool.map(connect, range(60))) == {3}
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_no_batch_is_counted_twice() -> None:
    """As a batch that two workers take would be, without an interpreter lock to make taking it one step."""
    with tqp.connect(threads=8, batch_rows=10) as connection:
        connection.register("t", {"x": np.arange(20_000)})
        query = "SELECT count(*), sum(x) FROM t WHERE x >= 0"
        for pipeline in connection.compile(query).steps():
            pipeline.cost.row_seconds = 1.0  # worth all workers
        for _ in range(10):
            assert connection.sql(query).fetchall() == [(20_000, 10_000 * 19_999)]


def test_a_connection_serves_several_threads_at_once() -> None:
    table = _numbers(20_000)
    with tqp.connect(threads=2, batch_rows=500) as connection:
        connection.register("t", table)
        connection.register("u", _numbers(60))
        expected = {query: connection.sql(query).to_arrow() for query in _QUERIES}

        def ask(number: int) -> bool:
            query = _QUERIES[number % len(_QUERIES)]
            if number % 5 == 0:  # somebody else's table comes and goes meanwhile
                connection.register(f"v{number}", {"y": np.arange(number + 1)})
                assert connection.sql(f"SELECT count(*) FROM v{number}").fetchall() == [(number + 1,)]
                connection.unregister(f"v{number}")
            return connection.sql(query).to_arrow() == expected[query]

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(ask, range(64)))


def test_a_table_registered_again_is_read_again() -> None:
    with tqp.connect() as connection:
        for count in (3, 5, 4):
            connection.register("t", {"x": np.arange(count)})
            assert connection.sql("SELECT count(*), max(x) FROM t").fetchall() == [(count, count - 1)]


def test_an_error_in_one_batch_stops_the_query_and_leaves_the_connection_usable() -> None:
    with tqp.connect(threads=4, batch_rows=10) as connection:
        connection.register("t", pa.table({"s": ["1"] * 995 + ["one"] + ["2"] * 4}))
        for _ in range(20):
            with pytest.raises(tqp.ExecutionError, match="'one'"):
                connection.sql("SELECT sum(CAST(s || '' AS INTEGER)) FROM t")
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(1000,)]


def test_memory_limit_names_itself() -> None:
    with tqp.connect(memory_limit="100MB") as connection:
        connection.register("a", {"x": np.arange(8000)})
        with pytest.raises(tqp.ResourceError, match="memory_limit"):
            connection.sql("SELECT p.x, q.x AS y FROM a AS p, a AS q")
        assert connection.sql("SELECT count(*) FROM a AS p, a AS q").fetchall() == [(64_000_000,)]


@pytest.mark.parametrize("size", ["lots", "12 parsecs", 0, -5])
def test_memory_limits_that_make_no_sense(size: int | str) -> None:
    with pytest.raises(tqp.BindError, match="memory_limit"):
        tqp.connect(memory_limit=size)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*), sum(p.x * q.x) FROM a AS p, a AS q WHERE p.x < q.x",
        "SELECT count(*), sum(p.x) FROM a AS p JOIN a AS q ON p.x % 3 = q.x % 3",
        "SELECT count(*), sum(p.x) FROM a AS p LEFT JOIN a AS q ON p.x % 3 = q.x % 3 AND q.x < 5",
        "SELECT count(*) FROM a AS p WHERE NOT EXISTS (SELECT 1 FROM a AS q WHERE q.x > p.x + 290)",
    ],
)
def test_batches_are_cut_where_a_join_forms_many_pairs(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for limit in (1 << 23, 1000, 10):
        monkeypatch.setitem(join_pairs.MAX_PAIRS, "cpu", limit)
        with tqp.connect(threads=2) as connection:
            connection.register("a", {"x": np.arange(300)})
            answers.append(connection.sql(query).fetchall())
    assert answers[0] == answers[1] == answers[2]


def test_closing_twice_is_fine_and_using_it_afterwards_is_an_error() -> None:
    connection = tqp.connect()
    connection.close()
    connection.close()
    with pytest.raises(tqp.BindError, match="closed"):
        connection.sql("SELECT 1")


@pytest.mark.parametrize(
    "arguments", [{"threads": 0}, {"batch_rows": 0}, {"disabled_rules": ("topq",)}, {"device": "abacus"}]
)
def test_settings_that_make_no_sense(arguments: dict[str, object]) -> None:
    with pytest.raises(tqp.BindError):
        tqp.connect(**arguments)  # type: ignore[arg-type]


@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="without an interpreter lock, what a worker has made and another thread drops waits for that worker",
)
@pytest.mark.parametrize("query", _QUERIES)
def test_a_query_leaves_nothing_for_the_garbage_collector(query: str) -> None:
    """Reference cycles would keep a query's intermediate results long after it, and the next would need fresh memory."""
    tables = {"t": _numbers(1000), "u": _numbers(100)}
    with tqp.connect(threads=2, batch_rows=300) as con:
        for name, table in tables.items():
            con.register(name, table)
        con.sql(query).to_arrow()
        gc.collect()
        gc.disable()
        try:
            con.sql(query).to_arrow()
            assert gc.collect() == 0
        finally:
            gc.enable()


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("join", ["JOIN", "SEMI JOIN"])
@pytest.mark.parametrize(
    "side",
    [
        "many",
        "(FROM many UNION ALL FROM many WHERE v < 0)",
        "(SELECT s, sum(v) AS v FROM many GROUP BY s, v ORDER BY v LIMIT 2000)",
        "(SELECT a.* FROM many a LEFT JOIN many b ON a.v = b.v + 2000)",
    ],
)
def test_where_a_build_side_is_empty_no_probe_row_is_read(
    side: str, join: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: dict[str, int] = {}
    num_rows = Pipeline.num_rows

    def recorded(self: Pipeline, state: State) -> int:
        rows = num_rows(self, state)
        read[self.title] = max(rows, read.get(self.title, 0))
        return rows

    monkeypatch.setattr(Pipeline, "num_rows", recorded)
    with tqp.connect(backend=backend, batch_rows=100) as connection:
        connection.register("many", {"s": [f"{i % 7}" for i in range(1000)], "v": list(range(1000))})
        connection.register("few", {"s": ["1", "2"], "x": [3, 4]})
        build = "(SELECT s FROM few WHERE x * x % 11 = $x) f"  # no range says that there is no row
        query = f"SELECT count(*), sum(v) FROM {side} m {join} {build} ON m.s = f.s"
        assert connection.sql(query, {"x": 5}).fetchall() == [(143, 71357)]
        assert max(read.values()) == 1000
        read.clear()
        assert connection.sql(query, {"x": 7}).fetchall() == [(0, None)]
        assert max(read.values()) < 1000


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize(
    "probe",
    [
        "(SELECT a.s, x FROM few a JOIN (SELECT s FROM few WHERE x * x % 11 = $x) f ON a.s = f.s)",
        "(SELECT s, x FROM few WHERE x * x % 11 = $x LIMIT 5)",
    ],
)
@pytest.mark.parametrize(
    ("select", "answer"),
    [
        ("count(m.v) FROM {} p LEFT JOIN many m ON p.s = m.s", 143),
        ("count(m.v) FROM {} p LEFT JOIN (SELECT s, max(v) AS v FROM many GROUP BY s) m ON p.s = m.s", 1),
        ("count(m.v) FROM {} p LEFT JOIN (SELECT max(v) AS v FROM many) m ON true", 1),
        ("count(*) FROM {} p LEFT JOIN (SELECT a.* FROM many a JOIN few b ON a.s = b.s) m ON p.s = m.s", 143),
        ("count(*) FROM {} p WHERE NOT EXISTS (FROM many m WHERE m.v * m.v % 8 = p.x + 1)", 1),
        ("count(*) FROM {} p WHERE x - 1 NOT IN (SELECT v * v % 8 FROM many)", 1),
        ("count(x IN (SELECT v FROM many)) FROM {} p", 1),
        ("sum((SELECT count(*) FROM many m WHERE m.s = p.s)) FROM {} p", 143),
        ("count(i) FROM {} p LEFT JOIN numbers n ON p.x < n.i", 996),
    ],
)
def test_where_a_probe_side_is_empty_no_build_row_is_read(
    select: str, answer: int, probe: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    num_rows = Pipeline.num_rows

    def recorded(self: Pipeline, state: State) -> int:
        read.append(num_rows(self, state))
        return read[-1]

    monkeypatch.setattr(Pipeline, "num_rows", recorded)
    with tqp.connect(backend=backend, batch_rows=100) as connection:
        connection.register("many", {"s": [f"{i % 7}" for i in range(1000)], "v": list(range(1000))})
        connection.register("few", {"s": ["1", "2"], "x": [3, 4]})
        numbers = "numbers AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM numbers WHERE i < 1000)"
        query = f"WITH RECURSIVE {numbers} SELECT {select.format(probe)}"
        found = connection.sql(query, {"x": 5}).fetchall()  # the probe side has one row, with 4
        assert found == [(answer,)]
        assert sum(read) >= 1000
        read.clear()
        assert connection.sql(query, {"x": 7}).fetchall() in ([(0,)], [(None,)])
        assert sum(read) < 1000


def test_a_shared_plan_is_computed_although_one_of_its_readers_has_nothing_to_match() -> None:
    with tqp.connect(batch_rows=100) as connection:
        connection.register("many", {"s": [f"{i % 7}" for i in range(1000)], "v": list(range(1000))})
        query = """
            WITH g AS MATERIALIZED (SELECT s, sum(v) AS v FROM many GROUP BY s)
            SELECT (SELECT count(*) FROM (FROM g UNION ALL FROM g) m JOIN (FROM many WHERE v * v % 1009 = $v) f ON m.s = f.s), sum(v) FROM g
        """
        assert connection.sql(query, {"v": 121}).fetchall() == [(4, 499500)]
        assert connection.sql(query, {"v": 11}).fetchall() == [(0, 499500)]
