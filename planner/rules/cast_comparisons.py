"""Compare a column with a constant in the column's own type instead of casting every row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tqp.core.datatypes import BOOLEAN, TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.time_limits import FIRST_DAY, LAST_DAY
from tqp.planner.algebra.expressions import Call, Cast, Expression, InList, Literal, are_literals
from tqp.planner.functions.ranges import Range, is_finite, ticks_per_day

_WITHOUT_ZONE = (TypeKind.TIMESTAMP_S, TypeKind.TIMESTAMP_MS, TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NS)


def without_cast(call: Call, range_of: Callable[[Expression], Range | None] | None = None) -> Call:
    """`CAST(x AS wider) < constant` as `x < constant'` where that is exact; else the same object.

    CAST(d AS TIMESTAMP) < TIMESTAMP '1995-01-01 00:00:00' becomes d < DATE '1995-01-01'. `range_of`: what the values of x are known
    to lie between; without it, casts that may fail stay.
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
    if factor is None and range_of is not None:
        factor = _factor_of_times(source, cast.data_type, lambda: range_of(cast.input))
    if factor is None or _is_infinite(value, source, cast.data_type):
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
    low, high = _finite_bounds(source)
    if not low <= constant <= high:
        return call
    return replace(call, arguments=(cast.input, Literal(constant, source)))


def list_without_cast(expression: InList) -> Expression:
    """`CAST(x AS wider) IN (...)` as a list of x's own values, less those that x cannot have; where none is left, as it is.

    So is `CAST(e AS VARCHAR) IN ('a', 'b')` of an ENUM.
    """
    cast = expression.input
    if not isinstance(cast, Cast) or cast.is_try or not are_literals(expression.values):
        return expression
    source = cast.input.data_type
    found: Sequence[Literal | None]
    if source.is_enum:
        found = [_position(literal, source) for literal in expression.values]
    else:
        found = _uncast(expression.values, source, cast.data_type)
    kept = tuple([literal for literal in found if literal is not None])
    if len(kept) == 1:
        return Call("equal", (cast.input, *kept), BOOLEAN)
    return InList(cast.input, kept) if kept else expression


def _uncast(literals: Sequence[Literal], source: DataType, target: DataType) -> list[Literal]:
    """Those that an exact cast makes of values of `source`, as these; none where an infinity may be among them."""
    factor = _factor(source, target)
    if factor is None:
        return []
    low, high = _finite_bounds(source)
    values = [literal.value for literal in literals if type(literal.value) is int]
    if any(_is_infinite(value, source, target) for value in values):
        return []
    return [
        Literal(value // factor, source)
        for value in values
        if value % factor == 0 and low <= value // factor <= high
    ]


def _position(literal: Literal, source: DataType) -> Literal | None:
    """A text as a value of an ENUM; None where it is not one."""
    position = source.categories.positions.get(literal.value) if isinstance(literal.value, str) else None
    return None if position is None else Literal(position, source)


def _finite_bounds(source: DataType) -> tuple[int, int]:
    """The least and the greatest value that is no infinity."""
    return (FIRST_DAY, LAST_DAY) if source.kind is TypeKind.DATE else source.bounds


def _is_infinite(value: int, source: DataType, target: DataType) -> bool:
    """Whether a value of `target` is what infinite dates become, which are no multiples of a day."""
    return source.kind is TypeKind.DATE and abs(value) >= target.bounds[1]


def _factor(source: DataType, target: DataType) -> int | None:
    """Storage values of the cast are those of its source times this; None unless the cast is exact for all of them."""
    if (
        source.kind is TypeKind.DATE
        and target.kind in TICKS_PER_SECOND
        and target.kind is not TypeKind.TIMESTAMP_TZ
    ):
        return ticks_per_day(target)
    exact = (source.is_integer or source.is_decimal) and (target.is_integer or target.is_decimal)
    if not exact or target.scale < source.scale:
        return None
    factor = int(10 ** (target.scale - source.scale))
    low, high = source.bounds
    target_low, target_high = target.bounds
    return factor if target_low <= low * factor and high * factor <= target_high else None


def _factor_of_times(source: DataType, target: DataType, known: Callable[[], Range | None]) -> int | None:
    """As `_factor`, of timestamps in a coarser unit, which fails for those that are too far away, and leaves infinities as they are."""
    if not (source.kind in _WITHOUT_ZONE and target.kind in _WITHOUT_ZONE):
        return None
    factor, rest = divmod(TICKS_PER_SECOND[target.kind], TICKS_PER_SECOND[source.kind])
    if rest or not is_finite(values := known(), source):
        return None
    assert values is not None
    return factor if max(map(abs, values)) * factor < target.bounds[1] else None
