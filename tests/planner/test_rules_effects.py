"""What each switchable rule does to a plan, and that the rows stay the same."""

from __future__ import annotations

import pytest

from tests.planner.plans import Catalog, bound, example_tables, join_types, kinds, optimized
from tests.reference_plan import MemoryTable, rows_of, sorted_rows
from tqp.core.datatypes import VARCHAR
from tqp.core.schema import Field
from tqp.planner.algebra.explain import explain_logical
from tqp.planner.algebra.expression_text import format_expression
from tqp.planner.algebra.expressions import TRUE, ColumnRef, Literal
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
    Values,
)
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.verify import PlanVerifier
from tqp.planner.optimizer import REQUIRED, RULES, optimize
from tqp.planner.rules.context import OptimizerContext

SWITCHABLE = [name for name, _ in RULES if name not in REQUIRED]
TABLES = example_tables(1)


def plan_of(query: str, *disabled: str) -> LogicalPlan:
    """The optimized plan, after a check that it has the rows of the plan as bound, whichever rule is off."""
    before = sorted_rows(bound(query, Catalog(TABLES)))
    for rule in SWITCHABLE:
        assert sorted_rows(optimized(query, TABLES, rule)) == before, rule
    plan = optimized(query, TABLES, *disabled)
    assert sorted_rows(plan) == before
    return plan


def filters_on_scans(plan: LogicalPlan) -> dict[str, str]:
    """The condition right above each scan, by table."""
    found = {}
    for node in walk_plan(plan):
        if isinstance(node, Filter) and isinstance(node.input, Scan):
            names = {field.id: field.name for field in node.input.schema}
            found[node.input.table_name] = format_expression(node.condition, names)
    return found


def test_predicates_reach_the_scans() -> None:
    plan = plan_of("SELECT t.k FROM t, u WHERE t.k = u.k AND t.a > 1 AND u.b < 3 AND t.b <> u.b")
    assert filters_on_scans(plan) == {"t": "a > 1", "u": "b < 3"}


def test_constants_cross_join_equalities() -> None:
    plan = plan_of("SELECT t.a FROM t, u, v WHERE t.a = u.a AND u.b = v.b AND t.a = 1")
    assert filters_on_scans(plan) == {"t": "a = 1", "u": "a = 1"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT r.k FROM t JOIN (SELECT 2 AS k, b FROM u) r ON t.a = r.k", {"t": "a = 2"}),
        ("SELECT r.k FROM (VALUES (2)) r(k) LEFT JOIN t ON t.a = r.k", {"t": "a = 2"}),
        ("SELECT r.k FROM t LEFT JOIN (SELECT 2 AS k, b FROM u) r ON t.a = r.k", {}),
        ("SELECT r.k FROM t JOIN (SELECT DISTINCT 2 AS k, b FROM u) r ON t.a = r.k", {"t": "a = 2"}),
        (
            "SELECT r.k FROM t JOIN (SELECT 2 AS k, b FROM u ORDER BY b LIMIT 2) r ON t.a = r.k",
            {"t": "a = 2"},
        ),
        ("SELECT r.k FROM (VALUES (2), (3)) r(k) JOIN t ON t.a = r.k", {}),
        ("SELECT r.k FROM (SELECT NULL::INTEGER AS k, b FROM u) r LEFT JOIN t ON t.a = r.k", {}),
    ],
)
def test_constants_of_one_side_filter_the_other(query: str, expected: dict[str, str]) -> None:
    assert filters_on_scans(plan_of(query)) == expected


def test_each_side_of_an_or_is_filtered() -> None:
    plan = plan_of("SELECT t.k FROM t, u WHERE t.k = u.k AND (t.a = 1 AND u.a = 2 OR t.a = 2 AND u.a = 1)")
    assert filters_on_scans(plan) == {"t": "a IN (1, 2)", "u": "a IN (2, 1)"}


