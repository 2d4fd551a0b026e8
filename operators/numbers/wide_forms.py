"""Which types are held in 128 bits, and how a kernel comes to return the form that its result type has.

Arguments arrive in either form, since value ranges may have kept a HUGEINT narrow. Results must not depend on data:
a kernel returns int64 [n, 2] if the type's bounds exceed 64 bits, and [n] otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.operators.kernel import Kernel, NullRule
from tqp.operators.numbers import wide
from tqp.operators.numbers.logic import any_true


def exceeds_64_bits(data_type: DataType) -> bool:
    """Whether some value of an integer-like type needs 128 bits: HUGEINT, UBIGINT, decimals beyond 18 digits."""
    low, high = data_type.bounds
    return data_type.is_integer_like and (low < -(2**63) or high >= 2**63)


def narrow_if_possible(values: Tensor) -> Tensor:
    """Wide values as int64 [n] if all fit, else as they are: for results whose form is fixed afterwards."""
    if not wide.is_wide(values) or any_true(~wide.fits_narrow(values)):
        return values
    return values[:, 1].contiguous()


def fix_form(kernel: Kernel, result_type: DataType) -> Kernel:
    """The kernel, made to return values in the form of its result type."""
    is_wide = exceeds_64_bits(result_type)
    if not is_wide and not (kernel.accepts_wide and result_type.is_integer_like):
        return kernel
    convert = wide.widen if is_wide else _low_half
    return replace(
        kernel,
        function=_converted(
            kernel.function, convert, kernel.returns_validity or kernel.nulls is NullRule.CUSTOM
        ),
    )


def _converted(
    function: Callable[..., Any], convert: Callable[[Tensor], Tensor], is_pair: bool
) -> Callable[..., Any]:
    @functools.wraps(function)
    def converted(*arguments: Any, **keywords: Any) -> Any:
        result = function(*arguments, **keywords)
        return (convert(result[0]), result[1]) if is_pair else convert(result)

    return converted


def _low_half(values: Tensor) -> Tensor:
    """Narrow form of values that fit where they count: rows under NULL may hold anything."""
    return values[:, 1].contiguous() if wide.is_wide(values) else values
