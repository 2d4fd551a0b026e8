"""The binder against DuckDB: names and types of outputs, the shape of plans, what is refused and how."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pytest

from tests.planner.binding import (
    FakeCatalog,
    FakeTable,
    bound,
    described,
    duckdb_described,
    duckdb_with_tables,
)
from tqp.core.datatypes import DataType
from tqp.core.errors import BindError, Error, ParseError, UnsupportedError
from tqp.planner.algebra.expressions import Call, ColumnRef, InList, Literal, walk
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Scan,
    Shared,
    Sort,
    UnionAll,
)
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.subquery_expressions import Exists, QuantifiedComparison, ScalarSubquery
from tqp.planner.algebra.verify import PlanVerifier

EXPRESSIONS = (Path(__file__).parent / "typed_expressions.txt").read_text(encoding="utf-8").splitlines()
TPCH = sorted((Path(__file__).parents[2] / "tpch" / "queries").glob("*.sql"))


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb_with_tables()


def nodes(plan: LogicalPlan, kind: type) -> list:
    return [node for node in walk_plan(plan) if isinstance(node, kind)]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_name_and_type_are_those_of_duckdb(duck: duckdb.DuckDBPyConnection, expression: str) -> None:
    query = f"SELECT {expression} FROM t"
    assert described(query) == duckdb_described(duck, query)


QUERIES = """
SELECT * FROM t JOIN u USING (i)
SELECT * FROM t NATURAL JOIN u
SELECT t.i, u.* FROM t FULL JOIN u USING (i)
SELECT i, j FROM t RIGHT JOIN u USING (i)
SELECT * EXCLUDE (ti, si) FROM t
SELECT * REPLACE (i + 0.5 AS i) FROM u
SELECT t1.*, t2.i FROM u t1, u t2
SELECT * FROM (SELECT i, j + 1 FROM u) q
SELECT * FROM (SELECT i, j FROM u) q(x, y)
SELECT q.x FROM (SELECT i, j FROM u) q(x)
FROM u
FROM u SELECT j, NAME
SELECT name, "Name", NAME AS n FROM u
VALUES (1, 'a'), (2.5, NULL)
SELECT * FROM (VALUES (1, 2), (3, 4)) v(a, b)
WITH c AS (SELECT i AS k, count(*) AS n FROM u GROUP BY i) SELECT * FROM c
WITH c(a, b) AS (SELECT i, j FROM u) SELECT * FROM c x, c y
WITH c AS (SELECT 1 AS a), d AS (SELECT a + 1.5 AS b FROM c) SELECT * FROM d, c
SELECT i, sum(j) FROM u GROUP BY i HAVING sum(j) > 1 ORDER BY 2 DESC
SELECT i + 1 AS k, max(name) FROM u GROUP BY k
SELECT i, j, count(*) FROM u GROUP BY ALL ORDER BY ALL
SELECT DISTINCT i, name FROM u ORDER BY name
SELECT i FROM u UNION SELECT j FROM u
SELECT i AS a, name FROM u UNION ALL SELECT 1.5, NULL ORDER BY a LIMIT 3
SELECT i FROM u UNION ALL BY NAME SELECT j, i FROM u
SELECT i FROM u INTERSECT SELECT bi FROM t
SELECT i FROM u EXCEPT SELECT ti FROM t
SELECT (SELECT max(j) FROM u) AS m, i FROM t
SELECT i, (SELECT sum(j) FROM u WHERE u.i = t.i) AS s FROM t
SELECT i FROM t WHERE EXISTS (SELECT * FROM u WHERE u.i = t.i)
SELECT t.i, x.m FROM t, LATERAL (SELECT max(j) AS m FROM u WHERE u.i = t.i) x
SELECT i AS a, a + 1 AS b, b * 2 AS c FROM u
SELECT sum(i) AS s, s / count(*) AS m FROM u
SELECT i AS x FROM u WHERE x > 1 GROUP BY x HAVING x < 9 ORDER BY x
SELECT i IN (SELECT j FROM u) AS m FROM t
SELECT x.i FROM u x SEMI JOIN t USING (i)
SELECT * FROM (t JOIN u USING (i)) AS j
""".strip().splitlines()


@pytest.mark.parametrize("query", QUERIES)
def test_output_columns_are_those_of_duckdb(duck: duckdb.DuckDBPyConnection, query: str) -> None:
    assert described(query) == duckdb_described(duck, query)


@pytest.mark.parametrize("query", [*QUERIES, *(f"SELECT {each} FROM t" for each in EXPRESSIONS)])
def test_plans_are_well_formed(query: str) -> None:
    PlanVerifier().verify(bound(query).plan, "the binder")


@pytest.mark.parametrize("path", TPCH, ids=lambda path: path.stem)
def test_tpch_binds_as_duckdb_does(path: Path) -> None:
    tpch = duckdb.connect()
    catalog = FakeCatalog()
    from tests.planner.binding import FakeTable
    from tests.planner.tpch_tables import TPCH_TABLES

    for name, columns in TPCH_TABLES.items():
        catalog.tables[name] = FakeTable(name, columns)
        definitions = ", ".join(f"{column} {data_type}" for column, data_type in columns.items())
        tpch.execute(f"CREATE TABLE {name} ({definitions})")
    query = path.read_text(encoding="utf-8")
    statement = bound(query, catalog=catalog)
    PlanVerifier().verify(statement.plan, "the binder")
    ours = [(name, str(made.data_type)) for name, made in zip(statement.names, statement.plan.schema)]
    assert ours == duckdb_described(tpch, query.rstrip().rstrip(";"))


# ---- what a plan reads ----


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT count(*) FROM u", set()),
        ("SELECT i FROM u", {"i"}),
        ("SELECT * FROM u", {"i", "j", "Name"}),
        ("SELECT i FROM (SELECT * FROM u) x", {"i"}),
        ("SELECT k FROM (SELECT i + 1 AS k, * FROM u) x", {"i"}),
        ("WITH c AS (SELECT * FROM u) SELECT c.j FROM c WHERE c.i = 1", {"i", "j"}),
        ("SELECT ti FROM t WHERE EXISTS (SELECT * FROM u WHERE u.i = t.i)", {"i"}),
        ("SELECT count(*) FROM (SELECT * FROM u ORDER BY j LIMIT 3) x", {"j"}),
        ("SELECT x.i, x.NAME, y.bi FROM u x, t y WHERE x.i IN (SELECT j FROM u)", {"i", "j", "Name"}),
    ],
)
def test_only_columns_that_are_used_are_encoded_and_those_at_once(query: str, columns: set[str]) -> None:
    catalog = FakeCatalog()
    statement = bound(query, catalog=catalog)
    assert not catalog.tables["u"].encoded
    statement.encode_columns()
    assert set(catalog.tables["u"].encoded) == columns
    for scan in nodes(statement.plan, Scan):
        assert len(scan.columns) == len(scan.fields) == len(set(scan.columns))


class _HalfReadable(FakeTable):
    """A table with a column of a type that there is no place for."""

    def column_type(self, name: str) -> DataType:
        if name == "j":
            raise UnsupportedError("the column j has the type MAP, which is not supported")
        return super().column_type(name)

    def encode(self, names: Iterable[str]) -> None:
        for name in names:
            self.column_type(name)


def test_a_column_of_an_unsupported_type_leaves_the_others() -> None:
    catalog = FakeCatalog()
    catalog.tables["u"] = _HalfReadable("u", catalog.tables["u"].columns)
    for query in (
        "SELECT i, name FROM u",
        "SELECT count(*) FROM u",
        "SELECT * EXCLUDE (j) FROM u",
        "SELECT i FROM (SELECT * FROM u)",
        "WITH c AS (SELECT * FROM u) SELECT max(i) FROM c",
        "SELECT x.i FROM u x JOIN u y USING (i) WHERE EXISTS (SELECT * FROM u)",
    ):
        bound(query, catalog=catalog)
    for query in ("SELECT * FROM u", "SELECT j FROM u", "SELECT i FROM u ORDER BY j"):
        with pytest.raises(UnsupportedError, match="column j"):
            bound(query, catalog=catalog)


def test_every_reference_to_a_table_has_ids_of_its_own() -> None:
    plan = bound("WITH c AS (SELECT i FROM u) SELECT * FROM c a, c b, u").plan
    scans, references = nodes(plan, Scan), nodes(plan, Shared)
    ids = [made.id for node in (*scans, *references) for made in node.fields]
    assert len(ids) == len(set(ids)) == 6
    assert len(scans) == len(references) == 2  # c is bound once


# ---- plan shapes ----


def test_the_clauses_stack_in_order() -> None:
    plan = bound(
        "SELECT i, sum(j) s FROM u WHERE j > 0 GROUP BY i HAVING count(*) > 1 ORDER BY max(j) LIMIT 5"
    ).plan
    kinds = [type(node) for node in walk_plan(plan)]
    assert kinds == [Project, Limit, Sort, Project, Filter, Aggregate, Filter, Scan]
    assert len(plan.schema) == 2


def test_distinct_is_an_aggregate_without_aggregates() -> None:
    plan = bound("SELECT DISTINCT i, name FROM u").plan
    assert isinstance(plan, Aggregate) and not plan.aggregates and len(plan.keys) == 2


def test_group_key_columns_keep_their_id_and_equal_aggregates_are_one() -> None:
    plan = bound("SELECT i, sum(j), sum(j) + 1 FROM u GROUP BY i ORDER BY sum(j)").plan
    (aggregate,) = nodes(plan, Aggregate)
    assert len(aggregate.aggregates) == 1
    assert isinstance(aggregate.keys[0], ColumnRef) and aggregate.keys[0].id == aggregate.key_fields[0].id


def test_right_join_swaps_and_full_join_coalesces() -> None:
    (right,) = nodes(bound("SELECT t.i FROM t RIGHT JOIN u ON t.i = u.i").plan, Join)
    assert right.join_type is JoinType.LEFT and right.left.table_name == "u"
    full = bound("SELECT i FROM t FULL JOIN u USING (i)").plan
    assert isinstance(full, Project)
    coalesced = full.outputs[0]
    assert isinstance(coalesced, Call) and coalesced.function == "coalesce"


def test_a_comma_binds_weaker_than_join() -> None:
    plan = bound("SELECT 1 FROM t, u a FULL JOIN u b ON a.i = b.i").plan
    joins = nodes(plan, Join)
    assert [join.join_type for join in joins] == [JoinType.INNER, JoinType.FULL]


def test_subqueries_hold_plans_with_outer_columns() -> None:
    plan = bound(
        "SELECT ti FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.i = t.i) AND bi > ALL (SELECT j FROM u) "
        "AND si = (SELECT max(i) FROM u)"
    ).plan
    (filter_,) = nodes(plan, Filter)
    kinds = {type(part) for part in walk(filter_.condition)}
    assert {Exists, QuantifiedComparison, ScalarSubquery} <= kinds


def test_in_lists() -> None:
    (filter_,) = nodes(bound("SELECT i FROM u WHERE i IN (1, 2, 2)").plan, Filter)
    assert isinstance(filter_.condition, InList) and [each.value for each in filter_.condition.values] == [
        1,
        2,
    ]
    (filter_,) = nodes(bound("SELECT i FROM u WHERE i IN (1, NULL)").plan, Filter)
    assert isinstance(filter_.condition, Call) and filter_.condition.function == "or"


def test_dates_fold_and_texts_take_the_type_they_meet() -> None:
    (filter_,) = nodes(
        bound("SELECT i FROM t WHERE dt <= '1998-09-02' AND dt >= DATE '1994-01-31' + INTERVAL 1 MONTH").plan,
        Filter,
    )
    literals = [part.value for part in walk(filter_.condition) if isinstance(part, Literal)]
    day = datetime.date(1998, 9, 2) - datetime.date(1970, 1, 1)
    moment = datetime.datetime(1994, 2, 28) - datetime.datetime(1970, 1, 1)
    assert literals == [day.days, moment // datetime.timedelta(microseconds=1)]


def test_not_like_is_negated() -> None:
    for operator in ("NOT LIKE", "!~~", "NOT ILIKE", "NOT SIMILAR TO"):
        (filter_,) = nodes(bound(f"SELECT i FROM u WHERE name {operator} 'a'").plan, Filter)
        assert isinstance(filter_.condition, Call) and filter_.condition.function == "not", operator


def test_null_ordering_defaults_to_last() -> None:
    (sort,) = nodes(bound("SELECT i FROM u ORDER BY i, j DESC, name NULLS FIRST").plan, Sort)
    assert [(key.descending, key.nulls_first) for key in sort.keys] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_a_column_selected_twice_has_two_ids() -> None:
    statement = bound("SELECT i, i FROM u")
    assert statement.names == ("i", "i")
    assert len({made.id for made in statement.plan.schema}) == 2


def test_the_second_column_of_a_name_is_numbered_in_a_derived_table() -> None:
    names = bound("SELECT * FROM (SELECT 1 AS a, 2 AS A, 3 AS a_1, 4 AS a) s").names
    assert names == ("a", "A_1", "a_1_1", "a_2")  # DuckDB 2.0.0's


def test_a_chain_of_unions_is_one_node() -> None:
    (union,) = nodes(bound("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3").plan, UnionAll)
    assert len(union.branches) == 3


# ---- parameters, EXPLAIN ----


def test_parameters() -> None:
    values = [1, 2**40, 1.5, "x", decimal.Decimal("1.50"), datetime.date(2020, 1, 1), None, True, b"\x00"]
    types = ["INTEGER", "BIGINT", "DOUBLE", "VARCHAR", "DECIMAL(3,2)", "DATE", '"NULL"', "BOOLEAN", "BLOB"]
    marks = ", ".join("?" for _ in values)
    assert [kind for _, kind in described(f"SELECT {marks}", values)] == types
    assert described("SELECT $b + $a", {"a": 1, "b": 2.5}) == [("($b + $a)", "DOUBLE")]
    assert described("SELECT $2, $1", ["x", 1]) == [("$2", "INTEGER"), ("$1", "VARCHAR")]


def test_question_marks_count_in_text_order() -> None:
    plan = bound("SELECT ? FROM u WHERE i = ? LIMIT ?", ["first", 7, 3]).plan
    assert isinstance(plan, Limit) and plan.limit == 3
    (project,) = nodes(plan, Project)
    assert project.outputs == (Literal("first", project.fields[0].data_type),)


def test_explain() -> None:
    assert bound("SELECT 1").explain is None
    assert bound("EXPLAIN SELECT 1").explain == "plan"
    assert bound("-- why\nexplain analyze SELECT 1").explain == "analyze"


# ---- errors ----


@pytest.mark.parametrize(
    ("query", "kind", "message", "pointed_at"),
    [
        ("selec 1", ParseError, "syntax error", "selec"),
        ("select 'abc", ParseError, "never closed", "'"),
        ("", ParseError, "no statement", None),
        ("select 1; select 2", UnsupportedError, "2 statements", None),
        ("create table x (a int)", UnsupportedError, "CREATE", None),
        ("select nam from u", BindError, 'did you mean "Name"', "nam"),
        ("select x.i from u", BindError, 'no table "x"', "x.i"),
        ("select i from uu", BindError, 'did you mean "u"', "uu"),
        ("select uper(name) from u", BindError, 'did you mean "upper"', "uper"),
        ("select upper(i) from u", BindError, "does not take (INTEGER)", "upper(i"),
        (
            "select trim(leading name, 'a', 'b') from u",
            BindError,
            "ltrim() does not take",
            "trim(leading name, 'a', 'b'",
        ),
        ("select substring(name for 2, 3) from u", ParseError, 'expected ")"', ","),
        ("select if(i > 1, 2) from u", BindError, "if() takes 3 arguments, not 2", "if(i > 1, 2"),
        ("select sum(name) from u", BindError, "sum() does not take (VARCHAR)", "sum"),
        ("select i + name from u", BindError, "does not take (INTEGER, VARCHAR)", "i + name"),
        ("select dt < i from t", BindError, "cannot compare DATE with INTEGER", "dt < i"),
        ("select i from u a, u b", BindError, '"a.i" or "b.i"', "i"),
        ("select i, sum(j) from u", BindError, "must appear in GROUP BY", "i"),
        ("select sum(sum(i)) from u", BindError, "inside another aggregate", "sum"),
        ("select i from u where sum(i) > 1", BindError, "not allowed in WHERE", "sum"),
        ("select i from u order by 2", BindError, "there are 1 columns", "2"),
        ("select i from u limit -1", BindError, "must not be negative", "1"),
        ("select i from u where dt < 'x'", BindError, "no column", "dt"),
        ("select i from u qualify true", BindError, "QUALIFY needs", None),
        ("select * from unnested(3)", UnsupportedError, "unnested()", "unnested"),
        ("select i::bignum from u", UnsupportedError, "BIGNUM", None),
        ("select (select i, j from u)", BindError, "must have one column", "i, j from u"),
        ("select i from u union select i, j from u", BindError, "one side has 1 columns", "i"),
        ("select count(*) from t where exists (select max(t.i))", BindError, "enclosing query", "max"),
    ],
)
def test_errors_point_at_the_sql(query: str, kind: type[Error], message: str, pointed_at: str | None) -> None:
    with pytest.raises(kind) as caught:
        bound(query)
    assert message in str(caught.value)
    if pointed_at is not None:
        assert caught.value.span is not None
        start, stop = caught.value.span
        assert query[start:stop] == pointed_at
        assert "^" in str(caught.value)


@pytest.mark.parametrize(
    ("query", "parameters", "message"),
    [
        ("select ?", None, "no value for the parameter $1"),
        ("select ?, ?", [1], "no value for the parameter $2"),
        ("select ?", [1, 2], "does not use the parameter $2"),
        ("select $a", {"b": 1}, "no value for the parameter $a"),
        ("select $a", [1], "has a name"),
        ("select ?", [object()], "parameters may be"),
    ],
)
def test_parameter_errors(query: str, parameters: object, message: str) -> None:
    with pytest.raises(BindError) as caught:
        bound(query, parameters)
    assert message in str(caught.value)


def test_a_failing_constant_inside_case_waits_for_its_rows() -> None:
    statement = bound("SELECT CASE WHEN i > 0 THEN CAST('abc' AS INTEGER) ELSE 0 END FROM u")
    assert len(statement.plan.schema) == 1
