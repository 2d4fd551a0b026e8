"""String functions that put strings together: concatenation, padding, repetition, parts of a split, characters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.core.process.memory_budget import reserve
from tqp.data.backend import is_host
from tqp.data.repeats import numbers_of
from tqp.data.strings import Strings
from tqp.operators.rows.batches import common_rows
from tqp.operators.string_keys.codes import distinct_slices
from tqp.operators.strings.characters import character_lengths, slice_characters, slice_same_characters
from tqp.operators.strings.join_short import join_short
from tqp.operators.strings.layout import (
    broadcast,
    compact,
    concatenate,
    extent,
    from_arrow,
    from_list,
    is_contiguous,
    ordered,
    pieces_from_arrow,
    take,
    to_arrow,
    to_arrow_binary,
    to_list,
)
from tqp.operators.strings.marked_bytes import (
    CERTAIN_BITS,
    ROWS_AT_ONCE,
    bits_from,
    lowest,
    marks_of_word,
    packed_marks,
    without_lowest,
)
from tqp.operators.strings.search import number_before, occurrences

#: A string value and where it is valid (bool [n] or 1 row; None: everywhere).
Pair = tuple[Strings, Tensor | None]

_INT32_MAX = 2**31 - 1
#: Parts from the start of a row up to which separators are passed one by one.
_FIRST_PARTS = 16
#: More characters than a string has.
_FAR = 1 << 40


def join(parts: Sequence[Strings]) -> Strings:
    """The strings of all parts, row by row, one after the other; parts of one row are repeated."""
    num_rows = common_rows(part.num_rows for part in parts)
    if num_rows > 1 and is_host(parts[0].starts):
        repeated = _join_each_slice(parts)
        if repeated is not None:
            return repeated
        joined = join_short(parts, num_rows)
        if joined is not None:
            return joined
        # Arrow reads parts whose rows follow one another; to make others so costs twice what copying all pieces in turn does.
        scattered = sum(part.num_rows > 1 and not is_contiguous(part) for part in parts)
        if 2 * scattered < len(parts):
            return _join_by_arrow(parts)
    joined = concatenate([broadcast(part, num_rows) for part in parts])
    width = len(parts)
    starts = joined.starts.view(width, num_rows).t().reshape(-1)
    pieces = joined.lengths.view(width, num_rows).t().reshape(-1)
    data = compact(Strings(starts, pieces, joined.data)).data
    lengths = joined.lengths.view(width, num_rows).sum(0, dtype=torch.int64)
    return _from_lengths(lengths, data)


def _join_each_slice(parts: Sequence[Strings]) -> Strings | None:
    """Where one part has many rows, which share few slices, each of these joined once; None elsewhere."""
    many = [number for number, part in enumerate(parts) if part.num_rows > 1]
    found = distinct_slices(parts[many[0]], None) if len(many) == 1 else None
    if found is None:
        return None
    numbers, slices = found
    return take(join([*parts[: many[0]], slices, *parts[many[0] + 1 :]]), numbers)


def _join_by_arrow(parts: Sequence[Strings]) -> Strings:
    columns = [
        pa.scalar(to_list(part)[0], pa.large_binary()) if part.num_rows == 1 else to_arrow_binary(part)
        for part in parts
    ]
    return from_arrow(pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.large_binary())))


def _from_lengths(lengths: Tensor, data: Tensor) -> Strings:
    """Contiguous rows of the given int64 lengths."""
    return Strings(lengths.cumsum(0) - lengths, lengths.to(torch.int32), data)


def _without_nulls(pair: Pair) -> Strings:
    """The strings, empty where they are NULL."""
    strings, validity = pair
    if validity is None:
        return strings
    count = common_rows((strings.num_rows, validity.numel()))
    strings = broadcast(strings, count)
    return strings._replace(lengths=strings.lengths * validity.expand(count))


def concat(*pairs: Pair) -> tuple[Strings, None]:
    """concat(...): NULLs count as empty strings, and the result is never NULL."""
    return join([_without_nulls(pair) for pair in pairs]), None


def concat_separated(separator: Pair, *pairs: Pair) -> Pair:
    """concat_ws(separator, ...): the arguments that are not NULL with separators between; NULL for a NULL separator."""
    separators, validity = separator
    # Arrow loses rows in which all are NULL, so one argument must have none.
    is_plain = validity is None and any(valid is None for _, valid in pairs)
    num_rows = common_rows((separators.num_rows, *(strings.num_rows for strings, _ in pairs)))
    if validity is None and num_rows > 1 and pairs and all(valid is None for _, valid in pairs):
        separated = [part for strings, _ in pairs for part in (separators, strings)]
        return broadcast(join(separated[1:]), num_rows), None
    if is_host(separators.starts) and is_plain and any(strings.num_rows > 1 for strings, _ in pairs):
        columns = [_to_nullable(*pair) for pair in (separator, *pairs)]
        joined = pc.binary_join_element_wise(*columns[1:], columns[0], null_handling="skip")
        return from_arrow(joined), None
    separators = broadcast(separators, num_rows)
    device = separators.starts.device
    started = torch.zeros(num_rows, dtype=torch.bool, device=device)
    parts: list[Strings] = []
    for strings, valid in pairs:
        present = (
            torch.ones(num_rows, dtype=torch.bool, device=device) if valid is None else valid.expand(num_rows)
        )
        parts.append(separators._replace(lengths=separators.lengths * (started & present)))
        parts.append(_without_nulls((broadcast(strings, num_rows), valid)))
        started = started | present
    result = join(parts) if parts else separators._replace(lengths=torch.zeros_like(separators.lengths))
    return result, None if validity is None else validity.expand(num_rows)


def _to_nullable(strings: Strings, validity: Tensor | None) -> pa.LargeBinaryArray | pa.LargeBinaryScalar:
    """A string value as Arrow has it, with its NULLs; one row as a scalar."""
    if strings.num_rows == 1 and (validity is None or validity.numel() == 1):
        is_null = validity is not None and not bool(validity)
        return pa.scalar(None if is_null else to_list(strings)[0], pa.large_binary())
    count = max(strings.num_rows, 1 if validity is None else validity.numel())
    return to_arrow_binary(broadcast(strings, count), validity)


def overlay(strings: Strings, new: Strings, start: Tensor, count: Tensor | None = None) -> Strings:
    """`new` in the place of `count` characters from `start` (from 1) on; of as many as it has itself without a `count`."""
    start = start.to(torch.int64).clamp(-_FAR, _FAR) - 1
    own = character_lengths(new)
    stop = start + (
        own if count is None else torch.where(count < 0, own, count.to(torch.int64).clamp(max=_FAR))
    )
    strings = broadcast(strings, max(strings.num_rows, stop.numel()))
    before = slice_characters(strings, lambda characters: (torch.zeros_like(characters), start))
    return join([before, new, slice_characters(strings, lambda characters: (stop, characters))])


def pad_left(strings: Strings, width: Tensor, fill: str, *, validity: Tensor | None = None) -> Strings:
    """lpad: `fill` repeated before each row up to `width` characters; longer rows are cut."""
    cut, filling = _padding(strings, width, fill, validity, "LPAD")
    return cut if filling is None else join([filling, cut])


def pad_right(strings: Strings, width: Tensor, fill: str, *, validity: Tensor | None = None) -> Strings:
    """rpad: `fill` repeated after each row up to `width` characters; longer rows are cut."""
    cut, filling = _padding(strings, width, fill, validity, "RPAD")
    return cut if filling is None else join([cut, filling])


def _padding(
    strings: Strings, width: Tensor, fill: str, validity: Tensor | None, name: str
) -> tuple[Strings, Strings | None]:
    """The rows cut to `width` characters, and what is missing to it: the start of `fill` repeated; None where no row lacks any."""
    wanted = width.to(torch.int64).clamp(0, _INT32_MAX)
    strings = broadcast(strings, wanted.numel())
    if is_host(strings.starts) and wanted.numel() == 1:
        cut = slice_same_characters(strings, 0, int(wanted))
    else:
        cut = slice_characters(strings, lambda counts: (torch.zeros_like(counts), wanted))
    missing = (wanted - character_lengths(cut)).clamp_(min=0)
    if validity is not None:
        missing = missing * validity
    longest = int(missing.max()) if missing.numel() else 0
    if not longest:
        return cut, None
    if not fill:
        raise ExecutionError(f"Insufficient padding in {name}: the string to pad with must not be empty")
    repeated = (fill * (longest // len(fill) + 1))[:longest]
    sizes = torch.tensor([0, *(len(character.encode()) for character in repeated)], dtype=torch.int64)
    size_of = sizes.cumsum(0).to(missing.device)
    filling = from_list([repeated], missing.device)
    lengths = torch.index_select(size_of, 0, missing).to(torch.int32)
    return cut, Strings(torch.zeros_like(missing), lengths, filling.data)


def repeat(strings: Strings, times: Tensor, *, validity: Tensor | None = None) -> Strings:
    """Each row `times` times over; none for a negative number."""
    count = times.to(torch.int64).clamp(0, _INT32_MAX + 1)  # of any text that is not empty, too many
    strings = broadcast(strings, count.numel())
    count = count.expand(strings.num_rows)
    if validity is not None:
        count = count * validity
    count = count * (strings.lengths > 0)
    lengths = strings.lengths.to(torch.int64) * count
    if lengths.numel() and int(lengths.max()) > _INT32_MAX:
        raise ExecutionError("repeat makes a string longer than 2 GiB, the limit of one string")
    reserve(int(lengths.sum()))
    if is_host(lengths):
        same = times.numel() == 1 and validity is None and strings.num_rows > 0
        counts = int(count.max()) if same else pa.array(count.contiguous().numpy())
        return from_arrow(pc.binary_repeat(to_arrow_binary(strings), counts))
    rows = numbers_of(count)
    return _from_lengths(lengths, compact(take(strings, rows)).data)


def split_part(strings: Strings, separator: str, index: Tensor) -> Strings:
    """Part number `index` (from 1; negative from the end) of each row split at `separator`, else empty.

    An empty separator splits between all characters. No bytes are moved, but for a separator that may overlap itself.
    """
    strings = broadcast(strings, index.numel())
    number = index.reshape(-1).to(strings.starts.device)  # [n], or one for all rows
    if not separator:
        return slice_characters(
            strings,
            lambda counts: _one_character(torch.where(number < 0, counts + number, number - 1), counts),
        )
    word = separator.encode()
    if any(word.startswith(word[size:]) for size in range(1, len(word))):  # of those that overlap, some count
        return _part_by_arrow(strings, separator, number)
    strings = ordered(strings)
    if is_host(strings.starts) and number.shape[0] == 1 and strings.num_rows:
        is_short = int(strings.lengths.max()) <= CERTAIN_BITS
        if is_short and 0 < int(number) <= _FIRST_PARTS:
            return _first_part(strings, word, int(number))
    starts, stops = strings.starts, strings.starts + strings.lengths
    last = stops - len(word)  # where the last separator may stand
    places = occurrences(strings, word)
    is_counted = number > 0  # from the start of the row, else from its end
    after = number_before(places, torch.where(is_counted, starts, last + 1))
    after += torch.where(is_counted, number - 1, number + 1)
    # The separators before and behind the part; those at the ends of a row are outside of it.
    least, most = places.new_full((2,), -1), places.new_full((2,), torch.iinfo(torch.int64).max)
    places, after = torch.cat([least, places, most]), after.clamp_(-1, places.shape[0] + 1)
    before, behind = (torch.index_select(places, 0, after + offset) for offset in (1, 2))
    edge = torch.where(is_counted, before, behind)
    is_part = (number.abs() == 1) | ((edge >= starts) & (edge <= last)) & (number != 0)
    start = torch.where(before < starts, starts, before + len(word)) * is_part
    stop = torch.where(behind > last, stops, behind) * is_part
    return Strings(start, (stop - start).to(torch.int32), strings.data)


def _first_part(strings: Strings, word: bytes, number: int) -> Strings:
    """Part `number`, from 1, of ordered rows of at most CERTAIN_BITS bytes."""
    low, high = extent(strings)
    packed = packed_marks(marks_of_word(strings.data[low:high].numpy(), word))
    starts, lengths = strings.starts.numpy(), strings.lengths.numpy()
    first, size = np.zeros_like(lengths), np.empty_like(lengths)
    for begin in range(0, len(starts), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        ahead, ends = bits_from(packed, starts[rows] - low), lengths[rows]
        room = np.maximum(ends - (len(word) - 1), 0).astype(np.uint64)  # for a separator to begin
        ahead &= (np.uint64(1) << room) - np.uint64(1)
        for _ in range(number - 2):
            ahead = without_lowest(ahead)
        if number > 1:
            np.minimum(lowest(ahead).astype(np.int32) + len(word), ends, out=first[rows])
            ahead = without_lowest(ahead)
        np.subtract(np.minimum(lowest(ahead), ends), first[rows], out=size[rows])
    return Strings(strings.starts + torch.from_numpy(first), torch.from_numpy(size), strings.data)


def _part_by_arrow(strings: Strings, separator: str, number: Tensor) -> Strings:
    """Part `number` (int64 [n]) of each row, split by Arrow."""
    parts = pc.split_pattern(to_arrow(strings), separator)
    offsets, pieces = pieces_from_arrow(parts, number.device)
    first, after = offsets[:-1], offsets[1:]
    place = torch.where(number < 0, after + number, first + number - 1)
    is_part = (place >= first) & (place < after) & (number != 0)
    taken = take(pieces, place * is_part)
    return taken._replace(lengths=taken.lengths * is_part)


def _one_character(place: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Where the character at a place starts and stops; an empty range where there is none."""
    is_inside = (place >= 0) & (place < counts)
    return place * is_inside, (place + 1) * is_inside


