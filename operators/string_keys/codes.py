"""Strings as integers that compare, or are equal, as they do: sorting and grouping strings is work on integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.groups.aggregates import max_by_group, min_by_group
from tqp.operators.groups.group_ids import group_ids_of_columns
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.logic import all_true
from tqp.operators.rows.selection import compose_selected, row_indices
from tqp.operators.sorting.sort import SortColumn, sort_rows
from tqp.operators.string_keys.hash import hash64
from tqp.operators.string_keys.pack import pack
from tqp.operators.strings.compare import equal
from tqp.operators.strings.layout import (
    concatenate,
    cut,
    from_arrow,
    from_list,
    take,
    to_arrow_binary,
    to_list,
)
from tqp.operators.strings.words import BLOCK, WORD, leading, order_key, words

#: Up to so many rows are ranked as Python's bytes, 0.4 us each: the calls for integers made of their bits take 200 to 1,000 us.
_FEW_ROWS = 512
#: Rows looked at to tell whether a column repeats its values.
_SAMPLE_ROWS = 512
#: Part of the sample that the first byte may leave, for which one more look is worth it.
_FEW_OF_SAMPLE = 1 / 8


def order_codes(strings: Strings, validity: Tensor | None = None) -> Tensor:
    """Integers that compare as the valid rows do: int64 [n]; NULL rows get any."""
    return _codes(strings, validity, rank)


def group_codes(strings: Strings, validity: Tensor | None = None) -> Tensor:
    """Integers that are equal where valid rows are: int64 [n]; NULL rows get any."""
    return _codes(strings, validity, _numbers)


def _codes(strings: Strings, validity: Tensor | None, number: Callable[[Strings], Tensor]) -> Tensor:
    """Those of the slices that rows share, where these are few; the packed rows if they fit into integers, else what `number` makes of them."""
    shared = distinct_slices(strings, validity)
    if shared is not None:
        numbers, slices = shared
        return torch.index_select(_codes(slices, None, number), 0, numbers)
    rows = None if validity is None else row_indices(validity)
    valid = strings if rows is None else take(strings, rows)
    codes = _ranked(valid)[0] if _are_few(valid) else pack(valid)
    if codes is None:
        codes = number(valid)
    return _at_rows(codes, rows, strings)


def _are_few(strings: Strings) -> bool:
    return is_host(strings.starts) and strings.num_rows <= _FEW_ROWS


def _ranked(strings: Strings) -> tuple[Tensor, list[bytes]]:
    """The place of each of few rows among the distinct values, int64 [n], and these, sorted."""
    values = to_list(strings)
    distinct = sorted(set(values))
    places = {value: place for place, value in enumerate(distinct)}
    return torch.tensor([places[value] for value in values], dtype=torch.int64), distinct


def _at_rows(codes: Tensor, rows: Tensor | None, strings: Strings) -> Tensor:
    """Codes of all strings, of which some `rows` have these, and others 0."""
    return codes if rows is None else torch.zeros_like(strings.starts).index_copy_(0, rows, codes)


def _numbers(strings: Strings) -> Tensor:
    """A number for each distinct value: int64 [n]."""
    if is_host(strings.starts) and not is_mostly_distinct(strings):
        return distinct_values(strings)[0]
    ids, first_rows, count = group_ids_of_columns([hash64(strings)])
    if count == strings.num_rows:
        return ids
    # Rows of one hash are one group only if they equal their group's first row.
    step = BLOCK if is_host(ids) else strings.num_rows
    for start in range(0, strings.num_rows, step):
        firsts = torch.index_select(first_rows, 0, ids[start : start + step])
        here = torch.arange(start, start + firsts.shape[0], device=ids.device)
        others = row_indices(elementwise.not_equal(firsts, here))
        same = equal(take(strings, torch.index_select(here, 0, others)), take(strings, firsts[others]))
        if not bool(same.all()):
            return rank(strings)
    return ids


def dictionary_positions(strings: Strings, dictionary: Strings) -> Tensor:
    """The place of each row among the distinct rows of `dictionary`, its number of rows where it is none: int32 [n]."""
    return _positions(strings, to_arrow_binary(dictionary), dictionary.num_rows)


def category_codes(strings: Strings, *words: str) -> Tensor:
    """The position of each row's string among the words, -1 for others: int32 [n]."""
    return _positions(strings, pa.array([word.encode() for word in words], pa.large_binary()), -1)


