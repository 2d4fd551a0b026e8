"""Columns that files do not hold, and that queries may name all the same: `filename`, `file_index` and `file_row_number`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tests.oracle import answer_of, duckdb_database
from tqp.core.process import memory_budget
from tqp.data.sources.text import text_files

ROWS, GROUP = 3_000, 500

QUERIES = """
SELECT *, filename, file_index, file_row_number FROM 'x*.parquet'
SELECT *, FILENAME FROM 'x1.parquet' LIMIT 1
SELECT * FROM read_parquet('x*.parquet', filename = true, file_row_number = true)
SELECT file_index, x.* FROM read_parquet('x*.parquet', filename = 'name') x
SELECT filename FROM read_parquet('x*.parquet', filename = 'name')
SELECT filename, x.* FROM read_parquet('x*.parquet', filename = false, file_row_number = true) x
SELECT filename, file_index, file_row_number, i, b FROM read_parquet('x*.parquet', union_by_name = true)
SELECT filename, file_index, count(*), sum(file_row_number) FROM 'x*.parquet' GROUP BY ALL ORDER BY ALL
SELECT i, file_row_number FROM 'x*.parquet' WHERE i BETWEEN 1490 AND 1510
SELECT i, file_row_number FROM 'x*.parquet' WHERE file_row_number BETWEEN 1490 AND 1510
SELECT i, file_row_number FROM 'x*.parquet' WHERE file_index = 1 AND i % 100 = 7
SELECT count(*) FROM 'x*.parquet' WHERE filename LIKE '%2.parquet'
SELECT max(file_row_number), max(i) FROM 'x*.parquet' WHERE file_row_number < 600
SELECT file_row_number, i FROM 'x*.parquet' ORDER BY file_row_number DESC, i LIMIT 3
SELECT DISTINCT filename, file_index, a, year FROM 'y*/*.csv' ORDER BY ALL
SELECT filename, file_index FROM read_csv('y*/*.csv', columns = {'b': 'VARCHAR', 'c': 'INT'})
SELECT file_index, a FROM read_csv(['y=1/c.csv', 'y=1/c.csv'], ignore_errors = true, types = {'a': 'INT'})
SELECT filename, year, y, a FROM 'y*/*.csv'
SELECT file_row_number FROM 'y*/*.csv'
SELECT * FROM read_csv('named.csv', filename = true)
SELECT * FROM read_csv('named.csv', filename = 'other')
SELECT filename, file_index FROM 'named.csv'
SELECT filename, file_index, a FROM read_json(['j.json', 'j.json'])
SELECT filename FROM (FROM 'x1.parquet')
SELECT COLUMNS('file.*') FROM 'x1.parquet'
SELECT count(*) FROM 'x1.parquet' JOIN 'x2.parquet' USING (filename)
SELECT t.filename, u.filename FROM 'x1.parquet' t JOIN 'x2.parquet' u USING (file_row_number) WHERE t.i < 3
SELECT z, i FROM named NATURAL JOIN 'x1.parquet' WHERE i < 3
SELECT z, i FROM 'x1.parquet' NATURAL JOIN named
SELECT filename[1:2] FROM 'x1.parquet' t(a, b) LIMIT 1
SELECT i AS filename FROM 'x1.parquet' WHERE filename = 3
""".strip().split("\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        first = ROWS * (number - 1)
        table = pa.table({"i": range(first, first + ROWS), "b": [f"r{i % 7}" for i in range(ROWS)]})
        pq.write_table(table, f"x{number}.parquet", row_group_size=GROUP)
        (tmp_path / f"y={number}").mkdir()
        lines = "".join(f"{number},{i % 2},{i}\n" for i in range(40))
        (tmp_path / f"y={number}" / "c.csv").write_text(f"a,year,c\n{lines}")
    (tmp_path / "named.csv").write_text("filename,z\nx1.parquet,5\n")
    (tmp_path / "j.json").write_text('{"a":1}\n{"a":2}\n')
    return tmp_path


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_answers_are_those_of_duckdb(folder: Path, backend: str) -> None:
    with duckdb_database() as oracle, tqp.connect(backend=backend) as connection:
        for engine in (oracle, connection):
            engine.execute("CREATE TABLE named AS FROM 'named.csv'")
        for query in QUERIES:
            assert answer_of(connection, query) == answer_of(oracle, query), query


@pytest.mark.parametrize(
    "query", [query for query in QUERIES if "COLUMNS" not in query and "NATURAL" not in query]
)
def test_answers_of_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    monkeypatch.setattr(memory_budget, "_SHARE_OF_FILES", 1e-12)
    for limit in ("_LEAST", "_MOST"):
        monkeypatch.setattr(text_files, limit, 64)
    with duckdb_database() as oracle, tqp.connect() as connection:
        assert answer_of(connection, query) == answer_of(oracle, query)


def test_a_view_of_files_names_them(folder: Path) -> None:
    with tqp.connect() as connection:
        connection.execute("CREATE VIEW v AS SELECT filename AS f, i FROM 'x*.parquet'")
        assert connection.execute("SELECT f, count(*) FROM v GROUP BY f ORDER BY f").fetchall() == [
            ("x1.parquet", ROWS),
            ("x2.parquet", ROWS),
        ]
