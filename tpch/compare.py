"""DuckDB's answers and times, computed in a process of their own so that they disturb neither tqp's memory nor its times.

`run_duckdb` starts the process, which is this module run as a script: a JSON request on standard input, a JSON reply on
standard output, answers as Arrow IPC files in between.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tqp.tpch.data import INSTALL_HINT, TABLES, table_path
from tqp.tpch.errors import UsageError
from tqp.tpch.query import Query


@dataclass(frozen=True, slots=True)
class DuckDBRun:
    """What DuckDB said. `milliseconds` is the warm median per query number, empty unless it was asked for."""

    version: str
    milliseconds: dict[int, float]
    answers: Path

    def answer(self, number: int) -> pa.Table:
        """Query `number`'s answer; where LIMIT cuts through a tie, with all rows of that tie."""
        with pa.memory_map(str(_answer_path(self.answers, number))) as file:
            return pa.ipc.open_file(file).read_all()


def run_duckdb(
    data: Path,
    queries: Sequence[Query],
    answers: Path,
    *,
    threads: int,
    runs: int,
    with_answers: bool,
    with_times: bool,
) -> DuckDBRun:
    """Runs `queries` on the Parquet files in `data`, writing answers into the folder `answers`.

    For times, the tables are first loaded into DuckDB's own in-memory tables, and each query runs once unmeasured.
    """
    if importlib.util.find_spec("duckdb") is None:
        raise UsageError(
            f"Checking answers and comparing times needs DuckDB: {INSTALL_HINT}, or give --no-verify"
        )
    request = {
        "data": str(data),
        "answers": str(answers) if with_answers else None,
        "threads": threads,
        "runs": runs if with_times else 0,
        "queries": [
            [query.number, query.text, query.text_without_limit, query.order_by, query.limit]
            for query in queries
        ],
    }
    process = subprocess.run(
        [sys.executable, "-m", "tqp.tpch.compare"],
        check=False,
        input=json.dumps(request),
        capture_output=True,
        text=True,
    )
    if process.returncode != 0:
        raise UsageError(f"DuckDB could not run the queries:\n{process.stderr.strip()}")
    reply = json.loads(process.stdout)
    milliseconds = {int(number): value for number, value in reply["milliseconds"].items()}
    return DuckDBRun(version=reply["version"], milliseconds=milliseconds, answers=answers)


def _serve(request: dict[str, Any]) -> dict[str, Any]:
    import duckdb

    connection = duckdb.connect(config={"threads": request["threads"]})
    # Loading pays off for times only; a check reads the files in place, which needs less memory.
    kind = "TABLE" if request["runs"] else "VIEW"
    for table in TABLES:
        path = str(table_path(Path(request["data"]), table)).replace("'", "''")
        connection.execute(f"CREATE {kind} {table} AS FROM read_parquet('{path}')")
    milliseconds = {}
    for number, text, text_without_limit, order_by, limit in request["queries"]:
        if request["answers"]:
            everything = connection.sql(text_without_limit).to_arrow_table()
            answer = _cut_after_tie(everything, order_by, limit)
            path = str(_answer_path(Path(request["answers"]), number))
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, answer.schema) as writer:
                writer.write_table(answer)
        if request["runs"]:
            times = [_milliseconds(connection, text) for _ in range(request["runs"] + 1)]
            milliseconds[number] = statistics.median(times[1:])
    return {"version": duckdb.__version__, "milliseconds": milliseconds}


def _milliseconds(connection: Any, text: str) -> float:
    start = time.perf_counter()
    # By 10 to 20 % faster for answers of a few rows than `sql(text)`, which describes the result first.
    connection.execute(text).to_arrow_table()
    return (time.perf_counter() - start) * 1000


def _cut_after_tie(table: pa.Table, order_by: Sequence[str], limit: int | None) -> pa.Table:
    """The first `limit` rows and those after them that tie with the last."""
    if limit is None or table.num_rows <= limit:
        return table
    keys = table.select(list(order_by))
    last = keys.slice(limit - 1, 1).to_pylist()
    stop = limit
    while stop < table.num_rows and keys.slice(stop, 1).to_pylist() == last:
        stop += 1
    return table.slice(0, stop)


def _answer_path(directory: Path, number: int) -> Path:
    return directory / f"q{number:02}.arrow"


if __name__ == "__main__":
    json.dump(_serve(json.load(sys.stdin)), sys.stdout)
