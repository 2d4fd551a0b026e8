"""The bar of how far a query is: who sees it, what it says, and that nothing of it stays."""

import io
import re
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

import numpy
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tqp.core.process.memory_budget import current_budget
from tqp.core.process.progress import Steps
from tqp.data.column import Table
from tqp.pieces import QueryInPieces
from tqp.runtime import progress_bar


class Terminal(io.StringIO):
    """What somebody sees: standard error in its block."""

    def isatty(self) -> bool:
        return True

    def __enter__(self) -> Self:
        self._outside, sys.stderr = sys.stderr, self
        return self

    def __exit__(self, *error: object) -> None:
        sys.stderr = self._outside


@pytest.fixture
def terminal(monkeypatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress_bar, "DELAY", 0.15)
    yield Terminal()
    deadline = time.monotonic() + 10
    while progress_bar.progress_bars._is_watching and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not progress_bar.progress_bars._is_watching, "the thread goes on without queries"


@pytest.fixture
def connection(monkeypatch) -> Iterator[tqp.Connection]:
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "script.py", raising=False)

    def slow(x: pa.Array) -> pa.Array:
        time.sleep(0.1)
        return x

    with tqp.connect(threads=1, batch_rows=1000) as con:
        con.register("t", pa.table({"x": range(10_000)}))
        con.create_function("slow", slow, ["BIGINT"], "BIGINT")
        yield con


def percents(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"(\d+)%", text)]


def test_a_long_query_has_a_bar_that_grows_and_goes(terminal, connection):
    connection.execute("SET enable_progress_bar = true")
    with terminal:
        assert connection.sql("SELECT sum(slow(x)) FROM t").fetchall() == [(49_995_000,)]
    shown = percents(terminal.getvalue())
    assert shown == sorted(shown) and shown[-1] >= 50 and len(set(shown)) > 2, shown
    assert "GROUP BY" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")  # the line is cleared


def test_nothing_is_shown_unless_it_is_wanted(terminal, connection):
    with terminal:
        connection.sql("SELECT sum(slow(x)) FROM t")  # Python runs a script: nobody types
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar = false")
        connection.sql("SELECT sum(slow(x)) FROM t")
    assert terminal.getvalue() == ""


def test_short_queries_have_no_bar(terminal, connection):
    connection.execute("SET enable_progress_bar = true")
    begin = time.monotonic()
    with terminal:
        while time.monotonic() < begin + 0.5:
            connection.sql("SELECT sum(x) FROM t")
    assert terminal.getvalue() == ""


def test_nothing_is_shown_where_output_is_captured(terminal, connection, monkeypatch):
    captured = io.StringIO()
    monkeypatch.setattr(sys, "stderr", captured)  # no terminal
    connection.execute("SET enable_progress_bar = true")
    connection.sql("SELECT sum(slow(x)) FROM t")
    assert captured.getvalue() == ""


def test_an_interrupt_ends_the_bar(terminal, connection):
    connection.execute("SET enable_progress_bar = true")
    timer = threading.Timer(0.6, connection.interrupt)
    timer.start()
    with terminal, pytest.raises(tqp.InterruptError):
        connection.sql("SELECT sum(slow(x)) FROM t")
    timer.join()
    shown = terminal.getvalue()
    assert percents(shown)
    time.sleep(0.5)
    assert terminal.getvalue() == shown


def test_the_terminal_may_go_away(terminal, connection):
    connection.execute("SET enable_progress_bar = true")
    timer = threading.Timer(0.5, terminal.close)
    timer.start()
    with terminal:
        assert connection.sql("SELECT sum(slow(x)) FROM t").fetchall() == [(49_995_000,)]
    timer.join()


def test_a_table_in_pieces_counts_its_rows(connection, tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"x": numpy.arange(2_000_000)}), path, row_group_size=50_000, use_dictionary=False
    )
    fractions, titles, run = [], [], QueryInPieces._run

    def seen(*arguments: Any) -> Table:
        for stage in current_budget().stages:  # none once the rows of all pieces are there
            titles.append(stage.title)
            fractions.append(stage.fraction(0))
        return run(*arguments)

    monkeypatch.setattr(QueryInPieces, "_run", seen)
    connection.execute("SET memory_limit = '24MB'")
    connection.sql(f"SELECT sum(x) FROM '{path}' WHERE x % 2 = 0")
    assert set(titles) == {f"reading {path} in pieces"}
    assert fractions == sorted(fractions) and fractions[0] == 0 and fractions[-1] > 0.7


def test_where_somebody_types_at_python_there_are_bars(connection, monkeypatch):
    monkeypatch.delattr(sys.modules["__main__"], "__file__")
    with tqp.connect() as con:
        assert con.sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]


def test_settings(connection):
    assert connection.sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]
    connection.execute("SET enable_progress_bar TO on")
    assert connection.sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]
    connection.execute("RESET enable_progress_bar")
    assert connection.sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]
    with pytest.raises(tqp.BindError, match="enable_progress_bar is true or false"):
        connection.execute("SET enable_progress_bar = 'sometimes'")


def test_steps_of_several_sizes():
    steps = Steps("steps", 10)
    assert steps.fraction(0.5) == 0
    steps.begin(8)
    assert steps.fraction(0.5) == 0.4
    steps.begin(2)
    assert steps.fraction(0.5) == 0.9
    steps.begin(5)  # more than was expected
    assert steps.fraction(1.0) == 1
