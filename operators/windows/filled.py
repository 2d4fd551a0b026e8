"""fill(): NULLs on the line through the two nearest values of the partition, by the key of ORDER BY.

Between values the two are those before and behind; before the first and behind the last value, the two that are nearest. One value
alone stands for all. Infinite values and keys, and keys that are NULL, are of no line.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.time_limits import INFINITE_DAY, INFINITE_TICK, MICROSECONDS_PER_DAY
from tqp.operators.numbers import wide
from tqp.operators.numbers.float_pairs import multiply_add
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.temporal.dates import finite_validity
from tqp.operators.windows.frames import Range
from tqp.operators.windows.partitions import Partitions
from tqp.operators.windows.values import ValidRows

_TWO_TO_63, _TWO_TO_64 = 2.0**63, 2.0**64


class Line:
    """Pairs of values [m] and, of a row on the line through each, how far it is from the first to the second: float64 [m]."""

    def __init__(self, first: Tensor, second: Tensor, share: Tensor, is_between: Tensor) -> None:
        self.first, self.second, self.share, self.is_between = first, second, share, is_between

    def values(self, data_type: DataType) -> tuple[Tensor, Tensor]:
        """(values, fits): of the type, like `first`, and bool [m], false where the type does not have the value."""
        if data_type.is_float:
            first, second = self.first.double(), self.second.double()
            made = multiply_add(first, 1.0 - self.share, second * self.share)
            return made.to(self.first.dtype), torch.ones_like(self.is_between)
        if not wide.is_wide(self.first):
            return self._narrow(data_type)
        return self._unsigned(data_type) if data_type.kind is TypeKind.UBIGINT else self._wide(data_type)

    # Between values the product is cut, as C casts it; beyond them the way from the lower value is rounded.

    def _narrow(self, data_type: DataType) -> tuple[Tensor, Tensor]:
        first, second = self.first.double(), self.second.double()
        between = multiply_add(second - first, self.share, first)
        cut = torch.where(between < _TWO_TO_63, between, -_TWO_TO_63).to(torch.int64)
        way = self._way_from_lower(first, second)
        low, high = _way_bounds(data_type)
        fits = (way >= low) & (way <= high) & (way < _TWO_TO_63)
        steps = torch.where(fits, way, 0.0).to(torch.int64)
        lower = torch.minimum(self.first, self.second).to(torch.int64)
        beyond = lower + steps
        low, high = _bounds(data_type)
        fits &= (((lower ^ beyond) & (steps ^ beyond)) >= 0) & (beyond >= low) & (beyond <= high)
        return torch.where(self.is_between, cut, beyond), self.is_between | fits

    def _unsigned(self, data_type: DataType) -> tuple[Tensor, Tensor]:
        first, second = wide.to_float64(self.first), wide.to_float64(self.second)
        between = multiply_add(second - first, self.share, first).trunc()
        cut = wide.from_float64(torch.where(between < _TWO_TO_64, between, _TWO_TO_63))
        way = self._way_from_lower(first, second)
        fits = way.abs() <= _TWO_TO_64
        is_swapped = wide.less(self.second, self.first).unsqueeze(1)
        lower = torch.where(is_swapped, self.second, self.first)
        beyond = wide.add(lower, wide.from_float64(torch.where(fits, way, 0.0)))
        fits &= ~wide.outside_bounds(beyond, *data_type.bounds)
        return torch.where(self.is_between.unsqueeze(1), cut, beyond), self.is_between | fits

    def _wide(self, data_type: DataType) -> tuple[Tensor, Tensor]:
        first, second = wide.to_float64(self.first), wide.to_float64(self.second)
        there = multiply_add(first, 1.0 - self.share, second * self.share).trunc()
        fits = there.abs() < 2.0**127
        beyond = wide.from_float64(torch.where(fits, there, 0.0))
        fits &= ~wide.outside_bounds(beyond, *data_type.bounds)
        # The difference has 128 bits, or is not taken.
        is_near = self.is_between & (((second - first).abs() < 2.0**127) | ((first < 0) == (second < 0)))
        start, stop = (torch.where(is_near.unsqueeze(1), each, 0) for each in (self.first, self.second))
        way = wide.to_float64(wide.subtract(stop, start)) * self.share
        near = wide.add(start, wide.from_float64(way.trunc()))
        return torch.where(is_near.unsqueeze(1), near, beyond), is_near | fits

    def _way_from_lower(self, first: Tensor, second: Tensor) -> Tensor:
        share = torch.where(first > second, 1.0 - self.share, self.share)
        return torch.round((second - first).abs() * share)


def filled(
    rows: Partitions,
    values: Tensor,
    validity: Tensor | None,
    data_type: DataType,
    keys: Tensor,
    keys_validity: Tensor | None,
    key_type: DataType,
) -> tuple[Tensor, Tensor | None]:
    """The values with NULLs replaced, and their validity. Both come in storage of their types, int64, or [n, 2] for 128 bits."""
    if validity is None:
        return values, None
    has_place = _finite(keys, keys_validity, key_type)
    lacking = row_indices(has_place & ~validity)
    known = ValidRows(has_place & _finite(values, validity, data_type))
    whole = Range(take(rows.begins, lacking), take(rows.ends, lacking))
    number = known.before(lacking)
    second_before, before, behind, second_behind = (known.at(number + away, whole) for away in (-2, -1, 0, 1))
    is_between = (before >= 0) & (behind >= 0)
    first = torch.where(is_between | (second_before < 0), before, second_before)
    second = torch.where(is_between, behind, before)
    is_ahead = before < 0
    first = torch.where(is_ahead, behind, first)
    second = torch.where(is_ahead, torch.where(second_behind < 0, behind, second_behind), second)
    found = row_indices(first >= 0)
    if not found.shape[0]:
        return values, validity
    lacking, first, second, is_between = (take(each, found) for each in (lacking, first, second, is_between))
    places = wide.to_float64(keys) if wide.is_wide(keys) else keys.double()
    here, start, stop = (take(places, each) for each in (lacking, first, second))
    share = torch.where(stop == start, 0.0, (here - start) / (stop - start))
    line = Line(take(values, first), take(values, second), share, is_between)
    made, fits = line.values(data_type)
    values, validity = values.clone(), validity.clone()
    values[lacking] = made.to(values.dtype)
    validity[lacking] = fits
    return values, validity


def _finite(values: Tensor, validity: Tensor | None, data_type: DataType) -> Tensor:
    """bool [n]: where there is a value that is finite."""
    finite: Tensor | None = None
    if data_type.is_float:
        finite = torch.isfinite(values)
    elif data_type.is_timestamp or data_type.kind is TypeKind.DATE:
        finite = finite_validity(values, data_type)
    if finite is None:
        return (
            torch.ones(values.shape[0], dtype=torch.bool, device=values.device)
            if validity is None
            else validity
        )
    return finite if validity is None else finite & validity


def _bounds(data_type: DataType) -> tuple[int, int]:
    if data_type.kind is TypeKind.DATE:
        return 1 - INFINITE_DAY, INFINITE_DAY - 1
    if data_type.is_timestamp:
        return 1 - INFINITE_TICK, INFINITE_TICK - 1
    return (0, MICROSECONDS_PER_DAY) if data_type.kind is TypeKind.TIME else data_type.bounds


def _way_bounds(data_type: DataType) -> tuple[int, int]:
    """What a difference of two values may be: what the storage of the type holds, if that has a sign."""
    low, high = data_type.bounds
    if data_type.is_decimal:
        bits = next(bits for bits in (16, 32, 64) if high < 2 ** (bits - 1))
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    if data_type.kind is TypeKind.DATE:
        return -(2**31), 2**31 - 1
    return (low, high) if low < 0 else (-(2**63), 2**63 - 1)
