"""Bits, shifts, greatest common divisors, and the largest or smallest of several values."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.operators import wide
from tqp.operators.casts import INTERNAL_NAMES
from tqp.operators.kernel import Kernel, NullRule, Overload
from tqp.operators.wide_forms import narrow_if_possible

Pair = tuple[Tensor, Tensor | None]

_BITS: dict[TypeKind, int] = {
    kind: int(name.lstrip("UINT")) for kind, name in INTERNAL_NAMES.items() if "INT" in name
}


def _resolve_bitwise(function: Callable[[Tensor, Tensor], Tensor]) -> Overload:
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        if not all(data_type.is_integer for data_type in argument_types):
            return None

        def bitwise(a: Tensor, b: Tensor) -> Tensor:
            if wide.is_wide(a) or wide.is_wide(b):
                return narrow_if_possible(function(wide.widen(a), wide.widen(b)))
            return function(a.to(torch.int64), b.to(torch.int64))

        return Kernel(bitwise, accepts_wide=True)

    return resolve


def _resolve_not(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    (data_type,) = argument_types
    if not data_type.is_integer:
        return None
    low, high = data_type.bounds
    if data_type.kind is TypeKind.UBIGINT:
        # The complement of a value below 2**63 needs the unsigned half.
        return Kernel(
            lambda values: narrow_if_possible(wide.from_unsigned(~wide.widen(values)[:, 1])),
            accepts_wide=True,
        )
    if low == 0:
        return Kernel(lambda values: high - values.to(torch.int64))
    return Kernel(
        lambda values: ~values if wide.is_wide(values) else ~values.to(torch.int64), accepts_wide=True
    )


def _resolve_shift_left(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    data_type = argument_types[0]
    if not data_type.is_integer or data_type.bounds[1] >= 2**63:
        return None
    bits = _BITS[data_type.kind]
    value_bits = bits - (data_type.bounds[0] < 0)
    name = INTERNAL_NAMES[data_type.kind]

    def shift_left(values: Tensor, shift: Tensor, *, validity: Tensor | None = None) -> Tensor:
        values, shift = values.to(torch.int64), shift.to(torch.int64)
        wide.raise_where(values < 0, "Cannot left-shift a negative number", validity)
        wide.raise_where(shift < 0, "Cannot left-shift by a negative number", validity)
        capped = shift.clamp(0, value_bits)
        message = f"Overflow in left shift of {name}; cast the operand to a wider type"
        wide.raise_where((values >> (value_bits - capped)) != 0, message, validity)
        return values << capped.clamp(max=62)

    return Kernel(shift_left, checks=True)


def _resolve_shift_right(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    data_type = argument_types[0]
    if not data_type.is_integer or data_type.bounds[1] >= 2**63:
        return None
    bits = _BITS[data_type.kind]

    def shift_right(values: Tensor, shift: Tensor) -> Tensor:
        values, shift = values.to(torch.int64), shift.to(torch.int64)
        possible = (shift >= 0) & (shift < bits)  # any other shift gives 0, also of a negative value
        return (values >> (shift * possible)) * possible

    return Kernel(shift_right)


def greatest_common_divisor(a: Tensor, b: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """int64 [n], never negative; raises ExecutionError if that is 2**63."""
    result = torch.gcd(a.to(torch.int64), b.to(torch.int64))
    wide.raise_where(result < 0, "gcd value is out of range", validity)
    return result


def least_common_multiple(a: Tensor, b: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """int64 [n], never negative; 0 if an operand is; raises ExecutionError beyond 64 bits."""
    a, b = a.to(torch.int64), b.to(torch.int64)
    divisor = torch.gcd(a, b)
    divisor = divisor + (divisor == 0)
    product = wide.multiply_narrow(torch.div(a, divisor, rounding_mode="trunc"), b)
    product = wide.magnitude(product)
    return wide.to_narrow(product, "lcm value is out of range", validity)


def _resolve_gcd(function: Callable[..., Tensor]) -> Overload:
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        if not all(data_type.is_integer for data_type in argument_types):
            return None
        return Kernel(function, checks=True)

    return resolve


# ---- greatest, least -----------------------------------------------------------------------------------------------


def _resolve_extreme(is_greatest: bool) -> Overload:
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        first = argument_types[0]
        if first.is_integer_like or first.is_float or first.kind is TypeKind.BOOLEAN:
            return Kernel(
                lambda *pairs: _extreme(pairs, is_greatest), nulls=NullRule.CUSTOM, accepts_wide=True
            )
        return None

    return resolve


def _extreme(pairs: tuple[Pair, ...], is_greatest: bool) -> Pair:
    """The greatest (least) value per row that is not NULL; NULL if all are. NaN is greater than all else."""
    pick = _greater_of if is_greatest else _lesser_of
    any_wide = any(wide.is_wide(values) for values, _ in pairs)
    result, validity = pairs[0]
    result = _storage(result, any_wide)
    for values, other_validity in pairs[1:]:
        values = _storage(values, any_wide)
        picked = pick(result, values)
        if validity is not None:
            picked = torch.where(_column(validity, picked), picked, values)
        if other_validity is not None:
            picked = torch.where(_column(other_validity, picked), picked, result)
        if validity is not None and other_validity is not None:
            # Both NULL: anything is right.
            validity = validity | other_validity
        else:
            validity = None
        result = picked
    return result, validity


def _storage(values: Tensor, any_wide: bool) -> Tensor:
    if values.dtype == torch.bool or values.dtype.is_floating_point:
        return values
    return wide.widen(values) if any_wide else values.to(torch.int64)


def _column(condition: Tensor, like: Tensor) -> Tensor:
    return condition.unsqueeze(-1) if like.dim() > condition.dim() else condition


def _greater_of(a: Tensor, b: Tensor) -> Tensor:
    if wide.is_wide(a):
        return torch.where(wide.less(a, b).unsqueeze(1), b, a)
    return torch.maximum(a, b)


def _lesser_of(a: Tensor, b: Tensor) -> Tensor:
    if wide.is_wide(a):
        return torch.where(wide.less(b, a).unsqueeze(1), b, a)
    return torch.fmin(a, b) if a.dtype.is_floating_point else torch.minimum(a, b)


INTEGER_KERNELS: dict[str, Overload] = {
    "bit_and": _resolve_bitwise(torch.bitwise_and),
    "bit_or": _resolve_bitwise(torch.bitwise_or),
    "bit_xor": _resolve_bitwise(torch.bitwise_xor),
    "bit_not": _resolve_not,
    "shift_left": _resolve_shift_left,
    "shift_right": _resolve_shift_right,
    "gcd": _resolve_gcd(greatest_common_divisor),
    "lcm": _resolve_gcd(least_common_multiple),
    "greatest": _resolve_extreme(is_greatest=True),
    "least": _resolve_extreme(is_greatest=False),
}
