"""The process that runs a peer of `tqp bench predict`: DuckDB with an Arrow function, or pandas, and the original models.

`python -m tqp.bench.predict_peers`: a JSON request on standard input, a JSON reply on standard output, answers as Arrow files.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tqp.bench.predict_cases import CASES, Case, in_pandas, tables, train
from tqp.measuring.duckdb_process import prepared, timed_runs, write_arrow

#: A peer's way to run a case: called once for each run.
Run = Callable[[], pa.Table]


def main() -> None:
    """Answers the request on standard input."""
    request = json.load(sys.stdin)
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    milliseconds = {}
    made = tables(request["rows"])
    for name in request["cases"]:
        case = next(case for case in CASES if case.name == name)
        run = _PEERS[request["peer"]](case, made, request["threads"])
        answer, times = timed_runs(run, request["runs"])
        milliseconds[name] = times[1:]
        write_arrow(answer, request["answers"][name])
    json.dump(milliseconds, sys.stdout)


def _with_pandas(case: Case, made: dict[str, pa.Table], threads: int) -> Run:
    """Data frames that are there when the clock starts."""
    model = train(case, threads)
    frames = {name: table.to_pandas() for name, table in made.items()}
    return lambda: in_pandas(case, model, frames)


def _with_duckdb(case: Case, made: dict[str, pa.Table], threads: int) -> Run:
    """DuckDB's own tables, and the original model as an Arrow function, called with vectors of up to 2,048 rows."""
    import duckdb
    import pandas as pd
    from duckdb.func import PythonUDFType

    # One thread inside: starting several for 2,048 rows takes longer than they save, and DuckDB brings its own.
    model = train(case, 1)

    def score(*columns: pa.ChunkedArray) -> pa.Array:
        frame = pd.DataFrame(
            {name: column.to_pandas() for name, column in zip(case.features, columns, strict=True)}
        )
        return pa.array(model.predict_proba(frame)[:, 1])

    connection = duckdb.connect(config={"threads": threads})
    for name, table in made.items():
        connection.register(f"{name}_arrow", table)
        connection.execute(f"CREATE TABLE {name} AS FROM {name}_arrow")
    # Without types it takes any number of arguments, of the types that they have.
    connection.create_function(case.model, score, None, "DOUBLE", type=PythonUDFType.ARROW)
    return prepared(connection, case.sql)


_PEERS: dict[str, Callable[[Case, dict[str, Any], int], Run]] = {
    "duckdb": _with_duckdb,
    "pandas": _with_pandas,
}


if __name__ == "__main__":
    main()
