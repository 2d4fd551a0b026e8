"""Comparisons, AND, OR, NOT, the tests for NULL, and choices between values."""

from __future__ import annotations

import math
import operator as operators
from collections.abc import Callable, Sequence
from typing import Any

from tqp.core.datatypes import DataType, TypeKind, holds_kind
from tqp.core.time_limits import DAYS_PER_MONTH, MICROSECONDS_PER_DAY
from tqp.planner.algebra.expressions import Call, Expression, is_null_literal
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
#: Comparisons, and whether they may be true of a left value within the first range and a right one within the second.
MAY_HOLD: dict[str, Callable[[Range, Range], bool]] = {
    "equal": lambda left, right: left[0] <= right[1] and right[0] <= left[1],
    "not_equal": lambda left, right: True,
    "less": lambda left, right: left[0] < right[1],
    "less_equal": lambda left, right: left[0] <= right[1],
    "greater": lambda left, right: left[1] > right[0],
    "greater_equal": lambda left, right: left[1] >= right[0],
}
#: Whether a text has what the second argument asks for.
TEXT_PREDICATES = frozenset(("like", "ilike", "starts_with", "ends_with", "contains"))


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def evaluate(call: Call, left: Any, right: Any) -> Any:
        keys = [
            _order_key(value, argument.data_type)
            for value, argument in zip((left, right), call.arguments, strict=True)
        ]
        return NotImplemented if NotImplemented in keys else compare(*keys)

    return evaluate


def _order_key(value: Any, data_type: DataType) -> Any:
    """What Python compares as SQL compares values that are not NULL; NotImplemented of types that have another order.

    NaN is equal to itself and greater than all others; NULL within a list or a struct is, too.
    """
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    if data_type.kind is TypeKind.INTERVAL:
        months, days, micros = value
        return (months * DAYS_PER_MONTH + days) * MICROSECONDS_PER_DAY + micros
    if (data_type.is_union or data_type.kind is TypeKind.MAP) and any(
        holds_kind(data_type, kind) for kind in (TypeKind.TIME_TZ, TypeKind.BIT)
    ):
        return NotImplemented  # these have an order of their own in there
    if data_type.has_fields:
        types: Sequence[DataType] = data_type.children
    elif data_type.kind is TypeKind.LIST or data_type.kind is TypeKind.MAP:
        types = [data_type.element] * len(value)
    else:
        return value if isinstance(value, int | bytes) else NotImplemented
    keys = [None if each is None else _order_key(each, part) for each, part in zip(value, types, strict=True)]
    return NotImplemented if NotImplemented in keys else tuple((key is None, key) for key in keys)


_not_equal = _comparison(operators.ne)


def _is_distinct(call: Call, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return left is not right
    return _not_equal(call, left, right)


def _is_not_distinct(call: Call, left: Any, right: Any) -> Any:
    distinct = _is_distinct(call, left, right)
    return distinct if distinct is NotImplemented else not distinct


def _are_comparable(call: Call, left: Any, right: Any) -> bool:
    """Is neither of two values of a UNION that have one tag a member that is NULL?"""
    return _has_no_null_member(left, right, call.arguments[0].data_type)


def _has_no_null_member(left: Any, right: Any, data_type: DataType) -> bool:
    if left is None or right is None or left[0] != right[0]:
        return True
    place = left[0] + 1
    if left[place] is None or right[place] is None:
        return False
    member = data_type.children[place]
    return not member.is_union or _has_no_null_member(left[place], right[place], member)


def union(values: Sequence[Expression], ranges: Ranges) -> Range | None:
    """The range of one of the values, of these ranges; a constant NULL is none."""
    low: int | None = None
    high: int | None = None
    for value, known in zip(values, ranges, strict=True):
        if is_null_literal(value):
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
    # of UNIONs, beside the comparison of their tags and members: see `coercion.comparison`
    scalar("are_comparable", null=NullRule.NEVER, fold=_are_comparable, one_type=True),
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
        constants_vary=True,
    ),
    scalar("greatest", is_call=True, null=NullRule.ALL, range=_any_argument, constants_vary=True),
    scalar("least", is_call=True, null=NullRule.ALL, range=_any_argument, constants_vary=True),
)
