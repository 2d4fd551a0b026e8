"""Where what stands in JSON documents, all of them at once: quotes, brackets and levels as bits of their bytes.

No byte waits for the one before it: texts are told from the rest by whether the number of quotes so far is odd, the level of
each byte is a number of a few bits, each of which flips where a bracket carries, and what follows a token is found by an
addition. The grammar is a matter of neighbours then. These are the structural index of simdjson (Langdale and Lemire, VLDB
Journal 28, 2019) and the levels of Mison (Li et al., PVLDB 10(10), 2017), on arrays and tensors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
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
    previous_place,
    sums,
)
from tqp.operators.strings.json_scalars import malformed

QUOTE, COLON, SPACE = b'": '
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


class Tokens(NamedTuple):
    """Bits. Texts by both their quotes, others by their only byte, scalars by all of theirs."""

    quoted: Any  # from the quote that opens a text on, without the one that closes it
    opening: Any
    closing: Any
    opens: Any
    closes: Any
    commas: Any
    colons: Any
    filled: Any  # whatever is no space, in texts too

    def scalars(self) -> Any:
        """All bytes of numbers and words."""
        return self.filled & ~(
            self.quoted | self.closing | self.opens | self.closes | self.commas | self.colons
        )


class Index:
    """n documents that lie one behind the other. Arrays, or tensors; bits as in `bit_words`."""

    def __init__(self, data: Any, begins: Any, ends: Any, tokens: Tokens, escapes: Any) -> None:
        self.data = data  # uint8: their bytes
        self.ends = ends  # int64 [n]
        #: bool [n]: the well-formed ones without what is rare; of others nothing is right.
        self.is_plain = library_of(ends).ones_like(ends, dtype=bool)
        self.tokens = tokens
        self.levels, self.too_many = _levels(tokens.opens, tokens.closes)
        self.escapes = escapes  # bits: backslashes; None where there are none
        self._begins = begins
        self._key_ends: Any = None
        self._last: Any = None

    def roots(self) -> Any:
        """int64 [n]: where the value of each document begins."""
        return self.values_from(self._begins)

    def values_from(self, places: Any) -> Any:
        """int64: the first bytes at or behind the ascending places that are no spaces."""
        places = places + (take(self.data, places) == SPACE)
        if bool((take(self.data, places) > SPACE).all()):
            return places
        return next_place(self.tokens.filled, places)

    def ends_of(self, places: Any, level: int) -> Any:
        """int64: behind the last bytes of the values of a level that begin at the ascending places."""
        if self._last is None:
            scalars = self.tokens.scalars()
            ends = ~scalars | bits_at(self._begins, self.data.shape[0])
            self._last = (scalars & earlier(ends, 1)) | self.tokens.closing | self.tokens.closes
        return next_place(self._last & self.levels.at(level), places) + 1

    def key_ends(self, level: int) -> Any:
        """Bits: the quotes at the ends of the keys of a level."""
        if self._key_ends is None:
            tokens, ends = self.tokens, earlier(self.tokens.colons, 1)
            if bool(((ends & ~tokens.closing) != 0).any()):  # spaces before colons
                ends = bits_at(previous_place(tokens.closing, places_in(tokens.colons)), self.data.shape[0])
            self._key_ends = ends
        return self._key_ends & self.levels.at(level)


def index_of(data: Any, begins: Any, ends: Any) -> Index:
    """The index of documents that are known to be plain."""
    brackets = map(_is_letter, (OBJECT, OBJECT_END))
    backslashes, quotes, commas, colons, filled, opens, closes = bits_where(
        data, *map(is_byte, b'\\",:'), _is_filled, *brackets
    )
    escapes = places_in(backslashes)
    tokens = _tokens(
        quotes, _escaped(escapes, begins, ends), (opens, closes, commas, colons), filled, data.shape[0]
    )
    return Index(data, begins, ends, tokens, backslashes if escapes.shape[0] else None)


def checked_index_of(data: Any, begins: Any, ends: Any) -> Index | Any:
    """The index of any documents that are not empty, with those found that are plain.

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
    ) = bits_where(data, *map(is_byte, b'\\"{}[],:-0'), _is_filled, _are_digits)
    escapes = places_in(backslashes)
    escaped = _escaped(escapes, begins, ends)
    symbols = (objects | arrays, object_ends | array_ends, commas, colons)
    tokens = _tokens(quotes, escaped, symbols, filled, size)
    index = Index(data, begins, ends, tokens, backslashes if escapes.shape[0] else None)
    objects, object_ends, levels = objects & tokens.opens, object_ends & tokens.closes, index.levels
    in_objects = _in_objects(objects, object_ends, levels)
    scalars = tokens.scalars()
    begin_scalars = scalars & (~later(scalars) | documents)
    begin_tokens = (
        tokens.opening | tokens.opens | tokens.closes | tokens.commas | tokens.colons | begin_scalars
    )
    firsts = first_outside(documents, ~begin_tokens) & begin_tokens
    # One that does not end misleads what comes after it in this order.
    states = [[tokens.quoted], levels.bits, list(in_objects.values())]
    not_ended = later(reduce(or_, itertools.chain(*states)))
    if bool(((not_ended & documents) != 0).any()) or bool(has_bit(not_ended, ends[-1:])[0]):
        return next(filter(lambda some: some.any(), (_not_ended(each, begins, ends) for each in states)))
    if count(firsts) < begins.shape[0]:
        before = Ranks(begin_tokens)
        return before.at(begins) == before.at(ends)
    in_object = later(
        reduce(or_, (each & levels.at(level) for level, each in in_objects.items()), tokens.quoted & 0)
    )
    wrong, behind_keys = _checked(
        tokens, object_ends, in_object, begin_tokens, begin_scalars, firsts, levels.at(0)
    )
    last_of_scalars = scalars & earlier(begin_scalars | ~scalars, 1)
    wrong |= index.too_many | malformed(data, digits, minus, zeros, scalars, begin_scalars, last_of_scalars)
    if size and int(data.min()) < SPACE:
        control, of_lines = bits_where(
            data, lambda some: some < SPACE, lambda some: _is_any(some, _LINE_SPACE)
        )
        wrong |= control & (tokens.quoted | ~of_lines)
    index.is_plain = ~_documents_with(begins, places_in(wrong))
    if escapes.shape[0]:
        numbered = take(escaped, row_indices(~_is_any(take(data, escaped), _ESCAPED)))
        in_keys = row_indices(has_bit(tokens.colons, next_place(begin_tokens, escapes).clip(None, size)))
        index.is_plain &= ~_documents_with(begins, numbered, take(escapes, in_keys))
    index.tokens = tokens._replace(colons=tokens.colons & behind_keys)
    return index


