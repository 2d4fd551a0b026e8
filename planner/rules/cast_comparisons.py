"""Compare a column with a constant in the column's own type instead of casting every row."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import BOOLEAN, TICKS_PER_SECOND, DataType, TypeKind
from tqp.planner.algebra.expressions import Call, Cast, Constant, Expression, InList, Literal, are_literals

_SECONDS_PER_DAY = 86_400


def without_cast(call: Call) -> Call:
    """`CAST(x AS wider) < constant` as `x < constant'` where that is exact; else the same object.

    CAST(d AS TIMESTAMP) < TIMESTAMP '1995-01-01 00:00:00' becomes d < DATE '1995-01-01'.
    """
    cast, literal = call.arguments
    if not (isinstance(cast, Cast) and isinstance(literal, Literal) and not cast.is_try):
        return call
    value = literal.value
    source = cast.input.data_type
    if source.is_enum and call.function in ("equal", "not_equal"):
        position = _position(literal, source)
        return call if position is None else replace(call, arguments=(cast.input, position))
    if type(value) is not int:
        return call
    factor = _factor(source, cast.data_type)
    if factor is None:
        return call
    floor, ceiling = value // factor, -(-value // factor)
    match call.function:
        case "less" | "greater_equal":
            constant = ceiling
        case "less_equal" | "greater":
            constant = floor
        case _ if floor == ceiling:
            constant = floor
        case _:
            return call
    low, high = source.bounds
    if source.kind is TypeKind.DATE:
        low, high = -(2**31) + 2, 2**31 - 2  # the outermost are the infinities
    if not low <= constant <= high:
        return call
    return replace(call, arguments=(cast.input, Literal(constant, source)))


def list_without_cast(expression: InList) -> Expression:
    """`CAST(e AS VARCHAR) IN ('a', 'b')` of an ENUM as a list of its values, less the texts that are none."""
    cast = expression.input
    if not (isinstance(cast, Cast) and cast.input.data_type.is_enum and are_literals(expression.values)):
        return expression
    source = cast.input.data_type
    found = [_position(value, source) for value in expression.values]
    positions = tuple(position for position in found if position is not None)
    if len(positions) == 1:
        return Call("equal", (cast.input, *positions), BOOLEAN)
    return InList(cast.input, positions) if positions else expression


def _position(constant: Constant, source: DataType) -> Literal | None:
    """A text as a value of an ENUM; None where it is not one."""
    value = constant.value if isinstance(constant, Literal) else None
    position = source.categories.positions.get(value) if isinstance(value, str) else None
    return None if position is None else Literal(position, source)


def _factor(source: DataType, target: DataType) -> int | None:
    """Storage values of the cast are those of its source times this; None unless the cast is exact for all of them."""
    if (
        source.kind is TypeKind.DATE
        and target.kind in TICKS_PER_SECOND
        and target.kind is not TypeKind.TIMESTAMP_TZ
    ):
        return _SECONDS_PER_DAY * TICKS_PER_SECOND[target.kind]
    exact = (source.is_integer or source.is_decimal) and (target.is_integer or target.is_decimal)
    if not exact or target.scale < source.scale:
        return None
    factor = int(10 ** (target.scale - source.scale))
    low, high = source.bounds
    target_low, target_high = target.bounds
    return factor if target_low <= low * factor and high * factor <= target_high else None
