"""Sums, products and moments of floats over frames, by segment trees: no value of another frame has a part in one.

`validity` (bool [n] or None): rows that count. `share`: how blocks of frames are shared among threads. Moments are counts, means and sums of
powers of the differences from the mean, merged two by two (Chan, Golub and LeVeque; Pebay): no digits cancel, wherever the mean
of a frame lies. A value that is not finite makes the moments of its frame NaN, as its difference from itself is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from tqp.operators.memory.allocation import Map, one_by_one
from tqp.operators.rows.selection import take
from tqp.operators.windows.frames import Range, count_rows, longest
from tqp.operators.windows.partitions import Partitions
from tqp.operators.windows.segment_tree import Combine, SegmentTree, States, running
from tqp.operators.windows.values import ValidRows


def _fold_floats(
    values: Tensor,
    validity: Tensor | None,
    rows: Partitions,
    ranges: Sequence[Range],
    share: Map = one_by_one,
    *,
    combine: Callable[[Tensor, Tensor], Tensor],
    neutral: float,
) -> Tensor:
    """A reduction of floats to one float64 [n]; `neutral` is that of a frame without rows."""
    counted = ValidRows(validity)
    floats = counted.only(values).to(torch.float64)
    merge: Combine = lambda a, b, *_: (combine(a[0], b[0]),)
    return _folded((floats,), merge, counted, rows, ranges, neutral, share)[0][0]


def moment_frames(
    values: Tensor,
    validity: Tensor | None,
    rows: Partitions,
    ranges: Sequence[Range],
    power: int,
    share: Map = one_by_one,
) -> States:
    """Sums of squares, of cubes, ... up to a power of 2 to 4, of the differences from the mean: each float64 [n]."""
    combine = {2: _to_second, 3: _to_third, 4: _to_fourth}[power]
    counted = ValidRows(validity)
    means = counted.only(values).to(torch.float64)
    leaves = (means, *(means - means,) * (power - 1))
    (_, *found), counts = _folded(leaves, combine, counted, rows, ranges, 0.0, share)
    return (_of_several(found[0], counts), *found[1:])


def pair_moment_frames(
    ys: Tensor,
    xs: Tensor,
    validity: Tensor | None,
    rows: Partitions,
    ranges: Sequence[Range],
    share: Map = one_by_one,
) -> States:
    """Sums of squared differences of ys from their mean, of xs from theirs, and of the products of both: each float64 [n]."""
    counted = ValidRows(validity)
    ys, xs = (counted.only(values).to(torch.float64) for values in (ys, xs))
    leaves = (ys, xs, ys - ys, xs - xs, (ys - ys) * (xs - xs))
    found, counts = _folded(leaves, _to_products, counted, rows, ranges, 0.0, share)
    syy, sxx, sxy = found[2:]
    return _of_several(syy, counts), _of_several(sxx, counts), sxy


def _of_several(squares: Tensor, counts: Tensor) -> Tensor:
    """A single infinity varies by 0, not by NaN."""
    return torch.where(counts < 2, 0.0, squares)


def _folded(
    leaves: States,
    combine: Combine,
    counted: ValidRows,
    rows: Partitions,
    ranges: Sequence[Range],
    neutral: float,
    share: Map,
) -> tuple[States, Tensor]:
    """The states of frames, each float64 [n], and how many rows that count these have, int64 [n]; `leaves`: of the rows that count."""
    among = [counted.among(part) for part in ranges]
    counts = count_rows(among)
    if len(ranges) == 1 and ranges[0].begins is rows.begins and leaves[0].shape[0]:
        up_to_rows = running(leaves, combine, counted.only(among[0].begins))
        last = (among[0].ends - 1).clamp(min=0)
        return tuple(torch.where(counts > 0, take(state, last), neutral) for state in up_to_rows), counts
    tree = SegmentTree(leaves, combine, longest(among))
    return tree.fold(among, (neutral,) * len(leaves), share), counts


# ---- what merges two states: (mean, sum of squares, of cubes, of fourth powers), or pairs of means and of squares, and products ----


def _to_second(a: States, b: States, rows_of_a: Tensor | int, rows_of_b: Tensor | int) -> States:
    of_b = rows_of_b / (rows_of_a + rows_of_b)
    delta = b[0] - a[0]
    # no rows come first, so that the square of the mean of the others is no infinity times 0
    return a[0] + delta * of_b, a[1] + b[1] + (rows_of_a * of_b * delta) * delta


def _to_third(a: States, b: States, rows_of_a: Tensor | int, rows_of_b: Tensor | int) -> States:
    rows = rows_of_a + rows_of_b
    of_a, of_b = rows_of_a / rows, rows_of_b / rows
    delta = b[0] - a[0]
    squares = (rows_of_a * of_b * delta) * delta
    cubes = (squares * (of_a - of_b) + 3 * (of_a * b[1] - of_b * a[1])) * delta
    return a[0] + delta * of_b, a[1] + b[1] + squares, a[2] + b[2] + cubes


def _to_fourth(a: States, b: States, rows_of_a: Tensor | int, rows_of_b: Tensor | int) -> States:
    rows = rows_of_a + rows_of_b
    of_a, of_b = rows_of_a / rows, rows_of_b / rows
    delta = b[0] - a[0]
    fourths = (rows_of_a * of_b * delta) * delta * (of_a * of_a - of_a * of_b + of_b * of_b) * delta
    fourths = fourths + 6 * (of_a * of_a * b[1] + of_b * of_b * a[1]) * delta
    fourths = (fourths + 4 * (of_a * b[2] - of_b * a[2])) * delta
    return *_to_third(a, b, rows_of_a, rows_of_b), a[3] + b[3] + fourths


def _to_products(a: States, b: States, rows_of_a: Tensor | int, rows_of_b: Tensor | int) -> States:
    of_b = rows_of_b / (rows_of_a + rows_of_b)
    y, x = b[0] - a[0], b[1] - a[1]
    weight = rows_of_a * of_b
    weighted_y, weighted_x = weight * y, weight * x
    return (
        a[0] + y * of_b,
        a[1] + x * of_b,
        a[2] + b[2] + weighted_y * y,
        a[3] + b[3] + weighted_x * x,
        a[4] + b[4] + weighted_y * x,
    )


#: By kind of reduction: `kernel(values, validity, rows, ranges, share)`.
FRAME_FOLDS: dict[str, Callable[..., Tensor]] = {
    "sum_float": partial(_fold_floats, combine=torch.add, neutral=0.0),
    "product": partial(_fold_floats, combine=torch.mul, neutral=1.0),
}
