"""Traces: what stands in the timeline and in the table of operators, and that nothing is left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tqp
from tqp.cli import main

QUERY = "SELECT k, sum(x * 2) AS s FROM t WHERE x > 900 GROUP BY k ORDER BY k"


@pytest.fixture
def connection() -> Any:
    with tqp.connect(threads=2, batch_rows=1000) as connection:
        numbers = np.arange(100_000)
        connection.register("t", {"k": numbers % 7, "x": numbers % 1000})
        yield connection


def _ranges(path: Path) -> dict[str, set[int]]:
    """The threads in which each of our names occurs."""
    events = json.loads(path.read_text())["traceEvents"]
    ranges: dict[str, set[int]] = {}
    for event in events:
        if event.get("cat") == "user_annotation":
            ranges.setdefault(event["name"], set()).add(event["tid"])
    return ranges


def test_timeline_has_pipelines_breakers_and_kernels_of_all_workers(
    connection: tqp.Connection, tmp_path: Path
) -> None:
    expected = connection.sql(QUERY).fetchall()
    with connection.trace() as trace:
        # More than once: on a busy machine a worker may find no batches left.
        for _ in range(10):
            assert connection.sql(QUERY).fetchall() == expected
    trace.write(tmp_path / "trace.json")
    ranges = _ranges(tmp_path / "trace.json")
    pipelines = {name for name in ranges if name.startswith("pipeline: ")}
    assert "pipeline: GROUP BY" in pipelines and "multiply" in ranges
    assert any(name.endswith(".merge") for name in ranges) and any(
        name.endswith(".finish") for name in ranges
    )
    assert len(ranges["pipeline: GROUP BY"]) == 2, "both workers"


def test_table_adds_up(connection: tqp.Connection) -> None:
    with connection.trace() as trace:
        connection.sql(QUERY).fetchall()
    grouping = trace.operators["pipeline: GROUP BY"]
    assert grouping.calls == 100
    assert grouping.rows == trace.operators["multiply"].rows == 9_900
    assert 0 <= grouping.self_seconds < grouping.seconds
    lines = str(trace).splitlines()
    assert "self ms" in lines[0] and any(line.endswith("pipeline: GROUP BY") for line in lines)


def test_nothing_is_traced_afterwards_nor_twice_at_once(connection: tqp.Connection) -> None:
    with connection.trace() as trace, pytest.raises(tqp.ExecutionError, match="already"), connection.trace():
        pass
    connection.sql(QUERY).fetchall()
    assert trace.operators == {}
    with connection.trace() as trace, pytest.raises(tqp.Error):
        connection.sql("SELECT cast(x AS TINYINT) + k FROM t").fetchall()
    with connection.trace() as trace:
        connection.sql(QUERY).fetchall()
    assert trace.operators


def test_commands_write_traces(tmp_path: Path, tpch_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trace.json"
    assert main(["sql", "SELECT 1 + length('a') AS x", "--profile", str(file), "--format", "csv"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "x\n2\n" and "self ms" in captured.err
    assert any(name.startswith("pipeline") for name in _ranges(file))
    arguments = ["--runs", "1", "--no-verify", "--profile"]
    tpch = ["tpch", "--sf", "0.01", "--data", str(tpch_data), "--queries", "6", *arguments]
    assert main([*tpch, str(file)]) == 0
    assert "query: 6" in _ranges(file) and "self ms" in capsys.readouterr().err
    bench = ["bench", "operators", "--rows", "100", "--only", "two", *arguments]
    assert main([*bench, str(file)]) == 0
    assert "query: join: two keys, semi, 30% misses" in _ranges(file)
    assert "query: range join: two on one table" in _ranges(tmp_path / "trace-1.json")
    assert main([*tpch, "/no/such/folder/x.json"]) == 2
    assert "not a folder" in capsys.readouterr().err
    assert main(["sql", "SELECT 1", "--profile", "/no/such/folder/x.json"]) == 2
