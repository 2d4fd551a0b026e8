"""Plans with window functions: their nodes, what moves through them, and what is known of their columns."""

from __future__ import annotations

import pytest

from tests.planner.plans import Catalog, bound, example_tables, kinds, optimized
from tqp.core.datatypes import BIGINT
from tqp.planner.algebra.cardinality import Estimator
from tqp.planner.algebra.explain import explain_logical, explain_physical
from tqp.planner.algebra.logical_plan import Filter, LogicalPlan, Scan, Shared, Sort, Window
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.verify import PlanVerifier
from tqp.planner.functions.registry import AGGREGATES, WINDOWS
from tqp.planner.physical import plan as physical
from tqp.planner.physical.algorithm_choice import PhysicalOptions
from tqp.planner.physical.planner import plan_physical

TABLES = example_tables(1)


def windows(plan: LogicalPlan) -> list[Window]:
    return [node for node in walk_plan(plan) if isinstance(node, Window)]


def lines(query: str) -> list[str]:
    """The plan's nodes, without estimates."""
    return [line.split("  ~")[0].strip() for line in explain_logical(optimized(query, TABLES)).splitlines()]


def test_calls_that_agree_in_partition_and_order_share_a_node() -> None:
    query = (
        "SELECT rank() OVER (PARTITION BY a ORDER BY b), sum(k) OVER (PARTITION BY a ORDER BY b), "
        "rank() OVER (PARTITION BY a ORDER BY b), sum(k) OVER (PARTITION BY a ORDER BY b ROWS 1 PRECEDING), "
        "rank() OVER (ORDER BY b) FROM t"
    )
    first, second = sorted(windows(bound(query, Catalog(TABLES))), key=lambda node: len(node.calls))
    assert [call.function for call in first.calls] == ["rank"]
    assert [call.function for call in second.calls] == ["rank", "sum", "sum"]


def test_text() -> None:
    assert lines(
        "SELECT sum(a) FILTER (WHERE b > 1) OVER (PARTITION BY b ORDER BY k DESC ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING "
        "EXCLUDE TIES) AS s, lag(a, 2 IGNORE NULLS) OVER (PARTITION BY b ORDER BY k DESC) AS l FROM t"
    )[1] == (
        "Window by b order by k DESC: sum(a) FILTER (WHERE b > 1) ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING EXCLUDE TIES "
        "AS sum, lag(a, 2 IGNORE NULLS) AS lag"
    )
    assert lines("SELECT count(*) OVER (ORDER BY k RANGE 1 PRECEDING) FROM t")[1] == (
        "Window order by k: count(*) RANGE AT k - 1 AS count_star"
    )
    assert lines("SELECT first_value(k) OVER () FROM t")[1] == "Window: first_value(k) AS first_value"
    planned = plan_physical(optimized("SELECT rank() OVER (PARTITION BY a ORDER BY b) FROM t", TABLES))
    assert "Window by a order by b: rank() AS rank" in explain_physical(planned)


def test_what_nobody_reads_is_not_computed() -> None:
    (node,) = windows(
        optimized(
            "SELECT r FROM (SELECT rank() OVER w AS r, sum(b) OVER w AS s FROM t WINDOW w AS (ORDER BY a))",
            TABLES,
        )
    )
    assert [call.function for call in node.calls] == ["rank"]
    plan = optimized("SELECT k FROM (SELECT k, rank() OVER (ORDER BY a) AS r FROM t)", TABLES)
    assert kinds(plan) == {Scan: 1}
    (scan,) = (
        node
        for node in walk_plan(optimized("SELECT rank() OVER (ORDER BY a) FROM t", TABLES))
        if isinstance(node, Scan)
    )
    assert scan.columns == ("a",)


def test_predicates_on_partitions_sink_and_others_stay() -> None:
    query = "SELECT k, r FROM (SELECT *, rank() OVER (PARTITION BY a ORDER BY k) AS r FROM t) WHERE a = 1 AND b = 2 AND r < 3"
    plan = optimized(query, TABLES)
    (node,) = windows(plan)
    below = [each for each in walk_plan(node) if isinstance(each, Filter)]
    assert [explain_logical(each).split("  ~")[0] for each in below] == ["Filter a = 1"]
    above = [each for each in walk_plan(plan) if isinstance(each, Filter) and each not in below]
    assert [explain_logical(each).split("  ~")[0] for each in above] == ["Filter b = 2 AND rank < 3"]


def test_what_may_raise_stays_above_with_what_shields_it() -> None:
    query = "SELECT k, r FROM (SELECT *, rank() OVER (PARTITION BY a ORDER BY k) AS r FROM t) WHERE r < 3 AND 1 // (a - 1) > 0"
    (node,) = windows(optimized(query, TABLES))
    assert kinds(node) == {Window: 1, Scan: 1}
    (node,) = windows(optimized(query.replace("r < 3 AND", ""), TABLES))
    assert kinds(node) == {Window: 1, Filter: 1, Scan: 1}


def test_an_order_below_is_seen_by_ties() -> None:
    plan = optimized("SELECT row_number() OVER () FROM (SELECT a FROM t ORDER BY b)", TABLES)
    assert kinds(plan)[Sort] == 1


