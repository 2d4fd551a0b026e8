"""Frame: the columns between two pipelines, in whatever form lowering chose, without names or types."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tqp.core.errors import ResourceError
from tqp.data.strings import Strings
from tqp.operators.memory import allocation
from tqp.operators.memory.allocation import Map
from tqp.operators.memory.arrays import as_array, as_tensor
from tqp.operators.strings import layout as string_layout


class FrameColumn(NamedTuple):
    """`values`: a tensor [n, ...] or Strings [n]; None where the codes are the row numbers themselves."""

    values: Tensor | Strings | None
    validity: Tensor | None


@dataclass(frozen=True, slots=True)
class Frame:
    num_rows: int
    columns: tuple[FrameColumn, ...]

    def cut(self, start: int, stop: int) -> Frame:
        """Rows start to stop (exclusive), as views."""
        if start == 0 and stop == self.num_rows:
            return self
        columns = tuple(
            FrameColumn(cut_values(column.values, start, stop), cut_values(column.validity, start, stop))
            for column in self.columns
        )
        return Frame(stop - start, columns)

    @property
    def num_bytes(self) -> int:
        size = 0
        for values, validity in self.columns:
            size += values.nbytes if type(values) is Tensor else object_bytes(values)
            if validity is not None:
                size += validity.nbytes
        return size


#: Parts with so many rows on average make batches of their own; smaller ones are put together at once, by all workers.
_ROWS_OF_A_PART = 131_072


class ColumnParts(NamedTuple):
    """A column in parts: of each its values, and of each its validity."""

    values: tuple[Any, ...]
    validity: tuple[Any, ...]


#: Rows of a frame that a program makes at most: 32 bits number them in joins, sorts and groups.
MAX_ROWS = 2**31 - 1


def check_rows(num_rows: int) -> int:
    """The number of rows of a frame that is being made. Raises ResourceError where 32 bits cannot number them."""
    if num_rows > MAX_ROWS:
        raise ResourceError(
            f"a step of the query makes {num_rows:,} rows, more than the {MAX_ROWS:,} that can be numbered; "
            "filter or aggregate before, or run the query on parts of the tables"
        )
    return num_rows


class FrameParts:
    """Rows that stay in several frames, one after the other, none of them empty. Nothing of it ever changes.

    Pipelines that read it batch by batch take their batches from the parts: no part is copied for a batch within it. Who
    needs whole columns has the breaker put the rows together, see `lowering/frames_in_parts.py`.
    """

    __slots__ = ("_ends", "columns", "num_rows", "parts")

    def __init__(self, parts: Sequence[Frame]) -> None:
        self.parts = tuple(parts)
        self._ends = list(itertools.accumulate(part.num_rows for part in parts))
        self.num_rows = check_rows(self._ends[-1])
        self.columns = tuple(
            ColumnParts(*zip(*column, strict=True))
            for column in zip(*(p.columns for p in parts), strict=True)
        )

    @property
    def num_bytes(self) -> int:
        return sum(part.num_bytes for part in self.parts)

    def bounds(self, step: int, most: int) -> list[int]:
        """Where batches of about `step` rows begin, `most` at most, and last the number of rows.

        They end where parts do, as far as these are not much longer; a part may be shorter, but few rows wait for others.
        """
        found = [0]
        for end, part in zip(self._ends, (*self.parts[1:], None), strict=True):
            first = found[-1]
            rows = end - first
            if part is None or rows >= _ROWS_OF_A_PART or 2 * rows + part.num_rows >= 2 * step:
                batches = max(1, round(rows / step), -(-rows // most))
                found += [first + rows * number // batches for number in range(1, batches + 1)]
        return found

    def pieces(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """The parts that rows start to stop (exclusive) lie in: the number of each, its first row and the one after its last.

        No rows are no rows of one part.
        """
        found: list[tuple[int, int, int]] = []
        for number in range(bisect.bisect_right(self._ends, start), len(self.parts)):
            first = self._ends[number] - self.parts[number].num_rows
            if first >= stop and found:
                break
            found.append((number, max(start - first, 0), min(stop, self._ends[number]) - first))
        return found

    def cut(self, items: tuple[Any, ...], pieces: Sequence[tuple[int, int, int]]) -> Any:
        """The rows of some `pieces`, of what a column has in each part: a view, or a copy where they are several."""
        return concatenate_values(
            [
                items[number]
                if stop - start == self.parts[number].num_rows
                else cut_values(items[number], start, stop)
                for number, start, stop in pieces
            ]
        )


def frame_of_outputs(outputs: Sequence[Any]) -> Frame:
    """A frame of what a pipeline's graph puts out: the number of rows, then values and validity of each column."""
    return Frame(outputs[0], tuple(map(FrameColumn, outputs[1::2], outputs[2::2])))


