"""Read strings eight bytes at a time: the step on which comparison, hashing and ranking are built."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from tqp.core.process.memory_budget import reserve
from tqp.data.backend import is_host
from tqp.data.strings import OrderedStrings, Strings
from tqp.operators.numbers import elementwise
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings import scan as string_scan

WORD = 8
_PAIR = 2 * WORD
#: Rows worked on at a time on the CPU, so that what is computed of them stays in the cache.
BLOCK = 65_536

#: Bytes for each row that a look for zeros reads at most: it costs a fiftieth of what a gathered byte does.
_SCANNED_BYTES = 64

#: Of each row, so many numbers of 64 bits exist while a word is read.
_WORDS_AT_ONCE = 5
#: Entry k keeps the first k bytes of a little-endian word.
_KEEP = torch.tensor([(1 << (8 * k)) - 1 for k in range(8)] + [-1], dtype=torch.int64)

#: `leading_words` reads rows up to so long.
LONGEST_LEADING = 64
#: Entry LONGEST_LEADING + k does so for every k from -LONGEST_LEADING to LONGEST_LEADING.
_KEEP_FROM_START = torch.cat(
    [torch.zeros(LONGEST_LEADING, dtype=torch.int64), _KEEP, _KEEP[-1].expand(LONGEST_LEADING - WORD)]
)
#: Entry LONGEST_LEADING + k has the bits of a word's byte k - 1 for k from 1 to WORD, and none for others.
_LAST_BYTE = torch.zeros(2 * LONGEST_LEADING + 1, dtype=torch.int64)
_LAST_BYTE[LONGEST_LEADING + 1 : LONGEST_LEADING + 1 + WORD] = torch.tensor(
    [0xFF << (8 * k) for k in range(WORD - 1)] + [-1 << 56]
)


def words(strings: Strings, offset: int, count: int = 1) -> Tensor:
    """Bytes offset .. offset + 8 * count of each row as little-endian words, zero past the row's end.

    int64 [n] when count is 1, else int64 [n, count].
    """
    if count > 1:
        if is_host(strings.starts) and strings.data.shape[0] >= count * WORD:
            return _words_together(strings, offset, count)
        return _words_apart(strings, offset, count)
    if not is_host(strings.starts):  # all rows at once, not block by block
        reserve(_WORDS_AT_ONCE * WORD * strings.num_rows)
    data = (
        strings.data
        if strings.data.shape[0] >= WORD
        else pad(strings.data, (0, WORD - strings.data.shape[0]))
    )
    last = data.shape[0] - WORD
    starts = strings.starts + offset if offset else strings.starts
    # A strided view whose row i is the eight bytes from i on: index_select then copies one word a row.
    windows = data.as_strided((last + 1, WORD), (1, 1))
    near_end = not is_host(starts) or (starts.numel() > 0 and int(starts.max()) > last)
    if near_end:
        inside = starts.clamp(max=last)
        result = torch.index_select(windows, 0, inside).view(torch.int64).view(-1)
        result = result >> ((starts - inside) * 8).clamp_(max=63)
    else:
        result = torch.index_select(windows, 0, starts).view(torch.int64).view(-1)
    if strings.num_rows and is_host(strings.starts) and int(strings.lengths.min()) >= offset + WORD:
        return result
    remaining = (strings.lengths - offset).clamp_(0, WORD)
    return result & torch.index_select(_KEEP.to(starts.device), 0, remaining)


def _words_together(strings: Strings, offset: int, count: int) -> Tensor:
    """Several words of each row, read together: bytes that lie apart cost a cache miss each time they are looked at."""
    last = strings.data.shape[0] - count * WORD
    places = strings.starts + offset if offset else strings.starts
    windows = strings.data.as_strided((last + 1, count * WORD), (1, 1))
    late = strings.num_rows > 0 and int(places.max()) > last
    inside = places.clamp(max=last) if late else places
    result = torch.index_select(windows, 0, inside).view(torch.int64)
    whole = max(0, int(strings.lengths.min()) - offset) // WORD if strings.num_rows else count
    if whole < count:
        ends = torch.arange(offset + whole * WORD, offset + count * WORD, WORD, dtype=torch.int32)
        remaining = (strings.lengths.unsqueeze(1) - ends).clamp_(0, WORD)
        result[:, whole:] &= torch.index_select(_KEEP, 0, remaining.view(-1)).view(remaining.shape)
    if late:  # too near to the end of the bytes
        rows = torch.nonzero(places > last).squeeze(1)
        slices = Strings(strings.starts[rows], strings.lengths[rows], strings.data)
        result[rows] = _words_apart(slices, offset, count)
    return result


def _words_apart(strings: Strings, offset: int, count: int) -> Tensor:
    """As `words`, each read by itself."""
    places = torch.arange(offset, offset + count * WORD, WORD, device=strings.starts.device)
    starts = (strings.starts.unsqueeze(1) + places).view(-1)
    lengths = (strings.lengths.unsqueeze(1) - places).view(-1)
    return words(Strings(starts, lengths, strings.data), 0).view(-1, count)


def leading_words(strings: Strings, longest: int) -> list[Tensor]:
    """The words of rows of at most `longest` bytes, up to 64, little-endian: int64 [n] each, zero past the row's end.

    Longer rows are cut. Two words of a row are read together.
    """
    count = -(-longest // WORD)
    size = strings.data.shape[0]
    if not is_host(strings.starts) or strings.num_rows == 0 or size < (count + 1) * WORD:
        cut_rows = strings._replace(lengths=strings.lengths.clamp(max=longest))
        return [words(cut_rows, position * WORD) for position in range(count)]
    highest = int(strings.starts.numpy().max())
    shortest = min(int(strings.lengths.numpy().min()), longest)
    lengths = strings.lengths.clamp(max=longest)
    found: list[Tensor] = []
    for offset in range(0, count * WORD, _PAIR):
        width = min(_PAIR, count * WORD - offset)
        last = size - offset - width
        inside = strings.starts.clamp(max=last) if highest > last else strings.starts
        windows = strings.data.as_strided((last + 1, width), (1, 1), strings.data.storage_offset() + offset)
        read = torch.index_select(windows, 0, inside).view(torch.int64)
        late = row_indices(strings.starts > last) if highest > last else None
        for place, word in enumerate(read.unbind(1)):
            at = offset + place * WORD
            if shortest >= at + WORD:
                kept = word.contiguous()
            else:
                kept = torch.index_select(_KEEP_FROM_START[LONGEST_LEADING - at :], 0, lengths)
                np.bitwise_and(word.numpy(), kept.numpy(), out=kept.numpy())
            if late is not None:  # too near to the end of the bytes
                kept[late] = words(Strings(strings.starts[late], lengths[late], strings.data), at)
            found.append(kept)
    return found


def any_ends_in_nul(leading: Sequence[Tensor], lengths: Tensor) -> bool:
    """Is the last byte of any row 0, where `leading_words` gave all words of rows of these lengths (int32 [n])?"""
    last = torch.zeros_like(leading[0]) if leading else torch.zeros_like(lengths, dtype=torch.int64)
    table = _LAST_BYTE.to(lengths.device)
    for position, word in enumerate(leading):
        of_word = torch.index_select(table[LONGEST_LEADING - position * WORD :], 0, lengths)
        last |= of_word.bitwise_and_(word)
    return bool(elementwise.equal(last, 0).logical_and_(elementwise.greater(lengths, 0)).any())


def ends_in_nul(strings: Strings) -> Tensor | None:
    """bool [n]: is the last byte 0, so that the bytes past the end look like a part of the row? None if it never is."""
    if strings.num_rows == 0 or lacks_nul(strings):
        return None
    last = elementwise.add(strings.starts, strings.lengths).sub_(1).clamp_(min=0)
    return elementwise.equal(torch.index_select(strings.data, 0, last), 0).logical_and_(strings.lengths > 0)


def lacks_nul(strings: Strings) -> bool:
    """Whether there is no zero byte from the first row to the last one, where these lie close enough for a look."""
    size = strings.data.shape[0]
    if not is_host(strings.starts) or size == 0:
        return size == 0
    starts, lengths = strings.starts.numpy(), strings.lengths.numpy()
    low, high = int(starts.min()), min(int(starts.max()) + int(lengths.max()), size)
    if high - low > _SCANNED_BYTES * strings.num_rows:
        return False
    return low >= high or int(strings.data[low:high].numpy().min()) > 0


def stands_at(strings: Strings, places: Tensor, word: bytes, fits: Tensor) -> Tensor:
    """Whether `word` stands at the row's place (int64 [n], an offset into the bytes), for rows that it `fits`: bool [n].

    Places are as far from their rows' starts, or ends, as those of all others.
    """
    if not word or strings.num_rows == 0 or strings.data.shape[0] == 0:
        return fits
    if is_host(places):
        ascending = isinstance(strings, OrderedStrings)
        found = string_scan.stands_at(strings.data.numpy(), word, places.numpy(), fits.numpy(), ascending)
        return torch.from_numpy(found)
    slices = Strings(places * fits, (fits * len(word)).to(torch.int32), strings.data)
    for offset in range(0, len(word), WORD):
        fits = fits & (words(slices, offset) == word_of(word[offset : offset + WORD]))
    return fits


def leading(strings: Strings, count: int) -> Tensor:
    """At least the first `count` bytes (1 to 8) of each row as little-endian integers, and whatever follows the row in them.

    An integer type of 1, 2, 4 or 8 bytes, [n].
    """
    size = next(size for size in (1, 2, 4, 8) if size >= count)
    last = strings.data.shape[0] - size
    if not is_host(strings.starts) or strings.num_rows == 0 or last < 0:
        return words(strings, 0)
    places = strings.starts.numpy()
    late = int(places.max()) > last
    inside = np.minimum(places, last) if late else places
    chunks = string_scan.chunks_at(strings.data.numpy(), size, inside)
    if late:
        chunks = chunks >> ((places - inside) << 3).astype(chunks.dtype)
    return torch.from_numpy(chunks.view(f"i{size}"))


def word_of(piece: bytes | bytearray, size: int = WORD) -> int:
    """Up to `size` bytes as `words` has them, or `leading` in an integer of that size."""
    return int.from_bytes(piece.ljust(size, b"\0"), "little", signed=True)


def big_endian(word: Tensor) -> Tensor:
    """Words whose most significant byte is the first one of the string: int64 [n] -> int64 [n]."""
    if is_host(word):
        return torch.from_numpy(word.numpy().byteswap())
    return word.contiguous().view(torch.uint8).view(-1, WORD).flip(1).reshape(-1).view(torch.int64)


def order_key(word: Tensor) -> Tensor:
    """Signed integers that compare as the words' bytes do: int64 [n] -> int64 [n]."""
    return big_endian(word).bitwise_xor_(torch.iinfo(torch.int64).min)


def step_width(offset: int) -> int:
    """How many words to read at once at `offset`: one for the first 64 bytes, then as many as were read already."""
    return 1 if offset < 64 else offset // WORD
