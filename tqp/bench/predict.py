"""Runs the prediction benchmark: queries that score rows with trained models, against DuckDB with a function and pandas."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

import tqp
from tqp.bench.predict_cases import CASES, Case, tables, train
from tqp.measuring.columns import PEERS
from tqp.measuring.compare import ask
from tqp.measuring.duckdb_process import peak_memory, read_arrow, timed_runs
from tqp.measuring.errors import UsageError
from tqp.measuring.measure import Engine, setting_of
from tqp.measuring.report import BenchmarkReport, QueryReport

#: Averages of probabilities may differ by so much.
_TOLERANCE = 1e-5


def run_predictions(
    engine: Engine, console: Console, rows: int = 1_000_000, only: str = "", compare: Sequence[str] = ()
) -> BenchmarkReport:
    """Runs the cases with `only` in their names on so many rows and returns what was measured; progress goes to `console`.

    `compare`: of `PEERS`. Raises `UsageError` where it cannot be run as asked.
    """
    engine.check()
    for library in ("sklearn", "lightgbm", "pandas", *(peer for peer in compare if peer == "duckdb")):
        if importlib.util.find_spec(library) is None:
            raise UsageError(f"this benchmark needs {library}: pip install 'tensor-query-processor[test]'")
    cases = [case for case in CASES if only.lower() in case.name.lower()]
    if not cases:
        raise UsageError(f'--only: no case has "{only}" in its name')
    with tempfile.TemporaryDirectory(prefix="tqp-predict-") as directory, engine.connect() as connection:
        peers = {}
        for peer in compare:
            with console.status(f"Running {PEERS[peer]}"):
                peers[peer] = _run_peer(peer, cases, rows, engine, Path(directory))
        for name, table in tables(rows).items():
            connection.register(name, table)
        reports = []
        for number, case in enumerate(cases, 1):
            with console.status(f"Running {case.name}"):
                reports.append(_run_case(connection, number, case, engine, peers, Path(directory)))
        proofs = {model.name: model.proof.difference for model in connection.models() if model.proof}
    return BenchmarkReport(
        title=f"Predictions, {rows:,} rows; models are registered, and the peers' trained, before the clock starts",
        heading="case",
        queries=reports,
        setting=setting_of(engine, peak_memory()),
        facts={"rows": rows, "largest_differences": proofs},
    )


def _run_peer(
    peer: str, cases: Sequence[Case], rows: int, engine: Engine, directory: Path
) -> dict[str, list[float]]:
    """Warm times by case; answers are left in the folder."""
    threads = engine.num_threads
    request = {
        "peer": peer,
        "rows": rows,
        "threads": threads,
        "runs": engine.runs,
        "cases": [case.name for case in cases],
        "answers": {case.name: str(_answer(directory, peer, case)) for case in cases},
    }
    # DuckDB calls the model with 2,048 rows at a time from its own threads: more threads inside would only be in their way.
    inside = 1 if peer == "duckdb" else threads
    limits = {name: str(inside) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    return ask(PEERS[peer], ["-m", "tqp.bench.predict_peers"], request, limits)


def _run_case(
    connection: tqp.Connection,
    number: int,
    case: Case,
    engine: Engine,
    peers: Mapping[str, Mapping[str, Sequence[float]]],
    directory: Path,
) -> QueryReport:
    connection.register_model(case.model, train(case, engine.num_threads), output="proba")
    answer, times = timed_runs(lambda: connection.sql(case.sql).to_arrow(), engine.runs)
    problems = [_difference(answer, _answer(directory, peer, case), peer) for peer in peers]
    problem = next((problem for problem in problems if problem is not None), None)
    return QueryReport(
        number=number,
        label=case.name,
        rows=sum(answer.column("n").to_pylist()),
        first_milliseconds=times[0],
        times={"same": {"tqp": times[1:], **{peer: found[case.name] for peer, found in peers.items()}}},
        is_equal=problem is None if peers else None,
        problem=problem,
    )


def _answer(directory: Path, peer: str, case: Case) -> Path:
    return directory / f"{peer}-{case.model}.arrow"


def _difference(answer: pa.Table, expected: Path, peer: str) -> str | None:
    """What is wrong with the answer, held against a peer's."""
    ours: dict[str, list[Any]] = answer.to_pydict()
    theirs: dict[str, list[Any]] = read_arrow(str(expected)).to_pydict()
    if ours["name"] != theirs["name"] or ours["n"] != theirs["n"]:
        return f"other groups or counts than {PEERS[peer]}"
    largest = max(abs(a - b) for a, b in zip(ours["p"], theirs["p"], strict=True))
    return None if largest <= _TOLERANCE else f"differs from {PEERS[peer]} by {largest:.2g}"
