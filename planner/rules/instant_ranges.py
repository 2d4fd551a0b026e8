"""Compare an instant itself where the day, the month or the year that holds it is compared with a constant.

`x::DATE = DATE '2024-05-01'` becomes `x >= '2024-05-01' AND x < '2024-05-02'`, and `year(x) > 2023` becomes `x >= '2024-01-01'`:
nothing is computed of any row, and the ranges of instants say which zones of a table are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.time_limits import SECONDS_PER_DAY
from tqp.planner.algebra.expressions import Call, Cast, Expression, Literal
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.value_ranges import is_finite
from tqp.planner.functions.granularity import TimeUnit, unit_of_value

#: What compares the instant with the begin of the unit, and with its end, where the unit is compared with its own begin.
_FROM_BEGIN = {
    "equal": ("greater_equal", "less"),
    "less": ("less", None),
    "less_equal": (None, "less"),
    "greater": (None, "greater_equal"),
    "greater_equal": ("greater_equal", None),
}
#: Where it is compared with another instant in it, which no unit is equal to.
_WITHIN = {
    **dict.fromkeys(("less", "less_equal"), (None, "less")),
    **dict.fromkeys(("greater", "greater_equal"), (None, "greater_equal")),
}


def compared_instants(call: Call, fields: FieldsById) -> Sequence[Call]:
    """Comparisons that hold together where `call` does, whose second argument is a literal, and are NULL where it is.

    `call` alone where it compares no unit of time, or what may be infinite, which belongs to none.
    """
    side, literal = call.arguments
    if not isinstance(literal, Literal) or type(value := literal.value) is not int:
        return (call,)
    instant = _instant(side, fields)
    if instant is None:
        return (call,)
    if is_year := literal.data_type.is_integer:
        second, rest = value, 0
    else:
        second, rest = _seconds(value, literal.data_type)
    unit = _unit(side, second)
    bounds = [] if unit is None else [_instant_at(each, instant.data_type) for each in (unit.begin, unit.end)]
    if unit is None or None in bounds:
        return (call,)
    is_begin = is_year or (unit.begin == second and not rest)
    functions = (_FROM_BEGIN if is_begin else _WITHIN).get(call.function, (None, None))
    found = [
        Call(function, (instant, bound), call.data_type, call.span)
        for function, bound in zip(functions, bounds, strict=True)
        if function and bound
    ]
    return [part for each in found for part in compared_instants(each, fields)] or (call,)


def _instant(side: Expression, fields: FieldsById) -> Expression | None:
    """The instant of whose unit of time `side` tells, which is never an infinity where that has no unit, and raises for no row."""
    match side:
        case Cast(instant) if side.data_type.kind is TypeKind.DATE and not side.is_try:
            return instant if instant.data_type.is_timestamp else None
        case Call("date_part" | "date_trunc" | "time_bucket", (_, instant)):
            is_instant = instant.data_type.is_timestamp or instant.data_type.kind is TypeKind.DATE
            if is_instant and is_finite(instant, fields) and not may_raise(side, fields):
                return instant
    return None


def _unit(side: Expression, second: int) -> TimeUnit | None:
    if isinstance(side, Call):
        return unit_of_value(side, second)
    return TimeUnit(second, second + SECONDS_PER_DAY)


def _seconds(value: int, data_type: DataType) -> tuple[int, int]:
    """The second that an instant lies in, and whether it lies behind its begin."""
    if data_type.kind is TypeKind.DATE:
        return value * SECONDS_PER_DAY, 0
    return divmod(value, TICKS_PER_SECOND[data_type.kind])


def _instant_at(second: int, data_type: DataType) -> Literal | None:
    """As an instant of the type, if it has such."""
    if data_type.kind is TypeKind.DATE:
        value, rest = divmod(second, SECONDS_PER_DAY)
    else:
        value, rest = second * TICKS_PER_SECOND[data_type.kind], 0
    low, high = data_type.bounds
    return None if rest or not low < value < high else Literal(value, data_type)
