"""Frame: the columns between two pipelines, in whatever form lowering chose, without names or types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators import allocation, string_layout


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
            FrameColumn(_cut(column.values, start, stop), _cut(column.validity, start, stop))
            for column in self.columns
        )
        return Frame(stop - start, columns)

    @property
    def num_bytes(self) -> int:
        return sum(object_bytes(item) for column in self.columns for item in column if item is not None)


def frame_of_outputs(outputs: Sequence[Any]) -> Frame:
    """A frame of what a pipeline's graph puts out: the number of rows, then values and validity of each column."""
    columns = tuple(
        FrameColumn(values, validity) for values, validity in zip(outputs[1::2], outputs[2::2], strict=True)
    )
    return Frame(outputs[0], columns)


def concatenate_frames(frames: Sequence[Frame]) -> Frame:
    """The rows of the frames one after the other; a column is nullable in all of them or in none."""
    if len(frames) == 1:
        return frames[0]
    columns = []
    for parts in zip(*(frame.columns for frame in frames), strict=True):
        validity = (
            None if parts[0].validity is None else allocation.concatenate([part.validity for part in parts])
        )
        columns.append(FrameColumn(concatenate_values([part.values for part in parts]), validity))
    return Frame(sum(frame.num_rows for frame in frames), tuple(columns))


def concatenate_values(parts: Sequence[Any]) -> Any:
    """Tensors or Strings, one after the other."""
    return allocation.concatenate(parts) if isinstance(parts[0], Tensor) else string_layout.concatenate(parts)


def take_frame(frame: Frame, rows: Tensor) -> Frame:
    """The given rows of every column."""
    columns = tuple(
        FrameColumn(take_values(c.values, rows), take_values(c.validity, rows)) for c in frame.columns
    )
    return Frame(rows.shape[0], columns)


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
    if isinstance(item, Strings):
        return object_bytes(item.starts) + object_bytes(item.lengths)
    if isinstance(item, Frame):
        return item.num_bytes
    if isinstance(item, (tuple, list)):
        return sum(object_bytes(part) for part in item)
    slots = getattr(type(item), "__slots__", ())
    return (
        sum(object_bytes(getattr(item, name, None)) for name in slots if isinstance(name, str))
        if slots
        else 0
    )


def _cut(item: Any, start: int, stop: int) -> Any:
    if item is None:
        return None
    return string_layout.cut(item, start, stop) if isinstance(item, Strings) else item[start:stop]
