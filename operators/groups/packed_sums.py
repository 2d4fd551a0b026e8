"""Sums by group of several integer columns at once: small ones share the bits of one accumulator, of 64 bits or of 32.

A scatter costs as much for a sum of 20 bits as for one of 60. So columns whose sums over `capacity` rows need few bits
are packed into one: a row's summand is a + (b << bits of the sum of a) + ..., and the sums are taken apart when so many
rows have been added, or at the end.

Accumulators of 32 bits where sums need no more: rows of random groups are added in the time that it takes to bring their
accumulators from the last cache or from memory, and more of these are in the caches.

Few groups have several accumulators each, their stripes, of which the rows take turns: adding to what was just written
waits for it, and a stripe's sums need fewer bits. Rows that do not count are added to accumulators that nobody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.data.backend import is_host_device
from tqp.operators.memory import allocation
from tqp.operators.memory.arrays import Array, Values, as_array, as_tensor, converted
from tqp.operators.rows.selection import take

#: The least and the greatest summand.
Range = tuple[int, int]

#: Bits of an accumulator without its sign.
_WIDE_BITS, _NARROW_BITS = 63, 31
#: Accumulators of all groups that are nowhere but in the first cache, and stripes that are enough.
_MANY_ACCUMULATORS, _MOST_STRIPES = 1024, 128
#: Rows for each group from which on torch counts a batch by itself faster than rows are added to accumulators.
_ROWS_COUNTED = 4
#: Rows that are added at once, in as much memory. Taking sums apart after so many, or so many for each stripe, leaves more
#: of the bits for packing ...
_FEW_ROWS, _FEW_ROWS_OF_STRIPE = 524_288, 4096
# ... and costs little against adding the rows while there are at most so many groups.
_FEW_GROUPS = 16_384
#: Numbers of rows for which memory is kept: a batch is cut into pieces of two.
_ROOMS = 2


class Part(NamedTuple):
    """One sum within an accumulator."""

    column: int
    bits: int
    signed: bool


def arrange(
    ranges: tuple[Range, ...], capacity: int, accumulator_bits: int = _WIDE_BITS
) -> tuple[tuple[Part, ...], ...]:
    """Which columns share an accumulator, the part in the highest bits first; accumulators in the order of their columns.

    What needs few bits is above what needs many: counts of rows, so that what they are added to need not be shifted.

    `ranges`: of the summands, each column's sum over `capacity` rows fitting 64 bits by itself. Accumulators have more than
    `accumulator_bits` only where a column needs them.
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
            if sum(other.bits for other in pack) + part.bits <= accumulator_bits:
                pack.append(part)
                break
        else:
            packs.append([part])
    packs.sort(key=lambda pack: min(part.column for part in pack))
    return tuple(tuple(reversed(pack)) for pack in packs)


class _Layout:
    """Where in the accumulators the sum of each column is: what takes all of them apart in a few steps, int64 [columns, 1] each.

    With `on_host` these are arrays.
    """

    def __init__(self, packs: Sequence[Sequence[Part]], device: torch.device, on_host: bool) -> None:
        columns = sum(len(pack) for pack in packs)
        which, shifts, masks, halves, biases = ([0] * columns for _ in range(5))
        for number, pack in enumerate(packs):
            bias = shift = 0
            for part in reversed(pack):
                column, highest = part.column, part is pack[0]
                which[column], shifts[column] = number, shift
                masks[column] = -1 if highest else (1 << part.bits) - 1
                # with half of its range added, a sum below zero takes nothing from the part above
                halves[column] = 0 if highest or not part.signed else 1 << (part.bits - 1)
                bias += halves[column] << shift
                shift += part.bits
            for part in pack:
                biases[part.column] = bias
        constants: Any = [torch.tensor(which)]
        constants += [torch.tensor(values).unsqueeze(1) for values in (shifts, masks, halves, biases)]
        constants = as_array(constants) if on_host else [each.to(device) for each in constants]
        self._which, self._shifts, self._masks, self._halves, self._biases = constants
        self.num_columns, self._signed, self._apart = columns, any(halves), columns == len(packs)

    def sums(self, accumulators: Values) -> Values:
        """int64 [columns, n]: the sums of each column in accumulators [packs, n], these themselves if each has one."""
        if self._apart:
            return accumulators
        sums: Values = take(accumulators, self._which)
        if self._signed:
            sums += self._biases
        sums >>= self._shifts
        sums &= self._masks
        if self._signed:
            sums -= self._halves
        return sums


