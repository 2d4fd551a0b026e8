"""Measures queries: DuckDB's answers and times first, in a process of its own, then tqp's runs, then the comparison.

Knows nothing of TPC-H: other benchmarks bring tables and queries of their own.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import tqp
from tqp.measuring.columns import COLUMNS, CONNECTIONS, FIRST_RUNS, ONCE, OTHER_TYPES
from tqp.measuring.compare import DuckDBRun, Variant, run_duckdb
from tqp.measuring.duckdb_process import peak_memory, read_source, timed_runs
from tqp.measuring.errors import INSTALL_HINT, UsageError
from tqp.measuring.query import Query
from tqp.measuring.report import QueryReport, Setting
from tqp.measuring.verify import FLOAT_TOLERANCE, SUM_TOLERANCE, difference


@dataclass(frozen=True, slots=True)
class Engine:
    """How queries are run, as on the command line. `threads=None` is every core this process may use.

    `columns`: what is measured, of `CHOICES`. `profile`: where to write a trace of one more run of each query, after those
    that are timed.
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
    columns: Sequence[str] = ("same",)

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
        if FIRST_RUNS in self.columns and not self.compare:
            raise UsageError(f"--columns: {FIRST_RUNS} runs both engines; give --compare duckdb too")
        if "pandas" in self.columns and importlib.util.find_spec("pandas") is None:
            raise UsageError(f"--columns: pandas needs pandas: {INSTALL_HINT}")

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


@dataclass(frozen=True, slots=True)
class _Measured:
    """What was measured of a query, and its answers with what each is the answer to. There are none of a query that failed."""

    report: QueryReport
    answers: Sequence[tuple[Variant, pa.Table]] = ()


def measure(
    engine: Engine,
    tables: Mapping[str, Path],
    queries: Sequence[Query],
    console: Console,
    others: Mapping[int, Sequence[Query]] | None = None,
) -> tuple[list[QueryReport], Setting]:
    """Runs `queries` over `tables` (Parquet or Arrow IPC files by name); progress goes to `console`.

    `others`: by query number, the query with other constants, for the column "new". Raises `UsageError` where they cannot be
    run as asked. A query that fails, or answers wrongly, is part of its report.
    """
    engine.check()
    if others is None or "new" not in engine.columns:
        others = {}
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
                    columns=[name for name in COLUMNS if name in engine.columns] if engine.compare else (),
                    others=others,
                    with_answers=engine.verify,
                )
        measured = _run_tqp(engine, tables, queries, others, console)
        # Read before new connections read everything once more, and before the answers are compared.
        setting = setting_of(engine, peak_memory(), duckdb_run)
        for column in ONCE:
            if column in engine.columns:
                _run_once(engine, column, tables, queries, measured, console)
        reports = [
            _compared([query, *others.get(query.number, ())], measured[query.number], duckdb_run)
            for query in queries
        ]
    return reports, setting


@contextmanager
def _progress(console: Console, queries: Sequence[Query]) -> Iterator[Iterator[Query]]:
    """The queries one by one, with a line that says which."""
    # Drawn between queries only: a display that refreshes by itself would take part in what is measured.
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as progress:
        task = progress.add_task("Running tqp", total=len(queries))

        def shown() -> Iterator[Query]:
            for query in queries:
                progress.update(task, description=f"Running {query.label}", refresh=True)
                yield query
                progress.advance(task)

        yield shown()


def _run_tqp(
    engine: Engine,
    tables: Mapping[str, Path],
    queries: Sequence[Query],
    others: Mapping[int, Sequence[Query]],
    console: Console,
) -> dict[int, _Measured]:
    """By query number, what was measured over one connection."""
    with engine.connect() as connection, _progress(console, queries) as shown:
        _register(connection, {name: str(path) for name, path in tables.items()})
        warm_runs = engine.runs if "same" in engine.columns else 0
        measured = {
            query.number: _run(connection, query, warm_runs, others.get(query.number, ())) for query in shown
        }
        if engine.profile is not None:
            right = [query for query in queries if measured[query.number].answers]
            _trace(connection, right, engine.profile, console)
    return measured


