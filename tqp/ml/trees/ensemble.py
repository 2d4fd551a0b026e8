"""An ensemble of decision trees as flat arrays, whichever library it comes from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tqp.core.errors import UnsupportedError

Ints = NDArray[np.int64]
Masks = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: LightGBM takes numbers up to this, its 1e-35 as a float32, as zeros.
ALMOST_ZERO = float(np.float32(1e-35))


@dataclass
class Tree:
    """Nodes, one entry each, the root 0: `feature` [nodes], below 0 at leaves; `threshold`: a number goes left if it is at most
    this; `missing_left`: where NaN goes; `left`, `right`: nodes; `values` [nodes, w]: of leaves; w is 1, or the number of
    outputs. `category_set`: of a split by categories its place in `Ensemble.sets`, else -1; None for no such splits."""

    feature: Any
    threshold: Any
    missing_left: Any
    left: Any
    right: Any
    values: Any
    category_set: Any = None


@dataclass
class Ensemble(Tree):
    """Trees whose leaves are added up: raw = (sum of the leaves that a row reaches) * scale + base.

    The nodes of all trees stand one after the other, in arrays of the types in `_TYPES`. `roots` [trees]. `outputs` [trees]:
    the output that a tree adds to, where leaves have one value. A set says of the categories 0, 1, ... which go left, and
    in its last entry where all other numbers go. `single`: features are compared as float32. `zero_is_missing`: features
    whose zeros count as missing. `whole_by_floor`: a fraction below zero is no category (it would else be category 0).
    """

    roots: Ints = field(kw_only=True)
    outputs: Ints = field(kw_only=True)
    base: Floats = field(kw_only=True)
    sets: Sequence[Bools] = ()
    scale: float = 1.0
    single: bool = False
    zero_is_missing: frozenset[int] = field(default_factory=frozenset)
    whole_by_floor: bool = False

    @property
    def used_features(self) -> list[int]:
        """Features that some split compares, in order."""
        return [int(each) for each in np.unique(self.feature[self.feature >= 0])]

    def levels(self) -> list[Ints]:
        """The nodes at each distance from their roots."""
        found, level = [], self.roots
        while len(level):
            found.append(level)
            inner = level[self.feature[level] >= 0]
            level = np.concatenate([self.left[inner], self.right[inner]])
        return found

    def heights(self) -> Ints:
        """For each node the number of comparisons on the longest way to a leaf."""
        heights = np.zeros(len(self.feature), dtype=np.int64)
        for level in reversed(self.levels()):
            inner = level[self.feature[level] >= 0]
            heights[inner] = 1 + np.maximum(heights[self.left[inner]], heights[self.right[inner]])
        return heights

    def restricted(
        self, ranges: Mapping[int, tuple[float, float]], never_missing: Collection[int] = ()
    ) -> Ensemble:
        """The same function for rows whose features lie in closed ranges, without the branches that no such row takes.

        A range with a finite upper end holds neither NULL nor NaN (NaN is above all numbers); of the others, only features in
        `never_missing` are known to have none.
        """
        target = np.arange(len(self.feature))
        for feature, (low, high) in ranges.items():
            may_miss = bool(np.isinf(high)) and feature not in never_missing
            may_miss |= feature in self.zero_is_missing and low <= ALMOST_ZERO and high >= -ALMOST_ZERO
            nodes = np.flatnonzero(self.feature == feature)
            if self.single:
                low, high = (float(np.float32(each)) for each in (low, high))
            is_numeric = self.category_set[nodes] < 0
            all_left = is_numeric & (high <= self.threshold[nodes])
            all_right = is_numeric & (low > self.threshold[nodes])
            for place in np.flatnonzero(~is_numeric):
                goes_left = self._categories_left(int(self.category_set[nodes[place]]), low, high)
                all_left[place], all_right[place] = goes_left.all(), not goes_left.any()
            if may_miss:
                all_left &= self.missing_left[nodes]
                all_right &= ~self.missing_left[nodes]
            target[nodes[all_left]] = self.left[nodes[all_left]]
            target[nodes[all_right]] = self.right[nodes[all_right]]
        while not np.array_equal(further := target[target], target):
            target = further
        return replace(
            self, left=target[self.left], right=target[self.right], roots=target[self.roots]
        )._reachable()

    def _categories_left(self, which: int, low: float, high: float) -> Bools:
        """Of the categories in a range, and of other numbers if it has some, which go left."""
        categories = self.sets[which]
        count = len(categories) - 1
        first, last = max(np.trunc(low), 0.0), min(np.trunc(high), count - 1.0)
        inside = categories[int(first) : int(last) + 1] if first <= last else categories[:0]
        return inside if low >= 0 and high < count else np.append(inside, categories[-1])

    def _reachable(self) -> Ensemble:
        """Without the nodes that no root leads to."""
        kept = np.unique(np.concatenate(self.levels()))
        number = np.zeros(len(self.feature), dtype=np.int64)
        number[kept] = np.arange(len(kept))
        nodes = {name: getattr(self, name)[kept] for name in _TYPES}
        nodes |= {name: number[nodes[name]] for name in ("left", "right")}
        return replace(self, **nodes, roots=number[self.roots])


_TYPES = {
    "feature": np.int64,
    "threshold": np.float64,
    "missing_left": np.bool_,
    "left": np.int64,
    "right": np.int64,
    "values": np.float64,
    "category_set": np.int64,
}


def ensemble_of(trees: Sequence[Tree], outputs: Sequence[int], base: Any, **rest: Any) -> Ensemble:
    """Trees one after the other. `outputs` and `rest` as in `Ensemble`. Raises UnsupportedError if there are no trees."""
    if not trees:
        raise UnsupportedError("the ensemble has no trees")
    sizes = [len(tree.feature) for tree in trees]
    starts = np.cumsum([0, *sizes[:-1]])
    nodes: dict[str, list[Any]] = {name: [] for name in _TYPES}
    for tree, start, size in zip(trees, starts, sizes, strict=True):
        for name, parts in nodes.items():
            given = getattr(tree, name)
            part = np.full(size, -1) if given is None else np.asarray(given, dtype=_TYPES[name])
            if name in ("left", "right"):
                part = np.where(np.asarray(tree.feature) >= 0, part + start, 0)
            parts.append(part.reshape(size, -1) if name == "values" else part)
    joined: dict[str, Any] = {name: np.concatenate(parts) for name, parts in nodes.items()}
    return Ensemble(
        **joined,
        roots=starts.astype(np.int64),
        outputs=np.asarray(outputs, dtype=np.int64),
        base=np.atleast_1d(np.asarray(base, dtype=np.float64)),
        **rest,
    )
