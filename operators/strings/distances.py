"""How far two strings are apart, byte by byte: edit distances, Jaccard, Jaro and Jaro-Winkler, of all pairs of a block at once.

A step is taken for each byte of the longer rows; pairs of about one length stand in one block, so that few bytes are padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.core.process.memory_budget import reserve
from tqp.data.backend import is_host
from tqp.data.division import divide_by
from tqp.data.repeats import numbers_of
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers.float_pairs import multiply_add
from tqp.operators.numbers.wide import raise_where
from tqp.operators.rows.batches import common_rows
from tqp.operators.rows.runs import sums_before
from tqp.operators.strings.byte_bits import Bytes, Counts, Places, alphabet_of, byte_sets
from tqp.operators.strings.layout import broadcast, compact, take, total_length

#: So many numbers of a table of bytes by bytes are worked on at a time.
_BLOCK = 1 << 20
#: What stands behind the end of a row; no byte is like it, and the one of the left is none of the right.
_LEFT_END, _RIGHT_END = -1, -2

#: Of so many places a word has a bit.
_WORD = 64

#: From bytes, int16 [rows, width] each, and lengths, int64 [rows] each, to a number for each row.
Measure = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def _measured(measure: Measure, dtype: torch.dtype, cells: Callable[[int, int], int]) -> Kernel:
    """A kernel of two strings; of rows so long, `cells` numbers exist for each while a block is measured."""

    def call(left: Strings, right: Strings) -> Tensor:
        num_rows = common_rows((left.num_rows, right.num_rows))
        left, right = broadcast(left, num_rows), broadcast(right, num_rows)
        result = torch.zeros(num_rows, dtype=dtype, device=left.starts.device)
        for rows, widths in _blocks(left, right, cells):
            sides = (take(left, rows), take(right, rows))
            lengths = [side.lengths.to(torch.int64) for side in sides]
            first, second = (
                _bytes_of(side, width, end)
                for side, width, end in zip(sides, widths, (_LEFT_END, _RIGHT_END), strict=True)
            )
            result[rows] = measure(first, second, *lengths)
        return result

    return Kernel(call)


def _blocks(
    left: Strings, right: Strings, cells: Callable[[int, int], int]
) -> Iterator[tuple[Tensor, tuple[int, int]]]:
    """Rows by length, longest first, as many as fit in a block, and the lengths of the longest on either side."""
    longer = torch.maximum(left.lengths, right.lengths)
    order = torch.argsort(longer, descending=True)
    widths = longer[order].tolist()
    done = 0
    while done < len(widths):
        width = max(widths[done], 1)
        rows = order[done : done + max(1, _BLOCK // cells(width, width))]
        sizes = torch.stack([side.lengths[rows].max() for side in (left, right)]).clamp(min=1).tolist()
        reserve(4 * rows.shape[0] * cells(*sizes))
        yield rows, (sizes[0], sizes[1])
        done += rows.shape[0]


def _bytes_of(strings: Strings, width: int, end: int) -> Tensor:
    """The bytes of each row, `end` behind them: int16 [n, width]."""
    places = torch.arange(width, device=strings.starts.device)
    is_there = places < strings.lengths.unsqueeze(1)
    if strings.data.shape[0] == 0:
        return torch.full(is_there.shape, end, dtype=torch.int16, device=places.device)
    at = (strings.starts.unsqueeze(1) + places) * is_there
    found = torch.index_select(strings.data, 0, at.reshape(-1)).view(at.shape)
    return torch.where(is_there, found.to(torch.int16), end)


# ---- edit distances --------------------------------------------------------------------------------------------------


def _levenshtein(left: Tensor, right: Tensor, left_lengths: Tensor, right_lengths: Tensor) -> Tensor:
    """Insertions, deletions and substitutions."""
    if is_host(left) and right.shape[1] <= _WORD:
        sides = (left.numpy(), right.numpy(), left_lengths.numpy(), right_lengths.numpy())
        return torch.from_numpy(_levenshtein_by_bits(*sides))
    column = torch.arange(right.shape[1] + 1, dtype=torch.int32, device=left.device)
    costs = column.expand(left.shape[0], -1)
    result = right_lengths.clone()
    for place in range(left.shape[1]):
        differs = left[:, place : place + 1] != right
        costs = _with_insertions(place + 1, torch.minimum(costs[:, :-1] + differs, costs[:, 1:] + 1), column)
        result = _at_end(result, costs, left_lengths == place + 1, right_lengths)
    return result


def _levenshtein_by_bits(left: Bytes, right: Bytes, left_lengths: Counts, right_lengths: Counts) -> Counts:
    """As `_levenshtein`, a row of its table being two words, of the places where costs rise and fall by one.

    G. Myers, A fast bit-vector algorithm for approximate string matching, 1999, over many pairs at once.
    """
    one = np.uint64(1)
    num_rows = len(left)
    rises, falls = np.full(num_rows, ~np.uint64(0)), np.zeros(num_rows, np.uint64)
    last = np.maximum(right_lengths - 1, 0).astype(np.uint64)
    costs, places = right_lengths.copy(), Places(right)
    for place in range(left.shape[1]):
        is_same = places.of(left[:, place])
        across = (((is_same & rises) + rises) ^ rises) | is_same
        above, below = falls | ~(across | rises), rises & across
        is_open = place < left_lengths
        costs += (
            ((above >> last) & one).astype(np.int64) - ((below >> last) & one).astype(np.int64)
        ) * is_open
        above = (above << one) | one
        same_or_fell = is_same | falls
        rises, falls = (below << one) | ~(same_or_fell | above), above & same_or_fell
    return np.where(right_lengths == 0, left_lengths, costs)


def _with_insertions(deletions: int, others: Tensor, column: Tensor) -> Tensor:
    """A row of costs: without insertions they are these, behind a first one; each byte that is inserted costs one more."""
    first = torch.full_like(others[:, :1], deletions)
    return torch.cummin(torch.cat([first, others], 1) - column, 1).values + column


def _at_end(result: Tensor, costs: Tensor, is_end: Tensor, right_lengths: Tensor) -> Tensor:
    """The cost at the right side's end, for rows whose left side ends here."""
    return torch.where(is_end, costs.gather(1, right_lengths.unsqueeze(1)).squeeze(1), result)


