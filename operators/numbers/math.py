"""Numeric functions: division, roots, logarithms, trigonometry. Rounding and integers with bits are next door."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.data.backend import has_core_caches, is_host
from tqp.data.division import divide_by
from tqp.operators.asked_gradients import asked_only
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.memory.arrays import as_array, as_tensor, converted
from tqp.operators.numbers import arithmetic, elementwise, wide, wide_divide
from tqp.operators.numbers.casts import storage_dtype
from tqp.operators.numbers.gamma import gamma, log_gamma
from tqp.operators.numbers.rounding import resolve_round, resolve_whole
from tqp.operators.numbers.wide_forms import narrow_if_possible
from tqp.operators.operation import Operation

_DIVISION_BY_ZERO = "Division by zero in {}; guard the divisor with nullif(divisor, 0)"


def _smooth(function: Callable[..., Tensor]) -> Operation:
    """A function of floats that autograd follows as it is."""
    return Operation(function.__name__, function, gradient=asked_only(function))


@functools.cache
def _of_dtype(function: Operation | Callable[..., Tensor], dtype: torch.dtype) -> Operation:
    """The function, of tensors or arrays that it first converts into a float dtype."""
    inner = function if isinstance(function, Operation) else Operation(function.__name__, function)

    def converting(form: Any) -> Any:
        def call(*values: Any, **keywords: Any) -> Any:
            return form(*(converted(value, dtype) for value in values), **keywords)

        return None if form is None else call

    return Operation(
        inner.__name__,
        converting(inner.device),
        converting(inner.host),
        gradient=converting(inner.gradient),
        only_of_arrays=inner.only_of_arrays,
        takes_out=inner.takes_out,
    )


def _on_floats(function: Operation | Callable[..., Tensor]) -> Overload:
    """An overload for arguments that are all FLOAT or DOUBLE; the result has the dtype of the result type."""

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        if not all(data_type.is_float for data_type in argument_types):
            return None
        if result_type.kind is TypeKind.BOOLEAN:
            return Kernel(function)
        return Kernel(_of_dtype(function, storage_dtype(result_type)))

    return resolve


def _even(values: Tensor) -> Tensor:
    """The nearest even whole number that is as far from zero, or further."""
    whole = torch.ceil(values.abs())
    return torch.copysign(whole + (torch.floor(whole / 2) * 2 != whole), values)


def _cube_root(values: Tensor) -> Tensor:
    root = torch.pow(values.abs(), 1 / 3)
    # One Newton step: pow(x, 1/3) alone is off for perfect cubes, since 1/3 is not a float.
    root = torch.where(
        (root == 0) | torch.isinf(root), root, root - divide_by(root - values.abs() / (root * root), 3)
    )
    return torch.copysign(root, values)


def _arc_sine(values: Tensor) -> Tensor:
    return _without_sign_outside(torch.asin(values), values)


def _arc_cosine(values: Tensor) -> Tensor:
    return _without_sign_outside(torch.acos(values), values)


def _without_sign_outside(angles: Tensor, values: Tensor) -> Tensor:
    """The NaN of what is no sine: DuckDB's has no sign, whatever the processor makes, and its text shows that."""
    return torch.where(values.abs() > 1, math.nan, angles)


def _hyperbolic_sine(values: Tensor) -> Tensor:
    return torch.where(
        values.abs() > _LARGE_ANGLE, _half_exponential(values).copysign(values), torch.sinh(values)
    )


def _hyperbolic_cosine(values: Tensor) -> Tensor:
    return torch.where(values.abs() > _LARGE_ANGLE, _half_exponential(values), torch.cosh(values))


#: Beyond it, torch has infinity for what is but half of an exponential that is no DOUBLE; the other half is nothing.
_LARGE_ANGLE = 709.0


def _half_exponential(values: Tensor) -> Tensor:
    """Half of exp(|x|)."""
    root = torch.exp(values.abs() * 0.5)
    return root * 0.5 * root


def _log_base(base: Tensor, values: Tensor) -> Tensor:
    result = torch.log10(values) / torch.log10(base)
    return torch.where(
        result.isnan(), torch.nan, result
    )  # the NaN of a device may have a sign, which texts show


