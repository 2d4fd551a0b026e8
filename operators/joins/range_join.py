"""Range join: inequalities as ranges of build rows sorted by one key, and a tree over a second key for those that are left.

Each bound says `build key <comparison> probe key`, with int64 keys that compare as the values do. All bounds but the last
are on the key by which the build rows are sorted, so that together they leave a range of them. The last may be on a
`second` key: intervals that a point lies in are a range of those sorted by their starts, less those that end before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tqp.operators.joins.pairs import any_by_row, check_pairs, expand_ranges
from tqp.operators.joins.sorted_search import MANY_KEYS, first_places, nearly_ascending
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.logic import all_true
from tqp.operators.rows.keys import sort_bounded, sort_codes
from tqp.operators.rows.selection import row_indices, take

_LOWER = ("greater", "greater_equal")  # of the build key
_STRICT = ("greater", "less")
_INT64 = torch.iinfo(torch.int64)
#: Children of a node of the tree, as a power of two.
_FAN_BITS = 3
#: Rows or nodes that may be looked at for each probe row without the nodes above them.
_FEW = 8


@dataclass(frozen=True, slots=True)
class SecondKey:
    """A key of the build rows in their sorted order, of which the largest match; one of which the least do is inverted.

    `levels[0]` are the keys, int64 [m]; levels[i + 1] the maxima of 2^_FAN_BITS entries of levels[i] each, down to so few
    nodes. `running` is the maximum of all keys up to each.
    """

    comparison: str
    levels: tuple[Tensor, ...]
    running: Tensor  # int64 [m]

    def probe_keys(self, keys: Tensor) -> Tensor:
        """The probe's keys inverted as those of the build are."""
        return keys if self.comparison in _LOWER else keys.bitwise_not()

    def matches(self, build: Tensor, probe: Tensor) -> Tensor:
        """bool: which of the keys match, pair by pair; or which nodes have a key that does."""
        strict = self.comparison in _STRICT
        return (elementwise.greater if strict else elementwise.greater_equal)(build, probe)