def concatenate_frames(frames: Sequence[Frame], workers: Map | None = None) -> Frame:
    """The rows of the frames one after the other; a column is nullable in all of them or in none.

    Frames without rows are left out, as they need not have the types of the others. Workers share what is much.
    """
    frames = _with_rows(frames)
    num_rows = check_rows(sum(frame.num_rows for frame in frames))
    if len(frames) == 1:
        return frames[0]
    columns = []
    for parts in zip(*(frame.columns for frame in frames), strict=True):
        values, validities = zip(*parts, strict=True)
        columns.append(
            FrameColumn(concatenate_values(values, workers), concatenate_values(validities, workers))
        )
    return Frame(num_rows, tuple(columns))


def joined_frames(
    frames: Sequence[Frame | FrameParts], workers: Map | None, in_parts: bool
) -> Frame | FrameParts:
    """The rows of the frames one after the other: where they may stay `in_parts` and are many, without a copy."""
    parts = _with_rows(
        [part for frame in frames for part in (frame.parts if isinstance(frame, FrameParts) else (frame,))]
    )
    if in_parts and 1 < len(parts) <= sum(part.num_rows for part in parts) // _ROWS_OF_A_PART:
        return FrameParts(parts)
    return concatenate_frames(parts, workers)


def _with_rows(frames: Sequence[Frame]) -> Sequence[Frame]:
    return [frame for frame in frames if frame.num_rows] or frames[:1]


def concatenate_values(parts: Sequence[Any], workers: Map | None = None) -> Any:
    """Tensors, arrays or Strings, one after the other; or None of each."""
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    if isinstance(parts[0], Tensor):
        return allocation.concatenate(parts, workers)
    if isinstance(parts[0], np.ndarray):
        return as_array(allocation.concatenate(as_tensor(list(parts)), workers))
    return string_layout.concatenate(parts)


def take_frame(frame: Frame, rows: Tensor) -> Frame:
    """The given rows of every column."""
    columns = tuple(
        FrameColumn(take_values(c.values, rows), take_values(c.validity, rows)) for c in frame.columns
    )
    return Frame(rows.shape[0], columns)


def take_frame_by_parts(
    frame: Frame, parts: Sequence[Tensor], order_of: Callable[[Tensor], Tensor], workers: Map
) -> Frame:
    """For each part, ascending row numbers, those rows in the order that `order_of` says; one part after the other.

    What there is for the rows of a part is gathered first, and put in order within the caches. Strings come out contiguous.
    """

    def taken(rows: Tensor) -> Frame:
        order = order_of(rows)
        return compact_strings(take_frame(take_frame(frame, rows), order))

    return concatenate_frames(workers(taken, parts), workers)


def compact_strings(frame: Frame) -> Frame:
    """The frame, the bytes of its strings in row order."""
    columns = (
        c._replace(values=string_layout.compact(c.values)) if isinstance(c.values, Strings) else c
        for c in frame.columns
    )
    return Frame(frame.num_rows, tuple(columns))


def take_values(values: Any, rows: Tensor) -> Any:
    """The given rows of a tensor or Strings; None stays None."""
    if values is None:
        return None
    return (
        string_layout.take(values, rows)
        if isinstance(values, Strings)
        else torch.index_select(values, 0, rows)
    )


def object_bytes(item: Any) -> int:
    """Memory of a tensor, Strings (without the bytes they share), frame or join build; 0 for anything else."""
    if isinstance(item, Tensor):
        return item.nbytes
    if isinstance(item, (Frame, FrameParts)):
        return item.num_bytes
    if isinstance(item, Strings):
        return item.starts.nbytes + item.lengths.nbytes
    if item is None or isinstance(item, (int, float, str)):
        return 0
    if isinstance(item, (tuple, list)):
        return sum(map(object_bytes, item))
    size = 0
    for name in getattr(type(item), "__slots__", ()):
        size += object_bytes(getattr(item, name, None))
    return size


def cut_values(item: Any, start: int, stop: int) -> Any:
    """Rows start to stop (exclusive) of a tensor, an array or Strings, as views; None stays None."""
    if item is None:
        return None
    return string_layout.cut(item, start, stop) if isinstance(item, Strings) else item[start:stop]