def _positions(strings: Strings, values: pa.Array, missing: int) -> Tensor:
    """By Arrow's hash table."""
    places = pc.index_in(to_arrow_binary(strings), value_set=values)
    filled = places.fill_null(missing) if places.null_count else places
    return torch.from_numpy(np.array(filled, np.int32)).to(strings.starts.device)


def extreme_row(strings: Strings, *, greatest: bool) -> int:
    """A row with the least or greatest of the strings, of which there is at least one."""
    rows = _candidates(strings, greatest)  # those that may be it; None for all
    current, offset = strings if rows is None else take(strings, rows), 0
    while True:
        codes = torch.cat(
            [
                order_key(words(cut(current, start, start + BLOCK), offset))
                for start in range(0, current.num_rows, BLOCK)
            ]
        )
        best = codes.max() if greatest else codes.min()
        kept = row_indices(elementwise.equal(codes, int(best)))
        rows = kept if rows is None else torch.index_select(rows, 0, kept)
        current, offset = take(current, kept), offset + WORD
        # Zero bytes stand past the end of a row: of those that tie to their ends, the length decides.
        if current.num_rows == 1 or int(current.lengths.max()) <= offset:
            place = current.lengths.argmax() if greatest else current.lengths.argmin()
            return int(rows[place])


def extreme_rows(
    strings: Strings, validity: Tensor | None, ids: Tensor, num_groups: int, *, greatest: bool
) -> tuple[Tensor, Tensor]:
    """The rows with the least or greatest of the valid strings of their groups, and the groups of these rows: int64 [m] both.

    `ids`: int64 [n] in [0, num_groups). Eight bytes after eight are compared, of the rows that tie so far.
    """
    rows = torch.arange(strings.num_rows, device=ids.device) if validity is None else row_indices(validity)
    if validity is not None:
        strings, ids = take(strings, rows), torch.index_select(ids, 0, rows)
    extreme, offset = (max_by_group if greatest else min_by_group), 0
    while rows.shape[0]:
        # Zero bytes stand past the end of a row: of those that tie to their ends, the length decides.
        at_end = int(strings.lengths.max()) <= offset
        if at_end:
            codes = strings.lengths.to(torch.int64)
        else:
            step = BLOCK if is_host(ids) else strings.num_rows
            starts = range(0, strings.num_rows, step)
            codes = torch.cat([order_key(words(cut(strings, at, at + step), offset)) for at in starts])
        best = torch.index_select(extreme(codes, ids, num_groups), 0, ids)
        kept = row_indices(elementwise.equal(codes, best))
        if kept.shape[0] < rows.shape[0]:
            rows, ids = torch.index_select(rows, 0, kept), torch.index_select(ids, 0, kept)
        if at_end or kept.shape[0] == 1:
            break
        strings, offset = take(strings, kept), offset + WORD
    return rows, ids


def _candidates(strings: Strings, greatest: bool) -> Tensor | None:
    """The rows that may have the least or greatest string, by their first bytes and those of a sample's; None: all may.

    int64 [m]. In main memory: reads the bytes from each start on, be they the row's or not, which costs a quarter of cutting
    them at its end; one byte first, if that leaves few of the sample.
    """
    if not is_host(strings.starts) or strings.num_rows < 8 * _SAMPLE_ROWS or strings.data.shape[0] < WORD:
        return None
    few = _rows_of_pieces(strings)
    if few is not None:
        return few
    every = strings.num_rows // _SAMPLE_ROWS
    sample = take(strings, torch.arange(0, strings.num_rows, every, device=strings.starts.device))
    of_sample = words(sample, 0).numpy().view(np.uint64).byteswap()
    best = of_sample.max() if greatest else of_sample.min()
    shift = np.uint64(8 * (WORD - 1))
    rows, fits = None, np.greater_equal if greatest else np.less_equal
    if fits(of_sample >> shift, best >> shift).mean() <= _FEW_OF_SAMPLE:
        first = strings.data.numpy().take(strings.starts.numpy(), mode="clip")
        rows = _fitting(fits(first, np.uint8(best >> shift)), strings, greatest, 1)
        strings = take(strings, rows)
    first = leading(strings, WORD).numpy().view(np.uint64).byteswap()
    return compose_selected(rows, _fitting(fits(first, best), strings, greatest, WORD))


