"""The order in which the conjuncts of a filter are evaluated: cheap and selective ones first, and what may fail last."""

from __future__ import annotations

from collections.abc import Sequence

from tqp.planner.cardinality import Estimator
from tqp.planner.expressions import Call, Case, Cast, ColumnRef, Expression, InList, Literal, walk
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
_MAY_RAISE = frozenset(
    ("integer_divide", "modulo", "strptime", "make_date", "make_timestamp", "chr", "shift_left", "power")
)
_SIMPLE = frozenset(
    """add subtract multiply negate divide integer_divide modulo abs and or not is_null coalesce equal not_equal less
    less_equal greater greater_equal is_distinct_from is_not_distinct_from date_part date_trunc add_days
    subtract_days subtract_dates add_interval subtract_interval""".split()
)


def order_conjuncts(
    parts: Sequence[Expression], fields: FieldsById, estimator: Estimator
) -> tuple[Expression, ...]:
    """The parts by cost for each share of rows they drop; equal ranks stay in the order written.

    A part that may raise comes last: the others keep rows from it that would make it raise for nothing.
    """
    if len(parts) < 2:
        return tuple(parts)

    def rank(part: Expression) -> tuple[bool, float]:
        return may_raise(part), cost(part, fields) / (1.0 - min(0.999, estimator.selectivity(part, fields)))

    return tuple(sorted(parts, key=rank))


def may_raise(expression: Expression) -> bool:
    """Can a value make the expression fail? Overflow of plain arithmetic, which is rare, is left out."""
    for node in walk(expression):
        if isinstance(node, Cast) and not node.is_try:
            source, target = node.input.data_type, node.data_type
            if source.is_string and not target.is_string or source.is_float and target.is_integer_like:
                return True
        if isinstance(node, Call) and node.function in _MAY_RAISE:
            return True
    return False


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