def character(code: Tensor, *, validity: Tensor | None = None) -> Strings:
    """chr(code): the character of a code point. `code` int64 [n] or 0-d."""
    codes = code.reshape(-1).to(torch.int64)
    sound = (codes >= 0) & (codes < 0x110000) & ((codes < 0xD800) | (codes >= 0xE000))
    wrong = ~sound if validity is None else ~sound & validity.expand(codes.shape)
    if bool(wrong.any()):
        number = int(codes[wrong][0])
        raise ExecutionError(f"Invalid UTF8 code point {number}: chr takes 0 to 1114111 without surrogates")
    codes = codes * sound
    limit = int(codes.max()) + 1 if codes.shape[0] else 1
    size = next(size for size in _CHARACTER_TABLES if size >= limit)
    return take(_characters(size, codes.device), codes)


#: Numbers of code points, from 0 on, of which a table of characters is kept: those of one byte of UTF-8, of two, all.
_CHARACTER_TABLES = (0x80, 0x800, 0x10000, 0x110000)


@lru_cache
def _characters(count: int, device: torch.device) -> Strings:
    """The characters of code points 0 .. count - 1; nothing sensible for surrogates."""
    codes = torch.arange(count, device=device)
    # The bytes of UTF-8, the first one lowest: six bits of the code point in each after the lead.
    last, third, second = (0x80 | ((codes >> shift) & 0x3F) for shift in (0, 6, 12))
    word = torch.where(
        codes < 0x800,
        (0xC0 | (codes >> 6)) | (last << 8),
        (0xE0 | (codes >> 12)) | (third << 8) | (last << 16),
    )
    word = torch.where(codes < 0x80, codes, word)
    long = (0xF0 | (codes >> 18)) | (second << 8) | (third << 16) | (last << 24)
    word = torch.where(codes < 0x10000, word, long)
    lengths = 1 + (codes >= 0x80).to(torch.int32) + (codes >= 0x800) + (codes >= 0x10000)
    return Strings(4 * codes, lengths.to(torch.int32), word.to(torch.int32).view(torch.uint8))
