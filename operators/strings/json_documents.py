"""JSON documents as tokens, all of them at once: where values begin and end, and in which object or array each stands.

No byte waits for the one before it: quotes are told from what they enclose by running sums, brackets are matched by their levels,
and grammar is a matter of neighbours. This is the structural index of simdjson (Langdale and Lemire, VLDB Journal 28, 2019) and
Mison (Li et al., PVLDB 10(10), 2017), on arrays and tensors.

Documents that are not plain are left to a parser that reads one at a time: malformed ones and those that only DuckDB takes,
escapes by number, escapes in keys, deep nesting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.memory.arrays import as_tensor, host_form, running_sums
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.strings import layout

#: Bytes of documents read at a time on the CPU: they and what is computed of them stay in the cache.
_BLOCK_BYTES = 1 << 19
#: Levels of arrays and objects in each other that are looked at: a step for each.
_MOST_LEVELS = 16
#: Digits of integers that certainly fit into 64 bits, and of fractions that a DOUBLE tells from all others.
_MOST_DIGITS, _MOST_OF_FRACTIONS = 18, 15

_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _ZERO, _NINE, _DOT, _SPACE = b'"\\,:-09. '
_ARRAY, _ARRAY_END, _OBJECT, _OBJECT_END = b"[]{}"
#: The bit by which brackets differ from braces.
_SMALL = _ARRAY ^ _OBJECT
_LINE_SPACE, _ESCAPED = b"\t\n\r", b'"\\/bfnrt'
_WORDS = (b"true", b"false", b"null")


class Parts(NamedTuple):
    """A part of each of n documents, such as a path leads to."""

    is_plain: Tensor  # bool [n]: whether the document was read at all
    is_found: Tensor  # bool [n]: whether it has such a part
    is_simple: Tensor  # bool [n]: that is a text without escapes, true, false or a short number: written as it stands
    texts: Strings  # what the documents have there; anything where nothing is found


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokens of some documents: brackets, commas, colons, texts, and other values (scalars). Arrays, or tensors."""

    data: Any  # uint8: the bytes of the documents, one behind the other
    starts: Any  # int64 [t], places in the bytes
    ends: Any  # int64 [t]
    kinds: Any  # uint8 [t]: their first bytes
    documents: Any  # int64 [t]: the document of each
    first: Any  # int64 [n]: the first token of each document
    containers: Any  # int64 [t]: the opening bracket in which each stands; of a closing one the one it closes; t if there is none
    escapes: Any  # int64: where backslashes stand
    others: Any  # int64: where bytes stand in scalars that are no digits

    @property
    def count(self) -> int:
        return int(self.kinds.shape[0])


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
    plain, found, simple, starts, lengths = map(torch.cat, zip(*blocks, strict=True))
    return Parts(plain, found, simple, Strings(starts, lengths, strings.data))


def _parts_at(strings: Strings, steps: tuple[bytes | int, ...]) -> tuple[Tensor, ...]:
    """As `parts_at`, all documents at once, with the starts and lengths of the texts."""
    plain, found, simple = (torch.zeros_like(strings.lengths, dtype=torch.bool) for _ in range(3))
    starts, lengths = strings.starts.clone(), torch.zeros_like(strings.lengths)
    read = _tokens_of(strings)
    if read is not None:
        rows, begins, tokens = read
        is_plain, is_key, is_simple = _checked(tokens)
        values = tokens.first
        for step in steps:
            values = (
                _key(tokens, values, step, is_key)
                if isinstance(step, bytes)
                else _element(tokens, values, step)
            )
        hits = row_indices(is_plain & (values < tokens.count))
        places = take(values, hits)
        there = take(tokens.starts, places)
        sizes = take(_ends_of_values(tokens), places) - there
        within = there - take(begins, hits)
        is_plain, is_simple, hits, within, sizes = as_tensor(
            (is_plain, take(is_simple, places), hits, within, sizes)
        )
        plain.index_copy_(0, rows, is_plain)
        rows = torch.index_select(rows, 0, hits)
        found.index_fill_(0, rows, True)
        simple.index_copy_(0, rows, is_simple)
        starts.index_add_(0, rows, within)
        lengths.index_copy_(0, rows, sizes.to(torch.int32))
    return plain, found, simple, starts, lengths