def test_equal_windows_are_computed_once() -> None:
    inner = "(SELECT a, rank() OVER (ORDER BY b, a) AS r FROM t)"
    plan = optimized(f"SELECT * FROM {inner} x, {inner} y WHERE x.r = y.r", TABLES)
    assert kinds(plan)[Shared] == 2 and len(windows(plan)) == 1
    plan = optimized(f"WITH w AS {inner} SELECT * FROM w x, w y WHERE x.r = y.r", TABLES)
    assert len(windows(plan)) == 1


def test_facts() -> None:
    query = (
        "SELECT k, row_number() OVER w AS n, ntile(2) OVER w AS t, lag(k, 1, 99) OVER w AS l, count(a) OVER w AS c, "
        "max(k) OVER w AS m, percent_rank() OVER w AS p, max(k) OVER (w ROWS 1 PRECEDING) AS f, "
        "count(*) OVER (w ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) AS z, "
        "max(k) OVER (w ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) AS e FROM t WINDOW w AS (PARTITION BY a ORDER BY b)"
    )
    plan = bound(query, Catalog(TABLES))
    facts = dict(zip("kntlcmpfze", plan.field_facts.values(), strict=True))
    rows, keys = 7, facts["k"].facts.range
    assert keys is not None
    assert facts["n"].facts.range == (1, rows) and not facts["n"].nullable and facts["n"].data_type == BIGINT
    assert facts["t"].facts.range == (1, rows) and facts["t"].nullable and facts["t"].facts.is_checked
    assert facts["l"].facts.range == (keys[0], 99) and facts["l"].nullable
    assert facts["c"].facts.range == (0, rows) and not facts["c"].nullable
    assert facts["m"].facts.range == keys and not facts["m"].nullable
    assert facts["p"].facts.range is None and not facts["p"].nullable
    assert facts["f"].nullable and facts["f"].facts.is_checked
    assert facts["z"].facts.range == (0, rows) and not facts["z"].nullable
    assert facts["e"].nullable
    assert facts["k"].facts.is_unique and not facts["k"].facts.is_sorted
    (node,) = windows(plan)
    assert node.row_bounds == (rows, rows) and Estimator().rows(node) == rows
    assert node.unique_sets == node.input.unique_sets
    by_key = bound("SELECT k, rank() OVER (PARTITION BY k ORDER BY b) FROM t", Catalog(TABLES))
    assert next(iter(by_key.field_facts.values())).facts.is_sorted
    unordered = bound("SELECT k, count(*) OVER (PARTITION BY k) FROM t", Catalog(TABLES))
    assert not next(iter(unordered.field_facts.values())).facts.is_sorted


def test_ill_formed() -> None:
    (node,) = windows(bound("SELECT rank() OVER (ORDER BY a) FROM t", Catalog(TABLES)))
    (field,) = node.fields
    wrong = node.changed({"fields": (field, field)})
    with pytest.raises(AssertionError, match="ill-formed"):
        PlanVerifier().verify(wrong, "a test")


def test_physical_node_keeps_what_is_read() -> None:
    plan = optimized(
        "SELECT r FROM (SELECT *, rank() OVER (PARTITION BY a ORDER BY k) AS r FROM t) WHERE b = 2", TABLES
    )
    (node,) = (each for each in walk_plan(plan_physical(plan)) if isinstance(each, physical.Window))
    assert [field.name for field in node.fields] == ["b", "rank"]
    assert [field.name for field in node.call_fields] == ["rank"]


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("n <= 3", 3),
        ("n = 2", 2),
        ("n < 3 AND b > 1", 2),
        ("2 >= n", 2),
        ("n <= 3 AND n < 2", 1),
        ("n > 3", None),
        ("n <> 1", None),
    ],
)
def test_a_condition_on_ranks_tells_how_many_rows_are_wanted(condition: str, most: int | None) -> None:
    query = f"SELECT k, n FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY k) AS n FROM t) WHERE {condition}"

    def planned(query: str, *disabled: str) -> physical.Window:
        plan = plan_physical(optimized(query, TABLES), PhysicalOptions(disabled_rules=frozenset(disabled)))
        (node,) = (each for each in walk_plan(plan) if isinstance(each, physical.Window))
        return node

    assert planned(query).most == most
    assert planned(query, "first_of_partitions").most is None
    others = query.replace(
        "AS n", "AS n, sum(k) OVER (PARTITION BY a ORDER BY k ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS s"
    )
    assert planned(others.replace("k, n FROM", "k, n, s FROM")).most is None
    assert planned(query.replace("row_number()", "rank()")).most == most
    assert planned(query.replace("row_number()", "dense_rank()")).most is None
    ranks = query.replace("AS n", "AS n, {} OVER (PARTITION BY a ORDER BY k) AS r").replace(
        "k, n FROM", "k, n, r FROM"
    )
    assert planned(ranks.format("dense_rank()")).most == most
    assert planned(ranks.format("cume_dist()")).most is None


def test_names_are_of_aggregates_or_of_window_functions() -> None:
    assert not AGGREGATES.keys() & WINDOWS.keys()
