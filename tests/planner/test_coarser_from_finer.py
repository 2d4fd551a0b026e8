"""Grouping sets, and groups of one shared plan by a part of others' keys: which are made of which, and the rows."""

from __future__ import annotations

import pytest

from tests.planner.plans import Catalog, bound, example_tables, optimized
from tests.reference_plan import sorted_rows
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan, Scan, Shared
from tqp.planner.algebra.node import walk_plan

TABLES = example_tables(3)


def inputs_of_aggregates(query: str) -> list[str]:
    """What each different aggregate reads, after a check that the rows are those of the plan as bound."""
    plan = optimized(query, TABLES)
    assert sorted_rows(plan) == sorted_rows(bound(query, Catalog(TABLES)))
    assert sorted_rows(plan) == sorted_rows(optimized(query, TABLES, "coarser_from_finer"))
    nodes = {node: None for node in walk_plan(plan) if isinstance(node, Aggregate)}
    return sorted(_read_by(node.input) for node in nodes)


def _read_by(plan: LogicalPlan) -> str:
    """`rows`, or the groups by how many keys the plan reads."""
    if isinstance(plan, Shared):
        plan = plan.input
    return f"groups by {len(plan.keys)}" if isinstance(plan, Aggregate) else "rows"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT a, b, sum(k), count(*), min(b), avg(k) FROM t GROUP BY ROLLUP (a, b)",
            ["groups by 1", "groups by 2", "rows"],
        ),
        (
            "SELECT a, b, count(b) FROM t WHERE k < 6 GROUP BY CUBE (a, b)",
            ["groups by 1", "groups by 2", "groups by 2", "rows"],
        ),
        ("SELECT a, b, count(*) FROM t GROUP BY a, ROLLUP (b)", ["groups by 2", "rows"]),
        # as often as it is asked for, but computed once
        ("SELECT a, count(*) FROM t GROUP BY GROUPING SETS (a, a)", ["rows"]),
        ("SELECT a, sum(k) FILTER (WHERE b > 1) FROM e GROUP BY ROLLUP (a)", ["groups by 1", "rows"]),
        # what cannot be made of parts
        ("SELECT a, count(DISTINCT b) FROM t GROUP BY ROLLUP (a)", ["rows", "rows"]),
        ("SELECT a, any_value(k) IS NULL FROM t GROUP BY ROLLUP (a)", ["rows", "rows"]),
        # as many groups by both as there are rows
        ("SELECT k, a, count(*) FROM t GROUP BY GROUPING SETS (k, a)", ["rows", "rows"]),
        (
            (
                "WITH c AS (SELECT t.a, t.b, t.k FROM t, u WHERE t.k = u.k) "
                "SELECT a, b, sum(k) FROM c GROUP BY a, b UNION ALL SELECT b, NULL, max(k) FROM c GROUP BY b"
            ),
            ["groups by 2", "rows"],
        ),
        (
            "WITH c AS (SELECT a, k FROM t) SELECT a FROM c GROUP BY a HAVING sum(k) > (SELECT avg(k) FROM c)",
            ["groups by 1", "rows"],
        ),
        # they differ from row to row
        (
            "SELECT k, (SELECT max(n) FROM (SELECT count(*) AS n FROM u WHERE u.a = t.a GROUP BY ROLLUP (b))) FROM t",
            None,
        ),
    ],
)
def test_groups_are_made_of_finer_ones(query: str, expected: list[str] | None) -> None:
    assert expected is None or inputs_of_aggregates(query) == expected
    if expected is None:
        inputs_of_aggregates(query)


def test_rows_are_read_once() -> None:
    plan = optimized(
        "SELECT a, b, sum(k) FROM t GROUP BY CUBE (a, b) HAVING a > 0 OR grouping(a) = 1", TABLES
    )
    assert len({node for node in walk_plan(plan) if isinstance(node, Scan)}) == 1


def test_sets_that_having_rules_out_are_not_computed() -> None:
    plan = optimized("SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b) HAVING grouping(a, b) = 1", TABLES)
    keys = [
        len(node.keys) for node in {node: None for node in walk_plan(plan) if isinstance(node, Aggregate)}
    ]
    assert 0 not in keys