# ---- tokens ----------------------------------------------------------------------------------------------------------


def _tokens_of(strings: Strings) -> tuple[Tensor, Any, _Tokens] | None:
    """Rows whose quotes and brackets come in pairs, where each begins in the bytes of these, and their tokens; None of no rows."""
    rows = row_indices(strings.lengths > 0)
    while rows.shape[0]:
        some = layout.compact(layout.take(strings, rows))
        begins = host_form(some.starts)
        found = _read(host_form(some.data), begins, begins + host_form(some.lengths))
        if isinstance(found, _Tokens):
            return rows, begins, found
        rows = rows[
            row_indices(~as_tensor(found))
        ]  # their quotes and brackets would be taken for those of others
    return None


def _read(data: Any, begins: Any, ends: Any) -> Any:
    """The tokens; or bool [n], which documents have none, or quotes or brackets without a counterpart, if any are such."""
    library = _library(data)
    quotes = data == _QUOTE
    escapes = row_indices(data == _BACKSLASH)
    if escapes.shape[0]:
        escaped = _behind(escapes, data)
        of_document = take(begins, library.searchsorted(begins, escaped, side="right") - 1)
        quotes[take(escaped, row_indices(of_document < escaped))] = False
    odd = (_sums(quotes, "uint8") & 1) == 1  # from an opening quote on, up to the closing one
    is_broken = (take(odd, ends - 1) != take(odd, begins)) != take(quotes, begins)
    if bool(is_broken.any()):
        return is_broken
    opening = quotes & odd
    closing = quotes ^ opening
    folded = data | _SMALL
    single = (folded == _OBJECT) | (folded == _OBJECT_END) | (data == _COMMA) | (data == _COLON)
    outside = ~(odd | closing)
    single &= outside
    scalars = outside & ~(single | (data == _SPACE) | _is_any(data, _LINE_SPACE))
    goes_on, comes_on = library.zeros_like(scalars), library.zeros_like(scalars)
    goes_on[1:], comes_on[:-1] = scalars[:-1], scalars[1:]
    goes_on[begins], comes_on[ends - 1] = False, False
    starts = row_indices((scalars & ~goes_on) | single | opening)
    token_ends = row_indices((scalars & ~comes_on) | single | closing) + 1
    first = library.searchsorted(starts, begins)
    is_empty = library.searchsorted(starts, ends) == first
    if bool(is_empty.any()):
        return is_empty
    kinds = take(data, starts)
    documents = library.zeros_like(starts)
    documents[first] = 1
    opens, closes = _is_any(kinds, b"[{"), _is_any(kinds, b"]}")
    before, after = _levels(opens, closes)
    last = library.searchsorted(starts, ends) - 1
    is_broken = take(after, last) != take(before, first)
    if bool(is_broken.any()):
        return is_broken
    others = row_indices(scalars & ((data < _ZERO) | (data > _NINE)))
    return _Tokens(
        data=data,
        starts=starts,
        ends=token_ends,
        kinds=kinds,
        documents=_sums(documents, "int64") - 1,
        first=first,
        containers=_containers(before, after),
        escapes=escapes,
        others=others,
    )


def _behind(escapes: Any, data: Any) -> Any:
    """The places of bytes that are escaped, given those of backslashes: every other one of a run escapes the next byte."""
    is_first = _library(escapes).ones_like(escapes, dtype=bool)
    is_first[1:] = escapes[1:] != escapes[:-1] + 1
    firsts = take(escapes, row_indices(is_first))
    within = escapes - take(firsts, _sums(is_first, "int64") - 1)
    places = take(escapes, row_indices((within & 1) == 0)) + 1
    return take(places, row_indices(places < data.shape[0]))


