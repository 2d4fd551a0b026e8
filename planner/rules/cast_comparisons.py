"""Compare a column with a constant in the column's own type instead of casting every row."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.planner.algebra.expressions import Call, Cast, Literal

_SECONDS_PER_DAY = 86_400


def without_cast(call: Call) -> Call:
    """`CAST(x AS wider) < constant` as `x < constant'` where that is exact; else the same object.

    CAST(d AS TIMESTAMP) < TIMESTAMP '1995-01-01 00:00:00' becomes d < DATE '1995-01-01'.
    """
    cast, literal = call.arguments
    if not (isinstance(cast, Cast) and isinstance(literal, Literal) and not cast.is_try):
        return call
    value = literal.value
    if type(value) is not int:
        return call
    source = cast.input.data_type
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
