"""CSV and JSON files that are read in blocks have the types and rows that they have when they are read whole."""

from __future__ import annotations

import gzip
import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tqp
from tests.data.test_pieces import DIMENSION, QUERIES, _answer, _held_by, _table
from tqp import pieces
from tqp.core.process import memory_budget
from tqp.data.sources.text import csv_blocks, csv_files, text_files

BLOCK = 512


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Few bytes are a large file, and a block; the pieces that were read."""
    monkeypatch.setattr(memory_budget, "_SHARE_OF_FILES", 1e-12)
    monkeypatch.setattr(text_files, "_LEAST", BLOCK)
    monkeypatch.setattr(text_files, "_MOST", BLOCK)
    for module in (csv_files, csv_blocks):
        monkeypatch.setattr(module, "SAMPLE_BYTES", 100)
    found: list[Any] = []
    rows_of = pieces.QueryInPieces._rows_of

    def noted(self: Any, piece: Any, names: Any) -> Any:
        found.append(piece)
        return rows_of(self, piece, names)

    monkeypatch.setattr(pieces.QueryInPieces, "_rows_of", noted)
    yield found


def _both(query: str, small: list[Any], monkeypatch: pytest.MonkeyPatch, in_pieces: bool = True) -> Any:
    """What the query answers in pieces, which is what it answers on the whole: types and rows, or the error."""
    small.clear()
    found = _outcome(query)
    assert bool(small) == in_pieces
    with monkeypatch.context() as patch:
        patch.setattr(memory_budget, "_SHARE_OF_FILES", 1.0)
        assert _outcome(query) == found
    return found


def _outcome(query: str) -> Any:
    with tqp.connect(threads=2) as connection:
        try:
            answer = connection.sql(query)
            return [str(each) for each in answer.types], answer.fetchall()
        except tqp.Error as error:
            return type(error), str(error).partition(";")[0]


@pytest.mark.parametrize(("form", "backend"), [("csv", "host"), ("json", "torch")])
def test_answers_are_those_of_duckdb(
    tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch, form: str, backend: Any
) -> None:
    for limit in ("_LEAST", "_MOST"):
        monkeypatch.setattr(text_files, limit, 4 * BLOCK)  # a few blocks for each of many queries
    oracle = duckdb.connect()
    oracle.register("dimension", DIMENSION)
    oracle.register("source", _table())
    columns = "* EXCLUDE (l, r)" if form == "csv" else "*"
    path = f"{tmp_path}/t.{form}"
    oracle.execute(
        f"COPY (SELECT {columns} REPLACE (p::BIGINT AS p) FROM source) TO '{path}' (FORMAT {form})"
    )
    table = f"read_csv('{path}', allow_quoted_nulls = false)" if form == "csv" else f"'{path}'"
    oracle.execute(f"CREATE VIEW t AS SELECT * REPLACE (d::DATE AS d) FROM {table}")
    for query in QUERIES:
        if form == "csv" and any(each in query for each in ("l[", "unnest(l)", " r,", "max(l)", "s, l")):
            continue
        with tqp.connect(backend=backend, threads=2) as connection:
            connection.register("dimension", DIMENSION)
            connection.execute(f"CREATE VIEW t AS FROM {table}")
            assert _answer(connection, query) == _answer(oracle, query), query
    assert len(small) > 100


LATE = {
    "int, then double": ["1", "2", "3.5"],
    "int, then text": ["1", "2", "x"],
    "int, then leading zero": ["1", "2", "007"],
    "int, then huge": ["1", "2", str(2**70)],
    "int, then more than huge": ["1", "2", "9" * 45],
    "huge, then double": [str(2**70), "", "1e300"],
    "double, then more digits than it holds": ["0.5", "1", "9007199254740993"],
    "null, then int": ["", "", "7"],
    "null, then date": ["", "", "2024-02-30x"],
    "bool, then number": ["t", "f", "1"],
    "bool, then text": ["true", "FALSE", "truth"],
    "date, then timestamp": ["2024-01-02", "2024-1-3", "2024-01-02 03:04:05"],
    "date, then no date": ["2024-01-02", "2024-01-03", "2024-02-30"],
    "time, then timestamp": ["10:11", "1:02:03", "2024-01-02 03:04:05"],
    "timestamp, then zone": ["2024-01-02 03:04:05", "", "2024-01-02 03:04:05+02"],
    "timestamp, then nanoseconds": ["2024-01-02 03:04:05", "", "2024-01-02 03:04:05.123456789"],
    "blanks": ["1", " 2", "3 "],
    "all null": ["", "", ""],
}


@pytest.mark.parametrize("name", LATE)
def test_what_a_later_block_refutes_is_read_again(
    tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    first, second, last = LATE[name]
    texts = [first] * 200 + [second] * 100 + [last] + [first] * 200
    rows = "".join(f"{number},{text},abc\n" for number, text in enumerate(texts))
    (tmp_path / "t.csv").write_text("id,v,s\n" + rows)
    _both(f"SELECT id, v, s FROM '{tmp_path}/t.csv'", small, monkeypatch)
    assert len(small) > 3


def test_what_a_block_read_again_refutes_is_asked_of_all(
    tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows with a zone come in blocks of their own: those with none refute a zone, and those with one what is tried then."""
    time = "2024-01-02 03:04:05"
    rows = [f"{time},1\n"] * 100 + [",2\n"] * 500 + [f"{time}+02,3\n"] * 100
    (tmp_path / "t.csv").write_text("v,k\n" + "".join(rows))
    types, _ = _both(f"FROM '{tmp_path}/t.csv'", small, monkeypatch)
    assert types == ["VARCHAR", "BIGINT"]


