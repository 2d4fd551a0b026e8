"""Conditions: comparisons and their opposites, conjunction, negation, the test for NULL."""

from __future__ import annotations

from tqp.core.datatypes import BOOLEAN
from tqp.planner.algebra.expressions import Call, Expression, conjunction, conjuncts

COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})

#: The comparison with its sides swapped, and the comparison that is true exactly where the first is false.
SWAPPED = {
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


def conjoin(*parts: Expression) -> Expression:
    """The AND of the parts' conjuncts, without repeats."""
    unique: dict[Expression, None] = {}
    for part in parts:
        unique.update(dict.fromkeys(conjuncts(part)))
    return conjunction(tuple(unique))


def negate(condition: Expression) -> Expression:
    """NOT condition."""
    return Call("not", (condition,), BOOLEAN)


def is_null(expression: Expression) -> Expression:
    """expression IS NULL."""
    return Call("is_null", (expression,), BOOLEAN)
