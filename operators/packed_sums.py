"""Sums by group of several integer columns at once: small ones share the bits of one int64 accumulator.

A scatter costs as much for a sum of 20 bits as for one of 60. So columns whose sums over `capacity` rows need few bits
are packed into one: a row's summand is a + (b << bits of the sum of a) + ..., and the sums are taken apart when so many
rows have been added, or at the end.

Few groups have several accumulators each, their stripes, of which the rows take turns: adding to what was just written
waits for it, and a stripe's sums need fewer bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tqp.operators import allocation

#: The least and the greatest summand.
Range = tuple[int, int]

_ACCUMULATOR_BITS = 63
#: Accumulators of all groups that are nowhere but in the first cache, and stripes that are enough.
_MANY_ACCUMULATORS, _MOST_STRIPES = 1024, 64
#: Taking sums apart after this many rows leaves more of the bits for packing ...
_FEW_ROWS = 262_144
# ... and costs little against adding the rows while there are at most so many groups.
_FEW_GROUPS = 16_384


class Part(NamedTuple):
    """One sum within an accumulator."""

    column: int
    bits: int
    signed: bool


@lru_cache(maxsize=256)
def arrange(ranges: tuple[Range, ...], capacity: int) -> tuple[tuple[Part, ...], ...]:
    """Which columns share an accumulator, the part in the highest bits first.

    `ranges`: of the summands, each column's sum over `capacity` rows fitting 64 bits by itself.
    """
    parts = []
    for column, (low, high) in enumerate(ranges):
        signed = low < 0
        bits = max(high, -low - 1 if signed else 0, 0) * capacity + signed * capacity
        parts.append(Part(column, max(1, bits.bit_length() + signed), signed))
    parts.sort(key=lambda part: -part.bits)
    packs: list[list[Part]] = []
    for part in parts:
        for pack in packs:
            if sum(other.bits for other in pack) + part.bits <= _ACCUMULATOR_BITS:
                pack.append(part)
                break
        else:
            packs.append([part])
    return tuple(tuple(pack) for pack in packs)


class PackedSums:
    """Accumulators of integer sums by group.

    `ranges` of the columns' summands; a column given as None to `add` counts rows and has the range (0, 1).
    `max_rows`: that will ever be added.
    """

    __slots__ = (
        "_accumulators", "_capacity", "_device", "_num_groups", "_packs", "_rows", "_stripes", "_totals",
    )  # fmt: skip

    def __init__(self, ranges: Sequence[Range], num_groups: int, max_rows: int, device: torch.device) -> None:
        few = num_groups <= _FEW_GROUPS and device.type == "cpu"
        capacity = min(max_rows, _FEW_ROWS) if few else max_rows
        self._stripes = _stripes(num_groups, capacity) if few else 1
        rows = max(1, -(-capacity // self._stripes))  # that one stripe can take
        self._packs = arrange(tuple(ranges), rows)
        self._capacity = rows * self._stripes
        self._num_groups, self._device = num_groups, device
        self._accumulators: list[
            Tensor
        ] = []  # [groups * stripes], one for each pack; none before rows are added
        self._totals: list[Tensor] | None = None  # of each column, what has been taken apart
        self._rows = 0  # that the accumulators hold

    def add(self, columns: Sequence[Tensor | None], group_ids: Tensor) -> None:
        """Add a batch: integers or booleans [n] of each column, integers [n] as group ids."""
        num_rows = group_ids.shape[0]
        for start in range(0, num_rows, self._capacity):
            stop = min(num_rows, start + self._capacity)
            rows = (
                -(-(stop - start) // self._stripes) * self._stripes
            )  # as many in each stripe as in the first
            if self._rows + rows > self._capacity:
                self._take_apart()
            if not self._accumulators:
                self._accumulators = [self._zeros(self._stripes) for _ in self._packs]
            self._rows += rows
            ids = group_ids[start:stop]
            if len(columns) == 1 and columns[0] is None and self._num_groups <= stop - start and ids.is_cpu:
                counts = torch.bincount(ids, minlength=self._num_groups)  # of any width
                self._accumulators[0].view(-1, self._stripes)[:, 0].add_(counts)
                continue
            ids = self._places(ids)
            for pack, accumulator in zip(self._packs, self._accumulators, strict=True):
                accumulator.scatter_add_(0, ids, _packed(pack, columns, start, stop, self._device))

    def _places(self, group_ids: Tensor) -> Tensor:
        """int64 [n]: the accumulators of consecutive rows."""
        if self._stripes == 1:
            return group_ids.to(torch.int64)
        turns = _turns(self._stripes, self._capacity)
        places = (group_ids.to(turns.dtype) * self._stripes).add_(turns[: group_ids.shape[0]])
        return places.to(torch.int64)

    def add_sums(self, sums: Sequence[Tensor], group_ids: Tensor) -> None:
        """Add sums of some rows: int64 [m] of each column, the groups that they are of int64 [m]."""
        self._totals = _sums(
            self._totals, [self._zeros().scatter_add_(0, group_ids, column) for column in sums]
        )

    def merge(self, other: PackedSums) -> None:
        """Add what another one of the same columns and groups holds."""
        if self._rows + other._rows > self._capacity:
            self._take_apart()
            other._take_apart()
        self._rows += other._rows
        if self._accumulators and other._accumulators:
            for mine, theirs in zip(self._accumulators, other._accumulators, strict=True):
                _add(mine, theirs)
        else:
            self._accumulators = self._accumulators or other._accumulators
        if other._totals is not None:
            self._totals = _sums(self._totals, other._totals)

    def totals(self) -> list[Tensor]:
        """The sums of each column, int64 [num_groups]. Ends the life of the accumulators."""
        self._take_apart()
        if self._totals is None:
            self._totals = [self._zeros() for pack in self._packs for _ in pack]
        return self._totals

    def _take_apart(self) -> None:
        if not self._accumulators:
            return
        columns: list[Tensor] = [torch.empty(0)] * sum(len(pack) for pack in self._packs)
        for pack, accumulator in zip(self._packs, self._accumulators, strict=True):
            rest = accumulator
            for part in reversed(pack[1:]):
                value = rest & ((1 << part.bits) - 1)
                if part.signed:
                    value -= (value >> (part.bits - 1)) << part.bits
                    rest = rest - value
                columns[part.column] = self._of_groups(value)
                rest = rest >> part.bits
            columns[pack[0].column] = self._of_groups(rest)
        self._totals = _sums(self._totals, columns)
        self._accumulators, self._rows = [], 0

    def _of_groups(self, sums: Tensor) -> Tensor:
        """The sums of all stripes: int64 [groups]."""
        return sums if self._stripes == 1 else sums.view(-1, self._stripes).sum(1)

    def _zeros(self, stripes: int = 1) -> Tensor:
        return allocation.zeros(self._num_groups * stripes, torch.int64, self._device)


def _stripes(num_groups: int, num_rows: int) -> int:
    """How many accumulators each group has: a power of two; one where few rows would have to fill them."""
    stripes = 1
    while (
        stripes < _MOST_STRIPES
        and 2 * stripes * num_groups <= _MANY_ACCUMULATORS
        and 64 * stripes * num_groups <= num_rows
    ):
        stripes *= 2
    return stripes


@lru_cache(maxsize=16)
def _turns(stripes: int, num_rows: int) -> Tensor:
    """[n]: the stripe of each row, in a dtype that holds the number of any accumulator."""
    return torch.arange(num_rows).remainder_(stripes).to(torch.int16)


def _packed(
    pack: tuple[Part, ...], columns: Sequence[Tensor | None], start: int, stop: int, device: torch.device
) -> Tensor:
    """int64 [stop - start]: the columns of a pack as one summand."""
    first = columns[pack[0].column]
    if first is None:
        result = torch.ones(stop - start, dtype=torch.int64, device=device)
    else:
        result = first[start:stop].to(torch.int64)
        if len(pack) > 1 and first.dtype is torch.int64:
            result = result.clone()  # the column itself stays as it is
    for part in pack[1:]:
        column = columns[part.column]
        _shift_and_add(result, part.bits, 1 if column is None else column[start:stop].to(torch.int64))
    return result


def _sums(before: list[Tensor] | None, columns: list[Tensor]) -> list[Tensor]:
    if before is not None:
        for total, column in zip(before, columns, strict=True):
            _add(total, column)
        return before
    return columns


def _add(out: Tensor, values: Tensor) -> None:
    """out += values, both int64 and contiguous. numpy adds in a quarter of the time that torch takes."""
    _shift_and_add(out, 0, values)


def _shift_and_add(out: Tensor, bits: int, values: Tensor | int) -> None:
    """out = (out << bits) + values, in place."""
    if not out.is_cpu:
        out.bitwise_left_shift_(bits).add_(values)
        return
    array = out.numpy()
    if bits:
        np.left_shift(array, bits, out=array)
    np.add(array, values.numpy() if isinstance(values, Tensor) else values, out=array)
