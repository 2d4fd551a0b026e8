"""Which expressions may raise an error for some row: the one definition that every rewrite and the runtime ask.

SQL promises that a row raises nothing where an earlier condition has dropped it. So what may raise stays behind what
shields it, and what raises is never dropped because nobody needs its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.models import ModelInput, ModelSignature
from tqp.core.patterns import like_problem
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Predict,
    walk,
)
from tqp.planner.algebra.known_fields import FieldsById, KnownFields
from tqp.planner.algebra.null_facts import nullable
from tqp.planner.algebra.value_ranges import Range, is_finite, operand_range, value_range
from tqp.planner.functions.type_rules import can_cast

_NEVER_NAMES = """
    and or not is_null is_distinct_from is_not_distinct_from coalesce greatest least
    equal not_equal less less_equal greater greater_equal
    divide floored_modulo sign floor ceil bit_and bit_or bit_xor bit_not shift_right
    sqrt cbrt exp ln log log10 log2 power degrees radians sin cos tan asin acos atan atan2 sinh cosh tanh
    is_nan is_inf is_finite is_inf_date is_finite_date
    regexp_matches regexp_full_match regexp_replace regexp_extract starts_with ends_with contains
    position substring left right length octet_length bit_length upper lower trim ltrim rtrim replace reverse
    concat_operator concat concat_ws split_part ascii unicode translate category_code
    date_part subtract_dates dayname monthname strftime
    array_cosine_similarity array_cosine_distance array_inner_product array_negative_inner_product array_distance
"""

#: Functions that no value makes fail. One that is not here, and has no rule below, may raise.
_NEVER = frozenset(_NEVER_NAMES.split())


def may_raise(expression: Expression, fields: FieldsById) -> bool:
    """False promises that the expression raises for no row whose columns are as `fields` say.

    With no fields: for no row at all, whatever its columns hold.
    """
    if isinstance(fields, KnownFields):
        return fields.derived(_part_may_raise, expression)
    suspects = [node for node in walk(expression) if not _is_harmless(node)]
    known = fields if len(suspects) < 2 else KnownFields(fields)
    return any(_node_may_raise(node, known) for node in suspects)


def _part_may_raise(expression: Expression, fields: FieldsById) -> bool:
    if not _is_harmless(expression) and _node_may_raise(expression, fields):
        return True
    return any(may_raise(part, fields) for part in expression.inputs)


def _is_harmless(node: Expression) -> bool:
    """Does the node itself raise for no values of its inputs?"""
    if isinstance(node, Call):
        return node.function in _NEVER
    return isinstance(node, ColumnRef | Literal | Case | InList)


def aggregate_may_raise(call: AggregateCall, fields: FieldsById, max_rows: int) -> bool:
    """Can the aggregate of some of at most `max_rows` rows fail, in its arguments or by the overflow of a sum?"""
    if any(may_raise(part, fields) for part in call.inputs):
        return True
    if call.function not in ("sum", "avg") or not call.arguments[0].data_type.is_integer_like:
        return False
    known = operand_range(call.arguments[0], fields)
    if known is None:
        return True
    low, high = DataType(TypeKind.HUGEINT).bounds if call.function == "avg" else call.data_type.bounds
    rows = max(1, max_rows)
    return not (low <= known[0] * rows and known[1] * rows <= high)


def scoring_may_raise(model: ModelSignature, arguments: Sequence[Expression], fields: FieldsById) -> bool:
    """Can a row make the scoring of a model fail, in an argument that the model reads, or by what it refuses?"""
    return any(
        _input_may_raise(item, argument, fields) or (_is_read(item) and may_raise(argument, fields))
        for item, argument in zip(model.inputs, arguments, strict=True)
    )


def _is_read(item: ModelInput) -> bool:
    return item.is_read or item.size > 0


def _input_may_raise(item: ModelInput, argument: Expression, fields: FieldsById) -> bool:
    """By a category or a NULL that the model refuses."""
    return _is_read(item) and (item.refuses_unseen or (not item.takes_null and nullable(argument, fields)))


def _node_may_raise(node: Expression, fields: FieldsById) -> bool:
    """Can a node that is not harmless fail, its inputs given?"""
    match node:
        case Call(function):
            rule = _RULES.get(function)
            return rule is None or rule(node, fields)
        case Cast():
            return not node.is_try and _cast_may_raise(node, fields)
        case Predict():
            return any(
                _input_may_raise(item, argument, fields)
                for item, argument in zip(node.model.inputs, node.arguments, strict=True)
            )
    return True


# calls


def _overflows(call: Call, fields: FieldsById) -> bool:
    """Arithmetic of integers and decimals, unless the ranges of its operands keep it in its type's bounds."""
    return call.data_type.is_integer_like and not _within(value_range(call, fields), call.data_type)