def _levels(opens: Any, closes: Any) -> tuple[Any, Any]:
    """int32 [t], int32 [t]: how many brackets are open before and behind each token."""
    after = _sums(opens, "int32") - _sums(closes, "int32")
    before = _library(after).zeros_like(after)
    before[1:] = after[:-1]
    return before, after


def _containers(before: Any, after: Any) -> Any:
    """See `_Tokens`; from the levels before and behind each token."""
    library = _library(before)
    count = before.shape[0]
    containers = library.full_like(before, count, dtype=library.int64)
    for level in range(1, min(int(after.max()), _MOST_LEVELS) + 1):
        of_level = row_indices((before == level) | ((after == level) & (before < level)))
        opens = take(before, of_level) < level
        brackets = take(of_level, row_indices(opens))
        inner = row_indices(~opens)
        numbers = take(_sums(opens, "int64"), inner) - 1
        containers[take(of_level, inner)] = take(brackets, numbers)
    return containers


# ---- grammar ---------------------------------------------------------------------------------------------------------


def _checked(tokens: _Tokens) -> tuple[Any, Any, Any]:
    """bool [n]: the well-formed documents; bool [t]: the keys, and the simple values (see `Parts`)."""
    library = _library(tokens.kinds)
    kinds, first = tokens.kinds, tokens.first
    is_text, opens, closes = kinds == _QUOTE, _is_any(kinds, b"[{"), _is_any(kinds, b"]}")
    comma, colon = kinds == _COMMA, kinds == _COLON
    is_scalar = ~(is_text | opens | closes | comma | colon)
    is_inside = tokens.containers < tokens.count
    container = take(kinds, library.clip(tokens.containers, None, tokens.count - 1)) * is_inside
    previous = _shifted(kinds, first)
    is_next = previous == _COMMA
    is_key = is_text & (container == _OBJECT) & (is_next | (previous == _OBJECT))
    ends_value = _shifted((is_text & ~is_key) | is_scalar | closes, first)
    begins_value = (previous == 0) | (previous == _COLON)
    begins_value |= (container == _ARRAY) & (is_next | (previous == _ARRAY))
    fits = is_key | (begins_value & (is_text | is_scalar | opens))
    fits |= colon & _shifted(is_key, first)
    fits |= comma & ends_value & is_inside
    fits |= closes & (kinds == container + (_ARRAY_END - _ARRAY)) & (ends_value | (previous == container))
    scalars, texts = row_indices(is_scalar), row_indices(is_text)
    is_well, is_simple = library.zeros_like(is_text), library.zeros_like(is_text)
    is_well[scalars], is_simple[scalars] = _scalars(tokens, scalars)
    fits &= is_well | ~is_scalar
    is_simple[texts] = ~_has_any(tokens.escapes, take(tokens.starts, texts), take(tokens.ends, texts))
    fits &= is_simple | ~is_key
    fits[_unusual(tokens)] = False
    well_formed = library.ones_like(first, dtype=bool)
    well_formed[take(tokens.documents, row_indices(~fits))] = False
    return well_formed, is_key, is_simple


def _unusual(tokens: _Tokens) -> Any:
    """The tokens with control characters in them, or escapes other than by one letter."""
    data = tokens.data
    escaped = _behind(tokens.escapes, data)
    rare = take(escaped, row_indices(~_is_any(take(data, escaped), _ESCAPED)))
    control = row_indices(data < _SPACE)
    around = _token_before(tokens, control)
    inside = (take(tokens.starts, around) <= control) & (control < take(tokens.ends, around))
    found = [_token_before(tokens, rare), take(around, row_indices(inside))]
    return _library(data).concatenate(found)


def _token_before(tokens: _Tokens, places: Any) -> Any:
    """The last token that begins at or before each place, or the first one."""
    library = _library(places)
    return library.clip(library.searchsorted(tokens.starts, places, side="right") - 1, 0, None)


