"""Write numbers as DuckDB prints them: integers, decimals and floats to their shortest text, all rows at once."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.memory.arrays import host_form
from tqp.operators.numbers import wide
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.build import join
from tqp.operators.strings.layout import from_arrow, from_list, replace_rows, take, to_arrow
from tqp.operators.text.float_text import float32_to_write
from tqp.operators.text.runs import WORD, digit_counts, digits, literal, number_strings, split, width_of


def format_integers(values: Tensor) -> Strings:
    """Decimal digits of integers [n] of any width, or wide [n, 2]; on the host Arrow writes those of many digits."""
    if wide.is_wide(values):
        return _format_wide_integers(values)
    numbers = values.reshape(-1)
    if not numbers.numel():
        return from_list([], values.device)
    least, greatest = int(numbers.min()), int(numbers.max())
    sizes: Any
    if is_host(numbers):
        if max(-least, greatest) >= 10**WORD:
            return from_arrow(pa.array(numbers.numpy()).cast(pa.large_string()))
        sizes = numbers.to(torch.int32).numpy()
    elif least == -(2**63):  # it has no positive counterpart
        return _format_wide_integers(wide.from_narrow(numbers))
    else:
        sizes = numbers.to(torch.int64)
    negative = sizes < 0 if least < 0 else None
    if least < 0:
        sizes = abs(sizes)
    width = width_of(sizes)
    return number_strings([digits(sizes, width)], sizes, width - digit_counts(sizes, width), negative)


def _format_wide_integers(values: Tensor) -> Strings:
    """Of int64 [n, 2], by Arrow on the host, as decimals of 128 bits: it has the low half first."""
    halves = np.ascontiguousarray(values.cpu().numpy()[:, ::-1])
    decimals = pa.Array.from_buffers(pa.decimal128(38, 0), halves.shape[0], [None, pa.py_buffer(halves)])
    return from_arrow(decimals.cast(pa.large_string()), values.device)


def format_decimals(values: Tensor, source: DataType) -> Strings:
    """Scaled integers with their `scale` digits after the point; no zero before it if there is no whole digit."""
    scale = source.scale
    if scale == 0:
        return format_integers(values)
    if wide.is_wide(values) or scale > 17:
        return _format_wide_decimals(wide.widen(values), source)
    numbers = values.reshape(-1)
    if not numbers.numel():
        return from_list([], values.device)
    least, greatest = int(numbers.min()), int(numbers.max())
    if least == -(2**63):  # it has no positive counterpart
        return _format_wide_decimals(wide.widen(values), source)
    sizes: Any = host_form(numbers.to(torch.int32 if max(-least, greatest) < 2**31 else torch.int64))
    negative = sizes < 0 if least < 0 else None
    if least < 0:
        sizes = abs(sizes)
    return _with_point(sizes, scale, int(source.precision > scale), negative)


def _with_point(
    sizes: Any, scale: int, fewest: int, negative: Any | None, cut: npt.NDArray[np.int8] | int = 0
) -> Strings:
    """Integers from 0 on with a point before the last `scale` digits, and at least so many `fewest` before it; without the last `cut` digits."""
    fewest += scale
    width = max(width_of(sizes), fewest)
    whole, fraction = split(digits(sizes, width), width - scale)
    skipped = width - digit_counts(sizes, width, fewest)
    return number_strings([whole, literal("."), fraction], sizes, skipped, negative, cut)


def _format_wide_decimals(values: Tensor, source: DataType) -> Strings:
    """As `format_decimals`, of int64 [n, 2]: the point goes between slices of the digits, with zeros before short ones."""
    text = format_integers(values)
    signs = (values[:, 0] < 0).to(torch.int32)
    unsigned = Strings(text.starts + signs, text.lengths - signs, text.data)
    most = source.scale + (source.precision > source.scale)
    zeros = from_list(["0" * most], values.device)
    missing = (most - unsigned.lengths).clamp_(min=0)
    padded = join([Strings(torch.zeros_like(text.starts), missing, zeros.data), unsigned])
    split = padded.lengths - source.scale
    minus, point = from_list(["-"], values.device), from_list(["."], values.device)
    return join(
        [
            Strings(torch.zeros_like(text.starts), signs, minus.data),
            Strings(padded.starts, split, padded.data),
            point,
            Strings(padded.starts + split, padded.lengths - split, padded.data),
        ]
    )


#: Where Arrow and DuckDB write floats alike: without an exponent between these, with one of three digits beyond those.
_LEAST_PLAIN, _MOST_PLAIN = 1e-4, 1e10
_LEAST_EXPONENT, _MOST_EXPONENT = 1e-10, 1e16


def format_floats(values: Tensor) -> Strings:
    """The shortest digits that read back as the same float: '1.0', '1e+20'.

    Where most are decimals of few digits, as prices are, these are written as such.
    """
    numbers = values.reshape(-1).cpu().numpy()
    for scale in _SCALES:
        nearest, fits = _scaled(numbers[:_SAMPLE], scale)
        if _FEW * np.count_nonzero(fits) > (_FEW - 1) * fits.size:
            break
    else:
        return _format_by_arrow(values)
    nearest, fits = _scaled(numbers, scale)
    others = np.flatnonzero(~fits)
    if _FEW * len(others) > len(numbers):
        return _format_by_arrow(values)
    nearest[others] = 0.0
    sizes = np.abs(nearest).astype(np.int64 if numbers.dtype == np.float64 else np.int32)
    fractions = sizes - sizes // 10**scale * 10**scale
    written = _with_point(sizes, scale, 1, np.signbit(numbers), _zeros_at_end(scale).take(fractions))
    if len(others):
        some = _format_by_arrow(torch.from_numpy(numbers[others]))
        written = replace_rows(written, torch.from_numpy(others), some)
    return Strings(*(part.to(values.device) for part in written))


#: Digits behind the point that are tried, on so many rows; one row in so many may be another number.
_SCALES, _SAMPLE, _FEW = (1, 2, 3, 4), 1024, 16
#: No two decimals of so many digits are the same float, so that each is the shortest of its float; nor lies one in the middle
#: between two floats.
_DISTINCT_DIGITS = {np.dtype(np.float32): 6, np.dtype(np.float64): 15}


def _scaled(numbers: Any, scale: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The integers [n] next to floats times a power of ten, and which floats are those decimals of few digits: bool [n]."""
    power = 10.0**scale
    with np.errstate(all="ignore"):
        nearest = np.multiply(numbers, power, dtype=np.float64)
        np.rint(nearest, out=nearest)
        read: Any = (nearest / power).astype(numbers.dtype, copy=False)
    fits = read == numbers
    fits &= np.abs(nearest) < 10.0 ** _DISTINCT_DIGITS[numbers.dtype]
    return nearest, fits


