"""What is true of a column's encoded values: sorted, unique, how many are distinct."""

from __future__ import annotations

import numpy as np

from tqp.core.schema import ColumnStatistics
from tqp.data.arrow_buffers import AnyArray, BoolArray

#: Rows looked at at a time: a block of the widest type stays in a core's cache.
BLOCK = 65_536
#: Rows sampled to estimate how many values are distinct.
SAMPLE = 20_000


def integer_statistics(
    values: AnyArray, validity: BoolArray | None, minimum: int | None, maximum: int | None
) -> ColumnStatistics:
    """Statistics of integers [n] whose exact bounds are known; the distinct count is exact where that is cheap."""
    if minimum is None or maximum is None:
        return ColumnStatistics(distinct_count=0.0, is_unique=True, is_sorted=validity is None)
    num_valid = len(values) if validity is None else int(np.count_nonzero(validity))
    if validity is None:
        runs = _ascending_runs(values)
        if runs is not None:
            return ColumnStatistics(
                minimum, maximum, float(runs), is_unique=runs == num_valid, is_sorted=True
            )
    span = maximum - minimum + 1
    if span <= 4 * len(values) + 1024:
        # Values under NULL lie within the bounds, but must not count.
        distinct = _count_dense(values, validity, minimum, span)
        return ColumnStatistics(minimum, maximum, float(distinct), is_unique=distinct == num_valid)
    return ColumnStatistics(minimum, maximum, estimate_distinct(values, validity))


def estimate_distinct(values: AnyArray, validity: BoolArray | None) -> float:
    """An estimate from about 20,000 rows spread evenly; exact when that is all of them."""
    sample = values[spread(len(values), SAMPLE)]
    if validity is not None:
        sample = sample[validity[spread(len(values), SAMPLE)]]
    _, counts = np.unique(sample, return_counts=True)
    total = len(values) * (len(sample) / max(1, min(len(values), SAMPLE)))
    return scale_distinct(len(counts), int(np.count_nonzero(counts == 1)), len(sample), total)


def scale_distinct(distinct: int, singletons: int, sample_size: int, num_rows: float) -> float:
    """Distinct values among `num_rows`, from a sample of which `singletons` were seen once (Duj1 of Haas et al.)."""
    if sample_size == 0 or sample_size >= num_rows:
        return float(distinct)
    unseen = (1 - sample_size / num_rows) * singletons / sample_size
    return float(round(min(distinct / (1 - unseen), num_rows)))


def spread(num_rows: int, wanted: int) -> AnyArray:
    """At most `wanted` row numbers over [0, num_rows), ascending, int64, the same at every call.

    A step of irregular length, so that values which repeat with a period are not all hit at the same phase.
    """
    if num_rows <= wanted:
        return np.arange(num_rows)
    edges = np.arange(wanted + 1) * num_rows // wanted
    jitter = np.random.default_rng(num_rows).random(wanted)
    return edges[:-1] + (jitter * np.diff(edges)).astype(np.int64)


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
