"""Texts that differ by constants of predicates are known by their words, and no others are taken for such."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database
from tqp.compiled import KnownShape
from tqp.planner.shapes import ShapeConstants
from tqp.planner.templates import split

_TABLE = pa.table(
    {
        "b": pa.array([1, 5, 7, -3, None, 100], pa.int8()),
        "i": pa.array([1, 5, 300, 70_000, None, -5], pa.int32()),
        "n": pa.array([1, 5, 300, 2**40, None, -5], pa.int64()),
        "x": pa.array([0.5, 5.0, 2.5, None, float("inf"), -0.0]),
        "s": ["a", "it's", "é", None, "a%", "b"],
        "d": pa.array([0, 8766, 9131, None, 9000, 8767], pa.date32()),
        "m": pa.array([1, 5, 250, -5, None, 0], pa.int32())
        .cast(pa.decimal128(12, 0))
        .cast(pa.decimal128(12, 2)),
    }
)


class Known:
    """A connection with the table, beside DuckDB; counts the texts that it knew by their words."""

    def __init__(self, connection: tqp.Connection, oracle: duckdb.DuckDBPyConnection) -> None:
        self.connection, self._oracle, self.by_words = connection, oracle, 0
        connection.register("t", _TABLE)
        oracle.register("t", _TABLE)
        find = connection._queries._program_of_words

        def counted(*arguments: object) -> object:
            program = find(*arguments)  # type: ignore[arg-type]
            self.by_words += program is not None
            return program

        connection._queries._program_of_words = counted  # type: ignore[method-assign, assignment]

    def check(self, query: str, params: Any = None) -> None:
        """Both answer alike, names and types included, or both refuse."""
        try:
            expected = self._oracle.sql(query, params=params)
            rows = expected.fetchall()
        except duckdb.Error:
            with pytest.raises(tqp.Error):
                self.connection.sql(query, params).fetchall()
            return
        result = self.connection.sql(query, params)
        assert list(result.columns) == expected.columns, query
        assert [str(each) for each in result.types] == [str(each) for each in expected.types], query
        assert sorted(map(repr, result.fetchall())) == sorted(map(repr, rows)), query


@pytest.fixture(params=["host", "torch"])
def known(request: pytest.FixtureRequest) -> Iterator[Known]:
    with (
        duckdb_database() as oracle,
        tqp.connect(threads=1, backend=request.param) as connection,
        patch.object(KnownShape, "is_worth_parameters", lambda *_: True),
    ):
        yield Known(connection, oracle)


def _texts(form: str, constants: Sequence[object]) -> list[str]:
    return [form.format(*(each if isinstance(each, tuple) else (each,))) for each in constants]


_SHARED: dict[str, Sequence[object]] = {
    "SELECT i FROM t WHERE i > {}": (1, 5, 6, 2147483647),
    "SELECT i FROM t WHERE b = {}": (1, 5, 7, 127),
    "SELECT i FROM t WHERE -{} < i AND i <> {}": ((1, 5), (300, 1), (0, 4), (5, 5)),
    "SELECT i FROM t WHERE x >= {}": ("0.5", "2.4", "5.0"),
    "SELECT i FROM t WHERE m BETWEEN {} AND {}": (("1.00", "5.00"), ("0.01", "2.50"), ("9.99", "1.00")),
    "SELECT i FROM t WHERE s = '{}'": ("a", "it''s", "é", "", "nothing"),
    "SELECT i FROM t WHERE s LIKE '{}%' OR s LIKE '%{}'": (("a", "s"), ("it''", "b"), ("é", "b")),
    "SELECT i FROM t WHERE d >= DATE '{}' AND d < DATE '{}' + INTERVAL '{}' DAY": (
        ("1994-01-01", "1994-01-01", 1),
        ("1970-01-01", "1995-01-01", 90),
        ("1994-01-02", "1994-12-31", 1),
    ),
    "SELECT i FROM t WHERE d > '{}'": ("1994-01-01", "1970-01-01", "2000-02-29"),
    "SELECT i FROM t WHERE i IN ({}, {}, {}) AND s NOT IN ('{}', '{}')": (
        (1, 5, 6, "a", "b"),
        (300, 5, 7, "x", "é"),
        (1, 2, 3, "b", "a"),
    ),
    "SELECT i FROM t WHERE m BETWEEN {} - 0.01 AND {} + 0.01": (
        ("5.00", "5.00"),
        ("0.99", "1.00"),
        ("2.50", "2.51"),
    ),
    "SELECT sum(CASE WHEN s = '{}' THEN i ELSE 0 END) AS v FROM t GROUP BY b > {} HAVING count(*) > {}": (
        ("a", 3, 0),
        ("b", 5, 1),
        ("é", 7, 2),
    ),
    "WITH w AS (SELECT * FROM t WHERE i > {}) SELECT a.i FROM w a JOIN w b ON a.i = b.n AND b.n <> {}": (
        (1, 7),
        (5, 300),
        (6, 0),
    ),
    "SELECT i FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.n = t.i AND u.n < {}) /* 5 */ -- 'a'\n": (
        5,
        6,
        301,
    ),
    "SELECT i FROM t ORDER BY i LIMIT {}": (1, 2, 0, 64, 7),
    "SELECT s FROM t ORDER BY b LIMIT {} OFFSET {}": ((2, 1), (2, 2), (0, 5), (60, 4), (1, 63)),
    "SELECT i FROM t WHERE i > {} ORDER BY i OFFSET {} LIMIT {}": ((0, 1, 2), (5, 0, 2), (1, 2, 1)),
    "FROM t SELECT i UNION ALL SELECT b FROM t ORDER BY 1 LIMIT {}": (3, 9),
}


@pytest.mark.parametrize("form", _SHARED)
def test_texts_with_other_constants_are_known_by_their_words(
    form: str, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShapeConstants, "keep_alike", lambda self, shares: True)
    texts = _texts(form, _SHARED[form])
    for text in (*texts, *texts):
        known.check(text)
    assert known.by_words == 2 * len(texts) - 1


_APART: dict[str, Sequence[object]] = {
    # another type
    "SELECT i FROM t WHERE n = {}": (5, "5.0", "1e0", 5_000_000_000, "'5'", "'x'", "1_0", 10**30),
    "SELECT i FROM t WHERE b = {}": (5, 300, 7, -3, 128, "5.5"),
    "SELECT i FROM t WHERE m > {}": ("2.5", "2.50", "2.505", "0.1", "99999999999999999999.9"),
    # constants that fail
    "SELECT i FROM t WHERE d = DATE '{}'": ("1994-01-01", "1994-13-01", "x", "1994-01-02"),
    "SELECT i FROM t WHERE i > {} + {}": ((1, 2), (2147483647, 1), (3, 4)),
    "SELECT i FROM t WHERE b > CAST('{}' AS TINYINT)": (1, 300, "x", 5),
    # constants that decide something else
    "SELECT i FROM t ORDER BY i LIMIT {}": (
        1,
        "1.5",
        -3,
        "NULL",
        "'3'",
        "1e0",
        "1_0",
        65,
        2**40,
        2**63,
        "3%",
        "1 + 1",
    ),
    "SELECT i FROM t ORDER BY i LIMIT 2 OFFSET {}": (1, "1.5", -3, "NULL", "'3'", 63, 2**40, 2**63, 6, 7),
    "SELECT i FROM (SELECT i FROM t ORDER BY i LIMIT {}) ORDER BY i DESC LIMIT {}": (
        (3, 1),
        (1, 3),
        (2, 2),
        (3, 3),
    ),
    "(SELECT i FROM t ORDER BY i LIMIT {}) ORDER BY i DESC LIMIT {}": ((3, 3), (1, 3), (3, 1)),
    "SELECT (SELECT s FROM t u ORDER BY s LIMIT {}), i FROM t ORDER BY i LIMIT {}": ((1, 1), (0, 1), (1, 0)),
    "SELECT i, b, s FROM t WHERE i > 0 ORDER BY {} LIMIT 2": (1, 2, 3),
    "SELECT i > {} FROM t": (1, 5, 300),
    "SELECT * FROM (SELECT i > {} FROM t)": (1, 5, 300),
    "SELECT {} AS k, i FROM t WHERE i > k AND k > 3": (1, 5, 4, 2),
    "SELECT i FROM t WHERE {} > 3 AND i > 0": (1, 5, 4, 2),
    "SELECT i FROM t WHERE {} BETWEEN 3 AND i": (1, 5, 4, 2),
    "SELECT i FROM t WHERE i IN ({}, {})": ((5, 5), (1, 5), (5, 1), (1, 1)),
    "SELECT i FROM t WHERE i = {} AND i = {}": ((5, 5), (5, 1), (1, 1), ("05", 5), (5, "05")),
    "SELECT i FROM t WHERE i = {} OR i = {}": ((5, 5), (5, 1), (1, 1)),
    "SELECT i = {} AS k, count(*) AS c FROM t GROUP BY i = {}": ((5, 5), (1, 1), (5, 1)),
    "SELECT round(x, {}) AS r FROM t WHERE x < 3": (0, 1),
    "SELECT round(m, {}) AS r FROM t WHERE i < 3": (0, 1),
    "SELECT substring(s, {}, 1) AS r FROM t WHERE substring(s, {}, 1) = 'a'": ((1, 1), (2, 1), (1, 2)),
    "SELECT CAST(i AS DECIMAL(12, {})) AS r FROM t WHERE i < 3": (0, 1),
    "SELECT i FROM t WHERE d > DATE '1994-01-01' + INTERVAL {} DAY": (1, "'1.5'", "'x'", 90),
    "SELECT i FROM t WHERE s LIKE '{}'": ("a", "a%", "%a", "%a%", "_", "%", "a_", "%t%s%"),
    "SELECT i FROM t WHERE s LIKE '{}' ESCAPE '{}'": (("a%", ""), ("a!%", "!"), ("a!", "!")),
    "SELECT i FROM t WHERE s SIMILAR TO '{}'": ("a", "a.*", "(", "b"),
    "SELECT i FROM t WHERE s = {}'a'": ("", "E", "x"),
    "SELECT i FROM t WHERE date_part('{}', d) = {}": (("year", 1994), ("month", 1), ("x", 1)),
    "SELECT i FROM t WHERE (i, b) = ({}, {})": ((5, 5), (1, 1), (1, 5)),
    "SELECT i FROM t WHERE i > ALL (SELECT n FROM t WHERE n < {})": (2, 6, -9),
    "SELECT '{}' AS s, i FROM t WHERE i > 0": ("a", "b"),
    "SELECT CASE i WHEN {} THEN 'a' END AS c FROM t": (1, 5),
    "SELECT i FROM t WHERE coalesce(b, {}) = {}": ((1, 1), (5, 5), (300, 300)),
    "SELECT i FROM t WHERE TRY_CAST('{}' AS INTEGER) < i": (1, "x", 5),
    "SELECT i FROM t WHERE i > -{}": (5, 6, "-5"),
}


@pytest.mark.parametrize("form", _APART)
def test_texts_whose_constants_mean_more_than_values_are_told_apart(form: str, known: Known) -> None:
    texts = _texts(form, _APART[form])
    for text in (*texts, *reversed(texts), *texts):
        known.check(text)


_GIVEN: dict[str, tuple[int, Sequence[Any]]] = {
    # how many of these, in turn and once more, are known by their words
    "SELECT i FROM t WHERE i > ? AND s <> ?": (7, ((1, "a"), (5, "b"), (6, "é"), (300, ""))),
    "SELECT i FROM t WHERE i BETWEEN $low AND $high": (
        5,
        ({"low": 1, "high": 5}, {"low": 5, "high": 300}, {"high": 9, "low": -9}),
    ),
    "SELECT i FROM t WHERE d >= $1::DATE AND d < $1::DATE + INTERVAL 1 YEAR": (
        3,
        (["1994-01-01"], ["1995-01-01"]),
    ),
    "SELECT i FROM t WHERE d < ? AND i <> 5": (3, ([date(1994, 1, 2)], [date(1970, 1, 2)])),
    "SELECT i FROM t WHERE s LIKE ?": (4, (["a%"], ["b%"], ["%b"], [None])),
    "SELECT i FROM t WHERE n = ?": (6, ([5], [5.0], [2**40], [300], [None], [True])),
    "SELECT i FROM t WHERE i > ? LIMIT ?": (5, ((1, 9), (2, 9), (2, 0))),
    "SELECT i FROM t ORDER BY i LIMIT ? OFFSET ?": (
        9,
        ((1, 2), (3, 0), (None, 1), (9, None), (0, 5), (5.0, 1), (4, 1)),
    ),
    "SELECT $1 AS k, i FROM t ORDER BY i LIMIT $1": (3, ([1], [2], [1.5])),
    "SELECT i FROM t WHERE i > $1 ORDER BY i LIMIT $1": (2, ([1], [2])),
    "SELECT i = ? AS k, count(*) AS c FROM t GROUP BY i = ?": (0, ((5, 5), (5, 1))),
    "SELECT i = $1 AS k, count(*) AS c FROM t GROUP BY i = $1": (3, ([5], [1])),
    "SELECT i FROM t WHERE i = ? + 1 AND i <> ?": (5, ((4, 1), (0, 2), (299, 7))),
}


@pytest.mark.parametrize("query", _GIVEN)
def test_values_of_parameters_are_constants_too(
    query: str, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShapeConstants, "keep_alike", lambda self, shares: True)
    by_words, values = _GIVEN[query]
    for _ in range(2):
        for params in values:
            known.check(query, params)
    assert known.by_words == by_words


def test_lists_and_arrays_of_parameters(known: Known) -> None:
    for values in ([1, 5], [5, 300], [], [None, 1], np.array([1, 5])):
        answers = known.connection.sql("SELECT i FROM t WHERE i IN $ids", {"ids": values}).fetchall()
        assert sorted(answers) == [(each,) for each in values if each is not None]


def test_a_statement_is_known_by_its_words(known: Known) -> None:
    statement = known.connection.prepare("SELECT i FROM t WHERE i = ?")
    assert [statement.execute([each]).fetchall() for each in (1, 5, 7, 300, 5)] == [
        [(1,)],
        [(5,)],
        [],
        [(300,)],
        [(5,)],
    ]
    assert known.by_words == 4


def test_a_table_that_is_replaced_or_dropped(known: Known) -> None:
    connection = known.connection
    for number in range(3):
        connection.sql(f"SELECT count(*) FROM t WHERE i > {number}")
    assert known.by_words == 2
    connection.register("t", pa.table({"i": ["7", "8"]}))
    assert len(connection._queries.compiled.words) == 0
    with pytest.raises(tqp.Error):
        connection.sql("SELECT count(*) FROM t WHERE i + 1 > 3")
    assert connection.sql("SELECT count(*) FROM t WHERE i > '7'").fetchall() == [(1,)]
    connection.unregister("t")
    with pytest.raises(tqp.BindError, match='no table "t"'):
        connection.sql("SELECT count(*) FROM t WHERE i > 3")


def test_an_error_points_at_the_text_at_hand(known: Known) -> None:
    form = "SELECT 1 // (i - 5) AS q FROM t WHERE s <> '{}' AND i = 5"
    for word in ("é", "a", "a much longer one"):
        with pytest.raises(tqp.ExecutionError) as raised:
            known.connection.sql(form.format(word)).fetchall()
        line, mark = str(raised.value).splitlines()[-2:]
        assert line.endswith(form.format(word)) and line[mark.index("^") :].startswith("1 // (i - 5")


def test_texts_are_taken_apart_at_their_constants() -> None:
    for text in (
        'SELECT \'a\', 1.5, -- 2 \'\n x1, $3, "t"."y""4" FROM "3" WHERE a=.5e-3 AND b<-1 AND c=\'it\'\'s\'',
        "",
        "5",
        "'é'1",
        "SELECT 1e5, 10 / 2 - 3 .. 4",
    ):
        parts = split(text)
        assert parts is not None
        assert "".join(map("".join, zip(parts.words, (*parts.constants.values(), ""), strict=True))) == text
    parts = split("SELECT 'a', 1.5, x1 -- 2")
    assert parts is not None and parts.constants == {0: "'a'", 1: "1.5"}


@pytest.mark.parametrize(
    "text",
    [
        *("SELECT 1.2.3", "SELECT 'a", "SELECT 1_000", "SELECT /* 1 /* */ */ 2", "SELECT 5x", '"' * 3),
        *(
            "a" * 100_000 + "'",
            "- " * 50_000 + "/*",
            "1 " * 20_000 + "'",
            "'a' " * 20_000 + "'",
            "'" * 30_001,
        ),
    ],
)
def test_what_is_cut_otherwise_is_not_taken_apart_and_takes_no_time(text: str) -> None:
    started = time.process_time()
    assert split(text) is None
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT {} || E'\\\\' || '{}'",
        "SELECT $${}$$ || '{}'",
        "SELECT x'0{}' || '{}'::BLOB",
        "SELECT '{}'\n'{}'",
    ],
)
def test_texts_whose_tokens_lie_elsewhere_are_bound_each(known: Known, text: str) -> None:
    for number in range(4):
        known.check(f"SELECT * FROM ({text.format(number, number + 1)}) q(v), t WHERE b > {number}")
