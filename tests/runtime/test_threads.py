"""SET threads: how many threads run the next queries of a connection, and that others keep theirs."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest

import tqp
from tqp.data.sharing import share, threads_at_work
from tqp.runtime.executor import Workers


def _threads_that_share(connection: tqp.Connection) -> set[int]:
    """How many workers a query has, and how many threads encode its columns."""
    return {connection._executor.call(each) for each in (_workers_of, _encoders_of)}


def _workers_of(workers: Workers) -> int:
    met = threading.Barrier(
        workers.threads, timeout=30
    )  # each item has a thread of its own, or none comes through
    workers.map(lambda _: met.wait(), range(workers.threads))
    return workers.threads


def _encoders_of(workers: Workers) -> int:
    met = threading.Barrier(threads_at_work(), timeout=30)
    share(lambda _: met.wait(), range(threads_at_work()))
    return threads_at_work()


def test_the_next_query_has_as_many_threads_as_were_set() -> None:
    with tqp.connect(threads=2) as connection, tqp.connect(threads=1) as other:
        for statement, expected in (
            ("SET threads = 3", 3),
            ("SET threads TO '4'", 4),
            ("PRAGMA threads = 1", 1),
            ("SET GLOBAL worker_threads = 5", 5),
            ("RESET threads", 2),
        ):
            connection.sql(statement)
            assert _threads_that_share(connection) == {expected}
            assert connection.threads == expected
            assert connection.sql("SELECT current_setting('threads')").fetchall() == [(expected,)]
            assert _threads_that_share(other) == {1}
        for wrong in ("0", "-1", "'x'", "100000"):
            with pytest.raises(tqp.BindError, match="threads="):
                connection.sql(f"SET threads = {wrong}")
        assert _threads_that_share(connection) == {2}


def test_workers_that_were_replaced_end() -> None:
    with tqp.connect(threads=1) as connection:
        before = threading.active_count()
        for _ in range(5):
            connection.sql("SET threads = 7")
            connection.sql("SET threads = 1")
        deadline = time.monotonic() + 30
        while threading.active_count() > before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert threading.active_count() <= before


def test_threads_are_set_while_queries_run() -> None:
    answers: list[list[tuple[object, ...]]] = []
    with tqp.connect(threads=2, batch_rows=100) as connection:
        connection.register("t", pa.table({"x": range(10_000)}))
        query = "SELECT count(*), max(x) FROM t"
        expected = connection.sql(query).fetchall()

        def ask() -> None:
            answers.extend(connection.sql(query).fetchall() for _ in range(30))

        asking = [threading.Thread(target=ask) for _ in range(3)]
        for thread in asking:
            thread.start()
        for number in range(60):
            connection.sql(f"SET threads = {number % 4 + 1}")
        for thread in asking:
            thread.join()
    assert answers == [expected] * 90
