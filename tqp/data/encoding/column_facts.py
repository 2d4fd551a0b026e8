"""What is true of a column's encoded values: sorted, unique, how many are distinct; and which are frequent."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tqp.core.schema import ColumnEstimates, ColumnFacts, Statistics
from tqp.data.arrow_buffers import AnyArray, BoolArray
from tqp.data.encoding.zones import ZONE_ROWS

#: Rows looked at at a time: a block of the widest type stays in a core's cache.
BLOCK = 65_536
#: Rows sampled to estimate how many values are distinct.
SAMPLE = 20_000
#: Values are frequent that so large a share of the rows holds, and so many times as many rows as hold a value in the mean.
_FREQUENT_SHARE, _FREQUENT_FACTOR = 0.01, 1.25
#: Of those, the most frequent ones are kept.
_MOST_FREQUENT = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows of integers: how many values they have, how many of these once, and how many rows there are.

    `frequent` and `distance`: as `ColumnEstimates` has them.
    """

    distinct: int
    singletons: int
    size: int
    frequent: tuple[tuple[int, float], ...] = ()
    distance: float | None = None


def integer_statistics(
    values: AnyArray, validity: BoolArray | None, minimum: int | None, maximum: int | None
) -> Statistics:
    """Facts and estimates of integers [n] whose exact bounds are known.

    How many are distinct is an estimate for long columns that do not ascend. That all are is known of one whose range is not
    much longer than it: all rows are looked at where no value of a sample comes twice.
    """
    if minimum is None or maximum is None:
        return ColumnFacts(is_unique=True, is_sorted=validity is None), ColumnEstimates(0.0)
    num_valid = len(values) if validity is None else int(np.count_nonzero(validity))
    if validity is None:
        runs = _ascending_runs(values)
        if runs is not None:
            facts = ColumnFacts(minimum, maximum, is_unique=runs == num_valid, is_sorted=True)
            if facts.is_unique:
                return facts, ColumnEstimates(float(runs))
            sample = _counted(_sample(values, None), minimum, maximum, 1.0, len(values))
            return facts, ColumnEstimates(float(runs), sample.frequent, sample.distance)
    # Values under NULL lie within the bounds, but must not count.
    sample = _counted(_sample(values, validity), minimum, maximum, num_valid / len(values), len(values))
    return statistics_of_sample(
        (minimum, maximum),
        sample,
        num_valid,
        len(values),
        lambda span: _count_dense(values, validity, minimum, span),
    )


def statistics_of_sample(
    bounds: tuple[int, int],
    sample: Sample,
    num_valid: int,
    num_rows: int,
    count_dense: Callable[[int], int],
) -> Statistics:
    """Facts and estimates of integers that do not ascend.

    `count_dense` counts the distinct ones of all rows, in a range of that length.
    """
    minimum, maximum = bounds
    is_unique, span = sample.distinct == sample.size, maximum - minimum + 1
    if is_unique and sample.size < num_valid:
        if num_valid <= span <= 4 * num_rows + 1024:
            dense = count_dense(span)
            estimates = ColumnEstimates(float(dense), distance=sample.distance)
            return ColumnFacts(minimum, maximum, dense == num_valid), estimates
        is_unique = False  # not known
    estimate = scale_distinct(sample.distinct, sample.singletons, sample.size, num_valid)
    return ColumnFacts(minimum, maximum, is_unique), ColumnEstimates(
        estimate, sample.frequent, sample.distance
    )


def estimate_distinct(values: AnyArray, validity: BoolArray | None) -> float:
    """An estimate from about 20,000 rows spread evenly; exact when that is all of them."""
    sample = _sample(values, validity)
    _, counts = np.unique(sample, return_counts=True)
    total = len(values) * (len(sample) / max(1, min(len(values), SAMPLE)))
    return scale_distinct(len(counts), int(np.count_nonzero(counts == 1)), len(sample), total)


def _sample(values: AnyArray, validity: BoolArray | None) -> AnyArray:
    """Valid values at some rows."""
    if len(values) <= SAMPLE:
        return values if validity is None else values[validity]
    rows = spread(len(values), SAMPLE)
    return values[rows] if validity is None else values[rows[validity[rows]]]