def _degrees(values: Tensor) -> Tensor:
    return values * (180 / math.pi)


def _radians(values: Tensor) -> Tensor:
    return values * (math.pi / 180)


# ---- divide, modulo ------------------------------------------------------------------------------------------------


def integer_divide(a: Tensor, b: Tensor, low: int, *, validity: Tensor | None = None) -> Tensor:
    """a / b truncated toward zero, integers [n]; a zero divisor, and `low` / -1, raise ExecutionError."""
    divisor = _one_divisor(b)
    if divisor is not None:
        return elementwise.truncate_divide(a, divisor)
    return torch.div(*_checked_operands(a, b, low, "//", validity), rounding_mode="trunc")


def modulo(a: Tensor, b: Tensor, low: int, *, validity: Tensor | None = None) -> Tensor:
    """The remainder, with the sign of a, integers [n]; raises as `integer_divide` does, and DuckDB."""
    divisor = _one_divisor(b)
    if divisor is not None:
        return elementwise.truncate_remainder(a, divisor)
    return torch.fmod(*_checked_operands(a, b, low, "%", validity))


def _one_divisor(b: Tensor) -> int | None:
    """The divisor, if it is positive and the same for all rows: a literal; reads nothing back from a device."""
    divisor = int(b) if b.numel() == 1 and is_host(b) else 0
    return divisor if divisor > 0 else None


