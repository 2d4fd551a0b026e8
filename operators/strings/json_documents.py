"""Parts of JSON documents, found by paths in all of them at once, from their tokens and shapes.

Documents that are not plain are left to a parser that reads one at a time: malformed ones and those that only DuckDB takes,
escapes by number, escapes in keys, deep nesting.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from tqp.data.repeats import numbers_of
from tqp.data.strings import Strings
from tqp.operators.memory.arrays import as_tensor, host_form, in_form_of
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.strings import layout
from tqp.operators.strings.json_shapes import Shapes, shapes_of
from tqp.operators.strings.json_tokens import (
    ARRAY,
    FRACTIONS,
    INTEGERS,
    QUOTE,
    SCALAR,
    WELL_FORMED,
    Tokens,
    by_state,
    ends_of,
    library_of,
    of_states,
    places_of,
    scalar_states,
    sums,
    tokens_of,
)
from tqp.operators.strings.words import stands_at

#: Bytes of documents read at a time on the CPU: with an eighth, threads meet at the interpreter lock too often, with more all comes
#: from memory.
_BLOCK_BYTES = 1 << 22
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
_IS_WELL = by_state(dict.fromkeys(WELL_FORMED, 1))
#: How long scalars are that are written as they stand.
_LONGEST_SIMPLE = by_state(
    {
        **dict.fromkeys(("true", "false", "0", "1", "-1"), _MOST_DIGITS),
        **dict.fromkeys(("0.0", "1.1", "1.11"), _MOST_OF_FRACTIONS),
    }
)


class Parts(NamedTuple):
    """A part of each of n documents, such as a path leads to."""

    is_plain: Tensor  # bool [n]: whether the document was read at all
    is_found: Tensor  # bool [n]: whether it has such a part
    is_simple: Tensor  # bool [n]: that is a text without escapes, true, false or a short number: written as it stands
    texts: Strings  # what the documents have there; anything where nothing is found
    kinds: Tensor  # uint8 [n]: "{", "[" or '"', or one of the kinds of scalars
    sizes: Tensor  # int64 [n]: how many elements or keys it has


class _Documents(NamedTuple):
    """Documents as tokens, and what is known of each. Arrays, or tensors."""

    tokens: Tokens
    shapes: Shapes
    states: Any  # uint8 [t]: of scalars, see `scalar_states`
    is_plain: Any  # bool [n]
    roots: Any  # int64 [n]: the token of its shape with which each begins, none of those that are not plain
    shift: Any  # int64 [n]: a document's token less that of its shape


def are_plain(strings: Strings) -> Tensor:
    """bool [n]: the documents that are well-formed for certain."""
    return parts_at(strings, ()).is_plain


def parts_at(strings: Strings, steps: tuple[bytes | int, ...]) -> Parts:
    """What lies in each document at a path of keys and indexes, negative ones from the end."""
    size = layout.rows_of_block(strings, _BLOCK_BYTES)
    blocks = [
        _parts_at(layout.cut(strings, start, min(start + size, strings.num_rows)), steps)
        for start in range(0, max(strings.num_rows, 1), size)
    ]
    plain, found, simple, starts, lengths, kinds, sizes = map(torch.cat, zip(*blocks, strict=True))
    return Parts(plain, found, simple, Strings(starts, lengths, strings.data), kinds, sizes)


def _parts_at(strings: Strings, steps: tuple[bytes | int, ...]) -> tuple[Tensor, ...]:
    """As `parts_at`, all documents at once, with the starts and lengths of the texts."""
    plain, found, simple = (torch.zeros_like(strings.lengths, dtype=torch.bool) for _ in range(3))
    starts, lengths = strings.starts.clone(), torch.zeros_like(strings.lengths)
    kinds, sizes = torch.zeros_like(lengths, dtype=torch.uint8), torch.zeros_like(starts)
    read = _read(strings)
    if read is not None:
        rows, begins, documents = read
        values = documents.roots
        for step in steps:
            values = (
                _key(documents, values, step)
                if isinstance(step, bytes)
                else _element(documents, values, step)
            )
        hits = row_indices(values < documents.shapes.none)
        plain.index_copy_(0, rows, as_tensor(documents.is_plain))
        places, ends, *known = map(as_tensor, _described(documents, take(values, hits), hits))
        within = places - as_tensor(take(begins, hits))
        rows = torch.index_select(rows, 0, as_tensor(hits))
        found.index_fill_(0, rows, True)
        starts.index_add_(0, rows, within)
        lengths.index_copy_(0, rows, (ends - places).to(torch.int32))
        for whole, of_hits in zip((simple, kinds, sizes), known, strict=True):
            whole.index_copy_(0, rows, of_hits)
    return plain, found, simple, starts, lengths, kinds, sizes


def _read(strings: Strings) -> tuple[Tensor, Any, _Documents] | None:
    """Rows whose quotes come in pairs, where each begins in the bytes of these, and what they hold; None of no rows."""
    rows = row_indices(strings.lengths > 0)
    while rows.shape[0]:
        some = layout.compact(layout.take(strings, rows))
        begins = host_form(some.starts)
        found = tokens_of(host_form(some.data), begins, begins + host_form(some.lengths))
        if isinstance(found, Tokens):
            return rows, begins, _documents_of(found)
        rows = rows[row_indices(~as_tensor(found))]
    return None


def _documents_of(tokens: Tokens) -> _Documents:
    numbers, shapes = shapes_of(tokens)
    is_plain = take(shapes.is_well, numbers) & ~tokens.is_rare
    scalars = row_indices(tokens.kinds == SCALAR)
    begins = take(tokens.starts, scalars)
    of_scalars = scalar_states(tokens.data, begins, ends_of(tokens, scalars) - begins)
    malformed = take(scalars, row_indices(of_states(of_scalars, _IS_WELL) == 0))
    library = library_of(malformed)
    is_plain[library.searchsorted(tokens.first, malformed, side="right") - 1] = False
    states = library.zeros_like(tokens.kinds)
    states[scalars] = of_scalars
    roots = take(shapes.first, numbers)
    shift = tokens.first - roots
    return _Documents(tokens, shapes, states, is_plain, library.where(is_plain, roots, shapes.none), shift)


def _described(documents: _Documents, values: Any, rows: Any) -> tuple[Any, ...]:
    """Of these values of documents: where they begin and end, whether they are simple, kinds and sizes (see `Parts`)."""
    tokens, shapes, library = documents.tokens, documents.shapes, library_of(values)
    shift = take(documents.shift, rows)
    own = values + shift
    places, ends = take(tokens.starts, own), ends_of(tokens, take(shapes.closings, values) + shift)
    kinds, states = take(shapes.kinds, values), take(documents.states, own)
    is_short = ends - places <= of_states(states, _LONGEST_SIMPLE)
    is_plain_text = (kinds == QUOTE) & ~_has_any(tokens.escapes, places, ends)
    of_scalars = of_states(states, _KINDS)
    of_scalars *= (ends - places <= _MOST_DIGITS) | ((of_scalars != UNSIGNED) & (of_scalars != SIGNED))
    kinds = library.where(kinds == SCALAR, of_scalars, kinds)
    return places, ends, is_short | is_plain_text, kinds, take(shapes.sizes, values)


# ---- paths -----------------------------------------------------------------------------------------------------------


def _key(documents: _Documents, values: Any, key: bytes) -> Any:
    """The values of such a key, of its first one in each object; none where `values` is no object with it."""
    tokens, shapes, library = documents.tokens, documents.shapes, library_of(values)
    counts = take(shapes.keys.counts, values)
    ends = sums(counts, "int64")
    total = int(ends[-1])
    own = in_form_of(counts, numbers_of(as_tensor(counts), total))
    places = take(take(shapes.keys.first, values) - ends + counts, own)
    places += places_of(places)
    keys = take(shapes.keys.tokens, places)
    begins = take(tokens.starts, keys + take(documents.shift, own)) + 1
    last = tokens.data.shape[0] - 1
    found = row_indices(take(tokens.data, (begins + len(key)).clip(None, last)) == QUOTE)
    texts = as_tensor(take(begins, found))
    some = Strings(texts, torch.zeros_like(texts, dtype=torch.int32), as_tensor(tokens.data))
    fits = stands_at(some, texts, key, torch.ones_like(texts, dtype=torch.bool))
    found = take(found, row_indices(in_form_of(found, fits)))
    rows = take(own, found)
    is_first = library.ones_like(rows, dtype=bool)
    is_first[1:] = rows[1:] != rows[:-1]
    firsts = row_indices(is_first)
    result = library.full_like(values, shapes.none)
    result[take(rows, firsts)] = take(keys, take(found, firsts)) + 2
    return result


def _element(documents: _Documents, values: Any, index: int) -> Any:
    """The elements of arrays; none where `values` is no array that has so many."""
    shapes = documents.shapes
    count = take(shapes.sizes, values)
    wanted = count + index if index < 0 else count * 0 + index
    is_there = (take(shapes.kinds, values) == ARRAY) & (wanted >= 0) & (wanted < count)
    commas = shapes.commas.tokens
    before = values
    if commas.shape[0]:
        places = take(shapes.commas.first, values) + wanted - 1
        later = take(commas, places.clip(0, commas.shape[0] - 1))
        before = library_of(values).where(wanted > 0, later, values)
    return library_of(values).where(is_there, before + 1, shapes.none)


def _has_any(places: Any, starts: Any, ends: Any) -> Any:
    """bool: whether one of the ascending places lies in each range."""
    library = library_of(starts)
    if not places.shape[0]:
        return library.zeros_like(starts, dtype=bool)
    return library.searchsorted(places, starts) < library.searchsorted(places, ends)