def _division(call: Call, fields: FieldsById) -> bool:
    """A zero divisor, or the one quotient that does not fit; the remainder of floats has neither."""
    dividend, divisor = call.arguments
    if call.data_type.is_float:
        literal = divisor.value if isinstance(divisor, Literal) else 0
        return call.function == "integer_divide" and not literal
    known = operand_range(divisor, fields)
    if known is None or known[0] <= 0 <= known[1]:
        return True
    low = operand_range(dividend, fields)
    return known[0] <= -1 <= known[1] and (low is None or low[0] <= dividend.data_type.bounds[0])


def _in_calendar(call: Call, fields: FieldsById) -> bool:
    """Dates and timestamps far beyond the calendar leave TIMESTAMP's range."""
    operands = [part for part in call.arguments if part.data_type.is_temporal]
    return not all(is_finite(part, fields) for part in operands)


def _moved_in_calendar(call: Call, fields: FieldsById) -> bool:
    """As `_in_calendar`, of the result too."""
    return _in_calendar(call, fields) or not is_finite(call, fields)


def _truncated(call: Call, fields: FieldsById) -> bool:
    return call.data_type.kind is not TypeKind.INTERVAL and _in_calendar(call, fields)


def _padded(call: Call, fields: FieldsById) -> bool:
    filling = call.arguments[2]
    return not (isinstance(filling, Literal) and filling.value)


def _escaped(call: Call, fields: FieldsById) -> bool:
    """LIKE with an ESCAPE that is not a single character, or stands at the pattern's end."""
    constants = [part.value for part in call.arguments[1:] if isinstance(part, Literal)]
    if len(constants) < len(call.arguments) - 1:
        return len(call.arguments) > 2
    texts = [value for value in constants if isinstance(value, str)]
    return len(texts) == 2 and like_problem(*texts) is not None


def _holds_null(call: Call, fields: FieldsById) -> bool:
    return any(nullable(argument, fields) for argument in call.arguments)


_RULES: dict[str, Callable[[Call, FieldsById], bool]] = {
    "add": _overflows,
    "subtract": _overflows,
    "multiply": _overflows,
    "negate": _overflows,
    "abs": _overflows,
    "round": _overflows,
    "trunc": _overflows,
    "integer_divide": _division,
    "modulo": _division,
    "date_trunc": _truncated,
    "last_day": _in_calendar,
    "date_diff": _in_calendar,
    "date_sub": _in_calendar,
    "subtract_timestamps": _in_calendar,
    "add_time": _in_calendar,
    "add_days": _moved_in_calendar,
    "subtract_days": _moved_in_calendar,
    "add_interval": _moved_in_calendar,
    "subtract_interval": _moved_in_calendar,
    "lpad": _padded,
    "rpad": _padded,
    "array_value": _holds_null,
    "like": _escaped,
    "ilike": _escaped,
}


# casts


def _cast_may_raise(cast: Cast, fields: FieldsById) -> bool:
    source, target = cast.input.data_type, cast.data_type
    if source == target or source.kind is TypeKind.NULL or target.kind is TypeKind.VARCHAR:
        return False
    if source.is_string or not can_cast(source, target):
        return True
    if source.kind is TypeKind.BOOLEAN or target.kind is TypeKind.BOOLEAN:
        return False
    if source.is_numeric and target.is_numeric:
        if source.is_float:
            return target.kind is not TypeKind.DOUBLE
        return not target.is_float and not _within(value_range(cast, fields), target)
    if source.is_temporal and target.is_temporal:
        return not (target.kind is TypeKind.DATE or _fits_in_time(cast, fields))
    return True


def _fits_in_time(cast: Cast, fields: FieldsById) -> bool:
    if not is_finite(cast.input, fields):
        return False
    return cast.data_type.kind is not TypeKind.TIMESTAMP_NS or _within(
        value_range(cast, fields), cast.data_type
    )


def _within(known: Range | None, data_type: DataType) -> bool:
    low, high = data_type.bounds
    return known is not None and low <= known[0] and known[1] <= high
