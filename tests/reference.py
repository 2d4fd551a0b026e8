"""Slow, readable reference implementations of the relational operators, on Python lists with None for NULL.

What a fast kernel must agree with: each function says what SQL says, one row at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Key = Any  # a value, or a tuple of values; None (alone or inside a tuple) is NULL


def has_null(key: Key) -> bool:
    return key is None or (isinstance(key, tuple) and None in key)


def join_pairs(probe: Sequence[Key], build: Sequence[Key]) -> list[tuple[int, int]]:
    """All pairs (probe row, build row) with equal keys; NULL equals nothing."""
    return [
        (i, j)
        for i, left in enumerate(probe)
        for j, right in enumerate(build)
        if not has_null(left) and not has_null(right) and left == right
    ]


def join(
    join_type: str, num_probe: int, num_build: int, pairs: list[tuple[int, int]]
) -> list[tuple[int | None, int | None]]:
    """The rows of a join of a given type, from its matching pairs: (probe row, build row), None for padding.

    Types: inner, left, right, full, semi, anti (the last two give the probe row alone).
    """
    probe_matched = {i for i, _ in pairs}
    build_matched = {j for _, j in pairs}
    if join_type == "semi":
        return [(i, None) for i in range(num_probe) if i in probe_matched]
    if join_type == "anti":
        return [(i, None) for i in range(num_probe) if i not in probe_matched]
    rows: list[tuple[int | None, int | None]] = []
    for i in range(num_probe):
        rows += [(left, right) for left, right in pairs if left == i]
        if i not in probe_matched and join_type in ("left", "full"):
            rows.append((i, None))
    if join_type in ("right", "full"):
        rows += [(None, j) for j in range(num_build) if j not in build_matched]
    return rows


def is_in(value: Any, items: Sequence[Any]) -> bool | None:
    """`value IN (items)`: true, false, or NULL (None)."""
    if not items:
        return False
    if value is None:
        return None
    if value in [item for item in items if item is not None]:
        return True
    return None if None in items else False


def group_ids(keys: Sequence[Key]) -> tuple[list[int], list[int]]:
    """(a group id per row, the first row per group); NULLs are equal; ids in order of first appearance."""
    ids: dict[Any, int] = {}
    first_rows: list[int] = []
    result = []
    for row, key in enumerate(keys):
        name = "NaN" if isinstance(key, float) and math.isnan(key) else key
        if name not in ids:
            ids[name] = len(ids)
            first_rows.append(row)
        result.append(ids[name])
    return result, first_rows


def aggregate(
    function: Callable[[list[Any]], Any], values: Sequence[Any], ids: Sequence[int], num_groups: int
) -> list[Any]:
    """`function` of the values that are not NULL, group by group; None for a group without any."""
    groups: list[list[Any]] = [[] for _ in range(num_groups)]
    for value, group in zip(values, ids, strict=True):
        if value is not None:
            groups[group].append(value)
    return [function(group) if group else None for group in groups]


def float_order(value: float) -> tuple[bool, float]:
    """Sort key of floats: NaN is greater than infinity and equal to itself."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def least(values: list[Any]) -> Any:
    return min(values, key=float_order) if isinstance(values[0], float) else min(values)


def greatest(values: list[Any]) -> Any:
    return max(values, key=float_order) if isinstance(values[0], float) else max(values)


def median(values: list[Any]) -> float:
    ordered = sorted(values)
    return float(ordered[(len(ordered) - 1) // 2]) * 0.5 + float(ordered[len(ordered) // 2]) * 0.5


def variance_population(values: list[Any]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)


def sort_rows(columns: Sequence[tuple[Sequence[Any], bool, bool]]) -> list[int]:
    """Row order of ORDER BY columns (values, descending, nulls_first); ties keep their order."""
    order = list(range(len(columns[0][0])))
    for values, descending, nulls_first in reversed(columns):
        nulls = [row for row in order if values[row] is None]
        others = [row for row in order if values[row] is not None]
        floats = any(isinstance(values[row], float) for row in others)
        # sorted(reverse=True) keeps the order of ties, as a stable descending sort does
        others.sort(
            key=lambda row: float_order(values[row]) if floats else values[row],
            reverse=descending,
        )
        order = nulls + others if nulls_first else others + nulls
    return order