def _damerau_levenshtein(left: Tensor, right: Tensor, left_lengths: Tensor, right_lengths: Tensor) -> Tensor:
    """With exchanges of neighbours, between which others may be inserted or deleted later."""
    num_rows, width = right.shape
    column = torch.arange(width + 1, dtype=torch.int32, device=left.device)
    # Tables of costs by bytes of the left and the right, in a frame of costs that none takes.
    table = torch.full((num_rows, left.shape[1] + 2, width + 2), 2**30, dtype=torch.int32, device=left.device)
    table[:, 1, 1:] = column
    seen = torch.zeros((num_rows, width), dtype=torch.int64, device=left.device)  # where the left last had it
    of_row = torch.arange(num_rows, device=left.device).unsqueeze(1)
    result = right_lengths.clone()
    for place in range(1, left.shape[1] + 1):
        is_same = left[:, place - 1 : place] == right
        before = table[:, place, 1:]
        last = torch.cummax(is_same * column[1:], 1).values  # where the right has this byte, up to here ...
        last = torch.nn.functional.pad(last[:, :-1], (1, 0)).to(torch.int64)  # ... and before it
        exchanged = table[of_row, seen, last] + (place - 1 - seen) + (column[1:] - last)
        others = torch.minimum(before[:, :-1] + ~is_same, before[:, 1:] + 1)
        costs = _with_insertions(place, torch.minimum(others, exchanged).to(torch.int32), column)
        table[:, place + 1, 1:] = costs
        seen = torch.where(is_same, place, seen)
        result = _at_end(result, costs, left_lengths == place, right_lengths)
    return result


