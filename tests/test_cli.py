"""The `tqp` command, called as a function: output, errors, exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tqp.cli import main
from tqp.measuring import compare, data


@pytest.fixture
def people(tmp_path: Path) -> str:
    table = pa.table(
        {"id": [1, 2, 3], "name": ["Ann", None, 'quo"te, [b]'], "pay": pa.array([1.5, None, -0.25])}
    )
    pq.write_table(table, tmp_path / "people.parquet")
    return f"people={tmp_path / 'people.parquet'}"


def test_sql_draws_a_table(people: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "SELECT * FROM people ORDER BY id", "--table", people]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["id", "name", "pay"]
    assert lines[4].split() == ["2", "NULL", "NULL"]
    assert "[b]" in lines[5] and lines[-1] == "3 rows"


def test_sql_as_csv(people: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT name, pay, CASE WHEN id = 1 THEN '' END AS e FROM people ORDER BY id"
    assert main(["sql", query, "--table", people, "--format", "csv"]) == 0
    assert capsys.readouterr().out == 'name,pay,e\nAnn,1.5,""\n,,\n"quo""te, [b]",-0.25,\n'


def test_sql_as_json(people: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT id, name, pay, 1.10 AS d, id > 1 AS b, DATE '2020-02-29' AS day FROM people ORDER BY id"
    assert main(["sql", query, "--table", people, "--format", "json", "--threads", "1"]) == 0
    output = capsys.readouterr().out
    assert '"d": 1.10' in output
    rows = json.loads(output)
    assert rows[0] == {"id": 1, "name": "Ann", "pay": 1.5, "d": 1.1, "b": False, "day": "2020-02-29"}
    assert rows[1]["name"] is None and rows[2]["name"] == 'quo"te, [b]'


def test_sql_of_arrays_as_csv(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "SELECT [0.1, 2]::FLOAT[2] AS a", "--format", "csv"]) == 0
    assert capsys.readouterr().out == 'a\n"[0.1, 2.0]"\n'


def test_sql_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "SELECT 1 AS a WHERE false", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["sql", "SELECT 1 AS a WHERE false", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "a\n"


def test_sql_as_arrow(people: str) -> None:
    command = [sys.executable, "-m", "tqp.cli", "sql", "-", "--table", people, "--format", "arrow"]
    root = Path(__file__).parent.parent
    query = b"SELECT id + 1 AS next FROM people ORDER BY id"
    process = subprocess.run(
        command, input=query, capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(root)}
    )
    assert pa.ipc.open_stream(process.stdout).read_all()["next"].to_pylist() == [2, 3, 4]


def test_explain(people: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "SELECT sum(pay) FROM people", "--table", people]) == 0
    assert "people" in capsys.readouterr().out
    assert main(["explain", "SELECT sum(pay) FROM people", "--table", people, "--analyze"]) == 0
    assert "ms" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sql", "SELECT nam FROM people"], 'did you mean "name"'),
        (["sql", "SELEC 1"], "ParseError"),
        (["sql", "SELECT 1", "--device", "nonsense"], "nonsense"),
        (["sql", "SELECT 1", "--disable-rule", "nonsense"], "nonsense"),
        (["explain", "SELECT * FROM nowhere"], "nowhere"),
        (["sql", "SELECT 1", "--table", "t=/no/such/file.parquet"], "/no/such/file.parquet"),
    ],
)
def test_errors_of_the_query(
    arguments: list[str], message: str, people: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--table", people]) == 1
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == "" and "Traceback" not in captured.err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["sql"],
        ["sql", "SELECT 1", "--table", "people"],
        ["sql", "SELECT 1", "--format", "xml"],
        ["sql", "SELECT 1", "--threads", "0"],
        ["tpch", "--sf", "big"],
        ["tpch", "--compare", "sqlite"],
        ["tpch", "--columns", "same,first"],
    ],
)
def test_command_lines_that_argparse_refuses(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sf", "-1"], "positive"),
        (["--queries", "23"], "no query 23"),
        (["--data", "/no/such/folder"], "not a folder"),
        (["--json", "/no/such/folder/x.json"], "not a folder"),
        (["--data", "/", "--shuffled"], "takes no --data"),
    ],
)
def test_benchmarks_that_make_no_sense(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tpch", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_benchmark(tpch_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = tmp_path / "report.json"
    arguments = ["tpch", "--sf", "0.01", "--data", str(tpch_data), "--queries", "1,6", "--runs", "1"]
    assert main([*arguments, "--compare", "duckdb", "--threads", "1", "--json", str(document)]) == 0
    output = capsys.readouterr().out
    assert output.count("equal") == 2 and "peak memory" in output
    assert "planning and lowering: median" in output and "first runs from Arrow tables" in output
    assert json.loads(document.read_text())["all_right"] is True
    assert main([*arguments, "--compare", "duckdb", "--columns", "new, parquet"]) == 0
    output = capsys.readouterr().out
    assert (
        "new constants: " in output
        and "once from Parquet: " in output
        and max(map(len, output.splitlines()[:-9])) <= 100
    )
    assert main([*arguments, "--compare", "duckdb", "--columns", "arrow,pandas"]) == 0
    once = capsys.readouterr().out
    assert "once from Arrow: " in once and "once from pandas: " in once and once.count("equal") == 2
    assert "same text" not in output and "first runs from Arrow tables" not in output
    assert main([*arguments, "--columns", "first-runs"]) == 2
    assert "--compare duckdb" in capsys.readouterr().err
    assert main([*arguments, "--no-verify", "--batch-rows", "1000"]) == 0
    assert "not checked" in capsys.readouterr().out
    assert main([*arguments, "--disable-rule", "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


def test_benchmark_with_wrong_answers(
    tpch_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = pa.table({"revenue": [1]})
    monkeypatch.setattr(compare.DuckDBRun, "answer", lambda self, number, constants=0: wrong)
    assert main(["tpch", "--data", str(tpch_data), "--queries", "6", "--runs", "1"]) == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_benchmark_without_the_extra(
    tpch_data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compare.importlib.util, "find_spec", lambda name: None)
    assert main(["tpch", "--data", str(tpch_data), "--queries", "6"]) == 2
    assert "pip install 'tensor-query-processor[tpch]'" in capsys.readouterr().err
    monkeypatch.setenv("TQP_CACHE", str(tmp_path))
    monkeypatch.setattr(data.shutil, "which", lambda name, path=None: None)
    assert main(["tpch", "--queries", "6", "--sf", "0.5"]) == 2
    assert "pip install 'tensor-query-processor[tpch]'" in capsys.readouterr().err