class _Room:
    """Memory for what is added of a batch on the CPU, as arrays to write to and as tensors to read: not made for each anew."""

    __slots__ = ("place_tensor", "places", "summand_tensor", "summands")

    def __init__(self, num_rows: int, dtype: torch.dtype) -> None:
        self.place_tensor = torch.empty(num_rows, dtype=torch.int64)
        self.summand_tensor = torch.empty(num_rows, dtype=dtype)
        self.places, self.summands = self.place_tensor.numpy(), self.summand_tensor.numpy()


class PackedSums:
    """Accumulators of integer sums by group.

    `ranges` of the columns' summands; a column given as None to `add` counts rows and has the range (0, 1).
    `max_rows`: that will ever be added. `has_kept`: some of them do not count, as `kept` says.
    """

    __slots__ = (
        "_accumulators", "_at_once", "_capacity", "_device", "_dtype", "_has_kept", "_layout", "_num_groups",
        "_on_host", "_packs", "_rooms", "_rows", "_stripes", "_table", "_totals",
    )  # fmt: skip

    def __init__(
        self,
        ranges: Sequence[Range],
        num_groups: int,
        max_rows: int,
        device: torch.device,
        has_kept: bool = False,
    ) -> None:
        self._has_kept, self._device, self._on_host = has_kept, device, is_host_device(device)
        self._num_groups = num_groups + has_kept  # the first one is of the rows that do not count
        few = num_groups <= _FEW_GROUPS and self._on_host
        self._stripes = _stripes(self._num_groups, min(max_rows, _FEW_ROWS)) if few else 1
        most_rows = max(_FEW_ROWS, _FEW_ROWS_OF_STRIPE * self._stripes) if few else max_rows
        rows = max(1, -(-min(max_rows, most_rows) // self._stripes))  # that one stripe can take
        self._dtype, self._packs, self._layout = _arranged(tuple(ranges), rows, device, self._on_host)
        self._capacity = rows * self._stripes
        self._at_once = min(self._capacity, _FEW_ROWS) if self._on_host else self._capacity
        self._rooms: dict[int, _Room] = {}  # by the number of rows that are added
        # Both are arrays on the host; None before rows are added or taken apart.
        self._table: Any = None  # [packs, groups * stripes]
        self._totals: Any = None  # int64 [columns, groups]: what has been taken apart
        self._accumulators: Sequence[Tensor] = ()  # the rows of the table
        self._rows = 0  # that the accumulators hold

    def add(self, columns: Sequence[Any], group_ids: Any, kept: Any = None) -> None:
        """Add a batch: integers or booleans [n] of each column, integers [n] as group ids; tensors or arrays.

        `kept` (bool [n]): which rows count; columns and group ids of the others may be anything. None: all of them.
        """
        if isinstance(group_ids, Tensor) and self._on_host:
            columns, group_ids, kept = as_array(columns), as_array(group_ids), as_array(kept)
        num_rows = group_ids.shape[0]
        if num_rows <= self._at_once:
            self._add(columns, group_ids, kept)
            return
        at_once = -(-num_rows // -(-num_rows // self._at_once))  # evenly: memory for as many rows is there
        for start in range(0, num_rows, at_once):
            rows = slice(start, start + at_once)
            some = [None if column is None else column[rows] for column in columns]
            self._add(some, group_ids[rows], None if kept is None else kept[rows])

    def _add(self, columns: Sequence[Any], group_ids: Any, kept: Any) -> None:
        """As `add`, for at most as many rows as the accumulators can take."""
        num_rows = group_ids.shape[0]
        rows = -(-num_rows // self._stripes) * self._stripes  # as many in each stripe as in the first
        if self._rows + rows > self._capacity:
            self._take_apart()
        if self._table is None:
            size = self._num_groups * self._stripes
            table = self._zeros(len(self._packs), size, self._dtype)
            self._table, self._accumulators = table, as_tensor(table).unbind()
        self._rows += rows
        if self._on_host:
            self._add_arrays(columns, group_ids, kept)
            return
        places = group_ids.to(torch.int64)
        if self._has_kept:
            places = places + 1
            places = places if kept is None else places.mul_(kept)
        for pack, accumulator in zip(self._packs, self._accumulators, strict=True):
            summands = _packed(pack, columns, num_rows, self._dtype, self._device)
            torch.scatter_add(accumulator, 0, places, summands, out=accumulator)

    def _add_arrays(self, columns: Sequence[Array | None], group_ids: Array, kept: Array | None) -> None:
        num_rows = group_ids.shape[0]
        if len(columns) == 1 and columns[0] is None and self._num_groups * _ROWS_COUNTED <= num_rows:
            for step, operand in self._first_steps(kept):
                group_ids = step(group_ids, operand, dtype=group_ids.dtype)
            counts = torch.bincount(torch.from_numpy(group_ids), minlength=self._num_groups)  # of any width
            self._accumulators[0].view(-1, self._stripes)[:, 0].add_(counts)
            return
        room = self._rooms.get(num_rows)
        if room is None:
            if len(self._rooms) == _ROOMS:
                self._rooms.clear()
            room = self._rooms[num_rows] = _Room(num_rows, self._dtype)
        places = room.place_tensor
        if self._stripes == 1 and not self._has_kept and group_ids.dtype == np.int64:
            places = torch.from_numpy(group_ids)  # a copy would be a fifth of the time
        else:
            self._fill_places(room.places, group_ids, kept)
        for pack, accumulator in zip(self._packs, self._accumulators, strict=True):
            _pack(room.summands, pack, columns)
            torch.scatter_add(accumulator, 0, places, room.summand_tensor, out=accumulator)

    def _first_steps(self, kept: Array | None) -> list[tuple[np.ufunc, Any]]:
        """What makes numbers of groups of group ids where the first group has the rows that do not count."""
        if not self._has_kept:
            return []
        return [(np.add, 1)] if kept is None else [(np.add, 1), (np.multiply, kept.view(np.int8))]

    def _fill_places(self, places: Array, group_ids: Array, kept: Array | None) -> None:
        """int64 [n]: the accumulators of consecutive rows. The last step writes them there, which no cast does faster."""
        steps, dtype = self._first_steps(kept), group_ids.dtype
        if self._stripes > 1:
            turns = _turns(self._stripes, self._at_once)
            steps += [(np.multiply, self._stripes), (np.add, turns[: group_ids.shape[0]])]
            dtype = turns.dtype
        if not steps:
            np.copyto(places, group_ids)
            return
        numbers = group_ids
        for step, operand in steps[:-1]:
            numbers = step(numbers, operand, dtype=dtype, out=None if numbers is group_ids else numbers)
        step, operand = steps[-1]
        step(numbers, operand, dtype=dtype, out=places)

    def add_sums(self, sums: Sequence[Tensor], group_ids: Tensor) -> None:
        """Add sums of some rows: int64 [m] of each column, the groups that they are of int64 [m]."""
        for total, column in zip(self._all_totals(), sums, strict=True):
            total.scatter_add_(0, group_ids, column)

    def merge(self, other: PackedSums) -> None:
        """Add what another one of the same columns and groups holds."""
        if self._rows + other._rows > self._capacity:
            self._take_apart()
            other._take_apart()
        self._rows += other._rows
        if self._table is None:
            self._table, self._accumulators = other._table, other._accumulators
        elif other._rows and other._table is not None:
            self._table += other._table
        if other._totals is not None:
            self._add_totals(other._totals)

    def groups(self, start: int, stop: int) -> PackedSums:
        """The sums of some groups alone, to be merged and read: views of what these hold. Not where groups have stripes."""
        assert self._stripes == 1
        part = copy(self)
        part._num_groups, part._has_kept, part._rooms, part._accumulators = stop - start, False, {}, ()
        places = slice(start + self._has_kept, stop + self._has_kept)
        part._table = None if self._table is None else self._table[:, places]
        part._totals = None if self._totals is None else self._totals[:, places]
        return part

    def totals(self) -> Sequence[Tensor]:
        """The sums of each column, int64 [num_groups]. Ends the life of the accumulators."""
        self._take_apart(last=True)
        self._rooms.clear()
        return self._all_totals()

    def _all_totals(self) -> Sequence[Tensor]:
        if self._totals is None:
            self._totals = self._zeros(self._layout.num_columns, self._num_groups, torch.int64)
        rows: Sequence[Tensor] = as_tensor(self._totals)[:, int(self._has_kept) :].unbind()
        return rows

    def _zeros(self, num_rows: int, num_columns: int, dtype: torch.dtype) -> Any:
        zeros = allocation.zeros(num_rows * num_columns, dtype, self._device).view(num_rows, num_columns)
        return zeros.numpy() if self._on_host else zeros

    def _take_apart(self, last: bool = False) -> None:
        """Move what the accumulators hold to the totals; `last`: they are not needed any more."""
        if self._table is None:
            return
        sums = self._layout.sums(converted(self._table, torch.int64))
        if self._stripes > 1:
            sums = sums.reshape(sums.shape[0], -1, self._stripes).sum(2)
        self._add_totals(sums)
        self._rows = 0
        if last or sums is self._table:  # which are the totals now
            self._table, self._accumulators = None, ()
        else:
            self._table[:] = 0

    def _add_totals(self, sums: Any) -> None:
        if self._totals is None:
            self._totals = sums
        else:
            self._totals += sums


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


@lru_cache(maxsize=256)
def _arranged(
    ranges: tuple[Range, ...], capacity: int, device: torch.device, on_host: bool
) -> tuple[torch.dtype, tuple[tuple[Part, ...], ...], _Layout]:
    """The dtype of the accumulators, int32 where no more of them are needed than of int64; which columns share them."""
    packs, dtype = arrange(ranges, capacity), torch.int64
    narrow = arrange(ranges, capacity, _NARROW_BITS)
    if len(narrow) == len(packs) and all(part.bits <= _NARROW_BITS for pack in packs for part in pack):
        packs, dtype = narrow, torch.int32
    return dtype, packs, _Layout(packs, device, on_host)


@lru_cache(maxsize=16)
def _turns(stripes: int, num_rows: int) -> npt.NDArray[np.int16]:
    """[n]: which of a group's accumulators each row is added to, in a dtype that holds the number of any group's."""
    return (np.arange(num_rows) % stripes).astype(np.int16)


def _packed(
    pack: tuple[Part, ...],
    columns: Sequence[Tensor | None],
    num_rows: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """[num_rows]: the columns of a pack as one summand."""
    first = columns[pack[0].column]
    if first is None:
        result = torch.ones(num_rows, dtype=dtype, device=device)
    else:
        result = first.to(dtype)
        if len(pack) > 1 and first.dtype is dtype:
            result = result.clone()  # the column itself stays as it is
    for part in pack[1:]:
        column = columns[part.column]
        result.bitwise_left_shift_(part.bits).add_(1 if column is None else column)
    return result


def _pack(summands: Array, pack: tuple[Part, ...], columns: Sequence[Array | None]) -> None:
    """As `_packed`, into an array: a call for the first column, two for each further one, one for all that count rows."""
    packed: Array | None = None
    ones = shift = 0  # what counts rows, and how far the next column is to be shifted
    for part in pack:
        shift, ones = shift + part.bits, ones << part.bits
        column = columns[part.column]
        if column is None:
            ones += 1
        elif packed is None:
            packed, shift = column, 0
        else:
            np.left_shift(packed, shift, dtype=summands.dtype, out=summands)
            packed, shift = np.add(summands, column, dtype=summands.dtype, out=summands), 0
    if packed is None:
        summands.fill(ones)
        return
    if shift:
        packed = np.left_shift(packed, shift, dtype=summands.dtype, out=summands)
    if ones:
        np.add(packed, ones, dtype=summands.dtype, out=summands)
    elif packed is not summands:
        np.copyto(summands, packed)
