"""Python functions in SQL: what they are given and may give, beside DuckDB's, and what is said of those that do not fit."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch

import tqp
from tests.test_slt import SETTINGS


@pytest.fixture(params=SETTINGS)
def con(request: pytest.FixtureRequest) -> Iterator[tqp.Connection]:
    with tqp.connect(**SETTINGS[request.param]) as connection:
        connection.sql(
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', 1.5), (2, NULL, 2.5), (NULL, 'é𝄞', NULL), (4, '', -0.25)) v(i, s, d)"
        )
        yield connection


def same_as_duckdb(con: tqp.Connection, query: str) -> None:
    with duckdb.connect() as oracle:
        oracle.sql("SET TimeZone = 'UTC'")
        oracle.register("t", con.table("t").arrow())
        for name, function, parameters, result, keywords in FUNCTIONS:
            oracle.create_function(name, function, parameters, result, **keywords)
        expected = oracle.sql(query)
        found = con.sql(query)
        assert found.fetchall() == expected.fetchall()
        assert [str(each) for each in found.types] == [str(each) for each in expected.types]


def twice(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


def shout(text: str, times: int) -> str:
    return text.upper() + "!" * times


def marked(value: int | None) -> str | None:
    return None if value == 4 else f"<{value}>"


FUNCTIONS: list[tuple[str, Callable[..., Any], list[str] | None, str | None, dict[str, Any]]] = [
    ("twice", twice, ["BIGINT"], "BIGINT", {"type": "arrow"}),
    ("shout", shout, None, None, {"type": "native"}),
    ("marked", marked, ["INTEGER"], "VARCHAR", {"type": "native", "null_handling": "special"}),
    ("inverse", lambda x: 1 / x, ["DOUBLE"], "DOUBLE", {"type": "native", "exception_handling": "return_null"}),
    ("filled", lambda x: pc.fill_null(x, -1), ["INTEGER"], "INTEGER", {"type": "arrow", "null_handling": "special"}),
    ("pair", lambda a, b: [a, b], ["INTEGER", "INTEGER"], "INTEGER[]", {"type": "native"}),
    ("point", lambda a: {"x": a, "y": str(a)}, ["INTEGER"], "STRUCT(x INTEGER, y VARCHAR)", {"type": "native"}),
    ("backwards", lambda x: x[::-1], ["INTEGER[]"], "INTEGER[]", {"type": "native"}),
    ("tomorrow", lambda d: d + datetime.timedelta(days=1), ["DATE"], "DATE", {"type": "native"}),
    ("half", lambda d: round(d / 2, 1), ["DECIMAL(9,2)"], "DECIMAL(9,2)", {"type": "native"}),
    ("raw", lambda b: b[::-1], ["BLOB"], "BLOB", {"type": "native"}),
    ("big", lambda x: x * 10**20, ["HUGEINT"], "HUGEINT", {"type": "native"}),
    ("later", lambda x: x + datetime.timedelta(hours=1), ["TIMESTAMP"], "TIMESTAMP", {"type": "native"}),
    ("seconds", lambda x: x.total_seconds(), ["INTERVAL"], "DOUBLE", {"type": "native"}),
    ("nothing", lambda: 7, [], "INTEGER", {"type": "native"}),
]  # fmt: skip

QUERIES = (
    "SELECT twice(i), twice(7), twice(NULL) FROM t",
    "SELECT twice(i) + twice(i) AS x FROM t WHERE twice(i) > 2",
    "SELECT shout(s, i) FROM t",
    "SELECT shout('x', 2), shout(s, NULL) FROM t",
    "SELECT marked(i), marked(NULL) IS NULL FROM t",
    "SELECT inverse(i - 1), inverse(d) FROM t",
    "SELECT filled(i), sum(filled(i)) OVER () FROM t",
    "SELECT sum(twice(i)), max(shout(s, 1)) FROM t",
    "SELECT twice(i) % 4 AS k, count(*) FROM t GROUP BY k ORDER BY k",
    "SELECT pair(i, 3), backwards(pair(i, 3)), pair(i, i)[1] FROM t",
    "SELECT point(i), point(i).y FROM t",
    "SELECT tomorrow(DATE '2024-02-28'), later(TIMESTAMP '2024-01-01 23:30:00'), seconds(INTERVAL 90 SECOND)",
    "SELECT half(d), half(3) FROM t",
    "SELECT raw('abc'::BLOB), big(i) FROM t",
    "SELECT nothing() FROM t",
    "SELECT CASE WHEN i = 1 THEN shout(s, 1) ELSE 'no' END FROM t",
    "SELECT a.i, b.i FROM t a JOIN t b ON twice(a.i) = b.i ORDER BY ALL",
    "SELECT shout(s, 1) FROM t WHERE i > 100",
    "SELECT count(*) FROM t WHERE shout(s, 1) = 'A!'",
    "SELECT i FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE twice(u.i) = t.i) ORDER BY i",
    "SELECT list_transform([1, 2], lambda x: x + 1), twice(i) FROM t ORDER BY twice(i) DESC NULLS LAST LIMIT 2",
)


@pytest.mark.parametrize("query", QUERIES)
def test_as_duckdb(con: tqp.Connection, query: str) -> None:
    for name, function, parameters, result, keywords in FUNCTIONS:
        con.create_function(name, function, parameters, result, **keywords)
    same_as_duckdb(con, query)


def test_tensors(con: tqp.Connection) -> None:
    con.create_function("root", torch.sqrt, ["DOUBLE"], "DOUBLE", type="torch")
    con.create_function("larger", torch.gt, ["INTEGER", "INTEGER"], "BOOLEAN", type="torch")
    con.create_function("scaled", lambda v: v * 2, ["FLOAT[2]"], "FLOAT[2]", type="torch")
    con.create_function("small", lambda v: v * 100, ["INTEGER"], "TINYINT", type="torch")
    assert con.sql("SELECT root(i * i), larger(i, 1) FROM t").fetchall() == [
        (1.0, False),
        (2.0, True),
        (None, None),
        (4.0, True),
    ]
    assert con.sql("SELECT scaled([1, i]::FLOAT[2]) FROM t WHERE i < 3").fetchall() == [
        ((2.0, 2.0),),
        ((2.0, 4.0),),
    ]
    with pytest.raises(tqp.ExecutionError, match='"small" gave an integer that TINYINT cannot hold'):
        con.sql("SELECT small(i) FROM t")


def test_any_type_and_names_of_types(con: tqp.Connection) -> None:
    con.create_function("size", lambda x: pa.array([len(x)] * len(x)), return_type=pa.int64())
    assert con.sql("SELECT size('a'), size(1.5), size([1])").fetchall() == [(1, 1, 1)]

    def total(values: list[int], more: Decimal | None) -> float:
        return float(sum(values) + (more or 0))

    con.create_function("total", total, type="native")
    assert con.sql("SELECT total([1, 2], 0.5)").fetchall() == [(3.5,)]
    con.create_function("total", total, [duckdb.list_type("INTEGER"), "DECIMAL(3,1)"], "FLOAT", type="native")
    found = con.sql("SELECT total([1, 2], 0.5) AS x")
    assert (str(found.types[0]), found.fetchall()) == ("FLOAT", [(3.5,)])


@pytest.mark.parametrize(
    ("name", "value", "function", "text"),
    [
        ("UUID", "'01890a5d-ac96-774b-bcce-b302099a8057'", lambda each: str(each.version), "7"),
        ("UHUGEINT", str(2**128 - 1), lambda each: str(each // 2), str(2**127 - 1)),
        ("TIMETZ", "'12:00:00+01:30'", lambda each: str(each.utcoffset()), "1:30:00"),
    ],
)
def test_types_that_are_given_only(
    con: tqp.Connection, name: str, value: str, function: Callable[[Any], str], text: str
) -> None:
    con.create_function("f", function, [name], "VARCHAR", type="native")
    assert con.sql(f"SELECT f({value}::{name})").fetchall() == [(text,)]
    with pytest.raises(tqp.UnsupportedError, match="cannot return a "):
        con.create_function("g", lambda: None, [], name, type="native")


def test_it_sees_no_row_that_a_condition_has_dropped(con: tqp.Connection) -> None:
    con.create_function("inverse", lambda x: 1 / x, ["INTEGER"], "DOUBLE", type="native")
    assert con.sql("SELECT CASE WHEN i > 1 THEN inverse(i - 1) END FROM t").fetchall() == [
        (None,), (1.0,), (None,), (1 / 3,)
    ]  # fmt: skip
    assert con.sql("SELECT i FROM t WHERE i > 1 AND inverse(i - 1) = 1").fetchall() == [(2,)]


def test_no_call_for_no_rows(con: tqp.Connection) -> None:
    def refuse(values: pa.Array) -> pa.Array:
        raise AssertionError(values)

    con.create_function("refuse", refuse, ["INTEGER"], "VARCHAR[]")
    assert con.sql("SELECT refuse(i) FROM t WHERE i IS NULL OR i > 9").fetchall() == [(None,)]


def test_constants_of_new_texts(con: tqp.Connection) -> None:
    con.create_function("plus", pc.add, ["BIGINT", "BIGINT"], "BIGINT")
    for constant in (1, 2, 3, 400):
        assert con.sql(f"SELECT plus(i, {constant}) AS x FROM t WHERE plus(i, {constant}) > {constant + 1}").fetchall() == [
            (2 + constant,),
            (4 + constant,),
        ]  # fmt: skip


def test_a_new_function_under_the_name(con: tqp.Connection) -> None:
    con.create_function("f", lambda x: x, ["INTEGER"], "INTEGER")
    assert con.sql("SELECT max(f(i)) FROM t").fetchall() == [(4,)]
    con.create_function("f", lambda x: pc.negate(x), ["INTEGER"], "INTEGER")
    assert con.sql("SELECT max(f(i)) FROM t").fetchall() == [(-1,)]
    con.remove_function("F")
    with pytest.raises(tqp.BindError, match='there is no function "f"'):
        con.sql("SELECT max(f(i)) FROM t")
    with pytest.raises(tqp.BindError, match='there is no function "f" to unregister'):
        con.remove_function("f")


@pytest.mark.parametrize(
    ("function", "keywords", "message"),
    [
        (
            lambda x: x.missing,
            {},
            r'"f" failed \(it is called with Arrow arrays; type="native".*AttributeError',
        ),
        (lambda x: 1 // 0, {"type": "native"}, r'"f" failed for \(1\): ZeroDivisionError'),
        (lambda x: 1, {}, '"f" gave a int, and should give an Arrow array'),
        (lambda x: pa.array([1]), {}, '"f" gave 1 values for|gave NULL|Arrow array'),
        (lambda x: None, {"type": "native"}, 'gave NULL, which null_handling="special" allows'),
        (lambda x: 2**40, {"type": "native"}, '"f" gave what is no INTEGER'),
        (lambda x: "x", {"type": "native"}, '"f" gave what is no INTEGER'),
        (lambda x: x.sum(), {"type": "torch"}, r"gave a tensor \[\] for"),
        (lambda x: x / 3, {"type": "torch"}, "gave torch.float32 for INTEGER"),
    ],
)
def test_functions_that_fail(function: Any, keywords: dict[str, str], message: str) -> None:
    with tqp.connect() as con:
        con.create_function("f", function, ["INTEGER"], "INTEGER", **keywords)
        with pytest.raises(tqp.ExecutionError, match=message) as caught:
            con.sql("SELECT f(i::INTEGER) FROM range(1, 4) r(i)")
        assert "^^^" in str(caught.value)
        assert con.sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        (("f", 3, [], "INTEGER"), {}, "is to be a function"),
        (("upper", abs, ["INTEGER"], "INTEGER"), {}, '"upper" is a function of SQL'),
        (("f", abs, ["INTEGERS"], "INTEGER"), {}, "INTEGERS"),
        (("f", abs, ["INTEGER), (1"], "INTEGER"), {}, "type"),
        (("f", abs, ["INTEGER"]), {}, "does not say what it returns"),
        (("f", lambda *x: x, None, "INTEGER"), {}, "any number of arguments"),
        (("f", abs, "INTEGER", "INTEGER"), {}, "parameters is a list of types"),
        (("f", abs, ["INTEGER"], complex), {}, "is not a type that SQL has"),
        (("f", abs, ["INTEGER"], "INTEGER"), {"type": "numpy"}, "type='numpy'"),
        (("f", abs, ["INTEGER"], "INTEGER"), {"side_effects": True}, "side_effects=True is not supported"),
        (("f", abs, ["INTEGER"], "INTEGER"), {"exception_handling": "return_null"}, "which row failed"),
        (("f", abs, ["INTEGER"], "VARCHAR"), {"type": "torch"}, "cannot return VARCHAR as a tensor"),
        (("f", abs, [], "INTEGER"), {}, "has no arguments to tell it how many rows"),
        (("f", abs, ["INTEGER"], "ENUM('a', 'b')"), {}, "cannot return an ENUM"),
    ],
)
def test_what_is_no_function(arguments: Any, keywords: dict[str, Any], message: str) -> None:
    with tqp.connect() as con, pytest.raises(tqp.Error, match=message):
        con.create_function(*arguments, **keywords)


def test_calls_that_do_not_fit(con: tqp.Connection) -> None:
    con.create_function("twice", twice, ["BIGINT"], "BIGINT")
    with pytest.raises(
        tqp.BindError, match=r"twice\(\) does not take \(VARCHAR\); it takes \(BIGINT\) -> BIGINT"
    ):
        con.sql("SELECT twice(s) FROM t")
    with pytest.raises(tqp.BindError, match=r"twice\(\) does not take \(INTEGER, INTEGER\)"):
        con.sql("SELECT twice(i, i) FROM t")
    with pytest.raises(tqp.BindError, match='"twice" is a Python function, which is called as'):
        con.sql("SELECT ml_predict('twice', i) FROM t")


def test_in_views_macros_and_statements(con: tqp.Connection) -> None:
    con.create_function("twice", twice, ["BIGINT"], "BIGINT")
    con.sql("CREATE VIEW v AS SELECT twice(i) AS x FROM t")
    con.sql("CREATE MACRO four(a) AS twice(twice(a))")
    assert con.sql("SELECT four(x) FROM v").fetchall() == [(8,), (16,), (None,), (32,)]
    con.sql("UPDATE t SET i = twice(i) WHERE twice(i) > 2")
    assert con.sql("SELECT i FROM t ORDER BY i NULLS LAST").fetchall() == [(1,), (4,), (8,), (None,)]
    assert con.prepare("SELECT twice(?::INTEGER)").execute([21]).fetchall() == [(42,)]
    assert "twice(i)" in con.explain("SELECT twice(i) FROM t")


def test_from_several_threads(con: tqp.Connection) -> None:
    con.create_function("twice", twice, ["BIGINT"], "BIGINT")
    found: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(con.sql("SELECT sum(twice(i)) FROM range(1000) r(i)").fetchall())
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[(999000,)]] * 4
