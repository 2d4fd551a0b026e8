"""All 22 TPC-H queries against DuckDB, whatever the settings; and the harness around them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import tqp
from tests.conftest import TPCH_SCALE_FACTOR
from tests.settings import switchable_rules
from tqp.measuring import data
from tqp.measuring.columns import CHOICES, COLUMNS, CONNECTIONS, ONCE
from tqp.measuring.compare import DuckDBRun, ask
from tqp.measuring.errors import UsageError
from tqp.measuring.measure import Engine
from tqp.measuring.report import BenchmarkReport, FirstRuns, QueryReport, Setting
from tqp.measuring.verify import difference
from tqp.tpch.constants import sets_of_constants
from tqp.tpch.data import DATA, TABLES
from tqp.tpch.query import QUERY_NUMBERS, load_query, parse_numbers
from tqp.tpch.run import run_benchmark

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "1 thread": {"threads": 1},
    "2 threads": {"threads": 2},
    "4 threads": {"threads": 4},
    "small batches": {"batch_rows": 1000},
    "small batches, 4 threads": {"batch_rows": 1000, "threads": 4},
    "torch": {"backend": "torch"},
    "torch, small batches": {"backend": "torch", "batch_rows": 1000},
    **{f"without {rule}": {"disabled_rules": (rule,)} for rule in switchable_rules()},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_answers(setting: str, tpch_data: Path, tpch_answers: DuckDBRun) -> None:
    problems = {}
    with tqp.connect(**SETTINGS[setting]) as connection:
        for table, path in DATA.paths(tpch_data).items():
            connection.register(table, str(path))
        for number in QUERY_NUMBERS:
            query = load_query(number, TPCH_SCALE_FACTOR)
            try:
                answer = connection.sql(query.text).to_arrow()
            except tqp.Error as error:
                problems[number] = str(error)
                continue
            problem = difference(answer, tpch_answers.answer(number), query.order_by, query.limit)
            if problem is not None:
                problems[number] = problem
    assert not problems


@pytest.mark.parametrize("threads", [1, 2])
def test_every_query_can_be_measured_operator_by_operator(threads: int, tpch_data: Path) -> None:
    """Which runs each call of its program by itself, as torch.fx."""
    with tqp.connect(threads=threads) as connection:
        for table, path in DATA.paths(tpch_data).items():
            connection.register(table, str(path))
        for number in QUERY_NUMBERS:
            assert " ms" in connection.explain(load_query(number, TPCH_SCALE_FACTOR).text, analyze=True)


_PROGRAMS = """
import sys
from pathlib import Path
import tqp
from tqp.tpch import query
from tqp.tpch.data import DATA
with tqp.connect(threads=1) as connection:
    for table, path in DATA.paths(Path(sys.argv[1])).items():
        connection.register(table, str(path))
    for number in query.QUERY_NUMBERS:
        text = query.load_query(number, float(sys.argv[2])).text
        print(number, connection.explain(text), connection.compile(text).code)
