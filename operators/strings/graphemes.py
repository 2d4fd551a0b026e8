"""What a reader sees as one character: code points cut into grapheme clusters by Unicode's rules (UAX 29), as DuckDB does.

Python's tables know the marks; what they do not say is listed here, with the marks of Unicode 15.1 that are newer than
the tables of Python 3.11. Cutting is row by row, so that rows which hold none of the code points that join others are found first.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from enum import Enum, auto
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.strings.characters import Bounds, index_characters, inside, slice_characters
from tqp.operators.strings.layout import extent, ordered, take, to_host, to_list


def _code_points(ranges: str) -> frozenset[int]:
    """Of a text such as '600-605 6dd': the code points, in hexadecimal."""
    bounds = [part.split("-") for part in ranges.split()]
    return frozenset(code for bound in bounds for code in range(int(bound[0], 16), int(bound[-1], 16) + 1))


#: Marks that the tables of Python 3.11 do not know.
NEWER_MARKS = _code_points(
    "cf3 ece 10efd-10eff 11241 11f00-11f01 11f03 11f34-11f3a 11f3e-11f42 13440 13447-13455 1e08f 1e4ec-1e4ef"
)
#: Not marks by category, but joined to what stands before them: joiners, halves of letters, skin tones, tags.
_MORE_MARKS = NEWER_MARKS | _code_points("e33 eb3 200c-200d ff9e-ff9f 1f3fb-1f3ff e0020-e007f")
#: Marks by category that stand alone.
_LONE_MARKS = _code_points(
    "102b-102c 1038 1062-1064 1067-106d 1083 1087-108c 108f 109a-109c 1a61 1a63-1a64 aa7b aa7d 11720-11721"
)
#: Marks that take a place of their own: those of category Mc but for some, and some newer ones. No emoji has one.
_NARROW_MARKS = _code_points(
    "9be 9d7 b3e b57 bbe bd7 cc2 cd5-cd6 d3e d57 dcf ddf 1b35 302e-302f 1133e 11357 114b0 114bd 115af 11930 1d165 1d16e-1d172"
)
_MORE_WIDE_MARKS = _code_points("e33 eb3 cf3 11f03 11f34-11f35 11f3e-11f3f 11f41")
#: Signs that are joined to what follows.
_PREFIXES = _code_points(
    "600-605 6dd 70f 890-891 8e2 d4e 110bd 110cd 111c2-111c3 1193f 11941 11a3a 11a84-11a89 11d46 11f02"
)
_NEWER_CONTROLS = _code_points("13439-1343f")
#: Consonants of scripts that write several as one, and the signs that tie them.
_CONSONANTS = _code_points(
    "915-939 958-95f 978-97f 995-9a8 9aa-9b0 9b2 9b6-9b9 9dc-9dd 9df 9f0-9f1 a95-aa8 aaa-ab0 ab2-ab3 ab5-ab9 af9 b15-b28 "
    "b2a-b30 b32-b33 b35-b39 b5c-b5d b5f b71 c15-c28 c2a-c39 c58-c5a d15-d3a"
)
_LINKERS = _code_points("94d 9cd acd b4d c4d d4d")
_VIRAMA = 9  # the combining class of signs that end a conjunct
#: What a zero-width joiner joins.
_EMOJI = _code_points(
    "a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 231a-231b 2328 2388 23cf 23e9-23f3 23f8-23fa 24c2 25aa-25ab 25b6 25c0 "
    "25fb-25fe 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 271d 2721 2728 2733-2734 2744 2747 274c 274e "
    "2753-2755 2757 2763-2767 2795-2797 27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030 303d 3297 3299 "
    "1f000-1f02b 1f030-1f093 1f0a0-1f0ae 1f0b1-1f0bf 1f0c1-1f0cf 1f0d1-1f0f5 1f10d-1f10f 1f12f 1f16c-1f171 1f17e-1f17f "
    "1f18e 1f191-1f19a 1f1ad 1f201-1f202 1f21a 1f22f 1f232-1f23a 1f250-1f251 1f260-1f265 1f300-1f3fa 1f400-1f53d "
    "1f546-1f64f 1f680-1f6d7 1f6dc-1f6ec 1f6f0-1f6fc 1f774-1f776 1f77b-1f77f 1f7d5-1f7d9 1f7e0-1f7eb 1f7f0 1f8b0-1f8b1 "
    "1f90c-1f93a 1f93c-1f945 1f947-1fa53 1fa60-1fa6d 1fa70-1fa7c 1fa80-1fa88 1fa90-1fabd 1fabf-1fac5 1face-1fadb "
    "1fae0-1fae8 1faf0-1faf8"
)
_JOINER = 0x200D


class _Kind(Enum):
    """How a code point stands to its neighbours; the last five are parts of Korean syllables, and whole ones."""

    OTHER = auto()
    CONTROL = auto()
    MARK = auto()
    PREFIX = auto()
    FLAG = auto()  # half of one
    INITIAL = auto()
    VOWEL = auto()
    FINAL = auto()
    OPEN = auto()
    CLOSED = auto()


#: Parts of Korean syllables that are joined to what may stand before them.
_SYLLABLES = {
    _Kind.INITIAL: {_Kind.INITIAL, _Kind.VOWEL, _Kind.OPEN, _Kind.CLOSED},
    _Kind.OPEN: {_Kind.VOWEL, _Kind.FINAL},
    _Kind.VOWEL: {_Kind.VOWEL, _Kind.FINAL},
    _Kind.CLOSED: {_Kind.FINAL},
    _Kind.FINAL: {_Kind.FINAL},
}
_PARTS = (
    (_Kind.INITIAL, _code_points("1100-115f a960-a97c")),
    (_Kind.VOWEL, _code_points("1160-11a7 d7b0-d7c6")),
    (_Kind.FINAL, _code_points("11a8-11ff d7cb-d7fb")),
)
_FIRST_SYLLABLE, _LAST_SYLLABLE, _FINALS = 0xAC00, 0xD7A3, 28


@lru_cache(maxsize=4096)
def _kind(code: int) -> _Kind:
    category = unicodedata.category(chr(code))
    if code in _MORE_MARKS or (category in ("Mn", "Me", "Mc") and code not in _LONE_MARKS):
        return _Kind.MARK
    if code in _PREFIXES:
        return _Kind.PREFIX
    if category in ("Cc", "Cf", "Zl", "Zp") or code in _NEWER_CONTROLS:
        return _Kind.CONTROL
    if 0x1F1E6 <= code <= 0x1F1FF:
        return _Kind.FLAG
    if _FIRST_SYLLABLE <= code <= _LAST_SYLLABLE:
        return _Kind.CLOSED if (code - _FIRST_SYLLABLE) % _FINALS else _Kind.OPEN
    return next((kind for kind, codes in _PARTS if code in codes), _Kind.OTHER)


def graphemes(text: str) -> list[str]:
    """`text` cut into what a reader sees as characters."""
    starts = [position for position, joined in enumerate(_joined(map(ord, text))) if not joined]
    return [text[start:stop] for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]


def _joined(codes: Iterable[int]) -> Iterable[bool]:
    """Of each code point, whether it is one character with the one before."""
    before, before_kind = 0, _Kind.CONTROL
    flags = 0  # halves of flags right before
    after_emoji = is_joined = False  # an emoji with its marks stands before; a joiner after it
    after_consonant = is_linked = False
    for code in codes:
        kind = _kind(code)
        if _Kind.CONTROL in (before_kind, kind):
            yield before == 0x0D and code == 0x0A
        else:
            yield (
                kind is _Kind.MARK
                or before_kind is _Kind.PREFIX
                or kind in _SYLLABLES.get(before_kind, ())
                or (is_joined and code in _EMOJI)
                or (is_linked and code in _CONSONANTS)
                or (kind is _Kind.FLAG and flags % 2 == 1)
            )
        flags = flags + 1 if kind is _Kind.FLAG else 0
        is_joined = after_emoji and code == _JOINER
        after_emoji = code in _EMOJI or (after_emoji and kind is _Kind.MARK and not _ends_emoji(code))
        is_linked = after_consonant and (code in _LINKERS or (is_linked and _is_in_conjunct(code)))
        after_consonant = code in _CONSONANTS or (
            after_consonant and (code in _LINKERS or _is_in_conjunct(code))
        )
        before, before_kind = code, kind


def _ends_emoji(mark: int) -> bool:
    """Marks behind which no joiner ties an emoji to another: a joiner, and those that take a place of their own."""
    is_wide = unicodedata.category(chr(mark)) == "Mc" and mark not in _NARROW_MARKS
    return mark == _JOINER or is_wide or mark in _MORE_WIDE_MARKS


def _is_in_conjunct(code: int) -> bool:
    """Marks that may stand between a consonant and the sign that ties it to the next."""
    return code == _JOINER or unicodedata.combining(chr(code)) not in (0, _VIRAMA)


_JOINING = frozenset({_Kind.MARK, _Kind.PREFIX, _Kind.FLAG, _Kind.INITIAL, _Kind.VOWEL, _Kind.FINAL})


@lru_cache
def _pairs_of_clusters() -> npt.NDArray[np.bool_]:
    """Of each two bytes, as a little-endian integer: may a character that joins others begin with them?"""
    pairs = np.zeros(1 << 16, np.bool_)
    for code in (
        *range(0x300, 0xD800),
        *range(0xE000, 0x20000),
        *range(0xE0000, 0xE0200),
    ):  # no marks elsewhere
        if _kind(code) in _JOINING:
            first, second = chr(code).encode()[:2]
            pairs[first | second << 8] = True
    pairs[ord("\r") | ord("\n") << 8] = True
    return pairs


def rows_with_clusters(strings: Strings) -> Tensor:
    """The rows that may hold what a reader sees as one character in several code points: int64 [m], ascending."""
    strings = ordered(strings)
    low, high = extent(strings)
    data = strings.data[low:high].numpy()
    if high - low < 2:
        return torch.empty(0, dtype=torch.int64)
    pairs = data[1:].astype(np.uint16)
    pairs <<= 8
    pairs |= data[:-1]
    places = torch.from_numpy(_pairs_of_clusters().take(pairs).nonzero()[0] + low)
    if places.shape[0] == 0:
        return places
    # A place belongs to the last row that starts at it or before, if that reaches so far.
    rows = torch.searchsorted(strings.starts, places, right=True) - 1
    inside = (rows >= 0) & (places < (strings.starts + strings.lengths)[rows.clamp(min=0)])
    found: Tensor = torch.unique(rows[inside])
    return found


def slice_graphemes(strings: Strings, bounds: Bounds) -> Strings:
    """As `slice_characters`, of what a reader sees as characters."""
    index = index_characters(strings)
    strings = index.strings
    rows = rows_with_clusters(to_host(strings))
    if not rows.shape[0]:
        return slice_characters(strings, bounds)
    starts = [_starts_in_bytes(text.decode()) for text in to_list(take(to_host(strings), rows))]
    device = strings.starts.device
    rows = rows.to(device)
    counts = index.counts.index_copy(0, rows, torch.tensor([len(each) - 1 for each in starts], device=device))
    ends = []
    for places in inside(bounds(counts), counts):
        in_bytes = index.byte_offsets(places)
        of_rows = torch.index_select(places, 0, rows).tolist()
        known = [each[place] for each, place in zip(starts, of_rows, strict=True)]
        ends.append(in_bytes.index_copy(0, rows, torch.tensor(known, device=device)))
    return Strings(strings.starts + ends[0], (ends[1] - ends[0]).to(torch.int32), strings.data)


def _starts_in_bytes(text: str) -> list[int]:
    """Where each of the characters that a reader sees begins, and where the last one ends."""
    return [0, *accumulate(len(each.encode()) for each in graphemes(text))]
