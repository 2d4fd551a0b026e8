"""Our grammar of queries and DuckDB's parser accept and refuse the same texts.

`syntax_accepted.sql`, `syntax_pivots.sql` and `syntax_refused.sql` hold one query a line; wrong ones are made of right ones besides, by leaving
out, doubling, exchanging and replacing tokens.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tqp.core.errors import ParseError, UnsupportedError
from tqp.planner.parse import parse
from tqp.planner.syntax.statement_grammar import statements
from tqp.planner.syntax.tokens import tokenize

from .binding import bound

HERE = Path(__file__).parent
TPCH = [path.read_text() for path in sorted((HERE.parents[1] / "tpch" / "queries").glob("q*.sql"))]
ACCEPTED = (HERE / "syntax_accepted.sql").read_text().splitlines()
PIVOTS = (HERE / "syntax_pivots.sql").read_text().splitlines()
REFUSED = (HERE / "syntax_refused.sql").read_text().splitlines()

DUCKDB = duckdb.connect()
#: Where DuckDB's parser complains of something else than its grammar, or of rules that our binder knows.
_NOT_GRAMMAR = re.compile(
    r"window \"|ordered aggregate|NULLS is not|number of arg|Named arg|TO \w+ is not|PIVOT|same length|constant|modifier"
    r"|Empty sub|at least one|cannot be empty|two aliases|ANY/ALL|one column|reference node|hexadecimal|array size|CTE|wrap the"
)


def refused_by_duckdb(query: str) -> str | None:
    """The message, None for a query that is right, an empty text where the complaint is not one of the grammar."""
    try:
        DUCKDB.extract_statements(query)
    except duckdb.ParserException as error:
        message = str(error).split("\n")[0]
        return "" if _NOT_GRAMMAR.search(message) else message
    except duckdb.Error:
        return None
    return None


def refused(query: str) -> str | None:
    """Our message, None for a query that is right, an empty text for statements of other kinds, which are not read."""
    try:
        found = statements(tokenize(query))
    except ParseError as error:
        return error.message
    except UnsupportedError:
        return ""
    return None if all(statement.is_query for statement in found) else ""


@pytest.mark.parametrize("query", [*TPCH, *ACCEPTED, *PIVOTS])
def test_what_duckdb_accepts_is_accepted(query: str) -> None:
    assert refused_by_duckdb(query) is None
    assert refused(query) is None


@pytest.mark.parametrize("query", REFUSED)
def test_what_duckdb_refuses_is_refused(query: str) -> None:
    assert refused_by_duckdb(query) is not None
    assert refused(query) is not None
    with pytest.raises(ParseError, match="syntax error|never closed"):
        parse(query)


_TOKEN = re.compile(r"\s+|'(?:[^']|'')*'|\"[^\"]*\"|\w+(?:\.\d+)?|::|<=|>=|<>|!=|\|\||->|.", re.DOTALL)
_OTHERS = """
    SELECT FROM WHERE GROUP BY ORDER LIMIT OFFSET UNION ALL DISTINCT AS ON JOIN LEFT USING CASE WHEN THEN ELSE END NOT NULL IS
    IN BETWEEN AND OR LIKE CAST INTERVAL DATE ( ) , . * + - / % = < > <= :: [ ] { } : ? $1 'x' 1 2.5 a b t x EXISTS OVER
    FILTER WITH RECURSIVE VALUES INTERSECT EXCEPT HAVING QUALIFY WINDOW ASC DESC NULLS FIRST LAST TRUE -> := => | & ^ ~ #
    COLLATE AT TIME ZONE ESCAPE ROW STRUCT MAP ARRAY LAMBDA PIVOT UNPIVOT LATERAL ANY TABLE TRY_CAST EXTRACT SUBSTRING TRIM
    POSITION DECIMAL INTEGER VARCHAR TIMESTAMP year day filter over cross natural semi asof tablesample exclude replace
    """.split()


def mutants(seed: int, count: int, queries: list[str]) -> Iterator[str]:
    """Texts with one to three tokens changed."""
    choice = random.Random(seed)
    originals = [_TOKEN.findall(query) for query in queries]
    pool = sorted({token for tokens in originals for token in tokens if token.strip()})
    for _ in range(count):
        tokens = list(choice.choice(originals))
        places = [place for place, token in enumerate(tokens) if token.strip()]
        for _ in range(choice.choice([1, 1, 1, 2, 3])):
            place, other = choice.choice(places), choice.choice(places)
            match choice.randrange(6):
                case 0:
                    tokens[place] = " "
                case 1:
                    tokens[place] += " " + tokens[place]
                case 2:
                    tokens[place], tokens[other] = tokens[other], tokens[place]
                case 3:
                    tokens[place] = f" {choice.choice(pool)} "
                case 4:
                    tokens[place] = f" {choice.choice(_OTHERS)} "
                case _:
                    tokens[place] += f" {choice.choice(_OTHERS)} "
        yield "".join(tokens)


@pytest.mark.parametrize(
    ("queries", "count"), [([*TPCH, *ACCEPTED, *ACCEPTED], 4000), (PIVOTS, 2000)], ids=["all", "pivots"]
)
def test_mutated_queries_are_accepted_and_refused_as_by_duckdb(queries: list[str], count: int) -> None:
    different, accepted, rejected = [], 0, 0
    for query in mutants(1, count, queries):
        expected = refused_by_duckdb(query)
        message = refused(query)
        if expected == "" or message == "":
            continue
        accepted += message is None
        rejected += message is not None
        if (message is None) != (expected is None):
            different.append((query, expected, message))
    assert not different
    assert accepted > count // 20 and rejected > count // 2


@pytest.mark.parametrize(
    ("query", "message", "pointed_at"),
    [
        ("SELECT CASE WHEN i = 1 'a' END", "syntax error at or near \"'a'\": expected THEN", "'a'"),
        ("SELECT f(a b", 'syntax error at or near "b": expected "," or ")"', "b"),
        ("SELECT 1 +", "syntax error at the end of the text: expected an expression", ""),
        ("FROM t JOIN u", "syntax error at the end of the text: expected ON or USING", ""),
        ("FROM t JOIN u ON a GROUP a", 'syntax error at or near "a": expected BY', "a"),
        ("SELECT 1 < 2 < 3", "cannot be chained; combine them with AND", "<"),
        ("SELECT 1.2.3", "this is no number", "1.2.3"),
        ("SELECT 1e", "this is no number", "1e"),
        ("SELECT .5E-", "this is no number", ".5E-"),
        ("SELECT 1e5e", "this is no number", "1e5e"),
        ("SELECT 1e5e FROM t", "this is no number", "1e5"),
        ("SELECT 1 /* a", "the comment that starts here is never closed", "/*"),
        ('SELECT "a', 'the text that starts here is never closed: " is missing', '"'),
        ("SELECT i FORM t", 'the end of the statement; did you mean "FROM"?', "t"),
        ("SELECT i FROM t WEHRE i = 1", 'the end of the statement; did you mean "WHERE"?', "i"),
        ("SELEC 1", 'FROM, WITH or VALUES; did you mean "SELECT"?', "SELEC"),
        ("GRANT x", "expected a query, which begins with SELECT, FROM, WITH or VALUES", "GRANT"),
        ("SELECT\u20281", "expected a query", "SELECT\u20281"),
        ("SELECT\u00851", "expected a query", "SELECT\u00851"),
    ],
)
def test_errors_say_what_was_expected(query: str, message: str, pointed_at: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse(query)
    assert message in raised.value.message
    assert raised.value.span is not None
    start, stop = raised.value.span
    assert query[start:stop].strip() == pointed_at


@pytest.mark.parametrize("blank", ["\u00a0", "\u200b", "\u3000", "\ufeff", "\n", "\x0b"])
def test_blanks_are_those_of_duckdb(blank: str) -> None:
    assert refused(f"SELECT{blank}1") is None
    assert refused_by_duckdb(f"SELECT{blank}1") is None


@pytest.mark.parametrize("sign", [" AND ", " OR ", " + ", " || ", " -> "])
def test_chains_of_operators_cost_no_stack(sign: str) -> None:
    assert refused("SELECT " + sign.join(["a"] * 5000)) is None


def test_parentheses_cost_a_few_frames() -> None:
    depth = 500
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10 * depth)
    try:
        assert refused("SELECT " + "(" * depth + "1" + ")" * depth) is None
        assert refused("SELECT " + "(" * depth + "1" + ")" * (depth - 1)) is not None
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize(
    "query",
    [
        "CREATE NONSENSE",
        "CALL f()",
        "EXPLAIN (FORMAT json) SELECT 1",
        "EXPLAIN (ANALYZE) SELECT 1",
        "SHOW TABLES FROM main",
        "SELECT * FROM a JOIN b NEAREST BY DISTANCE x",
        "SELECT * FROM a JOIN BY (TYPE b) c ON d",
        "SELECT 1 FROM t AT (VERSION => 3)",
        "SELECT OPERATOR(+) 1",
        "SELECT a.'b'.c",
        "SELECT 1 OPERATOR(pg_catalog.+) 1",
        "SELECT 1 !! 2",
    ],
)
def test_other_features_are_unsupported_and_nothing_is_printed(
    query: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnsupportedError, match="not supported"):
        bound(query)
    assert capfd.readouterr() == ("", "")