@pytest.mark.parametrize("padding", range(4))
def test_line_ends_in_values_at_the_borders_of_blocks(
    tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch, padding: int
) -> None:
    value = "\r\n" * 50
    (tmp_path / "t.csv").write_bytes(f'a,b\n{"9" * padding},""\n'.encode() + f'1,"{value}"\n'.encode() * 100)
    _, rows = _both(f"FROM '{tmp_path}/t.csv'", small, monkeypatch)
    assert rows[1:] == [(1, value)] * 100


def _plain(rows: int = 300) -> str:
    return "id;name;day\n" + "".join(f"{i};n{i % 7};2024-01-{i % 28 + 1:02}\n" for i in range(rows))


#: By what is of note, the file, and the options of read_csv(); whether it can be read in blocks.
FILES: dict[str, tuple[bytes, str, bool]] = {
    "plain": (_plain().encode(), "", True),
    "no newline at the end": (_plain().encode()[:-1], "", True),
    "byte order mark": (b"\xef\xbb\xbf" + _plain().encode(), "", True),
    "CRLF": (_plain().replace("\n", "\r\n").encode(), "", True),
    "quotes": (("a,b\n" + '1,"x, ""y""\nz"\n' * 300).encode(), "", True),
    "stray quotes": (("a,b\n" + '1,5" disk\n' * 300).encode(), "", True),
    "single quotes": (("a,b\n" + "1,'x, y'\n" * 300).encode(), "", True),
    "backslashes before quotes": (('a,b\n1,"x \\"y\\" z"\n' * 100).encode(), "", False),
    "unicode": (("ä,𝒳\n" + "é𝒳,1\n" * 300).encode(), "", True),
    "not UTF-8": ((_plain() + "1;ü;2024-01-01\n").encode("latin-1"), "", False),
    "names that are not UTF-8": (("ü\n" + "1\n" * 300).encode("latin-1"), "", False),
    "latin-1": ((_plain() + "1;ü;2024-01-01\n").encode("latin-1"), ", encoding = 'latin-1'", False),
    "lines to skip": (b"# made by\n\n" + _plain().encode(), ", skip = 2", True),
    "comments at the start": (b"# made by\n# us\n" + _plain().encode(), "", True),
    "comments": ((_plain() + "# end\n").encode(), ", comment = '#'", False),
    "no header": ("".join(f"{i},{i / 2}\n" for i in range(400)).encode(), "", True),
    "header is said": (("1,2\n" * 400).encode(), ", header = true", True),
    "names twice": (("a,a,A\n" + "1,2,3\n" * 300).encode(), "", True),
    "one column": (("a\n" + "1\n\n2\n" * 300).encode(), "", True),
    "names are given": (_plain().encode(), ", names = ['x', 'y']", True),
    "normal names": (_plain().encode(), ", normalize_names = true", True),
    "texts of NULL": (("a,b\n" + '1,NA\n2,"NA"\n-,x\n' * 300).encode(), ", nullstr = ['NA', '-']", True),
    "all text": (_plain().encode(), ", all_varchar = true", True),
    "types": (_plain().encode(), ", types = {'id': 'SMALLINT', 'name': 'VARCHAR'}", True),
    "format of dates": (_plain().encode(), ", dateformat = '%Y-%m-%d'", True),
    "another format of dates": (_plain().encode(), ", dateformat = '%d.%m.%Y'", True),
    "decimal comma": (("a;b\n" + "1,5;x\n" * 300).encode(), ", decimal_separator = ','", True),
    "file of each row": (_plain().encode(), ", filename = true", True),
    "a row that is too long": ((_plain() + "1;2;3;4\n").encode(), "", False),
    "faults are left out": ((_plain() + "1;2;3;4\n1;2\n").encode(), ", ignore_errors = true", True),
    "short rows": ((_plain() + "1\n").encode(), ", null_padding = true", False),
    "a row longer than a block": (("a,b\n" + "1,x\n" * 300 + f"2,{'y' * 9 * BLOCK}\n").encode(), "", False),
}


