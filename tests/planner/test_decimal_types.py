"""The type of two decimals together, for many precisions and scales: what DuckDB says `typeof` is."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pytest

from tests.planner.binding import NoTables
from tqp.core.errors import BindError
from tqp.planner.bind import bind

_SIZES = [
    (1, 0),
    (1, 1),
    (4, 4),
    (9, 2),
    (15, 4),
    (18, 0),
    (18, 18),
    (25, 2),
    (38, 0),
    (38, 2),
    (38, 19),
    (38, 38),
]
_DECIMALS = [f"DECIMAL({precision},{scale})" for precision, scale in _SIZES]
_INTEGERS = ["TINYINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT"]
_EXPRESSIONS = [
    "x + y",
    "x - y",
    "x * y",
    "x % y",
    "CASE WHEN true THEN x ELSE y END",
    "coalesce(x, y)",
    "greatest(x, y)",
    "(SELECT x UNION ALL SELECT y LIMIT 1)",
]


def _query(expression: str, left: str, right: str) -> str:
    return f"SELECT {expression} AS z FROM (SELECT NULL::{left} AS x, NULL::{right} AS y)"


def _oracle(expression: str, pairs: list[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
    connection = duckdb.connect()
    found = {}
    for pair in pairs:
        try:
            (found[pair],) = connection.execute(
                f"SELECT typeof(z) FROM ({_query(expression, *pair)})"
            ).fetchone() or ("",)
        except duckdb.Error:
            found[pair] = "error"
    return found


def _ours(expression: str, pair: tuple[str, str]) -> str:
    try:
        return str(bind(_query(expression, *pair), NoTables()).plan.schema[0].data_type)
    except BindError:
        return "error"


@pytest.mark.parametrize("expression", _EXPRESSIONS)
def test_types_of_two_decimals(expression: str) -> None:
    pairs = [(left, right) for left in _DECIMALS for right in (*_DECIMALS, *_INTEGERS)]
    expected = _oracle(expression, pairs)
    assert {pair: _ours(expression, pair) for pair in pairs} == expected
