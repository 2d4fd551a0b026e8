"""Frame: the columns between two pipelines, in whatever form lowering chose, without names or types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from tqp.core.errors import ResourceError
from tqp.data import nested
from tqp.data.nested import Values
from tqp.data.strings import Strings
from tqp.operators.memory.allocation import Map
from tqp.operators.nested import layout as nested_layout
from tqp.operators.strings import layout as string_layout


class FrameColumn(NamedTuple):
    """`values`: a tensor [n, ...], Strings or nested values [n]; None where the codes are the row numbers themselves.

    Of a table that is read batch by batch, `Streamed` in place of tensors: its one pipeline cuts batches of it.
    """

    values: Values | None
    validity: Tensor | None


@dataclass(frozen=True, slots=True)
class Frame:
    num_rows: int
    columns: tuple[FrameColumn, ...]

    def cut(self, start: int, stop: int) -> Frame:
        """Rows start to stop (exclusive), as views."""
        if start == 0 and stop == self.num_rows:
            return self
        return self.mapped(stop - start, lambda item: cut_values(item, start, stop))

    def mapped(self, num_rows: int, function: Callable[[Any], Any]) -> Frame:
        """So many rows: what the function makes of the values and of the validity of each column."""
        return Frame(num_rows, tuple(FrameColumn(*map(function, column)) for column in self.columns))


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


def frame_of_outputs(outputs: Sequence[Any]) -> Frame:
    """A frame of what a pipeline's graph puts out: the number of rows, then values and validity of each column."""
    return Frame(outputs[0], tuple(map(FrameColumn, outputs[1::2], outputs[2::2])))


def concatenate_frames(frames: Sequence[Frame], workers: Map | None = None) -> Frame:
    """The rows of the frames one after the other; a column is nullable in all of them or in none.

    Frames without rows are left out, as they need not have the types of the others. Workers share what is much.
    """
    frames = [frame for frame in frames if frame.num_rows] or frames[:1]
    num_rows = check_rows(sum(frame.num_rows for frame in frames))
    if len(frames) == 1:
        return frames[0]

    def joined(parts: Sequence[Any]) -> Any:
        return None if parts[0] is None else nested_layout.concatenate(parts, workers)

    columns = zip(*(frame.columns for frame in frames), strict=True)
    return Frame(num_rows, tuple(FrameColumn(*map(joined, zip(*parts, strict=True))) for parts in columns))


def take_frame(frame: Frame, rows: Tensor) -> Frame:
    """The given rows of every column."""
    return frame.mapped(rows.shape[0], lambda item: take_values(item, rows))


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
    return frame.mapped(
        frame.num_rows, lambda item: string_layout.compact(item) if isinstance(item, Strings) else item
    )


def take_values(values: Any, rows: Tensor) -> Any:
    """The given rows of a tensor, Strings or nested values; None stays None."""
    return None if values is None else nested.take(values, rows)


def object_bytes(item: Any) -> int:
    """Memory of a tensor, Strings or lists (without what they share), frame or join build; 0 for anything else."""
    if isinstance(item, Tensor):
        return item.nbytes
    if isinstance(item, (Strings, nested.Lists)):
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
    """Rows start to stop (exclusive) of a tensor, an array, Strings or nested values, as views; None stays None."""
    if item is None:
        return None
    return nested.cut(item, start, stop) if isinstance(item, nested.COMPOUND) else item[start:stop]
