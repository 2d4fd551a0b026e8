"""Sums, products and moments of floats over frames: no value of another frame has a part in one.

`validity` (bool [n] or None): rows that count. `share`: how blocks of frames are shared among threads. Moments are counts, means and sums of
powers of the differences from the mean. Where they are merged (Chan, Golub and LeVeque; Pebay) no digits cancel, wherever the mean of a
frame lies; where they come from differences from a value of the frame, which is as far from the mean as the squares say at most,
few do. A value that is not finite makes the moments of its frame NaN, as its difference from itself is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from tqp.operators.memory.allocation import Map, one_by_one
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.windows.block_sums import Fold, fold_ranges
from tqp.operators.windows.fixed_point import sum_exactly
from tqp.operators.windows.frames import Range, count_rows
from tqp.operators.windows.partitions import Partitions
from tqp.operators.windows.running import States, running
from tqp.operators.windows.values import ValidRows


def fold_frames(
    fold: Fold,
    columns: Sequence[Tensor],
    validity: Tensor | None,
    rows: Partitions,
    ranges: Sequence[Range],
    share: Map = one_by_one,
) -> tuple[States, Tensor]:
    """The states of frames, each float64 [n], and how many rows that count these have, int64 [n]."""
    counted = ValidRows(validity)
    columns = [counted.only(values).to(torch.float64) for values in columns]
    among = [counted.among(part) for part in ranges]
    counts = count_rows(among)
    if len(ranges) == 1 and ranges[0].begins is rows.begins and columns[0].shape[0]:
        up_to_rows = running(fold.leaves(columns), fold.combine, counted.only(among[0].begins))
        last = (among[0].ends - 1).clamp(min=0)
        return tuple(torch.where(counts > 0, take(state, last), fold.neutral) for state in up_to_rows), counts
    found = fold_ranges(fold, columns, among[0], share)
    before = among[0].lengths
    for part in among[1:]:
        # no rows come first, so that the square of the mean of the others is no infinity times 0
        both = row_indices(part.lengths > 0)
        others = fold_ranges(fold, columns, Range(take(part.begins, both), take(part.ends, both)), share)
        lengths = [take(each, both).to(torch.float64) for each in (before, part.lengths)]
        merged = fold.combine(tuple(take(state, both) for state in found), others, *lengths)
        for state, new in zip(found, merged, strict=True):
            state.index_copy_(0, both, new)
        before = before + part.lengths
    return found, counts


def sum_frames(
    values: Tensor,
    validity: Tensor | None,
    rows: Partitions,
    ranges: Sequence[Range],
    share: Map = one_by_one,
) -> Tensor:
    """Sums of floats, float64 [n]."""
    floats = values.to(torch.float64)
    exact = sum_exactly(floats if validity is None else torch.where(validity, floats, 0.0), ranges, share)
    return fold_frames(_SUM, (floats,), validity, rows, ranges, share)[0][0] if exact is None else exact


def multiply_frames(
    values: Tensor,
    validity: Tensor | None,
    rows: Partitions,
    ranges: Sequence[Range],
    share: Map = one_by_one,
) -> Tensor:
    """Products of floats, float64 [n]."""
    return fold_frames(_PRODUCT, (values,), validity, rows, ranges, share)[0][0]


def moment_frames(
    values: Tensor,
    validity: Tensor | None,
    rows: Partitions,
    ranges: Sequence[Range],
    power: int,
    share: Map = one_by_one,
) -> States:
    """Sums of squares, of cubes, ... up to a power of 2 to 4, of the differences from the mean: each float64 [n]."""
    (_, *found), counts = fold_frames(_MOMENTS[power], (values,), validity, rows, ranges, share)
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
    found, counts = fold_frames(_PAIRS, (ys, xs), validity, rows, ranges, share)
    syy, sxx, sxy = found[2:]
    return _of_several(syy, counts), _of_several(sxx, counts), sxy


def _of_several(squares: Tensor, counts: Tensor) -> Tensor:
    """A single infinity varies by 0, not by NaN."""
    return squares.masked_fill_(counts < 2, 0.0)


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


# ---- the same states of sums of differences from a value of the frame, and of their powers ----


def _powers(power: int, columns: Sequence[Tensor], inside: Sequence[Tensor]) -> list[Tensor]:
    found = [columns[0] - inside[0]]
    for _ in range(power - 1):
        found.append(found[-1] * found[0])
    return found


def _moments(sums: Sequence[Tensor], inside: Sequence[Tensor], counts: Tensor) -> States:
    first, second, *higher = sums
    mean = first / counts
    found = [inside[0] + mean, _squares(first, second, mean)]
    if higher:
        third, *fourths = higher
        found.append(third - mean * (3 * second - 2 * mean * first))
        found += [fourth - mean * (4 * third - mean * (6 * second - 3 * mean * first)) for fourth in fourths]
    return tuple(found)


def _squares(first: Tensor, second: Tensor, mean: Tensor) -> Tensor:
    """Of the differences from the mean, which is infinite where only squares are beyond all floats, not the values."""
    squares = (second - mean * first).clamp(min=0)
    is_beyond = second == math.inf
    return torch.where(is_beyond & first.isfinite(), second, squares) if any_true(is_beyond) else squares


def _products(columns: Sequence[Tensor], inside: Sequence[Tensor]) -> list[Tensor]:
    y, x = (column - each for column, each in zip(columns, inside, strict=True))
    return [y, x, y * y, x * x, y * x]


def _pair_moments(sums: Sequence[Tensor], inside: Sequence[Tensor], counts: Tensor) -> States:
    y, x, yy, xx, yx = sums
    mean_y, mean_x = y / counts, x / counts
    return (
        inside[0] + mean_y,
        inside[1] + mean_x,
        _squares(y, yy, mean_y),
        _squares(x, xx, mean_x),
        yx - mean_y * x,
    )


def _moment_leaves(power: int, columns: Sequence[Tensor]) -> States:
    (column,) = columns
    return (column, *(column - column,) * (power - 1))


def _pair_leaves(columns: Sequence[Tensor]) -> States:
    y, x = (column - column for column in columns)
    return (*columns, y, x, y * x)


_MOMENTS = {
    power: Fold(
        power,
        0.0,
        combine,
        partial(_moment_leaves, power),
        terms=partial(_powers, power),
        states=_moments,
    )
    for power, combine in ((2, _to_second), (3, _to_third), (4, _to_fourth))
}
_PAIRS = Fold(5, 0.0, _to_products, _pair_leaves, terms=_products, states=_pair_moments)
_SUM = Fold(1, 0.0, lambda a, b, *_: (a[0] + b[0],), tuple)
_PRODUCT = Fold(1, 1.0, lambda a, b, *_: (a[0] * b[0],), tuple, torch.cumprod, torch.mul)

#: By kind of reduction: `kernel(values, validity, rows, ranges, share)`.
FRAME_FOLDS: dict[str, Callable[..., Tensor]] = {"sum_float": sum_frames, "product": multiply_frames}
