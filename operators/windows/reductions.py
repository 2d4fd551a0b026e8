"""Aggregates of the rows of frames. What an empty frame, or one without values, gets is unspecified, as in `groups/`.

`ranges`: of each row's frame, in row order (`frames.py`). `validity` (bool [n] or None): rows that count. Sums are differences of
running sums, extremes are put together from tables of the extremes of 1, 2, 4, ... rows from each row on. Floats: `folds.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.groups.aggregates import Which
from tqp.operators.numbers import elementwise, wide
from tqp.operators.rows.keys import from_ordered_bits, ordered_bits
from tqp.operators.rows.runs import sums_before
from tqp.operators.rows.selection import row_indices, take, take_padded
from tqp.operators.windows.frames import Range, count_rows, longest
from tqp.operators.windows.partitions import Partitions


def exact_sums(values: Tensor, ranges: Sequence[Range]) -> Tensor:
    """Sums of integers or booleans [n], int64 [n]: right where they fit, even if the running sums do not."""
    return differences(sums_before(values), ranges)


def differences(running: Tensor, ranges: Sequence[Range]) -> Tensor:
    """[q]: of running sums [n + 1], those of the ranges."""
    first, *others = (take(running, part.ends).sub_(take(running, part.begins)) for part in ranges)
    for found in others:
        first += found
    return first


def sum_frames(values: Tensor, validity: Tensor | None, ranges: Sequence[Range]) -> Tensor:
    """Sums of integers or booleans, int64 [n]; the caller proves that they fit."""
    return exact_sums(values if validity is None else elementwise.keep_where(values, validity), ranges)


def sum_wide_frames(values: Tensor, validity: Tensor | None, ranges: Sequence[Range]) -> Tensor:
    """Sums of integers [n] or int64 [n, 2] in 128 bits, int64 [n, 2]; raises ExecutionError beyond."""
    if validity is not None:
        values = values * (validity if values.dim() == 1 else validity.unsqueeze(1))
    return wide.from_limb_sums([exact_sums(limb, ranges) for limb in wide.limbs(values)])


def count_frames(values: object, validity: Tensor | None, ranges: Sequence[Range]) -> Tensor:
    """int64 [n]: the rows that count."""
    return count_rows(ranges) if validity is None else exact_sums(validity, ranges)


def bool_or_frames(values: Tensor, validity: Tensor | None, ranges: Sequence[Range]) -> Tensor:
    """bool [n]: is any value true?"""
    return exact_sums(values if validity is None else values & validity, ranges) > 0


def bool_and_frames(values: Tensor, validity: Tensor | None, ranges: Sequence[Range]) -> Tensor:
    """bool [n]: are all values true?"""
    return ~bool_or_frames(~values, validity, ranges)


def fold_overlapping(
    values: Tensor, combine: Callable[[Tensor, Tensor], Tensor], identity: int, ranges: Sequence[Range]
) -> Tensor:
    """An associative reduction in which a row may count twice, of integers [n] or [n, k], in their dtype.

    Two tables of as many rows, a power of two, that overlap cover a frame.
    """
    found = torch.full_like(values, identity)
    for part in ranges:
        lengths, table = part.lengths, values
        for level in range(longest([part]).bit_length()):
            step = 1 << level
            if level:
                table = combine(table[: -step // 2], table[step // 2 :])
            chosen = row_indices((lengths >> level) == 1)
            if not chosen.shape[0]:
                continue
            first, last = take(part.begins, chosen), take(part.ends, chosen) - step
            both = combine(take(table, first), take(table, last))
            found.index_copy_(0, chosen, combine(take(found, chosen), both))
    return found


def extreme_codes(codes: Tensor, rows: Partitions, ranges: Sequence[Range], which: Which) -> Tensor:
    """The least or greatest of integers [n] of each frame, in their dtype; the other end of its range for no rows."""
    limits = torch.iinfo(codes.dtype)
    identity = limits.max if which == "amin" else limits.min
    if len(ranges) == 1 and ranges[0].begins is rows.begins:
        running = _running_extremes(codes, rows, which)
        if running is not None:
            found = take_padded(running, ranges[0].ends - 1)
            return torch.where(ranges[0].lengths > 0, found, identity)
    return fold_overlapping(codes, torch.minimum if which == "amin" else torch.maximum, identity, ranges)


def _running_extremes(codes: Tensor, rows: Partitions, which: Which) -> Tensor | None:
    """The extreme of the rows of each partition up to each row; None where the codes leave no bits for the partition."""
    if not codes.shape[0]:
        return codes
    low, high = (int(extreme) for extreme in torch.aminmax(codes))
    width = (high - low).bit_length()
    if width + rows.partitions.count.bit_length() > 63:
        return None
    places = codes.to(torch.int64) - low if which == "amax" else high - codes.to(torch.int64)
    words = (rows.partitions.numbers << width) | places  # those of a later partition are greater
    if is_host(words):
        words = torch.from_numpy(np.maximum.accumulate(words.numpy()))
    else:
        words = torch.cummax(words, 0).values
    places = words & ((1 << width) - 1)
    return (places + low if which == "amax" else high - places).to(codes.dtype)


def extreme_frames(
    values: Tensor, validity: Tensor | None, rows: Partitions, ranges: Sequence[Range], which: Which
) -> Tensor:
    """The least or greatest of integers, booleans or floats [n], in their dtype (int8 of booleans)."""
    codes = ordered_bits(values) if values.is_floating_point() else values
    if codes.dtype is torch.bool:
        codes = codes.to(torch.int8)
    if validity is not None:
        limits = torch.iinfo(codes.dtype)
        codes = torch.where(validity, codes, limits.max if which == "amin" else limits.min)
    found = extreme_codes(codes, rows, ranges, which)
    return from_ordered_bits(found, values.dtype) if values.is_floating_point() else found


def extreme_rows(
    order: Tensor, validity: Tensor | None, rows: Partitions, ranges: Sequence[Range], which: Which
) -> Tensor:
    """int64 [n]: the row with the least or greatest value of each frame, -1 of none; `order`: all rows by their values."""
    ranks = torch.empty_like(order).index_copy_(0, order, rows.rows)
    nothing = rows.num_rows if which == "amin" else -1
    if validity is not None:
        ranks = torch.where(validity, ranks, nothing)
    found = extreme_codes(ranks, rows, ranges, which)
    is_there = (found >= 0) & (found < rows.num_rows)
    return torch.where(is_there, take_padded(order, torch.where(is_there, found, -1)), -1)


def _of_valid(values: Tensor, validity: Tensor | None, identity: int) -> Tensor:
    """The values [n] or [n, k], with the identity where rows do not count."""
    if validity is None:
        return values
    return torch.where(validity if values.dim() == 1 else validity.unsqueeze(1), values, identity)


def bit_and_frames(values: Tensor, validity: Tensor | None, ranges: Sequence[Range]) -> Tensor:
    """Of integers [n] or wide ones [n, 2], in their dtype."""
    return fold_overlapping(_of_valid(values, validity, -1), torch.bitwise_and, -1, ranges)


def bit_or_frames(values: Tensor, validity: Tensor | None, ranges: Sequence[Range]) -> Tensor:
    """Of integers [n] or wide ones [n, 2], in their dtype."""
    return fold_overlapping(_of_valid(values, validity, 0), torch.bitwise_or, 0, ranges)


def bit_xor_frames(values: Tensor, validity: Tensor | None, ranges: Sequence[Range]) -> Tensor:
    """Of integers [n] or wide ones [n, 2], in their dtype: what the rows up to the end of a frame have and those before it have not."""
    before = _xors_before(_of_valid(values, validity, 0))
    found = torch.zeros_like(values)
    for part in ranges:
        found = found ^ take(before, part.begins) ^ take(before, part.ends)
    return found


def _xors_before(values: Tensor) -> Tensor:
    """[n + 1, ...]: of the first 0, 1, ..., n values."""
    running = torch.cat([values.new_zeros(1, *values.shape[1:]), values])
    if is_host(values):
        return torch.from_numpy(np.bitwise_xor.accumulate(running.numpy(), axis=0))
    step = 1
    while step < running.shape[0]:
        running = torch.cat([running[:step], running[step:] ^ running[:-step]])
        step *= 2
    return running


#: By kind of reduction: `kernel(values, validity, ranges)`.
FRAME_REDUCTIONS: dict[str, Callable[..., Tensor]] = {
    "count_star": count_frames,
    "count": count_frames,
    "sum": sum_frames,
    "sum_wide": sum_wide_frames,
    "bool_and": bool_and_frames,
    "bool_or": bool_or_frames,
    "bit_and": bit_and_frames,
    "bit_or": bit_or_frames,
    "bit_xor": bit_xor_frames,
}
