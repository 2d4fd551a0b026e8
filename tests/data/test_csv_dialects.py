"""CSV files that are not plainly written: titles above the rows, quotes that end no field, long delimiters, empty files."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

import tqp
from tqp.data.sources.text.csv_quotes import loose_quote, with_inner_quotes_doubled

FILES = {
    "title": "Report of 2024\nby me\n\na,b,c\n1,2,3\n4,5,6\n",
    "title with a delimiter": "some, junk\nx\na,b,c\n1,2,3\n4,5,6\n",
    "title with another": "Title, of x\na;b;c\n1;2;3\n4;5;6\n",
    "title CRLF": "Title\r\n\r\na|b\r\n1|2\r\n",
    "title CR": "Title\ra,b\r1,2\r3,4\r",
    "title of many": "".join(f"line {i}\n" for i in range(3)) + "a,b\n1,2\n3,4\n5,6\n",
    "title, no header": "Title\n1,2\n3,4\n",
    "title with quotes": 'T "x"\na,b\n1,"2,3"\n3,4\n',
    "no title": "Title, x\na,b\n1,2\n3,4\n",
    "blank line of one column": "Title\n\na\n1\n2\n",
    "quotes inside": 'a,b\n1,"x "y" z"\n2,w\n',
    "text behind quotes": 'a,b\n1,"x"y\n2,w\n',
    "no end of quotes": 'a,b\n1,"x\n2,w\n',
    "an odd number": 'a,b\n1,"x\n2,w\n3,"q"\n',
    "quotes in plain text": 'a,b\n1,x"y\n2,w"\n',
    "either": 'a,b\n1,x"y\n2,"w,z"\n',
    "names in quotes": '"a","b"\n1,"x"y\n2,w\n',
    "single quotes": "a,b\n1,'x'y\n2,w\n",
    "apostrophe": "a,b\n1,it's\n2,w\n",
    "empty": "",
    "empty line": "\n",
    "long delimiter": "a||b||c\n1||2||x|y\n3||4||z\n",
    "long delimiter in quotes": 'a::b\n1::"x::y"\n2::z\n',
    "types": "a,b,c,d\n2020-01-01,1,x,t\n2020-01-02,200,y,f\n",
}
QUERIES = (
    *(f"'{name}.csv'" for name in FILES if not name.startswith("long")),
    *(
        f"read_csv('{name}.csv', strict_mode = false)"
        for name in ("quotes inside", "no end of quotes", "either")
    ),
    "read_csv('no end of quotes.csv', quote = '')",
    "read_csv('title.csv', names = ['p', 'q'])",
    "read_csv('title.csv', delim = ',', header = true)",
    "read_csv('title of many.csv', null_padding = true)",
    "read_csv('empty.csv', header = true)",
    "read_csv('long delimiter.csv', delim = '||')",
    "read_csv('long delimiter in quotes.csv', delim = '::')",
    "read_csv('types.csv', delim = '')",
    "read_csv('types.csv', delim = '§')",
    "read_csv('types.csv', auto_type_candidates = ['INTEGER', 'VARCHAR'])",
    "read_csv('types.csv', auto_type_candidates = ['DOUBLE'])",
    "read_csv('types.csv', auto_type_candidates = ['TIMESTAMP', 'BOOLEAN'])",
    "read_csv('types.csv', auto_type_candidates = ['SMALLINT', 'TINYINT', 'DATE'])",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / f"{name}.csv").write_bytes(text.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("source", QUERIES)
def test_as_in_duckdb(folder: Path, source: str) -> None:
    expected, found = duckdb.sql(f"FROM {source}"), tqp.sql(f"FROM {source}")
    assert list(found.columns) == expected.columns
    assert list(map(str, found.types)) == list(map(str, expected.types))
    assert found.fetchall() == expected.fetchall()


def test_rows_of_a_table_are_no_title(tmp_path: Path) -> None:
    """DuckDB leaves all rows out that are shorter than a later one."""
    path = tmp_path / "t.csv"
    tables = ("a,b\n1,2\n3,4,5\n6,7,8\n", "a,b\n1,2\n3,4,5\n", "text\nI am here\nYou, too\n")
    for text, error in zip(tables, ("2 columns, got 3", "2 columns, got 3", "1 columns, got 2"), strict=True):
        path.write_text(text)
        with pytest.raises(tqp.ExecutionError, match=error):
            tqp.sql(f"FROM '{path}'")


def test_what_is_refused(folder: Path) -> None:
    late = folder / "late.csv"
    late.write_text("a,b\n" + '1,"x"\n' * 20_000 + '2,"y" z"\n')
    for source, kind, message in (
        ("read_csv('quotes inside.csv', quote = '\"')", tqp.ExecutionError, "line 2 has a value in quotes"),
        ("'late.csv'", tqp.ExecutionError, "line 20002 has a value in quotes"),
        ("read_csv('types.csv', delim = 'abcde')", tqp.BindError, "up to 4 bytes"),
        ("read_csv('types.csv', delim = ',', quote = ',')", tqp.BindError, "are not told apart"),
        ("read_csv('types.csv', comment = ',', delim = ',')", tqp.BindError, "are not told apart"),
        ("read_csv('types.csv', skip = -1)", tqp.BindError, "a number of lines, not -1"),
        ("read_csv('types.csv', auto_type_candidates = [])", tqp.BindError, "takes a list of types"),
        (
            "read_csv('types.csv', auto_type_candidates = ['UUID'])",
            tqp.UnsupportedError,
            "UUID among the types",
        ),
    ):
        with pytest.raises(kind, match=message):
            tqp.sql(f"FROM {source}")
    assert tqp.sql("SELECT b FROM read_csv('late.csv', strict_mode = false) WHERE a = 2").fetchall() == [
        ('y" z',)
    ]


def _loose_quote(text: str, is_whole: bool) -> int | None:
    """As `loose_quote`, character by character."""
    place = 0
    while place < len(text):
        if text[place] != "'":
            while place < len(text) and text[place] not in ",\n":
                place += 1
        else:
            begin, place = place, place + 1
            while place < len(text) and (text[place] != "'" or text[place : place + 2] == "''"):
                place += 2 if text[place] == "'" else 1
            if place == len(text):
                return begin if is_whole else None
            place += 1
            while place < len(text) and text[place] == " ":
                place += 1
            if place < len(text) and text[place] not in ",\n":
                return begin
        place += 1
    return None


def test_loose_quotes() -> None:
    """Beside a slow reference."""
    chosen = random.Random(7)
    found = {True: 0, False: 0}
    for _ in range(20_000):
        text = "".join(chosen.choices("',\na ", [4, 3, 1, 2, 1], k=chosen.randint(0, 12)))
        for is_whole in (True, False):
            expected = _loose_quote(text, is_whole)
            assert loose_quote(text.encode(), ",", "'", is_whole=is_whole) == expected, text
            found[expected is None] += 1
        if _loose_quote(text, True) is None:
            assert (
                with_inner_quotes_doubled(text.encode(), ",", "'").replace(b" ", b"")
                == text.replace(" ", "").encode()
            )
    assert min(found.values()) > 2_000