def _scalars(tokens: _Tokens, rows: Any) -> tuple[Any, Any]:
    """bool [r], bool [r]: which of these tokens are numbers, true, false or null, and which are simple (see `Parts`)."""
    library, data = _library(rows), tokens.data
    starts, ends, kinds = take(tokens.starts, rows), take(tokens.ends, rows), take(tokens.kinds, rows)
    is_negative = kinds == _MINUS
    low, high = (library.searchsorted(tokens.others, each) for each in (starts, ends))
    digits = starts + is_negative
    is_zero = take(data, library.clip(digits, None, data.shape[0] - 1)) == _ZERO
    other = low + is_negative
    behind = _other_at(tokens, other, high, ends)
    is_well = (behind > digits) & (~is_zero | (behind == digits + 1))
    is_simple = is_well & (behind <= digits + _MOST_DIGITS) & ~(is_negative & is_zero) & (other == high)
    rest = row_indices(other != high)
    if rest.shape[0]:
        other, high, behind, ends, digits = (take(each, rest) for each in (other, high, behind, ends, digits))
        is_number = take(is_well, rest) & _is_fraction(tokens, other, high, behind, ends)
        is_well[rest] = is_number
        is_dotted = is_number & (other + 1 == high) & (take(data, behind) == _DOT)
        is_simple[rest] = is_dotted & _is_shortest(data, digits, behind, ends)
        for word in _WORDS:
            places = take(rest, row_indices(take(kinds, rest) == word[0]))
            from_there = take(starts, places)
            is_word = take(tokens.ends, take(rows, places)) == from_there + len(word)
            for offset, byte in enumerate(word):
                is_word &= take(data, library.clip(from_there + offset, None, data.shape[0] - 1)) == byte
            is_well[places] = is_word
            is_simple[places] = is_word & (word != b"null")
    return is_well, is_simple


def _is_fraction(tokens: _Tokens, other: Any, high: Any, place: Any, ends: Any) -> Any:
    """Whether numbers are well-formed from `place` on, behind their first digits, where `others[other]` stands if `other < high`."""
    has_dot = _is_there(tokens, other, high, b".")
    other = other + has_dot
    behind = _other_at(tokens, other, high, ends)
    is_well = ~has_dot | (behind > place + 1)
    has_exponent = _is_there(tokens, other, high, b"eE")
    place, other = behind + has_exponent, other + has_exponent
    has_sign = has_exponent & _is_there(tokens, other, high, b"+-")
    has_sign &= _other_at(tokens, other, high, ends) == place
    place, other = place + has_sign, other + has_sign
    is_well &= ~has_exponent | (_other_at(tokens, other, high, ends) > place)
    return is_well & (other == high)


def _is_shortest(data: Any, digits: Any, dot: Any, ends: Any) -> Any:
    """Whether fractions that begin with `digits` are the shortest text of a DOUBLE, and one without an exponent."""
    last = _library(data).clip(dot + 1, None, data.shape[0] - 1)
    is_short = ends - digits <= _MOST_OF_FRACTIONS + 1
    has_one = ends == dot + 2
    is_small = (take(data, digits) == _ZERO) & (take(data, last) == _ZERO)
    return is_short & (has_one | ((take(data, ends - 1) != _ZERO) & ~is_small))


def _other_at(tokens: _Tokens, other: Any, high: Any, ends: Any) -> Any:
    """Where `others[other]` stands, the end if `other` is not below `high`."""
    if not tokens.others.shape[0]:
        return ends
    library = _library(other)
    places = take(tokens.others, library.clip(other, None, tokens.others.shape[0] - 1))
    return library.where(other < high, places, ends)


def _is_there(tokens: _Tokens, other: Any, high: Any, allowed: bytes) -> Any:
    """Whether `others[other]` is one of the allowed bytes, and `other` below `high`."""
    places = take(tokens.others, _library(other).clip(other, None, tokens.others.shape[0] - 1))
    return (other < high) & _is_any(take(tokens.data, places), allowed)


