"""Reductions: what an aggregate keeps of the rows of a group, batch by batch, and how two of its states become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tqp.operators.groups import aggregates, distinct_sets
from tqp.operators.groups.distinct_sets import ValueRange
from tqp.operators.joins.pairs import mark_rows
from tqp.operators.memory import allocation
from tqp.operators.numbers import wide
from tqp.operators.string_keys import codes as string_codes
from tqp.runtime.frame import Frame, FrameColumn


@dataclass(frozen=True, slots=True)
class Reduction:
    """One accumulator. `column` is the frame column it reads, -1 for none (count_star, present)."""

    kind: str  # a key of _MERGES, or one that `reduce_collected` knows
    column: int = -1
    distinct: bool = False
    value_range: tuple[int, int] = (0, 1)  # of what sum and count add up
    domain: ValueRange | None = None  # of the values of a DISTINCT whose groups can keep sets of them
    reduced: bool = False  # the column is one value, which the graph has made of all rows of a batch
    tables: tuple[tuple[int, ...] | None, ...] = ()  # of a FactoredSum

    @property
    def folds(self) -> bool:
        """Can it be computed batch by batch?"""
        return self.is_mergeable and (not self.distinct or self.domain is not None)

    @property
    def is_mergeable(self) -> bool:
        return self.kind in _MERGES


#: Reductions that fold batch by batch, and what merges two of their states.
_MERGES = {
    "count_star": "add",
    "count": "add",
    "sum": "add",
    "sum_float": "add",
    "sum_wide": "add_wide",
    "min": "amin",
    "max": "amax",
    "reference": "amax",  # any row of the group, the same for any number of threads
    "bool_and": "and",
    "bool_or": "or",
    "present": "or",
}
#: What reduces all rows, and what batches came to, by kind of reduction; `least` and `greatest` are of strings.
OF_ALL_ROWS: dict[str, Callable[..., Any]] = {
    "count_star": aggregates.sum_all,
    "count": aggregates.sum_all,
    "sum": aggregates.sum_all,
    "sum_float": aggregates.sum_all,
    "sum_wide": aggregates.sum_wide_all,
    "min": aggregates.min_all,
    "max": aggregates.max_all,
    "reference": aggregates.max_all,
    "bool_and": aggregates.bool_and_all,
    "bool_or": aggregates.bool_or_all,
    "least": string_codes.least_of_all,
    "greatest": string_codes.greatest_of_all,
}
#: Integer sums, which may share accumulators.
PACKED = ("count_star", "count", "sum")


def fold(reduction: Reduction, frame: Frame, ids: Tensor, size: int, out: Tensor | None) -> Tensor:
    """One reduction over one batch, into `out` if there is one."""
    values: Any = None
    validity: Tensor | None = None
    if reduction.column >= 0:
        values, validity = frame.columns[reduction.column]
    match reduction.kind:
        case "count_star":
            return aggregates.count_by_group(ids, size, None, out)
        case "count":
            return aggregates.count_by_group(ids, size, validity, out)
        case "present":
            table = allocation.zeros(size, torch.bool, ids.device) if out is None else out
            return mark_rows(table, ids)
        case "sum" | "sum_float":
            return aggregates.sum_by_group(values, ids, size, validity, out)
        case "sum_wide":
            sums = wide.sum_by_group(_zero_if_null(values, validity), ids.to(torch.int64), size)
            return sums if out is None else wide.add(out, sums)
        case "min":
            return aggregates.min_by_group(values, ids, size, validity, out)
        case "max" | "reference":
            return aggregates.max_by_group(values, ids, size, validity, out)
        case "bool_and":
            return aggregates.bool_and_by_group(values, ids, size, validity, out)
        case _:
            return aggregates.bool_or_by_group(values, ids, size, validity, out)


def summands(reduction: Reduction, frame: Frame) -> Any:
    """What an integer sum adds up, a tensor or an array as in the frame; None where every row counts one."""
    if reduction.kind == "count_star":
        return None
    values: Any
    values, validity = frame.columns[reduction.column]
    if reduction.kind == "count":
        return validity
    return values if validity is None else values * validity


def _zero_if_null(values: Tensor, validity: Tensor | None) -> Tensor:
    if validity is None:
        return values
    return values * (validity if values.dim() == 1 else validity.unsqueeze(1))


def value_of_batch(reduction: Reduction, frame: Frame) -> Any:
    """What the rows of one batch came to, which the graph has reduced, a tensor or an array; None of DISTINCT values."""
    assert reduction.reduced or reduction.distinct
    return None if reduction.distinct else frame.columns[reduction.column].values


def merge_states(reduction: Reduction, a: Tensor, b: Tensor) -> Tensor:
    """Of the same groups, of which other batches were folded into `b`. May change `a`."""
    if reduction.distinct:
        return a if a is b else distinct_sets.merge_sets(a, b)
    match _MERGES[reduction.kind]:
        case "add":
            return a + b
        case "add_wide":
            return wide.add(a, b)
        case "and":
            return a & b
        case "or":
            return a | b
        case "amin":
            return aggregates.merge_extremes(a, b, "amin")
        case _:
            return aggregates.merge_extremes(a, b, "amax")


def add_distinct(
    reduction: Reduction, frame: Frame, ids: Tensor | None, size: int, sets: Tensor | None,
    kept: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The sets of values that the groups have, with those of one batch; see `distinct_sets`."""
    assert reduction.domain is not None
    values, validity = frame.columns[reduction.column]
    assert isinstance(values, Tensor)
    if kept is not None:
        validity = kept if validity is None else kept & validity
    return distinct_sets.add_values(sets, values, ids, size, reduction.domain, validity)


def reduce_distinct(reduction: Reduction, sets: Tensor, size: int) -> Tensor:
    """One value per group, of its set of values."""
    assert reduction.domain is not None
    if reduction.kind == "count":
        return distinct_sets.count_values(sets, size)
    values, ids = distinct_sets.set_values(sets, reduction.domain)
    frame = Frame(ids.shape[0], (FrameColumn(values, None),))
    return fold(Reduction(reduction.kind, 0), frame, ids, size, None)
