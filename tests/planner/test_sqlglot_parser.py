"""The parser made from sqlglot's sources, which stands in where sqlglot is compiled, is sqlglot's own in all but identity."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import sqlglot.parser
import sqlglot.parsers.duckdb
from sqlglot import errors
from sqlglot.dialects.duckdb import DuckDB

import tqp
from tqp.planner.syntax.sqlglot_parser import DuckDBParser, interpreted_duckdb_parser, is_compiled

COPY = interpreted_duckdb_parser()
ROOT = Path(__file__).parents[2]
QUERIES = [path.read_text() for path in sorted((ROOT / "tpch" / "queries").glob("q*.sql"))]


@pytest.mark.parametrize(
    "text",
    [
        *QUERIES,
        "SELECT a ~ 'x', b: 1, list_sort(l, 'desc'), MAP {'a': 1}, ?, $1, $name FROM t: u",
        "FROM t ASOF JOIN u ON t.a >= u.a PIVOT (max(b) FOR c IN (1, 2))",
    ],
)
def test_trees_are_the_same(text: str) -> None:
    dialect = DuckDB()
    own = sqlglot.parsers.duckdb.DuckDBParser(dialect=dialect).parse(dialect.tokenize(text), text)
    assert [repr(tree) for tree in COPY(dialect=dialect).parse(dialect.tokenize(text), text)] == [
        repr(tree) for tree in own
    ]


@pytest.mark.parametrize(
    "text", ["SELECT 1 +", "SELECT (1", "FROM t JOIN", "SELECT CAST(1 AS)", "SELECT max(1, 2, 3)"]
)
def test_errors_are_the_same(text: str) -> None:
    dialect = DuckDB()
    described = []
    for parser in (COPY, sqlglot.parsers.duckdb.DuckDBParser):
        with pytest.raises(errors.ParseError) as raised:
            parser(dialect=dialect).parse(dialect.tokenize(text), text)
        described.append(raised.value.errors)
    assert described[0] == described[1]


def test_copy_is_private_and_wholly_interpreted() -> None:
    bases = COPY.__mro__[:-1]
    assert [base.__name__ for base in bases] == ["DuckDBParser", "Parser"]
    assert not any(base.__module__ in sys.modules for base in bases)
    assert sys.modules["sqlglot.parser"] is sqlglot.parser
    assert sqlglot.parsers.duckdb.DuckDBParser.__mro__[1] is sqlglot.parser.Parser

    class Subclass(COPY):  # type: ignore[misc, valid-type]
        pass

    assert Subclass(dialect=DuckDB()).sql == ""


def test_copy_is_made_only_where_sqlglot_is_compiled() -> None:
    assert (DuckDBParser is sqlglot.parsers.duckdb.DuckDBParser) is not is_compiled(sqlglot.parser)


def test_missing_sources_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlglot, "__path__", [str(tmp_path)])
    with pytest.raises(
        tqp.Error, match=r"parser\.py is missing: .*pip install --force-reinstall --no-deps sqlglot"
    ):
        interpreted_duckdb_parser()
