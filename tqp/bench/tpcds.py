"""Runs the TPC-DS benchmark: its tables are generated, its queries are files that the user has."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tqp.measuring.data import DataSet
from tqp.measuring.errors import UsageError
from tqp.measuring.measure import Engine
from tqp.measuring.query import Query, statements
from tqp.measuring.report import BenchmarkReport
from tqp.measuring.run import run_queries

DATA = DataSet(
    "tpcds",
    "TPC-DS",
    tuple(
        "call_center catalog_page catalog_returns catalog_sales customer customer_address customer_demographics date_dim "
        "household_demographics income_band inventory item promotion reason ship_mode store store_returns store_sales "
        "time_dim warehouse web_page web_returns web_sales web_site".split()
    ),
)


def load_queries(directory: Path, only: str = "") -> list[Query]:
    """The statements of the files `*.sql` in `directory` with `only` in their names, by name.

    A query is called as its file is; where that has several statements, with their numbers: `q14.1`, `q14.2`.
    """
    if not directory.is_dir():
        raise UsageError(f"--queries: {directory} is not a folder")
    queries: list[Query] = []
    for path in sorted(directory.glob("*.sql")):
        if only.lower() not in path.stem.lower():
            continue
        try:
            texts = statements(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--queries: {path} cannot be read as text: {error}") from error
        for number, text in enumerate(texts, 1):
            label = path.stem if len(texts) == 1 else f"{path.stem}.{number}"
            queries.append(Query(len(queries) + 1, label, text))
    if not queries:
        wanted = f' with "{only}" in its name (--only)' if only else ""
        raise UsageError(f"--queries: {directory} has no file *.sql{wanted} with a query in it")
    return queries


def run_tpcds(
    engine: Engine,
    console: Console,
    directory: Path,
    only: str = "",
    scale_factor: float = 1,
    data: Path | None = None,
    shuffled: bool = False,
) -> BenchmarkReport:
    """Runs the queries of `load_queries` and returns what was measured; progress goes to `console`.

    `data`: None for generated data; `shuffled`: with rows in random order. Raises `UsageError` where it cannot be run as asked.
    A query that fails, or answers wrongly, is part of the report.
    """
    queries = load_queries(directory, only)
    return run_queries(engine, console, DATA, queries, scale_factor, data, shuffled)
