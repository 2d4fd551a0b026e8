"""Expressions, and methods of relations that take them: the same calls on tqp and DuckDB."""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import tqp
from tests.oracle import duckdb_database
from tqp import col, lit

SETUP = """
    CREATE TABLE t AS
    SELECT * FROM (VALUES (1, 'x', 1.5, [1, 2], 1), (2, 'y', 2.5, [3], 1), (2, 'Z%', NULL, [], 2)) v(a, s, f, l, g)
"""

Call = Callable[[Any, Any], Any]


def _called(method: str, *arguments: str) -> Call:
    """The call of a method of relations by its name."""
    return lambda m, t: getattr(t, method)(*arguments).order("1")


OF_EXPRESSIONS: list[Call] = [
    lambda m, t: [
        m.col("a") + 1,
        1 + m.col("a"),
        m.col("a") - 1,
        1 - m.col("a"),
        m.col("a") * 2,
        -m.col("a"),
    ],
    lambda m, t: [
        m.col("a") / 2,
        2 / m.col("a"),
        m.col("a") // 2,
        7 // m.col("a"),
        m.col("a") % 2,
        7 % m.col("a"),
    ],
    lambda m, t: [m.col("a") ** 2, 2 ** m.col("a"), (m.col("a") + 1) * 2, m.col("a") + m.col("a") * 2],
    lambda m, t: [
        m.col("a") == 1,
        m.col("a") != 1,
        m.col("a") < 2,
        m.col("a") <= 1,
        m.col("a") > 1,
        m.col("a") >= 2,
    ],
    lambda m, t: [
        m.col("a") == None,
        (m.col("a") > 1) & (m.col("g") == 1),
        (m.col("a") > 1) | False,
        ~(m.col("a") > 1),
    ],
    lambda m, t: [m.col("l")[1], m.col("l")[0], m.lit({"k": 5})["k"], m.fn("list_sort", m.col("l"))[1]],
    lambda m, t: [
        m.col("a").cast("BIGINT"),
        m.col("a").cast(str),
        m.col("a").cast(float),
        m.col("s").try_cast("INT"),
    ],
    lambda m, t: [m.col("a").alias('it\'s "b"'), (m.col("a").alias("b") + 1).alias("c")],
    lambda m, t: [m.col("a").isin(1, 3), m.col("a").isnotin(1, m.col("g")), m.col("a").isin(None)],
    lambda m, t: [
        m.col("f").is_null(),
        m.col("f").is_not_null(),
        m.col("a").isnull(),
        m.col("a").isnotnull(),
    ],
    lambda m, t: [
        m.col("a").between(1, 1),
        m.col("s").like("Z%"),
        m.col("s").like("_!%", escape="!"),
        m.col("s").ilike("Y"),
    ],
    lambda m, t: [
        m.col("s").concat("-", m.col("a").cast(str)),
        m.fn("upper", m.col("s")),
        m.fn("round", m.col("f"), 0),
        m.fn("struct_pack", a=m.col("a"), b="x"),
    ],
    lambda m, t: [m.coalesce(m.col("f"), 0), m.sql_expr("a + 1"), m.sql_expr("a + 1") * 2],
    lambda m, t: [
        m.when(m.col("a") > 1).then("big").otherwise("small").alias("k"),
        m.when(m.col("a") > 1).then(1).when(m.col("g") == 1).then(2).otherwise(None),
    ],
    lambda m, t: [m.fn("list_transform", m.col("l"), m.LambdaExpression("x", m.col("x") + m.col("a")))],
    lambda m, t: [m.star(exclude="l", rename={"a": "b"})],
    lambda m, t: [m.star(exclude=["a", "l"]), "a"],
    lambda m, t: [
        m.col("a").sum().over(m.col("g")),
        m.row_number().over(order_by=[m.col("a").desc(), m.col("s")]),
    ],
    lambda m, t: [
        m.col("a").sum().over(order_by=m.col("s"), rows=(-1, 0)),
        m.count_all().over(order_by=m.col("a"), range=(None, 0)),
    ],
    lambda m, t: [
        m.lag(m.col("a"), 1, 0).over(order_by=m.col("s")),
        m.first_value(m.col("f")).ignore_nulls().over(order_by=m.col("s").desc()),
    ],
    lambda m, t: [
        m.rank().over(order_by=m.col("a")),
        m.ntile(2).over(order_by=m.col("s")),
        m.lead(m.col("s")).over(m.col("g"), m.col("s")),
    ],
]
OF_ROWS: list[Call] = [
    lambda m, t: t.aggregate(
        [
            m.col("a").sum().where(m.col("g") == 1).alias("s"),
            m.col("s").string_agg(";"),
            m.col("s").arg_max(m.col("f")),
            m.col("a").n_unique().where(m.col("g") == 1).where(m.col("a") > 1),
        ]
    ),
    lambda m, t: t.aggregate(
        [m.col("a").count(), m.col("a").n_unique(), m.count_all(), m.col("a").mean(), m.col("f").median()]
    ),
    lambda m, t: t.aggregate(
        [
            m.col("a").std(),
            m.col("a").var(),
            m.col("a").product(),
            m.col("a").mode(),
            m.col("a").max(),
            m.col("a").min(),
        ]
    ),
    lambda m, t: t.aggregate(
        [m.col("a").bit_or(), (m.col("a") > 1).bool_and(), m.col("a").array_agg(), m.col("s").any_value()]
    ),
    lambda m, t: t.aggregate(
        [
            m.col("a").quantile(0.5).alias("q"),
            m.col("a").quantile_cont(0.25).alias("r"),
            m.fn("round", m.col("a").entropy(), 6).alias("e"),
            m.fn("round", m.col("a").skewness(), 6).alias("s"),
        ]
    ),
    lambda m, t: t.aggregate([m.col("g"), m.col("a").sum()], "g").order(m.col("g").desc()),
    lambda m, t: t.filter((m.col("a") == 2) & m.col("f").is_null()),
    lambda m, t: (
        t.filter(m.col("s").like("x%") | m.col("s").ilike("y")).sort(m.col("a").desc(), "s").select("s")
    ),
    lambda m, t: t.sort(m.col("f").desc().nulls_first()),
    lambda m, t: t.order(m.col("f").asc().nulls_last()),
    lambda m, t: t.sort(m.col("s").collate("nocase").desc()),
    lambda m, t: t.select(m.col("a"), "s"),
    lambda m, t: t.with_columns(b=m.col("a") + 1, a=3, c=m.col("b"), d="s", e=5),
    lambda m, t: t.with_columns(A=m.lit(5)),
    lambda m, t: t.rename(a="b", s="a").drop("l", "G"),
    lambda m, t: t.sort("s").offset(1),
    lambda m, t: t.sample(2).count("*"),
    lambda m, t: t.sample(percent=100, seed=3).count("*"),
    lambda m, t: t.sample(2, method="reservoir", seed=1).count("*"),
    lambda m, t: t.select("a", "s").union_by_name(t.select("s", "g").limit(1)).order("ALL"),
    lambda m, t: t.select("a").union_by_name(t.select("a"), all=False).order("a"),
    lambda m, t: t.select_types(["INTEGER"]),
    lambda m, t: t.select_dtypes(["int", "VARCHAR"]),
    lambda m, t: t.group_by("g").agg(m.col("a").sum(), m.col("f").max().alias("m")).order("g"),
    lambda m, t: t.group_by(m.col("g") + 1).agg(m.count_all()).order("2"),
    lambda m, t: t.group_by("g").agg("sum(a)").order("g"),
    lambda m, t: t.group_by().agg(m.count_all()),
    lambda m, t: t.select("a", "g").unpivot("a", "g"),
    lambda m, t: t.drop("l").unpivot("f", name="n", value="v"),
    lambda m, t: t.select("g", "s", "a").pivot("s", ["x", "y"], "sum(a)").order("g"),
    lambda m, t: t.select("g", "s", "a").pivot(m.col("s"), ["x"], m.col("a").sum()).order("g"),
    lambda m, t: t.unnest("l").order("ALL"),
    lambda m, t: t.select("a").materialize().filter("a > 1"),
    lambda m, t: t.distinct("g").select("g").order("g"),
    lambda m, t: t.arg_max("s", "a", "g").order("1"),
    lambda m, t: t.arg_min("s", "a"),
    lambda m, t: t.list("a").union(t.list("a")),
    *(
        _called(name, "a")
        for name in "bit_and bit_or bit_xor histogram favg fsum geomean stddev_pop".split()
        + "stddev_samp var_pop var_samp".split()
    ),
    lambda m, t: t.bool_and("a > 0"),
    lambda m, t: t.bool_or("a > 1", groups="g", projected_columns="g").order("g"),
    lambda m, t: t.select(
        "s",
        m.first_value(m.col("f").cast("DECIMAL(5, 1)")).ignore_nulls().alias("x").over(order_by=m.col("s")),
        m.col("a").sum().alias("b").where(m.col("a") > 1).over(m.col("g")),
        m.count_all().where(m.col("a") > 1).over(),
    ).sort("s"),
    lambda m, t: t.sum('a, "g", list_sum([a, g])'),
    lambda m, t: t.max("a, f", window_spec="over (partition by g)", projected_columns="s, a").order("s"),
    lambda m, t: t.first("g", "g", "g").order("g"),
    lambda m, t: t.value_counts("a", "a").order("a"),
    lambda m, t: t.unique("g + 1 AS h").order("h"),
    lambda m, t: t.count(""),
    lambda m, t: t.quantile_disc("a", [0.3, 0.5]).project("#1 AS q"),
    lambda m, t: t.quantile_cont("a", 0.3).project("#1 AS q"),
    lambda m, t: t.bitstring_agg("a", 1, 2),
    lambda m, t: t.sum("a", window_spec="over (partition by g)", projected_columns="a, g").order("ALL"),
    lambda m, t: t.row_number("over (order by a, s)", "a, s").order("ALL"),
    *(
        _called(name, "over (order by a)")
        for name in "rank dense_rank rank_dense percent_rank cume_dist".split()
    ),
    lambda m, t: t.n_tile("over (order by a, s)", 2, "s").order("s"),
    lambda m, t: t.lag("a", "over (order by s)", projected_columns="s").order("s"),
    lambda m, t: t.lead("a", "over (order by s)", 2, "0", projected_columns="s").order("s"),
    lambda m, t: t.lead("f", "over (order by s)", ignore_nulls=True, projected_columns="s").order("s"),
    lambda m, t: t.first_value("a", "over (order by s)", "s").order("s"),
    lambda m, t: t.last_value("a", "over (order by s)", "s").order("s"),
    lambda m, t: t.nth_value("a", "over (order by s)", 2, projected_columns="s").order("s"),
    lambda m, t: t.join(t.set_alias("u"), m.col("t", "a") == m.col("u", "g")).count("*"),
    lambda m, t: t.select("a", "s").join(t.set_alias("u").select("a", "f"), m.col("a")).order("ALL"),
    lambda m, t: (
        t.select("a")
        .set_alias("x")
        .join(t.select("s", "g").set_alias("y"), lambda x, y: x.a == y["g"])
        .order("ALL")
    ),
]


