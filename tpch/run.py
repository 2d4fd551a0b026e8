"""Runs the TPC-H benchmark: its data, its queries, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from tqp.tpch.data import TABLES, check_directory, ensure_data, table_path
from tqp.tpch.first_run import measure_first_runs
from tqp.tpch.measure import Engine, measure
from tqp.tpch.query import QUERY_NUMBERS, load_query
from tqp.tpch.report import BenchmarkReport


@dataclass(frozen=True, slots=True)
class Options:
    """What to run, as on the command line. `data=None` is generated data; `first_runs`: compare those too."""

    scale_factor: float = 1
    queries: Sequence[int] = QUERY_NUMBERS
    data: Path | None = None
    engine: Engine = field(default_factory=Engine)
    first_runs: bool = True


def run_benchmark(options: Options, console: Console) -> BenchmarkReport:
    """Runs the benchmark and returns what was measured; progress goes to `console`.

    Raises `UsageError` where it cannot be run as asked. A query that fails, or answers wrongly, is part of the report.
    """
    options.engine.check()
    queries = [load_query(number, options.scale_factor) for number in options.queries]
    if options.data is None:
        data = ensure_data(options.scale_factor, console)
    else:
        data = check_directory(options.data)
    tables = {table: table_path(data, table) for table in TABLES}
    reports, setting = measure(options.engine, tables, queries, console)
    first_runs = None
    if options.engine.compare and options.first_runs and all(report.rows is not None for report in reports):
        with console.status("Running everything once, from Arrow tables"):
            engine = options.engine
            first_runs = measure_first_runs(tables, queries, engine.num_threads, engine.connect_options())
    return BenchmarkReport(
        title=f"TPC-H, scale factor {options.scale_factor:g}",
        heading="query",
        queries=reports,
        setting=setting,
        first_runs=first_runs,
        facts={"scale_factor": options.scale_factor, "data": str(data)},
    )
