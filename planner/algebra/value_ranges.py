"""Sound ranges of the storage values that integer-like expressions take: interval arithmetic over column statistics.

A range is what exact arithmetic can give. It may reach beyond the bounds of the expression's own type; then the
operation can overflow and needs a check. As an operand, a checked value lies within its type's bounds again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from tqp.core import time_limits
from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.schema import Field, Schema
from tqp.planner.algebra.expressions import Call, Case, Cast, ColumnRef, Expression, Literal
from tqp.planner.algebra.known_fields import FieldsById, known_fields
from tqp.planner.functions.type_rules import can_cast

Range = tuple[int, int]

_SECONDS_PER_DAY = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
#: Days that Python's calendar knows (years 1 to 9999), counted from 1970; all of them are finite DuckDB dates.
_CALENDAR_DAYS = (date.min.toordinal() - _EPOCH_ORDINAL, date.max.toordinal() - _EPOCH_ORDINAL)


def value_range(expression: Expression, schema_by_id: FieldsById) -> Range | None:
    """(smallest, largest) storage value the expression can take, NULLs left out; None where nothing is known.

    Booleans count as 0 and 1 below casts only. For a result of None the caller uses the type's own bounds.
    """
    match expression:
        case ColumnRef():
            field = schema_by_id.get(expression.id)
            return None if field is None else field_range(field)
        case Literal():
            value = expression.value
            return (value, value) if type(value) is int and expression.data_type.is_integer_like else None
        case Call() if expression.function in _RULES:
            return known_fields(schema_by_id).derived(_call_range, expression)
        case Cast():
            return known_fields(schema_by_id).derived(_cast_range, expression)
        case Case():
            return known_fields(schema_by_id).derived(_case_range, expression)
    return None


def _call_range(call: Call, schema_by_id: FieldsById) -> Range | None:
    return _RULES[call.function](call, schema_by_id)


def _case_range(case: Case, schema_by_id: FieldsById) -> Range | None:
    return _union((*(value for _, value in case.branches), case.default), schema_by_id)


def range_of(expression: Expression, fields: Schema) -> Range | None:
    """`value_range` over a schema, for callers with a single question."""
    return value_range(expression, {field.id: field for field in fields})


def field_range(field: Field) -> Range | None:
    """The range a field's statistics promise, if they do."""
    low, high = field.statistics.minimum, field.statistics.maximum
    return None if low is None or high is None else (low, high)


def operand_range(expression: Expression, schema_by_id: FieldsById) -> Range | None:
    """The range of a value that passed its overflow check; the type's bounds where unknown, None if not integer-like."""
    data_type = expression.data_type
    if not data_type.is_integer_like:
        return None
    low, high = data_type.bounds
    known = value_range(expression, schema_by_id)
    if known is None:
        return low, high
    # A value that always overflows leaves an empty intersection; any range is sound for it.
    return (max(low, known[0]), min(high, known[1])) if known[0] <= high and known[1] >= low else (low, high)


def is_finite(expression: Expression, schema_by_id: FieldsById) -> bool:
    """True if a date or timestamp provably is not +-infinity (on which most date functions return NULL)."""
    if expression.data_type.kind is TypeKind.TIME:
        return True
    days = _days(expression, schema_by_id)
    return days is not None and _CALENDAR_DAYS[0] <= days[0] and days[1] <= _CALENDAR_DAYS[1]


def _union(expressions: tuple[Expression, ...], schema_by_id: FieldsById) -> Range | None:
    low: int | None = None
    high: int | None = None
    for expression in expressions:
        if isinstance(expression, Literal) and expression.value is None:
            continue
        known = operand_range(expression, schema_by_id)
        if known is None:
            return None
        low = known[0] if low is None else min(low, known[0])
        high = known[1] if high is None else max(high, known[1])
    return None if low is None or high is None else (low, high)


def _operands(call: Call, schema_by_id: FieldsById) -> tuple[Range, Range] | None:
    first, second = call.arguments
    left, right = operand_range(first, schema_by_id), operand_range(second, schema_by_id)
    return None if left is None or right is None else (left, right)


