"""Benchmarks of cases: every case runs and agrees with DuckDB, and the data of operators is what the names of the cases say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from rich.console import Console

from tqp.bench import analysis_cases, operator_cases, operator_data
from tqp.bench.case import Suites
from tqp.bench.run import run_cases
from tqp.cli import main
from tqp.measuring.measure import Engine


@pytest.mark.parametrize("suites", [operator_cases.SUITES, analysis_cases.SUITES])
def test_all_cases(suites: Suites) -> None:
    report = run_cases("Cases", suites, Engine(threads=2, runs=1), Console(quiet=True), rows=3000)
    assert [(query.label, query.problem) for query in report.queries if not query.is_equal] == []
    cases = [case for _, suite in suites for case in suite]
    assert [query.label for query in report.queries] == [case.name for case in cases]
    assert len({case.name for case in cases}) == len(cases)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = tmp_path / "report.json"
    arguments = ["bench", "operators", "--rows", "1000", "--runs", "1", "--threads", "1"]
    assert main([*arguments, "--only", "LIKE:", "--compare", "duckdb", "--json", str(document)]) == 0
    output = capsys.readouterr().out
    assert "like: infix" in output and "lowest" in output
    report = json.loads(document.read_text())
    assert report["rows"] == 1000 and {query["rows"] for query in report["queries"]} == {500}
    same = report["columns"]["same"]
    assert same["duckdb_geometric_mean_ratio"] >= same["duckdb_lowest_ratio"] > 0
    assert main([*arguments, "--only", "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


def test_keys_have_the_partners_they_should_have() -> None:
    tables = operator_data.join_tables(10_000)
    facts, dims = tables["facts"], tables["dims"]
    for key in ("id", "code", "name"):
        assert len(dims[key].unique()) == 2000
        assert pc.all(pc.is_in(facts[key], dims[key].combine_chunks())).as_py()
        share = pc.mean(pc.is_in(facts[f"some_{key}"], dims[key].combine_chunks())).as_py()
        assert share == pytest.approx(0.7, abs=0.03)
    assert len(tables["twins"]["serial"].unique()) == len(facts["serial"].unique()) == 10_000
    counts = np.sort(np.unique(facts["skewed_id"].to_numpy(), return_counts=True)[1])[::-1]
    assert counts[0] > 5 * counts[10] and counts.min() >= 1


def test_data_is_the_same_every_time() -> None:
    for make_tables, _ in (*operator_cases.SUITES, *analysis_cases.SUITES):
        assert make_tables(100) == make_tables(100)
        assert make_tables(1)


@pytest.mark.slow
def test_predictions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = tmp_path / "report.json"
    arguments = ["bench", "predict", "--rows", "5000", "--runs", "1", "--threads", "2", "--only", "Logistic"]
    assert main([*arguments, "--compare", "duckdb,pandas", "--json", str(document)]) == 0
    assert "logistic pipeline" in capsys.readouterr().out
    report = json.loads(document.read_text())
    (case,) = report["queries"]
    assert case["problem"] is None and case["is_equal"]
    assert case["columns"]["same"]["duckdb_ratio"] > 0 and case["columns"]["same"]["pandas_ratio"] > 0
    assert 0 <= report["largest_differences"]["churn_logistic"] < 1e-5
    assert main(["bench", "predict", "--only", "no such model"]) == 2
    assert "no case" in capsys.readouterr().err