def _same(call: Call, oracle: Any, connection: tqp.Connection, which: str) -> None:
    def answer(module: Any, table: Any) -> Any:
        made = call(module, table)
        return table.select(*made) if isinstance(made, list) else made

    expected, found = answer(duckdb, oracle.table("t")), answer(tqp, connection.table("t"))
    rows, expected_rows = map(str, found.fetchall()), map(str, expected.fetchall())
    if which.startswith("expressions"):  # in no order
        rows, expected_rows = sorted(rows), sorted(expected_rows)
    assert list(rows) == list(expected_rows), which
    assert list(found.columns) == expected.columns, which
    assert [str(each) for each in found.types] == [str(each) for each in expected.types], which


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_the_same_calls_give_what_duckdb_gives(backend: str) -> None:
    with duckdb_database() as oracle, tqp.connect(backend=backend) as connection:
        oracle.execute(SETUP)
        connection.execute(SETUP)
        for kind, calls in (("expressions", OF_EXPRESSIONS), ("rows", OF_ROWS)):
            for number, call in enumerate(calls):
                _same(call, oracle, connection, f"{kind} {number}")


VALUES: list[Any] = [
    *(None, True, False, 0, -1, 2**31, -(2**63), 2**100, -(2**127), 2**128 - 1),
    *(0.1, -0.0, 1.5, 0.30000000000000004, 1e300, 5e-324, math.inf, -math.inf, math.nan),
    *("", "it's", "a\nb\\", "\U0001f986", b"", b"a\x00'\xff", bytearray(b"x")),
    *map(Decimal, ("1.20", "-0.05", "12345678901234567890.5", "1E+3", "1e-3", "NaN", "Infinity", "1" * 40)),
    *(datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.time(23, 59, 59, 1)),
    *(datetime.datetime(2024, 2, 29, 1, 2, 3, 4), datetime.datetime(999, 1, 1)),
    datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))),
    datetime.time(1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=5, seconds=7))),
    *(datetime.timedelta(days=-1, microseconds=5), datetime.timedelta(400, 3), uuid.UUID(int=2**127 + 5)),
    *(np.int8(-3), np.float32(0.1), np.bool_(True), np.datetime64("2024-01-01T01:02", "s"), pd.NaT, pd.NA),
    *(np.timedelta64(90, "s"), pd.Timestamp("2024-01-01 01:02:03.000004")),
]