def _same_scale(call: Call) -> bool:
    return all(argument.data_type.scale == call.data_type.scale for argument in call.arguments)


def _add(call: Call, schema_by_id: FieldsById) -> Range | None:
    if not _same_scale(call) or (operands := _operands(call, schema_by_id)) is None:
        return None
    (a, b), (c, d) = operands
    return a + c, b + d


def _subtract(call: Call, schema_by_id: FieldsById) -> Range | None:
    if not _same_scale(call) or (operands := _operands(call, schema_by_id)) is None:
        return None
    (a, b), (c, d) = operands
    return a - d, b - c


def _multiply(call: Call, schema_by_id: FieldsById) -> Range | None:
    if sum(argument.data_type.scale for argument in call.arguments) != call.data_type.scale:
        return None
    if (operands := _operands(call, schema_by_id)) is None:
        return None
    (a, b), (c, d) = operands
    corners = (a * c, a * d, b * c, b * d)
    return min(corners), max(corners)


def _negate(call: Call, schema_by_id: FieldsById) -> Range | None:
    known = operand_range(call.arguments[0], schema_by_id)
    return None if known is None else (-known[1], -known[0])


def _absolute(call: Call, schema_by_id: FieldsById) -> Range | None:
    known = operand_range(call.arguments[0], schema_by_id)
    if known is None:
        return None
    low, high = known
    return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _modulo(call: Call, schema_by_id: FieldsById) -> Range | None:
    """The result takes the dividend's sign and is smaller than the divisor."""
    if not _same_scale(call) or (operands := _operands(call, schema_by_id)) is None:
        return None
    (low, high), (c, d) = operands
    largest = max(abs(c), abs(d), 1) - 1
    return max(min(low, 0), -largest), min(max(high, 0), largest)


def _integer_divide(call: Call, schema_by_id: FieldsById) -> Range | None:
    """Truncates towards zero; a zero divisor raises."""
    if not call.data_type.is_integer or (operands := _operands(call, schema_by_id)) is None:
        return None
    (low, high), (c, d) = operands
    if low >= 0 and d > 0 and c >= 0:
        return low // d, high // max(c, 1)
    largest = max(abs(low), abs(high))
    return -largest, largest