def _fitting(fits: npt.NDArray[np.bool_], strings: Strings, greatest: bool, size: int) -> Tensor:
    """The rows that fit by `size` bytes, of which some may be those of other rows: these can only make a string greater."""
    return row_indices(torch.from_numpy(fits if greatest else fits | (strings.lengths.numpy() < size)))


def _rows_of_pieces(strings: Strings) -> Tensor | None:
    """A row for each piece of the buffer that rows have, if it has few: those of a dictionary, or texts of truth values.

    int64 [m]; None where there may be many. In main memory.
    """
    lengths = strings.lengths.numpy()
    widths = int(lengths.max()) + 1
    if strings.data.shape[0] * widths > strings.num_rows // 8:
        return None
    row_of = np.full(strings.data.shape[0] * widths + widths, -1, np.int64)
    row_of[strings.starts.numpy() * widths + lengths] = np.arange(strings.num_rows)
    return torch.from_numpy(row_of[row_of >= 0])


def least_of_all(strings: Strings, validity: Tensor | None = None) -> Strings:
    """The least of the (valid) strings, with bytes of its own: one row, or none where there is no string."""
    return _extreme(strings, validity, greatest=False)


def greatest_of_all(strings: Strings, validity: Tensor | None = None) -> Strings:
    """The greatest of the (valid) strings, as `least_of_all`."""
    return _extreme(strings, validity, greatest=True)


def _extreme(strings: Strings, validity: Tensor | None, *, greatest: bool) -> Strings:
    if validity is not None:
        strings = take(strings, row_indices(validity.expand(strings.num_rows)))
    if strings.num_rows == 0:
        return from_list([], strings.starts.device)
    row = extreme_row(strings, greatest=greatest) if strings.num_rows > 1 else 0
    start, length = int(strings.starts[row]), strings.lengths[row : row + 1].clone()
    # Copied: a slice would keep the bytes of all rows.
    return Strings(
        torch.zeros_like(length, dtype=torch.int64), length, strings.data[start : start + int(length)].clone()
    )


def factorize(strings: Strings, validity: Tensor | None = None) -> tuple[Tensor, Strings]:
    """Number the distinct values of the valid rows in byte order.

    Returns codes, int64 [n], and the distinct values, sorted: codes compare as the strings do. NULL rows get some
    code, a safe index: with rows but no valid one, the distinct values are one empty string.
    """
    shared = distinct_slices(strings, validity)
    if shared is not None:
        of_slices, distinct = factorize(shared[1])
        return torch.index_select(of_slices, 0, shared[0]), distinct
    rows = None if validity is None else row_indices(validity)
    valid = strings if rows is None else take(strings, rows)
    if valid.num_rows == 0:
        some = [b""] if strings.num_rows else []
        return torch.zeros_like(strings.starts), from_list(some, strings.starts.device)
    if _are_few(valid):
        codes, values = _ranked(valid)
        return _at_rows(codes, rows, strings), from_list(values)
    numbers = None
    if is_host(valid.starts) and not is_mostly_distinct(valid):
        numbers, valid = distinct_values(valid)
    ordered, ranks = torch.unique(order_codes(valid), return_inverse=True)
    codes = ranks if numbers is None else torch.index_select(ranks, 0, numbers)
    holders = torch.empty_like(ordered).scatter_(0, ranks, torch.arange(valid.num_rows, device=ranks.device))
    return _at_rows(codes, rows, strings), take(valid, holders)


