"""Find words in strings: prefixes, suffixes, occurrences and positions. LIKE patterns are built on it in `string_like`."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators import elementwise, string_scan
from tqp.operators.rows import row_indices
from tqp.operators.string_compare import equal
from tqp.operators.string_layout import ordered, to_list
from tqp.operators.string_words import stands_at

#: A later word of a pattern is looked for first if its rarest byte is this many times as rare as the first word's.
_MUCH_RARER = 8


def starts_with_word(strings: Strings, word: bytes) -> Tensor:
    """Whether each row starts with `word`: bool [n]."""
    return stands_at(strings, strings.starts, word, elementwise.greater_equal(strings.lengths, len(word)))


def ends_with_word(strings: Strings, word: bytes) -> Tensor:
    """Whether each row ends with `word`: bool [n]."""
    places = strings.starts + (strings.lengths - len(word))
    return stands_at(strings, places, word, elementwise.greater_equal(strings.lengths, len(word)))


def contains_word(strings: Strings, word: bytes) -> Tensor:
    """Whether `word` occurs in each row: bool [n]."""
    if strings.starts.device.type == "cpu" and word and strings.num_rows:
        strings = ordered(strings)
        low, high = int(strings.starts[0]), int(strings.starts[-1] + strings.lengths[-1])
        if string_scan.is_common(strings.data[low:high].numpy(), word, strings.num_rows):
            starts = strings.starts.numpy()
            ends = starts + strings.lengths.numpy()
            return torch.from_numpy(string_scan.matches_within(strings.data.numpy(), starts, ends, word))
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
    if hits.device.type == "cpu":
        rows = torch.from_numpy(string_scan.rows_of(strings.starts.numpy(), hits.numpy()))
    else:
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
    hits = torch.from_numpy(string_scan.find_all(span.numpy(), word)) if on_host else _scan(span, word)
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


def much_rarer_word(strings: Strings, candidates: list[bytes]) -> int:
    """Index of the word to look for first: one that likely occurs in far fewer rows than the first, else 0."""
    if len(candidates) == 1 or strings.starts.device.type != "cpu" or strings.num_rows == 0:
        return 0
    counts = string_scan.byte_counts(strings.data[int(strings.starts[0]) :].numpy())
    rarities = [min(int(counts[byte]) for byte in candidate) for candidate in candidates]
    rarest = min(range(len(candidates)), key=rarities.__getitem__)
    return rarest if rarities[rarest] * _MUCH_RARER < rarities[0] else 0


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
