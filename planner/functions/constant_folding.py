"""Evaluates calls and casts whose arguments are all literals, with DuckDB's results and errors.

`fold` is exact or does nothing: what it does not know stays as it is and is computed by a kernel.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable, Iterable
from typing import Any

from tqp.core import time_limits
from tqp.core.datatypes import BOOLEAN, DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.planner.algebra.expressions import FALSE, TRUE, Call, Cast, Expression, Literal
from tqp.planner.functions.literal_casts import cast_value, interval_of, unit_name
from tqp.planner.functions.type_rules import can_cast

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_MICROS_PER_DAY = time_limits.MICROSECONDS_PER_DAY


def fold(expression: Expression) -> Expression:
    """The literal that `expression` (its inputs already folded) is, or the expression unchanged.

    Raises ExecutionError (with the span) where evaluating it fails: overflow, a text that is no date, and so on.
    """
    if isinstance(expression, Cast):
        return _fold_cast(expression)
    if isinstance(expression, Call):
        return _fold_call(expression)
    return expression


def _fold_cast(cast: Cast) -> Expression:
    operand = cast.input
    if not isinstance(operand, Literal):
        return cast
    if operand.value is not None and not can_cast(operand.data_type, cast.data_type):
        return cast  # raises where a row is computed
    try:
        value = cast_value(operand.value, operand.data_type, cast.data_type)
    except ExecutionError as error:
        if cast.is_try:
            return Literal(None, cast.data_type)
        error.span = error.span or cast.span
        raise
    return cast if value is NotImplemented else Literal(value, cast.data_type)


#: Functions that give NULL for a NULL argument, so that one NULL literal decides.
_CONNECTIVES = ("and", "or")
_SEES_NULL = frozenset(
    (
        "is_null",
        "coalesce",
        "is_distinct_from",
        "is_not_distinct_from",
        "concat",
        "concat_ws",
        "greatest",
        "least",
        "array_value",
    )
)


def _fold_call(call: Call) -> Expression:
    if call.function in _CONNECTIVES:
        return _fold_connective(call)
    literals = [argument for argument in call.arguments if isinstance(argument, Literal)]
    values = [literal.value for literal in literals]
    if call.function not in _SEES_NULL and None in values:
        return Literal(None, call.data_type)
    function = _FUNCTIONS.get(call.function)
    if function is None or len(values) < len(call.arguments):
        return call
    try:
        value = function(call, *values)
    except ExecutionError as error:
        error.span = error.span or call.span
        raise
    return call if value is NotImplemented else Literal(value, call.data_type)


def _fold_connective(call: Call) -> Expression:
    """AND, OR: constants drop out or decide."""
    decisive, neutral = (FALSE, TRUE) if call.function == "and" else (TRUE, FALSE)
    rest = tuple(argument for argument in call.arguments if argument != neutral)
    if decisive in rest:
        return decisive
    if not rest:
        return neutral
    if len(rest) == 1:
        return rest[0]
    return call if len(rest) == len(call.arguments) else Call(call.function, rest, BOOLEAN, call.span)


def _checked(call: Call, value: Any, sign: str) -> Any:
    """Arithmetic results: DuckDB raises where an integer or decimal leaves its type."""
    if isinstance(value, int):
        low, high = call.data_type.bounds
        if not low <= value <= high:
            shown = f" {sign} ".join(_show(argument) for argument in call.arguments)
            raise ExecutionError(
                f"overflow: {shown} does not fit {call.data_type}; cast an operand to a wider type first"
            )
    return value


def _show(argument: Expression) -> str:
    if isinstance(argument, Literal) and isinstance(argument.value, int):
        text = cast_value(argument.value, argument.data_type, DataType(TypeKind.VARCHAR))
        return str(text)
    return str(getattr(argument, "value", argument))


def _is_float32(call: Call) -> bool:
    return call.data_type.kind is TypeKind.FLOAT


def _add(call: Call, left: Any, right: Any) -> Any:
    return NotImplemented if _is_float32(call) else _checked(call, left + right, "+")


def _subtract(call: Call, left: Any, right: Any) -> Any:
    return NotImplemented if _is_float32(call) else _checked(call, left - right, "-")


def _multiply(call: Call, left: Any, right: Any) -> Any:
    return NotImplemented if _is_float32(call) else _checked(call, left * right, "*")


def _negate(call: Call, value: Any) -> Any:
    return _checked(call, -value, "negated")


def _divide(call: Call, left: float, right: float) -> Any:
    if _is_float32(call) or right == 0:
        return NotImplemented
    return left / right


def _integer_divide(call: Call, left: Any, right: Any) -> Any:
    if not isinstance(left, int) or not isinstance(right, int) or right == 0:
        return NotImplemented
    quotient = abs(left) // abs(right)
    return _checked(call, quotient if (left < 0) == (right < 0) else -quotient, "//")


def _modulo(call: Call, left: Any, right: Any) -> Any:
    if not isinstance(left, int) or not isinstance(right, int) or right == 0:
        return NotImplemented
    if right == -1:
        _checked(call, -left, "%")  # DuckDB divides, and the quotient of the smallest value does not fit
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def evaluate(call: Call, left: Any, right: Any) -> Any:
        comparable = isinstance(left, (int, str)) and isinstance(right, (int, str))
        if not comparable:  # floats with NaN and intervals have an order of their own
            return NotImplemented
        if isinstance(left, str) and isinstance(right, str):
            return compare(left.encode(), right.encode())
        return compare(left, right)

    return evaluate


def _date_of(days: int) -> datetime.date | None:
    ordinal = days + _EPOCH
    return datetime.date.fromordinal(ordinal) if 1 <= ordinal <= 3_652_059 else None


def _move_days(sign: int) -> Callable[..., Any]:
    def evaluate(_: Call, days: int, count: int) -> Any:
        if abs(days) == time_limits.INFINITE_DAY:
            return days
        moved = days + sign * count
        inside = time_limits.FIRST_DAY <= moved <= time_limits.LAST_DAY
        return moved if inside else NotImplemented  # the kernel raises

    return evaluate


def _subtract_dates(_: Call, left: int, right: int) -> Any:
    infinite = time_limits.INFINITE_DAY in (abs(left), abs(right))
    return NotImplemented if infinite else left - right


def _shift(micros_since_epoch: int, interval: tuple[int, int, int], sign: int) -> Any:
    """A timestamp moved by months (to the last day where the month is shorter), then days, then microseconds.

    Left to the kernel where it comes near the end of what there is: beyond the years 1 to 9999.
    """
    days, clock = divmod(micros_since_epoch, _MICROS_PER_DAY)
    date = _date_of(days)
    if date is None:
        return NotImplemented
    month = date.year * 12 + date.month - 1 + sign * interval[0]
    year, month = divmod(month, 12)
    if not 1 <= year <= 9999:
        return NotImplemented
    day = min(date.day, calendar.monthrange(year, month + 1)[1])
    days = datetime.date(year, month + 1, day).toordinal() - _EPOCH + sign * interval[1]
    moved = days * _MICROS_PER_DAY + clock + sign * interval[2]
    return NotImplemented if _date_of(days) is None or _date_of(moved // _MICROS_PER_DAY) is None else moved


def _move(sign: int) -> Callable[..., Any]:
    def evaluate(call: Call, start: int, interval: tuple[int, int, int]) -> Any:
        kind = call.arguments[0].data_type.kind
        if kind is TypeKind.DATE:
            return _shift(start * _MICROS_PER_DAY, interval, sign)
        return _shift(start, interval, sign) if kind is TypeKind.TIMESTAMP else NotImplemented

    return evaluate


def _combine_intervals(sign: int) -> Callable[..., Any]:
    def evaluate(_: Call, left: tuple[int, int, int], right: tuple[int, int, int]) -> Any:
        return _interval(a + sign * b for a, b in zip(left, right))

    return evaluate


def _interval(fields: Iterable[int]) -> Any:
    """The fields, or NotImplemented where one is out of range: the kernel raises."""
    months, days, micros = fields
    fits = max(abs(months), abs(days)) < 2**31 and abs(micros) < 2**63
    return (months, days, micros) if fits else NotImplemented


def _to_interval(_: Call, unit: str, count: float) -> Any:
    name = unit_name(unit)
    return NotImplemented if name is None else interval_of(name, count) or NotImplemented


def _is_distinct(call: Call, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return left is not right
    return _NOT_EQUAL(call, left, right)


def _is_not_distinct(call: Call, left: Any, right: Any) -> Any:
    distinct = _is_distinct(call, left, right)
    return distinct if distinct is NotImplemented else not distinct


_NOT_EQUAL = _comparison(lambda left, right: left != right)

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "negate": _negate,
    "divide": _divide,
    "integer_divide": _integer_divide,
    "modulo": _modulo,
    "equal": _comparison(lambda left, right: left == right),
    "not_equal": _NOT_EQUAL,
    "less": _comparison(lambda left, right: left < right),
    "less_equal": _comparison(lambda left, right: left <= right),
    "greater": _comparison(lambda left, right: left > right),
    "greater_equal": _comparison(lambda left, right: left >= right),
    "is_distinct_from": _is_distinct,
    "is_not_distinct_from": _is_not_distinct,
    "is_null": lambda _, value: value is None,
    "not": lambda _, value: not value,
    "add_days": _move_days(1),
    "subtract_days": _move_days(-1),
    "subtract_dates": _subtract_dates,
    "add_interval": _move(1),
    "subtract_interval": _move(-1),
    "add_intervals": _combine_intervals(1),
    "subtract_intervals": _combine_intervals(-1),
    "negate_interval": lambda _, interval: _interval(-part for part in interval),
    "to_interval": _to_interval,
    "concat_operator": lambda _, left, right: left + right,
}
