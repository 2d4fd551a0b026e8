"""Which of true, false and NULL a condition may be in rows where some of its columns are NULL.

So one sees which columns are not NULL where a condition is true, and whether it drops the padded rows of an outer join. The three are the bits of a set; a value that is
no condition is TRUE or FALSE for not NULL. Sound, not exact: what is in no set cannot happen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

from tqp.planner.algebra.expressions import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    column_ids,
)
from tqp.planner.functions.declaration import NullRule
from tqp.planner.functions.registry import SCALARS

Outcomes = int

NULL, FALSE, TRUE = 1, 2, 4
VALUE = FALSE | TRUE
ANY = NULL | VALUE


def rejects_null(condition: Expression, padded_ids: Collection[int]) -> bool:
    """True only if a filter on the condition drops every row in which all columns of `padded_ids` are NULL."""
    return not outcomes(condition, padded_ids) & TRUE


def null_if_padded(expression: Expression, padded_ids: Collection[int]) -> bool:
    """True only if the expression is NULL on every row in which all columns of `padded_ids` are NULL."""
    return outcomes(expression, padded_ids) == NULL


def null_rejected_columns(condition: Expression) -> frozenset[int]:
    """Ids of columns that are certainly not NULL in a row where the condition is true."""
    return frozenset(id for id in column_ids(condition) if rejects_null(condition, (id,)))


def strict_columns(expression: Expression) -> frozenset[int]:
    """Ids of columns that are certainly not NULL in a row where the expression is not NULL."""
    return frozenset(id for id in column_ids(expression) if null_if_padded(expression, (id,)))


def outcomes(expression: Expression, padded_ids: Collection[int]) -> Outcomes:
    """What the expression may be where all columns of `padded_ids` are NULL, and the others hold anything."""
    match expression:
        case Literal(value=None):
            return NULL
        case Literal(value=bool(value)):
            return TRUE if value else FALSE
        case Literal():
            return VALUE
        case ColumnRef(id):
            return NULL if id in padded_ids else ANY
        case Case():
            return _case(expression, padded_ids)
        case Cast():
            inner = outcomes(expression.input, padded_ids)
            return NULL if inner == NULL else VALUE | (NULL if expression.is_try else inner & NULL)
        case InList():
            inner = outcomes(expression.input, padded_ids)
            return NULL if inner == NULL else VALUE | inner & NULL
        case Call():
            return _call(expression, [outcomes(argument, padded_ids) for argument in expression.arguments])
    return ANY


def _call(call: Call, arguments: Sequence[Outcomes]) -> Outcomes:
    function = call.function
    match function:
        case "and":
            return reduce(_both, arguments, TRUE)
        case "or":
            return _negated(reduce(_both, map(_negated, arguments), TRUE))
        case "not":
            return _negated(arguments[0])
        case "is_null":
            return _told_apart(arguments[0], if_null=TRUE, if_value=FALSE)
        case "is_distinct_from" | "is_not_distinct_from" if NULL in arguments:
            if_same, if_distinct = (TRUE, FALSE) if function == "is_not_distinct_from" else (FALSE, TRUE)
            other = arguments[1] if arguments[0] == NULL else arguments[0]
            return _told_apart(other, if_null=if_same, if_value=if_distinct)
        case "coalesce":
            return _first_value(arguments)
    declared = SCALARS[function]
    if declared.is_null_for_null and NULL in arguments:
        return NULL
    if declared.null is NullRule.NEVER:
        return VALUE
    if declared.is_strict:
        return VALUE | reduce(int.__or__, arguments, 0) & NULL
    return ANY


def _both(a: Outcomes, b: Outcomes) -> Outcomes:
    """AND: false if either is, else NULL if either is."""
    result = (a | b) & FALSE | a & b & TRUE
    if a & NULL and b & (NULL | TRUE) or b & NULL and a & TRUE:
        result |= NULL
    return result


def _negated(a: Outcomes) -> Outcomes:
    return a & NULL | (TRUE if a & FALSE else 0) | (FALSE if a & TRUE else 0)


def _told_apart(a: Outcomes, if_null: Outcomes, if_value: Outcomes) -> Outcomes:
    return (if_null if a & NULL else 0) | (if_value if a & VALUE else 0)


def _first_value(arguments: Sequence[Outcomes]) -> Outcomes:
    result = 0
    for argument in arguments:
        result |= argument & VALUE
        if not argument & NULL:
            return result
    return result | NULL


def _case(case: Case, padded_ids: Collection[int]) -> Outcomes:
    result = 0
    for condition, value in case.branches:
        test = outcomes(condition, padded_ids)
        if test & TRUE:
            result |= outcomes(value, padded_ids)
        if test == TRUE:
            return result
    return result | outcomes(case.default, padded_ids)
