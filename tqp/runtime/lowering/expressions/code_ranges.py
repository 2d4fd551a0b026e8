"""Predicates on a dictionary column, and IN lists of integers, as ranges of codes or values to compare with.

In a sorted dictionary `=`, `<`, BETWEEN, IN, LIKE 'prefix%' and what AND, OR and NOT make of them hold for a few
ranges of codes; in others those that ask for equality do. A search finds them while the program is built; what runs is
one or two comparisons of narrow integers for each range, or a look-up in a table where there are many.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np
import torch

from tqp.core.datatypes import BOOLEAN
from tqp.core.patterns import like_problem
from tqp.data.strings import Strings
from tqp.operators.numbers import elementwise
from tqp.operators.rows.domain_tables import look_up
from tqp.operators.strings.like import compile_like
from tqp.planner.algebra.expressions import (
    Call,
    ColumnRef,
    Expression,
    InList,
    Literal,
    are_literals,
    column_ids,
)
from tqp.planner.functions.conditions import MIRRORED
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.layouts import canonical_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

#: Ascending, disjoint, not touching, none empty: pairs of first value and first value after.
Ranges = tuple[tuple[int, int], ...]

#: More comparisons than this cost more than a look-up (0.05 to 0.1 ns a row each, with the OR, against 0.6).
MOST_COMPARISONS = 6
#: Tables of up to this many entries are made for a list of integers.
LARGEST_TABLE = 1 << 16


class DictionaryEntries(Sequence[bytes]):
    """The entries of a dictionary as Python bytes, each read when it is asked for."""

    def __init__(self, dictionary: Strings, is_sorted: bool) -> None:
        self.is_sorted = is_sorted
        self._starts, self._lengths, self._data = (part.cpu().numpy() for part in dictionary)

    def place(self, word: bytes) -> int:
        """Of the entry that is the word; -1 if none is."""
        if self.is_sorted:
            place = bisect_left(self, word)
            return place if place < len(self) and self[place] == word else -1
        places = np.flatnonzero(self._lengths == len(word))
        for offset in range(len(word) - 1, -1, -1):  # what words have in common they often begin with
            if len(places) == 0:
                break
            places = places[self._data[self._starts[places] + offset] == word[offset]]
        return int(places[0]) if len(places) else -1

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        start = int(self._starts[index])
        return self._data[start : start + int(self._lengths[index])].tobytes()


def code_ranges(expression: Expression, entries: DictionaryEntries) -> Ranges | None:
    """The codes for which a predicate on one dictionary column is true; None if it is no matter of ranges.

    It is NULL exactly where the column is, since every part of it compares the column with something.
    """
    size = len(entries)
    match expression:
        case InList(ColumnRef(), values):
            return union(_equal(literal, entries) for literal in values) if are_literals(values) else None
        case Call("and" | "or" | "not" as function, arguments):
            parts = [code_ranges(argument, entries) for argument in arguments]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            if function == "or":
                return union(known)
            if function == "not":
                return complement(known[0], 0, size)
            return complement(union(complement(part, 0, size) for part in known), 0, size)
        case Call("like", (ColumnRef(), Literal(str() as pattern), *escape)):
            return _like(pattern, escape, entries)
        case Call("starts_with", (ColumnRef(), Literal(str() as text))) if entries.is_sorted:
            return _prefix(text.encode(), entries)
        case Call(function, (ColumnRef(), Literal(str() | bytes()) as literal)) if function in _COMPARED:
            return _compared(function, literal, entries)
        case Call(function, (Literal(str() | bytes()) as literal, ColumnRef())) if function in _COMPARED:
            return _compared(MIRRORED[function], literal, entries)
    return None


def _compared(function: str, literal: Literal, entries: DictionaryEntries) -> Ranges | None:
    needs_order = function not in ("equal", "not_equal")
    return None if needs_order and not entries.is_sorted else _COMPARED[function](literal, entries)


def _bytes(literal: Literal) -> bytes:
    assert isinstance(literal.value, str | bytes)
    return literal.value.encode() if isinstance(literal.value, str) else literal.value


def _range(first: int, after: int) -> Ranges:
    return ((first, after),) if first < after else ()


def _equal(literal: Literal, entries: DictionaryEntries) -> Ranges:
    return _at(entries.place(_bytes(literal)))


def _at(place: int) -> Ranges:
    return () if place < 0 else _range(place, place + 1)


_COMPARED: dict[str, Callable[[Literal, DictionaryEntries], Ranges]] = {
    "equal": _equal,
    "not_equal": lambda literal, entries: complement(_equal(literal, entries), 0, len(entries)),
    "less": lambda literal, entries: _range(0, bisect_left(entries, _bytes(literal))),
    "less_equal": lambda literal, entries: _range(0, bisect_right(entries, _bytes(literal))),
    "greater": lambda literal, entries: _range(bisect_right(entries, _bytes(literal)), len(entries)),
    "greater_equal": lambda literal, entries: _range(bisect_left(entries, _bytes(literal)), len(entries)),
}


def _like(pattern: str, escape: Sequence[Expression], entries: DictionaryEntries) -> Ranges | None:
    characters = [part.value if isinstance(part, Literal) else None for part in escape] or [""]
    if not isinstance(characters[0], str):
        return None
    if like_problem(pattern, characters[0]) is not None:  # it is the run that raises
        return None
    parsed = compile_like(pattern, characters[0])
    if parsed.expression is not None:
        return None
    match parsed.words:
        case (word,):
            return _at(entries.place(word))
        case (word, b"") if entries.is_sorted:
            return _prefix(word, entries)
    return None


def _prefix(word: bytes, entries: Sequence[bytes]) -> Ranges:
    return _range(*prefix_range(word, entries))


def prefix_range(word: bytes, entries: Sequence[bytes]) -> tuple[int, int]:
    """The first entry of a sorted dictionary that begins with the word, and the one after the last."""
    shorter = word.rstrip(
        b"\xff"
    )  # the first word that is greater than all with the prefix; none for all 0xff
    after = len(entries)
    if shorter:
        after = bisect_left(entries, shorter[:-1] + bytes([shorter[-1] + 1]))
    return bisect_left(entries, word), after


def union(parts: Iterable[Ranges]) -> Ranges:
    """What is in any of the parts.

    >>> union([((0, 2), (5, 6)), ((2, 3),)])
    ((0, 3), (5, 6))
    """
    merged: list[tuple[int, int]] = []
    for first, after in sorted(pair for part in parts for pair in part):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(after, merged[-1][1]))
        else:
            merged.append((first, after))
    return tuple(merged)


def complement(ranges: Ranges, low: int, high: int) -> Ranges:
    """What is between `low` and `high` (exclusive) and not in the ranges, which lie there.

    >>> complement(((0, 2), (5, 6)), 0, 9)
    ((2, 5), (6, 9))
    """
    edges = [low, *(edge for pair in ranges for edge in pair), high]
    return tuple((a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b)


def lower_code_ranges(lowering: ExpressionLowering, expression: Expression) -> Value | None:
    """A predicate on a column with a stored dictionary, if it is a matter of ranges."""
    if not isinstance(expression, (Call, InList)) or expression.data_type != BOOLEAN:
        return None
    ids = column_ids(expression)
    if len(ids) != 1:
        return None
    (column,) = ids
    pool = lowering.stream.columns[column].layout.pool
    entries = lowering.program.dictionary(pool) if pool is not None else None
    ranges = code_ranges(expression, entries) if entries is not None else None
    if entries is None or ranges is None:
        return None
    value = lowering.stream.column(column)
    node = membership(lowering, value, ranges, 0, len(entries))
    assert node is not None
    layout = canonical_layout(BOOLEAN, value.layout.nullable)
    return Value(layout, node, value.validity)


def lower_integer_list(lowering: ExpressionLowering, value: Value, wanted: Iterable[int]) -> Node | None:
    """A bool tensor: integers in a list; None if it is long and far apart."""
    low, high = value.layout.value_range or value.layout.data_type.bounds
    limits = torch.iinfo(value.layout.dtype)
    low, high = max(low, limits.min), min(high, limits.max)
    ranges = union(((number, number + 1),) for number in wanted if low <= number <= high)
    return membership(lowering, value, ranges, low, high + 1)


def membership(
    lowering: ExpressionLowering, value: Value, ranges: Ranges, low: int, high: int
) -> Node | None:
    """A bool tensor: integers from `low` to `high` (exclusive) that lie in the ranges; None if that is too costly."""
    build = lowering.stream.builder
    others = complement(ranges, low, high)
    negated = _comparisons(others, low, high) < _comparisons(ranges, low, high)
    wanted = others if negated else ranges
    if _comparisons(wanted, low, high) > MOST_COMPARISONS:
        if high - low > LARGEST_TABLE:
            return None
        table = lowering.stream.object(lowering.program.membership_table(ranges, low, high))
        node: Node = build.call(look_up, table, value.node, low, value.layout.nullable, name="looked_up")
        return node
    if not wanted:
        return build.call(torch.full_like, value.node, negated, dtype=torch.bool)
    if negated and len(wanted) == 1 and wanted[0][1] == wanted[0][0] + 1:
        return build.call(elementwise.not_equal, value.node, wanted[0][0])
    mask: Node | None = None
    for first, after in wanted:
        part = _inside(lowering, value.node, first, after, low, high)
        mask = part if mask is None else build.call(operator.or_, mask, part)
    assert mask is not None
    return build.call(operator.invert, mask) if negated else mask


def _comparisons(ranges: Ranges, low: int, high: int) -> int:
    return sum(1 if first == low or after == high or after == first + 1 else 2 for first, after in ranges)


def _inside(
    lowering: ExpressionLowering, node: Node | None, first: int, after: int, low: int, high: int
) -> Node:
    call = lowering.stream.builder.call
    if after == first + 1:
        return call(elementwise.equal, node, first)
    if first == low:
        return call(elementwise.less, node, after)
    above = call(elementwise.greater_equal, node, first)
    return above if after == high else call(operator.and_, above, call(elementwise.less, node, after))
