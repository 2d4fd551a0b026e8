"""Numbers to bins: between which thresholds of all the splits on a feature a value lies, found by a table, not by search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from tqp.ml.trees.ensemble import ALMOST_ZERO, Ensemble, Floats, Ints

#: Cells of a feature's range at least and at most: four for each threshold, so that few cells have more than one.
_FEWEST_CELLS, _MOST_CELLS = 256, 16384


class NumberBins(nn.Module):
    """How many thresholds are less than a number: [n] to int32 [n]; for a missing one, their count + 1.

    The range of the thresholds is cut into cells of equal width. A cell's number is a monotone function of the value, so
    the thresholds before the cell are counted by a table, and only those of the cell itself are compared, by halving: two
    or three gathers, where a binary search among all costs ten times as much (4.7 ns against 46 with 255 thresholds).
    """

    def __init__(self, thresholds: Floats, single: bool, zero_is_missing: bool) -> None:
        """`thresholds`: sorted and distinct, of numbers of one precision."""
        super().__init__()
        dtype = np.float32 if single else np.float64
        limits = thresholds.astype(dtype)
        self.single, self.zero_is_missing = single, zero_is_missing
        self.missing = len(limits) + 1
        self.cells = int(np.clip(4 * len(limits), _FEWEST_CELLS, _MOST_CELLS))
        finite = limits[np.isfinite(limits)]
        self.low = float(finite[0]) if len(finite) else 0.0
        with np.errstate(over="ignore", divide="ignore"):
            width = finite[-1] - finite[0] if len(finite) else dtype(0)
            scale = dtype(self.cells) / width if width > 0 else dtype(1)
        # Any positive factor keeps the order; a tiny one serves where the range is wider than a number can say.
        self.scale = float(scale) if 0 < scale < np.inf else float(np.finfo(dtype).tiny)
        cells = self._cells(torch.from_numpy(limits)).numpy()
        starts = np.searchsorted(cells, np.arange(self.cells)).astype(np.int32)
        crowd = int(np.bincount(cells).max(initial=1))
        self.steps = tuple(1 << bit for bit in reversed(range(crowd.bit_length())))
        padded = np.concatenate([limits, np.full(sum(self.steps), np.inf, dtype)])
        self.starts = nn.Buffer(torch.from_numpy(starts))
        # As integers of the same bits: thresholds stay as they are when the module is moved to another precision.
        self.limit_bits = nn.Buffer(torch.from_numpy(padded.view(np.int32 if single else np.int64)))

    @property
    def count(self) -> int:
        return self.missing + 1

    def forward(self, values: Tensor) -> Tensor:
        values = values.to(torch.float32 if self.single else torch.float64)
        limits = self.limit_bits.view(values.dtype)
        place = torch.index_select(self.starts, 0, self._cells(values))
        for step in self.steps:
            limit = torch.index_select(limits, 0, place + (step - 1))
            place.add_((limit < values).to(torch.int32), alpha=step)
        is_missing = values.isnan()
        if self.zero_is_missing:
            is_missing |= values.abs() <= ALMOST_ZERO
        return place.add_(is_missing.to(torch.int32), alpha=self.missing).clamp_(max=self.missing)

    def _cells(self, values: Tensor) -> Tensor:
        cells = ((values - self.low) * self.scale).clamp_(0, self.cells - 1).to(torch.int32)
        return cells.clamp_(0, self.cells - 1)  # NaN becomes any integer


class CategoryBins(nn.Module):
    """The category that a number is: [n] to int32 [n]; other numbers are `categories`, a missing one is that + 1."""

    def __init__(self, categories: int, by_floor: bool) -> None:
        super().__init__()
        self.categories, self.by_floor = categories, by_floor

    @property
    def count(self) -> int:
        return self.categories + 2

    def forward(self, values: Tensor) -> Tensor:
        whole = values.floor() if self.by_floor else values.trunc()
        whole = whole.clamp(-1, self.categories).nan_to_num(self.categories + 1.0)
        found = whole.to(torch.int32)
        return torch.where(found < 0, self.categories, found)


def bins_of(ensemble: Ensemble, feature: int) -> tuple[NumberBins | CategoryBins, Ints, Ints]:
    """The bins of a feature, the nodes that split by it, and for each the last bin that goes left (0 for categories)."""
    nodes = np.flatnonzero(ensemble.feature == feature)
    sets = ensemble.category_set[nodes]
    if len(sets) and (sets >= 0).all():
        width = max(len(ensemble.sets[which]) for which in sets.tolist())
        return CategoryBins(width - 1, ensemble.whole_by_floor), nodes, np.zeros(len(nodes), dtype=np.int64)
    thresholds = rounded_down(ensemble.threshold[nodes]) if ensemble.single else ensemble.threshold[nodes]
    limits, ranks = np.unique(thresholds, return_inverse=True)
    module = NumberBins(limits, ensemble.single, feature in ensemble.zero_is_missing)
    return module, nodes, ranks.astype(np.int64)


def rounded_down(values: Floats) -> Floats:
    """The largest float32 that is at most each value: x <= value and x <= rounded are the same for all float32 x."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    above = single.astype(np.float64) > values
    return np.where(above, np.nextafter(single, np.float32(-np.inf)), single).astype(np.float64)


def left_bins(
    ensemble: Ensemble, node: int, rank: int, count: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each of the `count` bins of a node's feature, the last being the missing one: whether it goes left."""
    which = int(ensemble.category_set[node])
    if which < 0:
        goes_left = np.arange(count) <= rank
    else:
        known: Sequence[bool] = ensemble.sets[which].tolist()
        goes_left = np.full(count, known[-1])
        goes_left[: len(known) - 1] = known[:-1]
    goes_left[-1] = ensemble.missing_left[node]
    return goes_left
