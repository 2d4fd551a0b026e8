"""What raises for a value, behind everything that keeps rows from it: every kind of guard, table and storage."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import tqp
from tests.oracle import duckdb_database

#: Rows 0 and 1 are fine, the others make the expressions fail.
_VALUES = """
    SELECT r % 5 < 2 AS ok,
        CASE r % 5 WHEN 0 THEN 5 WHEN 1 THEN 7 WHEN 2 THEN -800000 WHEN 3 THEN 0 ELSE 2000000000 END AS i,
        CASE r % 5 WHEN 0 THEN 3 WHEN 1 THEN 2 ELSE 0 END::TINYINT AS z,
        CASE WHEN ok THEN r % 5 ELSE -9223372036854775807 - 1 END::BIGINT AS n,
        CASE WHEN ok THEN 3 ELSE 99999999999999999999999999999999999999 END::DECIMAL(38,0) AS h,
        CASE WHEN ok THEN 0.5 ELSE 12345.6789 END::DECIMAL(9,4) AS d,
        CASE WHEN ok THEN 1.5 ELSE 1e300 END::DOUBLE AS x,
        CASE WHEN ok THEN '2024-02-0' || (r % 5 + 1) ELSE 'nonsense ' || r % 5 END AS day,
        CASE WHEN ok THEN '1' || r % 5 ELSE 'none' || r % 5 END AS s,
        CASE WHEN ok THEN '7' ELSE 'a text of its own ' || r END AS u,
        CASE WHEN ok THEN DATE '2024-02-29' ELSE DATE '5800000-01-01' END AS date,
        CASE WHEN ok THEN TIMESTAMP '2024-02-29 12:00:00' ELSE 'infinity'::TIMESTAMP END AS t
    FROM range({rows}) q(r) {nulls}
