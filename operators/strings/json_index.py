"""Where what stands in JSON documents, all of them at once: quotes, brackets and levels as bits of their bytes.

No byte waits for the one before it: texts are told from the rest by whether the number of quotes so far is odd, the level of
each byte is a number of a few bits, each of which flips where a bracket carries, and what follows a token is found by an
addition. The grammar is a matter of neighbours then. These are the structural index of simdjson (Langdale and Lemire, VLDB
Journal 28, 2019) and the levels of Mison (Li et al., PVLDB 10(10), 2017), on arrays and tensors.
"""

from __future__ import annotations

import itertools
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple

from tqp.operators.rows.selection import row_indices, take
from tqp.operators.strings.bit_words import (
    Ranks,
    bits_at,
    bits_where,
    count,
    earlier,
    first_outside,
    has_bit,
    is_byte,
    later,
    library_of,
    next_place,
    odd,
    places_in,
    sums,
)
from tqp.operators.strings.json_scalars import malformed

QUOTE, SPACE = b'" '
ARRAY, ARRAY_END, OBJECT, OBJECT_END = b"[]{}"
_LINE_SPACE, _ESCAPED = b"\t\n\r", b'"\\/bfnrt'
#: Bits of the level of a byte. Documents with more levels are left to others.
_BITS_OF_LEVEL = 4


class Levels:
    """How many brackets are open behind each byte."""

    def __init__(self, bits: list[Any]) -> None:
        self.bits = bits  # of those numbers, the lowest first, for each byte
        self._at: dict[int, Any] = {}

    def at(self, level: int) -> Any:
        """Bits: the bytes of a level."""
        found = self._at.get(level)
        if found is None:
            each = (bits if level >> place & 1 else ~bits for place, bits in enumerate(self.bits))
            found = reduce(and_, each) if level < 1 << len(self.bits) else self.bits[0] & 0
            self._at[level] = found
        return found


class Index(NamedTuple):
    """n documents that lie one behind the other. Arrays, or tensors; bits as in `bit_words`."""

    data: Any  # uint8: their bytes
    ends: Any  # int64 [n]
    roots: Any  # int64 [n]: where the value of each begins
    is_plain: Any  # bool [n]: the well-formed ones without what is rare; of others nothing is right
    levels: Levels
    keys: Any  # bits: where keys begin
    elements: Any  # bits: where elements of arrays begin
    follow_colons: Any  # bits: where values of keys begin
    closing: Any  # bits: the quotes at the ends of texts
    last: Any  # bits: the last bytes of values and keys
    escapes: Any  # bits: backslashes; None where there are none


class _Tokens(NamedTuple):
    """Bits. Scalars by all their bytes, texts by both their quotes, others by their only byte."""

    opening: Any
    closing: Any
    objects: Any
    object_ends: Any
    arrays: Any
    array_ends: Any
    commas: Any
    colons: Any
    scalars: Any


def index_of(data: Any, begins: Any, ends: Any) -> Index | Any:
    """The index of documents that are not empty.

    Or bool [n]: the documents whose quotes or brackets do not come in pairs, or that are blank, if any are: they would be
    taken for parts of others.
    """
    size, documents = data.shape[0], bits_at(begins, data.shape[0])
    (
        backslashes,
        quotes,
        objects,
        object_ends,
        arrays,
        array_ends,
        commas,
        colons,
        minus,
        zeros,
        filled,
        digits,
    ) = bits_where(data, *map(is_byte, b'\\"{}[],:-0'), lambda some: some > SPACE, _are_digits)
    escapes = places_in(backslashes)
    escaped = _escaped(escapes, begins, ends)
    if escaped.shape[0]:
        quotes &= ~bits_at(escaped, size)
    quoted = odd(quotes)
    opening, closing = quotes & quoted, quotes & ~quoted
    outside = ~quoted
    objects, object_ends, arrays, array_ends, commas, colons = (
        each & outside for each in (objects, object_ends, arrays, array_ends, commas, colons)
    )
    opens, closes = objects | arrays, object_ends | array_ends
    scalars = filled & ~(quoted | quotes | opens | closes | commas | colons)
    levels, too_many = _levels(opens, closes)
    in_objects = _in_objects(objects, object_ends, levels)
    tokens = _Tokens(opening, closing, objects, object_ends, arrays, array_ends, commas, colons, scalars)
    begin_scalars = scalars & (~later(scalars) | documents)
    begin_tokens = opening | opens | closes | commas | colons | begin_scalars
    firsts = first_outside(documents, ~begin_tokens) & begin_tokens
    # One that does not end misleads what comes after it in this order.
    states = [[quoted], levels.bits, list(in_objects.values())]
    not_ended = later(reduce(or_, itertools.chain(*states)))
    if bool(((not_ended & documents) != 0).any()) or bool(has_bit(not_ended, ends[-1:])[0]):
        return next(filter(lambda some: some.any(), (_not_ended(each, begins, ends) for each in states)))
    if count(firsts) < begins.shape[0]:
        before = Ranks(begin_tokens)
        return before.at(begins) == before.at(ends)
    in_object = later(
        reduce(or_, (each & levels.at(level) for level, each in in_objects.items()), quoted & 0)
    )
    wrong, keys, begin_values, follow_colons = _checked(
        tokens, begin_tokens, begin_scalars, firsts, in_object, levels.at(0)
    )
    last_of_scalars = scalars & earlier(begin_scalars | ~scalars, 1)
    wrong |= too_many | malformed(data, digits, minus, zeros, scalars, begin_scalars, last_of_scalars)
    if size and int(data.min()) < SPACE:
        control, of_lines = bits_where(
            data, lambda some: some < SPACE, lambda some: _is_any(some, _LINE_SPACE)
        )
        wrong |= control & (quoted | ~of_lines)
    is_plain = ~_documents_with(begins, places_in(wrong))
    if escapes.shape[0]:
        numbered = take(escaped, row_indices(~_is_any(take(data, escaped), _ESCAPED)))
        in_keys = row_indices(has_bit(colons, next_place(begin_tokens, escapes).clip(None, size)))
        is_plain &= ~_documents_with(begins, numbered, take(escapes, in_keys))
    return Index(
        data,
        ends,
        places_in(firsts),
        is_plain,
        levels,
        keys,
        begin_values & ~in_object & ~later(levels.at(0)),
        follow_colons,
        closing,
        last_of_scalars | closing | closes,
        backslashes if escapes.shape[0] else None,
    )


