"""Runs a benchmark whose queries and files are known: what every benchmark over Parquet files does alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from tqp.measuring.columns import FIRST_RUNS
from tqp.measuring.data import DataSet
from tqp.measuring.first_run import measure_first_runs
from tqp.measuring.measure import Engine, measure
from tqp.measuring.query import Query
from tqp.measuring.report import BenchmarkReport


def run_queries(
    engine: Engine,
    console: Console,
    data_set: DataSet,
    queries: Sequence[Query],
    scale_factor: float,
    data: Path | None,
    shuffled: bool,
    others: Mapping[int, Sequence[Query]] | None = None,
) -> BenchmarkReport:
    """What was measured of `queries` over the tables of `data_set`, in the columns that `engine` names.

    `data`: the folder that the tables are in, None for generated ones; `shuffled`: with rows in random order. `others`: by query
    number, the query with other constants. Raises `UsageError` where they cannot be run as asked. A query that fails, or answers
    wrongly, is part of the report.
    """
    engine.check()
    directory = data_set.find(data, scale_factor, console, shuffled)
    tables = data_set.paths(directory)
    reports, setting = measure(engine, tables, queries, console, others)
    first_runs = None
    failed = {report.number for report in reports if report.rows is None}
    right = [query for query in queries if query.number not in failed]
    if FIRST_RUNS in engine.columns and right:
        with console.status("Running everything once, from Arrow tables"):
            first_runs = measure_first_runs(tables, right, engine.num_threads, engine.connect_options())
    return BenchmarkReport(
        title=f"{data_set.title}, scale factor {scale_factor:g}{', rows in random order' * shuffled}",
        heading="query",
        queries=reports,
        setting=setting,
        first_runs=first_runs,
        facts={"scale_factor": scale_factor, "data": str(directory), "shuffled": shuffled},
    )
