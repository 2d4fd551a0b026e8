"""Runs the TPC-H benchmark: its data, its queries, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tqp.measuring.first_run import measure_first_runs
from tqp.measuring.measure import Engine, measure
from tqp.measuring.report import BenchmarkReport
from tqp.tpch.data import DATA
from tqp.tpch.query import QUERY_NUMBERS, load_query


def run_benchmark(
    engine: Engine,
    console: Console,
    scale_factor: float = 1,
    numbers: Sequence[int] = QUERY_NUMBERS,
    data: Path | None = None,
    first_runs: bool = True,
) -> BenchmarkReport:
    """Runs the benchmark and returns what was measured; progress goes to `console`.

    `numbers`: of queries; `data`: None for generated data; `first_runs`: compare those too. Raises `UsageError` where it
    cannot be run as asked. A query that fails, or answers wrongly, is part of the report.
    """
    engine.check()
    queries = [load_query(number, scale_factor) for number in numbers]
    data = DATA.ensure(scale_factor, console) if data is None else DATA.check(data)
    tables = DATA.paths(data)
    reports, setting = measure(engine, tables, queries, console)
    first = None
    if engine.compare and first_runs and all(report.rows is not None for report in reports):
        with console.status("Running everything once, from Arrow tables"):
            first = measure_first_runs(tables, queries, engine.num_threads, engine.connect_options())
    return BenchmarkReport(
        title=f"TPC-H, scale factor {scale_factor:g}",
        heading="query",
        queries=reports,
        setting=setting,
        first_runs=first,
        facts={"scale_factor": scale_factor, "data": str(data)},
    )
