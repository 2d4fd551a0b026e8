"""The shapes of JSON documents: their tokens without what keys, texts and scalars say.

Most documents of a column share few shapes. Grammar, and which brackets belong together, are found once for each: brackets are
matched by their levels, and the rest is a matter of neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tqp.data.repeats import numbers_of
from tqp.data.strings import Strings
from tqp.operators.memory.arrays import as_tensor, in_form_of
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.string_keys.codes import distinct_values
from tqp.operators.strings import layout
from tqp.operators.strings.json_tokens import (
    ARRAY,
    ARRAY_END,
    COLON,
    COMMA,
    OBJECT,
    OBJECT_END,
    QUOTE,
    SCALAR,
    Tokens,
    library_of,
    places_of,
    sums,
    with_last,
)

#: Levels of arrays and objects in each other that are looked at: a step for each.
_MOST_LEVELS = 16


class Inner(NamedTuple):
    """Tokens of one kind by the bracket in which they stand, in order."""

    tokens: Any  # int64 [m]
    first: Any  # int64 [s + 1]: the place in `tokens` of the first one in each bracket
    counts: Any  # int64 [s + 1]: how many there are


class Shapes(NamedTuple):
    """The s tokens of m shapes, one behind the other, and a last one that stands for none. Arrays, or tensors."""

    kinds: Any  # uint8 [s + 1]: see `Tokens`; 0 of the last one
    first: Any  # int64 [m]: the first token of each
    is_well: Any  # bool [m]: whether it is well-formed
    closings: Any  # int64 [s + 1]: of an opening bracket the one that closes it, of other tokens themselves
    sizes: Any  # int64 [s + 1]: how many elements or keys an array or object has, 0 of other tokens
    keys: Inner
    commas: Inner

    @property
    def none(self) -> int:
        return int(self.kinds.shape[0]) - 1


def shapes_of(tokens: Tokens) -> tuple[Any, Shapes]:
    """The number of the shape of each document, int64 [n], and the shapes."""
    lengths = as_tensor(tokens.counts).to(torch.int32)
    numbers, texts = distinct_values(Strings(as_tensor(tokens.first), lengths, as_tensor(tokens.kinds)))
    texts = layout.compact(texts)
    counts = texts.lengths.to(torch.int64)
    shape_of = numbers_of(counts, texts.data.shape[0])
    numbers, *parts = (
        in_form_of(tokens.kinds, each) for each in (numbers, texts.data, texts.starts, counts, shape_of)
    )
    return numbers, _analysed(*parts)


def _analysed(kinds: Any, first: Any, counts: Any, shape_of: Any) -> Shapes:
    """`counts`: the tokens of each shape; `shape_of`: the shape of each token."""
    none = int(kinds.shape[0])
    opens, closes = (kinds == OBJECT) | (kinds == ARRAY), (kinds == OBJECT_END) | (kinds == ARRAY_END)
    before, after = _levels(opens, closes, first, shape_of)
    containers = _containers(before, after)
    filled = row_indices(counts > 0)
    is_key, fits = _checked(kinds, opens, closes, take(first, filled), containers)
    ends = take(first + counts, filled) - 1
    fits[take(ends, row_indices(take(after, ends) != 0))] = False
    is_well = counts > 0
    is_well[take(shape_of, row_indices(~fits))] = False
    kinds = with_last(kinds, 0)
    every = places_of(kinds)
    closing, closings = row_indices(closes & (containers < none)), every + 0
    closings[take(containers, closing)] = closing
    commas = _inner(row_indices(kinds[:-1] == COMMA), containers)
    sizes = commas.counts + (closings > every + 1)
    return Shapes(kinds, first, is_well, closings, sizes, _inner(row_indices(is_key), containers), commas)


def _inner(tokens: Any, containers: Any) -> Inner:
    none = int(containers.shape[0])
    tokens = take(tokens, row_indices(take(containers, tokens) < none))
    brackets = take(containers, tokens)
    order = in_form_of(brackets, as_tensor(brackets).argsort(stable=True))
    counts = library_of(brackets).bincount(brackets, minlength=none + 1)
    return Inner(take(tokens, order), sums(counts, "int64") - counts, counts)


def _levels(opens: Any, closes: Any, first: Any, shape_of: Any) -> tuple[Any, Any]:
    """int32 [s], int32 [s]: how many brackets of its shape are open before and behind each token."""
    after = sums(opens, "int32") - sums(closes, "int32")
    before = _behind(after)
    base = take(before, take(first, shape_of))
    return before - base, after - base


def _containers(before: Any, after: Any) -> Any:
    """int64 [s]: the opening bracket in which each token stands, of a closing one the one it closes; s if there is none.

    From the levels before and behind each.
    """
    library, none = library_of(before), before.shape[0]
    containers = library.full_like(before, none, dtype=library.int64)
    highest = int(after.max()) if none else 0
    for level in range(1, min(highest, _MOST_LEVELS) + 1):
        of_level = row_indices((before == level) | ((after == level) & (before < level)))
        opens = take(before, of_level) < level
        brackets = take(of_level, row_indices(opens))
        inner = row_indices(~opens)
        numbers = take(sums(opens, "int64"), inner) - 1
        containers[take(of_level, inner)] = take(brackets, numbers)
    return containers


def _checked(kinds: Any, opens: Any, closes: Any, first: Any, containers: Any) -> tuple[Any, Any]:
    """bool [s], bool [s]: the keys, and the tokens that may stand where they do."""
    none = kinds.shape[0]
    is_text, is_scalar, comma, colon = (kinds == each for each in (QUOTE, SCALAR, COMMA, COLON))
    is_inside = containers < none
    container = take(kinds, containers.clip(None, max(none - 1, 0))) * is_inside
    previous = _behind(kinds, first)
    is_next = previous == COMMA
    is_key = is_text & (container == OBJECT) & (is_next | (previous == OBJECT))
    ends_value = _behind((is_text & ~is_key) | is_scalar | closes, first)
    begins_value = (previous == 0) | (previous == COLON)
    begins_value |= (container == ARRAY) & (is_next | (previous == ARRAY))
    fits = is_key | (begins_value & (is_text | is_scalar | opens))
    fits |= colon & _behind(is_key, first)
    fits |= comma & ends_value & is_inside
    fits |= closes & (kinds == container + (ARRAY_END - ARRAY)) & (ends_value | (previous == container))
    return is_key, fits


def _behind(values: Any, first: Any = None) -> Any:
    """Of each token, what holds of the one before it; 0 of the first ones, if they are given."""
    result = library_of(values).zeros_like(values)
    result[1:] = values[:-1]
    if first is not None:
        result[first] = 0
    return result
