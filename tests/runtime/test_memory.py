"""The memory limit: what counts, where its default comes from, and that no query holds much more than it may."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp
from tqp.core.process import memory_budget
from tqp.runtime.memory_limit import (
    MemoryBudget,
    control_group_limit,
    give_freed_memory_back,
    held_bytes,
    keep_freed_memory,
)

CPU = torch.device("cpu")
MIB = 1 << 20

_measured = pytest.mark.skipif(held_bytes(CPU) is None, reason="the process's size is not known")


def _groups(folder: Path, limits: dict[str, str], file: str) -> Path:
    for group, limit in limits.items():
        (folder / group).mkdir(parents=True, exist_ok=True)
        (folder / group / file).write_text(limit)
    return folder


def test_the_least_limit_of_a_control_group_and_those_above_it_counts(tmp_path: Path) -> None:
    membership = tmp_path / "cgroup"
    root = _groups(tmp_path / "v2", {"a": "1000", "a/b": "3000", "a/b/c": "max"}, "memory.max")
    membership.write_text("0::/a/b/c\n")
    assert control_group_limit(root, membership) == 1000
    root = _groups(tmp_path / "v1", {"memory/a": "5000", "memory/a/b": "4000"}, "memory.limit_in_bytes")
    membership.write_text("12:cpu,cpuacct:/a/b\n4:memory:/a/b\n")
    assert control_group_limit(root, membership) == 4000
    membership.write_text("0::/elsewhere\n")
    assert control_group_limit(root, membership) is None
    assert control_group_limit(root, tmp_path / "missing") is None


@_measured
def test_a_budget_counts_from_the_first_running_query() -> None:
    give_freed_memory_back()  # of other tests: it would go back, and leave room, while this one counts
    budget = MemoryBudget(64 * MIB, CPU, threads=1)
    with budget.query():
        memory_budget.reserve(32 * MIB)
        with pytest.raises(tqp.ResourceError, match=r"limit of 64 MiB; .*memory_limit="):
            memory_budget.reserve(100 * MIB)
        held = np.ones(48 * MIB, np.uint8)
        with budget.query(), pytest.raises(tqp.ResourceError):  # the same budget, from the same beginning
            memory_budget.reserve(32 * MIB)
        left = memory_budget.bytes_left()
        assert left is not None and left < 32 * MIB and held.any()
    with budget.query():  # what was there before does not count
        memory_budget.reserve(32 * MIB)
    assert memory_budget.bytes_left() is None
    memory_budget.reserve(1 << 60)  # for no query


@_measured
def test_a_block_that_an_interrupt_left_open_charges_nobody() -> None:
    budget = MemoryBudget(64 * MIB, CPU, threads=1)
    query, inner = budget.query(), memory_budget.charged_to(budget)
    query.__enter__()
    inner.__enter__()
    query.__exit__(None, None, None)
    del inner  # with the exception that knew it
    assert memory_budget.bytes_left() is None


@_measured
def test_a_query_that_an_interrupt_ended_does_not_count_as_running(monkeypatch: pytest.MonkeyPatch) -> None:
    held = 0
    monkeypatch.setattr("tqp.runtime.memory_limit.held_bytes", lambda device: held)

    def interrupted(budget: object) -> None:
        raise KeyboardInterrupt

    budget = MemoryBudget(64 * MIB, CPU, threads=1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(budget._running, "discard", interrupted)
        with budget.query():
            pass
    held = 60 * MIB
    with budget.query():
        memory_budget.reserve(32 * MIB)


def test_slots_go_with_their_last_reader() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", {"k": np.arange(100) % 7, "x": np.arange(100.0)})
        program = connection.compile(
            "SELECT a.k, s FROM t AS a JOIN (SELECT k, sum(x) AS s FROM t GROUP BY k) AS g ON a.k = g.k ORDER BY s, a.x"
        )
        wanted = program._wanted_after
        assert len(wanted) == len(program.steps()) > 2
        assert program.result_slot in wanted[-1]
        for number, step in enumerate(program.steps()):
            assert all(step.reads <= kept for kept in wanted[:number][-1:])
        own = set(program._stored) | set(program.constants.objects) | {"device", "workers"}
        in_result = {program.result_slot, *(column.slot for column in program.result_columns)}
        assert wanted[-1] - own == in_result
        assert any(wanted[number] - wanted[-1] for number in range(len(wanted)))


#: Runs queries under a limit and prints by how many bytes the process grew at most during each, and how it ended.
_WATCHED = """
    import gc, os, sys, threading, time
    import numpy as np, pyarrow as pa, tqp

    page = os.sysconf("SC_PAGE_SIZE")
    statistics = os.open("/proc/self/statm", os.O_RDONLY)
    held = lambda: int(os.pread(statistics, 100, 0).split()[1]) * page
    peak, watching = 0, True

    def watch():
        global peak
        while watching:
            peak = max(peak, held())
            time.sleep(0.0005)

    rows = 1_500_000
    random = np.random.default_rng(0)
    table = pa.table({
        "k": random.integers(0, rows, rows),
        "x": random.normal(size=rows),
        "s": pa.array([f"text {i % 500_009}" for i in range(rows)]),
    })
    threading.Thread(target=watch, daemon=True).start()
    sys.setswitchinterval(0.0005)
    for query in sys.argv[1:]:
        with tqp.connect(threads=2, memory_limit="150MiB") as connection:
            connection.register("t", table)
            gc.collect()
            before = peak = held()
            try:
                connection.sql(query)
                how = "answered"
            except tqp.ResourceError:
                how = "refused"
            print(peak - before, how, flush=True)
