"""TPC-DS: queries from a folder, over generated tables; what tqp refuses is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from tqp.bench.tpcds import DATA, load_queries
from tqp.cli import main
from tqp.measuring.errors import UsageError

#: By name of the file. In the first, more stores than LIMIT takes tie by the keys of ORDER BY that are put out.
ANSWERED = {
    "q1": "SELECT i_class AS class, d_year, sum(ss_net_paid) AS paid FROM store_sales, date_dim, item "
    "WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk GROUP BY i_class, d_year, i_brand "
    "ORDER BY d_year, lower(i_brand), paid\nLIMIT 100;\n",
    "q2": "-- two statements\nSELECT count(*) AS n FROM web_sales;\nSELECT count(*) AS n FROM web_returns;\n",
}
REFUSED = {
    "q3": "SELECT count(*) FROM store_sales JOIN store_returns NEAREST 3 BY ss_item_sk;",
    "q4": "SELECT count(*) AS n FROM store_sales AT (VERSION => 1);",
    "q5": "SELECT count(*) FROM store JOIN store_returns NEAREST 3 BY sr_item_sk",
}


@pytest.fixture(scope="session")
def tpcds_data() -> Path:
    """The folder with TPC-DS at scale factor 0.01, from the user's cache or generated into it."""
    return DATA.ensure(0.01, Console(stderr=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One with all queries."""
    for name, text in {**ANSWERED, **REFUSED}.items():
        (tmp_path / f"{name}.sql").write_text(text)
    (tmp_path / "notes.txt").write_text("no query")
    return tmp_path


def test_queries_are_statements_of_files_by_name(folder: Path, tmp_path: Path) -> None:
    queries = load_queries(folder)
    assert [query.label for query in queries] == ["q1", "q2.1", "q2.2", "q3", "q4", "q5"]
    assert [query.number for query in queries] == [1, 2, 3, 4, 5, 6]
    assert (queries[0].order_by, queries[0].limit) == (("d_year",), 100)
    assert [query.label for query in load_queries(folder, "Q2")] == ["q2.1", "q2.2"]
    for directory, only, message in (
        (tmp_path / "nowhere", "", "not a folder"),
        (folder, "q77", r'no file \*.sql with "q77" in its name'),
    ):
        with pytest.raises(UsageError, match=message):
            load_queries(directory, only)
    (folder / "latin.sql").write_bytes("SELECT 'é'".encode("latin-1"))
    with pytest.raises(UsageError, match="latin.sql cannot be read"):
        load_queries(folder)


@pytest.mark.slow
def test_command(tpcds_data: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = tmp_path / "report.json"
    arguments = ["tpcds", "--sf", "0.01", "--data", str(tpcds_data), "--queries", str(folder)]
    arguments += ["--runs", "1", "--threads", "1", "--compare", "duckdb"]
    # A query that is refused is one that fails.
    assert main([*arguments, "--columns", "same", "--json", str(document)]) == 1
    output = capsys.readouterr().out
    assert "3 of 6 equal" in output and "refused for features that tqp lacks, 3 of 6:" in output
    assert (
        "JOIN ... NEAREST" in output
        and ": q3, q5\n" in output
        and "a table version" in output
        and ": q4\n" in output
    )
    report = json.loads(document.read_text())
    assert sorted(report["refused"].values()) == [["q3", "q5"], ["q4"]] and not report["all_right"]
    same = report["columns"]["same"]
    assert same["tqp_total_milliseconds"] > 0 and same["duckdb_total_milliseconds"] > 0
    for name in REFUSED:
        (folder / f"{name}.sql").unlink()
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert output.count("equal") == 3 and "refused" not in output
    assert "once from Parquet: " in output and "first runs from Arrow tables" in output


def test_other_constants_cannot_be_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["tpcds", "--queries", str(folder), "--columns", "new"])
    assert "not a list of same, parquet, arrow" in capsys.readouterr().err
