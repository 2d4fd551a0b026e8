"""Find words in strings: prefixes, suffixes, occurrences and positions. LIKE patterns are built on it in `string_like`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.rows import row_indices
from tqp.operators.string_compare import equal
from tqp.operators.string_layout import ordered, take, to_list
from tqp.operators.string_words import WORD, words

#: Bytes looked at in one step of a search, so that its masks stay in the cache.
_BLOCK = 1 << 18

#: A later word of a pattern is looked for first if its rarest byte is this many times as rare as the first word's.
_MUCH_RARER = 8


def starts_with_word(strings: Strings, word: bytes) -> Tensor:
    """Whether each row starts with `word`: bool [n]."""
    fits = strings.lengths >= len(word)
    if not word:
        return fits
    rows: Tensor | None = None
    for offset in range(0, len(word), WORD):
        piece = word[offset : offset + WORD]
        found = words(strings, offset)
        if len(piece) < WORD:
            found = found & ((1 << (8 * len(piece))) - 1)
        matches = found == int.from_bytes(piece, "little", signed=len(piece) == WORD)
        if rows is None:
            matches &= fits
        if offset + WORD >= len(word) and rows is None:
            return matches
        kept = row_indices(matches)
        rows = kept if rows is None else torch.index_select(rows, 0, kept)
        strings = take(strings, kept)
    assert rows is not None
    return torch.zeros_like(fits).index_fill_(0, rows, True)


def ends_with_word(strings: Strings, word: bytes) -> Tensor:
    """Whether each row ends with `word`: bool [n]."""
    skipped = (strings.lengths - len(word)).clamp_(min=0)
    return starts_with_word(Strings(strings.starts + skipped, strings.lengths - skipped, strings.data), word)


def contains_word(strings: Strings, word: bytes) -> Tensor:
    """Whether `word` occurs in each row: bool [n]."""
    rows, _ = first_occurrences(strings, word)
    return torch.zeros_like(strings.lengths, dtype=torch.bool).index_fill_(0, rows, True)


def first_occurrences(strings: Strings, word: bytes) -> tuple[Tensor, Tensor]:
    """Where `word` first occurs: the rows that contain it, ascending, and the offset in each; both int64 [m]."""
    device = strings.starts.device
    if not word or strings.num_rows == 0:
        return torch.arange(strings.num_rows, device=device), torch.zeros_like(strings.starts)
    strings = ordered(strings)
    hits = _scan_span(strings, word)
    if hits.shape[0] >= strings.num_rows:
        # Few rows against the hits: look up each row's first hit. If it does not end in the row, no later one does.
        first = torch.searchsorted(hits, strings.starts).clamp_(max=hits.shape[0] - 1)
        offsets = torch.index_select(hits, 0, first).sub_(strings.starts)
        rows = row_indices((offsets >= 0) & (offsets + len(word) <= strings.lengths))
        return rows, torch.index_select(offsets, 0, rows)
    rows, offsets = _hits_in_rows(strings, hits, len(word))
    is_first = torch.ones_like(rows, dtype=torch.bool)
    torch.ne(rows[1:], rows[:-1], out=is_first[1:])
    kept = row_indices(is_first)
    return torch.index_select(rows, 0, kept), torch.index_select(offsets, 0, kept)


def occurrences(strings: Strings, word: bytes) -> tuple[Tensor, Tensor]:
    """All occurrences of the non-empty `word`, overlapping ones too: rows and offsets in them, ascending, int64 [m].

    At least one row.
    """
    strings = ordered(strings)
    return _hits_in_rows(strings, _scan_span(strings, word), len(word))


def _hits_in_rows(strings: Strings, hits: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Row of each hit (offsets into the bytes of ordered rows) and offset in it, without those that leave their row."""
    rows = torch.searchsorted(strings.starts, hits, right=True).sub_(1)
    offsets = hits - torch.index_select(strings.starts, 0, rows)
    inside = row_indices(offsets + length <= torch.index_select(strings.lengths, 0, rows))
    if inside.shape[0] < rows.shape[0]:
        rows, offsets = torch.index_select(rows, 0, inside), torch.index_select(offsets, 0, inside)
    return rows, offsets


def _scan_span(strings: Strings, word: bytes) -> Tensor:
    """Where in `data` the word stands between the first and the last byte of ordered rows: int64, ascending."""
    low = int(strings.starts[0])
    span = strings.data[low : int(strings.starts[-1] + strings.lengths[-1])]
    on_host = span.device.type == "cpu"
    hits = torch.from_numpy(_scan_on_host(span.numpy(), word)) if on_host else _scan(span, word)
    return hits.add_(low)