# ---- paths -----------------------------------------------------------------------------------------------------------


def _key(tokens: _Tokens, values: Any, key: bytes, is_key: Any) -> Any:
    """The tokens with which the values of such a key begin, of its first one in each object; t where `values` is none with it."""
    library = _library(values)
    found = row_indices(is_key & (tokens.ends - tokens.starts == len(key) + 2))
    places = take(tokens.starts, found) + 1
    for byte in key:
        fits = row_indices(take(tokens.data, places) == byte)
        found, places = take(found, fits), take(places, fits) + 1
    fits = take(tokens.containers, found) == take(values, take(tokens.documents, found))
    found = take(found, row_indices(fits))
    documents = take(tokens.documents, found)
    is_first = library.ones_like(documents, dtype=bool)
    is_first[1:] = documents[1:] != documents[:-1]
    firsts = row_indices(is_first)
    result = library.full_like(values, tokens.count)
    result[take(documents, firsts)] = library.clip(take(found, firsts) + 2, None, tokens.count)
    return result


def _element(tokens: _Tokens, values: Any, index: int) -> Any:
    """The tokens with which elements of arrays begin; t where `values` is no array that has so many."""
    library = _library(values)
    last = tokens.count - 1
    is_array = (values <= last) & (take(tokens.kinds, library.clip(values, None, last)) == _ARRAY)
    behind = library.clip(values + 1, None, last)
    commas = row_indices(tokens.kinds == _COMMA)
    of_value = take(tokens.containers, commas) == take(values, take(tokens.documents, commas))
    commas = take(commas, row_indices(of_value))
    begin = library.searchsorted(commas, tokens.first)
    count = library.zeros_like(begin) + commas.shape[0]
    count[:-1] = begin[1:]
    count -= begin - 1
    count *= is_array & (take(tokens.kinds, behind) != _ARRAY_END)
    wanted = index + (count if index < 0 else library.zeros_like(count))
    if commas.shape[0]:
        comma = take(commas, library.clip(begin + wanted - 1, 0, commas.shape[0] - 1))
        behind = library.where(wanted > 0, comma + 1, behind)
    return library.where((wanted >= 0) & (wanted < count), behind, library.full_like(values, tokens.count))


def _ends_of_values(tokens: _Tokens) -> Any:
    """Where the value ends that begins with each token: int64 [t]."""
    ends = tokens.ends + 0
    closing = row_indices(_is_any(tokens.kinds, b"]}") & (tokens.containers < tokens.count))
    ends[take(tokens.containers, closing)] = take(tokens.ends, closing)
    return ends


# ---- arrays and tensors ----------------------------------------------------------------------------------------------


def _library(values: Any) -> Any:
    """Whose functions take the values; those called here have the same names and arguments in both."""
    return np if isinstance(values, np.ndarray) else torch


def _sums(values: Any, dtype: str) -> Any:
    """The running sums, in a dtype that may wrap."""
    if isinstance(values, np.ndarray):
        return running_sums(values.view(np.uint8) if values.dtype == bool else values, np.dtype(dtype))
    return torch.cumsum(values, 0, dtype=getattr(torch, dtype))


def _shifted(values: Any, first: Any) -> Any:
    """Of each token, what holds of the one before it in its document; 0 of the first one."""
    result = _library(values).zeros_like(values)
    result[1:] = values[:-1]
    result[first] = 0
    return result


def _is_any(values: Any, allowed: bytes) -> Any:
    """bool: the bytes that are one of the allowed ones."""
    result = values == allowed[0]
    for each in allowed[1:]:
        result |= values == each
    return result


def _has_any(places: Any, starts: Any, ends: Any) -> Any:
    """bool: whether one of the ascending places lies in each range."""
    if not places.shape[0]:
        return _library(starts).zeros_like(starts, dtype=bool)
    library = _library(places)
    return library.searchsorted(places, starts) < library.searchsorted(places, ends)
