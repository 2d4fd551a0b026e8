"""Conditions and NULL: negation, and what a condition gives on the padded rows of an outer join."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from tqp.core.datatypes import BOOLEAN
from tqp.planner.expressions import Call, Cast, ColumnRef, Expression, InList, Literal, conjunction, conjuncts

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

#: Functions that are NULL whenever an argument is; those that conditions on padded columns are likely to use.
_STRICT = COMPARISONS | frozenset(
    [
        "add",
        "subtract",
        "multiply",
        "negate",
        "divide",
        "integer_divide",
        "modulo",
        "abs",
        "sign",
        "floor",
        "ceil",
        "round",
        "trunc",
        "sqrt",
        "power",
        "ln",
        "exp",
        "add_days",
        "subtract_days",
        "subtract_dates",
        "add_interval",
        "subtract_interval",
        "date_part",
        "date_trunc",
        "date_diff",
        "like",
        "ilike",
        "regexp_matches",
        "starts_with",
        "ends_with",
        "contains",
        "substring",
        "left",
        "right",
        "length",
        "upper",
        "lower",
        "trim",
        "ltrim",
        "rtrim",
        "concat_operator",
        "position",
        "replace",
        "reverse",
    ]
)


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


class _Outcome(Enum):
    """What an expression gives on a row whose padded columns are all NULL."""

    NULL = 1
    FALSE = 2
    TRUE = 3
    NOT_TRUE = 4  # false or NULL
    UNKNOWN = 5


def rejects_null(condition: Expression, padded_ids: Collection[int]) -> bool:
    """True only if a filter on the condition drops every row in which all columns of `padded_ids` are NULL."""
    return _outcome(condition, padded_ids) in (_Outcome.NULL, _Outcome.FALSE, _Outcome.NOT_TRUE)


def null_if_padded(expression: Expression, padded_ids: Collection[int]) -> bool:
    """True only if the expression is NULL on every row in which all columns of `padded_ids` are NULL."""
    return _outcome(expression, padded_ids) is _Outcome.NULL


def _outcome(expression: Expression, padded: Collection[int]) -> _Outcome:
    match expression:
        case Literal(value=None):
            return _Outcome.NULL
        case Literal(value=bool(value)):
            return _Outcome.TRUE if value else _Outcome.FALSE
        case ColumnRef():
            return _Outcome.NULL if expression.id in padded else _Outcome.UNKNOWN
        case Call(function="is_null"):
            inner = _outcome(expression.arguments[0], padded)
            return _Outcome.TRUE if inner is _Outcome.NULL else _Outcome.UNKNOWN
        case Call(function="not"):
            inner = _outcome(expression.arguments[0], padded)
            opposite = {
                _Outcome.TRUE: _Outcome.FALSE,
                _Outcome.FALSE: _Outcome.TRUE,
                _Outcome.NULL: _Outcome.NULL,
            }
            return opposite.get(inner, _Outcome.UNKNOWN)
        case Call(function="and"):
            parts = [_outcome(argument, padded) for argument in expression.arguments]
            if _Outcome.FALSE in parts:
                return _Outcome.FALSE
            if _Outcome.NULL in parts or _Outcome.NOT_TRUE in parts:
                return _Outcome.NOT_TRUE
            return _Outcome.TRUE if all(part is _Outcome.TRUE for part in parts) else _Outcome.UNKNOWN
        case Call(function="or"):
            parts = [_outcome(argument, padded) for argument in expression.arguments]
            if _Outcome.TRUE in parts:
                return _Outcome.TRUE
            if all(part is _Outcome.FALSE for part in parts):
                return _Outcome.FALSE
            not_true = (_Outcome.FALSE, _Outcome.NULL, _Outcome.NOT_TRUE)
            return _Outcome.NOT_TRUE if all(part in not_true for part in parts) else _Outcome.UNKNOWN
        case Call(function="coalesce"):
            for argument in expression.arguments:
                part = _outcome(argument, padded)
                if part is not _Outcome.NULL:
                    return part
            return _Outcome.NULL
        case Call() if expression.function in _STRICT:
            return _strict(expression, padded)
        case Cast() | InList():
            return _strict(expression, padded)
        case _:
            return _Outcome.UNKNOWN


def _strict(expression: Expression, padded: Collection[int]) -> _Outcome:
    if any(_outcome(child, padded) is _Outcome.NULL for child in expression.inputs):
        return _Outcome.NULL
    return _Outcome.UNKNOWN
