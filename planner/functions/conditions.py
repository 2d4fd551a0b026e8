"""Comparisons, AND, OR, NOT, the tests for NULL, and choices between values."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Sequence
from typing import Any

from tqp.planner.algebra.expressions import Call, Expression, Literal
from tqp.planner.functions.declaration import Infix, NullRule, ScalarFunction, Work, scalar
from tqp.planner.functions.ranges import Range, Ranges, operand

#: A comparison with its sides exchanged, and the one that is true exactly where the first is false.
MIRRORED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
NEGATED = {
    "equal": "not_equal",
    "not_equal": "equal",
    "less": "greater_equal",
    "greater_equal": "less",
    "greater": "less_equal",
    "less_equal": "greater",
    "is_distinct_from": "is_not_distinct_from",
    "is_not_distinct_from": "is_distinct_from",
}
COMPARISONS = frozenset(MIRRORED)
#: What is true only of equal values.
EQUALITIES = frozenset(("equal", "is_not_distinct_from"))
#: Those that bound the left side from above, from below, and both.
UPPER, LOWER = frozenset(("less", "less_equal")), frozenset(("greater", "greater_equal"))
ORDERINGS = UPPER | LOWER
#: Whether a text has what the second argument asks for.
TEXT_PREDICATES = frozenset(("like", "ilike", "starts_with", "ends_with", "contains"))


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def evaluate(call: Call, left: Any, right: Any) -> Any:
        comparable = isinstance(left, (int, str, bytes)) and isinstance(right, (int, str, bytes))
        if not comparable:  # floats with NaN and intervals have an order of their own
            return NotImplemented
        if isinstance(left, str) and isinstance(right, str):
            return compare(left.encode(), right.encode())
        return compare(left, right)

    return evaluate


_not_equal = _comparison(operators.ne)


def _is_distinct(call: Call, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return left is not right
    return _not_equal(call, left, right)


def _is_not_distinct(call: Call, left: Any, right: Any) -> Any:
    distinct = _is_distinct(call, left, right)
    return distinct if distinct is NotImplemented else not distinct


def union(values: Sequence[Expression], ranges: Ranges) -> Range | None:
    """The range of one of the values, of these ranges; a constant NULL is none."""
    low: int | None = None
    high: int | None = None
    for value, known in zip(values, ranges, strict=True):
        if isinstance(value, Literal) and value.value is None:
            continue
        known = operand(known, value.data_type)
        if known is None:
            return None
        low = known[0] if low is None else min(low, known[0])
        high = known[1] if high is None else max(high, known[1])
    return None if low is None or high is None else (low, high)


def _any_argument(call: Call, ranges: Ranges) -> Range | None:
    return union(call.arguments, ranges)


def _compared(
    name: str, operator: str, fold: Callable[..., Any], null: NullRule = NullRule.STRICT
) -> ScalarFunction:
    return scalar(
        name,
        null=null,
        fold=fold,
        work=Work.COMPARISON,
        infix=Infix(operator, 4),
        one_type=True,
    )


def _connective(name: str, operator: str, binding: int) -> ScalarFunction:
    return scalar(
        name,
        null=NullRule.THREE_VALUED,
        work=Work.MASKS,
        infix=Infix(operator, binding, is_associative=True),
        short_circuits=True,
    )


CONDITIONS = (
    _compared("equal", "=", _comparison(operators.eq)),
    _compared("not_equal", "<>", _not_equal),
    _compared("less", "<", _comparison(operators.lt)),
    _compared("less_equal", "<=", _comparison(operators.le)),
    _compared("greater", ">", _comparison(operators.gt)),
    _compared("greater_equal", ">=", _comparison(operators.ge)),
    _compared("is_distinct_from", "IS DISTINCT FROM", _is_distinct, NullRule.NEVER),
    _compared("is_not_distinct_from", "IS NOT DISTINCT FROM", _is_not_distinct, NullRule.NEVER),
    _connective("or", "OR", 1),
    _connective("and", "AND", 2),
    scalar("not", fold=lambda _, value: not value, work=Work.MASKS),
    # NULL for every row, once its arguments are computed: what is left of a call that a constant NULL decides
    scalar("null_after", null=NullRule.PROPAGATES, fold=lambda *_: None),
    scalar("is_null", null=NullRule.NEVER, fold=lambda _, value: value is None, work=Work.MASKS),
    scalar(
        "coalesce ifnull",
        is_call=True,
        null=NullRule.ALL,
        range=_any_argument,
        work=Work.CALCULATION,
        one_type=True,
        short_circuits=True,
    ),
    scalar("greatest", is_call=True, null=NullRule.ALL, range=_any_argument),
    scalar("least", is_call=True, null=NullRule.ALL, range=_any_argument),
)
