"""Comparisons of constants are decided while a query is planned, as those of columns are when it runs."""

from __future__ import annotations

import pytest

import tqp

_OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_ONE_OF = "ENUM('b', 'a', '')"
#: Of each type, without casts of nested values, which are not decided while a query is planned.
_VALUES = {
    "BIGINT": ("0::BIGINT", "(-1)::BIGINT", "9223372036854775807"),
    "DOUBLE": ("0e0", "-0e0", "'nan'::DOUBLE", "'inf'::DOUBLE", "1.5e0"),
    "VARCHAR": ("''", "'é'", "'z'", "'Z'"),
    _ONE_OF: tuple(f"'{each}'::{_ONE_OF}" for each in ("b", "a", "")),
    "DECIMAL(38,2)": ("0.01::DECIMAL(38,2)", "(-99999999999999999999.5)::DECIMAL(38,2)"),
    "INTERVAL": tuple(
        f"INTERVAL '{each}'"
        for each in ("1 month", "30 days", "29 days 24:00:00", "-1 day", "1 month -1 day", "0 days")
    ),
    "DOUBLE[]": ("[NULL, 1e0]", "[1e0, NULL]", "[1e0, 2e0]", "['nan'::DOUBLE]", "[-0e0]", "[0e0]", "[1e0]"),
    "STRUCT(a INTEGER, b VARCHAR)": ("{'a': 1, 'b': 'x'}", "{'a': 1, 'b': 'y'}", "{'a': 2, 'b': ''}"),
    "MAP(VARCHAR, INTERVAL)": tuple(
        f"MAP {{'{key}': INTERVAL '{value}'}}"
        for key, value in (("a", "30 days"), ("a", "1 month"), ("b", "0 days"))
    ),
    f"STRUCT(l {_ONE_OF}[])": tuple(
        f"{{'l': [{each}]}}" for each in (f"'a'::{_ONE_OF}, NULL", f"'b'::{_ONE_OF}", f"'a'::{_ONE_OF}")
    ),
}


@pytest.mark.parametrize("sql_type", _VALUES)
def test_constants_compare_as_columns_do(sql_type: str) -> None:
    literals = _VALUES[sql_type]
    asked = ", ".join(f"{{0}} {operator} {{1}}" for operator in _OPERATORS)
    with tqp.connect(threads=1) as connection:
        connection.sql(f"CREATE TABLE t (n INTEGER, x {sql_type})")
        rows = ", ".join(f"({place}, {each})" for place, each in enumerate(literals))
        connection.sql(f"INSERT INTO t VALUES {rows}")
        for i, left in enumerate(literals):
            for j, right in enumerate(literals):
                folded = f"SELECT {asked.format(left, right)}"
                plan = connection.explain(folded).splitlines()[1]
                assert plan.count("TRUE AS") + plan.count("FALSE AS") == len(_OPERATORS), plan
                columns = f"SELECT {asked.format('a.x', 'b.x')} FROM t a, t b WHERE a.n = {i} AND b.n = {j}"
                assert connection.sql(folded).fetchall() == connection.sql(columns).fetchall(), folded