def _run_once(
    engine: Engine,
    column: str,
    tables: Mapping[str, Path],
    queries: Sequence[Query],
    measured: dict[int, _Measured],
    console: Console,
) -> None:
    """Adds the time of registering the tables and running a query, the first of a connection, for each query; those that failed before are left out."""
    right = [query for query in queries if measured[query.number].answers]
    sources = {name: read_source(column, str(path)) for name, path in tables.items()}
    variant = column if column in OTHER_TYPES else 0
    with _progress(console, right) as shown:
        for query in shown:
            before = measured[query.number]
            times = []
            try:
                for _ in range(CONNECTIONS):
                    unknown = {name: _unknown(source) for name, source in sources.items()}
                    with engine.connect() as connection:
                        start = time.perf_counter()
                        _register(connection, unknown)
                        answer = _send(connection, query)
                        times.append((time.perf_counter() - start) * 1000)
            except tqp.Error as error:
                measured[query.number] = _Measured(_failed(before.report, error))
                continue
            report = replace(before.report, times={**before.report.times, column: {"tqp": times}})
            measured[query.number] = _Measured(report, [*before.answers, (variant, answer)])


def _unknown(source: Any) -> Any:
    """The source as one that tqp has not seen: what it made of an Arrow table is kept for as long as that object lives."""
    return source.select(source.column_names) if isinstance(source, pa.Table) else source


def _register(connection: tqp.Connection, sources: Mapping[str, Any]) -> None:
    for name, source in sources.items():
        connection.register(name, source)


def _send(connection: tqp.Connection, query: Query) -> pa.Table:
    return connection.sql(query.text).to_arrow()


def _trace(connection: tqp.Connection, queries: Sequence[Query], path: Path, console: Console) -> None:
    """Runs each query once more, with a trace, and prints what its operators took."""
    with connection.trace() as trace:
        for query in queries:
            with torch.profiler.record_function(f"query: {query.label}"):
                _send(connection, query)
    trace.write(path)
    console.print(str(trace), markup=False, highlight=False, soft_wrap=True)


def _run(connection: tqp.Connection, query: Query, warm_runs: int, others: Sequence[Query]) -> _Measured:
    """The first run, which plans the query and reads the columns it is first to touch, the warm ones, and other constants."""
    report = QueryReport(number=query.number, label=query.label)
    try:
        answer, times = timed_runs(partial(_send, connection, query), warm_runs)
        found = [timed_runs(partial(_send, connection, other), 0) for other in others]
    except tqp.Error as error:
        return _Measured(_failed(report, error))
    # Compiled as a query that was not seen before: the same text, a little longer each time.
    longer = (query.text + "\n" * number for number in range(1, 4))
    _, planning = timed_runs(lambda: connection.compile(next(longer)), 2)
    columns = {"same": times[1:], "new": [milliseconds for _, (milliseconds,) in found]}
    measured = replace(
        report,
        rows=answer.num_rows,
        first_milliseconds=times[0],
        planning_milliseconds=statistics.median(planning),
        times={name: {"tqp": times} for name, times in columns.items() if times},
    )
    return _Measured(measured, [(0, answer), *((place, other) for place, (other, _) in enumerate(found, 1))])


def _failed(report: QueryReport, error: tqp.Error) -> QueryReport:
    refused = isinstance(error, tqp.UnsupportedError)
    problem = error.message.splitlines()[0] if refused else f"{type(error).__name__}: {error}"
    return replace(report, rows=None, is_equal=False, problem=problem, refused=refused)


def _compared(texts: Sequence[Query], measured: _Measured, duckdb_run: DuckDBRun | None) -> QueryReport:
    """With DuckDB's times, and with what is wrong with the first wrong answer; `texts` by number of the set of constants."""
    report = measured.report
    if duckdb_run is None:
        return report
    query = texts[0]
    times = {name: dict(engines) for name, engines in report.times.items()}
    for name, found in duckdb_run.milliseconds.items():
        if query.number in found:
            times.setdefault(name, {})["duckdb"] = found[query.number]
    report = replace(report, times=times)
    if query.number in duckdb_run.errors:
        error = f"DuckDB: {duckdb_run.errors[query.number]}"
        return replace(report, rows=None, is_equal=False, problem=report.problem or error)
    if not duckdb_run.has_answers:
        return report
    for variant, answer in measured.answers:
        expected = duckdb_run.answer(query.number, variant)
        tolerance = SUM_TOLERANCE if variant in OTHER_TYPES else FLOAT_TOLERANCE
        problem = difference(answer, expected, query.order_by, query.limit, tolerance)
        if problem is not None:
            if isinstance(variant, str):
                problem += f"; once from {variant}"
            elif variant > 0:
                problem += f"; with other constants:\n{texts[variant].text}"
            return replace(report, is_equal=False, problem=problem)
    return replace(report, is_equal=True if measured.answers else report.is_equal)


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