@lru_cache
def _zeros_at_end(scale: int) -> npt.NDArray[np.int8]:
    """How many zeros at the end of so many digits are not written, of 0 to 10**scale - 1; one digit stays."""
    numbers = np.arange(10**scale)
    zeros = [numbers % 10**count == 0 for count in range(1, scale)]
    return np.sum(zeros, axis=0, dtype=np.int8) if zeros else np.zeros(10**scale, np.int8)


def _format_by_arrow(values: Tensor) -> Strings:
    """As `format_floats`, of any floats.

    Arrow writes them, on the host; whole numbers get their '.0' afterwards. Numbers below 0.0001 with up to ten zeros,
    others from 1e10 to 1e16, and NaN, whose spellings differ, are written one by one.
    So are 32-bit floats of which DuckDB may write other digits.
    """
    flat = values.reshape(-1).cpu()
    numbers = flat.numpy()
    written = from_arrow(pa.array(numbers).cast(pa.large_string()))
    with np.errstate(invalid="ignore"):
        sizes = np.abs(numbers)
        is_whole = (np.trunc(numbers) == numbers) & (sizes < _MOST_EXPONENT)
        is_other = ((sizes >= _MOST_PLAIN) & (sizes < _MOST_EXPONENT) & ~is_whole) | np.isnan(numbers)
        is_other |= (sizes < _LEAST_PLAIN) & (sizes >= _LEAST_EXPONENT)
        if flat.dtype is torch.float32:
            is_other |= _may_be_unclear(numbers, written)
            is_whole &= ~is_other
    whole = row_indices(torch.from_numpy(is_whole))
    if whole.shape[0]:
        digits_of_whole = take(written, whole)
        is_large = row_indices(torch.from_numpy(sizes[is_whole] >= _MOST_PLAIN))
        if is_large.shape[0]:
            large = format_integers(torch.from_numpy(numbers[is_whole]).to(torch.int64)[is_large])
            digits_of_whole = replace_rows(digits_of_whole, is_large, large)
        written = replace_rows(written, whole, join([digits_of_whole, from_list([".0"])]))
    others = np.flatnonzero(is_other)
    if len(others):
        texts = [_float_text(value) for value in numbers[others]]
        written = replace_rows(written, torch.from_numpy(others), from_list(texts))
    return Strings(*(part.to(values.device) for part in written))


#: From here on 32-bit floats are integers with gaps.
_FIRST_WITH_GAPS = 2.0**24


def _may_be_unclear(numbers: npt.NDArray[np.float32], written: Strings) -> npt.NDArray[np.bool_]:
    """32-bit floats of whose shortest digits, as written, DuckDB may write others (see `float_text`): bool [n].

    These have gaps between them; or at most twelve bits behind the point, but more digits than all floats can tell apart,
    and the number, or the middle between it and one next to it, ends at a place near that of the last digit.
    """
    unclear: npt.NDArray[np.bool_] = np.abs(numbers) >= _FIRST_WITH_GAPS
    longest = _DISTINCT_DIGITS[numbers.dtype] + len(".")
    rows = np.flatnonzero(written.lengths.numpy() > longest + np.signbit(numbers))
    scaled = np.abs(numbers[rows]).astype(np.float64)
    is_short = (np.trunc(scaled * 4096) == scaled * 4096) & (np.trunc(scaled) != scaled)
    rows, scaled = rows[is_short], scaled[is_short]
    if len(rows):
        text = to_arrow(take(written, torch.from_numpy(rows)))
        points = np.array(pc.find_substring(text, "."), np.int64)
        digits_behind = written.lengths.numpy()[rows] - points - 1
        # Numbers of k bits behind the point have k digits there: a number halfway between two of the last digit's steps has one
        # more than is written, and a middle that is as short has no more. Twelve bits and so few digits are exact in doubles.
        power = 10.0 ** np.where(points < 0, 12, np.minimum(digits_behind, 12))
        exact, half_gap = scaled * power, np.spacing(np.abs(numbers[rows])).astype(np.float64) / 2 * power
        ends_near = np.trunc(2 * exact) == 2 * exact
        for end in (exact + half_gap, exact - half_gap):
            ends_near |= np.trunc(end) == end
        unclear[rows[ends_near]] = True
    return unclear


def _float_text(value: np.floating[Any]) -> str:
    if math.isnan(value):
        return "-nan" if np.signbit(value) else "nan"
    # The digits of a 32-bit float are written by the rules for doubles.
    return repr(float32_to_write(value) if isinstance(value, np.float32) else float(value))
