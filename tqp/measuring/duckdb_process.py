"""The process that runs DuckDB: a JSON request on standard input, a JSON reply on standard output, answers as Arrow files.

`tqp.measuring.compare` starts it as a script. It imports neither tqp nor torch, so that its memory is DuckDB's and Python's.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

Outcome = TypeVar("Outcome")


def main() -> None:
    """Answers the request on standard input."""
    request = json.load(sys.stdin)
    json.dump(_first_run(request) if request.get("first_run") else _serve(request), sys.stdout)


def peak_memory() -> int:
    """The most memory this process has held, in bytes, with Python and everything it has imported."""
    # Linux lets a process inherit the peak of the one that started it in ru_maxrss; VmHWM is this process's own.
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def read_arrow(path: str) -> pa.Table:
    """A Parquet or Arrow IPC file as a table, in memory but for what the operating system maps."""
    if path.endswith(".parquet"):
        return pq.read_table(path)
    with pa.memory_map(path) as file:
        return pa.ipc.open_file(file).read_all()


def write_arrow(table: pa.Table, path: str) -> None:
    """Writes an Arrow IPC file."""
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def key_positions(names: Sequence[str], order_by: Sequence[str]) -> list[int]:
    """Where the leading keys of ORDER BY (see `Query.order_by`) stand among the columns of an answer.

    >>> key_positions(["a", "b", "c", "C"], ["B", "1", "c", "a"])
    [1, 0]
    """
    positions = []
    lower = [name.lower() for name in names]
    for key in order_by:
        if key.isdecimal():
            positions.append(int(key) - 1)
        elif lower.count(key.lower()) == 1:
            positions.append(lower.index(key.lower()))
        else:
            break
    return positions


def timed_runs(run: Callable[[], Outcome], warm: int) -> tuple[Outcome, list[float]]:
    """What the last of 1 + `warm` calls returns, and the milliseconds of each."""
    times = []
    for _ in range(1 + warm):
        start = time.perf_counter()
        outcome = run()
        times.append((time.perf_counter() - start) * 1000)
    return outcome, times


def _first_run(request: dict[str, Any]) -> dict[str, Any]:
    """DuckDB's own tables made of Arrow tables, and each query once."""
    import duckdb

    connection = duckdb.connect(config={"threads": request["threads"]})
    for name, path in request["tables"].items():
        connection.register(f"{name}_arrow", read_arrow(path))
    start = time.perf_counter()
    for name in request["tables"]:
        connection.execute(f"CREATE TABLE {name} AS FROM {name}_arrow")
    create = (time.perf_counter() - start) * 1000
    queries = sum(_milliseconds(connection, text)[0] for text in request["queries"])
    return {"create_milliseconds": create, "query_milliseconds": queries}


def _serve(request: dict[str, Any]) -> dict[str, Any]:
    import duckdb

    connection = duckdb.connect(config={"threads": request["threads"]})
    runs: int = request["runs"]
    for name, path in request["tables"].items():
        _make_table(connection, name, path, in_memory=runs > 0)
    milliseconds = {}
    for query in request["queries"] if runs else ():
        milliseconds[query["number"]] = statistics.median(_milliseconds(connection, query["text"], runs)[1:])
    # Read before answers are written: those are without LIMIT, and larger than what is measured.
    peak_bytes = peak_memory()
    for query in request["queries"]:
        if query["answer"]:
            everything = connection.sql(query["text_without_limit"]).to_arrow_table()
            answer = _cut_after_tie(everything, query["order_by"], query["limit"])
            write_arrow(answer, query["answer"])
    return {"version": duckdb.__version__, "milliseconds": milliseconds, "peak_bytes": peak_bytes}


def _make_table(connection: Any, name: str, path: str, in_memory: bool) -> None:
    """Loading pays off for times only; a check reads the files in place, which needs less memory."""
    if path.endswith(".parquet"):
        source = "read_parquet('{}')".format(path.replace("'", "''"))
    else:
        source = f"{name}_arrow"
        connection.register(source, read_arrow(path))
    connection.execute(f"CREATE {'TABLE' if in_memory else 'VIEW'} {name} AS FROM {source}")


def _milliseconds(connection: Any, text: str, warm: int = 0) -> list[float]:
    # By 10 to 20 % faster for answers of a few rows than `sql(text)`, which describes the result first.
    return timed_runs(lambda: connection.execute(text).to_arrow_table(), warm)[1]


def _cut_after_tie(table: pa.Table, order_by: Sequence[str], limit: int | None) -> pa.Table:
    """The first `limit` rows and those after them that tie with the last by the keys that are columns of the answer."""
    if limit is None or table.num_rows <= limit:
        return table
    positions = key_positions(table.schema.names, order_by)
    if not positions:
        return table
    keys = table.select(positions)
    last = keys.slice(limit - 1, 1).to_pylist()
    stop = limit
    while stop < table.num_rows and keys.slice(stop, 1).to_pylist() == last:
        stop += 1
    return table.slice(0, stop)


if __name__ == "__main__":
    main()
