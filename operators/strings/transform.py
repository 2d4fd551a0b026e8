"""String functions that rewrite each row: trim, case, reverse, translate, replace; and those that measure it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.rows.runs import sums_before
from tqp.operators.string_keys.codes import distinct_values, of_each_value
from tqp.operators.strings.characters import (
    character_lengths,
    first_code_points,
    is_ascii,
)
from tqp.operators.strings.graphemes import graphemes, rows_with_clusters
from tqp.operators.strings.layout import (
    compact,
    extent,
    from_arrow,
    replace_rows,
    take,
    to_arrow,
    to_host,
    to_list,
    total_length,
)
from tqp.operators.strings.search import find

#: A buffer is changed as it is where it has at most so many times the bytes of its rows; else these are copied first.
_SLACK = 4

#: What TRIM removes when it is not told: Unicode's space separators (tabs and line ends stay).
_SPACES = "".join(chr(code) for code in range(0x3001) if unicodedata.category(chr(code)) == "Zs")


# Measures -------------------------------------------------------------------------------------------------------------


def grapheme_length(strings: Strings) -> Tensor:
    """What a reader sees as characters in each row, a letter with its accents being one: int64 [n]."""
    lengths = character_lengths(strings)
    on_host = to_host(strings)
    rows = rows_with_clusters(on_host)
    if rows.shape[0] == 0:
        return lengths
    codes, distinct = distinct_values(take(on_host, rows))
    counts = torch.tensor([len(graphemes(value.decode())) for value in to_list(distinct)])
    return lengths.index_copy(0, rows.to(lengths.device), counts[codes].to(lengths.device))


def octet_length(strings: Strings) -> Tensor:
    """Bytes in each row: int64 [n]."""
    return strings.lengths.to(torch.int64)


def bit_length(strings: Strings) -> Tensor:
    """Bits in each row: int64 [n]."""
    return octet_length(strings).mul_(8)


def unicode_code(strings: Strings) -> Tensor:
    """Code point of the first character, -1 for an empty row: int64 [n]."""
    return first_code_points(strings).masked_fill_(strings.lengths == 0, -1)


def position(haystack: Strings, needle: Strings) -> Tensor:
    """Character position of the first `needle`, from 1; 0 without one: int64 [n]."""
    offsets = find(haystack, needle)
    if is_ascii(haystack):
        return offsets.add_(1)
    before = offsets.clamp(min=0).to(torch.int32)
    before_strings = Strings(haystack.starts.expand(before.shape), before, haystack.data)
    return character_lengths(before_strings).add_(1).masked_fill_(offsets < 0, 0)


# Rewriting ------------------------------------------------------------------------------------------------------------


def trim(strings: Strings, characters: str = _SPACES) -> Strings:
    """Without any of `characters` at either end."""
    return _strip(strings, characters, pc.utf8_trim)


def trim_left(strings: Strings, characters: str = _SPACES) -> Strings:
    """Without any of `characters` at the start."""
    return _strip(strings, characters, pc.utf8_ltrim)


def trim_right(strings: Strings, characters: str = _SPACES) -> Strings:
    """Without any of `characters` at the end."""
    return _strip(strings, characters, pc.utf8_rtrim)


def _strip(strings: Strings, characters: str, strip: Callable[..., Any]) -> Strings:
    return _by_arrow(strings, lambda array: strip(array, characters=characters)) if characters else strings


def upper(strings: Strings) -> Strings:
    """In upper case, character by character (one stays one: 'ﬁ' has no upper case)."""
    if not is_ascii(strings):
        return _by_arrow(strings, pc.utf8_upper)
    return _switch_case(strings, ord("a"), pc.ascii_upper)


def lower(strings: Strings) -> Strings:
    """In lower case, character by character."""
    if not is_ascii(strings):
        return _by_arrow(strings, pc.utf8_lower)
    return _switch_case(strings, ord("A"), pc.ascii_lower)


def _switch_case(strings: Strings, first: int, by_arrow: Callable[..., Any]) -> Strings:
    """Switch the case of the 26 letters from `first` on, in all bytes from the first row's to the last one's."""
    close, low, high = _close_together(strings)
    data = close.data[low:high]
    if is_host(data):
        buffers = [None, pa.py_buffer(np.array([0, data.shape[0]])), pa.py_buffer(data.numpy())]
        changed = from_arrow(by_arrow(pa.Array.from_buffers(pa.large_string(), 1, buffers))).data
    else:
        is_letter = (data - first) < 26  # bytes wrap round, so this is first <= byte < first + 26
        changed = data ^ (is_letter.to(torch.uint8) << 5)
    return close._replace(starts=close.starts - low, data=changed)


def _close_together(strings: Strings) -> tuple[Strings, int, int]:
    """The strings, copied where the bytes from the lowest to the highest are many times theirs, and where these are."""
    low, high = extent(strings)
    if high - low > _SLACK * total_length(strings):
        strings = compact(strings)
        low, high = extent(strings)
    return strings, low, high


def reverse(strings: Strings) -> Strings:
    """Back to front, what the reader sees as one character (a letter with its accents) kept together."""
    if is_ascii(strings):
        return _reverse_bytes(strings)
    if is_host(strings.starts):
        backwards = _by_arrow(strings, pc.utf8_reverse)
        rows = rows_with_clusters(strings)
        if rows.shape[0] == 0:
            return backwards
        return replace_rows(backwards, rows, map_texts(take(strings, rows), _reversed))
    return map_texts(strings, _reversed)


def _reverse_bytes(strings: Strings) -> Strings:
    """Each row's bytes back to front: the whole buffer is, in which the rows then lie from the end."""
    strings, low, high = _close_together(strings)
    starts = high - strings.lengths - strings.starts
    return Strings(starts, strings.lengths, strings.data[low:high].flip(0))