def _scan(span: Tensor, word: bytes) -> Tensor:
    """Positions of `word` in `span`: every byte compared everywhere, one read-back."""
    count = span.shape[0] - len(word) + 1
    if count <= 0:
        return torch.empty(0, dtype=torch.int64, device=span.device)
    matches = span[:count] == word[0]
    for offset in range(1, len(word)):
        matches &= span[offset : offset + count] == word[offset]
    return row_indices(matches)


def _scan_on_host(span: npt.NDArray[np.uint8], word: bytes) -> npt.NDArray[np.int64]:
    """Positions of `word` in `span`: the two rarest bytes everywhere, the others where these match."""
    count = span.shape[0] - len(word) + 1
    if count <= 0:
        return np.empty(0, dtype=np.int64)
    order = by_rarity(span, word)
    block = min(_BLOCK, count)
    matches, second = np.empty(block, dtype=np.bool_), np.empty(block, dtype=np.bool_)
    pieces = []
    for start in range(0, count, block):
        size = min(block, count - start)
        here = matches[:size]
        np.equal(span[start + order[0] : start + order[0] + size], word[order[0]], out=here)
        if len(order) > 1:
            np.equal(span[start + order[1] : start + order[1] + size], word[order[1]], out=second[:size])
            np.logical_and(here, second[:size], out=here)
        hits = np.flatnonzero(here)
        hits += start
        pieces.append(hits)
    found = np.concatenate(pieces)
    return found if len(word) <= 2 else _verified(span, word, found)


def _verified(span: npt.NDArray[np.uint8], word: bytes, hits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The hits at which all of `word` stands, read up to eight bytes at a time."""
    offset = 0
    while offset < len(word):
        size = next(size for size in (8, 4, 2, 1) if size <= len(word) - offset)
        # An unaligned view whose entry i is the `size` bytes from i on.
        windows = np.ndarray((span.shape[0] - size + 1,), f"<u{size}", span, 0, (1,))
        hits = hits[windows[hits + offset] == int.from_bytes(word[offset : offset + size], "little")]
        offset += size
    return hits


def by_rarity(span: npt.NDArray[np.uint8], word: bytes) -> list[int]:
    """The offsets into `word`, those of the bytes that are rare in `span` first (judged by a sample)."""
    counts = _byte_counts(span)
    return sorted(range(len(word)), key=lambda offset: (counts[word[offset]], offset))


def much_rarer_word(strings: Strings, candidates: list[bytes]) -> int:
    """Index of the word to look for first: one that likely occurs in far fewer rows than the first, else 0."""
    if len(candidates) == 1 or strings.starts.device.type != "cpu" or strings.num_rows == 0:
        return 0
    counts = _byte_counts(strings.data[int(strings.starts[0]) :].numpy())
    rarities = [min(int(counts[byte]) for byte in candidate) for candidate in candidates]
    rarest = min(range(len(candidates)), key=rarities.__getitem__)
    return rarest if rarities[rarest] * _MUCH_RARER < rarities[0] else 0


def _byte_counts(span: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """How often each byte value occurs in four samples taken across `span`."""
    quarter = span.shape[0] // 4
    sample = np.concatenate([span[part * quarter : part * quarter + 1024] for part in range(4)])
    return np.bincount(sample, minlength=256)


# Functions with the needle as an argument -----------------------------------------------------------------------------


def starts_with(strings: Strings, needle: Strings) -> Tensor:
    """starts_with(strings, needle): bool [n]. Either side may be one row."""
    fits = strings.lengths >= needle.lengths
    lengths = torch.minimum(strings.lengths, needle.lengths)
    starts = strings.starts.expand(lengths.shape)
    return equal(Strings(starts, lengths, strings.data), needle).logical_and_(fits)


def ends_with(strings: Strings, needle: Strings) -> Tensor:
    """ends_with(strings, needle): bool [n]. Either side may be one row."""
    fits = strings.lengths >= needle.lengths
    lengths = torch.minimum(strings.lengths, needle.lengths)
    starts = strings.starts + (strings.lengths - lengths)
    return equal(Strings(starts, lengths, strings.data), needle).logical_and_(fits)


def contains(strings: Strings, needle: Strings) -> Tensor:
    """contains(strings, needle): bool [n]. Either side may be one row."""
    return find(strings, needle) >= 0


def find(strings: Strings, needle: Strings) -> Tensor:
    """Byte offset of the first occurrence of `needle` in each row, -1 without one: int64 [n]."""
    device = strings.starts.device
    if needle.num_rows == 1:
        rows, offsets = first_occurrences(strings, to_list(needle)[0])
        return torch.full_like(strings.starts, -1).index_copy_(0, rows, offsets)
    haystacks, needles = to_list(strings), to_list(needle)
    if len(haystacks) == 1:
        haystacks *= len(needles)
    found = [haystack.find(word) for haystack, word in zip(haystacks, needles, strict=True)]
    return torch.tensor(found, dtype=torch.int64, device=device)
