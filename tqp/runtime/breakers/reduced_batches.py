"""GROUP BY a text of which few values come up again and again, as words do: what the rows of a batch come to, kept in their place.

One call numbers the texts of a batch. Rows that are collected are hashed, packed, distributed over partitions, taken in their order
and numbered there, which is four times as much, and hands the interpreter's lock over a hundred times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.groups.bits import BY_GROUP
from tqp.operators.string_keys.codes import numbered_values
from tqp.operators.strings.layout import take
from tqp.runtime.breakers.reductions import Reduction, fold
from tqp.runtime.frame import Frame, FrameColumn

#: Rows of a batch that are reduced, at least: of fewer, the look at a sample takes as long.
_ROWS = 32_768
#: Rows of the sample, of which at most half may have values of their own: with more, Arrow's table leaves the caches.
_SAMPLE_ROWS = 4096
#: Reductions whose states, whatever their order, are reduced as these.
_OF_STATES = {
    "count_star": "sum",
    "count": "sum",
    **{
        each: each
        for each in ("sum", "sum_wide", "min", "max", "reference", "bool_and", "bool_or", *BY_GROUP)
    },
}


def reductions_of_states(reductions: Sequence[Reduction]) -> tuple[Reduction, ...] | None:
    """What makes one state of a group of those of batches, in the columns of `reduce_batch`; None if not all have that."""
    if any(each.kind not in _OF_STATES or each.distinct or each.order for each in reductions):
        return None
    return tuple(
        replace(each, kind=_OF_STATES[each.kind], column=column) for column, each in enumerate(reductions, 1)
    )


def shares_few_texts(frame: Frame) -> bool:
    """Is the first column text of which a sample says that most rows share it with others?"""
    key = frame.columns[0].values
    if not isinstance(key, Strings) or not is_host(key.starts) or key.num_rows < _ROWS:
        return False
    return _repeats(key)


def _repeats(key: Strings) -> bool:
    every = max(key.num_rows // _SAMPLE_ROWS, 1)
    sample = take(key, torch.arange(0, key.num_rows, every))
    return 2 * numbered_values(sample)[1].num_rows <= sample.num_rows


def reduce_batch(frame: Frame, reductions: Sequence[Reduction]) -> Frame:
    """The groups of a frame whose first column, text, is the key: the keys, then one state for each reduction."""
    key, validity = frame.columns[0]
    assert isinstance(key, Strings)
    ids, values, is_valid = numbered_values(key, validity)
    kinds = ("min" if each.kind == "reference" else each.kind for each in reductions)  # the first row
    states = (
        fold(replace(each, kind=kind), frame, ids, values.num_rows, None)
        for each, kind in zip(reductions, kinds, strict=True)
    )
    columns = (FrameColumn(values, is_valid), *(FrameColumn(state, None) for state in states))
    return Frame(values.num_rows, columns)
