"""Numbers rounded: floor, ceil, round and trunc, to a number of digits."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.data.division import divide_by
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import arithmetic, wide, wide_divide
from tqp.operators.numbers.casts import round_half_away
from tqp.operators.numbers.wide_forms import narrow_if_possible


def resolve_whole(float_function: Callable[[Tensor], Tensor], direction: str) -> Overload:
    """floor, ceil: of decimals to scale 0, of floats in place; integers are already whole."""

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        (data_type,) = argument_types
        if data_type.is_float:
            return Kernel(float_function)
        if data_type.is_integer:
            if result_type.is_float:
                return Kernel(lambda values: arithmetic.scaled_to_float(values, 0), accepts_wide=True)
            return Kernel(lambda values: values, accepts_wide=True, any_width=True)
        if not data_type.is_decimal:
            return None
        power = 10 ** (data_type.scale - result_type.scale)
        return Kernel(
            lambda values: _divide_power(values, power, direction), accepts_wide=True, any_width=power == 1
        )

    return resolve


def _divide_power(values: Tensor, power: int, direction: str) -> Tensor:
    """Integers, narrow or wide, divided by a power of ten: `floor`, `ceil`, `trunc`, `away` or `even` (halves away from zero, or
    to the even neighbour)."""
    if power == 1:
        return values
    if direction == "even":
        return _divide_half_even(values, power)
    if wide.is_wide(values) or power > 2**63 - 1:
        values = wide.widen(values)
        result = wide_divide.divide_by_int(values, power, round_half_away=direction == "away")
        if direction in ("floor", "ceil"):
            product = wide.multiply(result, wide.from_ints([power], values.device))
            inexact = wide.less(values, product) if direction == "floor" else wide.less(product, values)
            step = wide.from_narrow(inexact.to(torch.int64))
            result = wide.subtract(result, step) if direction == "floor" else wide.add(result, step)
        return narrow_if_possible(result)
    values = values.to(torch.int64)
    if direction == "away":
        return arithmetic.divide_half_away(values, power)
    if direction == "ceil":
        quotient = torch.div(values, power, rounding_mode="trunc")
        return quotient + (values - quotient * power > 0)
    return torch.div(values, power, rounding_mode=direction)


def _divide_half_even(values: Tensor, power: int) -> Tensor:
    """A quotient rounded half away from zero, and a step back from odd ones where the remainder was a half."""
    away = wide.widen(_divide_power(values, power, "away"))
    values = wide.widen(values)
    twice = wide.from_ints([2], values.device)
    half = wide.from_ints([power // 2], values.device)
    truncated = wide_divide.divide_by_int(values, power, round_half_away=False)
    rest = wide.subtract(values, wide.multiply(truncated, wide.from_ints([power], values.device)))
    is_half = wide.equal(wide.magnitude(rest), half)
    is_odd = ~wide.equal(
        wide.multiply(wide_divide.divide_by_int(away, 2, round_half_away=False), twice), away
    )
    step = wide.from_narrow((is_half & is_odd).to(torch.int64) * wide.sign(values))
    return narrow_if_possible(wide.subtract(away, step))


_WHOLE: dict[str, Callable[[Tensor], Tensor]] = {
    "away": round_half_away,
    "even": torch.round,
    "trunc": torch.trunc,
}


def resolve_round(direction: str) -> Overload:
    """round, round_even and trunc, with an optional number of digits, which may be negative; for DECIMAL it is a constant."""
    whole = _WHOLE[direction]

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        data_type = argument_types[0]
        constant = frozenset({1}) if len(argument_types) == 2 else frozenset()
        if data_type.is_float:
            if not constant:
                return Kernel(whole)
            return Kernel(
                lambda values, digits: _round_floats(values, digits, whole),
                constant_arguments=constant,
                constants_may_vary=True,
            )
        if not (data_type.is_integer or data_type.is_decimal):
            return None

        def rounded(values: Tensor, digits: int | Tensor = 0, *, validity: Tensor | None = None) -> Tensor:
            if isinstance(digits, Tensor):
                return _round_each(values, digits, data_type, direction, validity)
            return _round_integers(values, int(digits), data_type, result_type, direction, validity)

        return Kernel(
            rounded,
            constant_arguments=constant,
            constants_may_vary=data_type.is_integer,
            checks=True,
            accepts_wide=True,
            any_width=True,
        )

    return resolve


def _round_floats(values: Tensor, digits: int | Tensor, whole: Callable[[Tensor], Tensor]) -> Tensor:
    """DuckDB's way, through a product with a power of ten in double precision."""
    doubles = values.to(torch.float64)
    if isinstance(digits, Tensor):
        powers = torch.tensor(_POWERS, dtype=torch.float64, device=values.device)
        by_row = powers[digits.to(torch.int64).abs().clamp(max=len(_POWERS) - 1)]
        up, down = _round_up(doubles, by_row, whole), _round_down(doubles, by_row, whole)
        return torch.where(digits >= 0, up, down).to(values.dtype)
    power = _POWERS[min(abs(digits), len(_POWERS) - 1)]
    return (_round_up if digits >= 0 else _round_down)(doubles, power, whole).to(values.dtype)


