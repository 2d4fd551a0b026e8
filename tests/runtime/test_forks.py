"""A connection in a forked child: it answers there, whatever threads of the parent were doing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")

_ROWS = 200_000


def _in_child(function: Callable[[], Any]) -> str:
    """What `function()` gives in a forked child, as text; a child that takes longer than 60 s is ended and fails."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        try:
            answer = repr(function())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            answer = f"{type(error).__name__}: {error}"
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return answer if status == 0 else f"ended with status {status}"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_connection_answers_in_a_forked_child(threads: int) -> None:
    numbers = pa.table({"k": np.arange(_ROWS) % 7, "s": [str(i % 1000) for i in range(_ROWS)]})
    _ = torch.ones(1 << 20) + 1  # torch's own threads are there
    with tqp.connect(threads=threads) as connection:
        connection.register("t", numbers)
        query = "SELECT k, count(*) FROM t GROUP BY k ORDER BY k"
        expected = repr(connection.sql(query).fetchall())
        assert _in_child(lambda: connection.sql(query).fetchall()) == expected
        assert _in_child(lambda: connection.sql("SELECT count(DISTINCT s) FROM t").fetchall()) == "[(1000,)]"

        def registered() -> Any:
            connection.register("u", numbers.slice(5))
            return connection.sql("SELECT count(*), max(s) FROM u JOIN (SELECT 3 AS k) USING (k)").fetchall()

        assert _in_child(registered) == repr([(_ROWS // 7 - 1, "999")])
        assert repr(connection.sql(query).fetchall()) == expected
        assert _in_child(lambda: tqp.sql("SELECT count(*) FROM t", {"t": numbers}).fetchall()) == repr(
            [(_ROWS,)]
        )


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_other_threads_query_and_register() -> None:
    numbers = pa.table({"k": np.arange(_ROWS) % 7, "x": np.arange(_ROWS) * 0.5})
    stop = threading.Event()
    with tqp.connect(threads=2) as connection:
        connection.register("t", numbers)

        def work() -> None:
            turn = 0
            while not stop.is_set():
                turn += 1
                connection.register("u", pa.table({"k": np.arange(50_000) % (turn % 5 + 1)}))
                connection.sql("SELECT k, count(*) FROM u GROUP BY k").fetchall()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for _ in range(5):
                answer = _in_child(lambda: connection.sql("SELECT sum(x) FROM t WHERE k = 3").fetchall())
                assert answer == repr([(sum(0.5 * i for i in range(_ROWS) if i % 7 == 3),)])
        finally:
            stop.set()
            thread.join()


def test_a_closed_connection_stays_closed_in_a_child() -> None:
    connection = tqp.connect(threads=1)
    connection.close()
    assert "closed" in _in_child(lambda: connection.sql("SELECT 1"))
