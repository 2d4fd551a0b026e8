"""What the first run of each query costs, from Arrow tables in memory: tqp and DuckDB, each in a fresh process.

For tqp that is registering the tables, and then, query by query, statistics, encoding, planning, lowering and execution;
for DuckDB, which works on tables of its own, CREATE TABLE AS from the same Arrow tables and then each query. Reading the
files into Arrow and starting Python are not counted. The process for tqp is this module run as a script.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tqp
from tqp.measuring.compare import ask
from tqp.measuring.duckdb_process import __file__ as duckdb_script
from tqp.measuring.duckdb_process import read_arrow
from tqp.measuring.query import Query
from tqp.measuring.report import FirstRuns

_REMEDY = "take less data, or leave first-runs out of --columns: the tables are in memory twice for it"


def measure_first_runs(
    tables: Mapping[str, Path], queries: Sequence[Query], threads: int, settings: Mapping[str, Any]
) -> FirstRuns:
    """Runs `queries` in order over `tables`, once in each engine; `settings` are for `tqp.connect`.

    Raises `UsageError` if a query fails.
    """
    request = {
        "task": "first run",
        "tables": {name: str(path) for name, path in tables.items()},
        "queries": [query.text for query in queries],
        "threads": threads,
        "settings": settings,
    }
    duckdb = ask("DuckDB", [duckdb_script], request, remedy=_REMEDY)
    ours = ask("tqp", ["-m", "tqp.measuring.first_run"], request, remedy=_REMEDY)
    return FirstRuns(
        milliseconds=ours["milliseconds"],
        duckdb_create_milliseconds=duckdb["create_milliseconds"],
        duckdb_query_milliseconds=duckdb["query_milliseconds"],
    )


def _serve(request: dict[str, Any]) -> dict[str, Any]:
    tables = {name: read_arrow(path) for name, path in request["tables"].items()}
    start = time.perf_counter()
    with tqp.connect(threads=request["threads"], **request["settings"]) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        for text in request["queries"]:
            connection.sql(text).to_arrow()
        return {"milliseconds": (time.perf_counter() - start) * 1000}


if __name__ == "__main__":
    json.dump(_serve(json.load(sys.stdin)), sys.stdout)
