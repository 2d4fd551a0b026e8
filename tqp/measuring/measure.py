"""Measures queries: DuckDB's answers and times first, in a process of its own, then tqp's runs, then the comparison.

Knows nothing of TPC-H: other benchmarks bring tables and queries of their own.
"""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import tqp
from tqp.measuring.compare import DuckDBRun, run_duckdb
from tqp.measuring.duckdb_process import peak_memory, timed_runs
from tqp.measuring.errors import UsageError
from tqp.measuring.query import Query
from tqp.measuring.report import QueryReport, Setting
from tqp.measuring.verify import difference


@dataclass(frozen=True, slots=True)
class Engine:
    """How queries are run, as on the command line. `threads=None` is every core this process may use.

    `profile`: where to write a trace of one more run of each query, after those that are timed.
    """

    device: str = "cpu"
    threads: int | None = None
    runs: int = 5
    compare: bool = False
    verify: bool = True
    batch_rows: int | None = None
    disabled_rules: Sequence[str] = ()
    fuse: str = "off"
    backend: str = "auto"
    profile: Path | None = None

    def check(self) -> None:
        """Raises `UsageError` for a number out of range."""
        for option, value in (
            ("runs", self.runs),
            ("threads", self.threads),
            ("batch-rows", self.batch_rows),
        ):
            if value is not None and value < 1:
                raise UsageError(f"--{option} must be at least 1, not {value}")
        if self.profile is not None and not self.profile.absolute().parent.is_dir():
            raise UsageError(f"--profile: {self.profile.absolute().parent} is not a folder")

    @property
    def num_threads(self) -> int:
        """Worker threads, of either engine."""
        if self.threads is not None:
            return self.threads
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def connect_options(self) -> dict[str, Any]:
        """What `tqp.connect` is given besides `threads`; it can be written as JSON."""
        names = ("device", "batch_rows", "disabled_rules", "fuse", "backend")
        return {name: getattr(self, name) for name in names}

    def connect(self) -> tqp.Connection:
        """A connection of this kind. Raises `UsageError` if there is no such device or rule."""
        try:
            return tqp.connect(threads=self.num_threads, **self.connect_options())
        except tqp.Error as error:
            raise UsageError(str(error)) from error


def measure(
    engine: Engine, tables: Mapping[str, Path], queries: Sequence[Query], console: Console
) -> tuple[list[QueryReport], Setting]:
    """Runs `queries` over `tables` (Parquet or Arrow IPC files by name); progress goes to `console`.

    Raises `UsageError` where they cannot be run as asked. A query that fails, or answers wrongly, is part of its report.
    """
    engine.check()
    with tempfile.TemporaryDirectory(prefix="tqp-answers-") as answers:
        duckdb_run = None
        if engine.verify or engine.compare:
            with console.status("Running DuckDB"):
                duckdb_run = run_duckdb(
                    tables,
                    queries,
                    Path(answers),
                    threads=engine.num_threads,
                    runs=engine.runs,
                    with_answers=engine.verify,
                    with_times=engine.compare,
                )
        runs = _run_tqp(engine, tables, queries, console)
        # Read before the answers are compared: comparing needs memory too, which is not tqp's.
        setting = setting_of(engine, peak_memory(), duckdb_run)
        reports = [_compared(query, *runs[query.number], duckdb_run, engine.verify) for query in queries]
    return reports, setting


def _run_tqp(
    engine: Engine, tables: Mapping[str, Path], queries: Sequence[Query], console: Console
) -> dict[int, tuple[QueryReport, pa.Table | None]]:
    """What was measured of each query, and its answer, None if it failed."""
    runs = {}
    # Drawn between queries only: a display that refreshes by itself would take part in what is measured.
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        engine.connect() as connection,
        Progress(*columns, console=console, auto_refresh=False, transient=True) as progress,
    ):
        for name, path in tables.items():
            connection.register(name, str(path))
        task = progress.add_task("Running tqp", total=len(queries))
        for query in queries:
            progress.update(task, description=f"Running {query.label}", refresh=True)
            runs[query.number] = _run(connection, query, engine.runs)
            progress.advance(task)
        if engine.profile is not None:
            right = [query for query in queries if runs[query.number][1] is not None]
            _trace(connection, right, engine.profile, console)
    return runs


def _trace(connection: tqp.Connection, queries: Sequence[Query], path: Path, console: Console) -> None:
    """Runs each query once more, with a trace, and prints what its operators took."""
    with connection.trace() as trace:
        for query in queries:
            with torch.profiler.record_function(f"query: {query.label}"):
                connection.sql(query.text).to_arrow()
    trace.write(path)
    console.print(str(trace), markup=False, highlight=False, soft_wrap=True)


def _run(connection: tqp.Connection, query: Query, warm_runs: int) -> tuple[QueryReport, pa.Table | None]:
    """The first run, which plans the query and reads the columns it is first to touch, and the warm ones."""
    report = QueryReport(number=query.number, label=query.label)
    try:
        answer, times = timed_runs(lambda: connection.sql(query.text).to_arrow(), warm_runs)
    except tqp.Error as error:
        return replace(report, is_equal=False, problem=f"{type(error).__name__}: {error}"), None
    # Compiled as a query that was not seen before: the same text, a little longer each time.
    longer = (query.text + "\n" * number for number in range(1, 4))
    _, planning = timed_runs(lambda: connection.compile(next(longer)), 2)
    measured = replace(
        report,
        rows=answer.num_rows,
        first_milliseconds=times[0],
        median_milliseconds=statistics.median(times[1:]),
        planning_milliseconds=statistics.median(planning),
    )
    return measured, answer


def _compared(
    query: Query, report: QueryReport, answer: pa.Table | None, duckdb_run: DuckDBRun | None, verify: bool
) -> QueryReport:
    """With DuckDB's time, and with what is wrong with the answer."""
    if duckdb_run is None:
        return report
    report = replace(report, duckdb_milliseconds=duckdb_run.milliseconds.get(query.number))
    if answer is None or not verify:
        return report
    problem = difference(answer, duckdb_run.answer(query.number), query.order_by, query.limit)
    return replace(report, is_equal=problem is None, problem=problem)


def setting_of(engine: Engine, peak_bytes: int, duckdb_run: DuckDBRun | None = None) -> Setting:
    """What was measured on, and how."""
    versions = {"tqp": tqp.__version__, "torch": torch.__version__, "python": platform.python_version()}
    if duckdb_run is not None:
        versions["duckdb"] = duckdb_run.version
    return Setting(
        **engine.connect_options(),
        threads=engine.num_threads,
        runs=engine.runs,
        peak_bytes=peak_bytes,
        device_peak_bytes=_device_peak_memory(engine.device),
        duckdb_peak_bytes=duckdb_run.peak_bytes if duckdb_run is not None and engine.compare else None,
        processor=_processor(engine.device),
        versions=versions,
    )


def _device_peak_memory(device: str) -> int | None:
    if device.startswith("cuda") and torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated(device))
    return None


def _processor(device: str) -> str:
    name = platform.processor() or platform.machine()
    description = Path("/proc/cpuinfo")
    if description.exists():
        models = (
            line.split(":", 1)[1].strip()
            for line in description.read_text().splitlines()
            if line.startswith("model name")
        )
        name = next(models, name)
    if device.startswith("cuda") and torch.cuda.is_available():
        name += f" + {torch.cuda.get_device_name(device)}"
    return name