def _levels(opens: Any, closes: Any) -> tuple[Levels, Any]:
    """The levels; and the brackets that lead to more than these bits tell apart, or to less than none."""
    levels: list[Any] = []
    flips = opens | closes
    while len(levels) < _BITS_OF_LEVEL and (not levels or bool((flips != 0).any())):
        levels.append(odd(flips))
        flips = flips & ((opens & ~levels[-1]) | (closes & levels[-1]))  # where it carries, or borrows
    return Levels(levels), flips


def _in_objects(objects: Any, object_ends: Any, levels: Levels) -> dict[int, Any]:
    """Of each level with objects, bits: whether the last bracket that led to it was one of an object that is open."""
    found = {}
    for level in range(1, 1 << len(levels.bits)):
        begin = objects & levels.at(level)
        if bool((begin != 0).any()):
            found[level] = odd(begin | (object_ends & levels.at(level - 1)))
    return found


def _not_ended(states: list[Any], begins: Any, ends: Any) -> Any:
    """bool [n]: the documents behind which a state (bits) is not what it is before them."""
    before = map(later, states)
    nowhere = library_of(begins).zeros_like(begins, dtype=bool)
    return reduce(or_, (has_bit(each, begins) != has_bit(each, ends) for each in before), nowhere)


def _checked(
    tokens: _Tokens, begin_tokens: Any, begin_scalars: Any, firsts: Any, in_object: Any, outermost: Any
) -> tuple[Any, ...]:
    """Bits: the tokens that may not stand where they do, keys, where other values begin, and where those behind colons do.

    `in_object`: the innermost bracket that is open before a byte is one of an object.
    """
    between = ~begin_tokens

    def behind(words: Any) -> Any:
        """The tokens that follow."""
        return first_outside(later(words), between)

    opens, closes = tokens.objects | tokens.arrays, tokens.object_ends | tokens.array_ends
    follow_opens, follow_commas, follow_colons = map(behind, (opens, tokens.commas, tokens.colons))
    begin_members = follow_opens | follow_commas
    keys = tokens.opening & begin_members & in_object
    begin_values = (tokens.opening & ~keys) | begin_scalars | opens
    expect_values = (begin_members & ~in_object) | follow_colons | firsts
    wrong = begin_values & ~expect_values
    wrong |= (tokens.commas | tokens.colons) & (expect_values | begin_members | outermost)
    wrong |= closes & (follow_commas | follow_colons | firsts)
    wrong |= (tokens.object_ends & ~in_object) | (tokens.array_ends & in_object)
    wrong |= behind(keys) ^ tokens.colons
    return wrong, keys, begin_values, follow_colons


def _documents_with(begins: Any, *places: Any) -> Any:
    """bool [n]: the documents in which any of the places lie."""
    result = library_of(begins).zeros_like(begins, dtype=bool)
    for some in places:
        if some.shape[0]:
            result[_document_of(begins, some)] = True
    return result


def _document_of(begins: Any, places: Any) -> Any:
    return library_of(begins).searchsorted(begins, places, side="right") - 1


def _escaped(escapes: Any, begins: Any, ends: Any) -> Any:
    """The places of bytes that are escaped, given those of backslashes: every other one of a run escapes the next byte."""
    if not escapes.shape[0]:
        return escapes
    documents = _document_of(begins, escapes)
    is_first = library_of(escapes).ones_like(escapes, dtype=bool)
    is_first[1:] = (escapes[1:] != escapes[:-1] + 1) | (documents[1:] != documents[:-1])
    firsts = take(escapes, row_indices(is_first))
    within = escapes - take(firsts, sums(is_first, "int64") - 1)
    places = escapes + 1
    return take(places, row_indices(((within & 1) == 0) & (places < take(ends, documents))))


def _are_digits(some: Any) -> Any:
    return some - ord("0") < 10  # of bytes: those before the first digit become large


def _is_any(values: Any, allowed: bytes) -> Any:
    """bool: the bytes that are one of the allowed ones."""
    result = values == allowed[0]
    for each in allowed[1:]:
        result |= values == each
    return result
