"""`match_once`: joins whose rows nothing counts, by their plans and rows."""

from __future__ import annotations

import pytest

from tests.planner.plans import join_types, kinds, optimized
from tests.reference_plan import MemoryTable, sorted_rows
from tqp.planner.algebra.logical_plan import Aggregate, JoinType, Limit
from tqp.planner.algebra.node import walk_plan

PAIRS = [
    MemoryTable("left_rows", {"k": [i % 3 for i in range(60)], "a": [i % 30 for i in range(60)]}),
    MemoryTable("right_rows", {"k": [i % 3 for i in range(60)] + [None], "b": [*range(60), None]}),
    MemoryTable("few", {"k": [0, 1, 2, None]}),
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT DISTINCT a FROM left_rows l JOIN right_rows r ON l.k = r.k", [JoinType.SEMI]),
        ("SELECT DISTINCT b FROM left_rows l, right_rows r WHERE l.k = r.k AND a < b", [JoinType.SEMI]),
        (
            "SELECT max(a), count(DISTINCT l.k) FROM left_rows l JOIN right_rows r ON l.k = r.k",
            [JoinType.SEMI],
        ),
        ("SELECT max(a), count(l.k) FROM left_rows l JOIN right_rows r ON l.k = r.k", [JoinType.INNER]),
        ("SELECT max(a), min(b) FROM left_rows l JOIN right_rows r ON l.k = r.k", [JoinType.INNER]),
        ("SELECT a FROM left_rows l JOIN right_rows r ON l.k = r.k", [JoinType.INNER]),
        ("SELECT DISTINCT a FROM left_rows l JOIN few ON l.k = few.k", [JoinType.INNER]),  # nothing to save
        (
            "SELECT DISTINCT few.k FROM few JOIN right_rows r ON few.k = r.k",
            [JoinType.SEMI],
        ),  # by the keys of a table
        ("SELECT DISTINCT few.k FROM few JOIN right_rows r ON few.k = r.k AND b > 3", [JoinType.INNER]),
        ("SELECT DISTINCT a FROM left_rows l, right_rows r", [JoinType.INNER]),
        (
            "SELECT DISTINCT a FROM (SELECT a FROM left_rows l JOIN right_rows r ON l.k = r.k LIMIT 9999)",
            [JoinType.INNER],
        ),
        (
            "SELECT k FROM few WHERE k IN (SELECT l.k FROM left_rows l JOIN right_rows r ON l.k = r.k AND a > b)",
            [JoinType.SEMI, JoinType.SEMI],
        ),
        (
            "SELECT k FROM few WHERE k NOT IN (SELECT l.k FROM left_rows l JOIN right_rows r ON l.k = r.k AND a > b)",
            [JoinType.NULL_AWARE_ANTI, JoinType.SEMI],
        ),
        (
            "SELECT k FROM few WHERE k IN (SELECT l.k FROM left_rows l JOIN right_rows r ON l.k = r.k AND a <> b)",
            [JoinType.SEMI, JoinType.INNER],  # by the least and the greatest b
        ),
        (
            "SELECT k, (SELECT max(a) FROM left_rows l JOIN right_rows r ON l.k = r.k WHERE l.k = few.k) FROM few",
            [JoinType.LEFT, JoinType.SEMI],
        ),
    ],
)
def test_pairs_are_not_made_where_nothing_minds_them(query: str, expected: list[JoinType]) -> None:
    plan = optimized(query, PAIRS)
    assert join_types(plan) == expected
    for rule in ("match_once", "exists_not_equal_to_min_max"):
        assert sorted_rows(optimized(query, PAIRS, rule)) == sorted_rows(plan)


@pytest.mark.parametrize(
    ("query", "has_limit"),
    [
        ("SELECT DISTINCT a FROM left_rows, right_rows", True),
        ("SELECT max(a), count(DISTINCT l.k) FROM left_rows l, right_rows r WHERE r.b IS NOT NULL", True),
        ("SELECT k FROM few WHERE k IN (SELECT l.k FROM left_rows l, right_rows)", True),
        (
            "WITH w AS MATERIALIZED (SELECT a, sum(k) AS s FROM left_rows GROUP BY a) SELECT DISTINCT x.a FROM w x, w y",
            True,
        ),
        ("SELECT DISTINCT a, b FROM left_rows, right_rows", False),
        ("SELECT a, count(*) FROM left_rows, right_rows GROUP BY a", False),
        ("SELECT DISTINCT a FROM left_rows, right_rows WHERE CAST(b AS UTINYINT) - 1 > 0", False),
    ],
)
def test_a_product_is_made_with_one_row_where_nothing_minds_how_many(query: str, has_limit: bool) -> None:
    plan = optimized(query, PAIRS)
    assert any(isinstance(node, Limit) for node in walk_plan(plan)) == has_limit
    assert sorted_rows(optimized(query, PAIRS, "match_once")) == sorted_rows(plan)


REPEATED = [
    MemoryTable(
        "many", {"k": [i % 3 for i in range(120)], "c": [i % 2 if i % 6 else None for i in range(120)]}
    ),
    MemoryTable("others", {"k": [i % 4 for i in range(80)], "d": [i % 2 for i in range(80)]}),
]


@pytest.mark.parametrize(
    ("query", "aggregates"),
    [
        ("SELECT DISTINCT c, d FROM many, others", 2),
        ("SELECT DISTINCT c, d FROM many m JOIN others o ON m.k = o.k", 3),
        ("SELECT c, max(d) FROM many m JOIN others o ON m.k < o.k GROUP BY c", 3),
        ("SELECT c, count(d) FROM many m JOIN others o ON m.k = o.k GROUP BY c", 1),
        ("SELECT DISTINCT c, d FROM many m LEFT JOIN others o ON m.k = o.k", 1),
        ("SELECT c, d FROM many m JOIN others o ON m.k = o.k", 0),
    ],
)
def test_sides_of_repeated_rows_are_joined_once_for_each(query: str, aggregates: int) -> None:
    plan = optimized(query, REPEATED)
    assert kinds(plan)[Aggregate] == aggregates
    assert sorted_rows(optimized(query, REPEATED, "match_once")) == sorted_rows(plan)
