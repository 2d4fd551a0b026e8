"""Dictionaries whose entries stand as they came: queries by equality take their codes, those by order their ranks; as DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch

import tqp
from tests.oracle import assert_same_rows, duckdb_database
from tqp.data.column import Column
from tqp.data.encoding import dictionary_order, strings
from tqp.data.encoding.columns import encode_column
from tqp.data.encoding.dictionary_order import DictionaryOrder, order_of_dictionary
from tqp.data.results.to_arrow import column_to_arrow

_RANDOM = np.random.default_rng(3)
_WORDS = np.array(
    ["", "z", "é", "a", "ab", "a" * 40, "\U0010ffff", *(f"word {n * 37 % 101}" for n in range(90))]
)


def _some(rows: int, nulls: float) -> pa.Array:
    return pa.array(_RANDOM.choice(_WORDS, rows), mask=_RANDOM.random(rows) < nulls)


_TABLES = {
    "t": pa.table(
        {
            "s": _some(3000, 0.1),
            "b": _some(3000, 0.0).cast(pa.binary()),
            "r": _some(3000, 0.2),
            "g": pa.array(_RANDOM.integers(0, 9, 3000)),
            "x": pa.array(_RANDOM.permutation(3000)),
        }
    ),
    "u": pa.table({"s": _some(200, 0.1), "y": pa.array(range(200))}),
}
#: Those that ask for the order of a dictionary, and those that do not.
_BY_ORDER = (
    "SELECT min(s), max(s), min(b), max(r) FROM t",
    "SELECT g, min(s), max(s), min(r) FILTER (x < 100) FROM t GROUP BY g",
    "SELECT s, x FROM t ORDER BY s DESC NULLS LAST, x LIMIT 50",
    "SELECT s, b, x FROM t ORDER BY s, b, x",
    "SELECT x, rank() OVER (ORDER BY s), min(s) OVER (PARTITION BY r ORDER BY b, x) FROM t",
    "SELECT g, arg_min(x, s || '') , arg_max(s, x), first(x ORDER BY s, x), list(s ORDER BY s) FROM t GROUP BY g",
    "SELECT g, quantile_disc(s, 0.3), median(s) FROM t WHERE s > 'b' GROUP BY g ORDER BY g",
    "SELECT a.x FROM t a JOIN u ON a.g = u.y AND a.s < u.s",
    "SELECT DISTINCT ON (g) g, s FROM t ORDER BY g, s, x",
    "SELECT least(s, r), greatest(s, r) FROM t",
    "SELECT x FROM t WHERE s = (SELECT max(s) FROM t)",
)
_BY_EQUALITY = (
    "SELECT g, s, x FROM t ORDER BY g, s DESC, x LIMIT 40",
    "SELECT s, count(*) c FROM t GROUP BY s ORDER BY c DESC, s NULLS FIRST LIMIT 5",
    "SELECT s, count(*), sum(x) FROM t GROUP BY s",
    "SELECT s, r, count(*) FROM t GROUP BY ALL",
    "SELECT DISTINCT s, b FROM t",
    "SELECT count(DISTINCT s), count(DISTINCT r) FROM t",
    "SELECT g, count(DISTINCT s) FROM t GROUP BY g",
    "SELECT x FROM t WHERE s = 'word 7' OR s IN ('a', 'ab', 'nothing', '') OR r = ''",
    "SELECT x FROM t WHERE s <> 'word 8' AND r NOT IN ('a', 'word 1', 'word 2', 'word 3', 'word 4', 'word 5', 'z', 'é')",
    "SELECT x FROM t WHERE s = 'nothing'",
    "SELECT x FROM t WHERE s LIKE 'word 1%' OR s LIKE '%é' OR s LIKE 'ab' OR starts_with(r, 'a')",
    "SELECT x FROM t WHERE s < 'word 3' OR r BETWEEN 'a' AND 'word'",
    "SELECT x, upper(s), length(s), s || '!' FROM t",
    "SELECT a.x, y FROM t a JOIN u ON a.s = u.s",
    "SELECT a.x FROM t a SEMI JOIN u ON a.s = u.s AND a.r IS DISTINCT FROM u.s",
    "SELECT x FROM t WHERE s = r OR s IS NOT DISTINCT FROM r",
    "SELECT s, count(*) OVER (PARTITION BY s) FROM t",
    "SELECT any_value(s) FROM (SELECT s FROM t WHERE s = 'a')",
    "SELECT s FROM t UNION SELECT s FROM u EXCEPT SELECT r FROM t WHERE x < 100",
    "SELECT CASE WHEN g < 4 THEN s ELSE NULL END c, count(*) FROM t GROUP BY c",
)


@pytest.fixture(autouse=True)
def _unsorted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(strings, "_SORTED", 0)
    yield


@pytest.mark.parametrize("query", [*_BY_ORDER, *_BY_EQUALITY])
@pytest.mark.parametrize("batch_rows", [None, 700])
def test_as_duckdb(query: str, batch_rows: int | None) -> None:
    tables = {name: table.slice(0) for name, table in _TABLES.items()}
    ordered = query if "ORDER BY" in query.rpartition(")")[2] else f"FROM ({query}) ORDER BY ALL"
    assert_same_rows(tables, ordered, batch_rows=batch_rows)


def test_texts_of_one_shape_find_their_words() -> None:
    with tqp.connect() as connection, duckdb_database() as oracle:
        connection.register("t", _TABLES["t"].slice(0))
        oracle.register("t", _TABLES["t"])
        for where in (
            "s = '{}'",
            "s <> '{}'",
            "s < '{}'",
            "starts_with(s, '{}')",
            "s IN ('{0}', 'a', '{0}x')",
        ):
            for word in ("word 3", "", "é", "nothing", "a", "\U0010ffff"):
                query = f"SELECT x FROM t WHERE {where.format(word)} ORDER BY x"
                assert connection.sql(query).fetchall() == oracle.sql(query).fetchall()


@pytest.mark.cpu
@pytest.mark.parametrize("query", [*_BY_ORDER, *_BY_EQUALITY])
def test_the_order_is_made_where_it_is_asked_for(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with tqp.connect() as connection:
        for name, table in _TABLES.items():
            connection.register(name, table.slice(0))
        connection.sql(query).fetchall()
        kept = [what for name in _TABLES for _, what, _ in connection._snapshot().lookup(name).kept()]
        asks = query in _BY_ORDER and "least(" not in query and "a.s < u.s" not in query
        assert (DictionaryOrder.KEPT in kept) == asks


@pytest.mark.parametrize("rows", [0, 1, 7, 4000])
def test_ranks_are_the_places_of_the_entries_in_order(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary_order, "WORTH_SHARING", 100)
    texts = [f"{number * 7919 % 109}é" * (number % 3) for number in range(rows)]
    column = encode_column("s", pa.array(texts, pa.string()), torch.device("cpu"))
    if column.pool is None or column.values is None:
        assert not rows
        return
    assert not column.pool_is_sorted
    order = order_of_dictionary(column)
    entries = Column(column.data_type, order.entries.num_rows, None, None, order.entries)
    assert column_to_arrow("s", entries).to_pylist() == sorted(set(texts), key=str.encode)
    in_order = Column(
        column.data_type, rows, order.ranks[column.values.long()], None, order.entries, True, True
    )
    assert column_to_arrow("s", in_order).to_pylist() == texts


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_dictionaries_are_merged_by_ranges(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary_order, "WORTH_SHARING", 1)
    monkeypatch.setattr(dictionary_order, "threads_at_work", lambda: parts)
    chunks = [pa.array([f"{n * n % (50 + seed)}" for n in range(300)] + [None]) for seed in range(4)]
    column = encode_column("s", pa.chunked_array([*chunks, pa.nulls(3, pa.string())]), torch.device("cpu"))
    assert column.pool is not None and column.pool_is_dictionary
    assert column_to_arrow("s", column).to_pylist() == [
        *(each for chunk in chunks for each in chunk.to_pylist()),
        *[None] * 3,
    ]
    entries = Column(column.data_type, column.pool.num_rows, None, None, column.pool)
    found = column_to_arrow("s", entries).to_pylist()
    assert len(set(found)) == len(found)


@pytest.mark.cpu
def test_a_table_made_of_a_query_keeps_its_dictionaries(monkeypatch: pytest.MonkeyPatch) -> None:
    with tqp.connect() as connection:
        connection.register("t", _TABLES["t"].slice(0))
        connection.sql("CREATE TABLE kept AS SELECT s, x FROM t")
        connection.sql("CREATE TABLE part AS SELECT s, x FROM t WHERE g < 2")
        connection.sql("INSERT INTO part SELECT s || '!', x FROM t WHERE g = 3")
        connection.sql("DELETE FROM part WHERE s = 'a'")

        def makes(*_: object) -> NoReturn:
            raise AssertionError("entries are hashed")

        monkeypatch.setattr(pc, "count_distinct", makes)
        expected = connection.sql("SELECT s, count(*) FROM t GROUP BY s ORDER BY s").fetchall()
        assert connection.sql("SELECT s, count(*) FROM kept GROUP BY s ORDER BY s").fetchall() == expected
        some = "(SELECT s FROM t WHERE g < 2 UNION ALL SELECT s || '!' FROM t WHERE g = 3)"
        expected = connection.sql(
            f"SELECT s, count(*) FROM {some} WHERE s IS DISTINCT FROM 'a' GROUP BY s ORDER BY s"
        ).fetchall()
        assert connection.sql("SELECT s, count(*) FROM part GROUP BY s ORDER BY s").fetchall() == expected