def _checked_operands(
    a: Tensor, b: Tensor, low: int, symbol: str, validity: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Both as int64, with a divisor of 1 in rows that do not count: torch raises for any zero.

    So is -1 below -2**63, which they may hold too, as the processor ends the process for it.
    """
    a, b = a.to(torch.int64), b.to(torch.int64)
    least, greatest = arithmetic.value_range(b)
    if least <= 0 <= greatest:
        zero = b == 0
        wide.raise_where(zero, _DIVISION_BY_ZERO.format(f"x {symbol} 0"), validity)
        b = b + zero
    if low < 0 and least <= -1 <= greatest:
        # The one quotient that does not fit: the smallest value has no positive counterpart.
        beyond = (b == -1) & (a == low)
        wide.raise_where(beyond, f"Overflow in division of {low} / -1", validity)
        if validity is not None and low == -(2**63):
            b = torch.where(beyond, 1, b)
    return a, b


def _resolve_division(symbol: str) -> Overload:
    narrow, broad = (
        (integer_divide, wide_divide.integer_divide) if symbol == "//" else (modulo, wide_divide.modulo)
    )

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        if all(data_type.is_float for data_type in argument_types):
            return Kernel(_float_integer_divide, checks=True) if symbol == "//" else Kernel(_float_modulo)
        if not all(data_type.is_integer or data_type.is_decimal for data_type in argument_types):
            return None
        low = argument_types[0].bounds[0] if argument_types[0].is_integer else 0

        def divide(a: Tensor, b: Tensor, *, validity: Tensor | None = None) -> Tensor:
            if wide.is_wide(a) or wide.is_wide(b):
                return narrow_if_possible(broad(wide.widen(a), wide.widen(b), validity))
            if low < -(2**63):  # HUGEINT held in 64 bits: only the smallest int64 can need more
                a_low, _ = arithmetic.value_range(a)
                if a_low == -(2**63):
                    return broad(wide.widen(a), wide.widen(b), validity)
                return narrow(a, b, 0, validity=validity)
            return narrow(a, b, low, validity=validity)

        return Kernel(divide, checks=True, accepts_wide=True, any_width=True)

    return resolve


def _float_integer_divide(a: Tensor, b: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """DuckDB's // on floats divides like /, but a zero divisor is an error."""
    wide.raise_where(b == 0, _DIVISION_BY_ZERO.format("x // 0.0"), validity)
    return a / b


def _float_modulo(a: Tensor, b: Tensor) -> Tensor:
    """The remainder of floats [n]. torch's vector instructions give NaN where the quotient is too large for them; C's do not."""
    remainder = torch.fmod(a, b)
    if has_core_caches(remainder) and bool(remainder.isnan().any()):
        with np.errstate(invalid="ignore"):
            remainder = as_tensor(np.fmod(as_array(a), as_array(b))).to(remainder.dtype)
    return remainder


def _modulo_of_decimals(a: Tensor, b: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """DuckDB's % of decimals that need more than 38 digits together: that of their float64 [n], but for a zero divisor."""
    wide.raise_where(b == 0, _DIVISION_BY_ZERO.format("x % 0"), validity)
    return _float_modulo(a, b)


# ---- abs, sign -----------------------------------------------------------------------------------------------------


def _resolve_absolute(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    (data_type,) = argument_types
    if data_type.is_float:
        return Kernel(elementwise.absolute)
    if not (data_type.is_integer or data_type.is_decimal):
        return None
    low = max(data_type.bounds[0], -(2**63))
    if data_type.is_decimal:
        low = -(2**63)
    message = f"Overflow on abs({data_type.bounds[0]}); cast the operand to a wider type"

    def absolute(values: Tensor, *, validity: Tensor | None = None) -> Tensor:
        if wide.is_wide(values):
            return wide.absolute(values, validity, message)
        values = values.to(torch.int64)
        first = arithmetic.value_range(values)[0]
        if first >= 0:
            return values
        if first <= low:
            if data_type.bounds[0] < low:  # a 128-bit type whose values happen to be narrow
                return wide.absolute(wide.from_narrow(values))
            wide.raise_where(values <= low, message, validity)
        return values.abs()

    return Kernel(absolute, checks=True, accepts_wide=True)


def _resolve_sign(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    def sign(values: Tensor) -> Tensor:
        if wide.is_wide(values):
            return wide.sign(values)
        return (values > 0).to(torch.int64) - (values < 0).to(
            torch.int64
        )  # NaN is neither: 0, as DuckDB has it

    return Kernel(sign, accepts_wide=True) if argument_types[0].is_numeric else None


def _cotangent(angles: Tensor) -> Tensor:
    return torch.tan(angles).reciprocal()


#: Functions of floats with one or two arguments; the binder casts to DOUBLE (or keeps FLOAT) as DuckDB does.
FLOAT_FUNCTIONS: dict[str, Operation | Callable[..., Tensor]] = {
    "divide": elementwise.divide,
    "sqrt": elementwise.square_root,
    "cbrt": _cube_root,
    "exp": elementwise.exponential,
    "ln": elementwise.natural_logarithm,
    "log10": elementwise.decimal_logarithm,
    "log2": elementwise.binary_logarithm,
    "log": _smooth(_log_base),
    "power": _smooth(torch.pow),
    "sin": _smooth(torch.sin),
    "cos": _smooth(torch.cos),
    "tan": _smooth(torch.tan),
    "asin": _smooth(_arc_sine),
    "acos": _smooth(_arc_cosine),
    "atan": _smooth(torch.atan),
    "atan2": _smooth(torch.atan2),
    "sinh": _smooth(_hyperbolic_sine),
    "cosh": _smooth(_hyperbolic_cosine),
    "tanh": _smooth(torch.tanh),
    "asinh": _smooth(torch.asinh),
    "acosh": _smooth(torch.acosh),
    "atanh": _smooth(torch.atanh),
    "even": _even,
    "cot": _smooth(_cotangent),
    "gamma": gamma,
    "lgamma": log_gamma,
    "nextafter": torch.nextafter,
    "signbit": torch.signbit,
    "degrees": _smooth(_degrees),
    "radians": _smooth(_radians),
    "is_nan": torch.isnan,
    "is_inf": torch.isinf,
    "is_finite": torch.isfinite,
}

MATH_KERNELS: dict[str, Overload] = {
    **{name: _on_floats(function) for name, function in FLOAT_FUNCTIONS.items()},
    "integer_divide": _resolve_division("//"),
    "modulo": _resolve_division("%"),
    "modulo_of_decimals": lambda *_: Kernel(_modulo_of_decimals, checks=True),
    "abs": _resolve_absolute,
    "sign": _resolve_sign,
    "floor": resolve_whole(torch.floor, "floor"),
    "ceil": resolve_whole(torch.ceil, "ceil"),
    "round": resolve_round("away"),
    "round_even": resolve_round("even"),
    "trunc": resolve_round("trunc"),
}
