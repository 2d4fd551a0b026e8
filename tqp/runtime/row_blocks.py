"""Conditions of many rows on the CPU, computed block by block, so that what is compared and combined stays in the caches.

A pipeline's batches are long, as each call may wait for the interpreter lock; the masks of a long batch come from memory
again for each step of a condition. Six comparisons of three columns and what combines them take 1.25 ns a row in batches of
3 million, 0.9 in blocks of 524,288 (see docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tqp.operators.call_operations import operation_of
from tqp.operators.memory.arrays import Array
from tqp.runtime.graph import Graph, Node, nodes_in

#: Rows of a block: two masks of one fit into the second cache; shorter calls would meet at the interpreter lock too often.
BLOCK_ROWS = 524_288
#: Fewer calls have too little in between that could stay in the caches.
_FEWEST_CALLS = 3


def conditions(graph: Graph) -> dict[Node, list[Node]]:
    """Masks that are better computed in blocks, each with the calls that nothing but it needs, itself the last one."""
    readers: dict[Node, set[Node | None]] = {}
    for node in graph.nodes:
        for used in node.uses():
            readers.setdefault(used, set()).add(node)
    for node in nodes_in(graph.outputs):
        readers.setdefault(node, set()).add(None)
    root_of: dict[Node | None, Node | None] = {}
    found: dict[Node, list[Node]] = {}
    for node in reversed(graph.nodes):
        operation = operation_of(node.target)
        if not operation.is_row_by_row:
            continue
        roots = {root_of.get(reader) for reader in readers[node]}
        root = roots.pop() if len(roots) == 1 else None
        if root is None and operation.is_mask:
            root = node
        if root is not None:
            root_of[node] = root
            found.setdefault(root, []).insert(0, node)
    return {root: calls for root, calls in found.items() if len(calls) >= _FEWEST_CALLS}


def in_blocks(condition: Callable[..., Array], values: Sequence[Any]) -> Array:
    """`condition(*values)`, [n], of arrays [n] and of what is the same for all rows, which its calls take row by row."""
    num_rows = max((len(value) for value in values if _has_rows(value)), default=0)
    if num_rows <= BLOCK_ROWS:
        return condition(*values)
    per_row = [_has_rows(value) and len(value) == num_rows for value in values]
    result: Array | None = None
    for start in range(0, num_rows, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        block = condition(
            *(value[rows] if cut else value for value, cut in zip(values, per_row, strict=True))
        )
        if result is None:
            result = np.empty(num_rows, block.dtype)
        result[rows] = block
    assert result is not None
    return result


def _has_rows(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0