#: 1, 10, 100, ... as far as doubles go, and what is beyond.
_POWERS = (*(10.0**exponent for exponent in range(309)), math.inf)


def _round_up(values: Tensor, power: float | Tensor, whole: Callable[[Tensor], Tensor]) -> Tensor:
    """To digits after the point."""
    result = divide_by(whole(values * power), power)
    return torch.where(torch.isfinite(result), result, values)


def _round_down(values: Tensor, power: float | Tensor, whole: Callable[[Tensor], Tensor]) -> Tensor:
    """To digits before the point. Of a power beyond the range of doubles nothing is left; what is not finite, or becomes so, stays."""
    result = whole(divide_by(values, power)) * power
    nothing_left = torch.isnan(result) & torch.isfinite(values)
    fallback = values if whole is torch.trunc else torch.where(nothing_left, 0.0, values)
    return torch.where(torch.isfinite(result), result, fallback)


def _round_each(
    values: Tensor, digits: Tensor, data_type: DataType, direction: str, validity: Tensor | None
) -> Tensor:
    """Integers, each to its own number of digits: by one number after the other, of which few make a difference."""
    result = values if wide.is_wide(values) else values.to(torch.int64)
    digits = digits.to(torch.int64).clamp(-_MOST_DIGITS, 0).expand(values.shape[:1])
    for number in torch.unique(digits).tolist():
        of_number = digits == number
        counted = of_number if validity is None else of_number & validity
        rounded = _round_integers(values, number, data_type, data_type, direction, counted)
        if wide.is_wide(rounded) != wide.is_wide(result):
            rounded, result = wide.widen(rounded), wide.widen(result)
        chosen = of_number.unsqueeze(1) if wide.is_wide(result) else of_number
        result = torch.where(chosen, rounded, result)
    return narrow_if_possible(result)


#: No integer has more, so that more leave nothing of it.
_MOST_DIGITS = 40


def _round_integers(
    values: Tensor, digits: int, source: DataType, target: DataType, direction: str, validity: Tensor | None
) -> Tensor:
    """Scaled integers rounded at 10**-digits and brought to the target's scale; bounds are checked."""
    dropped = source.scale - digits
    if dropped <= 0 and source.scale == target.scale:
        return values
    if dropped > 40 or 10**dropped > 2 * max(
        map(abs, source.bounds)
    ):  # every value is less than half of that
        return torch.zeros(values.shape[:1], dtype=torch.int64, device=values.device)
    quotient = _divide_power(values, 10 ** max(dropped, 0), direction)
    factor = 10 ** max(target.scale - min(digits, source.scale), 0)
    name = str(target)
    message = f"Overflow in ROUND of {name}; cast the operand to a wider type"
    if factor == 1:
        return arithmetic.check_bounds(quotient, target.bounds, message, validity)
    if not wide.is_wide(quotient) and factor < 2**63:
        low, high = arithmetic.value_range(quotient)
        if low * factor >= -(2**63) and high * factor < 2**63:
            return arithmetic.check_bounds(
                quotient.to(torch.int64) * factor, target.bounds, message, validity
            )
    product = wide.multiply(wide.widen(quotient), wide.from_ints([factor], values.device), validity, message)
    return narrow_if_possible(arithmetic.check_bounds(product, target.bounds, message, validity))