def _tokens(quotes: Any, escaped: Any, symbols: tuple[Any, ...], filled: Any, size: int) -> Tokens:
    """The tokens, given the bits of bytes and the places of those that are escaped."""
    if escaped.shape[0]:
        quotes = quotes & ~bits_at(escaped, size)
    quoted = odd(quotes)
    outside = ~quoted
    opens, closes, commas, colons = (each & outside for each in symbols)
    return Tokens(quoted, quotes & quoted, quotes & outside, opens, closes, commas, colons, filled)


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
    tokens: Tokens,
    object_ends: Any,
    in_object: Any,
    begin_tokens: Any,
    begin_scalars: Any,
    firsts: Any,
    outermost: Any,
) -> tuple[Any, Any]:
    """Bits: the tokens that may not stand where they do, and those that follow keys.

    `in_object`: the innermost bracket that is open before a byte is one of an object.
    """
    between = ~begin_tokens

    def behind(words: Any) -> Any:
        """The tokens that follow."""
        return first_outside(later(words), between)

    follow_opens, follow_commas, follow_colons = map(behind, (tokens.opens, tokens.commas, tokens.colons))
    begin_members = follow_opens | follow_commas
    keys = tokens.opening & begin_members & in_object
    begin_values = (tokens.opening & ~keys) | begin_scalars | tokens.opens
    expect_values = (begin_members & ~in_object) | follow_colons | firsts
    wrong = begin_values & ~expect_values
    wrong |= (tokens.commas | tokens.colons) & (expect_values | begin_members | outermost)
    wrong |= tokens.closes & (follow_commas | follow_colons | firsts)
    wrong |= tokens.closes & (object_ends ^ in_object)
    behind_keys = behind(keys)
    wrong |= behind_keys ^ tokens.colons
    return wrong, behind_keys


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


def _is_letter(byte: int) -> Callable[[Any], Any]:
    """The condition that a byte is this small letter, or the capital one: so brackets of both kinds are as ASCII has them."""
    return lambda data: data | 0x20 == byte


def _is_filled(some: Any) -> Any:
    return some > SPACE


def _are_digits(some: Any) -> Any:
    return some - ord("0") < 10  # of bytes: those before the first digit become large


def _is_any(values: Any, allowed: bytes) -> Any:
    """bool: the bytes that are one of the allowed ones."""
    result = values == allowed[0]
    for each in allowed[1:]:
        result |= values == each
    return result
