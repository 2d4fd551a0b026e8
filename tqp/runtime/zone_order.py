"""In which order a top-k reads the rows of a table: the best zones first, and none that come after the rows it has by then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tqp.data.encoding.zones import Zones

#: Rows of a batch at most, or so many batches of a table; the first ones have fewer, so that there is a bound soon.
_ROWS, _BATCHES = 131_072, 64
_FIRST_ROWS = 16_384

Batch = tuple[int, int]


class ZoneOrder(NamedTuple):
    """The slot of the zones of the first key of a top-k, a column of integers, and whether its greatest values come first.

    NULLs, which zones do not tell of, come last.
    """

    zones: str
    descending: bool

    def best_first(self, batches: Sequence[Batch], zones: Zones) -> list[tuple[Batch, int]]:
        """Smaller batches [start, stop) of the same rows, those with the best values first; of each the best value that it may have."""
        most = max(_ROWS, sum(stop - start for start, stop in batches) // _BATCHES)
        found = self._in_order([part for batch in batches for part in _cut(batch, most, most)], zones)
        (start, stop), _ = found[0]
        parts = _cut((start, stop), _FIRST_ROWS, most)
        if self._is_better_at_end(start, stop, zones):
            parts = [(start + stop - last, start + stop - first) for first, last in parts]
        return self._in_order([*parts, *(batch for batch, _ in found[1:])], zones)

    def comes_after(self, best: int, bound: object) -> bool:
        """Whether all rows with values no better than `best` come after those with the value `bound`; not of what is no number."""
        if not isinstance(bound, int):
            return False
        return best < bound if self.descending else best > bound

    def _in_order(self, batches: Sequence[Batch], zones: Zones) -> list[tuple[Batch, int]]:
        best = [self._best(start, stop, zones) for start, stop in batches]
        return sorted(zip(batches, best, strict=True), key=lambda each: each[1], reverse=self.descending)

    def _is_better_at_end(self, start: int, stop: int, zones: Zones) -> bool:
        middle = (start + stop) // 2
        return start < middle and self.comes_after(
            self._best(start, middle, zones), self._best(middle, stop, zones)
        )

    def _best(self, start: int, stop: int, zones: Zones) -> int:
        own = slice(start // zones.rows, -(-stop // zones.rows))
        values = zones.greatest[own] if self.descending else zones.least[own]
        if not len(values):
            return 0
        return int(np.max(values) if self.descending else np.min(values))


def _cut(batch: Batch, rows: int, most: int) -> list[Batch]:
    """Its rows in batches of so many, each of twice as many as the one before until they are `most`; without rows, itself."""
    (start, stop), parts = batch, []
    while start < stop:
        parts.append((start, min(start + rows, stop)))
        start, rows = parts[-1][1], min(2 * rows, most)
    return parts or [batch]
