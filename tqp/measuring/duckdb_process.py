"""The process that runs DuckDB: a JSON request on standard input, a JSON reply on standard output, answers as Arrow files.

`tqp.measuring.compare` starts it as a script. It imports neither tqp nor torch, so that its memory is DuckDB's and Python's.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

Outcome = TypeVar("Outcome")

#: Of prepared statements, which need names.
_numbers = itertools.count()


def main() -> None:
    """Answers the request on standard input."""
    request = json.load(sys.stdin)
    json.dump(_TASKS[request["task"]](request), sys.stdout)


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


def read_source(kind: str, path: str) -> Any:
    """What a table is registered as to be queried once: "parquet" the path itself, "arrow" a table, "pandas" a data frame.

    A data frame has decimals as doubles and dates as timestamps. An Arrow IPC file is a table instead of a path.
    """
    if kind == "parquet" and path.endswith(".parquet"):
        return path
    table = read_arrow(path)
    if kind != "pandas":
        return table
    types = [
        pa.field(field.name, pa.float64()) if pa.types.is_decimal(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(types)).to_pandas(date_as_object=False)


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


def prepared(connection: Any, text: str) -> Callable[[], pa.Table]:
    """Executes the query as a prepared statement, which is planned now and not again."""
    name = f"prepared_{next(_numbers)}"
    connection.execute(f"PREPARE {name} AS {text}")
    return lambda: _answer(connection, f"EXECUTE {name}")


def _answer(connection: Any, text: str) -> pa.Table:
    # By 10 to 20 % faster for answers of a few rows than `sql(text)`, which describes the result first.
    return connection.execute(text).to_arrow_table()


def _milliseconds(connection: Any, text: str) -> float:
    (time,) = timed_runs(lambda: _answer(connection, text), 0)[1]
    return time


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
    queries = sum(_milliseconds(connection, text) for text in request["queries"])
    return {"create_milliseconds": create, "query_milliseconds": queries}


def _shuffle(request: dict[str, Any]) -> dict[str, Any]:
    """Parquet files written with their rows in an order that has nothing to do with the values."""
    import duckdb

    # Tables that do not fit into memory are sorted in the folder that they are written to.
    connection = duckdb.connect(config={"temp_directory": f"{request['directory']}/sorting"})
    for source, target in request["files"]:
        connection.execute(
            "COPY (SELECT * EXCLUDE (file_row_number) FROM read_parquet(?, file_row_number = true) "
            f"ORDER BY hash(file_row_number, {int(request['seed'])}), file_row_number) TO {_quoted(target)} (FORMAT parquet)",
            [source],
        )
    return {}


def _serve(request: dict[str, Any]) -> dict[str, Any]:
    """Times of each column by query, answers, and what DuckDB says of queries that it cannot run."""
    import duckdb

    columns, runs = request["columns"], request["runs"]
    milliseconds: dict[str, dict[int, list[float]]] = {column: {} for column in columns}
    errors: dict[int, str] = {}

    def attempt(
        query: dict[str, Any], column: str | None, run: Callable[..., Any], *arguments: object
    ) -> None:
        """Runs it if the column is wanted, and the query has not failed before."""
        number = query["number"]
        if number in errors or (column is not None and column not in columns):
            return
        try:
            outcome = run(*arguments)
        except duckdb.Error as error:
            errors[number] = str(error)
            return
        if column is not None:
            milliseconds[column][number] = outcome

    with duckdb.connect(config={"threads": request["threads"]}) as connection:
        # Loading pays off for times only; a check reads the files in place, which needs less memory.
        in_memory = "same" in columns or "new" in columns
        for name, path in request["tables"].items():
            _make_table(connection, name, read_source("parquet", path), in_memory)
        for query in request["queries"]:
            attempt(query, "same", _same_text, connection, query["text"], runs)
            attempt(query, "new", _new_texts, connection, query["others"])
        # Read before answers are written: those are without LIMIT, and larger than what is measured.
        peak_bytes = peak_memory()
        for query in request["queries"]:
            attempt(query, None, _write_answers, connection, query)
    for column in request["once"]:
        sources = {name: read_source(column, path) for name, path in request["tables"].items()}
        for query in request["queries"]:
            attempt(query, column, _from_new_connections, request, sources, query, column)
    return {
        "version": duckdb.__version__,
        "milliseconds": milliseconds,
        "peak_bytes": peak_bytes,
        "errors": errors,
    }


def _same_text(connection: Any, text: str, runs: int) -> list[float]:
    return timed_runs(prepared(connection, text), runs)[1][1:]


def _new_texts(connection: Any, texts: Sequence[str]) -> list[float]:
    return [_milliseconds(connection, text) for text in texts]


def _write_answers(connection: Any, query: dict[str, Any], column: str | None = None) -> None:
    """The answers over the tables of `column`, None: those that most columns have."""
    for answer in query["answers"]:
        if answer["column"] != column:
            continue
        everything = connection.sql(answer["text"]).to_arrow_table()
        write_arrow(_cut_after_tie(everything, query["order_by"], query["limit"]), answer["path"])


def _from_new_connections(
    request: dict[str, Any], sources: dict[str, Any], query: dict[str, Any], column: str
) -> list[float]:
    """The time of registering tables and the first query of a connection, for each connection; writes its answers over them."""
    import duckdb

    times = []
    for _ in range(request["connections"]):
        with duckdb.connect(config={"threads": request["threads"]}) as connection:
            start = time.perf_counter()
            for name, source in sources.items():
                _make_table(connection, name, source, in_memory=False)
            _answer(connection, query["text"])
            times.append((time.perf_counter() - start) * 1000)
            if len(times) == request["connections"]:
                _write_answers(connection, query, column)
    return times


def _make_table(connection: Any, name: str, given: Any, in_memory: bool) -> None:
    """A table, or a view, over the path of a Parquet file or what `read_source` returns."""
    if isinstance(given, str):
        source = f"read_parquet({_quoted(given)})"
    else:
        source = f"{name}_given"
        connection.register(source, given)
    connection.execute(f"CREATE {'TABLE' if in_memory else 'VIEW'} {name} AS FROM {source}")


def _quoted(path: str) -> str:
    return "'{}'".format(path.replace("'", "''"))


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


_TASKS = {"measure": _serve, "first run": _first_run, "shuffle": _shuffle}

if __name__ == "__main__":
    main()