def test_common_conjuncts_leave_an_or() -> None:
    plan = plan_of("SELECT t.k FROM t, u WHERE (t.k = u.k AND t.a = 1) OR (t.k = u.k AND u.a = 2)")
    (join,) = (node for node in walk_plan(plan) if isinstance(node, Join))
    assert "k" in explain_logical(join).split(" AND ")[0]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT t.k FROM t LEFT JOIN u ON t.k = u.k WHERE u.a > 0", [JoinType.INNER]),
        ("SELECT t.k FROM t LEFT JOIN u ON t.k = u.k WHERE u.a > 0 OR u.b = 1", [JoinType.INNER]),
        ("SELECT t.k FROM t LEFT JOIN u ON t.k = u.k WHERE u.a IS NULL", [JoinType.LEFT]),
        ("SELECT t.k FROM t LEFT JOIN u ON t.k = u.k WHERE coalesce(u.a, 1) = 1", [JoinType.LEFT]),
        ("SELECT t.k, u.b FROM t FULL JOIN u ON t.k = u.k WHERE t.a > 0", [JoinType.LEFT]),
        ("SELECT u.k, t.b FROM t FULL JOIN u ON t.k = u.k WHERE u.a > 0", [JoinType.LEFT]),
        ("SELECT t.k FROM t FULL JOIN u ON t.k = u.k WHERE u.a > t.a", [JoinType.INNER]),
        ("SELECT t.k FROM t FULL JOIN u ON t.k = u.k WHERE u.a IS NULL OR t.b IS NULL", [JoinType.FULL]),
        (
            "SELECT t.k FROM t LEFT JOIN u ON t.k = u.k LEFT JOIN v ON u.a = v.a WHERE v.b = 1",
            [JoinType.INNER] * 2,
        ),
        (
            "SELECT t.k FROM t LEFT JOIN u ON t.k = u.k SEMI JOIN v ON u.a = v.a OR t.b = 1 JOIN v w ON u.b = w.b",
            [JoinType.INNER, JoinType.SEMI, JoinType.INNER],
        ),
        (
            "SELECT t.k FROM t LEFT JOIN u ON t.k = u.k LEFT JOIN v ON t.a = v.a JOIN v w ON u.b = w.b",
            [JoinType.LEFT, JoinType.INNER, JoinType.INNER],
        ),
        (
            "SELECT t.k FROM t FULL JOIN v ON t.a = v.a JOIN v w ON v.b = w.b",
            [JoinType.LEFT, JoinType.INNER],
        ),
    ],
)
def test_outer_joins_whose_padding_is_rejected(query: str, expected: list[JoinType]) -> None:
    assert join_types(plan_of(query)) == expected


