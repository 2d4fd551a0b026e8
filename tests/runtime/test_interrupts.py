"""Interrupts, whatever a query is doing: the caller goes on at once, the workers soon."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pytest

import tqp
from tqp.core.process.waiting import result_of
from tqp.runtime.executor import Cancelled, Workers

_ROWS = 3_000_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(0)
    return pa.table(
        {
            "k": random.integers(0, _ROWS, _ROWS),
            "x": random.normal(size=_ROWS),
            "s": pa.array([f"text {i % 200_003} {i % 7}" for i in range(_ROWS)]),
        }
    )


@contextlib.contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this platform")
@pytest.mark.parametrize("seconds", [0.0005, 0.02, 0.1, 0.3])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(sqrt(abs(x)) * sin(x) + cos(x) * exp(x / 10)) FROM t",  # scan
        "SELECT k, sum(x), min(s) FROM t GROUP BY k",  # merge, finish
        "SELECT * FROM t ORDER BY s, x",  # sort
        "SELECT a.x, b.s FROM t AS a JOIN t AS b ON a.k = b.k",  # build
        "SELECT DISTINCT s || k FROM t",  # strings
        "SELECT count(*) FROM t AS a, t AS b WHERE a.k < 3000 AND a.x < b.x",  # pairs
        "SELECT sum(x) OVER (PARTITION BY s ORDER BY k ROWS 10 PRECEDING), rank() OVER (ORDER BY x) FROM t",
    ],
)
def test_an_interrupt_ends_a_query_soon(table: pa.Table, query: str, seconds: float) -> None:
    with tqp.connect(threads=2) as connection:
        connection.register("t", table)  # encoded by the query itself, too
        begin = time.monotonic()
        with contextlib.suppress(KeyboardInterrupt), _interrupted_after(seconds):
            connection.sql(query)
        assert time.monotonic() - begin < seconds + 5
        begin = time.monotonic()
        connection._executor.map(lambda _: time.sleep(0.001), range(4))  # both workers are free again
        assert connection.sql("SELECT count(*) FROM (SELECT 1)").fetchall() == [(1,)]
        assert time.monotonic() - begin < 10


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this platform")
@pytest.mark.parametrize("seconds", [0.0005, 0.02, 0.1])
@pytest.mark.parametrize("way", ["fetchall", "to_arrow", "to_pandas", "to_polars"])
def test_an_interrupt_ends_a_way_out_soon(table: pa.Table, way: str, seconds: float) -> None:
    with tqp.connect(threads=2) as connection:
        connection.register("t", table)
        result = connection.sql(
            "SELECT k, x, s || '' AS s, DATE '2000-01-01' + k::INTEGER % 9 AS d FROM t LIMIT 300000"
        )
        begin = time.monotonic()
        with contextlib.suppress(KeyboardInterrupt), _interrupted_after(seconds):
            getattr(result, way)()
        assert time.monotonic() - begin < seconds + 5
        assert len(getattr(result, way)()) == 300_000
        assert connection.sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT k, sum(x), min(s) FROM t GROUP BY k",
        "SELECT * FROM t ORDER BY s, x",
        "CREATE TABLE made AS SELECT *, s || k AS z FROM t",
        "UPDATE kept SET x = x + (SELECT max(length(s || k)) FROM t)",
        "COPY t TO '{}/t.csv'",
        "COPY t TO '{}/t.json'",
        "COPY t TO '{}/t.parquet' (COMPRESSION zstd)",
        "COPY (SELECT *, k % 50 AS g FROM t) TO '{}/by' (FORMAT parquet, PARTITION_BY g)",
    ],
)
def test_another_thread_ends_a_statement(table: pa.Table, tmp_path: Path, statement: str) -> None:
    with tqp.connect(threads=2) as connection:
        connection.register("t", table.slice(0, 1_000_000))
        connection.sql("CREATE TABLE kept AS SELECT k, x FROM t; SELECT min(s), sum(x), sum(k) FROM t")
        began, ended = threading.Event(), threading.Event()

        def interrupt() -> None:
            began.wait()
            while not ended.wait(0.01):
                connection.interrupt()

        with ThreadPoolExecutor(1) as other:
            other.submit(interrupt)
            try:
                with pytest.raises(tqp.InterruptError, match="the query was interrupted"):
                    began.set()
                    connection.sql(statement.format(tmp_path))
            finally:
                ended.set()
        assert not any(path.is_file() for path in tmp_path.rglob("*"))
        assert connection.sql("SELECT count(*) FROM kept").fetchall() == [(1_000_000,)]
        assert [each for (each,) in connection.sql("SHOW TABLES").fetchall()] == ["kept", "t"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this platform")
@pytest.mark.parametrize("way", ["a signal", "another thread"])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_reading_a_whole_file_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, way: str
) -> None:
    module = pyarrow.csv if kind == "csv" else pyarrow.json
    read, began, goes_on = getattr(module, f"read_{kind}"), threading.Event(), threading.Event()

    def slow(*arguments: Any, **options: Any) -> pa.Table:
        began.set()
        assert goes_on.wait(60)
        return read(*arguments, **options)

    monkeypatch.setattr(module, f"read_{kind}", slow)
    path = tmp_path / f"t.{kind}"
    path.write_text("a,b\n1,2\n" if kind == "csv" else '{"a": 1, "b": 2}')
    with path.open("a") as file:
        file.write("\n" * (5 << 20))
    with tqp.connect() as connection:

        def interrupt() -> None:
            assert began.wait(60)
            if way == "another thread":
                connection.interrupt()
            else:
                signal.raise_signal(signal.SIGALRM)

        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        other = threading.Thread(target=interrupt)
        try:
            other.start()
            with pytest.raises(KeyboardInterrupt if way == "a signal" else tqp.InterruptError):
                connection.sql(f"FROM '{path}'")
            other.join()
        finally:
            signal.signal(signal.SIGALRM, before)
            goes_on.set()
        assert connection.sql(f"FROM '{path}'").fetchall() == [(1, 2)]


class _LateSignals(Future[None]):
    """Signals that come before a wait begins; the handler runs only when it is over."""

    waits = 0

    def result(self, timeout: float | None = None) -> None:
        assert timeout is not None
        self.waits += 1
        if self.waits == 2:
            signal.raise_signal(signal.SIGALRM)  # a shell that starts the tests may have it ignore SIGINT
        elif self.waits == 10:
            self.set_result(None)
        super().result(timeout)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no such signal on this platform")
def test_a_signal_just_before_a_wait_ends_it() -> None:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            result_of(_LateSignals())
    finally:
        signal.signal(signal.SIGALRM, before)
    settled: Future[None] = Future()
    settled.set_exception(TimeoutError("of its own"))
    with pytest.raises(TimeoutError, match="of its own"):
        result_of(settled)


def test_an_interrupt_ends_what_runs_on_its_connection_only() -> None:
    with tqp.connect(threads=1) as connection, tqp.connect(threads=1) as other:
        connection.interrupt()  # nothing runs
        seen: list[object] = []

        def interrupts(x: int) -> int:
            other.interrupt()
            seen.append(x)
            return x

        connection.create_function("f", interrupts, type="native")
        assert connection.sql("SELECT f(1)").fetchall() == [(1,)] and seen == [1]

        def stops(x: int) -> int:
            connection.interrupt()
            return x

        connection.create_function("g", stops, type="native")
        with pytest.raises(tqp.InterruptError):
            connection.sql("SELECT g(i) FROM range(10) r(i)")
        assert connection.sql("SELECT 2").fetchall() == [(2,)]


def test_breakers_look_at_the_flag_between_items() -> None:
    with tqp.connect(threads=2) as connection:
        done: list[int] = []

        def work(workers: Workers) -> None:
            def item(number: int) -> None:
                done.append(number)
                if number == 3:
                    workers._cancelled.set()
                elif number > 3:  # until then, however late the thread of the third is
                    workers._cancelled.wait(10)

            workers.map(item, range(1000))

        with pytest.raises(Cancelled):
            connection._executor.call(work)
        assert 4 <= len(done) < 20


def test_no_state_is_merged_or_finished_after_an_interrupt() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", pa.table({"k": np.arange(1000) % 3}))
        program = connection.compile("SELECT k, count(*) FROM t GROUP BY k")
        step = program.steps()[0]
        merged: list[object] = []
        cancelled = threading.Event()
        merge, partial = step.breaker.merge, step.breaker.partial
        step.breaker.merge = lambda states: (merged.append(states), merge(states))[1]  # type: ignore[method-assign]
        step.breaker.partial = lambda outputs, state: (cancelled.set(), partial(outputs, state))[1]  # type: ignore[method-assign]
        workers = Workers(connection._executor, cancelled)
        with pytest.raises(Cancelled):
            connection._executor.call(lambda _: program.run(workers))
        assert merged == []
