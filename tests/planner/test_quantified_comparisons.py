"""x <comparison> ANY|ALL (subquery), against three-valued logic spelled out in Python, and in time."""

import itertools
import operator
import time
from collections.abc import Callable, Iterable

import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}

QUANTIFIED = list(itertools.product(COMPARISONS, ["ANY", "ALL"]))

X = [None, 0, 1, 2, 3]
SETS: list[list[int | None]] = [
    [],
    [None],
    [1],
    [1, 1],
    [1, None],
    [0, 2],
    [2, 0, None],
    [1, 2, 3],
    [3, 3, None, 3],
]


def kleene_any(truths: Iterable[bool | None]) -> bool | None:
    found = list(truths)
    if True in found:
        return True
    return None if None in found else False


def compared(comparison: str, quantifier: str, x: int | None, values: list[int | None]) -> bool | None:
    test = COMPARISONS[comparison]
    truths = [None if x is None or value is None else test(x, value) for value in values]
    if quantifier == "ANY":
        return kleene_any(truths)
    negated = kleene_any(None if truth is None else not truth for truth in truths)
    return None if negated is None else not negated


def connect() -> tqp.Connection:
    con = tqp.connect(threads=1)
    numbers = range(len(SETS))
    outer = [(number, x) for number in numbers for x in X]
    inner = [(number, value) for number in numbers for value in SETS[number]]
    for name, rows in (("t", outer), ("u", inner)):
        keys, values = zip(*rows, strict=True)
        con.register(name, pa.table({"k": pa.array(keys, pa.int32()), "x": pa.array(values, pa.int32())}))
    return con


@pytest.mark.parametrize(("comparison", "quantifier"), QUANTIFIED)
def test_against_three_valued_logic(comparison: str, quantifier: str) -> None:
    con = connect()
    wanted = [
        (number, x, compared(comparison, quantifier, x, values))
        for number, values in enumerate(SETS)
        for x in X
    ]
    order = "ORDER BY k, x NULLS FIRST"
    correlated = f"x {comparison} {quantifier} (SELECT u.x FROM u WHERE u.k = t.k)"
    assert con.sql(f"SELECT k, x, {correlated} FROM t {order}").fetchall() == wanted
    for sign, kept in (("", True), ("NOT ", False)):
        rows = con.sql(f"SELECT k, x FROM t WHERE {sign}{correlated} {order}").fetchall()
        assert rows == [(number, x) for number, x, truth in wanted if truth is kept]
    for number in range(len(SETS)):
        alone = f"x {comparison} {quantifier} (SELECT u.x FROM u WHERE u.k = {number})"
        rows = con.sql(f"SELECT k, x, {alone} FROM t WHERE k = {number} {order}").fetchall()
        assert rows == [row for row in wanted if row[0] == number]
        rows = con.sql(f"SELECT x FROM t WHERE k = {number} AND NOT {alone} {order}").fetchall()
        assert rows == [(x,) for k, x, truth in wanted if k == number and truth is False]


@pytest.mark.parametrize(("comparison", "quantifier"), QUANTIFIED)
@pytest.mark.parametrize(
    ("x", "y"),
    [("f", "f"), ("s", "s"), ("d", "d"), ("b", "b"), ("f + 1", "f")],
)
def test_other_types_against_duckdb(comparison: str, quantifier: str, x: str, y: str) -> None:
    with duckdb_database() as duck, tqp.connect(threads=1) as con:
        duck.execute("""CREATE TABLE v AS SELECT i, i::DOUBLE f, chr(97 + i) s, DATE '2024-01-01' + i d, i > 1 b
                        FROM (VALUES (0), (1), (2), (NULL)) r(i)""")
        duck.execute("INSERT INTO v VALUES (NULL, 'nan', '', '1999-01-01', true), (7, -0.0, 'é', NULL, NULL)")
        con.register("v", duck.table("v").to_arrow_table())
        for condition in ("true", "false", "w.f > 0", "w.f IS NOT NULL", "w.s IS NOT DISTINCT FROM v.s"):
            query = f"SELECT {x}, {x} {comparison} {quantifier} (SELECT {y} FROM v w WHERE {condition}) FROM v ORDER BY ALL"
            assert repr(con.sql(query).fetchall()) == repr(duck.sql(query).fetchall()), query


def test_no_comparison_of_all_pairs() -> None:
    with duckdb_database() as duck, tqp.connect(threads=1) as con:
        duck.execute(
            "CREATE TABLE t AS SELECT (i * 7919 % 100003)::INTEGER x, i % 500 k FROM range(100000) r(i)"
        )
        con.register("t", duck.table("t").to_arrow_table())
        start = time.perf_counter()
        for comparison, quantifier in itertools.product(COMPARISONS, ["ANY", "ALL"]):
            for condition in ("x < 90000", "w.k = t.k AND x % 2 = 0"):
                query = f"SELECT count(*) FROM t WHERE x {comparison} {quantifier} (SELECT x FROM t w WHERE {condition})"
                assert con.sql(query).fetchall() == duck.sql(query).fetchall(), query
        assert time.perf_counter() - start < 10  # pairwise it takes some 3 s for each