def _round(call: Call, schema_by_id: FieldsById) -> Range | None:
    """round, floor, ceil, trunc to zero or more digits move a value by less than one."""
    known = operand_range(call.arguments[0], schema_by_id)
    if known is None or not call.data_type.is_integer_like:
        return None
    if len(call.arguments) > 1:
        digits = call.arguments[1]
        if not isinstance(digits, Literal) or type(digits.value) is not int or digits.value < 0:
            return None
    source, target = call.arguments[0].data_type.scale, call.data_type.scale
    if source == 0 and target == 0:
        return known
    unit, scale = 10**source, 10**target
    return (known[0] * scale // unit) - scale, -(-known[1] * scale // unit) + scale


def _union_call(call: Call, schema_by_id: FieldsById) -> Range | None:
    return _union(call.arguments, schema_by_id)


def _fixed(low: int, high: int) -> Callable[[Call, FieldsById], Range | None]:
    return lambda call, schema_by_id: (low, high)


def _same_type_first(call: Call, schema_by_id: FieldsById) -> Range | None:
    return value_range(call.arguments[0], schema_by_id)


# Dates and timestamps


def _ticks_per_day(data_type: DataType) -> int | None:
    """Storage units in a day, for DATE and the timestamps."""
    if data_type.kind is TypeKind.DATE:
        return 1
    ticks = TICKS_PER_SECOND.get(data_type.kind)
    return None if ticks is None else ticks * _SECONDS_PER_DAY


def _days(expression: Expression, schema_by_id: FieldsById) -> Range | None:
    """The range in whole days since 1970, one more on either side under a time zone."""
    per_day = _ticks_per_day(expression.data_type)
    known = value_range(expression, schema_by_id)
    if per_day is None or known is None:
        return None
    slack = 1 if expression.data_type.kind is TypeKind.TIMESTAMP_TZ else 0
    return known[0] // per_day - slack, known[1] // per_day + slack


_PART_RANGES: dict[str, Range] = {
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "weekofyear": (1, 53),
    "day": (1, 31),
    "dayofmonth": (1, 31),
    "doy": (1, 366),
    "dayofyear": (1, 366),
    "dow": (0, 6),
    "dayofweek": (0, 6),
    "weekday": (0, 6),
    "isodow": (1, 7),
    "hour": (0, 24),
    "minute": (0, 59),
    "second": (0, 59),
    "millisecond": (0, 59_999),
    "milliseconds": (0, 59_999),
    "microsecond": (0, 59_999_999),
    "microseconds": (0, 59_999_999),
}


def _date_part(call: Call, schema_by_id: FieldsById) -> Range | None:
    part, source = call.arguments[0], call.arguments[1]
    if not isinstance(part, Literal) or not isinstance(part.value, str) or not call.data_type.is_integer:
        return None
    if not source.data_type.is_temporal:  # an interval's parts are not bounded by the calendar
        return None
    name = part.value.lower()
    if name in ("year", "isoyear"):
        days = _days(source, schema_by_id)
        if days is None or days[0] < _CALENDAR_DAYS[0] or days[1] > _CALENDAR_DAYS[1]:
            return None
        first, last = (date.fromordinal(day + _EPOCH_ORDINAL).year for day in days)
        return (first, last) if name == "year" else (first - 1, last + 1)
    return _PART_RANGES.get(name)


#: At most how many days date_trunc goes back.
_TRUNC_DAYS = {
    **dict.fromkeys(("day", "hour", "minute", "second", "millisecond", "microsecond"), 0),
    "week": 6,
    "month": 30,
    "quarter": 91,
    "year": 365,
    "isoyear": 371,
    "decade": 3_652,
    "century": 36_525,
}


def _date_trunc(call: Call, schema_by_id: FieldsById) -> Range | None:
    part, source = call.arguments[0], call.arguments[1]
    days, per_day = _days(source, schema_by_id), _ticks_per_day(call.data_type)
    if days is None or per_day is None or not isinstance(part, Literal) or not isinstance(part.value, str):
        return None
    if days[0] < _CALENDAR_DAYS[0] or days[1] > _CALENDAR_DAYS[1]:
        return None
    back = _TRUNC_DAYS.get(part.value.lower(), 365_250)
    return (days[0] - back) * per_day, (days[1] + 1) * per_day - 1


def _shift_days(sign: int) -> Callable[[Call, FieldsById], Range | None]:
    def rule(call: Call, schema_by_id: FieldsById) -> Range | None:
        if call.data_type.kind is not TypeKind.DATE or (operands := _operands(call, schema_by_id)) is None:
            return None
        (a, b), (c, d) = operands
        low, high = (a + c, b + d) if sign > 0 else (a - d, b - c)
        if {a, b} & _INFINITE_DATES:  # which stay where they are
            return min(a, low), max(b, high)
        return low, high

    return rule


#: -infinity and infinity as days.
_INFINITE_DATES = frozenset((-time_limits.INFINITE_DAY, time_limits.INFINITE_DAY))


def _shift_interval(sign: int) -> Callable[[Call, FieldsById], Range | None]:
    """A month is 28 to 31 days; known for a constant interval only."""

    def rule(call: Call, schema_by_id: FieldsById) -> Range | None:
        source, interval = call.arguments[0], call.arguments[1]
        days, per_day = _days(source, schema_by_id), _ticks_per_day(call.data_type)
        if days is None or per_day is None or not isinstance(interval, Literal):
            return None
        if not isinstance(interval.value, tuple) or not is_finite(source, schema_by_id):
            return None
        months, whole_days, microseconds = (sign * int(component) for component in interval.value)
        shifts = (months * 28 + whole_days, months * 31 + whole_days)
        extra = -(-abs(microseconds) // (_SECONDS_PER_DAY * 10**6))
        low, high = days[0] + min(shifts) - extra, days[1] + 1 + max(shifts) + extra
        return low * per_day, high * per_day

    return rule


def _date_difference(call: Call, schema_by_id: FieldsById) -> Range | None:
    if (operands := _operands(call, schema_by_id)) is None:
        return None
    (a, b), (c, d) = operands
    return a - d, b - c


#: Parts that are whole days: between two instants lie no more of them than days.
_PARTS_OF_DAYS = frozenset(
    ("day", "week", "month", "quarter", "year", "isoyear", "decade", "century", "millennium")
)


def _count_of_parts(call: Call, schema_by_id: FieldsById) -> Range | None:
    """What date_diff and date_sub count; NULL where a date is infinite."""
    part, start, end = call.arguments
    if not isinstance(part, Literal) or not isinstance(part.value, str):
        return None
    if part.value.lower() not in _PARTS_OF_DAYS:
        return None
    first, last = _days(start, schema_by_id), _days(end, schema_by_id)
    if first is None or last is None:
        return None
    return min(0, last[0] - first[1]), max(0, last[1] - first[0])


# Casts


def _divide_half_away(value: int, divisor: int) -> int:
    quotient = (abs(value) * 2 + divisor) // (divisor * 2)
    return quotient if value >= 0 else -quotient


def _cast_range(cast: Cast, schema_by_id: FieldsById) -> Range | None:
    source, target = cast.input.data_type, cast.data_type
    if not can_cast(source, target):
        return None
    known = _convert(cast.input, source, target, schema_by_id)
    if known is not None and cast.is_try:  # what does not fit becomes NULL
        low, high = target.bounds
        return (max(low, known[0]), min(high, known[1])) if known[0] <= high and known[1] >= low else None
    return known


def _convert(
    operand: Expression, source: DataType, target: DataType, schema_by_id: FieldsById
) -> Range | None:
    if source.kind is TypeKind.BOOLEAN:
        return (0, 10**target.scale) if target.is_integer or target.is_decimal else None
    if source == target:
        return value_range(operand, schema_by_id)
    if (source.is_integer or source.is_decimal) and (target.is_integer or target.is_decimal):
        known = operand_range(operand, schema_by_id)
        if known is None:
            return None
        shift = target.scale - source.scale
        if shift >= 0:
            return known[0] * 10**shift, known[1] * 10**shift
        divisor = 10**-shift
        return _divide_half_away(known[0], divisor), _divide_half_away(known[1], divisor)
    from_day, to_day = _ticks_per_day(source), _ticks_per_day(target)
    if from_day is None or to_day is None or not is_finite(operand, schema_by_id):
        return None
    days = _days(operand, schema_by_id)
    if days is None:
        return None
    return (days[0], days[1]) if to_day == 1 else (days[0] * to_day, (days[1] + 1) * to_day)


_RULES: dict[str, Callable[[Call, FieldsById], Range | None]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "negate": _negate,
    "abs": _absolute,
    "modulo": _modulo,
    "integer_divide": _integer_divide,
    "round": _round,
    "floor": _round,
    "ceil": _round,
    "trunc": _round,
    "sign": _fixed(-1, 1),
    "coalesce": _union_call,
    "greatest": _union_call,
    "least": _union_call,
    "length": _fixed(0, 2**40),
    "octet_length": _fixed(0, 2**40),
    "position": _fixed(0, 2**40),
    "unicode": _fixed(-1, 0x10FFFF),
    "ascii": _fixed(-1, 0x10FFFF),
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "add_days": _shift_days(1),
    "subtract_days": _shift_days(-1),
    "add_interval": _shift_interval(1),
    "subtract_interval": _shift_interval(-1),
    "subtract_dates": _date_difference,
    "date_diff": _count_of_parts,
    "date_sub": _count_of_parts,
}
