"""Every word of DuckDB's SQL may stand as a name where DuckDB lets it, and nowhere else."""

from __future__ import annotations

import duckdb
import pytest

from tqp.core.errors import ParseError, UnsupportedError
from tqp.core.keywords import KEYWORDS
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
