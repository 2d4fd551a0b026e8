"""Values in other rows of the partition or frame: which row each row takes its value from, -1 for none."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tqp.data.nested import Vector, take_vector
from tqp.operators.rows.runs import sums_before
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.windows.frames import Range
from tqp.operators.windows.partitions import Partitions


class ValidRows:
    """The rows whose values count, in order. Without `validity` all rows are."""

    def __init__(self, validity: Tensor | None) -> None:
        self.validity = validity
        if validity is not None:
            self.rows = row_indices(validity)
            self._before = sums_before(validity)

    def before(self, rows: Tensor) -> Tensor:
        """int64 [n]: how many there are before each of these rows."""
        return rows if self.validity is None else take(self._before, rows)

    def only(self, values: Tensor) -> Tensor:
        """What these rows have of values [n, ...]."""
        return values if self.validity is None else take(values, self.rows)

    def only_of(self, vector: Vector) -> Vector:
        """What these rows have of any values."""
        return vector if self.validity is None else take_vector(vector, self.rows)

    def among(self, part: Range) -> Range:
        """Ranges of rows as ranges of those that count."""
        return Range(self.before(part.begins), self.before(part.ends))

    def at(self, numbers: Tensor, within: Range) -> Tensor:
        """int64 [n]: the rows with these numbers; -1 where they are not within the range."""
        if self.validity is None:
            rows = numbers
        elif self.rows.shape[0] == 0:
            return torch.full_like(numbers, -1)
        else:
            is_there = (numbers >= 0) & (numbers < self.rows.shape[0])
            rows = torch.where(is_there, take(self.rows, numbers.clamp(0, self.rows.shape[0] - 1)), -1)
        return torch.where((rows >= within.begins) & (rows < within.ends), rows, -1)


def shifted(rows: Partitions, away: Tensor | int, counted: ValidRows) -> Tensor:
    """int64 [n]: the row so many of the counted ones behind (negative: before) each row of its partition; -1 if there is none.

    A row that is 0 away from itself is there, whether it counts or not.
    """
    whole = Range(rows.begins, rows.ends)
    if isinstance(away, Tensor):
        away = away.to(torch.int64).clamp(-rows.num_rows, rows.num_rows)
    if counted.validity is None:
        return counted.at(rows.rows + away, whole)
    own = counted.validity.to(torch.int64)
    numbers = counted.before(rows.rows) + away
    if isinstance(away, Tensor):
        found = counted.at(torch.where(away > 0, numbers - 1 + own, numbers), whole)
        return torch.where(away == 0, rows.rows, found)
    if away == 0:
        return rows.rows
    return counted.at(numbers - 1 + own if away > 0 else numbers, whole)


def nth_of_frame(ranges: Sequence[Range], number: Tensor | int, counted: ValidRows) -> Tensor:
    """int64 [n]: the `number`-th (from 0 on) of the counted rows of a frame of ranges in row order; -1 if there is none."""
    found: Tensor | None = None
    for part in ranges:
        first = counted.before(part.begins)
        rows = counted.at(first + number, part)
        rows = torch.where(torch.as_tensor(number, device=rows.device) >= 0, rows, -1)
        found = rows if found is None else torch.where(found >= 0, found, rows)
        number = number - (counted.before(part.ends) - first)
    assert found is not None
    return found


def last_of_frame(ranges: Sequence[Range], counted: ValidRows) -> Tensor:
    """int64 [n]: the last of the counted rows of a frame of ranges in row order; -1 if there is none."""
    found: Tensor | None = None
    for part in reversed(ranges):
        rows = counted.at(counted.before(part.ends) - 1, part)
        found = rows if found is None else torch.where(found >= 0, found, rows)
    assert found is not None
    return found