def test_values_are_what_they_are_as_parameters() -> None:
    with tqp.connect() as con:
        one = con.sql("SELECT 1 AS one")
        for value in VALUES:
            expected, found = con.sql("SELECT ? AS v", [value]), one.select(lit(value).alias("v"))
            assert str(found.fetchall()) == str(expected.fetchall()), value
            assert found.types == expected.types, value
        nested = {"a": [1, None], "b c": {"d": Decimal("1.5")}, "it's": (datetime.date(2024, 1, 1),)}
        assert one.select(lit(nested)).fetchall() == [({**nested, "it's": [datetime.date(2024, 1, 1)]},)]
        assert one.select(lit({1: "x", 2: None}), lit({}), lit([]), lit(np.array([1, 2]))).fetchall() == [
            ({1: "x", 2: None}, {}, [], [1, 2])
        ]
        assert (
            one.filter(col("one").isin({1, 2})).fetchall()
            == one.filter(col("one").isin([1])).fetchall()
            == [(1,)]
        )
        assert one.filter(col("one").isin([])).fetchall() == [] and one.filter(
            col("one").isnotin([])
        ).shape == (1, 1)
        assert one.select(np.int64(2) + col("one"), col("one") * np.float64(2)).fetchall() == [(3, 2.0)]


def test_names_and_texts_mean_nothing_else() -> None:
    with tqp.connect() as con:
        name, text = 'a "b" -- c', "'; DROP TABLE t; --"
        rows = con.from_df(pd.DataFrame({name: [text]}))
        assert rows.filter(col(name) == text).select(tqp.fn("length", col(name)).alias(text)).columns == (
            text,
        )
        assert rows.rename(**{name: "x"}).with_columns(**{text: col("x")}).drop("x").columns == (text,)
        assert rows.group_by(name).agg(tqp.count_all()).fetchall() == [(text, 1)]
        assert rows.select_types([str]).columns == (name,)
        assert rows.select(tqp.sql_expr("1 -- note"), "2 -- note").fetchall() == [(1, 2)]
        assert rows.order([col(name).desc(), "1"]).to_dicts() == [{name: text}] and list(
            rows.iter_rows()
        ) == [(text,)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda t: bool(col("a") > 1), "write & | ~"),
        (lambda t: 1 < col("a") < 3, "write & | ~"),
        (lambda t: t.filter(True), "True is neither SQL text nor an expression"),
        (lambda t: t.filter(col("nope") > 1).columns, 'no column "nope"'),
        (lambda t: col("a")[1:2], "not by a slice"),
        (lambda t: lit(object()), "a object is no value of SQL"),
        (lambda t: lit(2**128), "does not fit"),
        (lambda t: lit("\ud800"), "half of a character"),
        (lambda t: col("a") + object(), "is no value of SQL"),
        (lambda t: col(), "takes the name of a column"),
        (lambda t: col(""), "cannot be empty"),
        (lambda t: col("a").cast(None), "cast"),
        (lambda t: col("a").sum().over(rows=(1, 2), range=(1, 2)), "not of both"),
        (lambda t: (col("a").sum() + 1).where(col("a") > 1), "where.. comes behind the call"),
        (lambda t: col("a").ignore_nulls(), 'ignore_nulls.. comes behind the call .* not behind "a"'),
        (lambda t: t.sum("a", "a", "over ()"), "groups and window_spec do not go together"),
        (lambda t: t.bitstring_agg("a", 1), "both min and max, or neither"),
        (lambda t: t.sum("a, )b").columns, "syntax error"),
        (lambda t: t.with_columns(), "with_columns.. takes at least one"),
        (lambda t: t.drop(), "drop.. takes at least one"),
        (lambda t: tqp.star(exclude=[5]), "the name of a column is text, not a int"),
        (lambda t: t.join(t, "a = a").columns, 'write "left_relation.a" or "right_relation.a"'),
        (lambda t: t.sample(), "either the number of rows, or percent"),
        (lambda t: t.select_types(["DATE"]), "no column is DATE"),
        (lambda t: t.select_types(["nope"]), "nope"),
        (lambda t: t.group_by("a").agg(), "agg.. takes at least one"),
    ],
)
def test_wrong_arguments_are_named(wrong: Callable[[Any], Any], message: str) -> None:
    with tqp.connect() as con, pytest.raises(tqp.Error, match=message):
        wrong(con.sql("SELECT 1 AS a"))


