"""Runs the prediction benchmark: queries that score rows with trained models, against DuckDB with a function and pandas."""

from __future__ import annotations

import importlib.util
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import tqp
from tqp.bench.predict_cases import CASES, Case, tables, train
from tqp.tpch.compare import ask
from tqp.tpch.duckdb_process import read_arrow, timed_runs
from tqp.tpch.errors import UsageError
from tqp.tpch.measure import Engine

PEERS = ("duckdb", "pandas")
_PEER_NAMES = {"duckdb": "DuckDB + function", "pandas": "pandas"}
#: Averages of probabilities may differ by so much.
_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Options:
    """What to run, as on the command line. `only`: cases whose name contains this text; `compare`: of `PEERS`."""

    rows: int = 1_000_000
    only: str = ""
    compare: Sequence[str] = ()
    engine: Engine = field(default_factory=Engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReport:
    """One case. Times in milliseconds; `peers` holds the warm medians of those that were compared."""

    name: str
    rows: int
    first_milliseconds: float
    median_milliseconds: float
    largest_difference: float  # of the converted model from the original, at registration
    peers: Mapping[str, float]
    problem: str | None = None

    def ratio(self, peer: str) -> float | None:
        """How many times as fast as the peer tqp is."""
        return self.peers[peer] / self.median_milliseconds if peer in self.peers else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictReport:
    """A whole run."""

    rows: int
    threads: int
    device: str
    runs: int
    cases: list[CaseReport]

    @property
    def all_right(self) -> bool:
        """Every answer that was compared agrees."""
        return all(case.problem is None for case in self.cases)

    def print(self, console: Console) -> None:
        peers = [peer for peer in PEERS if any(peer in case.peers for case in self.cases)]
        table = Table(title=f"Predictions, {self.rows:,} rows", title_justify="left")
        table.add_column("case")
        for heading in ("rows scored", "first ms", "warm ms"):
            table.add_column(heading, justify="right")
        for peer in peers:
            table.add_column(f"{_PEER_NAMES[peer]} ms", justify="right")
            table.add_column("ratio", justify="right")
        table.add_column("answer")
        for case in self.cases:
            cells = [
                case.name,
                f"{case.rows:,}",
                f"{case.first_milliseconds:,.1f}",
                f"{case.median_milliseconds:,.1f}",
            ]
            for peer in peers:
                cells += [f"{case.peers[peer]:,.1f}", f"{case.ratio(peer):.2f}"]
            answer = "equal" if peers else "not checked"
            table.add_row(*cells, answer if case.problem is None else f"[red]{case.problem}[/red]")
        console.print(table)
        console.print(
            f"warm: median of {self.runs} runs after the first, everything in memory; threads: {self.threads}, "
            f"device: {self.device}; models are registered, and the peers' trained, before the clock starts"
        )

    def to_json(self) -> str:
        """All of it, ratios too."""
        content = asdict(self)
        for case, report in zip(content["cases"], self.cases, strict=True):
            case["ratios"] = {peer: report.ratio(peer) for peer in report.peers}
        return json.dumps(content, indent=2)


def run_predictions(options: Options, console: Console) -> PredictReport:
    """Runs the benchmark and returns what was measured; progress goes to `console`.

    Raises `UsageError` where it cannot be run as asked.
    """
    options.engine.check()
    for library in ("sklearn", "lightgbm", "pandas", *(peer for peer in options.compare if peer == "duckdb")):
        if importlib.util.find_spec(library) is None:
            raise UsageError(f"this benchmark needs {library}: pip install 'tensor-query-processor[test]'")
    cases = [case for case in CASES if options.only.lower() in case.name.lower()]
    if not cases:
        raise UsageError(f'--only: no case has "{options.only}" in its name')
    with tempfile.TemporaryDirectory(prefix="tqp-predict-") as directory:
        peers = {}
        for peer in options.compare:
            with console.status(f"Running {_PEER_NAMES[peer]}"):
                peers[peer] = _run_peer(peer, cases, options, Path(directory))
        made = tables(options.rows)
        with options.engine.connect() as connection:
            for name, table in made.items():
                connection.register(name, table)
            reports = []
            for case in cases:
                with console.status(f"Running {case.name}"):
                    reports.append(_run_case(connection, case, options, peers, Path(directory)))
    return PredictReport(
        rows=options.rows,
        threads=options.engine.num_threads,
        device=options.engine.device,
        runs=options.engine.runs,
        cases=reports,
    )


def _run_peer(peer: str, cases: Sequence[Case], options: Options, directory: Path) -> dict[str, float]:
    """Warm medians by case; answers are left in the folder."""
    threads = options.engine.num_threads
    request = {
        "peer": peer,
        "rows": options.rows,
        "threads": threads,
        "runs": options.engine.runs,
        "cases": [case.name for case in cases],
        "answers": {case.name: str(_answer(directory, peer, case)) for case in cases},
    }
    # DuckDB calls the model with 2,048 rows at a time from its own threads: more threads inside would only be in their way.
    inside = 1 if peer == "duckdb" else threads
    limits = {name: str(inside) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    return ask(_PEER_NAMES[peer], ["-m", "tqp.bench.predict_peers"], request, limits)


def _run_case(
    connection: tqp.Connection,
    case: Case,
    options: Options,
    peers: Mapping[str, Mapping[str, float]],
    directory: Path,
) -> CaseReport:
    connection.register_model(case.model, train(case, options.engine.num_threads), output="proba")
    answer, times = timed_runs(lambda: connection.sql(case.sql).to_arrow(), options.engine.runs)
    model = connection.lookup_model(case.model)
    proof = model.proof if model is not None else None
    problems = [_difference(answer, _answer(directory, peer, case), peer) for peer in peers]
    return CaseReport(
        name=case.name,
        rows=sum(answer.column("n").to_pylist()),
        first_milliseconds=times[0],
        median_milliseconds=statistics.median(times[1:]),
        largest_difference=proof.difference if proof is not None else 0.0,
        peers={peer: found[case.name] for peer, found in peers.items()},
        problem=next((problem for problem in problems if problem is not None), None),
    )


def _answer(directory: Path, peer: str, case: Case) -> Path:
    return directory / f"{peer}-{case.model}.arrow"


def _difference(answer: pa.Table, expected: Path, peer: str) -> str | None:
    """What is wrong with the answer, held against a peer's."""
    ours: dict[str, list[Any]] = answer.to_pydict()
    theirs: dict[str, list[Any]] = read_arrow(str(expected)).to_pydict()
    if ours["name"] != theirs["name"] or ours["n"] != theirs["n"]:
        return f"other groups or counts than {_PEER_NAMES[peer]}"
    largest = max(abs(a - b) for a, b in zip(ours["p"], theirs["p"], strict=True))
    return None if largest <= _TOLERANCE else f"differs from {_PEER_NAMES[peer]} by {largest:.2g}"
