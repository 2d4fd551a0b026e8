"""The precision and scale of decimals that hold, add or multiply values of several types."""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.datatypes import MAX_DECIMAL_PRECISION, DataType, decimal

#: Decimals up to this many digits fit 64 bits; products of such stay there rather than widen (and are checked).
_MAX_PRECISION_64 = 18


def decimal_for(data_type: DataType) -> DataType:
    """The decimal that holds every value of an integer type; decimals as they are."""
    if data_type.is_decimal:
        return data_type
    digits = len(str(data_type.bounds[1])) if data_type.is_whole else 1
    return decimal(min(digits, MAX_DECIMAL_PRECISION), 0)


def common_decimal(types: Sequence[DataType]) -> DataType:
    """The decimal with room for the integer digits and the scale of each of `types` (integers, decimals).

    Where these are more than 38, the scale gives way: values are rounded rather than refused.
    """
    digits, scale = _digits_and_scale(types)
    scale = min(scale, MAX_DECIMAL_PRECISION - digits)
    return decimal(digits + scale, scale)


def exact_decimal(types: Sequence[DataType]) -> DataType:
    """Like `common_decimal`, but where the digits are more than 38 the scale stays: for + and - and comparisons."""
    digits, scale = _digits_and_scale(types)
    return decimal(min(digits + scale, MAX_DECIMAL_PRECISION), scale)


def _digits_and_scale(types: Sequence[DataType]) -> tuple[int, int]:
    """The most digits before and after the point."""
    decimals = [decimal_for(data_type) for data_type in types]
    return max(each.precision - each.scale for each in decimals), max(each.scale for each in decimals)


def sum_of_decimals(types: Sequence[DataType]) -> tuple[DataType, DataType]:
    """(operand type, result type) of + and -: one more digit."""
    operand = exact_decimal(types)
    widest = max(decimal_for(each).precision for each in types)
    precision = min(max(operand.precision, widest) + 1, MAX_DECIMAL_PRECISION)
    result = decimal(precision, operand.scale)
    return operand, result


def product_of_decimals(left: DataType, right: DataType) -> DataType | None:
    """The type of a product; None where the scales alone exceed 38 digits."""
    left, right = decimal_for(left), decimal_for(right)
    scale = left.scale + right.scale
    if scale > MAX_DECIMAL_PRECISION:
        return None
    precision = left.precision + right.precision
    widest = max(left.precision, right.precision)
    if precision > _MAX_PRECISION_64 and widest <= _MAX_PRECISION_64 and scale < _MAX_PRECISION_64:
        precision = _MAX_PRECISION_64
    return decimal(min(precision, MAX_DECIMAL_PRECISION), scale)
