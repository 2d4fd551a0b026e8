"""How much of an instant an expression reads: what its function's rule says, in ticks of the instant's type."""

from __future__ import annotations

from tqp.core.datatypes import BIGINT, TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.time_limits import SECONDS_PER_DAY
from tqp.planner.algebra.expressions import Call, Cast, Expression, Literal
from tqp.planner.functions.registry import SCALARS


def ticks_read(expression: Expression) -> int | None:
    """It has one value for so many ticks of its only argument that is no literal, an instant, from a multiple of them on.

    None where it is no such call, or reads all of the instant.
    """
    match expression:
        case Cast(input, data_type) if data_type.kind is TypeKind.DATE:
            instant, seconds = input, SECONDS_PER_DAY
        case Call(function) if (rule := SCALARS[function].granularity) is not None:
            read = [part for part in expression.arguments if not isinstance(part, Literal)]
            found = rule(expression) if len(read) == 1 else None
            if found is None:
                return None
            instant, seconds = read[0], found
        case _:
            return None
    return seconds * TICKS_PER_SECOND[instant.data_type.kind] if instant.data_type.is_timestamp else None


def number_of_unit(instant: Expression, ticks: int) -> Call:
    """How many units of so many ticks lie between 1970 and the one that holds the instant, which is finite."""
    return Call("number_of_unit", (Literal(ticks, BIGINT), instant), BIGINT)


def start_of_unit(number: Expression, ticks: int, data_type: DataType) -> Call:
    """The instant of the type at which the unit of this number begins."""
    return Call("start_of_unit", (Literal(ticks, BIGINT), number), data_type)
