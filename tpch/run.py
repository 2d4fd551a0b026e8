"""Runs the TPC-H benchmark: its data, its queries, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tqp.measuring.measure import Engine
from tqp.measuring.report import BenchmarkReport
from tqp.measuring.run import run_queries
from tqp.tpch.constants import sets_of_constants
from tqp.tpch.data import DATA
from tqp.tpch.query import QUERY_NUMBERS, load_query


def run_benchmark(
    engine: Engine,
    console: Console,
    scale_factor: float = 1,
    numbers: Sequence[int] = QUERY_NUMBERS,
    data: Path | None = None,
    shuffled: bool = False,
) -> BenchmarkReport:
    """Runs the benchmark and returns what was measured; progress goes to `console`.

    `numbers`: of queries; `data`: None for generated data; `shuffled`: with rows in random order. Raises `UsageError` where it
    cannot be run as asked. A query that fails, or answers wrongly, is part of the report.
    """
    engine.check()
    queries = [load_query(number, scale_factor) for number in numbers]
    others = {query.number: sets_of_constants(query, engine.runs) for query in queries}
    return run_queries(engine, console, DATA, queries, scale_factor, data, shuffled, others)
