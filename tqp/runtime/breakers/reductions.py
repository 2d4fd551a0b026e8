"""Reductions: what an aggregate keeps of the rows of a group, batch by batch, and how two of its states become one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from tqp.operators.groups import distinct_sets
from tqp.operators.groups.bit_strings import BitRange
from tqp.operators.groups.distinct_sets import ValueRange
from tqp.operators.groups.folds import FOLDS
from tqp.operators.groups.moments import POWERS
from tqp.operators.groups.runs import REDUCED_TWICE, fold_runs
from tqp.operators.rows.runs import Runs
from tqp.operators.string_keys import codes as string_codes
from tqp.operators.strings.join_groups import join_all
from tqp.planner.physical.plan import Table
from tqp.runtime.frame import Frame, FrameColumn

#: The columns by which rows are ordered inside a call: column, descending, NULLs first.
Order = tuple[tuple[int, bool, bool], ...]


@dataclass(frozen=True, slots=True)
class Reduction:
    """One accumulator. `column` is the frame column it reads, -1 for none (count_star, present)."""

    kind: str  # a key of FOLDS, or one that `GroupedRows` knows
    column: int = -1
    distinct: bool = False
    key: int = -1  # the column that compares as its values do, where these are nested; -1: its own
    others: tuple[int, ...] = ()  # columns that it reads as well
    whole: tuple[int, ...] = ()  # the columns that are DISTINCT together; without any: those that it reads
    counted: int = -1  # the column of which rows count; -1: those in which the one that it reads is valid
    parameter: float | str | BitRange | None = None  # a fraction, a separator, ...
    pool: str = ""  # the slot of the dictionary of which the column has codes
    order: Order = ()  # of the rows of a group
    of_validity: bool = False  # not the value of the row that is chosen, but whether it has one
    value_range: tuple[int, int] = (0, 1)  # of what sum and count add up
    domain: ValueRange | None = None  # of the values of a DISTINCT whose groups can keep sets of them
    reduced: bool = False  # the column is one value, which the graph has made of all rows of a batch
    tables: tuple[Table | None, ...] = ()  # of a FactoredSum
    combine: str = "sum"  # what is made of its numbers: a sum, "min" or "max"

    @property
    def columns(self) -> tuple[int, ...]:
        """Those that it reads."""
        return tuple(each for each in (self.column, self.key, *self.others, self.counted) if each >= 0)

    @property
    def compared(self) -> int:
        """The column by which its values are told apart and put in order."""
        return self.column if self.key < 0 else self.key

    @property
    def parameters(self) -> tuple[object, ...]:
        """What its kernel is given besides the column and its validity."""
        return () if self.parameter is None else (self.parameter,)

    def reading(self, places: Mapping[int, int]) -> Reduction:
        """The same of other columns."""
        column, key, counted = (places.get(each, each) for each in (self.column, self.key, self.counted))
        others = tuple(places[each] for each in self.others)
        return replace(self, column=column, key=key, counted=counted, others=others)

    @property
    def folds(self) -> bool:
        """Can it be computed batch by batch?"""
        return self.is_mergeable and (not self.distinct or self.domain is not None)

    @property
    def is_mergeable(self) -> bool:
        return self.kind in FOLDS

    @property
    def is_of_strings(self) -> bool:
        """Is it one of the strings of all rows, of which each batch leaves one?"""
        return self.kind in ("least", "greatest", "string_agg") and not (self.distinct or self.order)

    @property
    def is_choice(self) -> bool:
        """Is it the value of a row, which it is among any rows as well?"""
        return self.kind in CHOICE_KINDS and not (self.distinct or self.order)

    @property
    def is_moment(self) -> bool:
        """Is it one of `MomentStates`, which all rows and direct groups merge batch by batch?"""
        return self.kind in MOMENT_KINDS and not self.distinct


#: What reduces all rows, and what batches came to, by kind of reduction; `least`, `greatest` and `string_agg` are of strings.
OF_ALL_ROWS: dict[str, Callable[..., Any]] = {
    **{kind: fold.of_all for kind, fold in FOLDS.items() if fold.of_all is not None},
    "least": string_codes.least_of_all,
    "greatest": string_codes.greatest_of_all,
    "string_agg": join_all,
}
#: What has an order of its own that batches keep.
IN_ORDER = ("string_agg",)
MOMENT_KINDS = (*POWERS, "co_moment")
CHOICE_KINDS = ("first", "last", "arg_min", "arg_max", "arg_min_nulls_last", "arg_max_nulls_last")
#: Integer sums, which may share accumulators.
PACKED = ("count_star", "count", "sum")


def listed(reductions: Sequence[Reduction]) -> str:
    """For `program.code`."""
    return ", ".join(("distinct " if each.distinct else "") + each.kind for each in reductions) or "nothing"


def fold(
    reduction: Reduction, frame: Frame, ids: Tensor, size: int, out: Tensor | None,
    shared: dict[object, Any] | None = None, runs: Runs[Any] | None = None,
) -> Tensor:  # fmt: skip
    """One reduction over one batch, into `out` if there is one.

    `shared`: what those before it had in common. `runs`: those of the ids, if they are long.
    """
    values: Any = None
    validity: Tensor | None = None
    if reduction.column >= 0:
        values, validity = frame.columns[reduction.column]
    if runs is not None and reduction.kind in REDUCED_TWICE:
        return fold_runs(reduction.kind, values, validity, runs, ids, size, out)
    how = FOLDS[reduction.kind]
    if how.shared is None or shared is None:
        return how.by_group(values, ids, size, validity, out)
    key = how.shared, reduction.column
    if key not in shared:
        shared[key] = how.shared(values, ids, size, validity)
    return how.by_group(values, ids, size, validity, out, shared=shared[key])


def summands(reduction: Reduction, frame: Frame) -> Any:
    """What an integer sum adds up, a tensor or an array as in the frame; None where every row counts one."""
    if reduction.kind == "count_star":
        return None
    values: Any
    values, validity = frame.columns[reduction.column]
    if reduction.kind == "count":
        return validity
    return values if validity is None else values * validity


def value_of_batch(reduction: Reduction, frame: Frame) -> Any:
    """What the rows of one batch came to, which the graph has reduced, a tensor or an array; None of what reads all of them."""
    return frame.columns[reduction.column].values if reduction.reduced else None


def merge_states(reduction: Reduction, a: Tensor, b: Tensor) -> Tensor:
    """Of the same groups, of which other batches were folded into `b`. May change `a`."""
    if reduction.distinct:
        return a if a is b else distinct_sets.merge_sets(a, b)
    return FOLDS[reduction.kind].merge(a, b)


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
