"""Every word of DuckDB's SQL may stand as a name where DuckDB lets it, and nowhere else."""

from __future__ import annotations

import duckdb
import pytest

import tqp
from tqp.core.errors import ParseError, UnsupportedError
from tqp.core.keywords import KEYWORDS
from tqp.planner.syntax.sqlglot_tokens import _KEYWORDS
from tqp.planner.syntax.statement_grammar import statements
from tqp.planner.syntax.tokens import tokenize

DUCKDB = duckdb.connect()
PLACES = [
    "SELECT {}",
    "SELECT 1 + {} + 2",
    "SELECT t.{}",
    "SELECT {}.x",
    "SELECT {}()",
    "SELECT {}(1)",
    "SELECT s.{}(1)",
    "SELECT 1 {}",
    "SELECT 1 AS {}",
    "SELECT {}: 1",
    "FROM {}",
    "FROM s.{}",
    "FROM {}(1)",
    "FROM t {}",
    "FROM t AS {}",
    "FROM t AS x({})",
    "FROM {}: t",
    "WITH {} AS (SELECT 1) SELECT 1",
    "SELECT 1::{}",
    "SELECT CAST(1 AS s.{})",
    "SELECT 1::{}(3)",
    "SELECT {} 'x'",
    "SELECT {{{}: 1}}",
    "SELECT f({} := 1)",
    "SELECT f() FROM t WINDOW {} AS ()",
    "FROM a JOIN b USING ({})",
    "SELECT * EXCLUDE ({})",
    "SELECT * REPLACE (1 AS {})",
    "SELECT LAMBDA {}: 1",
    "SELECT (1).{}",
    "SELECT ${}",
    "SELECT extract({} FROM x)",
    "SELECT 1 ORDER BY 1 {}",
    "SELECT {} 1",
]


def test_words_are_those_of_duckdb() -> None:
    words = {
        name.upper() for (name,) in DUCKDB.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    }
    assert words == KEYWORDS


def accepted_by_duckdb(query: str) -> bool:
    try:
        DUCKDB.extract_statements(query)
    except duckdb.ParserException as error:
        return not any(
            part in str(error)
            for part in ("syntax error", "SELECT clause", "modifiers", "ANY/ALL", "arguments")
        )
    return True


def accepted(query: str) -> bool:
    try:
        statements(tokenize(query))
    except ParseError:
        return False
    except UnsupportedError:
        return True
    return True


@pytest.mark.parametrize("place", PLACES)
def test_words_stand_where_they_do_in_duckdb(place: str) -> None:
    queries = {place.format(word) for word in sorted(KEYWORDS | {"ZZZ"})}
    assert [query for query in queries if accepted(query) != accepted_by_duckdb(query)] == []


#: Names of columns, tables, fields, parameters, windows.
NAMES = [
    'SELECT {0} + 1, -{0}, {0}::VARCHAR, abs({0}) FROM (SELECT 1 AS "{0}")',
    'SELECT q.{0} FROM (SELECT 1 AS "{0}") q WHERE {0} BETWEEN {0} AND {0} GROUP BY {0} ORDER BY {0} DESC',
    'SELECT {0}.a, {0}.* FROM (SELECT 1 AS a) "{0}"',
    "SELECT 1 {0}, 2 AS {0}",
    "FROM (SELECT 1 AS a) {0}",
    "FROM (SELECT 1 AS a, 2 AS {0}) q(b) ORDER BY b",
    "WITH {0} AS (SELECT 1 AS a) SELECT a FROM {0}",
    "SELECT {{{0}: 1, b: {{'{0}': 2}}.{0}}}",
    "SELECT struct_pack({0} := 1)",
    "SELECT list_transform([1], lambda {0}: {0} + 1)",
    'SELECT sum(1) OVER {0} FROM (SELECT 1 AS "{0}") WINDOW {0} AS (ORDER BY {0})',
    'SELECT * FROM (SELECT 1 AS "{0}") JOIN (SELECT 1 AS "{0}") USING ({0})',
    'SELECT * EXCLUDE ({0}) REPLACE (3 AS b) FROM (SELECT 1 AS "{0}", 2 AS b)',
]
WORDS_OF_SQLGLOT = {word for word in _KEYWORDS if word.isidentifier()}


@pytest.mark.parametrize("place", NAMES)
def test_words_mean_what_they_do_in_duckdb(place: str) -> None:
    """sqlglot has keywords where DuckDB has names."""
    connection = tqp.connect()
    different = []
    for word in (
        sorted(KEYWORDS & WORDS_OF_SQLGLOT) + sorted(WORDS_OF_SQLGLOT - KEYWORDS) + ["ADD", "DEFAULT"]
    ):
        query = place.format(word)
        try:
            answer = DUCKDB.execute(query)
        except duckdb.Error:
            with pytest.raises(tqp.Error):
                connection.sql(query)
            continue
        expected = [column[0] for column in answer.description], answer.fetchall()
        try:
            result = connection.sql(query)
        except tqp.Error as error:
            different.append((query, error))
            continue
        if (result.to_arrow().schema.names, result.fetchall()) != expected:
            different.append((query, expected))
    assert different == []