@pytest.mark.parametrize(
    "query, expected",
    [
        ("SELECT t.k, u.a FROM t LEFT JOIN u ON t.a = u.a WHERE u.a IS NULL", [JoinType.ANTI]),
        ("SELECT t.k, u.b FROM t LEFT JOIN u ON t.a = u.b WHERE u.k IS NULL AND t.b > 0", [JoinType.ANTI]),
        (
            "SELECT t.k, u.a FROM t LEFT JOIN u ON t.a < u.a WHERE u.a IS NULL AND u.b IS NULL",
            [JoinType.ANTI],
        ),
        (
            "SELECT t.k FROM t LEFT JOIN u ON t.a = u.a AND u.b > 1 WHERE u.k IS NULL AND coalesce(u.b, 2) = 2",
            [JoinType.ANTI],
        ),
        ("SELECT t.k FROM t LEFT JOIN u ON t.a = u.a WHERE u.b IS NULL", [JoinType.LEFT]),
        ("SELECT t.k FROM t LEFT JOIN u ON t.a IS NOT DISTINCT FROM u.a WHERE u.a IS NULL", [JoinType.LEFT]),
        ("SELECT t.k, u.k FROM t FULL JOIN u ON t.a = u.a WHERE u.k IS NULL", [JoinType.FULL]),
    ],
)
def test_left_joins_of_which_only_the_padding_is_kept(query: str, expected: list[JoinType]) -> None:
    assert join_types(plan_of(query)) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.k, u.k FROM t LEFT JOIN u ON t.k = u.k AND t.a = 1 WHERE t.b = 1",
        "SELECT t.k, u.k FROM t LEFT JOIN u ON t.a = u.a AND u.b = 1 AND t.b = 2 WHERE t.a = 1",
        "SELECT a, count(*) FROM t GROUP BY a HAVING a > 1 AND count(*) > 1",
        "SELECT count(*) FROM t HAVING false",
        "SELECT count(*) FROM t HAVING count(*) > 100",
        "SELECT * FROM (SELECT k, a FROM t UNION ALL SELECT a, b FROM u) AS s WHERE k > 1",
        "SELECT * FROM (SELECT k, a + b AS c FROM t) AS s WHERE c > 2",
        "SELECT * FROM (SELECT * FROM t ORDER BY k LIMIT 3) AS s WHERE a = 1",
        "SELECT DISTINCT k, a FROM t WHERE NOT (a > 1 OR b IS NULL)",
        (
            "SELECT x.k, count(u.a), sum(u.b), min(u.k), avg(u.a), count(DISTINCT u.b) FROM (SELECT DISTINCT k FROM t) AS x "
            "LEFT JOIN u ON x.k = u.k GROUP BY x.k"
        ),
        (
            "SELECT x.k, x.n, count(u.a) AS c FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS x "
            "LEFT JOIN u ON x.n = u.a AND x.k = u.k GROUP BY x.k, x.n HAVING count(u.a) = 0 OR x.n > 1"
        ),
        (
            "SELECT x.k, count(coalesce(u.a, 1)), count(*) FROM (SELECT DISTINCT k FROM t) AS x "
            "LEFT JOIN u ON x.k = u.k GROUP BY x.k"
        ),
        (
            "SELECT x.k, count(u.a) FILTER (WHERE u.a IS NULL) FROM (SELECT DISTINCT k FROM t) AS x "
            "LEFT JOIN u ON x.k = u.k GROUP BY x.k"
        ),
        "SELECT t.k FROM t, u, v WHERE t.a = u.a AND u.a = v.a AND t.b + u.b = v.b",
        "SELECT t.k FROM t, e WHERE t.a = e.a",
        "SELECT x.k FROM t AS x, t AS y, t AS z WHERE x.k = y.k AND y.k = z.k AND x.a = x.b",
        "SELECT k FROM t WHERE a = NULL OR k IN (1, 2, NULL)",
        "SELECT t.k FROM t JOIN u USING (k) WHERE EXISTS (SELECT 1 FROM v WHERE v.a = t.a) AND u.b IS NOT NULL",
        "SELECT t.k FROM t, u WHERE t.k = u.k AND NOT EXISTS (SELECT 1 FROM v WHERE v.a = u.a AND v.b <> t.b)",
    ],
)
def test_rows_stay_with_each_rule_off(query: str) -> None:
    plan_of(query)


def test_dependent_group_keys_become_any_value() -> None:
    plan = plan_of("SELECT t.k, t.a, u.b, count(*) FROM t, u WHERE t.k = u.k GROUP BY t.k, t.a, u.b")
    (grouped,) = (node for node in walk_plan(plan) if isinstance(node, Aggregate))
    assert len(grouped.keys) == 1
    assert [call.function for call in grouped.aggregates] == ["count_star", "any_value", "any_value"]


def test_keys_of_the_padded_side_are_kept() -> None:
    plan = plan_of("SELECT u.a, t.b, count(*) FROM t LEFT JOIN u ON t.k = u.k GROUP BY u.a, t.b")
    (grouped,) = (node for node in walk_plan(plan) if isinstance(node, Aggregate))
    assert len(grouped.keys) == 2


def test_equal_subplans_are_shared() -> None:
    view = "(SELECT a, sum(k) AS s FROM t WHERE b > 0 GROUP BY a)"
    query = f"SELECT x.a FROM {view} AS x WHERE x.s = (SELECT max(y.s) FROM {view} AS y)"
    plan = plan_of(query)
    shared = [node for node in walk_plan(plan) if isinstance(node, Shared)]
    assert len(shared) == 2 and shared[0].input is shared[1].input
    assert kinds(plan_of(query, "common_subplans"))[Shared] == 0


