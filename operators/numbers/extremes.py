"""greatest and least of several columns: NULLs are ignored, and the order is that of comparisons of each type."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.zoned_times import clock_of_stored, offset_of_stored
from tqp.operators import gradients
from tqp.operators.kernel import Kernel, NullRule, Overload
from tqp.operators.numbers import logic, wide
from tqp.operators.numbers.comparisons import float_less
from tqp.operators.operation import Operation
from tqp.operators.strings import compare as string_compare
from tqp.operators.strings import layout as string_layout

#: Values (a tensor or `Strings`) and their validity.
Pair = tuple[Any, Tensor | None]
Less = Callable[[Any, Any], Tensor]


def _resolve(is_greatest: bool) -> Overload:
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        less = _less(result_type)
        if less is None:
            return None

        def extreme(*pairs: Pair) -> Pair:
            if not result_type.is_string:
                pairs = _of_one_form(pairs)
            result = pairs[0]
            for pair in pairs[1:]:
                result = _better(result, pair, less, is_greatest)
            return result

        gradient = functools.partial(gradients.extreme, is_greatest=is_greatest)
        operation = Operation("extreme", extreme, gradient=gradient)
        return Kernel(operation, nulls=NullRule.CUSTOM, accepts_wide=True)

    return resolve


def _less(data_type: DataType) -> Less | None:
    """`a < b` of a type, as comparisons order it: bool [n]."""
    if data_type.is_string:
        return string_compare.less
    if data_type.is_float:
        return float_less  # NaN is greater than every number
    if data_type.kind is TypeKind.INTERVAL:
        return _interval_fields_less
    if data_type.kind is TypeKind.TIME_TZ:
        return _clock_less
    if data_type.is_integer_like:
        return lambda a, b: wide.less(a, b) if wide.is_wide(a) else a < b
    return torch.lt if data_type.kind is TypeKind.BOOLEAN else None


def _interval_fields_less(a: Tensor, b: Tensor) -> Tensor:
    """Months, then days, then microseconds as they stand: here DuckDB does not equate 30 days with a month."""
    result = a[..., 2] < b[..., 2]
    for field in (1, 0):
        result = (a[..., field] < b[..., field]) | ((a[..., field] == b[..., field]) & result)
    return result


def _clock_less(a: Tensor, b: Tensor) -> Tensor:
    """Here DuckDB compares what clocks show, then the zones from east to west."""
    clocks, offsets = zip(*((clock_of_stored(each), offset_of_stored(each)) for each in (a, b)), strict=True)
    less: Tensor = (clocks[0] < clocks[1]) | ((clocks[0] == clocks[1]) & (offsets[0] > offsets[1]))
    return less


def _better(result: Pair, other: Pair, less: Less, is_greatest: bool) -> Pair:
    """Row by row the greater (lesser) of two that are not NULL, or the one that is not; the first where they tie."""
    (values, validity), (candidates, other_validity) = result, other
    is_better = less(values, candidates) if is_greatest else less(candidates, values)
    if validity is not None:
        is_better = is_better >= validity  # or there is nothing yet
    if other_validity is not None:
        is_better = is_better & other_validity
    choose = logic.choose if isinstance(values, Tensor) else string_layout.choose
    chosen = choose([is_better], [candidates], values)
    if validity is None or other_validity is None:
        return chosen, None
    return chosen, validity | other_validity


def _of_one_form(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Integers of several widths as int64, or all wide if one is; other types as they are."""
    if (
        pairs[0][0].dtype == torch.bool
        or pairs[0][0].dtype.is_floating_point
        or pairs[0][0].shape[1:] == (3,)
    ):
        return pairs
    any_wide = any(wide.is_wide(values) for values, _ in pairs)
    return tuple((wide.widen(v) if any_wide else v.to(torch.int64), validity) for v, validity in pairs)


EXTREME_KERNELS: dict[str, Overload] = {
    "greatest": _resolve(is_greatest=True),
    "least": _resolve(is_greatest=False),
}
