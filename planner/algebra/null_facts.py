"""What is certain about NULL: which expressions never are NULL, and which columns a true predicate proves not to be."""

from __future__ import annotations

from tqp.planner.algebra.expressions import Call, Case, Cast, ColumnRef, Expression, InList, Literal, Predict
from tqp.planner.algebra.known_fields import FieldsById, KnownFields, known_fields
from tqp.planner.algebra.value_ranges import is_finite

_COMPARISONS = frozenset(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))

_STRICT_NAMES = """
    add subtract multiply negate divide integer_divide modulo abs sign floor ceil round trunc gcd lcm
    sqrt cbrt exp ln log10 log2 log power degrees radians is_nan is_inf is_finite
    is_inf_date is_finite_date floored_modulo
    sin cos tan asin acos atan atan2 sinh cosh tanh
    bit_and bit_or bit_xor bit_not shift_left shift_right
    like ilike regexp_matches regexp_full_match regexp_replace regexp_extract starts_with ends_with contains
    substring left right length octet_length upper lower trim ltrim rtrim lpad rpad replace reverse repeat
    concat_operator position split_part ascii unicode chr translate category_code
    add_days subtract_days subtract_dates to_interval add_intervals subtract_intervals multiply_interval
    negate_interval
"""
_STRICT_IF_FINITE_NAMES = """
    date_part date_trunc add_interval subtract_interval subtract_timestamps date_diff date_sub last_day dayname
    monthname
"""

#: Functions that are NULL exactly where an argument is ...
_STRICT = _COMPARISONS.union(_STRICT_NAMES.split())
#: ... and those that are NULL on infinite dates besides.
_STRICT_IF_FINITE = frozenset(_STRICT_IF_FINITE_NAMES.split())

_NEVER_NULL = frozenset(("is_null", "is_distinct_from", "is_not_distinct_from", "concat"))
_NULL_IF_ALL_ARE = frozenset(("coalesce", "greatest", "least"))


def is_strict(function: str) -> bool:
    """Is the function NULL exactly where an argument is?"""
    return function in _STRICT


def is_null_for_null(function: str) -> bool:
    """Is the function NULL wherever an argument is (and perhaps elsewhere)?"""
    return function in _STRICT or function in _STRICT_IF_FINITE


def is_never_null(function: str) -> bool:
    """Is the function never NULL, whatever its arguments are?"""
    return function in _NEVER_NULL


def nullable(expression: Expression, schema_by_id: FieldsById) -> bool:
    """False promises that the expression is never NULL."""
    match expression:
        case ColumnRef():
            field = schema_by_id.get(expression.id)
            return field is None or field.nullable
        case Literal():
            return expression.value is None
    if isinstance(schema_by_id, KnownFields):
        return schema_by_id.derived(_derived_nullable, expression)
    return _derived_nullable(expression, schema_by_id)


def _derived_nullable(expression: Expression, schema_by_id: FieldsById) -> bool:
    match expression:
        case Call():
            function, arguments = expression.function, expression.arguments
            if function in _NEVER_NULL:
                return False
            if function in _NULL_IF_ALL_ARE:
                return all(nullable(argument, schema_by_id) for argument in arguments)
            if function in _STRICT or function in ("and", "or", "not"):
                return any(nullable(argument, schema_by_id) for argument in arguments)
            if function == "concat_ws":
                return nullable(arguments[0], schema_by_id)
            if function in _STRICT_IF_FINITE:
                known = known_fields(schema_by_id)
                return any(
                    nullable(argument, known)
                    or (argument.data_type.is_temporal and not is_finite(argument, known))
                    for argument in arguments
                )
            return True
        case Cast():
            return expression.is_try or nullable(expression.input, schema_by_id)
        case Case():
            values = (*(value for _, value in expression.branches), expression.default)
            return any(nullable(value, schema_by_id) for value in values)
        case InList():
            return nullable(expression.input, schema_by_id)
        case Predict():
            return False
    return True


def null_rejected_columns(condition: Expression, outcome: bool = True) -> frozenset[int]:
    """Ids of columns that are certainly not NULL in a row where `condition` is `outcome` (and not NULL).

    A predicate on the padded side of an outer join that rejects NULLs turns it into an inner join.
    """
    if isinstance(condition, Call):
        function, arguments = condition.function, condition.arguments
        if function == "not":
            return null_rejected_columns(arguments[0], not outcome)
        if function in ("and", "or"):
            parts = [null_rejected_columns(argument, outcome) for argument in arguments]
            every_part_holds = (function == "and") == outcome
            return frozenset.union(*parts) if every_part_holds else frozenset.intersection(*parts)
        if function == "is_null":
            return frozenset() if outcome else _strict_columns(arguments[0])
    return _strict_columns(condition)


def _strict_columns(expression: Expression) -> frozenset[int]:
    """Columns that are not NULL wherever the expression is not NULL."""
    match expression:
        case ColumnRef():
            return frozenset((expression.id,))
        case Cast() | InList():
            return _strict_columns(expression.input)
        case Call() if is_null_for_null(expression.function):
            return frozenset().union(*(_strict_columns(argument) for argument in expression.arguments))
        case Call() if expression.function == "not":
            return _strict_columns(expression.arguments[0])
    return frozenset()