@pytest.mark.parametrize("name", FILES)
def test_files_in_blocks(
    tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    content, options, in_blocks = FILES[name]
    (tmp_path / "t.csv").write_bytes(content)
    _both(f"FROM read_csv('{tmp_path}/t.csv'{options})", small, monkeypatch, in_blocks)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content))
    _both(f"FROM read_csv('{tmp_path}/t.csv.gz'{options})", small, monkeypatch, in_blocks)


JSON_ROWS: dict[str, list[Any]] = {
    "plain": [{"a": i, "b": f"x{i}"} for i in range(100)],
    "keys come late": [{"a": i} for i in range(100)] + [{"b": 1, "a": 2}],
    "int, then double": [{"a": i} for i in range(100)] + [{"a": 0.5}],
    "null, then list": [{"a": None, "b": None} for _ in range(100)] + [{"a": [1, 2], "b": {"c": 1}}],
    "only null": [{"a": None, "b": i} for i in range(100)],
    "structs grow": [{"a": {"x": i}} for i in range(100)] + [{"a": {"y": "t", "x": 1.5}}],
    "lists of structs": [{"a": [{"x": i}]} for i in range(100)] + [{"a": [{"x": 0.5, "y": True}]}],
    "dates": [{"a": f"2024-01-{i % 28 + 1:02}"} for i in range(100)],
    "dates, then text": [{"a": "2024-01-02"} for i in range(100)] + [{"a": "x"}],
    "dates, then timestamps": [{"a": "2024-01-02"} for i in range(100)] + [{"a": "2024-01-02 03:04:05"}],
    "times in lists, then text": [{"a": ["10:00"], "b": ["1:02"]} for i in range(100)] + [{"a": ["x"]}],
    "UUIDs in structs": [
        {"a": {"u": f"550e8400-e29b-41d4-a716-4466554400{i % 90 + 10}"}} for i in range(100)
    ],
    "unicode": [{"ä": "é𝒳\n\"{'", "b": "[}"} for _ in range(100)],
}