VIEW = "WITH view AS (SELECT a, b, sum(k) AS s FROM t GROUP BY a, b) "


@pytest.mark.parametrize(
    ("readers", "wanted", "left"),
    [
        ("SELECT s FROM view WHERE a = 1 UNION ALL SELECT s FROM view WHERE a = 2", "a IN (1, 2)", 2),
        (
            "SELECT s FROM view WHERE a > 0 AND b = 1 UNION ALL SELECT s FROM view WHERE b = 2 AND a > 0",
            "a > 0 AND b IN (1, 2)",
            2,
        ),
        ("SELECT s FROM view WHERE a > 0 UNION ALL SELECT b FROM view WHERE a > 0", "a > 0", 0),
        (
            "SELECT s FROM view WHERE a > 0 AND s > 1 UNION ALL SELECT b FROM view WHERE a > 0 OR s > 9",
            None,
            2,
        ),
        ("SELECT s FROM view WHERE a = 1 UNION ALL SELECT s FROM view", None, 1),
        ("SELECT x.s FROM view AS x, view AS y WHERE x.a = y.b AND x.a = 1", "a = 1 OR b = 1", 2),
    ],
)
def test_a_shared_plan_computes_what_its_readers_want(readers: str, wanted: str | None, left: int) -> None:
    """`left`: how many of the readers' own conditions are left."""
    plan = plan_of(VIEW + readers)
    assert kinds(plan)[Aggregate] == 1
    assert filters_on_scans(plan) == ({} if wanted is None else {"t": wanted})
    readers_of = [
        node for node in walk_plan(plan) if isinstance(node, Filter) and isinstance(node.input, Shared)
    ]
    assert len(readers_of) == left


def test_only_the_columns_that_some_reader_wants_are_computed() -> None:
    plan = plan_of(
        VIEW.replace("sum(k)", "sum(k) AS r, max(k)") + "SELECT x.a, y.s FROM view x, view y WHERE x.a = y.a"
    )
    (grouped,) = (node for node in walk_plan(plan) if isinstance(node, Aggregate))
    assert len(grouped.aggregates) == 1 and kinds(plan)[Project] <= 2


def test_branches_of_a_union_that_a_constant_excludes_are_dropped() -> None:
    union = "(SELECT k, 'x' AS kind FROM t UNION ALL SELECT k, 'y' FROM u UNION ALL SELECT k, 'z' FROM v)"
    for kinds_wanted, tables in (("= 'y'", ["u"]), ("IN ('x', 'z')", ["t", "v"]), ("= 'w'", [])):
        plan = plan_of(f"SELECT k FROM {union} AS all_kinds WHERE kind {kinds_wanted}")
        assert [node.table_name for node in walk_plan(plan) if isinstance(node, Scan)] == tables
        assert kinds(plan)[Filter] == 0


def test_exists_with_another_value_compares_least_and_greatest() -> None:
    query = "SELECT k FROM t WHERE {} EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.b <> t.b)"
    assert join_types(plan_of(query.format(""))) == [JoinType.INNER]
    assert join_types(plan_of(query.format("NOT"))) == [JoinType.LEFT]
    assert join_types(plan_of(query.format(""), "exists_not_equal_to_min_max")) == [JoinType.SEMI]


def test_a_semi_join_goes_to_the_relation_it_reduces() -> None:
    rows = 400
    big = MemoryTable("big", {"k": list(range(rows)), "a": [i % 20 for i in range(rows)]})
    small = MemoryTable("small", {"a": list(range(20)), "c": [i % 5 for i in range(20)]})
    few = MemoryTable("few", {"k": [3, 4]})
    query = "SELECT big.k, c FROM big, small WHERE big.a = small.a AND big.k IN (SELECT k FROM few)"
    plan = optimized(query, [big, small, few])
    assert join_types(plan) == [JoinType.INNER, JoinType.SEMI]
    assert sorted_rows(plan) == [(3, 3), (4, 4)]


