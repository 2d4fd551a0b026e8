"""How the rows of a source that a pipeline reads are cut into batches."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Sequence


def cut_spans(spans: Sequence[tuple[int, int]], step: int, ends: Sequence[int] = ()) -> list[tuple[int, int]]:
    """Batches [start, stop) of the rows in the spans, of `step` rows at most; of no rows one batch without rows.

    `ends`: rows, ascending, before which a batch ends in any case; those between are even.

    >>> cut_spans([(0, 5), (7, 9)], 4)
    [(0, 4), (4, 5), (7, 9)]
    >>> cut_spans([(0, 8), (9, 11)], 4, [2, 10])
    [(0, 2), (2, 5), (5, 8), (9, 10), (10, 11)]
    """
    if ends:
        spans = [even for span in spans for part in _split(span, ends) for even in _evenly(*part, step)]
    batches = [
        (first, min(first + step, stop)) for start, stop in spans for first in range(start, stop, step)
    ]
    return batches or [(0, 0)]


def _split(span: tuple[int, int], ends: Sequence[int]) -> Iterable[tuple[int, int]]:
    start, stop = span
    inner = ends[bisect.bisect_right(ends, start) : bisect.bisect_left(ends, stop)]
    return itertools.pairwise((start, *inner, stop))


def _evenly(start: int, stop: int, most: int) -> Iterable[tuple[int, int]]:
    count = max(1, -(-(stop - start) // most))
    marks = [start + (stop - start) * number // count for number in range(count + 1)]
    return itertools.pairwise(marks)