def _reversed(text: str) -> str:
    return text[::-1] if text.isascii() else "".join(reversed(graphemes(text)))


def translate(strings: Strings, source: str, target: str) -> Strings:
    """Each character of `source` replaced by the one of `target` in its place, or removed without one."""
    table: dict[int, int] = {}
    for index, character in enumerate(source):
        table.setdefault(ord(character), ord(target[index]) if index < len(target) else -1)
    if not table:
        return strings
    if max(*table.keys(), *table.values(), 0) < 0x80:  # no byte of another character is touched
        return _translate_units(compact(strings), table)
    if is_ascii(strings) and max(table.values()) < 0x80:
        return _translate_units(compact(strings), {old: new for old, new in table.items() if old < 0x80})
    return _translate_code_points(strings, table)


def _translate_units(strings: Strings, table: dict[int, int]) -> Strings:
    """Bytes as `table` says, of contiguous strings; -1 for those that are removed."""
    device = strings.starts.device
    codes = torch.arange(256, dtype=torch.uint8)
    kept = torch.ones(256, dtype=torch.bool)
    for old, new in table.items():
        codes[old] = max(new, 0)
        kept[old] = new >= 0
    units = strings.data.to(torch.int32)
    data = torch.index_select(codes.to(device), 0, units)
    if bool(kept.all()):
        return strings._replace(data=data)
    is_kept = torch.index_select(kept.to(device), 0, units)
    starts, lengths = _counts_between(is_kept, strings)
    return Strings(starts, lengths.to(torch.int32), data[is_kept])


def _counts_between(counts: Tensor, strings: Strings) -> tuple[Tensor, Tensor]:
    """Of contiguous strings, the sums of `counts` (one for each byte or character) before each row and in it: int64 [n]."""
    sums = sums_before(counts)
    before = torch.index_select(sums, 0, strings.starts)
    return before, torch.index_select(sums, 0, strings.starts + strings.lengths) - before


def _translate_code_points(strings: Strings, table: dict[int, int]) -> Strings:
    """Characters as `table` says; -1 for those that are removed. All rows' characters at once, on the host."""
    dense = to_host(compact(strings))
    text = dense.data.numpy().tobytes().decode()
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    is_lead = (dense.data & 0xC0) != 0x80
    starts, lengths = _counts_between(is_lead, dense)
    codes = np.arange(max(int(points.max(initial=0)), *table.keys()) + 1, dtype=np.int32)
    for old, new in table.items():
        codes[old] = new
    translated = codes.take(points)
    is_kept = translated >= 0
    sizes = is_kept * (1 + (translated >= 0x80) + (translated >= 0x800) + (translated >= 0x10000))
    starts, lengths = _counts_between(
        torch.from_numpy(sizes), Strings(starts, lengths.to(torch.int32), dense.data)
    )
    raw = translated[is_kept].astype("<u4").tobytes().decode("utf-32-le").encode()
    data = torch.from_numpy(np.frombuffer(raw, np.uint8).copy())
    return Strings(*(part.to(strings.starts.device) for part in (starts, lengths.to(torch.int32), data)))


def replace(strings: Strings, old: str, new: str) -> Strings:
    """Each `old`, from the left and without overlap, replaced by `new`."""
    if not old:
        return strings
    return _by_arrow(strings, lambda array: pc.replace_substring(array, pattern=old, replacement=new))


def _by_arrow(strings: Strings, function: Callable[..., Any]) -> Strings:
    """Apply an Arrow compute function, on the host."""
    return from_arrow(function(to_arrow(strings)), strings.starts.device)


def map_texts(strings: Strings, function: Callable[[str], str]) -> Strings:
    """Apply a Python function to each distinct value: for what is rare. `strings` must be UTF-8."""
    return of_each_value(strings, lambda value: function(value.decode()))
