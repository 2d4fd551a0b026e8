"""How a value in flight is stored, as lowering knows it before any row is seen."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import torch

from tqp.core.datatypes import BIGINT, DataType, TypeKind
from tqp.core.frozen import dataclass
from tqp.core.schema import InnerFacts
from tqp.data.nested import element_dtype
from tqp.operators.memory.arrays import narrowest


class Form(Enum):
    """What object carries the values at run time; validity is a separate bool tensor or None."""

    NUMBER = "number"  # tensor [n]: bool, integers, floats
    WIDE = "wide"  # int64 [n, 2]: integers of 65 to 128 bits, see tqp.operators.numbers.wide
    MATRIX = "matrix"  # [n, 3] int64 (INTERVAL) or [n, size] float32 (ARRAY)
    CODES = "codes"  # integer tensor [n]: entries of `pool`
    STRINGS = "strings"  # Strings [n]
    NESTED = "nested"  # Lists or Structs [n]; what they hold is stored as `element_layout` says


@dataclass(frozen=True, slots=True)
class Pool:
    """A `Strings` that exists once per run and that code columns point into; `slot` names it in the program's state."""

    slot: str
    is_dictionary: bool  # distinct: codes are equal where the strings are
    is_sorted: bool  # a dictionary, and sorted: codes compare like the strings
    size: int | None  # at most this many entries; None = unknown


@dataclass(frozen=True, slots=True)
class Layout:
    data_type: DataType
    form: Form
    dtype: torch.dtype  # of the tensor; uint8 for STRINGS and NESTED
    nullable: bool
    value_range: tuple[int, int] | None = None  # sound, for integers in NUMBER and WIDE
    pool: Pool | None = None
    inner: tuple[
        InnerFacts, ...
    ] = ()  # of each field of structs, or of the elements of lists, where anything is known
    longest: int | None = None  # of lists, as `ColumnFacts` has it

    @property
    def row_bytes(self) -> int:
        """What a row's values take; 0 of strings and nested values, which live elsewhere, and of arrays, whose sizes differ."""
        if self.form in (Form.STRINGS, Form.MATRIX, Form.NESTED):
            return 0
        return self.dtype.itemsize * (2 if self.form is Form.WIDE else 1)

    @property
    def has_dictionary(self) -> bool:
        """Are the values codes that are as distinct as their strings?"""
        return self.form is Form.CODES and self.pool is not None and self.pool.is_dictionary

    @property
    def has_sorted_dictionary(self) -> bool:
        """Are they ordered as their strings, too?"""
        return self.form is Form.CODES and self.pool is not None and self.pool.is_sorted

    def with_nullable(self, nullable: bool) -> Layout:
        return self if nullable == self.nullable else replace(self, nullable=nullable)


NO_INNER_FACTS = InnerFacts()
#: Of places and numbers of rows.
PLACE_LAYOUT = Layout(BIGINT, Form.NUMBER, torch.int64, False)


def widest(*dtypes: torch.dtype) -> torch.dtype:
    """The widest of some integer dtypes."""
    return max(dtypes, key=lambda dtype: dtype.itemsize)


def integer_layout(data_type: DataType, value_range: tuple[int, int] | None, nullable: bool) -> Layout:
    """The layout of a computed integer-like value, as narrow as its range (or its type's) allows."""
    low, high = data_type.bounds
    if value_range is not None:
        low, high = max(low, value_range[0]), min(high, value_range[1])
        if low > high:  # no value can be there
            low = high = 0
    dtype = narrowest((low, high))
    if dtype is None:
        return Layout(data_type, Form.WIDE, torch.int64, nullable, (low, high))
    return Layout(data_type, Form.NUMBER, dtype, nullable, (low, high))


_CANONICAL: dict[TypeKind, tuple[Form, torch.dtype]] = {
    TypeKind.BOOLEAN: (Form.NUMBER, torch.bool),
    TypeKind.NULL: (Form.NUMBER, torch.int8),
    TypeKind.FLOAT: (Form.NUMBER, torch.float32),
    TypeKind.DOUBLE: (Form.NUMBER, torch.float64),
    TypeKind.INTERVAL: (Form.MATRIX, torch.int64),
    TypeKind.ARRAY: (Form.MATRIX, torch.float32),
    TypeKind.VARCHAR: (Form.STRINGS, torch.uint8),
    TypeKind.BLOB: (Form.STRINGS, torch.uint8),
    TypeKind.BIT: (Form.STRINGS, torch.uint8),
}
_NESTED = (Form.NESTED, torch.uint8)


def canonical_layout(
    data_type: DataType, nullable: bool, value_range: tuple[int, int] | None = None
) -> Layout:
    """The layout in which scalar kernels hand out values of a type: integers in 64 bits, strings as `Strings`."""
    stored = _NESTED if data_type.is_nested else _CANONICAL.get(data_type.kind)
    if stored is not None:
        return Layout(data_type, *stored, nullable or data_type.kind is TypeKind.NULL)
    layout = integer_layout(data_type, value_range, nullable)
    return layout if layout.form is Form.WIDE else replace(layout, dtype=torch.int64)


def element_layout(data_type: DataType, known: InnerFacts = NO_INNER_FACTS) -> Layout:
    """How values of a type, of which so much is known, are stored inside of nested ones."""
    layout = canonical_layout(data_type, True)
    if known.inner:
        layout = replace(layout, inner=known.inner)
    if not data_type.is_integer_like:
        return layout
    dtype = element_dtype(data_type) or layout.dtype
    return replace(layout, dtype=dtype, value_range=known.range or layout.value_range)


def layout_of_part(whole: Layout, place: int = 0) -> Layout:
    """How the field at a place of structs, from 0, or the elements of lists are stored."""
    data_type = whole.data_type
    part = data_type.element if data_type.has_elements else data_type.children[place]
    return element_layout(part, whole.inner[place] if whole.inner else NO_INNER_FACTS)
