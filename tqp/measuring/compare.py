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
from tqp.measuring.columns import CONNECTIONS, ONCE, OTHER_TYPES
from tqp.measuring.errors import INSTALL_HINT, UsageError
from tqp.measuring.query import Query

#: Which answer to a query: 0, to its own constants; else the number of a set of others, or a column with types of its own.
Variant = int | str


@dataclass(frozen=True, slots=True)
class DuckDBRun:
    """What DuckDB said: the milliseconds of every run by column and query number, and what was wrong by query number.

    `peak_bytes` is the peak memory of its process with its tables and the timed runs.
    """

    version: str
    milliseconds: dict[str, dict[int, list[float]]]
    peak_bytes: int
    errors: dict[int, str]
    answers: Path
    has_answers: bool

    def answer(self, number: int, variant: Variant = 0) -> pa.Table:
        """Query `number`'s answer; where LIMIT cuts through a tie, with all rows of that tie."""
        return duckdb_process.read_arrow(str(_answer_path(self.answers, number, variant)))


def run_duckdb(
    tables: Mapping[str, Path],
    queries: Sequence[Query],
    answers: Path,
    *,
    threads: int,
    runs: int = 1,
    columns: Sequence[str] = (),
    others: Mapping[int, Sequence[Query]] | None = None,
    with_answers: bool = True,
) -> DuckDBRun:
    """Runs `queries` on `tables` (Parquet or Arrow IPC files by name), writing answers into the folder `answers`.

    `columns`: what is timed, of `COLUMNS`. `others`: by query number, the query with other constants. For the columns "same"
    and "new" the tables are first loaded into DuckDB's own in-memory tables.
    """
    require_duckdb("Checking answers and comparing times", ", or give --no-verify")
    asked = []
    for query in queries:
        texts = [query, *(others or {}).get(query.number, ())]
        variants: list[tuple[Variant, Query]] = [*enumerate(texts)]
        variants += [(name, query) for name in columns if name in OTHER_TYPES]
        asked.append(
            {
                "number": query.number,
                "text": query.text,
                "others": [other.text for other in texts[1:]],
                "order_by": query.order_by,
                "limit": query.limit,
                "answers": [
                    {
                        "text": text.text_without_limit,
                        "path": str(_answer_path(answers, query.number, variant)),
                        "column": variant if isinstance(variant, str) else None,
                    }
                    for variant, text in (variants if with_answers else ())
                ],
            }
        )
    request = {
        "task": "measure",
        "tables": {name: str(path) for name, path in tables.items()},
        "threads": threads,
        "runs": runs,
        "connections": CONNECTIONS,
        "columns": list(columns),
        "once": [name for name in ONCE if name in columns],
        "queries": asked,
    }
    reply = ask("DuckDB", [duckdb_process.__file__], request)
    milliseconds = {
        column: {int(number): times for number, times in found.items()}
        for column, found in reply["milliseconds"].items()
    }
    errors = {int(number): error for number, error in reply["errors"].items()}
    return DuckDBRun(reply["version"], milliseconds, reply["peak_bytes"], errors, answers, with_answers)


def shuffle(files: Mapping[Path, Path], directory: Path, seed: int) -> None:
    """Writes the rows of Parquet files (the keys) in another order, the same for the same `seed`, into `directory`."""
    require_duckdb("Shuffling tables")
    request = {
        "task": "shuffle",
        "files": [[str(source), str(target)] for source, target in files.items()],
        "directory": str(directory),
        "seed": seed,
    }
    ask("DuckDB", [duckdb_process.__file__], request)


def require_duckdb(purpose: str, otherwise: str = "") -> None:
    """Raises `UsageError` where DuckDB is not installed."""
    if importlib.util.find_spec("duckdb") is None:
        raise UsageError(f"{purpose} needs DuckDB: {INSTALL_HINT}{otherwise}")


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


def _answer_path(directory: Path, number: int, variant: Variant) -> Path:
    return directory / f"q{number:02}-{variant}.arrow"