def test_the_larger_side_is_probed() -> None:
    big = MemoryTable("big", {"k": list(range(50))})
    small = MemoryTable("small", {"k": list(range(5))})
    for tables in ("big, small", "small, big"):
        plan = optimized(f"SELECT big.k FROM {tables} WHERE big.k = small.k", [big, small])
        (join,) = (node for node in walk_plan(plan) if isinstance(node, Join))
        assert isinstance(join.left, Scan) and join.left.table_name == "big"


def test_inner_joins_that_drop_rows_come_before_left_joins() -> None:
    many = MemoryTable("many", {"k": [i % 3 for i in range(60)], "a": [i % 30 for i in range(60)]})
    more = MemoryTable("more", {"k": [i % 3 for i in range(60)], "b": list(range(60))})
    few = MemoryTable("few", {"a": [7]})
    tables = [many, more, few]
    query = "SELECT many.a, more.b FROM many LEFT JOIN more ON many.k = more.k JOIN few ON many.a = few.a"
    plan = optimized(query, tables)
    assert join_types(plan) == [JoinType.LEFT, JoinType.INNER]
    assert sorted_rows(plan) == sorted_rows(optimized(query, tables, "reorder_joins"))
    # what reads the right side waits for it
    query += " AND coalesce(more.b, 0) = few.a"
    assert join_types(optimized(query, tables)) == [JoinType.INNER, JoinType.LEFT]


def test_relations_are_connected_by_equalities_of_nulls_too() -> None:
    sizes = {"small": 300, "middle": 400, "large": 1000}
    tables = [
        MemoryTable(name, {"a": list(range(size)), "b": list(range(size))}) for name, size in sizes.items()
    ]
    query = (
        "SELECT 1 FROM small, middle, large "
        "WHERE small.a IS NOT DISTINCT FROM large.a AND large.b IS NOT DISTINCT FROM middle.b"
    )
    joins = [node for node in walk_plan(optimized(query, tables)) if isinstance(node, Join)]
    assert len(joins) == 2 and all(join.condition != TRUE for join in joins)


def test_connected_relations_are_joined_before_a_cross_product() -> None:
    query = "SELECT t.k FROM t, v, u WHERE t.a = u.a AND u.b = v.b"
    for disabled in ((), ("reorder_joins",), ("push_down_predicates",)):
        joins = [node for node in walk_plan(optimized(query, TABLES, *disabled)) if isinstance(node, Join)]
        assert all(join.condition != TRUE for join in joins)


def test_only_columns_that_are_read_are_scanned() -> None:
    plan = plan_of("SELECT count(*) FROM t WHERE a > 1")
    (scan,) = (node for node in walk_plan(plan) if isinstance(node, Scan))
    assert scan.columns == ("a",)


def test_nodes_without_effect_go() -> None:
    assert kinds(plan_of("SELECT k, a, b FROM (SELECT * FROM t ORDER BY k) AS s WHERE true"))[Filter] == 0
    assert kinds(plan_of("SELECT max(k) FROM (SELECT * FROM t ORDER BY k) AS s"))[Sort] == 0
    assert kinds(plan_of("SELECT DISTINCT k, a FROM t"))[Aggregate] == 0
    assert kinds(plan_of("SELECT k FROM t WHERE 1 = 2"))[Values] == 1
    assert kinds(plan_of("SELECT k FROM t WHERE a IS DISTINCT FROM a"))[Values] == 1
    assert kinds(plan_of("SELECT k FROM t WHERE (a, b) IS NOT DISTINCT FROM (a, b)"))[Filter] == 0
    assert kinds(plan_of("SELECT k FROM t WHERE a > 1 AND a < 100 AND a > -5"))[Filter] == 1


