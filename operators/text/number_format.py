"""Write numbers as DuckDB prints them: integers, decimals and floats to their shortest text, all rows at once."""

from __future__ import annotations

import math
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
from tqp.operators.numbers.elementwise import truncate_divide
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.build import join
from tqp.operators.strings.layout import from_arrow, from_list, replace_rows, take, to_arrow
from tqp.operators.text.float_text import float32_to_write
from tqp.operators.text.runs import WORD, digit_counts, digits, literal, number_strings, width_of


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
    negative = sizes < 0
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
    numbers = values.reshape(-1).to(torch.int64)
    # The remainder's sign is cut off after dividing: the least int64 has no positive counterpart.
    quotient = truncate_divide(numbers, 10**scale)
    fraction = host_form((numbers - quotient * 10**scale).abs_())
    whole, negative = host_form(quotient.abs_()), host_form(numbers < 0)
    width = width_of(whole) if source.precision > scale else 0
    parts = [literal("."), digits(fraction, scale)]
    if not width:
        return number_strings(parts, fraction, 0, negative)
    return number_strings([digits(whole, width), *parts], whole, width - digit_counts(whole, width), negative)


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
#: Decimals of so many digits are different 32-bit floats, and none lies in the middle between two.
_DISTINCT_DIGITS = 6


def _may_be_unclear(numbers: npt.NDArray[np.float32], written: Strings) -> npt.NDArray[np.bool_]:
    """32-bit floats of whose shortest digits, as written, DuckDB may write others (see `float_text`): bool [n].

    These have gaps between them; or at most twelve bits behind the point, but more digits than all floats can tell apart,
    and the number, or the middle between it and one next to it, ends at a place near that of the last digit.
    """
    unclear: npt.NDArray[np.bool_] = np.abs(numbers) >= _FIRST_WITH_GAPS
    longest = _DISTINCT_DIGITS + len(".")
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
