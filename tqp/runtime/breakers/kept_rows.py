"""Which rows of the iterations of WITH RECURSIVE stay, and which the next one works on: UNION ALL, UNION and USING KEY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.memory.allocation import Map
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.strings import compare, layout
from tqp.runtime.breakers.seen_rows import SeenRows, keys_of
from tqp.runtime.frame import Frame, FrameColumn, concatenate_frames, take_frame, take_values


@dataclass(frozen=True, slots=True)
class Kept:
    """How rows are told apart. Frames have `len(compared)` columns, then others that only compare.

    `compared`: for each column the one by which its values compare. `distinct` is UNION; `keys`, positions, USING KEY.
    """

    compared: Sequence[int]
    distinct: bool
    keys: Sequence[int] | None

    def rows(self, device: torch.device, workers: Map) -> KeptRows:
        """A table without rows."""
        if self.keys is not None:
            return _LastOfKeys(self, self.keys, device, workers)
        return _AllRows(self, SeenRows(device) if self.distinct else None, workers)


class KeptRows(Protocol):
    """The rows so far."""

    def add(self, frame: Frame) -> Frame:
        """Adds the rows of an iteration; returns those that the next one works on."""

    def whole(self) -> Frame:
        """All rows so far."""


class _AllRows:
    """UNION ALL: every row. With `seen`, UNION: those that equal none before them."""

    def __init__(self, kept: Kept, seen: SeenRows | None, workers: Map) -> None:
        self._kept, self._seen, self._workers = kept, seen, workers
        self._frames: list[Frame] = []

    def add(self, frame: Frame) -> Frame:
        new = _cut(frame, self._kept)
        if self._seen is not None and frame.num_rows:
            _, rows = self._seen.add([frame.columns[i] for i in self._kept.compared])
            new = new if rows.shape[0] == frame.num_rows else take_frame(new, rows)
        self._frames.append(new)
        return new

    def whole(self) -> Frame:
        self._frames = [concatenate_frames(self._frames, self._workers)]
        return self._frames[0]


class _LastOfKeys:
    """USING KEY: the last row of each key, with the key as it came first. Rows stand by the number of their key."""

    def __init__(self, kept: Kept, keys: Sequence[int], device: torch.device, workers: Map) -> None:
        self._kept, self._workers = kept, workers
        self._keys = [kept.compared[key] for key in keys]
        self._others = [i for place, i in enumerate(kept.compared) if place not in keys]
        self._of_keys = {*keys, *self._keys}
        self._numbers, self._frames = SeenRows(device), list[Frame]()

    def add(self, frame: Frame) -> Frame:
        if not frame.num_rows:
            self._frames.append(frame)
            return _cut(frame, self._kept)
        before = sum(each.num_rows for each in self._frames)
        numbers, new = self._numbers.add([frame.columns[key] for key in self._keys])
        if new.shape[0] == frame.num_rows:
            rows = torch.empty_like(numbers)
            rows[numbers - before] = torch.arange(frame.num_rows, device=rows.device)
            self._frames.append(take_frame(frame, rows))
            return _cut(self._frames[-1], self._kept)
        changed = self._replace(frame, numbers, before, before + new.shape[0])
        return _cut(frame if changed is None else take_frame(self._frames[0], changed), self._kept)

    def _replace(self, frame: Frame, numbers: Tensor, before: int, count: int) -> Tensor | None:
        """Puts the rows in place of those with their numbers; returns the changed numbers if `distinct`."""
        joined = concatenate_frames([*self._frames, frame], self._workers)
        known = torch.arange(before, device=numbers.device)
        rows = torch.arange(before, before + frame.num_rows, device=numbers.device)
        none = numbers.new_full((count - before,), joined.num_rows)
        first = torch.cat((known, none)).scatter_reduce_(0, numbers, rows, "amin")
        last = torch.cat((known, none.fill_(-1))).scatter_reduce_(0, numbers, rows, "amax")
        columns = (
            FrameColumn(*(take_values(item, first if i in self._of_keys else last) for item in column))
            for i, column in enumerate(joined.columns)
        )
        self._frames = [Frame(count, tuple(columns))]
        if not self._kept.distinct:
            return None
        replaced = row_indices(last[:before] >= before)
        is_same = torch.ones_like(replaced, dtype=torch.bool)
        for i in self._others:
            for key in keys_of(joined.columns[i]):
                is_same &= _equal(key, replaced, take(last, replaced))
        changed = take(replaced, row_indices(~is_same))
        return torch.cat((changed, torch.arange(before, count, device=numbers.device)))

    def whole(self) -> Frame:
        self._frames = [concatenate_frames(self._frames, self._workers)]
        return _cut(self._frames[0], self._kept)


def _cut(frame: Frame, kept: Kept) -> Frame:
    """The frame without the columns that only compare."""
    return Frame(frame.num_rows, frame.columns[: len(kept.compared)])


def _equal(key: Tensor | Strings, rows: Tensor, others: Tensor) -> Tensor:
    """bool [m]: whether the key is equal in rows [m] and in others [m]."""
    if isinstance(key, Strings):
        return compare.equal(layout.take(key, rows), layout.take(key, others))
    return elementwise.equal(take(key, rows), take(key, others))