@dataclass(frozen=True, slots=True)
class RangeBuild:
    """`keys` ascending; `rows` are their build rows."""

    keys: Tensor  # int64 [m]
    rows: Tensor  # int32 [m]
    comparisons: tuple[str, ...]  # of the bounds on `keys`
    second: SecondKey | None
    unique: ClassVar[bool] = False

    def matches(self, keys: Sequence[Tensor], validity: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All pairs (probe_rows, build_rows), ordered by probe row, then by the build's key.

        `keys`: integers [n] for each bound. Raises TooManyPairs.
        """
        starts, counts = self._ranges(keys, validity)
        if self.second is None:
            probe_rows, places = expand_ranges(starts, counts)
        else:
            probe_rows, places = _search(self.second, self.second.probe_keys(keys[-1]), starts, counts)
        return probe_rows, take(self.rows, places)

    def contains(self, keys: Sequence[Tensor], validity: Tensor | None = None) -> Tensor:
        """bool [n]: has the probe row a match? Raises TooManyPairs where that takes pairs to tell."""
        if self.second is None or not any(comparison in _LOWER for comparison in self.comparisons):
            # the first row of the range matches the second key, too: see `_ranges`
            return elementwise.greater(self._ranges(keys, validity)[1], 0)
        return any_by_row(self.matches(keys, validity)[0], keys[0].shape[0])

    def _ranges(self, keys: Sequence[Tensor], validity: Tensor | None) -> tuple[Tensor, Tensor]:
        """(starts, counts), int32 [n] each: the places that the bounds on the sorted key leave each probe row.

        Of a second key, those before the first place that matches it are left out besides.
        """
        words = [key.to(torch.int64).contiguous() for key in keys]
        order = nearly_ascending(words[0]) if self.keys.shape[0] >= MANY_KEYS else None
        if order is not None:
            words = [take(word, order) for word in words]
        starts = torch.zeros(words[0].shape, dtype=torch.int32, device=words[0].device)
        stops = torch.full_like(starts, self.keys.shape[0])
        for comparison, word in zip(self.comparisons, words, strict=False):
            if comparison in _LOWER:
                found = first_places(self.keys, word, after_equal=comparison in _STRICT)
                starts = torch.maximum(starts, found)
            else:
                found = first_places(self.keys, word, after_equal=comparison not in _STRICT)
                stops = torch.minimum(stops, found)
        if self.second is not None:
            word, strict = self.second.probe_keys(words[-1]), self.second.comparison in _STRICT
            found = first_places(self.second.running, word, after_equal=strict)
            starts = torch.maximum(starts, found)
        counts = stops.sub_(starts).clamp_(min=0)
        if order is not None:
            starts, counts = (
                torch.empty_like(values).scatter_(0, order, values) for values in (starts, counts)
            )
        if validity is not None:
            counts.mul_(validity)
        return starts, counts


def build_ranges(
    comparisons: Sequence[str], keys: Sequence[Tensor], validity: Tensor | None = None
) -> RangeBuild:
    """Sorts the build rows by the first of one or two keys (integers [n]); rows of a NULL are left out.

    `comparisons`: of each bound, 'less', 'less_equal', 'greater' or 'greater_equal'; the last of the second key, if any.
    """
    keys = [key.to(torch.int64) for key in keys]
    rows = None if validity is None or all_true(validity) else row_indices(validity)
    if rows is not None:
        keys = [take(key, rows) for key in keys]
    ordered, order = _sorted(keys[0])
    second = None
    if len(keys) > 1:
        comparisons, last = comparisons[:-1], comparisons[-1]
        second = _second_key(take(keys[1], order), last)
    rows = order if rows is None else take(rows, order)
    return RangeBuild(ordered, rows.to(torch.int32), tuple(comparisons), second)


def _sorted(keys: Tensor) -> tuple[Tensor, Tensor]:
    """(keys ascending, their rows)."""
    if keys.shape[0] == 0:
        return sort_codes(keys)
    low, high = (int(extreme) for extreme in torch.aminmax(keys))
    if high - low > _INT64.max:
        return sort_codes(keys)
    ordered, order = sort_bounded(keys - low, high - low + 1)
    return ordered.to(torch.int64) + low, order


def _second_key(keys: Tensor, comparison: str) -> SecondKey:
    keys = keys if comparison in _LOWER else keys.bitwise_not()
    levels = [keys]
    fan = 1 << _FAN_BITS
    while levels[-1].shape[0] > fan:
        level = levels[-1]
        padding = level.new_full((-level.shape[0] % fan,), _INT64.min)
        levels.append(torch.cat([level, padding]).view(-1, fan).amax(1))
    running = torch.cummax(keys, 0)[0] if keys.shape[0] else keys
    return SecondKey(comparison, tuple(levels), running)


def _search(second: SecondKey, keys: Tensor, starts: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """(probe_rows, places): the places of each probe row's range that match the second key.

    The search goes down the tree from a level on which the ranges take few nodes; a node without a match ends it.
    """
    stops = starts + counts
    level = 0
    while True:
        first = starts >> (level * _FAN_BITS)
        nodes = (((stops - 1) >> (level * _FAN_BITS)) - first + 1).mul_(counts > 0)
        if level == len(second.levels) - 1 or int(nodes.sum()) <= _FEW * keys.shape[0]:
            break
        level += 1
    probe_rows, places = expand_ranges(first, nodes)
    fan = 1 << _FAN_BITS
    while True:
        kept = row_indices(second.matches(take(second.levels[level], places), take(keys, probe_rows)))
        probe_rows, places = take(probe_rows, kept), take(places, kept)
        if level == 0:
            return probe_rows, places
        level -= 1
        check_pairs(keys.shape[0], places.shape[0] * fan, keys.device)
        probe_rows = probe_rows.repeat_interleave(fan)
        places = (places.unsqueeze(1) * fan + torch.arange(fan, dtype=places.dtype, device=keys.device)).view(
            -1
        )
        low = take(starts, probe_rows) >> (level * _FAN_BITS)
        high = (take(stops, probe_rows) - 1) >> (level * _FAN_BITS)
        inside = row_indices((places >= low).logical_and_(places <= high))
        probe_rows, places = take(probe_rows, inside), take(places, inside)
