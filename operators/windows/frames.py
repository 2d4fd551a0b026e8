"""The frame of each row: one range of rows of its partition or, where rows are excluded, several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.data.backend import is_host
from tqp.operators.joins.pairs import expand_all_ranges
from tqp.operators.memory.allocation import Map
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.selection import take
from tqp.operators.windows.partitions import Partitions

#: Frames that are looked at together on the host, so that what is known of them stays in its caches.
_BLOCK = 1 << 17


class Range(NamedTuple):
    """Rows `begins` to `ends` (exclusive), int64 [n], for each row; the end is never before the beginning."""

    begins: Tensor
    ends: Tensor

    @property
    def lengths(self) -> Tensor:
        return self.ends - self.begins


def offsets(values: Tensor, validity: Tensor | None, mode: str) -> Tensor:
    """How many rows or groups of peers away a bound is, int64 [n]; raises ExecutionError if one is negative or NULL."""
    if validity is not None and any_true(~validity):
        raise ExecutionError(f"the offset of a {mode} frame cannot be NULL")
    if any_true(values < 0):
        raise ExecutionError(f"the offset of a {mode} frame cannot be negative")
    return values.to(torch.int64).clamp(max=values.shape[0])


def rows_from(rows: Partitions, away: Tensor | int, is_end: bool) -> Tensor:
    """int64 [n]: the row so many (negative: before) away, or the one behind it; within the partition or at its end."""
    return torch.clamp(rows.rows + away + int(is_end), rows.begins, rows.ends)


def groups_from(rows: Partitions, away: Tensor | int, is_end: bool) -> Tensor:
    """As `rows_from`, the first row of the group of peers so many away, or the row behind that group."""
    partitions, peers = rows.partitions, rows.peers
    last = torch.cat([rows.first_peers[1:], peers.bounds.new_full((1,), peers.count)])
    numbers = peers.numbers + away + int(is_end)
    numbers = torch.clamp(
        numbers, partitions.spread(rows.first_peers), partitions.spread(last[: partitions.count])
    )
    return take(peers.bounds, numbers)


def frame(begins: Tensor, ends: Tensor) -> Range:
    """The range between two bounds; without rows where it would end before it begins."""
    return Range(begins, torch.maximum(begins, ends))


def without_rows(whole: Range, first: Tensor, last: Tensor) -> list[Range]:
    """The frame without the rows `first` to `last` (exclusive): what is before them and what is behind."""
    before = Range(whole.begins, torch.clamp(torch.minimum(first, whole.ends), min=whole.begins))
    behind = Range(torch.clamp(torch.maximum(last, whole.begins), max=whole.ends), whole.ends)
    return [before, behind]


def excluding(rows: Partitions, whole: Range, exclusion: str) -> Sequence[Range]:
    """The frame as ranges in row order, without the current row, its group of peers, or its ties; see `Exclusion`."""
    if exclusion == "NO OTHERS":
        return [whole]
    if exclusion == "CURRENT ROW":
        return without_rows(whole, rows.rows, rows.rows + 1)
    before, behind = without_rows(whole, rows.peers.begins, rows.peers.ends)
    if exclusion == "GROUP":
        return [before, behind]
    is_inside = (whole.begins <= rows.rows) & (rows.rows < whole.ends)
    return [before, Range(rows.rows, rows.rows + is_inside), behind]


def parts_of_frames(ranges: Sequence[Range], most_rows: Callable[[], int]) -> Iterator[Sequence[Range]]:
    """The frames of consecutive rows, as many as hold at most so many rows together, or a single one; `most_rows` is asked each time."""
    ends = count_rows(ranges).cumsum(0)
    if not ends.shape[0]:
        yield ranges
    first, passed = 0, 0
    while first < ends.shape[0]:
        last = max(first + 1, int(torch.searchsorted(ends, passed + most_rows(), right=True)))
        yield [Range(part.begins[first:last], part.ends[first:last]) for part in ranges]
        first, passed = last, int(ends[last - 1])


def rows_of_frames(ranges: Sequence[Range]) -> tuple[Tensor, Tensor]:
    """The rows of each frame one after the other, in row order, and the number of the frame of each: (numbers, rows), int64 [m]."""
    begins, lengths = (
        torch.stack(list(each), 1).flatten()
        for each in zip(*((part.begins, part.lengths) for part in ranges), strict=True)
    )
    numbers, rows = expand_all_ranges(begins, lengths)
    return numbers.to(torch.int64) // len(ranges), rows


def count_rows(ranges: Sequence[Range]) -> Tensor:
    """How many rows there are in each frame, int64 [n]."""
    counts = ranges[0].lengths
    for part in ranges[1:]:
        counts = counts + part.lengths
    return counts


def longest(ranges: Sequence[Range]) -> int:
    """How many rows the longest range has; 0 without any."""
    if not ranges[0].begins.shape[0]:
        return 0
    blocks = blocks_of_rows(ranges[0].begins)
    return max(int((part.ends[rows] - part.begins[rows]).max()) for part in ranges for rows in blocks)


def blocks_of_rows(rows: Tensor, at_least: int = 0) -> list[slice]:
    """All rows [n], on the host some at a time, but for the last ones `at_least` so many; one block of no rows."""
    num_rows = rows.shape[0]
    step = max(_BLOCK, at_least) if is_host(rows) else max(1, num_rows)
    return [slice(first, min(num_rows, first + step)) for first in range(0, max(1, num_rows), step)]


def by_blocks(
    function: Callable[[list[Range], slice], tuple[Tensor, ...]],
    ranges: Sequence[Range],
    share: Map,
    at_least: int = 0,
) -> tuple[Tensor, ...]:
    """function(frames, rows) of the frames of all rows, by `blocks_of_rows`: each [n]."""

    def of_block(rows: slice) -> tuple[Tensor, ...]:
        return function([Range(part.begins[rows], part.ends[rows]) for part in ranges], rows)

    parts = share(of_block, blocks_of_rows(ranges[0].begins, at_least))
    return parts[0] if len(parts) == 1 else tuple(torch.cat(each) for each in zip(*parts, strict=True))
