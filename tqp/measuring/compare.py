"""DuckDB's answers and times, computed in a process of their own so that they disturb neither tqp's memory nor its times."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tqp.measuring import duckdb_process
from tqp.measuring.data import INSTALL_HINT
from tqp.measuring.errors import UsageError
from tqp.measuring.query import Query


@dataclass(frozen=True, slots=True)
class DuckDBRun:
    """What DuckDB said. `milliseconds` is the warm median per query number, empty unless it was asked for.

    `peak_bytes` is the peak memory of its process with its tables and the timed runs.
    """

    version: str
    milliseconds: dict[int, float]
    peak_bytes: int
    answers: Path

    def answer(self, number: int) -> pa.Table:
        """Query `number`'s answer; where LIMIT cuts through a tie, with all rows of that tie."""
        return duckdb_process.read_arrow(str(_answer_path(self.answers, number)))


def run_duckdb(
    tables: Mapping[str, Path],
    queries: Sequence[Query],
    answers: Path,
    *,
    threads: int,
    runs: int,
    with_answers: bool,
    with_times: bool,
) -> DuckDBRun:
    """Runs `queries` on `tables` (Parquet or Arrow IPC files by name), writing answers into the folder `answers`.

    For times, the tables are first loaded into DuckDB's own in-memory tables, and each query runs once unmeasured.
    """
    if importlib.util.find_spec("duckdb") is None:
        raise UsageError(
            f"Checking answers and comparing times needs DuckDB: {INSTALL_HINT}, or give --no-verify"
        )
    request = {
        "tables": {name: str(path) for name, path in tables.items()},
        "threads": threads,
        "runs": runs if with_times else 0,
        "queries": [
            {
                "number": query.number,
                "text": query.text,
                "text_without_limit": query.text_without_limit,
                "order_by": query.order_by,
                "limit": query.limit,
                "answer": str(_answer_path(answers, query.number)) if with_answers else None,
            }
            for query in queries
        ],
    }
    reply = ask("DuckDB", [duckdb_process.__file__], request)
    milliseconds = {int(number): value for number, value in reply["milliseconds"].items()}
    return DuckDBRun(reply["version"], milliseconds, reply["peak_bytes"], answers)


def ask(
    engine: str,
    script: Sequence[str],
    request: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    remedy: str = "take less data",
) -> dict[str, Any]:
    """The JSON that a fresh Python process running `script` replies with. Raises `UsageError` if it fails.

    `environment`: variables that it has besides those of this process. `remedy`: what to do where memory runs out.
    """
    process = subprocess.run(
        # -P: the folder of the script holds modules that are not meant to be found by their bare names.
        [sys.executable, "-P", *script],
        check=False,
        input=json.dumps(request),
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {}), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    if process.returncode < 0:
        ended_by = signal.Signals(-process.returncode).name
        raise UsageError(f"{engine} was ended by {ended_by}, as happens where memory runs out; {remedy}")
    if process.returncode != 0:
        raise UsageError(f"{engine} could not run the queries:\n{process.stderr.strip()}")
    reply: dict[str, Any] = json.loads(process.stdout)
    return reply


def _answer_path(directory: Path, number: int) -> Path:
    return directory / f"q{number:02}.arrow"
