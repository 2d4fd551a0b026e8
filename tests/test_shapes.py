"""Queries of one shape share a program whose constants are parameters: with the answers of plans made for each."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.conftest import TPCH_SCALE_FACTOR
from tests.oracle import duckdb_database, duckdb_rows
from tests.random.shapes import Pairs
from tqp.compiled import KnownShape
from tqp.measuring.verify import difference
from tqp.tpch.constants import with_new_constants
from tqp.tpch.data import DATA
from tqp.tpch.query import QUERY_NUMBERS, load_query

_ROWS = 300
_RANDOM = np.random.default_rng(5)


def _column(values: object, data_type: pa.DataType | None = None, nulls: float = 0.2) -> pa.Array:
    return pa.array(values, data_type, mask=_RANDOM.random(_ROWS) < nulls if nulls else None)


def _money(data_type: pa.DataType) -> pa.Array:
    return _column(
        [Decimal(int(cents)) / 100 for cents in _RANDOM.integers(-500, 500, _ROWS)], data_type, 0.0
    )


_TABLE = pa.table(
    {
        "byte": _column(_RANDOM.integers(-128, 128, _ROWS), pa.int8()),
        "most": _column(np.where(np.arange(_ROWS) % 2, 127, 120), pa.int64(), 0.0),
        "least": _column(np.where(np.arange(_ROWS) % 2, -128, -3), pa.int32()),
        "edges": _column(_RANDOM.choice([-(2**63), 2**63 - 1, 0], _ROWS), pa.int64()),
        "unsigned": _column(_RANDOM.choice(np.array([0, 2**64 - 1, 7], np.uint64), _ROWS), pa.uint64()),
        "real": _column(_RANDOM.choice([0.5, -0.0, np.nan, np.inf, 2.0], _ROWS)),
        "single": _column(_RANDOM.choice([0.5, -1.5, np.nan], _ROWS).astype(np.float32)),
        "money": _money(pa.decimal128(9, 2)),
        "wide": _money(pa.decimal128(38, 2)),
        "day": _column(_RANDOM.integers(9000, 9100, _ROWS).astype("datetime64[D]")),
        "instant": _column(_RANDOM.integers(0, 10, _ROWS).astype("datetime64[us]")),
        "word": _column(_RANDOM.choice(["", "a", "b", "é", "zz"], _ROWS)),
        "text": _column([f"row {number}" for number in range(_ROWS)]),
    }
)
_CONSTANTS: dict[str, list[str]] = {
    "byte": ["0", "5", "-128", "127", "-129", "300", "100000"],
    "most": ["127", "126", "128", "120", "119", "-1", "1000"],
    "least": ["-128", "-129", "-3", "-2", "0"],
    "edges": ["9223372036854775807", "9223372036854775806", "4294967296000"],
    "unsigned": ["7", "8", "0", "1"],
    "real": ["0.5e0", "0e0", "-1e0", "1e308", "'infinity'::DOUBLE"],
    "single": ["0.5::FLOAT", "0.25::FLOAT", "-1.5::FLOAT", "0::FLOAT"],
    "money": ["1.25", "0.00", "9.99", "-4.99"],
    "wide": ["1.25", "0.00", "9.99", "-4.99"],
    "day": ["DATE '1994-09-01'", "DATE '1994-08-23'", "DATE '1900-01-01'", "DATE '2100-01-01'"],
    "instant": ["TIMESTAMP '1970-01-01 00:00:00.000003'", "TIMESTAMP '1970-01-01'", "TIMESTAMP '2000-01-01'"],
    "word": ["''", "'a'", "'aa'", "'é'", "'zzz'", "'~'"],
    "text": ["'row 7'", "'row'", "'row 99'", "''", "'s'"],
}


def _variants(connection: tqp.Connection) -> int:
    return sum(len(known.variants) for known, _ in connection._queries.compiled.shapes._items.values())


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("column", _CONSTANTS)
def test_comparisons_with_other_constants(column: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KnownShape, "is_worth_parameters", lambda *_: True)
    for operator in ("=", "<>", "<", "<=", ">", ">="):
        with tqp.connect(threads=1, backend=backend, batch_rows=128) as connection:
            connection.register("t", _TABLE)
            for number, constant in enumerate(_CONSTANTS[column]):
                condition = (
                    f"{column} {operator} {constant}" if number % 2 else f"{constant} {operator} {column}"
                )
                for where in (condition, f"NOT ({condition})", f"({condition}) IS NULL OR byte = {number}"):
                    query = f"SELECT text, byte FROM t WHERE {where} ORDER BY ALL"
                    assert connection.sql(query).fetchall() == duckdb_rows({"t": _TABLE}, query), query
            assert len(connection._queries.compiled.programs) == 0


def _agree(backend: str, queries: Iterable[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of programs that the queries, in turn by programs with parameters, have made."""
    monkeypatch.setattr(KnownShape, "is_worth_parameters", lambda *_: True)
    with tqp.connect(threads=1, backend=backend, batch_rows=128) as connection:
        connection.register("t", _TABLE)
        for query in queries:
            assert connection.sql(query).fetchall() == duckdb_rows({"t": _TABLE}, query), query
        assert len(connection._queries.compiled.programs) == 0
        return _variants(connection)


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("length", [2, 9])
@pytest.mark.parametrize("column", _CONSTANTS)
def test_lists_with_other_constants(
    column: str, length: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(length)
    constants = [*_CONSTANTS[column], *(["'row 1'", "'a0'"] if column in ("word", "text") else [])]
    for form in ("{} IN ({})", "{} NOT IN ({})", "({} IN ({})) IS NULL OR byte = 5"):
        lists = (", ".join(random.choices(constants, k=length)) for _ in range(4))
        queries = (
            f"SELECT text, byte FROM t WHERE {form.format(column, each)} ORDER BY ALL" for each in lists
        )
        _agree(backend, queries, monkeypatch)


_PATTERNS = (
    "'row%'",
    "'%9'",
    "'%1%'",
    "'%o%1%'",
    "'row 1'",
    "'_ow%'",
    "''",
    "'%'",
    "'%%'",
    "'é'",
    "'r%'",
    "'ROW%7'",
)


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("operand", ["text", "word", "left(word, 1)", "text || word"])
def test_patterns_with_other_words(operand: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = (
        "{} LIKE {}",
        "{} NOT LIKE {}",
        "{} ILIKE {}",
        "starts_with({}, {})",
        "suffix({}, {})",
        "contains({}, {})",
    )
    for form in forms:
        conditions = (form.format(operand, pattern) for pattern in _PATTERNS)
        queries = (
            f"SELECT text, {each} AS b FROM t WHERE {each} IS NOT FALSE ORDER BY ALL" for each in conditions
        )
        _agree(backend, queries, monkeypatch)


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_words_of_one_kind_of_pattern_share_a_program(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (
        ("r%", "row 1%", "x%", "%"),
        ("%1", "%9", "%x"),
        ("%1%", "%ow%"),
        ("%r%1%", "%w%2%"),
        ("a", "row 1"),
    ):
        queries = (f"SELECT count(*) FROM t WHERE text LIKE '{word}'" for word in words)
        assert _agree(backend, queries, monkeypatch) == 1


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_constants_outside_of_conditions(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for form in (
        "SELECT text, CASE WHEN word = '{word}' THEN money ELSE 0 END AS m FROM t ORDER BY ALL",
        "SELECT sum(CASE WHEN word = '{word}' THEN most ELSE byte END) AS s, count(*) FILTER (byte > {number}) AS n FROM t",
        "SELECT byte > {number} AS b, count(*) FROM t GROUP BY b ORDER BY ALL",
        "SELECT text FROM t ORDER BY byte > {number}, word IN ('{word}', 'b'), text",
        "SELECT DISTINCT word LIKE '{word}%' AS b FROM t ORDER BY 1",
    ):
        pairs = (("a", 5), ("zz", 7), ("é", -3), ("", 100))
        queries = (form.format(word=word, number=number) for word, number in pairs)
        assert _agree(backend, queries, monkeypatch) == 1


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_other_limits(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [(3, 0), (0, 0), (64, 0), (10, 54), (0, 64), (1, 63), (0, 3)]
    for form in (
        "SELECT text, word, day, money, wide, most FROM t ORDER BY text, money, wide, day, word LIMIT {} OFFSET {}",
        "SELECT text, most FROM t ORDER BY most, text NULLS FIRST OFFSET {1} LIMIT {0}",
        "SELECT word, count(*) AS n FROM t GROUP BY word ORDER BY n, word LIMIT {} OFFSET {}",
        "SELECT word FROM t UNION ALL SELECT text FROM t ORDER BY 1 LIMIT {} OFFSET {}",
        "SELECT [word, text] AS both FROM t ORDER BY text DESC, word LIMIT {} OFFSET {}",
        "SELECT text FROM t LIMIT {} OFFSET {}",
        "WITH w AS MATERIALIZED (SELECT text FROM t LIMIT 20) SELECT upper(text) FROM w LIMIT {} OFFSET {}",
    ):
        assert _agree(backend, (form.format(*rows) for rows in limits), monkeypatch) == 1
        mixed = [*limits, (300, 0), (5000, 1), (10**12, 2), (1, 10**9), (0, 10**18), *limits]
        with tqp.connect(threads=2, backend=backend) as connection:
            connection.register("t", _TABLE)
            for rows in mixed:
                query = form.format(*rows)
                assert connection.sql(query).fetchall() == duckdb_rows({"t": _TABLE}, query), query


def test_rows_that_draw_from_a_sequence_are_no_more_than_those_wanted() -> None:
    with tqp.connect() as connection:
        connection.sql("CREATE SEQUENCE s")
        connection.register("t", _TABLE)
        least = 1
        for outer in ("", " LIMIT {0}"):
            for limit in (3, 2, 4):
                query = f"SELECT nextval('s') FROM (FROM t LIMIT {{0}}){outer}".format(limit)
                assert connection.sql(query).fetchall() == [(least + number,) for number in range(limit)]
                least += limit


def test_an_error_of_a_row_that_is_not_wanted_is_none() -> None:
    with tqp.connect(batch_rows=2) as connection:
        connection.register("t", pa.table({"s": ["1", "2", "3", "4", "x"]}))
        for limit in (1, 2, 1, 2):
            rows = connection.sql(f"SELECT s::INT FROM t LIMIT {limit}").fetchall()
            assert rows == [(number + 1,) for number in range(limit)]


def test_the_second_text_of_a_shape_makes_the_program_of_the_others() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", _TABLE)
        for number in range(8):
            connection.sql(f"SELECT count(*) FROM t WHERE text <> 'row {number}' AND money > 1.0{number}")
        assert _variants(connection) == 1 and len(connection._queries.compiled.programs) == 1
        connection.sql("SELECT count(*) FROM t WHERE text <> 'row 7' AND money > 1.07")
        assert len(connection._queries.compiled.programs) == 2  # sent again: planned for its own constants


def test_what_tells_shapes_apart() -> None:
    queries = (
        "SELECT byte FROM t WHERE byte > 1 AND byte <> 2",
        "SELECT byte FROM t WHERE byte > 2 AND byte <> 3",  # one shape with the first
        "SELECT byte FROM t WHERE byte > 1.5 AND byte <> 2",  # that too: a constant of the column's type does as well
        "SELECT byte FROM t WHERE byte > 2 AND byte <> 2",  # and this: the constants may be equal
        "SELECT byte AS b FROM t WHERE byte > 1 AND byte <> 2",  # and this: names are no part of it
        "SELECT most + 1 FROM t WHERE byte > 1 AND byte <> 2",
        "SELECT most + 2 FROM t WHERE byte > 1 AND byte <> 2",
        "SELECT byte FROM t WHERE byte > 1 AND byte <> 2 LIMIT 1",
        "SELECT byte FROM t WHERE byte > 1 AND byte <> 2 LIMIT 5 OFFSET 9",  # one shape with the one before
        "SELECT byte FROM t WHERE byte > 1 AND byte <> 2 LIMIT 100",
        "SELECT byte FROM t WHERE byte > 1 AND byte <> NULL",
    )
    with tqp.connect(threads=1) as connection:
        connection.register("t", _TABLE)
        for query in queries:
            connection.sql(query)
        assert len(connection._queries.compiled.shapes) == len(queries) - 5


def test_one_constant_in_two_places_may_become_two() -> None:
    query = "SELECT byte FROM t WHERE byte > {} AND byte <> {} ORDER BY byte"
    with tqp.connect(threads=1) as connection:
        connection.register("t", _TABLE)
        for first, second in ((1, 1), (2, 2), (3, 3), (1, 2), (2, 3), (3, 3), (2, 1)):
            expected = sorted(
                each for each in _TABLE["byte"].to_pylist() if each and each > first and each != second
            )
            assert connection.sql(query.format(first, second)).fetchall() == [(each,) for each in expected]


def test_a_constant_that_keeps_another_share_of_the_rows_has_a_plan_of_its_own() -> None:
    rows = pa.table({"k": np.arange(100_000)})
    with tqp.connect(threads=1) as connection:
        connection.register("t", rows)
        for least, variants in ((1, 0), (2, 1), (30_000, 1), (99_990, 2), (99_980, 2), (5, 2)):
            query = f"SELECT count(*) FROM t a JOIN t b USING (k) WHERE k >= {least}"
            assert connection.sql(query).fetchall() == [(100_000 - least,)]
            assert _variants(connection) == variants


def test_a_constant_that_many_rows_hold_has_a_plan_of_its_own() -> None:
    values = np.where(np.arange(100_000) % 4 == 3, 7, np.arange(100_000))
    with tqp.connect(threads=1) as connection:
        connection.register("t", pa.table({"k": values}))
        for constant, count, variants in ((5, 1, 0), (6, 1, 1), (7, 25_000, 2), (9, 1, 2), (7, 25_000, 2)):
            query = f"SELECT count(*) FROM t WHERE k = {constant}"
            assert connection.sql(query).fetchall() == [(count,)]
            assert _variants(connection) == variants


def test_ranges_in_an_or_are_no_range_together() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", pa.table({"k": np.arange(100_000)}))
        for low, high, variants in (
            (5, 99_990, 0),
            (7, 99_991, 1),
            (40_000, 60_000, 2),
            (40_001, 60_001, 2),
            (9, 99_995, 2),
        ):
            query = f"SELECT count(*) FROM t a JOIN t b USING (k) WHERE k < {low} OR k >= {high}"
            assert connection.sql(query).fetchall() == [(low + 100_000 - high,)]
            assert _variants(connection) == variants


def test_a_table_that_is_replaced_takes_its_shapes_with_it() -> None:
    with tqp.connect(threads=1) as connection:
        for rows in ([1, 2, 3], [2000, 70000]):
            connection.register("t", pa.table({"k": rows}))
            for number in range(4):
                expected = [(sum(row != number for row in rows),)]
                assert connection.sql(f"SELECT count(*) FROM t WHERE k <> {number}").fetchall() == expected
            assert _variants(connection) == 1
        connection.unregister("t")
        assert len(connection._queries.compiled.shapes) == 0
        with pytest.raises(tqp.BindError, match='no table "t"'):
            connection.sql("SELECT count(*) FROM t WHERE k <> 9")


def test_parameters_of_a_text_are_constants() -> None:
    query = "SELECT text FROM t WHERE day > ? AND money < ? ORDER BY ALL"
    days = [np.datetime64("1994-09-01").item(), None, np.datetime64("1994-08-25").item()]
    with tqp.connect(threads=1) as connection, duckdb_database() as oracle:
        connection.register("t", _TABLE)
        oracle.register("t", _TABLE)
        for day in days:
            for money in (1, None, 2, 3, 2.5, "1.25"):
                assert (
                    connection.sql(query, [day, money]).fetchall()
                    == oracle.execute(query, [day, money]).fetchall()
                )


def test_an_error_speaks_of_the_query_that_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KnownShape, "is_worth_parameters", lambda *_: True)
    with tqp.connect(threads=1) as connection:
        connection.register("t", pa.table({"s": ["1", "x"], "k": [1, 2]}))
        for word in ("y", "yy"):
            query = f"SELECT s::INT FROM t WHERE s <> '{word}' AND s::INT + 1 > k"
            with pytest.raises(tqp.ExecutionError, match="Could not convert string 'x'") as caught:
                connection.sql(query)
            assert query in str(caught.value)


@pytest.mark.parametrize("group", [1, 2, 3])
def test_random_shapes(group: int) -> None:
    pairs = Pairs()
    pairs.run(7, group)
    # Some three fifths of the texts are answered by a shared program; a group draws 20 shapes, so the share varies.
    assert pairs.outcomes["equal"] > pairs.outcomes.total() / 3 and not pairs.differences


@pytest.mark.parametrize("number", QUERY_NUMBERS)
def test_tpch_with_other_constants(number: int, tpch_data: Path) -> None:
    query, random = load_query(number, TPCH_SCALE_FACTOR), Random(number)
    with tqp.connect(threads=2) as connection, duckdb_database() as oracle:
        for table, path in DATA.paths(tpch_data).items():
            connection.register(table, str(path))
            oracle.execute(f"CREATE VIEW {table} AS FROM read_parquet('{path}')")
        for _ in range(4):
            text = with_new_constants(query, random).text_without_limit
            expected = oracle.sql(text).to_arrow_table()
            assert difference(connection.sql(text).to_arrow(), expected, query.order_by) is None, text


def test_explain_says_which_constants_may_vary() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", _TABLE)
        text = connection.explain(
            "SELECT byte + 1 FROM t WHERE money > 1.25 AND word IN ('a', 'b') AND text LIKE 'row%' AND word <> 'a' LIMIT 3"
        )
        assert text.partition("\n\nShape\n")[2].splitlines() == [
            "money > ?1  (?1 = 1.25; others that keep about as many rows)",
            "word IN (?2, ?3)  (?2 = 'a'; ?3 = 'b')",
            "starts_with(text, ?4)  (?4 = 'row')",
            "word <> ?2  (?2 = 'a')",
            "Limit 3  (others of the first 64 rows)",
        ]
        assert "\n\nShape\n" in connection.explain("SELECT 1 FROM t WHERE byte = 1", analyze=True)
        assert "Shape" not in connection.explain("SELECT byte + 1 FROM t")
