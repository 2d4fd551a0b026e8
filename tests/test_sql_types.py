"""Types by their names, and types put together of others, beside DuckDB's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest

import tqp
from tqp import col


def test_types_are_equal_to_their_names() -> None:
    types = tqp.sql(
        "SELECT 1 AS i, 1.5::DECIMAL(10, 2) AS d, [1] AS l, TIMESTAMPTZ '2024-01-01 00:00:00+00' AS t"
    ).types
    assert types[0] == "INTEGER" and types[1] == "decimal(10,2)" == types[1] and types[2] == "INTEGER[]"
    assert types[3] == "TIMESTAMP WITH TIME ZONE" and types[0] != "BIGINT" and types[0] != 3
    assert list(types)[:2] == ["INTEGER", "DECIMAL(10,2)"]


def test_types_are_made_of_others() -> None:
    made: list[Callable[[Any], Any]] = [
        lambda m: m.list_type(int),
        lambda m: m.list_type(m.array_type("FLOAT", 3)),
        lambda m: m.struct_type({"a": float, "b c": m.list_type("DATE"), "select": "UUID"}),
        lambda m: m.row_type(["INTEGER", str]),
        lambda m: m.map_type(str, m.decimal_type(9, 2)),
        lambda m: m.union_type({"n": "TINYINT", "s": "VARCHAR"}),
    ]
    with tqp.connect() as con:
        one = con.sql("SELECT NULL AS v")
        for number, make in enumerate(made):
            (found,) = one.select(col("v").cast(make(tqp))).types
            assert str(found) == str(make(duckdb)) and found == make(tqp), number
        con.create_function("twice", lambda n: [n, n], [int], tqp.list_type(int), type="native")
        assert con.sql("SELECT twice(4)").fetchall() == [([4, 4],)]
    for wrong in (
        lambda: tqp.list_type(None),
        lambda: tqp.struct_type({}),
        lambda: tqp.struct_type("INTEGER"),
        lambda: tqp.union_type({"": int}),
        lambda: tqp.array_type(int, "3"),  # type: ignore[arg-type]
        lambda: tqp.map_type(object, int),
    ):
        with pytest.raises(tqp.BindError):
            wrong()
