"""Row selection: masks to row indices, gathers, and chains of row indices.

Row indices are int32 or int64 (all that `torch.index_select` takes). In an outer join's result -1 stands for "no
row": the `padded` functions turn it into a NULL. The functions take tensors, or arrays (see `arrays`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.memory.arrays import Array, Values

#: From so many indices on, torch's gather by int32 is quicker than numpy's, which makes int64 of all of them first.
_MANY_INDICES = 32_768


def row_indices(mask: Values, validity: Values | None = None) -> Values:
    """Ascending indices (int64 [m]) of the rows of `mask` (bool [n]) that are true and valid.

    >>> row_indices(torch.tensor([True, False, True]))
    tensor([0, 2])
    """
    if isinstance(mask, np.ndarray):
        return true_positions(mask if validity is None else mask & validity)
    if validity is not None:
        mask = mask & validity
    if is_host(mask):  # 4 to 10 times as fast as nonzero
        return torch.from_numpy(true_positions(mask.numpy()))
    return torch.nonzero(mask).squeeze(1)


#: From this many rows on it pays to look at eight at a time.
_MANY_ROWS = 65_536
#: Up to one true row in ten, of which so many words of eight have one, numpy.flatnonzero jumps from one true row to the
#: next, and each jump is a mispredicted branch.
_FILLED = 0.57


def true_positions(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """As numpy.flatnonzero of a bool array, in half its time and less where at most one in ten rows is true."""
    size = mask.shape[0]
    if size < _MANY_ROWS or not mask.flags.c_contiguous:
        return mask.nonzero()[0]
    return positions_by_words(mask, mask[: size & ~7].view(np.int64) != 0)


def positions_by_words(mask: npt.NDArray[np.bool_], filled: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """As `true_positions`; `filled` ([n // 8]) tells of each eight rows, which are an int64, whether one of them is true."""
    if np.count_nonzero(filled) > _FILLED * filled.shape[0]:
        return mask.nonzero()[0]
    # Eight rows at a time: first the words that have a true row, then the true rows among those words' rows.
    size = mask.shape[0]
    end = size & ~7
    hits = true_positions(filled)
    within = mask[:end].view(np.int64).take(hits).view(np.bool_).nonzero()[0]
    rows = hits.take(within >> 3)
    rows <<= 3
    within &= 7
    rows |= within
    return rows if end == size else np.concatenate([rows, mask[end:].nonzero()[0] + end])


#: From this share of rows on, all of them are computed rather than the ones to keep gathered.
_MOST = 0.7


def select_most(mask: Values, num_rows: int, most: float = _MOST) -> tuple[Values | None, Values | None, int]:
    """How to go on with the true rows of `mask` (bool [n]), where going on with all of them is an option.

    (row indices, None, how many) where few rows are true: they are to be gathered. (None, mask, n) where most are: all
    rows are to be computed, and the mask tells which count. (None, None, n) where all are.
    """
    count = count_true(mask)
    if count == num_rows:
        return None, None, num_rows
    if count < most * num_rows:
        return row_indices(mask), None, count
    return None, mask, num_rows


def count_true(mask: Tensor | Array) -> int:
    """How many of bool [n] are true."""
    if isinstance(mask, np.ndarray):
        return int(np.count_nonzero(mask))
    return int(np.count_nonzero(mask.numpy())) if is_host(mask) else int(mask.sum())


def take_selected(values: Values, rows: Values | None) -> Values:
    """The given rows of `values` [n, ...], or all of them."""
    return values if rows is None else take(values, rows)


def take(values: Values, rows: Values) -> Values:
    """The given rows of `values` [n, ...].

    Of arrays, `rows` may be of any integer width; one that is not there gives another one, or raises IndexError.
    """
    if not isinstance(rows, np.ndarray):
        return torch.index_select(values, 0, rows)
    assert isinstance(values, np.ndarray)
    if rows.itemsize <= 4 and rows.shape[0] >= _MANY_INDICES:
        narrow = torch.from_numpy(rows.astype(np.int32, copy=False))
        selected = torch.index_select(torch.from_numpy(values), 0, narrow)
        return np.asarray(selected.numpy())
    return np.asarray(values.take(rows, 0, mode="clip"))  # every other mode looks at all rows first


def scattered(values: Values, places: Values, size: int, otherwise: int) -> Values:
    """[size]: the values [m], integers, at different places (int64 [m]), and `otherwise` where there is none."""
    if isinstance(values, np.ndarray):
        array = np.full(size, otherwise, values.dtype)
        array[places] = values
        return array
    tensor = torch.full((size,), otherwise, dtype=values.dtype, device=values.device)
    return tensor.scatter_(0, places, values)


def take_optional(validity: Tensor | None, rows: Tensor) -> Tensor | None:
    """The given rows of a validity (bool [n]) or None, meaning that all are valid."""
    return None if validity is None else torch.index_select(validity, 0, rows)


def compose_selected(rows_outer: Values | None, rows_inner: Values | None) -> Values | None:
    """One gather for two: `take(take(x, rows_outer), rows_inner) == take(x, compose_selected(rows_outer, rows_inner))`.

    Either may be None, meaning all rows.
    """
    if rows_outer is None or rows_inner is None:
        return rows_inner if rows_outer is None else rows_outer
    return take(rows_outer, rows_inner)


def compose_padded(rows_outer: Values, rows_inner: Values) -> Values:
    """As `compose_selected` where rows_inner may be -1, which stays -1; rows_outer may hold -1 too."""
    rows = take_padded(rows_outer, rows_inner)
    # (index >> 31 or 63) has all bits set exactly where index is -1, and so has x | -1
    if isinstance(rows, np.ndarray) and isinstance(rows_inner, np.ndarray):
        return np.asarray(rows | (rows_inner >> (rows_inner.itemsize * 8 - 1)).astype(rows.dtype))
    return rows | (rows_inner >> (rows_inner.element_size() * 8 - 1)).to(rows.dtype)


def take_padded(values: Values, rows: Values) -> Values:
    """The given rows of `values` [n, ...]; where a row is -1 any value (zeros if n is 0).

    Use `padding_validity` to know which ones count.
    """
    if isinstance(values, np.ndarray):
        if values.shape[0] == 0:
            return np.zeros((rows.shape[0], *values.shape[1:]), values.dtype)
        return np.asarray(values.take(rows, 0, mode="clip"))
    if values.shape[0] == 0:
        return values.new_zeros((rows.shape[0], *values.shape[1:]))
    return torch.index_select(values, 0, rows.clamp(min=0))


def padding_validity(rows: Values, validity: Values | None) -> Values:
    """Validity (bool [len(rows)]) of a column taken by `take_padded`: False where the row is -1 or was NULL."""
    present = rows >= 0
    if validity is not None:
        present &= take_padded(validity, rows)
    return present