def test_expressions_do_not_change_and_can_be_kept() -> None:
    first = col("a").sum()
    named = first.alias("total").desc()
    assert str(first) == str(named) == 'sum("a")' and repr(named) == 'sum("a") AS "total"'
    assert {first: 1}[first] == 1 and not hasattr(first, "nope")
    with pytest.raises(AttributeError):
        first._text = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        list(first)  # type: ignore[call-overload]
    assert "The sum." in (col("a").sum.__doc__ or "") and "sum" in dir(first)
    case = tqp.CaseExpression(col("a") > 1, 1).when(col("a") > 0, 2)
    assert str(case) == '(CASE WHEN ("a" > 1) THEN 1 WHEN ("a" > 0) THEN 2 END)'
    assert tqp.ColumnExpression is tqp.col and tqp.ConstantExpression is tqp.lit


def test_statements_and_tables_of_a_text() -> None:
    with tqp.connect() as con:
        con.sql("CREATE TABLE t AS SELECT 1 AS a; CREATE TABLE u AS SELECT 1 AS a")
        text = "WITH k AS (FROM t) SELECT * FROM k JOIN u USING (a)"
        assert con.get_table_names(text) == {"t", "u"}
        assert con.get_table_names(text, qualified=True) == {"main.t", "main.u"}
        assert con.extract_statements("SELECT 1; SELECT 'a;b' ;") == ["SELECT 1", "SELECT 'a;b'"]
        with pytest.raises(tqp.BindError, match='no table "nope"'):
            con.get_table_names("FROM nope")