"""


def test_plans_and_programs_do_not_depend_on_hashes(tpch_data: Path) -> None:
    """Of strings they differ from process to process, of other objects with where in memory these are."""
    command = [sys.executable, "-c", _PROGRAMS, str(tpch_data), str(TPCH_SCALE_FACTOR)]
    processes = [
        subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE)
        for seed in ("1", "2")
    ]
    first, second = (process.communicate()[0] for process in processes)
    assert first == second and [process.returncode for process in processes] == [0, 0]


def test_answers_are_bit_identical_for_any_number_of_threads(tpch_data: Path) -> None:
    answers = []
    for threads in (1, 2, 4):
        with tqp.connect(threads=threads, batch_rows=5000) as connection:
            for table, path in DATA.paths(tpch_data).items():
                connection.register(table, str(path))
            answers.append([connection.sql(load_query(number).text).to_arrow() for number in QUERY_NUMBERS])
    assert answers[0] == answers[1] == answers[2]


def test_every_query_file_is_read() -> None:
    queries = [load_query(number) for number in QUERY_NUMBERS]
    assert all(query.text.startswith(("SELECT", "WITH")) for query in queries)
    assert [query.number for query in queries if query.limit] == [2, 3, 10, 18, 21]
    assert [query.number for query in queries if not query.order_by] == [6, 14, 17, 19]
    assert "LIMIT" not in load_query(21).text_without_limit


def test_sets_of_constants_are_others_each_time_and_the_same_for_everybody() -> None:
    for number in QUERY_NUMBERS:
        query = load_query(number)
        texts = [other.text for other in sets_of_constants(query, 5)]
        assert len({query.text, *texts}) == 6 if number != 18 else 5
        assert texts == [other.text for other in sets_of_constants(query, 5)]


def test_query_11_depends_on_the_scale_factor() -> None:
    assert "* 0.0001\n" in load_query(11, 1).text
    assert "* 0.00001\n" in load_query(11, 10).text
    assert "* 0.01\n" in load_query(11, 0.01).text


@pytest.mark.parametrize(
    ("text", "message"), [("0", "no query 0"), ("1,x", '"x"'), ("3-1", "backwards"), ("", "neither")]
)
def test_query_numbers_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_numbers(text)


def _table(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


def test_difference_accepts_what_sql_leaves_open() -> None:
    expected = _table(k=[1, 1, 2], x=[0.1, 0.2, 0.3], s=["a", "b", "c"])
    swapped = _table(k=[1, 1, 2], x=[0.2, 0.1 + 1e-17, 0.3], s=["b", "a", "c"])
    assert difference(swapped, expected, ["k"]) is None
    assert difference(swapped, expected, ["k", "s"]) is not None
    large = swapped.set_column(2, "s", swapped["s"].cast(pa.large_string()))
    assert difference(large, expected, ["k"]) is None


def test_difference_lets_a_limit_cut_through_a_tie_anywhere() -> None:
    expected = _table(k=[1, 2, 2], s=["a", "b", "c"])
    assert difference(_table(k=[1, 2], s=["a", "c"]), expected, ["k"], limit=2) is None
    assert difference(_table(k=[1, 2], s=["a", "d"]), expected, ["k"], limit=2) is not None
    assert difference(_table(k=[2, 2], s=["b", "c"]), expected, ["k"], limit=2) is not None


@pytest.mark.parametrize(
    "actual",
    [
        _table(k=[1, 2], d=[Decimal("0.10"), Decimal("0.21")]),
        _table(k=[1, 2, 2], d=[Decimal("0.10"), Decimal("0.20"), Decimal("0.20")]),
        _table(k=[1, None], d=[Decimal("0.10"), Decimal("0.20")]),
        _table(k=[1, 2], e=[Decimal("0.10"), Decimal("0.20")]),
        _table(k=[1.0, 2.0], d=[Decimal("0.10"), Decimal("0.20")]),
    ],
)
def test_difference_finds_differences(actual: pa.Table) -> None:
    assert difference(actual, _table(k=[1, 2], d=[Decimal("0.10"), Decimal("0.20")])) is not None


def test_generated_data_is_complete_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TQP_CACHE", str(tmp_path))
    console = Console(quiet=True)
    directory = DATA.ensure(0.001, console)
    assert directory == tmp_path / "tpch" / "sf0.001"
    assert [path.name for path in directory.parent.iterdir()] == ["sf0.001"]
    monkeypatch.setattr(data, "_generate", None)
    assert DATA.ensure(0.001, console) == directory
    (directory / "orders.parquet").unlink()
    with pytest.raises(UsageError, match="lacks orders.parquet"):
        DATA.ensure(0.001, console)


def test_progress_bears_that_a_file_is_renamed_while_it_is_counted(tmp_path: Path) -> None:
    (tmp_path / "orders.parquet").write_bytes(b"1234")
    # Listed, but not there any more: what a file looks like that is renamed between the two.
    (tmp_path / "lineitem.parquet.inprogress").symlink_to(tmp_path / "lineitem.parquet")
    assert data._bytes_in(tmp_path) == 4


def test_failed_generation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TQP_CACHE", str(tmp_path))
    monkeypatch.setattr(data, "_generator", lambda: "/bin/false")
    with pytest.raises(UsageError, match="could not generate"):
        DATA.ensure(0.001, Console(quiet=True))
    assert list((tmp_path / "tpch").iterdir()) == []


def test_shuffled_tables_have_the_same_rows_and_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TQP_CACHE", str(tmp_path))
    console = Console(quiet=True)
    directory = DATA.ensure(0.001, console, shuffled=True)
    assert sorted(path.name for path in directory.parent.iterdir()) == ["sf0.001", "sf0.001-shuffled"]
    assert {path.stem for path in directory.iterdir()} == set(TABLES)
    ordered, shuffled = (
        pq.read_table(DATA.paths(each)["lineitem"]) for each in (DATA.ensure(0.001, console), directory)
    )
    assert shuffled["l_orderkey"] != ordered["l_orderkey"]
    assert difference(shuffled, ordered) is None
    monkeypatch.setattr(data, "shuffle", None)
    assert DATA.ensure(0.001, console, shuffled=True) == directory
    report = run_benchmark(Engine(threads=1, runs=1), console, 0.001, [1, 3], shuffled=True)
    assert report.all_right and "random order" in report.title and report.facts["data"] == str(directory)
    with pytest.raises(UsageError, match="takes no --data"):
        DATA.find(directory, 0.001, console, shuffled=True)


@pytest.mark.parametrize("scale_factor", [0, -1, float("nan"), float("inf")])
def test_scale_factors_that_make_no_sense(scale_factor: float) -> None:
    with pytest.raises(UsageError, match="scale factor"):
        DATA.ensure(scale_factor, Console(quiet=True))


@pytest.mark.slow
def test_benchmark_report(tpch_data: Path) -> None:
    engine = Engine(threads=1, runs=2, compare=True, columns=CHOICES)
    report = run_benchmark(engine, Console(quiet=True), 0.01, [1, 6], tpch_data)
    assert report.all_right and [query.number for query in report.queries] == [1, 6]
    document = json.loads(report.to_json())
    assert document["queries"][0]["rows"] == 4
    assert document["peak_bytes"] > 0 and document["duckdb_peak_bytes"] > 0 and document["versions"]["duckdb"]
    assert document["planning_max_milliseconds"] >= document["planning_median_milliseconds"] > 0
    assert set(document["first_runs"]) == {
        "milliseconds",
        "duckdb_create_milliseconds",
        "duckdb_query_milliseconds",
    }
    assert min(document["first_runs"].values()) > 0
    assert list(document["columns"]) == list(COLUMNS)
    for column in document["columns"].values():
        assert column["tqp_total_milliseconds"] > 0 and column["duckdb_total_milliseconds"] > 0
        assert column["duckdb_geometric_mean_ratio"] >= column["duckdb_lowest_ratio"] > 0
    runs = {
        name: {engine: len(each) for engine, each in times.items()}
        for name, times in report.queries[0].times.items()
    }
    assert runs == {
        name: dict.fromkeys(("tqp", "duckdb"), number)
        for name, number in (("same", 2), ("new", 2), *((name, CONNECTIONS) for name in ONCE))
    }


def test_a_process_that_the_system_ends_is_named_with_a_remedy() -> None:
    end = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(UsageError, match="DuckDB was ended by SIGKILL, .* memory runs out; take less data"):
        ask("DuckDB", ["-c", end], {})


def test_report_of_a_run_with_a_wrong_answer_and_a_failure() -> None:
    setting = Setting(
        device="cpu",
        threads=2,
        runs=5,
        batch_rows=1000,
        disabled_rules=["topk"],
        fuse="on",
        backend="torch",
        peak_bytes=2**30,
        device_peak_bytes=None,
        duckdb_peak_bytes=2**31,
        processor="a processor",
        versions={"tqp": "0"},
    )
    first: dict[str, Any] = {"rows": 4, "first_milliseconds": 2.0}
    wrong: dict[str, Any] = {"is_equal": False, "problem": "row 1 is wrong"}
    failed: dict[str, Any] = {"is_equal": False, "problem": "BindError: no"}
    report = BenchmarkReport(
        title="Benchmark",
        heading="query",
        queries=[
            QueryReport(
                number=1,
                label="1",
                times={"same": {"tqp": [1, 3, 1], "duckdb": [2.0]}},
                is_equal=True,
                **first,
            ),
            QueryReport(
                number=2, label="2", times={"same": {"tqp": [1.0], "duckdb": [0.5]}}, **wrong, **first
            ),
            QueryReport(number=3, label="3", times={"same": {"duckdb": [1.0]}}, **failed),
        ],
        setting=setting,
        facts={"scale_factor": 1},
        first_runs=FirstRuns(
            milliseconds=1000.0, duckdb_create_milliseconds=2000.0, duckdb_query_milliseconds=500.0
        ),
    )
    assert not report.all_right
    assert report.geometric_mean_ratio() == pytest.approx(1.0)
    lowest = report.lowest()
    assert lowest is not None and lowest.number == 2
    console = Console(record=True, width=200, quiet=True)
    console.quiet = False
    with console.capture() as capture:
        report.print(console)
    text = capture.get()
    for part in (
        "DIFFERS",
        "FAILED",
        "row 1 is wrong",
        "1.00 GiB",
        "2.00 GiB",
        "lowest: query 2\n",
        "without topk",
        "fuse: on",
        "backend: torch",
        "batches of 1,000 rows",
    ):
        assert part in text