"""
_QUERIES = {
    "SELECT s || '-' || s || '-' || k || '-' || repeat(s, 20) AS y FROM t": "refused",
    "SELECT max(s || '-' || s || '-' || k || '-' || repeat(s, 20)) FROM t": None,
    "SELECT a.k, b.k AS q FROM t AS a, t AS b WHERE a.k < 9000 AND b.k < 9000": "refused",
    "SELECT a.k, b.x FROM t AS a JOIN t AS b ON a.k = b.k": None,
    "SELECT DISTINCT k, x FROM t": None,
    "SELECT k, count(*), sum(x) FROM t GROUP BY k": None,
    "SELECT * FROM t ORDER BY s, x": None,
    "SELECT count(*) FROM (SELECT 1 FROM t AS a, t AS b WHERE a.k < 2000 AND b.k < 2000)": "answered",
}


@_measured
def test_no_query_holds_much_more_than_the_limit() -> None:
    """Strings, joins, groups and sorts that would take several times the limit; a process of its own is watched."""
    script = textwrap.dedent(_WATCHED)
    done = subprocess.run(
        [sys.executable, "-c", script, *_QUERIES],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(Path(tqp.__file__).parent.parent)},
    )
    assert done.returncode == 0, done.stderr
    outcomes = [line.split() for line in done.stdout.splitlines()]
    for (query, expected), (grown, how) in zip(_QUERIES.items(), outcomes, strict=True):
        assert int(grown) < 1.5 * 150 * MIB, query
        assert expected in (None, how), query


def test_how_many_heaps_threads_have_is_left_to_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[int] = []
    functions = {"mallopt": lambda parameter, _: changed.append(parameter)}
    monkeypatch.setattr("tqp.runtime.memory_limit._c_function", functions.get)
    keep_freed_memory.__wrapped__()
    assert changed and -8 not in changed  # M_ARENA_MAX of malloc.h


def test_columns_encoded_by_a_query_count() -> None:
    table = pa.table({f"c{i}": np.random.default_rng(i).integers(0, 2**60, 1_000_000) for i in range(20)})
    columns = ", ".join(f"sum(c{i} // 2 ** 40)" for i in range(20))
    with tqp.connect(threads=1, memory_limit="40MiB") as connection:
        connection.register("t", table.slice(1))  # not where its buffers begin, so that it is copied
        if held_bytes(CPU) is not None:
            connection.sql("SELECT sum(c0 // 2) FROM t")
            with pytest.raises(tqp.ResourceError):
                connection.sql(f"SELECT {columns}, median(c3), median(c4) FROM t")
