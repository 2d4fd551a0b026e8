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
    next_place,
    places_in,
    previous_place,
)
from tqp.operators.strings.json_expression import match_plain
from tqp.operators.strings.json_index import (
    ARRAY,
    COLON,
    OBJECT,
    QUOTE,
    Index,
    checked_index_of,
    index_of,
)
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
            _, counts = _members(block.read.indexed, block.values, block.level + 1)
            sizes.index_copy_(0, block.rows, as_tensor(counts))
        return sizes

    def keys(self) -> Lists:
        """The keys of the parts that are objects."""
        nothing = self.texts.starts[:0]
        all_rows, counts, starts, lengths = [nothing], [nothing], [nothing], [self.texts.lengths[:0]]
        for block in self._found:
            index, values, rows = block.read.indexed, block.values, block.rows
            ends = index.key_ends(block.level + 1)
            before, places = Ranks(ends), places_in(ends)
            first = as_tensor(before.at(values.places))
            own = as_tensor(before.at(values.ends)) - first
            ends = take(places, in_form_of(places, element_places(first, own, places.shape[0])))
            begins = previous_place(index.tokens.opening, ends) + 1
            shift = self.texts.starts[rows] - as_tensor(values.places)
            all_rows.append(rows)
            counts.append(own)
            starts.append(as_tensor(begins) + repeated(shift, own))
            lengths.append(as_tensor(ends - begins).to(torch.int32))
        texts = Strings(torch.cat(starts), torch.cat(lengths), self.texts.data)
        own, rows = torch.cat(counts), torch.cat(all_rows)
        nowhere = torch.zeros_like(self.texts.starts)
        first = nowhere.index_copy(0, rows, torch.cumsum(own, 0) - own)
        return Lists(first, nowhere.index_copy(0, rows, own), Vector(texts, None))


class Documents:
    """A column of documents, read once for all calls that share it, when the first one asks."""

    def __init__(self, strings: Strings) -> None:
        self.strings = strings
        # No cached properties: all of a class share a lock in Python 3.11, for which workers would wait.
        self._distinct: tuple[Tensor | None, Documents] | None = None
        self._matches: Tensor | None = None
        self._blocks: dict[bool, list[_Read]] = {}

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
        is_read = self._distinct is not None or bool(self._blocks)
        return is_read or 2 * rows.shape[0] > int((self.strings.lengths > 0).sum())

    def parts_at(self, steps: tuple[bytes | int, ...]) -> Parts:
        """What lies in each document at a path of keys and indexes, negative ones from the end."""
        blocks = self._read(True) + self._read(False)
        found = [_Found(each, _values_at(each.indexed, steps), len(steps)) for each in blocks]
        return Parts(self.strings, found)

    def are_plain(self) -> Tensor:
        """bool [n]: the documents that are well-formed for certain."""
        result = self._match().clone()
        for block in self._read(False):
            result.index_copy_(0, block.rows, as_tensor(block.indexed.is_plain))
        return result

    def _match(self) -> Tensor:
        """bool [n]: the documents that an expression knows to be plain."""
        if self._matches is None:
            self._matches = match_plain(self.strings)
        return self._matches

    def _read(self, match: bool) -> list[_Read]:
        """The documents that match, or the others, block by block."""
        if match not in self._blocks:
            strings, matches = self.strings, self._match()
            mask = matches if match else ~matches & (strings.lengths > 0)
            size = layout.rows_of_block(strings, _BLOCK_BYTES)
            blocks = (
                _read(strings, row_indices(mask[start : start + size]) + start, match)
                for start in range(0, strings.num_rows, size)
            )
            self._blocks[match] = [each for each in blocks if each is not None]
        return self._blocks[match]


class _Read(NamedTuple):
    """Documents that were read together."""

    rows: Tensor  # int64 [m]
    begins: Any  # int64 [m]: where each begins in the bytes of these
    indexed: Index


def _read(strings: Strings, rows: Tensor, are_plain: bool) -> _Read | None:
    """Those of the rows whose quotes and brackets come in pairs; None of no rows."""
    while rows.shape[0]:
        some = layout.compact(layout.take(strings, rows))
        reserve(_BITS_OF_A_BYTE * some.data.shape[0] // 8)
        begins = host_form(some.starts)
        read = index_of if are_plain else checked_index_of
        found = read(host_form(some.data), begins, begins + host_form(some.lengths))
        if isinstance(found, Index):
            return _Read(rows, begins, found)
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


def _values_at(index: Index, steps: tuple[bytes | int, ...]) -> _Values:
    """The values to which a path leads, of the plain documents that have one."""
    documents = row_indices(index.is_plain)
    places = take(index.roots(), documents)
    ends = take(index.ends, documents) if steps else index.ends_of(places, 0)
    values = _Values(documents, places, ends)
    for level, step in enumerate(steps, 1):
        if isinstance(step, bytes):
            found, places = _follow_key(index, values, step, level)
        else:
            found, places = _follow_index(index, values, step, level)
        ends = index.ends_of(places, level)
        values = _Values(take(values.documents, found), places, ends)
    return values


def _follow_key(index: Index, values: _Values, key: bytes, level: int) -> tuple[Any, Any]:
    """Which objects have such a key, and where the value of the first one begins."""
    places = _keys_like(index, key, level, values.places)
    found = row_indices(places < values.ends)
    places = take(places, found)
    colons = places + (len(key) + 2)  # behind the quotes, as most documents are written
    if bool((take(index.data, colons) != COLON).any()):
        colons = next_place(index.tokens.colons, places)
    return found, index.values_from(colons + 1)


def _keys_like(index: Index, key: bytes, level: int, places: Any) -> Any:
    """Where the first such key at or behind each place begins, in objects of a level."""
    found = index.tokens.opening & earlier(index.key_ends(level), len(key) + 1)
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
    before, counts = _members(index, values, level)
    wanted = counts * (step < 0) + step
    is_array = take(index.data, values.places) == ARRAY
    found = row_indices(is_array & (wanted >= 0) & (wanted < counts))
    before, wanted, places = (take(each, found) for each in (before, wanted, values.places))
    behind = row_indices(wanted > 0)  # the first element is behind the bracket, others behind a comma
    commas = places_in(index.tokens.commas & index.levels.at(level))
    places[behind] = take(commas, take(before + wanted - 1, behind))
    return found, index.values_from(places + 1)


def _members(index: Index, values: _Values, level: int) -> tuple[Any, Any]:
    """int64: how many commas of a level come before each value, and how many elements or keys it has."""
    commas = Ranks(index.tokens.commas & index.levels.at(level))
    before = commas.at(values.places)
    counts = commas.at(values.ends) - before
    kinds = take(index.data, values.places)
    is_container = (kinds == ARRAY) | (kinds == OBJECT)
    containers = row_indices(is_container)
    inside = index.values_from(take(values.places, containers) + 1)
    is_container[containers] = ~has_bit(index.tokens.closes, inside)  # one that is not empty
    counts += is_container
    return before, counts


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
