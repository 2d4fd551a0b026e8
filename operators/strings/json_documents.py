"""Parts of JSON documents, found by paths in all of them at once, from their tokens and shapes.

Documents that are not plain are left to a parser that reads one at a time: malformed ones and those that only DuckDB takes,
escapes by number, escapes in keys, deep nesting.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tqp.core.process.memory_budget import reserve
from tqp.data.nested import Lists, Vector, element_places
from tqp.data.repeats import repeated
from tqp.data.strings import Strings
from tqp.operators.memory.arrays import as_tensor, host_form, in_form_of
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.string_keys.codes import distinct_values, is_mostly_distinct
from tqp.operators.strings import layout
from tqp.operators.strings.bit_words import (
    Ranks,
    bits_at,
    earlier,
    has_bit,
    later,
    next_place,
    places_in,
)
from tqp.operators.strings.json_index import ARRAY, OBJECT, QUOTE, SPACE, Index, index_of
from tqp.operators.strings.json_scalars import (
    FRACTIONS,
    INTEGERS,
    by_state,
    of_states,
    scalar_states,
)
from tqp.operators.strings.words import stands_at

#: Bytes of documents read at a time on the CPU: an operation for 64 of them is short, and with fewer threads meet at the
#: interpreter lock.
_BLOCK_BYTES = 1 << 24
#: Of each of them so many bits exist at a time, a fifth of which are kept.
_BITS_OF_A_BYTE = 50
#: Digits of integers that certainly fit into 64 bits, and bytes of fractions that a DOUBLE tells from all others.
_MOST_DIGITS, _MOST_OF_FRACTIONS = 18, 16
#: What scalars are; 0 stands for other numbers.
TRUTH, NULL, UNSIGNED, SIGNED, FRACTION = b"tn0-."
_KINDS = by_state(
    {
        "true": TRUTH,
        "false": TRUTH,
        "null": NULL,
        **dict.fromkeys(INTEGERS[:2], UNSIGNED),
        **dict.fromkeys(INTEGERS[2:], SIGNED),
        **dict.fromkeys(FRACTIONS, FRACTION),
    }
)
#: How long scalars are that are written as they stand.
_LONGEST_SIMPLE = by_state(
    {
        **dict.fromkeys(("true", "false", "0", "1", "-1"), _MOST_DIGITS),
        **dict.fromkeys(("0.0", "1.1", "1.11"), _MOST_OF_FRACTIONS),
    }
)


class Parts:
    """A part of each of n documents, such as a path leads to."""

    def __init__(self, strings: Strings, found: list[_Found]) -> None:
        n, device = strings.num_rows, strings.starts.device
        flags = partial(torch.zeros, n, dtype=torch.bool, device=device)
        #: bool [n]: whether the document was read at all, whether it has such a part, and whether that is written as it stands:
        #: a text without escapes, true, false or a short number.
        self.is_plain, self.is_found, self.is_simple = flags(), flags(), flags()
        #: uint8 [n]: "{", "[" or '"', or one of the kinds of scalars.
        self.kinds = torch.zeros(n, dtype=torch.uint8, device=device)
        starts, lengths = strings.starts.clone(), torch.zeros_like(strings.lengths)
        self._found = found
        for block in found:
            self.is_plain.index_copy_(0, block.read.rows, as_tensor(block.read.indexed.is_plain))
            rows, values = block.rows, block.values
            self.is_found.index_fill_(0, rows, True)
            starts.index_add_(0, rows, as_tensor(values.places - take(block.read.begins, values.documents)))
            lengths.index_copy_(0, rows, as_tensor(values.ends - values.places).to(torch.int32))
            for whole, of_block in zip((self.is_simple, self.kinds), _described(block), strict=True):
                whole.index_copy_(0, rows, as_tensor(of_block))
        #: What the documents have there; anything where nothing is found.
        self.texts = Strings(starts, lengths, strings.data)

    def sizes(self) -> Tensor:
        """int64 [n]: how many elements or keys the part has."""
        sizes = torch.zeros_like(self.texts.starts)
        for block in self._found:
            index, level, values = block.read.indexed, block.level + 1, block.values
            members = Ranks(
                (index.keys & index.levels.at(level)) | (index.elements & later(index.levels.at(level)))
            )
            sizes.index_copy_(0, block.rows, as_tensor(members.at(values.ends) - members.at(values.places)))
        return sizes

    def keys(self) -> Lists:
        """The keys of the parts that are objects."""
        counts = torch.zeros_like(self.texts.starts)
        starts, lengths = [counts[:0]], [self.texts.lengths[:0]]
        for block in self._found:
            index, values, rows = block.read.indexed, block.values, block.rows
            keys = index.keys & index.levels.at(block.level + 1)
            before = Ranks(keys)
            first = as_tensor(before.at(values.places))
            own = as_tensor(before.at(values.ends)) - first
            counts.index_copy_(0, rows, own)
            places = places_in(keys)
            of_values = element_places(first, own, places.shape[0])
            begins = take(places, in_form_of(places, of_values)) + 1
            lengths.append(as_tensor(next_place(index.closing, begins) - begins).to(torch.int32))
            shift = self.texts.starts[rows] - as_tensor(values.places)
            starts.append(as_tensor(begins) + repeated(shift, own))
        texts = Strings(torch.cat(starts), torch.cat(lengths), self.texts.data)
        return Lists(torch.cumsum(counts, 0) - counts, counts, Vector(texts, None))


class Documents:
    """A column of documents, read once for all calls that share it, when the first one asks."""

    def __init__(self, strings: Strings) -> None:
        self.strings = strings
        # No cached properties: all of a class share a lock in Python 3.11, for which workers would wait.
        self._distinct: tuple[Tensor | None, Documents] | None = None
        self._blocks: list[_Read] | None = None

    def distinct(self) -> tuple[Tensor | None, Documents]:
        """A number for each document and those that are distinct; no numbers and all of them where most are."""
        if self._distinct is None:
            self._distinct = None, self
            if not is_mostly_distinct(self.strings):
                numbers, strings = distinct_values(self.strings)
                self._distinct = numbers, Documents(strings)
        return self._distinct

    def is_worth_all(self, rows: Tensor) -> bool:
        """Whether all documents are to be read for these rows: those that do not count are few, or empty, or read already."""
        is_read = self._distinct is not None or self._blocks is not None
        return is_read or 2 * rows.shape[0] > int((self.strings.lengths > 0).sum())

    def _all_read(self) -> list[_Read]:
        if self._blocks is None:
            strings, size = self.strings, layout.rows_of_block(self.strings, _BLOCK_BYTES)
            blocks = (
                _read(layout.cut(strings, start, min(start + size, strings.num_rows)), start)
                for start in range(0, strings.num_rows, size)
            )
            self._blocks = [each for each in blocks if each is not None]
        return self._blocks

    def parts_at(self, steps: tuple[bytes | int, ...]) -> Parts:
        """What lies in each document at a path of keys and indexes, negative ones from the end."""
        found = [_Found(each, _values_at(each.indexed, steps), len(steps)) for each in self._all_read()]
        return Parts(self.strings, found)

    def are_plain(self) -> Tensor:
        """bool [n]: the documents that are well-formed for certain."""
        return Parts(
            self.strings, [_Found(each, _no_values(each.indexed), 0) for each in self._all_read()]
        ).is_plain


class _Read(NamedTuple):
    """Documents that were read together."""

    rows: Tensor  # int64 [m]
    begins: Any  # int64 [m]: where each begins in the bytes of these
    indexed: Index


def _read(strings: Strings, first: int) -> _Read | None:
    """The rows, numbered from the first one on, whose quotes and brackets come in pairs; None of no rows."""
    rows = row_indices(strings.lengths > 0)
    while rows.shape[0]:
        some = layout.compact(layout.take(strings, rows))
        reserve(_BITS_OF_A_BYTE * some.data.shape[0] // 8)
        begins = host_form(some.starts)
        found = index_of(host_form(some.data), begins, begins + host_form(some.lengths))
        if isinstance(found, Index):
            return _Read(rows + first, begins, found)
        rows = rows[row_indices(~as_tensor(found))]
    return None


# ---- paths -----------------------------------------------------------------------------------------------------------


class _Values(NamedTuple):
    """A value of each of m documents. Arrays, or tensors."""

    documents: Any  # int64 [m], ascending
    places: Any  # int64 [m]: where it begins
    ends: Any  # int64 [m]: behind its last byte


class _Found(NamedTuple):
    """What a path of so many steps leads to in documents."""

    read: _Read
    values: _Values
    level: int

    @property
    def rows(self) -> Tensor:
        return torch.index_select(self.read.rows, 0, as_tensor(self.values.documents))


def _no_values(index: Index) -> _Values:
    nothing = index.roots[:0]
    return _Values(nothing, nothing, nothing)


def _values_at(index: Index, steps: tuple[bytes | int, ...]) -> _Values:
    """The values to which a path leads, of the plain documents that have one."""
    documents = row_indices(index.is_plain)
    places = take(index.roots, documents)
    ends = take(index.ends, documents) if steps else next_place(index.last & index.levels.at(0), places) + 1
    values = _Values(documents, places, ends)
    for level, step in enumerate(steps, 1):
        if isinstance(step, bytes):
            found, places = _follow_key(index, values, step, level)
        else:
            found, places = _follow_index(index, values, step, level)
        ends = next_place(index.last & index.levels.at(level), places) + 1
        values = _Values(take(values.documents, found), places, ends)
    return values


def _follow_key(index: Index, values: _Values, key: bytes, level: int) -> tuple[Any, Any]:
    """Which objects have such a key, and where the value of the first one begins."""
    places = _keys_like(index, key, level, values.places)
    found = row_indices(places < values.ends)
    places = take(places, found)
    behind = places + (
        len(key) + 3
    )  # quotes and colon, as most documents are written; behind it is a bracket at least
    behind += take(index.data, behind) == SPACE
    if bool(has_bit(index.follow_colons, behind).all()):
        return found, behind
    return found, next_place(index.follow_colons, places)


def _keys_like(index: Index, key: bytes, level: int, places: Any) -> Any:
    """Where the first such key at or behind each place begins, in objects of a level."""
    found = index.keys & index.levels.at(level) & earlier(index.closing, len(key) + 1)
    begins = places_in(found)
    texts = as_tensor(begins) + 1
    some = Strings(texts, torch.zeros_like(texts, dtype=torch.int32), as_tensor(index.data))
    is_plain = QUOTE not in key  # else it would be escaped, and the document not plain
    fits = stands_at(some, texts, key, torch.full_like(texts, is_plain, dtype=torch.bool))
    if not bool(fits.all()):
        begins = take(begins, row_indices(in_form_of(begins, fits)))
        found = bits_at(begins, index.data.shape[0])
    return next_place(found, places, begins)


def _follow_index(index: Index, values: _Values, step: int, level: int) -> tuple[Any, Any]:
    """Which arrays have such an element, and where it begins."""
    elements = index.elements & later(index.levels.at(level))
    places, before = places_in(elements), Ranks(elements)
    first, last = before.at(values.places), before.at(values.ends)
    # Of arrays: the first element is behind the bracket.
    wanted = (last if step < 0 else first) + step
    found = row_indices((wanted >= first) & (wanted < last))
    return found, take(places, take(wanted, found))


def _described(found: _Found) -> tuple[Any, Any]:
    """Whether the values are simple, and of which kind they are (see `Parts`)."""
    index, (_, places, ends) = found.read.indexed, found.values
    kinds = take(index.data, places)
    is_text = kinds == QUOTE
    scalars = row_indices(~(is_text | (kinds == OBJECT) | (kinds == ARRAY)))
    begins, sizes = take(places, scalars), take(ends, scalars) - take(places, scalars)
    states = scalar_states(index.data, begins, sizes)
    is_simple = is_text if index.escapes is None else is_text & (next_place(index.escapes, places) >= ends)
    is_simple[scalars] = sizes <= of_states(states, _LONGEST_SIMPLE)
    of_scalars = of_states(states, _KINDS)
    of_scalars *= (sizes <= _MOST_DIGITS) | ((of_scalars != UNSIGNED) & (of_scalars != SIGNED))
    kinds[scalars] = of_scalars
    return is_simple, kinds
