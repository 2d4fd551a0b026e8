"""What all benchmarks share: how a query's order is read, and answers are compared."""

from __future__ import annotations

import pytest

from tqp.measuring.query import Query

ORDERS = {
    "SELECT a FROM t": ((), None, "SELECT a FROM t"),
    "SELECT a, b FROM t ORDER BY a DESC NULLS LAST, 2 LIMIT 10": (
        ("a", "2"),
        10,
        "SELECT a, b FROM t ORDER BY a DESC NULLS LAST, 2",
    ),
    'select a from t order by "a b", lower(a, 1), a\nlimit 10': (
        ("a b",),
        10,
        'select a from t order by "a b", lower(a, 1), a',
    ),
    "SELECT a FROM t ORDER BY t.a": ((), None, "SELECT a FROM t ORDER BY t.a"),
    "SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3)": (
        (),
        None,
        "SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3)",
    ),
    "SELECT 'ORDER BY x' AS y, -- ORDER BY z\nsum(a) OVER (ORDER BY a) FROM t ORDER BY y -- LIMIT 1": (
        ("y",),
        None,
        None,
    ),
    "SELECT a FROM t ORDER BY a LIMIT 3 OFFSET 2": ((), None, None),
}


@pytest.mark.parametrize("text", ORDERS)
def test_order_and_limit(text: str) -> None:
    query = Query(1, "1", text)
    order_by, limit, without_limit = ORDERS[text]
    assert (query.order_by, query.limit, query.text_without_limit) == (order_by, limit, without_limit or text)