@pytest.mark.parametrize("name", JSON_ROWS)
def test_json_in_blocks(tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    lines = "\n".join(map(json.dumps, JSON_ROWS[name]))
    (tmp_path / "t.json").write_text("\ufeff\n" + lines)
    _both(f"FROM '{tmp_path}/t.json'", small, monkeypatch)
    (tmp_path / "array.json").write_text(json.dumps(JSON_ROWS[name]))
    _both(f"FROM '{tmp_path}/array.json'", small, monkeypatch, in_pieces=False)
    (tmp_path / "indented.json").write_text("\n".join(json.dumps(row, indent=1) for row in JSON_ROWS[name]))
    _both(f"FROM '{tmp_path}/indented.json'", small, monkeypatch, in_pieces=False)


def test_faults_of_json(tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for last in (
        '{"a": "text"}',
        "[1]",
        '{"a": {"b": 1}}',
    ):  # of several types: JSON, which takes the whole file
        (tmp_path / "t.json").write_text('{"a": 1}\n' * 200 + last)
        _both(f"FROM '{tmp_path}/t.json'", small, monkeypatch, in_pieces=False)
    for last in ('{"a": 1', '{"a": 1}}'):
        (tmp_path / "t.json").write_text('{"a": 1}\n' * 200 + last)
        kind, _ = _both(f"FROM '{tmp_path}/t.json'", small, monkeypatch, in_pieces=False)
        assert issubclass(kind, tqp.Error)


def test_several_files(tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for year, rows in ((2023, 90), (2024, 120)):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        order = ("id", "v") if year == 2023 else ("v", "id")
        for number in range(2):
            texts = [{"id": str(i), "v": f"{i / 2}" if year == 2024 else str(i)} for i in range(rows)]
            lines = [",".join(order), *(",".join(row[each] for each in order) for row in texts)]
            (folder / f"{number}.csv").write_text("\n".join(lines))
    query = f"FROM read_csv('{tmp_path}/*/*.csv', filename = true)"
    (types, rows_found) = _both(query, small, monkeypatch)
    assert types == ["BIGINT", "DOUBLE", "BIGINT", "VARCHAR"] and len(rows_found) == 420
    _both(f"SELECT year, max(v) {query} GROUP BY year ORDER BY year", small, monkeypatch)
    _both(f"SELECT DISTINCT year, filename {query} ORDER BY ALL", small, monkeypatch, in_pieces=False)
    _both(query.replace("filename", "union_by_name"), small, monkeypatch, in_pieces=False)


def test_a_column_that_directories_are_named_after(
    tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "name=x"
    folder.mkdir()
    (folder / "t.csv").write_text(_plain())
    types, rows = _both(f"FROM '{tmp_path}/*/t.csv'", small, monkeypatch)
    assert types == ["BIGINT", "DATE", "VARCHAR"] and {row[2] for row in rows} == {"x"}


def test_what_reads_all_rows_twice_reads_the_file_whole(
    tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text(_plain())
    query = f"FROM '{tmp_path}/t.csv' a JOIN '{tmp_path}/t.csv' b ON a.id = b.id + 1 ORDER BY ALL"
    types, rows = _both(query, small, monkeypatch, in_pieces=False)
    assert len(rows) == 299 and types == ["BIGINT", "VARCHAR", "DATE"] * 2


def test_registered_files_and_views(tmp_path: Path, small: list[Any]) -> None:
    path = tmp_path / "t.csv"
    path.write_text(_plain())
    with tqp.connect() as connection:
        connection.register("t", str(path))
        assert connection.sql("SELECT count(*), sum(id) FROM t").fetchall() == [(300, 44850)]
        assert small
        time.sleep(0.01)
        path.write_text(_plain(200))
        assert connection.sql("SELECT count(*), max(day) IS NULL FROM t").fetchall() == [(200, False)]


def test_a_file_that_is_replaced_meanwhile_is_read_anew(
    tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(_plain())
    rows_of = pieces.QueryInPieces._rows_of

    def replacing(self: Any, piece: Any, names: Any) -> Any:
        if len(small) == 3:
            time.sleep(0.01)
            (tmp_path / "new").write_text(_plain(150))
            os.replace(tmp_path / "new", path)
        return rows_of(self, piece, names)

    monkeypatch.setattr(pieces.QueryInPieces, "_rows_of", replacing)
    assert tqp.sql(f"SELECT count(*), max(id) FROM '{path}'").fetchall() == [(150, 149)]


def test_a_file_that_is_written_over_meanwhile_is_read_anew(
    tmp_path: Path, small: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that came since may be of other types than those that were found."""
    path, rows = tmp_path / "t.csv", 5_000  # more than Arrow reads ahead
    path.write_text("id,v\n" + "".join(f"{number},{number}\n" for number in range(rows)))
    rows_of = pieces.QueryInPieces._rows_of

    def writing(self: Any, piece: Any, names: Any) -> Any:
        if len(small) == 3:
            time.sleep(0.01)
            path.write_text("id,v\n" + "".join(f"{number},{number}x\n" for number in range(rows)))
        return rows_of(self, piece, names)

    monkeypatch.setattr(pieces.QueryInPieces, "_rows_of", writing)
    assert tqp.sql(f"SELECT count(*), max(v) FROM '{path}'").fetchall() == [(rows, "9x")]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_copy_writes_piece_by_piece(tmp_path: Path, small: list[Any], form: str) -> None:
    source, target = tmp_path / f"t.{form}", tmp_path / "out.parquet"
    duckdb.sql(
        f"COPY (SELECT i AS id, i % 9 AS k, 'text ' || i AS s FROM range(300) r(i)) TO '{source}' (FORMAT {form})"
    )
    query = f"SELECT id, upper(s) AS s FROM '{source}' WHERE k > 3"
    assert tqp.connect().execute(f"COPY ({query}) TO '{target}'").fetchall() == [(165,)]
    assert len(small) > 5
    assert (
        duckdb.sql(f"FROM '{target}' ORDER BY id").fetchall() == duckdb.sql(f"{query} ORDER BY id").fetchall()
    )


def test_plans_are_those_of_pieces(tmp_path: Path, small: list[Any]) -> None:
    (tmp_path / "t.csv").write_text(_plain())
    query = f"SELECT name, count(*) AS n FROM '{tmp_path}/t.csv' GROUP BY name ORDER BY name LIMIT 2"
    with tqp.connect() as connection:
        text = connection.explain(query)
        assert "Each piece of" in text and "The rows of all pieces" in text and not small
        assert connection.sql(f"EXPLAIN {query}").fetchall()[0][1] == text
        assert "Total" in connection.explain(query, analyze=True) and len(small) > 3
        small.clear()
        program = connection.compile(query)
        assert not small and "# Each piece of" in program.code and "# The rows of all pieces" in program.code
        for _ in range(2):
            table = program()
            assert (table.num_rows, table.names) == (2, ("name", "n"))


@pytest.mark.cpu
@pytest.mark.parametrize("form", ["csv", "json"])
def test_memory_is_that_of_a_piece(tmp_path: Path, form: str) -> None:
    """40 MB of text, of which a query may hold 64: not the text and its rows."""
    path, draw = tmp_path / f"large.{form}", random.Random(4)
    texts = ["".join(draw.choices("abcdefgh", k=90)) for _ in range(1000)]
    with path.open("w") as stream:
        stream.writelines("n,s\n" if form == "csv" else "")
        for number in range(400_000):
            text = texts[number % 1000]
            stream.write(f"{number},{text}\n" if form == "csv" else f'{{"n":{number},"s":"{text}"}}\n')
    queries = {
        f"SELECT count(*), max(s), sum(n) FROM '{path}'": [(400_000, max(texts), 399_999 * 200_000)],
        f"COPY (SELECT s || n::VARCHAR AS t FROM '{path}') TO '{tmp_path / 'out.csv'}'": [(400_000,)],
    }
    with tqp.connect(threads=2, memory_limit="64MB") as connection:
        for query, expected in queries.items():
            rows, held = _held_by(lambda query=query: connection.execute(query).fetchall())
            assert rows == expected
            assert held < 80 << 20, query
