"""Runs a benchmark whose queries and files are known: what every benchmark over Parquet files does alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from tqp.measuring.first_run import measure_first_runs
from tqp.measuring.measure import Engine, measure
from tqp.measuring.query import Query
from tqp.measuring.report import BenchmarkReport


def run_queries(
    engine: Engine,
    console: Console,
    tables: Mapping[str, Path],
    queries: Sequence[Query],
    *,
    title: str,
    facts: Mapping[str, Any],
    others: Mapping[int, Sequence[Query]] | None = None,
) -> BenchmarkReport:
    """What was measured of `queries` over `tables` (Parquet files by name) in the columns that `engine` names.

    `others`: by query number, the query with other constants; `facts`: what else the JSON should say. Raises `UsageError` where
    they cannot be run as asked. A query that fails, or answers wrongly, is part of the report.
    """
    reports, setting = measure(engine, tables, queries, console, others)
    first_runs = None
    failed = {report.number for report in reports if report.rows is None}
    right = [query for query in queries if query.number not in failed]
    if "arrow" in engine.columns and right:
        with console.status("Running everything once, from Arrow tables"):
            first_runs = measure_first_runs(tables, right, engine.num_threads, engine.connect_options())
    return BenchmarkReport(
        title=title,
        heading="query",
        queries=reports,
        setting=setting,
        first_runs=first_runs,
        facts=dict(facts),
    )
