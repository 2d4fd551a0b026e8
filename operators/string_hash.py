"""Hash strings, and number their distinct values."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.rows import row_indices
from tqp.operators.string_layout import from_arrow, from_list, take, to_arrow_binary, to_list
from tqp.operators.string_rank import rank
from tqp.operators.string_words import WORD, step_width, words


def _signed(value: int) -> int:
    """The low 64 bits of `value` as a signed integer."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


_SCRAMBLE = _signed(0x9E3779B97F4A7C15)
_BASE = 0xD1342543DE82EF95
_FINISH = _signed(0xBF58476D1CE4E5B9)


#: Rows looked at to tell whether a column repeats its values.
_SAMPLE_ROWS = 512


def hash64(strings: Strings) -> Tensor:
    """A 64-bit hash of each row's bytes and length: int64 [n], the same wherever the bytes lie."""
    # A polynomial over scrambled words. The word 0 is scrambled to 0, so padding past a row's end adds nothing.
    result = strings.lengths.to(torch.int64) * _FINISH
    rows: Tensor | None = None
    offset = 0
    while strings.num_rows:
        count = step_width(offset)
        powers = [_signed(pow(_BASE, offset // WORD + step, 1 << 64)) for step in range(count)]
        scrambled = words(strings, offset, count)
        scrambled = (scrambled ^ ((scrambled >> 32) & 0xFFFFFFFF)) * _SCRAMBLE
        scrambled = scrambled ^ ((scrambled >> 29) & 0x7FFFFFFFF)
        if count == 1:
            part = scrambled * powers[0]
        else:
            part = (scrambled * torch.tensor(powers, device=scrambled.device)).sum(1)
        if rows is None:
            result += part
        else:
            result.index_add_(0, rows, part)
        offset += WORD * count
        kept = row_indices(strings.lengths > offset)
        if kept.shape[0] == 0:
            break
        if kept.shape[0] < strings.num_rows:
            rows = kept if rows is None else torch.index_select(rows, 0, kept)
            strings = take(strings, kept)
        elif rows is None:
            rows = kept
    result = (result ^ ((result >> 32) & 0xFFFFFFFF)) * _FINISH
    return result ^ ((result >> 32) & 0xFFFFFFFF)


def factorize(strings: Strings, validity: Tensor | None = None) -> tuple[Tensor, Strings]:
    """Number the distinct values of the valid rows in byte order.

    Returns codes, int64 [n], and the distinct values, sorted: codes compare as the strings do. NULL rows get some
    code, a safe index: with rows but no valid one, the distinct values are one empty string.
    """
    if strings.num_rows == 0:
        return torch.zeros_like(strings.starts), strings
    if strings.starts.device.type == "cpu" and not _is_mostly_distinct(strings):
        return _factorize_on_host(strings, validity)
    if validity is None:
        codes = rank(strings)
        return codes, _representatives(strings, codes)
    rows = row_indices(validity)
    codes = torch.zeros_like(strings.starts)
    if rows.shape[0] == 0:
        return codes, from_list([b""], strings.starts.device)
    valid_strings = take(strings, rows)
    valid_codes = rank(valid_strings)
    return codes.index_copy_(0, rows, valid_codes), _representatives(valid_strings, valid_codes)


def _representatives(strings: Strings, codes: Tensor) -> Strings:
    """One row of each code, in the order of the codes."""
    rows = torch.empty(int(codes.max()) + 1, dtype=torch.int64, device=codes.device)
    rows.scatter_(0, codes, torch.arange(codes.shape[0], device=codes.device))
    return take(strings, rows)


def _is_mostly_distinct(strings: Strings) -> bool:
    """Whether most of a sample of the rows are distinct, so that a hash table would not shrink the work."""
    if strings.num_rows < 8 * _SAMPLE_ROWS:
        return False
    sample = take(strings, torch.arange(0, strings.num_rows, strings.num_rows // _SAMPLE_ROWS))
    values = to_list(sample)
    return len(set(values)) > 0.9 * len(values)


def _factorize_on_host(strings: Strings, validity: Tensor | None) -> tuple[Tensor, Strings]:
    """By Arrow's hash table, then ranking the distinct values only."""
    encoded = to_arrow_binary(strings, validity).dictionary_encode()
    distinct = from_arrow(encoded.dictionary)
    if distinct.num_rows == 0:
        return torch.zeros_like(strings.starts), from_list([b""])
    order = rank(distinct)
    found = encoded.indices.fill_null(0) if encoded.indices.null_count else encoded.indices
    codes = torch.index_select(order, 0, torch.from_numpy(np.array(found)))
    return codes, _representatives(distinct, order)
