"""Runs the benchmark: data, DuckDB's answers and times, tqp's runs, and the comparison."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import tqp
from tqp.tpch.compare import DuckDBRun, run_duckdb
from tqp.tpch.data import TABLES, check_directory, ensure_data, table_path
from tqp.tpch.errors import UsageError
from tqp.tpch.query import QUERY_NUMBERS, Query, load_query
from tqp.tpch.report import BenchmarkReport, QueryReport
from tqp.tpch.verify import difference


@dataclass(frozen=True, slots=True)
class Options:
    """What to run, as on the command line. `threads=None` is every core this process may use."""

    scale_factor: float = 1
    queries: Sequence[int] = QUERY_NUMBERS
    device: str = "cpu"
    threads: int | None = None
    runs: int = 5
    data: Path | None = None
    compare: bool = False
    verify: bool = True
    batch_rows: int | None = None
    disabled_rules: Sequence[str] = ()


@dataclass(slots=True)
class _Measured:
    """One query's runs through tqp."""

    milliseconds: list[float] = field(default_factory=list)
    answer: pa.Table | None = None
    error: str | None = None


def run_benchmark(options: Options, console: Console) -> BenchmarkReport:
    """Runs the benchmark and returns what was measured; progress goes to `console`.

    Raises `UsageError` where it cannot be run as asked. A query that fails, or answers wrongly, is part of the report.
    """
    threads = _check(options)
    queries = [load_query(number, options.scale_factor) for number in options.queries]
    if options.data is None:
        data = ensure_data(options.scale_factor, console)
    else:
        data = check_directory(options.data)
    with tempfile.TemporaryDirectory(prefix="tqp-tpch-") as answers:
        duckdb_run = None
        if options.verify or options.compare:
            with console.status("Running DuckDB"):
                duckdb_run = run_duckdb(
                    data,
                    queries,
                    Path(answers),
                    threads=threads,
                    runs=options.runs,
                    with_answers=options.verify,
                    with_times=options.compare,
                )
        measured = _run_tqp(options, threads, data, queries, console)
        # Read before the answers are compared: comparing needs memory too, which is not tqp's.
        peak_bytes = peak_memory()
        reports = [
            _query_report(query, measured[query.number], duckdb_run, options.verify) for query in queries
        ]
    versions = {"tqp": tqp.__version__, "torch": torch.__version__, "python": platform.python_version()}
    if duckdb_run is not None:
        versions["duckdb"] = duckdb_run.version
    return BenchmarkReport(
        queries=reports,
        scale_factor=options.scale_factor,
        data=str(data),
        device=options.device,
        threads=threads,
        runs=options.runs,
        batch_rows=options.batch_rows,
        disabled_rules=list(options.disabled_rules),
        peak_bytes=peak_bytes,
        device_peak_bytes=_device_peak_memory(options.device),
        processor=_processor(options.device),
        versions=versions,
    )


def peak_memory() -> int:
    """The most memory this process has held, in bytes, with Python and PyTorch in it."""
    # Linux lets a process inherit the peak of the one that started it in ru_maxrss; VmHWM is this process's own.
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _check(options: Options) -> int:
    """Raises `UsageError` for options out of range; returns the number of threads."""
    if options.runs < 1:
        raise UsageError(f"--runs must be at least 1, not {options.runs}")
    if options.threads is not None and options.threads < 1:
        raise UsageError(f"--threads must be at least 1, not {options.threads}")
    if options.batch_rows is not None and options.batch_rows < 1:
        raise UsageError(f"--batch-rows must be at least 1, not {options.batch_rows}")
    if options.threads is not None:
        return options.threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run_tqp(
    options: Options, threads: int, data: Path, queries: Sequence[Query], console: Console
) -> dict[int, _Measured]:
    try:
        connection = tqp.connect(
            device=options.device,
            threads=threads,
            batch_rows=options.batch_rows,
            disabled_rules=tuple(options.disabled_rules),
        )
    except tqp.Error as error:
        raise UsageError(str(error)) from error
    measured = {}
    # Drawn between queries only: a display that refreshes by itself would take part in what is measured.
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with connection, Progress(*columns, console=console, auto_refresh=False, transient=True) as progress:
        for table in TABLES:
            connection.register(table, str(table_path(data, table)))
        task = progress.add_task("Running tqp", total=len(queries))
        for query in queries:
            progress.update(task, description=f"Running query {query.number}", refresh=True)
            measured[query.number] = _measure(connection, query.text, options.runs)
            progress.advance(task)
    return measured


def _measure(connection: tqp.Connection, text: str, runs: int) -> _Measured:
    """The first run, which plans the query and reads the columns it is first to touch, and `runs` warm ones."""
    measured = _Measured()
    for _ in range(runs + 1):
        start = time.perf_counter()
        try:
            measured.answer = connection.sql(text).to_arrow()
        except tqp.Error as error:
            measured.error = f"{type(error).__name__}: {error}"
            break
        measured.milliseconds.append((time.perf_counter() - start) * 1000)
    return measured


def _query_report(
    query: Query, measured: _Measured, duckdb_run: DuckDBRun | None, verify: bool
) -> QueryReport:
    duckdb_milliseconds = duckdb_run.milliseconds.get(query.number) if duckdb_run else None
    if measured.error is not None or measured.answer is None:
        return QueryReport(
            number=query.number,
            duckdb_milliseconds=duckdb_milliseconds,
            is_equal=False,
            problem=measured.error,
        )
    problem, is_equal = None, None
    if verify and duckdb_run is not None:
        problem = difference(measured.answer, duckdb_run.answer(query.number), query.order_by, query.limit)
        is_equal = problem is None
    return QueryReport(
        number=query.number,
        rows=measured.answer.num_rows,
        first_milliseconds=measured.milliseconds[0],
        median_milliseconds=statistics.median(measured.milliseconds[1:]),
        duckdb_milliseconds=duckdb_milliseconds,
        is_equal=is_equal,
        problem=problem,
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