def _counted(sample: AnyArray, minimum: int, maximum: int, valid_share: float, num_rows: int) -> Sample:
    """What integers of some valid rows, in the order of these, tell; of all rows, that share is valid."""
    if maximum - minimum < BLOCK:
        counts = np.bincount(sample.astype(np.int64) - minimum)
        held = np.flatnonzero(counts)
        values, counts = held + minimum, counts[held]
    else:
        in_order = np.sort(sample)
        starts = np.ones(len(sample) + 1, np.bool_)
        np.not_equal(in_order[1:], in_order[:-1], out=starts[1:-1])
        places = np.flatnonzero(starts)
        values, counts = in_order[places[:-1]], np.diff(places)
    chosen = frequent_places(counts)
    scale = valid_share / max(len(sample), 1)
    frequent = zip(values[chosen].tolist(), (counts[chosen] * scale).tolist(), strict=True)
    singletons = int(np.count_nonzero(counts == 1))
    distance = _distance(sample, maximum - minimum, num_rows)
    return Sample(len(counts), singletons, len(sample), tuple(frequent), distance)


def _distance(sample: AnyArray, span: int, num_rows: int) -> float | None:
    """How far apart the values at the ends of a zone are in the mean, as a share of the span; None of short columns."""
    step = max(1, ZONE_ROWS * len(sample) // num_rows)
    if len(sample) <= 2 * step or num_rows <= SAMPLE:
        return None
    apart = np.subtract(sample[step:], sample[:-step], dtype=np.float64)
    return float(np.abs(apart).mean()) / max(1, span)


def frequent_places(counts: AnyArray) -> AnyArray:
    """Which values are frequent, the most frequent one first. `counts`: of rows, by value."""
    num_rows = int(counts.sum())
    least = max(_FREQUENT_SHARE * num_rows, _FREQUENT_FACTOR * num_rows / max(len(counts), 1))
    places = np.flatnonzero(counts >= least)
    return places[np.argsort(-counts[places], kind="stable")[:_MOST_FREQUENT]]


def scale_distinct(distinct: int, singletons: int, sample_size: int, num_rows: float) -> float:
    """Distinct values among `num_rows`, from a sample of which `singletons` were seen once (Duj1 of Haas et al.)."""
    if sample_size == 0 or sample_size >= num_rows:
        return float(distinct)
    unseen = (1 - sample_size / num_rows) * singletons / sample_size
    return float(round(min(distinct / (1 - unseen), num_rows)))


@functools.lru_cache(32)
def spread(num_rows: int, wanted: int) -> AnyArray:
    """At most `wanted` row numbers over [0, num_rows), ascending, int64, the same at every call.

    A step of irregular length, so that values which repeat with a period are not all hit at the same phase.
    """
    if num_rows <= wanted:
        return np.arange(num_rows)
    edges = np.arange(wanted + 1) * num_rows // wanted
    jitter = np.random.default_rng(num_rows).random(wanted)
    return edges[:-1] + (jitter * np.diff(edges)).astype(np.int64)


def ascends(values: AnyArray) -> bool:
    """Whether no value of an array is less than the one before it."""
    return _ascending_runs(values) is not None


def _ascending_runs(values: AnyArray) -> int | None:
    """How many runs of equal values an ascending array has; None if it does not ascend. Stops at the first descent."""
    if len(values) == 0:
        return 0
    runs = 1
    for start in range(0, len(values) - 1, BLOCK):
        block = values[start : start + BLOCK + 1]
        if not np.all(block[1:] >= block[:-1]):
            return None
        runs += int(np.count_nonzero(block[1:] != block[:-1]))
    return runs


def _count_dense(values: AnyArray, validity: BoolArray | None, minimum: int, span: int) -> int:
    """Distinct values of a dense range by marking each; a small range that fills up early ends the search."""
    seen = np.zeros(span, np.bool_)
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        if validity is not None:
            block = block[validity[start : start + BLOCK]]
        seen[block.astype(np.int64) - minimum] = True
        if span <= BLOCK and seen.all():
            return span
    return int(np.count_nonzero(seen))