def rank(strings: Strings) -> Tensor:
    """Dense ranks in byte order, equal for equal strings: int64 [n], 0 for the least."""
    order = sort_rows([SortColumn(strings)])
    ordered = take(strings, order)
    ranks = torch.zeros_like(order)
    ranks[1:] = ~equal(cut(ordered, 1, strings.num_rows), cut(ordered, 0, strings.num_rows - 1))
    return torch.empty_like(order).scatter_(0, order, ranks.cumsum_(0))


def distinct_values(strings: Strings) -> tuple[Tensor, Strings]:
    """A number for each distinct value, int64 [n], and these values by number, in any order. By Arrow's hash table."""
    codes, values, _ = numbered_values(strings)
    return codes.to(torch.int64), values


def numbered_values(
    strings: Strings, validity: Tensor | None = None
) -> tuple[Tensor, Strings, Tensor | None]:
    """A number for each distinct value, int32 [n], these values by number, in any order, and which of them is not NULL.

    bool [m], None without `validity`. By Arrow's hash table: one call, 12 to 20 ns a row where values are few. It sees each
    slice once that many rows share.
    """
    shared = distinct_slices(strings, validity)
    if shared is not None:
        of_slices, values, _ = numbered_values(shared[1])
        codes = torch.index_select(of_slices, 0, shared[0])
        return (codes, values, None) if validity is None else _with_null(codes, values, validity)
    encoded = to_arrow_binary(strings, validity).dictionary_encode(null_encoding="encode")
    device, values = strings.starts.device, encoded.dictionary
    is_valid = None
    if validity is not None:
        is_valid = torch.from_numpy(np.array(values.is_valid())).to(device)
    codes = from_dlpack(encoded.indices) if len(encoded) else torch.zeros(0, dtype=torch.int32)
    return codes.to(device), from_arrow(values, device), is_valid


def _with_null(codes: Tensor, values: Strings, validity: Tensor) -> tuple[Tensor, Strings, Tensor]:
    """As `numbered_values`, given what valid rows have: a number more for NULL, if it is there."""
    count = values.num_rows
    if all_true(validity):
        return codes, values, torch.ones(count, dtype=torch.bool, device=codes.device)
    is_valid = torch.arange(count + 1, device=codes.device) < count
    values = concatenate([values, from_list([None], codes.device)])
    return elementwise.choose(validity, codes, count, codes.dtype), values, is_valid


def of_each_value(strings: Strings, function: Callable[[bytes], bytes | str]) -> Strings:
    """What a function of Python makes of each row, which is called once for each distinct value."""
    codes, distinct = distinct_values(strings)
    return take(from_list([function(value) for value in to_list(distinct)], codes.device), codes)


def distinct_slices(strings: Strings, validity: Tensor | None) -> tuple[Tensor, Strings] | None:
    """Where rows share few slices, as those of a dictionary do: a number for each valid row's slice, int32 [n], and the slices.

    NULL rows get any number. None where slices may be many, and on devices.
    """
    size = strings.data.shape[0]
    if not is_host(strings.starts) or 2 * size > strings.num_rows:
        return None
    starts, lengths = strings.starts.numpy(), strings.lengths.numpy()
    rows = slice(None) if validity is None else validity.numpy()
    length_at = np.full(size + 1, -1, np.int32)
    length_at[starts[rows]] = lengths[rows]
    places = np.flatnonzero(length_at >= 0)
    many = not 0 < 2 * len(places) <= strings.num_rows
    if many or not np.array_equal(length_at.take(starts[rows]), lengths[rows]):
        return None
    numbers = np.zeros(size + 1, np.int32)
    numbers[places] = np.arange(len(places))
    slices = Strings(torch.from_numpy(places), torch.from_numpy(length_at[places]), strings.data)
    return torch.from_numpy(numbers.take(starts)), slices


def is_mostly_distinct(strings: Strings) -> bool:
    """Whether most of a sample of the rows are distinct, so that a hash table would not shrink the work."""
    if strings.num_rows < 8 * _SAMPLE_ROWS:
        return False
    every = strings.num_rows // _SAMPLE_ROWS
    sample = take(strings, torch.arange(0, strings.num_rows, every, device=strings.starts.device))
    values = to_list(sample)
    return len(set(values)) > 0.9 * len(values)