@pytest.mark.parametrize(
    ("query", "scans"),
    [
        ("SELECT t.k FROM t JOIN u ON t.k = u.k WHERE false", 0),
        ("SELECT t.k FROM t, u, (SELECT 1 AS one WHERE NULL) AS v WHERE t.k = u.k", 0),
        ("SELECT t.k FROM t WHERE k IN (SELECT k FROM u WHERE 1 = 2)", 0),
        ("SELECT * FROM (SELECT k FROM t WHERE false) AS s LEFT JOIN u ON s.k = u.k", 0),
        ("SELECT * FROM (SELECT k FROM t WHERE false) AS s FULL JOIN u ON s.k = u.k", 1),
        ("SELECT t.k FROM t LEFT JOIN (SELECT k FROM u WHERE false) AS s ON t.k = s.k", 1),
        ("SELECT k FROM t WHERE k NOT IN (SELECT k FROM u WHERE false)", 1),
    ],
)
def test_joins_without_rows_read_nothing(query: str, scans: int) -> None:
    assert kinds(plan_of(query))[Scan] == scans


def test_the_order_that_shows_is_kept() -> None:
    plan = optimized("SELECT k + 1 FROM (SELECT k FROM t ORDER BY k DESC LIMIT 3) AS s", TABLES)
    assert kinds(plan)[Limit] == 1
    assert rows_of(plan) == sorted(rows_of(plan), reverse=True)


def test_a_broken_plan_names_the_rule() -> None:
    field = Field(1, "x", VARCHAR)
    broken = Project(Values(((),), ()), (field,), (ColumnRef(7, VARCHAR, "y"),))
    with pytest.raises(
        AssertionError, match=r"some_rule made an ill-formed plan: column y#7 is not available"
    ):
        PlanVerifier().verify(broken, "some_rule")
    wrong_type = Project(Values(((),), ()), (field,), (Literal(1, example_tables(0)[0].column_type("k")),))
    with pytest.raises(AssertionError, match="its expression BIGINT"):
        optimize(wrong_type, OptimizerContext())


def test_a_left_join_is_grouped_before_it() -> None:
    query = (
        "SELECT x.k, count(u.a) FROM (SELECT DISTINCT k FROM t) AS x LEFT JOIN u ON x.k = u.k GROUP BY x.k"
    )
    (join,) = (node for node in walk_plan(plan_of(query)) if isinstance(node, Join))
    assert isinstance(join.right, Aggregate) and [call.function for call in join.right.aggregates] == [
        "count"
    ]
    several = "SELECT t.a, count(u.a) FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.a"
    (join,) = (node for node in walk_plan(plan_of(several)) if isinstance(node, Join))
    assert not isinstance(join.right, Aggregate)


@pytest.mark.parametrize(
    ("condition", "is_empty"),
    [
        ("NULL NOT IN (SELECT x FROM (VALUES (1), (2)) v(x))", True),
        ("NOT EXISTS (SELECT 1)", True),
        ("NULL NOT IN (SELECT 1 WHERE false)", False),
        ("NULL NOT IN (SELECT k FROM u WHERE b < 0)", False),
    ],
)
def test_a_partner_that_drops_every_row_leaves_nothing_to_read(condition: str, is_empty: bool) -> None:
    plan = plan_of(f"SELECT a.k FROM t a, t b WHERE {condition}")
    assert any(isinstance(node, Scan) for node in walk_plan(plan)) != is_empty


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.k, u.a FROM t LEFT JOIN u ON t.k = u.k AND false",
        "SELECT k FROM t ANTI JOIN (SELECT k FROM u WHERE false) w ON t.k = w.k",
        "SELECT k, a IN (SELECT a FROM u WHERE false) FROM t",
        "SELECT k FROM t WHERE a NOT IN (SELECT a FROM u WHERE u.k = t.k AND false)",
        "SELECT k, (SELECT a FROM u WHERE u.k = t.k AND false) FROM t",
    ],
)
def test_a_side_without_partners_is_not_read(query: str) -> None:
    assert kinds(plan_of(query))[Scan] == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.k, u.a FROM t FULL JOIN u ON t.k = u.k AND false",
        "SELECT t.a, s.k FROM t FULL JOIN (SELECT k FROM u WHERE false) AS s ON t.k = s.k",
        "SELECT s.k, t.a FROM (SELECT k FROM u WHERE false) AS s FULL JOIN t ON t.k = s.k",
    ],
)
def test_a_full_join_without_partners_is_no_join(query: str) -> None:
    assert kinds(plan_of(query))[Join] == 0
