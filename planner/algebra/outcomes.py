"""Which of true, false and NULL an expression may be, by what is known of its columns.

So one sees what is never NULL, which columns are not NULL where a condition is true, and whether it drops the padded rows of an outer
join. The three are the bits of a set; a value that is no condition is TRUE or FALSE for not NULL. Sound, not exact: what is in no set
cannot happen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import reduce

from tqp.core.datatypes import NULL as NULL_TYPE
from tqp.core.schema import ColumnFacts, Field
from tqp.planner.algebra.expressions import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    Predict,
    PythonCall,
    Varying,
    column_ids,
)
from tqp.planner.algebra.known_fields import FieldsById, known_fields
from tqp.planner.algebra.value_ranges import extracted, is_finite
from tqp.planner.functions.declaration import NullRule
from tqp.planner.functions.registry import SCALARS

Outcomes = int

NULL, FALSE, TRUE = 1, 2, 4
VALUE = FALSE | TRUE
ANY = NULL | VALUE

#: A column of a padded row.
_PADDED = Field(-1, "", NULL_TYPE, facts=ColumnFacts(is_null=True))


def nullable(expression: Expression, fields: FieldsById) -> bool:
    """False promises that the expression is never NULL."""
    return outcomes(expression, fields) & NULL != 0


def rejects_null(condition: Expression, padded_ids: Collection[int]) -> bool:
    """True only if a filter on the condition drops every row in which all columns of `padded_ids` are NULL."""
    return not outcomes(condition, dict.fromkeys(padded_ids, _PADDED)) & TRUE


def null_if_padded(expression: Expression, padded_ids: Collection[int]) -> bool:
    """True only if the expression is NULL on every row in which all columns of `padded_ids` are NULL."""
    return outcomes(expression, dict.fromkeys(padded_ids, _PADDED)) == NULL


def null_rejected_columns(condition: Expression, fields: FieldsById | None = None) -> frozenset[int]:
    """Ids of columns that are certainly not NULL in a row where the condition is true.

    With `fields`: of those that may be NULL by these.
    """
    return frozenset([id for id in _asked_for(condition, fields) if rejects_null(condition, (id,))])


def strict_columns(expression: Expression, fields: FieldsById | None = None) -> frozenset[int]:
    """Ids of columns that are certainly not NULL in a row where the expression is not NULL; `fields` as above."""
    return frozenset([id for id in _asked_for(expression, fields) if null_if_padded(expression, (id,))])


def _asked_for(expression: Expression, fields: FieldsById | None) -> Iterable[int]:
    ids = column_ids(expression)
    if fields is None:
        return ids
    return [id for id in ids if (field := fields.get(id)) is not None and field.nullable]


def outcomes(expression: Expression, fields: FieldsById) -> Outcomes:
    """What the expression may be. A column that is not among `fields` holds anything."""
    match expression:
        case ColumnRef(id):
            field = fields.get(id)
            if field is None:
                return ANY
            return VALUE if not field.nullable else NULL if field.facts.is_null else ANY
        case Literal(value=None):
            return NULL
        case Literal(value=bool(value)):
            return TRUE if value else FALSE
        case Literal() | Parameter() | Varying() | Predict():
            return VALUE
    return known_fields(fields).derived(_derived, expression)


def _derived(expression: Expression, fields: FieldsById) -> Outcomes:
    match expression:
        case Call():
            return _call(expression, fields)
        case Case():
            return _case(expression, fields)
        case Cast():
            if_value = ANY if expression.is_try else VALUE
            return _told_apart(outcomes(expression.input, fields), if_null=NULL, if_value=if_value)
        case InList():
            return _told_apart(outcomes(expression.input, fields), if_null=NULL, if_value=VALUE)
        case PythonCall(function, arguments) if not function.gives_null:
            return reduce(int.__or__, [outcomes(each, fields) & NULL for each in arguments], VALUE)
    return ANY


def _call(call: Call, fields: FieldsById) -> Outcomes:
    arguments = [outcomes(argument, fields) for argument in call.arguments]
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
        case "struct_extract":
            field = extracted(call, fields)
            if_struct = VALUE if field is not None and not field.nullable else ANY
            return _told_apart(arguments[0], if_null=NULL, if_value=if_struct)
    any_of = reduce(int.__or__, arguments, 0)
    rule = SCALARS[function].null
    match rule:
        case NullRule.NEVER | NullRule.REFUSES:
            return VALUE
        case NullRule.ALL:
            return any_of & VALUE | reduce(int.__and__, arguments, NULL)
        case NullRule.FIRST:
            return _told_apart(arguments[0], if_null=NULL, if_value=VALUE)
        case _ if NULL in arguments:
            return NULL
        case NullRule.PROPAGATES:
            return ANY
        case NullRule.STRICT_IF_FINITE if not _are_finite(call.arguments, fields):
            return ANY
        case NullRule.STRICT | NullRule.STRICT_IF_FINITE | NullRule.THREE_VALUED:
            return VALUE | any_of & NULL


def _are_finite(arguments: Sequence[Expression], fields: FieldsById) -> bool:
    return all(is_finite(argument, fields) for argument in arguments if argument.data_type.is_temporal)


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


def _case(case: Case, fields: FieldsById) -> Outcomes:
    result = 0
    for condition, value in case.branches:
        test = outcomes(condition, fields)
        if test & TRUE:
            result |= outcomes(value, fields)
        if test == TRUE:
            return result
    return result | outcomes(case.default, fields)
