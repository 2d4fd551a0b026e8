"""Search for the cheapest order of joins: dynamic programming over connected sets, greedy for many relations."""

from __future__ import annotations

from tqp.planner.rules.joins.graph import JoinGraph, JoinTree

#: Up to here every order is tried (3^n / 2 splits at worst).
_MOST_FOR_DYNAMIC_PROGRAMMING = 9

# Cost of a row in nanoseconds, roughly: a look-up, a row put into a table, a row of the result.
_PROBE = 1.0
_BUILD = 3.0
_OUTPUT = 1.0


def best_tree(graph: JoinGraph) -> JoinTree:
    """The cheapest tree that joins all relations, without cross products as far as the graph is connected."""
    leaves = [JoinTree(1 << i, rows, 0.0) for i, rows in enumerate(graph.rows)]
    trees = []
    for component in _components(graph):
        members = [leaf for leaf in leaves if leaf.mask & component]
        small = len(members) <= _MOST_FOR_DYNAMIC_PROGRAMMING
        trees.append(_dynamic(graph, members, component) if small else _greedy(graph, members))
    trees.sort(key=lambda tree: (tree.rows, tree.mask))
    result = trees[0]
    for tree in trees[1:]:
        result = _join(graph, result, tree)
    return result


def _components(graph: JoinGraph) -> list[int]:
    rest, components = (1 << len(graph.rows)) - 1, []
    while rest:
        components.append(graph.reachable(rest.bit_length() - 1))
        rest &= ~components[-1]
    return components


def _join(graph: JoinGraph, first: JoinTree, second: JoinTree) -> JoinTree:
    """Join two trees, the smaller as build side."""
    if (first.rows, second.mask) < (second.rows, first.mask):
        first, second = second, first
    rows = graph.join_rows(first, second)
    cost = first.cost + second.cost + _join_cost(graph, first, second) + _OUTPUT * rows
    return JoinTree(first.mask | second.mask, rows, cost, first, second)


def _join_cost(graph: JoinGraph, high: JoinTree, low: JoinTree) -> float:
    """Of finding the pairs, `low` having fewer rows: by a build on it, or by the index that one of the two has."""
    by_index = min(graph.index_cost(low, high), graph.index_cost(high, low))
    return min(_PROBE * high.rows + _BUILD * low.rows, by_index)


def _dynamic(graph: JoinGraph, leaves: list[JoinTree], component: int) -> JoinTree:
    best: dict[int, JoinTree] = {leaf.mask: leaf for leaf in leaves}
    adjacent: dict[int, int] = {mask: graph.adjacent(mask) for mask in best}
    by_size: list[list[int]] = [[], list(best)]
    # Grow connected sets by size; every one of size n is one of size n - 1 with a neighbour.
    for size in range(2, len(leaves) + 1):
        grown: dict[int, None] = {}
        for mask in by_size[size - 1]:
            around = adjacent[mask] & ~mask
            while around:
                lowest = around & -around
                grown[mask | lowest] = None
                around ^= lowest
        by_size.append(list(grown))
        for mask in grown:
            lowest = mask & -mask
            adjacent[mask] = (
                adjacent[mask ^ lowest] | adjacent[lowest]
                if mask ^ lowest in adjacent
                else graph.adjacent(mask)
            )
            best[mask] = _best_split(graph, best, mask)
    return best[component]


def _best_split(graph: JoinGraph, best: dict[int, JoinTree], mask: int) -> JoinTree:
    """The cheapest pair of connected sets that make up `mask`. Its rows are those of the first pair found."""
    lowest = mask & -mask
    rest = mask ^ lowest
    chosen: JoinTree | None = None
    rows = -1.0
    part = rest
    while part:  # every non-empty subset of `rest`, so that each pair is met once
        other = mask ^ part
        first, second = best.get(part), best.get(other)
        if first is not None and second is not None:
            if rows < 0.0:
                rows = graph.join_rows(first, second)
            low, high = (first, second) if first.rows < second.rows else (second, first)
            cost = low.cost + high.cost + _join_cost(graph, high, low) + _OUTPUT * rows
            if chosen is None or cost < chosen.cost:
                chosen = JoinTree(mask, rows, cost, high, low)
        part = (part - 1) & rest
    assert chosen is not None, "a connected set has a connected split"
    return chosen


def _greedy(graph: JoinGraph, leaves: list[JoinTree]) -> JoinTree:
    """Join the connected pair with the fewest rows, again and again."""
    trees = list(leaves)
    pairs: dict[tuple[int, int], JoinTree] = {}
    while len(trees) > 1:
        chosen: JoinTree | None = None
        for i, first in enumerate(trees):
            around = graph.adjacent(first.mask)
            for second in trees[i + 1 :]:
                if not around & second.mask:
                    continue
                key = (first.mask, second.mask)
                joined = pairs.get(key)
                if joined is None:
                    joined = pairs[key] = _join(graph, first, second)
                if chosen is None or joined.rows < chosen.rows:
                    chosen = joined
        assert chosen is not None, "the graph is connected"
        trees = [tree for tree in trees if not tree.mask & chosen.mask]
        trees.append(chosen)
    return trees[0]
