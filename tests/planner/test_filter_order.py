"""What conjuncts cost, their order, and when rows are selected between them."""

from __future__ import annotations

import pytest

from tqp.core.datatypes import BIGINT, BOOLEAN, DATE, DOUBLE, VARCHAR
from tqp.core.schema import ColumnFacts, Field
from tqp.planner.algebra.cardinality import Estimator
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, InList, Literal
from tqp.planner.physical.filter_order import RemainingConjuncts, order_conjuncts
from tqp.planner.physical.predicate_costs import cost

TINY, LARGE, DAY, CODED, TEXT, FLOAT = (
    ColumnRef(0, BIGINT, "tiny"),
    ColumnRef(1, BIGINT, "large"),
    ColumnRef(2, DATE, "day"),
    ColumnRef(3, VARCHAR, "coded"),
    ColumnRef(4, VARCHAR, "text"),
    ColumnRef(5, DOUBLE, "float"),
)
FIELDS = {
    0: Field(0, "tiny", BIGINT, False, ColumnFacts(0, 100)),
    1: Field(1, "large", BIGINT, False, ColumnFacts(0, 2**40)),
    2: Field(2, "day", DATE, False, ColumnFacts(8000, 10000)),
    3: Field(3, "coded", VARCHAR, False, ColumnFacts(dictionary_size=5)),
    4: Field(4, "text", VARCHAR, False, ColumnFacts()),
    5: Field(5, "float", DOUBLE, False, ColumnFacts()),
}


def call(function: str, column: ColumnRef, value: object) -> Expression:
    return Call(function, (column, Literal(value, column.data_type)), BOOLEAN)  # type: ignore[arg-type]


def test_narrow_columns_are_cheaper_and_strings_dearest() -> None:
    parts = [
        call("less", TINY, 5),
        call("less", DAY, 9000),
        call("less", LARGE, 5),
        InList(DAY, tuple(Literal(n, DATE) for n in range(9000, 9004))),
        call("like", CODED, "%x%"),
        call("equal", TEXT, "x"),
        call("like", TEXT, "%x%"),
    ]
    costs = [cost(part, FIELDS) for part in parts]
    assert costs == sorted(costs)
    assert len(set(costs)) == len(costs)
    assert cost(call("equal", CODED, "x"), FIELDS) == costs[0]
    assert cost(call("less", FLOAT, 1.5), FIELDS) == costs[2]


def test_conjuncts_that_are_cheap_for_what_they_drop_come_first() -> None:
    search, wide, narrow = call("like", TEXT, "%x%"), call("less", LARGE, 2**39), call("less", TINY, 50)
    raising = Call("equal", (Call("modulo", (TINY, LARGE), BIGINT), Literal(0, BIGINT)), BOOLEAN)
    ordered = order_conjuncts([raising, search, wide, narrow], FIELDS, Estimator())
    assert ordered == (narrow, wide, search, raising)


@pytest.mark.parametrize(
    ("share", "rest", "expected"),
    [
        (0.5, [call("less", TINY, 5)], False),
        (0.02, [call("less", TINY, 5)], False),
        (0.001, [call("less", LARGE, 5), call("less", DAY, 9000), call("less", TINY, 9)], True),
        (0.8, [call("like", TEXT, "%x%")], True),
        (0.99, [call("like", TEXT, "%x%")], False),
        (1.0, [call("like", TEXT, "%x%")], False),
        (0.05, [call("like", CODED, "%x%")], True),
        (0.3, [call("like", CODED, "%x%")], False),
    ],
)
def test_when_rows_are_selected(share: float, rest: list[Expression], expected: bool) -> None:
    assert RemainingConjuncts(rest, FIELDS).worth_selecting(0, share) is expected
    before = [call("like", TEXT, "%x%"), *rest]
    assert RemainingConjuncts(before, FIELDS).worth_selecting(1, share) is expected
