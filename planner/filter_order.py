"""The order in which the conjuncts of a filter are evaluated: cheap and selective ones first."""

from __future__ import annotations

from collections.abc import Sequence

from tqp.planner.cardinality import Estimator
from tqp.planner.expressions import Call, Case, Cast, ColumnRef, Expression, InList, Literal
from tqp.planner.value_ranges import FieldsById

# Nanoseconds a row, rounded.
_ARITHMETIC = 0.5
_DICTIONARY_PREDICATE = 1.0  # evaluated once per entry, then looked up
_STRING_PREDICATE = 20.0
_STRING_SEARCH = 60.0
_UNKNOWN_FUNCTION = 200.0  # a model, or what nothing is known of

_SEARCHES = frozenset(
    ("like", "ilike", "contains", "regexp_matches", "regexp_full_match", "regexp_extract", "regexp_replace")
)
_SIMPLE = frozenset(
    """add subtract multiply negate divide integer_divide modulo abs and or not is_null coalesce equal not_equal less
    less_equal greater greater_equal is_distinct_from is_not_distinct_from date_part date_trunc add_days
    subtract_days subtract_dates add_interval subtract_interval""".split()  # noqa: SIM905
)


def order_conjuncts(
    parts: Sequence[Expression], fields: FieldsById, estimator: Estimator
) -> tuple[Expression, ...]:
    """The parts by cost for each share of rows they drop; equal ranks stay in the order written."""
    if len(parts) < 2:
        return tuple(parts)

    def rank(part: Expression) -> float:
        return cost(part, fields) / (1.0 - min(0.999, estimator.selectivity(part, fields)))

    return tuple(sorted(parts, key=rank))


def cost(expression: Expression, fields: FieldsById) -> float:
    """Estimated nanoseconds to evaluate the expression for one row."""
    match expression:
        case ColumnRef() | Literal():
            return 0.0
        case InList():
            return _string_or(_ARITHMETIC, expression.input, fields, _STRING_PREDICATE) + cost(
                expression.input, fields
            )
        case Cast() | Case():
            return _ARITHMETIC + sum(cost(child, fields) for child in expression.inputs)
        case Call():
            below = sum(cost(argument, fields) for argument in expression.arguments)
            function = expression.function
            operand = expression.arguments[0] if expression.arguments else expression
            if function in _SEARCHES:
                return _string_or(_STRING_SEARCH, operand, fields, _STRING_SEARCH) + below
            if function in _SIMPLE:
                is_text = any(argument.data_type.is_string for argument in expression.arguments)
                text = _STRING_PREDICATE if is_text and function != "is_null" else _ARITHMETIC
                return _string_or(_ARITHMETIC, operand, fields, text) + below
            if operand.data_type.is_string or expression.data_type.is_string:
                return _string_or(_STRING_PREDICATE, operand, fields, _STRING_PREDICATE) + below
            return _UNKNOWN_FUNCTION + below
    return _UNKNOWN_FUNCTION


def _string_or(otherwise: float, operand: Expression, fields: FieldsById, text: float) -> float:
    """The cost of a string function of `operand`: little where that comes from a dictionary."""
    if not operand.data_type.is_string:
        return otherwise
    while isinstance(operand, Call) and operand.arguments and operand.arguments[0].data_type.is_string:
        operand = operand.arguments[0]
    field = fields.get(operand.id) if isinstance(operand, ColumnRef) else None
    in_dictionary = field is not None and field.statistics.dictionary_size is not None
    return _DICTIONARY_PREDICATE if in_dictionary else text
