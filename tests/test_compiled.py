"""Which programs a connection keeps: those whose tables and models are still what they were, and no others."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import weakref

import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp
from tqp.core.names import ObjectName
from tqp.runtime.memory_limit import give_freed_memory_back


def _table(number: int) -> pa.Table:
    return pa.table({"x": [number]})


def test_registering_another_table_leaves_a_program_alone() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", _table(1)).register("u", _table(2))
        program = connection.compile("SELECT x FROM t")
        connection.register("u", _table(3)).register("v", _table(4)).unregister("u")
        connection.register_model("m", torch.nn.Linear(1, 1), inputs=["x"])
        assert connection.compile("SELECT x FROM t") is program


def test_a_table_replaced_or_forgotten_takes_its_programs_with_it() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", _table(1))
        old = weakref.ref(connection.compile("SELECT x FROM t"))
        connection.sql("SELECT t.x FROM t, (SELECT 1 AS y)")
        connection.register("T", _table(2))
        gc.collect()
        assert old() is None and len(connection._queries.compiled.programs) == 0
        assert connection.sql("SELECT x FROM t").fetchall() == [(2,)]
        connection.unregister("t")
        assert len(connection._queries.compiled.programs) == 0
        with pytest.raises(tqp.BindError, match='no table "t"'):
            connection.sql("SELECT x FROM t")


def test_a_table_that_was_missing_is_seen_once_it_is_there() -> None:
    with tqp.connect(threads=1) as connection:
        with pytest.raises(tqp.BindError):
            connection.sql("SELECT x FROM t")
        connection.register("t", _table(1))
        assert connection.sql("SELECT x FROM t").fetchall() == [(1,)]


def test_the_same_immutable_table_registered_again_keeps_its_programs() -> None:
    table = _table(5)
    with tqp.connect(threads=1) as connection:
        program = connection.register("t", table).compile("SELECT x FROM t")
        assert connection.register("t", table).compile("SELECT x FROM t") is program


def test_a_model_replaced_takes_its_programs_with_it() -> None:
    def times(factor: float) -> torch.nn.Module:
        layer = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(layer.weight, factor)
        return layer

    with tqp.connect(threads=1) as connection:
        connection.register("t", _table(5))
        for factor in (2.0, 3.0):
            connection.register_model("m", times(factor), inputs=["x"])
            assert connection.sql("SELECT m(x) FROM t").fetchall() == [(5 * factor,)]


def test_a_query_sees_one_state_of_the_tables() -> None:
    """Both sides of a self-join read one version, whatever another thread registers meanwhile."""
    with tqp.connect(threads=2) as connection:
        connection.register("t", _table(0))
        stop = threading.Event()

        def replace() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                connection.register("t", _table(number))

        thread = threading.Thread(target=replace)
        thread.start()
        try:
            for turn in range(100):
                rows = connection.sql(f"SELECT a.x - b.x + {turn} FROM t AS a, t AS b").fetchall()
                assert rows == [(turn,)]
        finally:
            stop.set()
            thread.join()


def test_a_table_is_freed_when_it_is_forgotten() -> None:
    """Not only when Python searches for cycles: planning leaves some, through recursive functions, and they name tables."""
    query = "SELECT x, count(*) FROM t AS a JOIN t AS b USING (x) WHERE a.x > 0 OR b.x IN (SELECT x FROM t) GROUP BY x"
    gc.collect()
    gc.disable()
    try:
        with tqp.connect(threads=1) as connection:
            for leave in ("unregister", "register", "close"):
                connection.register("t", {"x": np.arange(10)})
                connection.sql(query).fetchall()
                table = weakref.ref(connection._catalog.state.tables[ObjectName.of("t")])
                if leave == "register":
                    connection.register("t", _table(1))
                elif leave == "unregister":
                    connection.unregister("t")
                else:
                    connection.close()
                assert table() is None, leave
    finally:
        gc.enable()


def _held() -> int:
    """Bytes of memory that this process holds."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


_measured = pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="the process's size is not known"
)


@_measured
def test_registering_again_and_again_does_not_grow_the_process() -> None:
    """Frames of 8 MB under changing texts; a frame that stayed would show as 8 MB and more each time."""
    with tqp.connect(threads=2) as connection:
        for turn in range(110):
            frame = {"k": np.arange(500_000) % 1000, "x": np.random.default_rng(turn).normal(size=500_000)}
            connection.register("t", frame)
            connection.sql(f"SELECT k, sum(x) + {turn} FROM t GROUP BY k").fetchall()
            if turn == 10:
                before = _held()
        assert _held() < 1.1 * before


@_measured
@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc gives pages back when it is told"
)
def test_the_memory_of_a_large_table_goes_back_when_it_is_forgotten() -> None:
    """Encoding makes copies several times the table's size; freed, they would stay with the process."""
    rows = 3_000_000
    numbers = np.random.default_rng(1)
    with tqp.connect(threads=2) as connection:
        connection.register("t", {"k": np.arange(100), "s": ["a", "b"] * 50})
        connection.sql(
            "SELECT k, s, count(*) FROM t GROUP BY k, s"
        ).fetchall()  # what the first query loads stays
        give_freed_memory_back()
        before = _held()
        texts = pa.DictionaryArray.from_arrays(numbers.integers(0, 3, rows), ["a", "bb", "ccc"]).cast(
            "string"
        )
        table = pa.table({"k": numbers.integers(0, 1000, rows), "x": numbers.normal(size=rows), "s": texts})
        connection.register("t", table)
        del texts, table
        connection.sql("SELECT k, s, count(*), sum(x) FROM t GROUP BY k, s").fetchall()
        assert _held() > before + (64 << 20)
        connection.unregister("t")
        assert _held() < before + (32 << 20)