"""
_TABLES = {
    "one": _VALUES.format(rows=3, nulls="WHERE r = 2"),
    "many": _VALUES.format(rows=300, nulls=""),
    "nulls": f"FROM ({_VALUES.format(rows=5, nulls='')}) UNION ALL BY NAME (SELECT false AS ok) "
    "UNION ALL BY NAME (SELECT NULL::BOOLEAN AS ok, 3 AS i) UNION ALL BY NAME (SELECT true AS ok)",
}

_NUMBERS = (
    "UTINYINT USMALLINT UINTEGER UBIGINT TINYINT SMALLINT DECIMAL(5,4) DECIMAL(2,0) DECIMAL(38,37)".split()
)
_EXPRESSIONS = [
    *(f"i::{target}" for target in _NUMBERS[:-3]),
    *(f"{column}::{target}" for column in ("n", "h", "x") for target in _NUMBERS),
    *(f"d::{target}" for target in ("UTINYINT", "TINYINT", "DECIMAL(5,4)", "DECIMAL(2,0)", "DECIMAL(38,37)")),
    "x::FLOAT", "x::INTEGER", "x::BIGINT", "n::INTEGER", "h::BIGINT", "s::INTEGER", "s::UTINYINT", "s::DOUBLE",
    "s::DECIMAL(9,2)", "u::INTEGER", "day::DATE", "day::TIMESTAMP", "(s || ':00')::TIME", "(s || ' days')::INTERVAL",
    "strptime(day, '%Y-%m-%d')", "n * n", "n + n", "n - 5", "-n", "abs(n)", "i * 5000", "i + 1500000000", "h * h", "h + h",
    "-(h + 1)", "d * h", "h::DECIMAL(38,2)", "i // z", "i % z", "n // z", "10 // i", "h % z", "10 % h::HUGEINT // z", "(z * 0 + round(i, -9))::SMALLINT",
    "date + i", "date + INTERVAL 1 MONTH", "t - TIMESTAMP '2024-01-01'", "t::TIME", "date::TIMESTAMP",
    "date_trunc('month', date + INTERVAL 1 DAY)", "make_date(i + 2000, 2, i)", "make_timestamp(i, i, i, i, i, x)",
    "chr(i + 60)", "z << i", "lcm(n, 3)", "to_years(i)", "to_seconds(x)", "INTERVAL 1 YEAR * i", "length(s)::TINYINT * 60::TINYINT",
    "length(u)::UTINYINT + 250::UTINYINT", "(year(date) - 2000)::TINYINT * 2::TINYINT", "ascii(s)::TINYINT + 70::TINYINT",
]  # fmt: skip

#: Each gives NULL (or what the name says) for rows that are not fine.
_GUARDED = (
    "CASE WHEN ok THEN {} END",
    "CASE WHEN NOT ok THEN NULL WHEN ok IS NULL THEN NULL ELSE {} END",
    "CASE ok WHEN true THEN {} END",
    "if(ok, {}, NULL)",
    "ok AND {0} = {0}",
    "ok IS NOT TRUE OR {0} <> {0}",
    "ok AND (z IS NULL OR {0} = {0})",
    "coalesce(CASE WHEN ok THEN NULL ELSE 0 END, CASE WHEN {0} = {0} THEN 1 END)",
    "CASE WHEN ok AND {0} = {0} THEN CASE WHEN ok THEN {0} END END",
)


@pytest.fixture(scope="module")
def connections() -> Iterator[tuple[tqp.Connection, duckdb.DuckDBPyConnection]]:
    with tqp.connect(threads=2) as connection, duckdb_database() as oracle:
        for name, query in _TABLES.items():
            oracle.execute(f"CREATE TABLE {name} AS {query}")
            oracle.execute(f"CREATE TABLE {name}_fine AS FROM {name} WHERE ok")
            connection.register(name, oracle.sql(f"FROM {name}").to_arrow_table())
        yield connection, oracle


def _rows(answer: tqp.Result | duckdb.DuckDBPyConnection) -> list[str]:
    return sorted(map(repr, answer.fetchall()))


@pytest.mark.parametrize("expression", _EXPRESSIONS)
def test_guards(expression: str, connections: tuple[tqp.Connection, duckdb.DuckDBPyConnection]) -> None:
    """DuckDB sees the expression on fine rows only: its own guards do not keep all rows from it."""
    connection, oracle = connections

    def reference(query: str) -> list[str]:
        return _rows(oracle.execute(query))

    outputs = ", ".join(guard.format(expression) for guard in _GUARDED)
    outputs_of_null = ", ".join(guard.format("NULL") for guard in _GUARDED)
    equal = f"{expression} = {expression}"
    for table in _TABLES:
        want = reference(f"SELECT {outputs} FROM {table}_fine")
        want += reference(f"SELECT {outputs_of_null} FROM {table} WHERE ok IS NOT TRUE")
        assert _rows(connection.sql(f"SELECT {outputs} FROM {table}")) == sorted(want), table
        for query in (
            f"SELECT {expression} FROM {{}} WHERE {equal} AND ok",
            f"SELECT count({expression}) FILTER (ok), max({expression}) FILTER (WHERE ok AND i > 0) FROM {{}}",
        ):
            want = reference(query.format(f"{table}_fine"))
            assert _rows(connection.sql(query.format(table))) == want, query.format(table)
    for query in (f"SELECT {expression} FROM many", f"SELECT i FROM many WHERE {equal}"):
        with pytest.raises(tqp.Error):
            connection.sql(query)


#: r(k, s): 's' is a number where another condition, or a join, keeps the row. DuckDB raises for most of these.
_SHIELDED = [
    "SELECT s FROM r JOIN u ON r.k = u.id WHERE u.n < 4 AND CAST(r.s AS INTEGER) > 4",
    "SELECT s FROM r JOIN u ON r.k = u.id WHERE CAST(r.s AS INTEGER) > 4 AND u.n < 4",
    "SELECT s FROM r, u WHERE r.k = u.id AND u.n < 4 AND (CAST(r.s AS INTEGER) = 5 OR CAST(r.s AS INTEGER) = 7)",
    "SELECT s FROM r JOIN u ON r.k = u.id JOIN u v ON r.k = v.n WHERE u.n < 4 AND CAST(r.s AS INTEGER) + v.n > 4",
    "SELECT s FROM u LEFT JOIN r ON r.k = u.id AND CAST(r.s AS INTEGER) > 4 WHERE u.n < 4",
    "SELECT s FROM u LEFT JOIN r ON r.k = u.id AND u.n < 4 AND CAST(r.s AS INTEGER) > 4 WHERE s IS NOT NULL",
    "SELECT s FROM r LEFT JOIN u ON r.k = u.id WHERE coalesce(u.n, 9) < 4 AND CAST(r.s AS INTEGER) > 4",
    "SELECT s FROM r FULL JOIN u ON r.k = u.id WHERE u.n < 4 AND CAST(r.s AS INTEGER) > 4",
    "SELECT s FROM r WHERE k IN (SELECT id FROM u WHERE n < 4) AND CAST(s AS INTEGER) > 4",
    "SELECT s FROM r WHERE k NOT IN (SELECT id FROM u WHERE n > 4) AND k < 9 AND CAST(s AS INTEGER) > 4",
    "SELECT s FROM r WHERE NOT EXISTS (SELECT 1 FROM u WHERE id = k AND n > 4) AND k <> 9 AND CAST(s AS INTEGER) > 4",
    "SELECT s FROM u, r WHERE EXISTS (SELECT 1 FROM r x WHERE x.k = u.id AND u.n < 4 AND CAST(x.s AS INTEGER) > 4) AND k = id",
    "SELECT (SELECT s FROM r WHERE k = id AND CAST(s AS INTEGER) > 4) FROM u WHERE n < 4",
    "SELECT (SELECT CAST(s AS INTEGER) FROM r WHERE k = id)::VARCHAR FROM u WHERE n < 4",
    "SELECT (SELECT sum(CAST(s AS INTEGER)) FROM r WHERE k = id)::VARCHAR FROM u WHERE n < 4",
    "SELECT max(s) FROM r GROUP BY k, s HAVING max(k) IN (1, 3) AND CAST(s AS INTEGER) > 4",
    "SELECT s FROM (SELECT * FROM r WHERE k < 9 AND k <> 2) WHERE 12 // (k - 2) < 50 AND CAST(s AS INTEGER) > 4",
    "SELECT s FROM (SELECT s FROM r WHERE k < 2 UNION ALL SELECT s FROM r WHERE k = 3) q WHERE CAST(s AS INTEGER) > 4",
    "SELECT s FROM (SELECT * FROM r WHERE k = 3 OR k = 1 ORDER BY k LIMIT 5) q WHERE CAST(s AS INTEGER) > 4",
]  # fmt: skip


@pytest.mark.parametrize("query", _SHIELDED)
def test_shielded_predicates(query: str) -> None:
    with tqp.connect(threads=2) as connection:
        connection.register("r", {"k": [1, 2, 3, 9], "s": ["5", "x", "7", "y"]})
        connection.register("u", {"id": [1, 2, 3], "n": [1, 10, 3]})
        assert sorted(connection.sql(query).fetchall()) == [("5",), ("7",)]


def test_groups_that_never_join() -> None:
    with tqp.connect(threads=2) as connection, duckdb_database() as oracle:
        largest = "99999999999999999999999999999999999999::DECIMAL(38,0)"
        oracle.execute("CREATE TABLE u AS FROM range(1, 6) v(id)")
        oracle.execute(
            f"CREATE TABLE o AS FROM (VALUES (99, {largest}), (99, {largest}), (1, 5), (2, 6)) v(c, x)"
        )
        for name in ("u", "o"):
            connection.register(name, oracle.sql(f"FROM {name}").to_arrow_table())
        for query in (
            "SELECT u.id, sum(o.x) FROM u LEFT JOIN o ON u.id = o.c GROUP BY u.id",
            "SELECT u.id, (SELECT sum(o.x) FROM o WHERE o.c = u.id) FROM u",
            "SELECT u.id FROM u WHERE u.id < (SELECT avg(o.x) FROM o WHERE o.c = u.id)",
        ):
            assert _rows(connection.sql(query)) == _rows(oracle.execute(query))


_FAILING_KEYS = (
    *(
        "k * 3",
        "k << 3",
        "k - 60000::USMALLINT",
        "k::UTINYINT",
        "i + 1",
        "i::USMALLINT",
        "b * 2",
        "-(-b - 1)",
        "h + 1",
    ),
    *(
        "h::UTINYINT",
        "f::UTINYINT",
        "s::UTINYINT",
        "m * 9",
        "m::DECIMAL(3,1)",
        "lcm(k, 65521::USMALLINT)",
    ),
)


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("key", _FAILING_KEYS)
def test_a_key_that_fails_is_looked_up_in_an_empty_build_side(key: str, backend: str) -> None:
    """It does not raise, and what stands in its place is a value of its type."""
    with duckdb_database() as oracle, tqp.connect(threads=1, backend=backend) as connection:
        oracle.execute("CREATE TABLE e (k UTINYINT)")
        oracle.execute(
            "CREATE TABLE t AS SELECT 50268::USMALLINT AS k, 2147483647 AS i, 9223372036854775807 AS b, 1e300 AS f, 'x9' AS s, "
            "170141183460469231731687303715884105727 AS h, 999.9 AS m "
            "UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL"
        )
        for table in ("e", "t"):
            connection.register(table, oracle.sql(f"FROM {table}").to_arrow_table())
        for condition in (f"{key} NOT IN (SELECT 1 FROM e)", f"{key} IN (SELECT 1 FROM e)"):
            query = f"SELECT count(*) FROM t WHERE {condition}"
            assert connection.sql(query).fetchall() == oracle.sql(query).fetchall()
        for join in ("LEFT", "ANTI"):
            query = f"SELECT count(*) FROM t {join} JOIN (SELECT k + 1 AS n FROM e) e ON {key} = e.n"
            assert connection.sql(query).fetchall() == [(2,)]
