"""Some trees of an ensemble, side by side: the tables of masks for their upper parts, the nodes below, and how they run."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from tqp.core.errors import UnsupportedError
from tqp.ml.trees.bins import left_bins
from tqp.ml.trees.ensemble import Ensemble, Floats, Ints, Masks

EXITS = 32

#: Up to how many levels below the exits subtrees are made complete, which doubles the nodes with each.
_COMPLETE_LEVELS = 4

#: After how many levels of a long walk rows at leaves are put aside.
_ASIDE = 3

#: Rows that are walked at once. Columns that are a power of two apart would share their places in the cache.
_STRIDES = (4112, 2064, 1040, 528)


@dataclass(frozen=True)
class Column:
    """A column that nodes below the exits compare: bins of a feature, with the missing one below or above all others; or,
    for a set of categories, 0 for those that go left and 1."""

    feature: int
    category_set: int
    missing_left: bool


@dataclass
class Upper:
    """The upper part of one tree: its exits from left to right, and for each split above them the exits on both sides."""

    exits: list[int]
    splits: list[tuple[int, int, int]]


class Part(nn.Module):
    """Up to some hundred trees. Built by `make_part`."""

    def __init__(
        self,
        maps: Mapping[int, Ints],
        tables: Mapping[int, Masks],
        columns: Mapping[Column, Ints],
        nodes: Sequence[Ints],
        layout: Layout,
        values: Floats,
        outputs: Ints,
    ) -> None:
        """`maps`: from bins of a feature to rows of its table, int32 masks [rows, trees]. `columns`: from bins to what nodes
        compare. `nodes` [ids], of each level or of all: see `Layout`. `values` [ids, w] of leaves."""
        super().__init__()
        self.features = list(maps)
        self.columns = list(columns)
        self.trees = len(outputs)
        self.layout = layout
        for feature in self.features:
            self.register_buffer(f"map{feature}", torch.from_numpy(maps[feature].astype(np.int32)))
            self.register_buffer(f"table{feature}", torch.from_numpy(tables[feature]))
        for place, column in enumerate(self.columns):
            self.register_buffer(f"column{place}", torch.from_numpy(columns[column].astype(layout.dtype)))
        for place, some in enumerate(nodes):
            self.register_buffer(f"nodes{place}", torch.from_numpy(some.astype(layout.dtype)))
        self.offsets = nn.Buffer(torch.arange(self.trees, dtype=torch.int32) * EXITS)
        self.is_vector = values.shape[1] > 1
        bits = (
            values.astype(np.float32).view(np.int32) if self.is_vector else values[:, 0].copy().view(np.int64)
        )
        self.value_bits = nn.Buffer(torch.from_numpy(bits))
        # Trees of one output stand together.
        edges = [0, *(np.flatnonzero(np.diff(outputs)) + 1).tolist(), self.trees]
        self.spans = [(int(outputs[a]), a, b) for a, b in pairwise(edges)]

    @property
    def cost(self) -> float:
        """Nanoseconds for a row."""
        each = 0.3 * len(self.features) + 1.2 + 2.3 * self.layout.levels + (1.0 if self.is_vector else 0.0)
        return self.trees * each + len(self.features) + 2.0 * len(self.columns)

    def add_to(self, result: Tensor, bins: Mapping[int, Tensor], words: int, in_cache: bool) -> None:
        """Adds the trees' leaves to `result`, float64 [n, outputs]. `words`: how many rows times trees to work on at once;
        `in_cache`: fewer where rows are walked, for what they compare to stay in the cache."""
        rows, layout = result.shape[0], self.layout
        step = max(1, min(rows, words // self.trees))
        if self.columns and in_cache:
            step = min(step, layout.stride)
        codes = [torch.index_select(self.get_buffer(f"map{each}"), 0, bins[each]) for each in self.features]
        tables = [self.get_buffer(f"table{each}") for each in self.features]
        # Memory that is used again is in the cache, and there for the system.
        masks = result.new_empty((step, self.trees), dtype=torch.int32)
        fetched = torch.empty_like(masks)
        space = matrix = result.new_empty(0)
        if self.columns:
            dtype = self.get_buffer("column0").dtype
            space = result.new_empty((4, step * self.trees), dtype=dtype)
            matrix = result.new_empty((len(self.columns), max(step, layout.stride)), dtype=dtype)
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            if stop - start < step:
                masks, fetched = masks[: stop - start], fetched[: stop - start]
            torch.index_select(tables[0], 0, codes[0][start:stop], out=masks)
            for table, code in zip(tables[1:], codes[1:], strict=True):
                torch.index_select(table, 0, code[start:stop], out=fetched)
                masks &= fetched
            # The id of the only bit that is set, from the exponent of the number that a mask is.
            state = fetched.view(torch.float32).copy_(masks).view(torch.int32)
            state >>= 23
            state &= EXITS - 1
            state += self.offsets
            if self.columns:
                for place, column in enumerate(self.columns):
                    shown, some = self.get_buffer(f"column{place}"), bins[column.feature][start:stop]
                    torch.index_select(shown, 0, some, out=matrix[place, : stop - start])
                if layout.child_bits:
                    state = self._walk_far(state, matrix, space, in_cache)
                else:
                    state = self._walk(state, matrix, space)
            self._add(result[start:stop], state)

    def _walk(self, state: Tensor, matrix: Tensor, space: Tensor) -> Tensor:
        """From exits to leaves [n, trees]; see `Layout` for the arithmetic. `matrix`: what nodes compare [columns, at least n];
        `space` [4, at least n * trees]."""
        layout = self.layout
        rows = torch.arange(state.shape[0], dtype=matrix.dtype, device=matrix.device)[:, None]
        node, value, place, _ = space[:, : state.numel()]
        for level in range(layout.levels):
            torch.index_select(self.get_buffer(f"nodes{level}"), 0, state.view(-1), out=node)
            self._compare(node, rows, state.shape, matrix, place, value)
            torch.add(value.view(state.shape), state, alpha=2, out=state)
        return state

    def _walk_far(self, state: Tensor, matrix: Tensor, space: Tensor, in_cache: bool) -> Tensor:
        """As `_walk`, by numbered nodes. On CPUs, what has come to a leaf is put aside now and then."""
        layout, shape = self.layout, state.shape
        rows = torch.arange(shape[0], dtype=matrix.dtype, device=matrix.device).repeat_interleave(shape[1])
        current, found, which = state.view(-1), state, None
        nodes = self.get_buffer("nodes0")
        for level in range(layout.levels):
            node, spare, value, place = space[:, : current.numel()]
            if level % 2:
                node, spare = spare, node
            torch.index_select(nodes, 0, current, out=node)
            self._compare(node, rows, rows.shape, matrix, place, value)
            node >>= layout.place_bits
            node &= (1 << layout.child_bits) - 1
            node += value
            if in_cache and level % _ASIDE == _ASIDE - 1 and level + 1 < layout.levels:
                # Only a leaf is its own child.
                moving = torch.from_numpy(np.flatnonzero(np.not_equal(node.numpy(), current.numpy())))
                if which is None:
                    found, which = node.clone(), moving
                else:
                    found.index_copy_(0, which, node)
                    which = torch.index_select(which, 0, moving)
                current, rows = torch.index_select(node, 0, moving), torch.index_select(rows, 0, moving)
            else:
                current = node
        return (current if which is None else found.index_copy_(0, which, current)).view(shape)

    def _compare(
        self, node: Tensor, rows: Tensor, shape: torch.Size, matrix: Tensor, place: Tensor, value: Tensor
    ) -> None:
        """Makes `value` 1 where the value that a node compares is above its limit, else 0; `place` is overwritten."""
        torch.bitwise_and(node, (1 << self.layout.place_bits) - 1, out=place)
        if matrix.shape[1] > self.layout.stride:
            place.div_(self.layout.stride, rounding_mode="floor").mul_(matrix.shape[1])
        grid = place.view(shape)
        grid += rows
        torch.index_select(matrix.view(-1), 0, place, out=value)
        value.gt_(node)

    def _add(self, result: Tensor, state: Tensor) -> None:
        if self.is_vector:
            values = self.value_bits.view(torch.float32)
            result += nn.functional.embedding_bag(state, values, mode="sum")
            return
        values = self.value_bits.view(torch.float64)
        leaves = torch.index_select(values, 0, state.view(-1)).view(state.shape)
        for output, start, stop in self.spans:
            result[:, output] += leaves[:, start:stop].sum(1)


@dataclass(frozen=True)
class Layout:
    """How a node below the exits is one integer: limit | first child | place, from the highest bits to the lowest.

    Values are shifted up to the limit's place, so that value > node says value > limit, whatever the lower bits are. `place` is where
    the column begins that the node compares, `stride` after the one before. The second child is the one after the first. A leaf is its own child, with a limit that no value is above. Of few
    levels, every subtree is made complete: node i of a level has the children 2i and 2i + 1 of the next, no bits are
    needed for them, and each level's nodes are small enough for the fastest cache.
    """

    levels: int
    limit_bits: int
    child_bits: int
    columns: int

    @property
    def stride(self) -> int:
        """Rows that are worked on at once: as many as leave a node in 32 bits, where these are enough."""
        free = 31 - self.limit_bits - self.child_bits
        fitting = [rows for rows in _STRIDES if (rows * self.columns).bit_length() <= free]
        return fitting[0] if fitting else _STRIDES[0]

    @property
    def place_bits(self) -> int:
        return (self.stride * self.columns).bit_length()

    @property
    def shift(self) -> int:
        return self.place_bits + self.child_bits

    @property
    def dtype(self) -> type[np.int32 | np.int64]:
        return np.int32 if self.limit_bits + self.shift <= 31 else np.int64


def make_part(ensemble: Ensemble, heights: Ints, ranks: Ints, counts: Mapping[int, int], trees: Ints) -> Part:
    """The part with some trees. `ranks`: for each node the last bin that goes left; `counts`: bins of each feature."""
    uppers = [_upper(ensemble, heights, int(root)) for root in ensemble.roots[trees]]
    maps, tables = _tables(ensemble, ranks, counts, uppers)
    nodes, columns, layout, node_of = _below(ensemble, heights, ranks, counts, uppers)
    return Part(maps, tables, columns, nodes, layout, ensemble.values[node_of], ensemble.outputs[trees])


def _upper(ensemble: Ensemble, heights: Ints, root: int) -> Upper:
    """Up to 32 exits, so that what is left below them is as low as possible: the highest is opened first."""
    heap = [(-int(heights[root]), root)]
    opened = set()
    while len(heap) < EXITS and heap[0][0] < 0:
        _, node = heapq.heappop(heap)
        opened.add(node)
        for child in (int(ensemble.left[node]), int(ensemble.right[node])):
            heapq.heappush(heap, (-int(heights[child]), child))
    upper = Upper([], [])

    def visit(node: int) -> int:
        if node not in opened:
            upper.exits.append(node)
            return 1 << (len(upper.exits) - 1)
        left, right = visit(int(ensemble.left[node])), visit(int(ensemble.right[node]))
        upper.splits.append((node, left, right))
        return left | right

    visit(root)
    return upper


def _tables(
    ensemble: Ensemble, ranks: Ints, counts: Mapping[int, int], uppers: Sequence[Upper]
) -> tuple[dict[int, Ints], dict[int, Masks]]:
    """For each feature that the upper parts compare: from its bins to rows of a table, and the table of open exits."""
    by_feature: dict[int, list[tuple[int, int, tuple[int, int, bool], int, int]]] = {}
    for tree, upper in enumerate(uppers):
        for node, left, right in upper.splits:
            kind = int(ranks[node]), int(ensemble.category_set[node]), bool(ensemble.missing_left[node])
            by_feature.setdefault(int(ensemble.feature[node]), []).append((tree, node, kind, left, right))
    everything = np.array([(1 << len(upper.exits)) - 1 for upper in uppers], dtype=np.uint32)
    maps, tables = {}, {}
    for feature, splits in sorted(by_feature.items()):
        # Bins that no split of these trees tells apart share a row.
        kinds = {kind: node for _, node, kind, _, _ in splits}
        sides = {kind: left_bins(ensemble, node, kind[0], counts[feature]) for kind, node in kinds.items()}
        _, firsts, rows = np.unique(
            np.packbits(np.stack(list(sides.values())), axis=0),
            axis=1,
            return_index=True,
            return_inverse=True,
        )
        table = np.repeat(everything[:, None], len(firsts), axis=1)
        for tree, _, kind, left, right in splits:
            open_exits = np.where(
                sides[kind][firsts], np.uint32(~right & 0xFFFFFFFF), np.uint32(~left & 0xFFFFFFFF)
            )
            table[tree] &= open_exits
        maps[feature] = rows.reshape(-1).astype(np.int64)
        tables[feature] = np.ascontiguousarray(table.T).view(np.int32)
    return maps, tables


def _below(
    ensemble: Ensemble, heights: Ints, ranks: Ints, counts: Mapping[int, int], uppers: Sequence[Upper]
) -> tuple[list[Ints], dict[Column, Ints], Layout, Ints]:
    """Exits and the nodes below them: as integers, the columns that they compare; and for each id of a leaf its node."""
    # An exit's id is found from the exponent of its mask as a float, which is 127 more than the bit's number.
    exits = np.repeat(np.array([upper.exits[0] for upper in uppers]), EXITS)
    for tree, upper in enumerate(uppers):
        exits[(np.arange(len(upper.exits)) + 127) % EXITS + tree * EXITS] = upper.exits
    levels = int(heights[exits].max())
    is_complete = levels <= _COMPLETE_LEVELS
    ids, first_child = _complete(ensemble, exits, levels) if is_complete else _numbered(ensemble, exits)
    inner = np.concatenate(ids[:-1]) if len(ids) > 1 else exits[:0]
    inner = np.unique(inner[ensemble.feature[inner] >= 0])
    columns: dict[Column, Ints] = {}
    column_of, limit = np.zeros((2, len(ensemble.feature)), dtype=np.int64)
    keys = np.stack([ensemble.feature, ensemble.category_set, ensemble.missing_left], axis=1)[inner]
    kinds, kind_of = np.unique(keys, axis=0, return_inverse=True)
    column_of[inner] = kind_of.reshape(-1)
    highest = 1
    for place, (feature, category_set, missing_left) in enumerate(kinds.tolist()):
        count = counts[feature]
        if category_set < 0:
            shown = np.arange(count)
            if missing_left:
                shown[-1] = 0
        else:
            first = int(inner[column_of[inner] == place][0])
            shown = (~left_bins(ensemble, first, 0, count)).astype(np.int64)
        highest = max(highest, int(shown.max()))
        columns[Column(feature, category_set, bool(missing_left))] = shown
    child_bits = 0 if is_complete else len(ids[-1]).bit_length()
    layout = Layout(levels, highest.bit_length(), child_bits, max(1, len(columns)))
    if layout.limit_bits + layout.shift > 63:
        raise UnsupportedError("the trees have too many nodes")
    limit[inner] = ranks[inner]
    limit[ensemble.feature < 0] = (1 << layout.limit_bits) - 1
    words = limit << layout.shift | column_of * layout.stride
    if is_complete:
        nodes = [words[some] for some in ids[:-1]]
    else:
        nodes = [words[ids[0]] | first_child << layout.place_bits]
    return nodes, {column: shown << layout.shift for column, shown in columns.items()}, layout, ids[-1]


def _complete(ensemble: Ensemble, exits: Ints, levels: int) -> tuple[list[Ints], Ints]:
    """The nodes of each level; below a leaf it stands again, as its own first child and, never reached, its second."""
    ids = [exits]
    for _ in range(levels):
        level = ids[-1]
        is_leaf = ensemble.feature[level] < 0
        left, right = (np.where(is_leaf, level, child[level]) for child in (ensemble.left, ensemble.right))
        ids.append(np.stack([left, right], axis=1).reshape(-1))
    return ids, exits[:0]


def _numbered(ensemble: Ensemble, exits: Ints) -> tuple[list[Ints], Ints]:
    """The node of each id (twice, for nodes and leaves), and each id's first child."""
    levels, children, start, level = [], [], 0, exits
    while len(level):
        levels.append(level)
        is_inner = ensemble.feature[level] >= 0
        child = np.arange(start, start + len(level))
        start += len(level)
        child[is_inner] = start + 2 * np.arange(is_inner.sum())
        children.append(child)
        inner = level[is_inner]
        level = np.stack([ensemble.left[inner], ensemble.right[inner]], axis=1).reshape(-1)
    ids = np.concatenate(levels)
    return [ids, ids], np.concatenate(children)