# ---- shares of what both have ----------------------------------------------------------------------------------------


def _jaro(left: Tensor, right: Tensor, left_lengths: Tensor, right_lengths: Tensor) -> Tensor:
    """Bytes that both have near to one place, and how many of these are in another order: float64 [n], 0 without any."""
    if is_host(left) and left.shape[1] <= _WORD:
        common_of = _common_by_bits(left.numpy(), right.numpy(), left_lengths.numpy(), right_lengths.numpy())
        taken, of_right = map(torch.from_numpy, common_of)
    else:
        taken, of_right = _common(left, right, left_lengths, right_lengths)
    width = min(left.shape[1], right.shape[1])
    differs = _in_order(left, taken, width) != _in_order(right, of_right, width)
    exchanged = torch.div(differs.sum(1), 2, rounding_mode="floor")
    common = taken.sum(1).to(torch.float64)
    shares = common / left_lengths + common / right_lengths + (common - exchanged) / common
    return torch.where(common > 0, divide_by(shares, 3.0), 0.0)


def _common(
    left: Tensor, right: Tensor, left_lengths: Tensor, right_lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """Where the left and the right have bytes in common, bool [n, width] each: of each byte of the right the first one that is left."""
    longer = torch.maximum(left_lengths, right_lengths)
    reach = (torch.div(longer, 2, rounding_mode="floor") - 1).clamp(min=0).unsqueeze(1)
    places = torch.arange(left.shape[1], device=left.device)
    taken, of_right = torch.zeros_like(left, dtype=torch.bool), torch.zeros_like(right, dtype=torch.bool)
    for place in range(right.shape[1]):
        fits = (left == right[:, place : place + 1]) & ~taken & ((places - place).abs() <= reach)
        found = fits.any(1)
        first = fits.to(torch.uint8).argmax(1, keepdim=True)
        taken.scatter_(1, first, taken.gather(1, first) | found.unsqueeze(1))
        of_right[:, place] = found
    return taken, of_right


def _common_by_bits(
    left: Bytes, right: Bytes, left_lengths: Counts, right_lengths: Counts
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """`_common` of lefts of at most 64 bytes, whose places are bits of a word."""
    one = np.uint64(1)
    reach = np.maximum(np.maximum(left_lengths, right_lengths) // 2 - 1, 0)
    near = ~np.uint64(0) >> np.maximum(_WORD - 1 - reach, 0).astype(
        np.uint64
    )  # places of the left near the first
    taken, of_right = np.zeros(len(left), np.uint64), np.zeros(right.shape, np.bool_)
    places = Places(left)
    for place in range(right.shape[1]):
        fits = places.of(right[:, place]) & near & ~taken
        first = fits & (~fits + one)
        taken |= first
        of_right[:, place] = first != 0
        near = (near << one) | (place < reach)
    bits = np.unpackbits(taken.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    return bits[:, : left.shape[1]].astype(np.bool_), of_right


def _in_order(values: Tensor, chosen: Tensor, width: int) -> Tensor:
    """The chosen values of each row one after the other: [n, width + 1], of which the last is of no meaning."""
    places = torch.where(chosen, chosen.cumsum(1) - 1, width)
    result = torch.zeros((values.shape[0], width + 1), dtype=values.dtype, device=values.device)
    result.scatter_(1, places, values)
    result[:, width] = 0
    return result


def _jaro_winkler(left: Tensor, right: Tensor, left_lengths: Tensor, right_lengths: Tensor) -> Tensor:
    """Jaro's, more where up to four bytes at the start are the same."""
    similarity = _jaro(left, right, left_lengths, right_lengths)
    width = min(4, left.shape[1], right.shape[1])
    prefix = (left[:, :width] == right[:, :width]).to(torch.int64).cumprod(1).sum(1).to(torch.float64)
    return torch.where(similarity > 0.7, multiply_add(prefix * 0.1, 1.0 - similarity, similarity), similarity)


def _similarity(measure: Measure) -> Overload:
    """Of two strings; a third argument is the least similarity that counts, what is below it is 0."""
    kernel = _measured(measure, torch.float64, lambda left, right: 4 * (left + right) + 64)

    def at_least(left: Strings, right: Strings, least: Tensor) -> Tensor:
        found: Tensor = kernel.function(left, right)
        return torch.where(found >= least, found, 0.0)

    return lambda argument_types, result_type: kernel if len(argument_types) == 2 else Kernel(at_least)


# ---- bytes in place, and of a set ------------------------------------------------------------------------------------


def _hamming(left: Strings, right: Strings, *, validity: Tensor | None = None) -> Tensor:
    """How many bytes differ from those in their places: int64 [n]. Raises ExecutionError unless both are as long, and not empty."""
    raise_where(left.lengths != right.lengths, "hamming(): strings must be of equal length", validity)
    raise_where(left.lengths == 0, "hamming(): strings must not be empty", validity)
    num_rows = common_rows((left.num_rows, right.num_rows))
    left, right = broadcast(left, num_rows), broadcast(right, num_rows)
    if validity is not None:
        lengths = left.lengths * validity
        left, right = left._replace(lengths=lengths), right._replace(lengths=lengths)
    left, right = compact(Strings(*left)), compact(Strings(*right))
    sums = sums_before(left.data != right.data)
    return sums[left.starts + left.lengths] - sums[left.starts]


def _jaccard(left: Strings, right: Strings, *, validity: Tensor | None = None) -> Tensor:
    """The share that bytes of both are of those of either: float64 [n]. Raises ExecutionError where one is empty."""
    is_empty = (left.lengths == 0) | (right.lengths == 0)
    raise_where(is_empty, "jaccard(): strings must not be empty", validity)
    if is_host(left.starts):
        return torch.from_numpy(_share_of_sets(left, right))
    first, second = _byte_sets(left), _byte_sets(right)
    return (first & second).sum(1) / (first | second).sum(1).to(torch.float64)


def _share_of_sets(left: Strings, right: Strings) -> npt.NDArray[np.float64]:
    """`_jaccard` on the host; NaN where both are empty."""
    left, right = compact(left), compact(right)
    alphabet = alphabet_of(left, right)
    shared, either = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for first, second in zip(byte_sets(left, alphabet), byte_sets(right, alphabet), strict=True):
        shared, either = shared + np.bitwise_count(first & second), either + np.bitwise_count(first | second)
    with np.errstate(invalid="ignore"):
        share = shared / either
    return np.broadcast_to(share, common_rows((left.num_rows, right.num_rows))).copy()


def _byte_sets(strings: Strings) -> Tensor:
    """Which bytes each row has: bool [n, 256]."""
    reserve(256 * strings.num_rows + 16 * total_length(strings))
    strings = compact(strings)
    places = numbers_of(strings.lengths, strings.data.shape[0]) * 256
    found = torch.zeros(strings.num_rows * 256, dtype=torch.bool, device=places.device)
    found[places + strings.data] = True
    return found.view(-1, 256)


def _always(kernel: Kernel) -> Overload:
    return lambda argument_types, result_type: kernel


DISTANCE_KERNELS: dict[str, Overload] = {
    "levenshtein": _always(_measured(_levenshtein, torch.int64, lambda left, right: 8 * (right + 1))),
    "damerau_levenshtein": _always(
        _measured(
            _damerau_levenshtein, torch.int64, lambda left, right: (left + 2) * (right + 2) + 16 * right + 16
        )
    ),
    "hamming": _always(Kernel(_hamming, checks=True)),
    "jaccard": _always(Kernel(_jaccard, checks=True)),
    "jaro_similarity": _similarity(_jaro),
    "jaro_winkler_similarity": _similarity(_jaro_winkler),
}
