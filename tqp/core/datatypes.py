"""Logical SQL types (DuckDB's) and the facts about them that every layer needs.

How a type is stored in tensors is `tqp.data`'s business; how it prints is `tqp.result`'s.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum
from functools import cached_property

from tqp.core import zoned_times
from tqp.core.frozen import dataclass
from tqp.core.keywords import lower_ascii, quoted, quoted_text
from tqp.core.unsigned_128 import LAST_UNSIGNED


class TypeKind(Enum):
    """The closed set of type constructors; the value is the SQL name."""

    __hash__ = object.__hash__  # Enum's own is Python: types are hashed hundreds of times for a query

    NULL = "NULL"
    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    HUGEINT = "HUGEINT"
    UTINYINT = "UTINYINT"
    USMALLINT = "USMALLINT"
    UINTEGER = "UINTEGER"
    UBIGINT = "UBIGINT"
    UHUGEINT = "UHUGEINT"
    DECIMAL = "DECIMAL"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    VARCHAR = "VARCHAR"
    BLOB = "BLOB"
    BIT = "BIT"
    DATE = "DATE"
    TIME = "TIME"
    TIME_TZ = "TIME WITH TIME ZONE"
    TIMESTAMP_S = "TIMESTAMP_S"
    TIMESTAMP_MS = "TIMESTAMP_MS"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_NS = "TIMESTAMP_NS"
    TIMESTAMP_TZ = "TIMESTAMP WITH TIME ZONE"
    INTERVAL = "INTERVAL"
    UUID = "UUID"
    ARRAY = "ARRAY"
    ENUM = "ENUM"
    LIST = "LIST"
    STRUCT = "STRUCT"
    MAP = "MAP"
    UNION = "UNION"


#: Of types whose values hold others.
COMPOSED = (TypeKind.ARRAY, TypeKind.LIST, TypeKind.STRUCT, TypeKind.MAP, TypeKind.UNION)


class Categories(tuple[str, ...]):
    """The values of an ENUM, in its order. Hashed once, as the types of a query are, and there may be many of them."""

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Where each value stands."""
        return {value: position for position, value in enumerate(self)}

    @cached_property
    def nbytes(self) -> int:
        """What the texts take."""
        return sum(map(sys.getsizeof, self))

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other


_NO_CATEGORIES = Categories()


@dataclass(frozen=True, slots=True)
class DataType:
    """A logical type. `precision`/`scale` belong to DECIMAL, `size` to ARRAY, `categories` to ENUM.

    `children`: the type of the elements of a LIST, those of the fields of a STRUCT, whose names are `names` ("" of all
    fields of one that has none); of a MAP, which is a list of its entries, a STRUCT of `key` and `value`; those of an
    ARRAY, but of FLOAT, which is a vector without NULLs and has no children. `alias`: JSON, a VARCHAR that is a type of
    its own. `collation`: of a VARCHAR, the names by which its texts are compared, with dots between; types that differ in it
    alone are equal, as in DuckDB.

    >>> str(DataType(TypeKind.DECIMAL, precision=15, scale=2))
    'DECIMAL(15,2)'
    >>> str(struct({"a": list_of(INTEGER), "b c": VARCHAR}))
    'STRUCT(a INTEGER[], "b c" VARCHAR)'
    """

    kind: TypeKind
    precision: int = 0
    scale: int = 0
    size: int = 0
    categories: Categories = _NO_CATEGORIES
    children: tuple[DataType, ...] = ()
    names: tuple[str, ...] = ()
    alias: str = ""
    collation: str = field(default="", compare=False)

    def __eq__(self, other: object) -> bool:
        """The same type; of a text, whether it is the type's name. (A set or dict tells them apart.)"""
        if self is other:
            return True
        if isinstance(other, DataType):
            return (
                self.kind is other.kind
                and self.precision == other.precision
                and self.scale == other.scale
                and self.size == other.size
                and self.categories == other.categories
                and self.children == other.children
                and self.names == other.names
                and self.alias == other.alias
            )
        if isinstance(other, str):
            return _squeezed(str(self)) == _squeezed(other)
        return NotImplemented

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if self.alias:
            return self.alias
        if self.kind is TypeKind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        if self.kind is TypeKind.ARRAY:
            return f"{self.element}[{self.size}]"
        if self.is_enum:
            return f"ENUM({', '.join(map(quoted_text, self.categories))})"
        if self.kind is TypeKind.LIST and self.children:
            return f"{self.element}[]"
        if self.kind is TypeKind.MAP and self.children:
            return f"MAP({', '.join(map(str, self.element.children))})"
        if self.kind is TypeKind.STRUCT and self.children:
            if self.is_tuple:
                return f"TUPLE({', '.join(map(str, self.children))})"
            return f"STRUCT({_named_types(self.names, self.children)})"
        if self.is_union:
            return f"UNION({_named_types(self.names[1:], self.children[1:])})"
        if self.kind is TypeKind.NULL:
            return '"NULL"'
        return str(self.kind.value)

    @property
    def id(self) -> str:
        """What kind of type it is, as DuckDB calls it: "list" of INTEGER[]."""
        return str(self.kind.value).lower()

    @property
    def is_integer(self) -> bool:
        """True for the integers that are stored as they are: all but UHUGEINT."""
        return self.kind in _INTEGER_BOUNDS

    @property
    def is_whole(self) -> bool:
        """True for all integers, however they are stored."""
        return self.kind in _WHOLE

    @property
    def is_decimal(self) -> bool:
        return self.kind is TypeKind.DECIMAL

    @property
    def is_float(self) -> bool:
        return self.kind in (TypeKind.FLOAT, TypeKind.DOUBLE)

    @property
    def is_numeric(self) -> bool:
        return self.kind in _NUMERIC

    @property
    def is_string(self) -> bool:
        """True for VARCHAR, JSON, BLOB and BIT: values of varying length, stored as bytes."""
        return self.kind in (TypeKind.VARCHAR, TypeKind.BLOB, TypeKind.BIT)

    @property
    def is_json(self) -> bool:
        """True for JSON: text of its form, stored, compared and returned as VARCHAR."""
        return self.alias == "JSON"

    @property
    def holds_collation(self) -> bool:
        """Has it a collation, or have texts inside of its values one?"""
        return bool(self.collation) or any(each.holds_collation for each in self.children)

    @property
    def declared(self) -> str:
        """As CREATE TABLE has it: with its collation."""
        return f"{self} COLLATE {self.collation}" if self.collation else str(self)

    @property
    def is_enum(self) -> bool:
        """True for ENUM: text out of a fixed list, stored as positions in it and ordered by these."""
        return self.kind is TypeKind.ENUM

    @property
    def is_nested(self) -> bool:
        """True for what holds values of other types: LIST, STRUCT, MAP, UNION, and ARRAY but of FLOAT."""
        return bool(self.children)

    @property
    def is_vector(self) -> bool:
        """True for FLOAT[n], which is stored as a matrix."""
        return self.kind is TypeKind.ARRAY and not self.children

    @property
    def is_composed(self) -> bool:
        """True for what holds other values and so is compared by bytes that stand for it: what is nested, and FLOAT[n]."""
        return self.kind in COMPOSED

    @property
    def has_elements(self) -> bool:
        """True for what is stored as lists: LIST, MAP with its entries, and ARRAY but of FLOAT."""
        return self.kind in (TypeKind.LIST, TypeKind.MAP) or (self.kind is TypeKind.ARRAY and self.is_nested)

    @property
    def has_fields(self) -> bool:
        """True for what is stored as structs: STRUCT, and UNION with its tag as the first field."""
        return self.kind is TypeKind.STRUCT or self.kind is TypeKind.UNION

    @property
    def is_union(self) -> bool:
        """True for UNION: a value of one of its members, and the tag that says of which. The fields of the others are NULL."""
        return self.kind is TypeKind.UNION

    @property
    def tag_type(self) -> DataType:
        """The ENUM of the names of the members of a UNION."""
        return self.children[0]

    @property
    def members(self) -> Mapping[str, DataType]:
        """The types of the members of a UNION, by their names."""
        return dict(zip(self.names[1:], self.children[1:], strict=True))

    def has_members_of(self, other: DataType) -> bool:
        """Of a UNION: is the other type one, too, whose members are all among its own, whatever their types?"""
        return other.is_union and set(map(lower_ascii, other.members)) <= set(map(lower_ascii, self.members))

    @property
    def is_tuple(self) -> bool:
        """True for a STRUCT whose fields have no names, as row(1, 2) makes."""
        return self.kind is TypeKind.STRUCT and not self.names[0]

    @property
    def element(self) -> DataType:
        """The type of the elements of a LIST or an ARRAY, and of the entries of a MAP."""
        return FLOAT if self.is_vector else self.children[0]

    @property
    def position_type(self) -> DataType:
        """The integer type of the positions in an ENUM; DuckDB's choice."""
        size = len(self.categories)
        return UTINYINT if size < 2**8 else USMALLINT if size < 2**16 else UINTEGER

    @property
    def is_timestamp(self) -> bool:
        return self.kind in TICKS_PER_SECOND

    @property
    def is_time_of_day(self) -> bool:
        """True for TIME and TIME WITH TIME ZONE, which have no day and are never infinite."""
        return self.kind in (TypeKind.TIME, TypeKind.TIME_TZ)

    @property
    def is_temporal(self) -> bool:
        return self.is_timestamp or self.is_time_of_day or self.kind is TypeKind.DATE

    @property
    def is_integer_like(self) -> bool:
        """True where one value is one (possibly scaled) integer: integers, decimals, dates, times, timestamps,
        positions in an ENUM, the 128 bits of a UUID or a UHUGEINT."""
        return self.kind in _INTEGER_LIKE

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest storage value of an integer-like type."""
        if self.kind is TypeKind.DECIMAL:
            return _DECIMAL_BOUNDS[self.precision]
        known = _INTEGER_BOUNDS.get(self.kind)
        if known is not None:
            return known
        if self.kind in (TypeKind.UUID, TypeKind.UHUGEINT):
            return _INTEGER_BOUNDS[TypeKind.HUGEINT]
        if self.kind is TypeKind.TIME_TZ:
            return zoned_times.BOUNDS
        return (0, max(len(self.categories) - 1, 0)) if self.is_enum else _INTEGER_BOUNDS[TypeKind.BIGINT]

    @property
    def value_bounds(self) -> tuple[int, int]:
        """Smallest and largest value of an integer-like type, which is what is stored but for UHUGEINT."""
        return (0, LAST_UNSIGNED) if self.kind is TypeKind.UHUGEINT else self.bounds


def _named_types(names: Iterable[str], types: Iterable[DataType]) -> str:
    """a INTEGER, "b c" VARCHAR"""
    return ", ".join(f"{quoted(name)} {each}" for name, each in zip(names, types, strict=True))


def _squeezed(name: str) -> str:
    return name.replace(" ", "").upper()


_INTEGER_BOUNDS: dict[TypeKind, tuple[int, int]] = {
    TypeKind.TINYINT: (-(2**7), 2**7 - 1),
    TypeKind.SMALLINT: (-(2**15), 2**15 - 1),
    TypeKind.INTEGER: (-(2**31), 2**31 - 1),
    TypeKind.BIGINT: (-(2**63), 2**63 - 1),
    TypeKind.HUGEINT: (-(2**127), 2**127 - 1),
    TypeKind.UTINYINT: (0, 2**8 - 1),
    TypeKind.USMALLINT: (0, 2**16 - 1),
    TypeKind.UINTEGER: (0, 2**32 - 1),
    TypeKind.UBIGINT: (0, 2**64 - 1),
}

#: Storage ticks per second of each timestamp type; the storage value counts from 1970-01-01 (UTC for TIMESTAMP_TZ).
TICKS_PER_SECOND: dict[TypeKind, int] = {
    TypeKind.TIMESTAMP_S: 1,
    TypeKind.TIMESTAMP_MS: 10**3,
    TypeKind.TIMESTAMP: 10**6,
    TypeKind.TIMESTAMP_NS: 10**9,
    TypeKind.TIMESTAMP_TZ: 10**6,
}
_WHOLE = frozenset((*_INTEGER_BOUNDS, TypeKind.UHUGEINT))
_NUMERIC = _WHOLE | {TypeKind.DECIMAL, TypeKind.FLOAT, TypeKind.DOUBLE}
_INTEGER_LIKE = frozenset(
    (
        *(*_INTEGER_BOUNDS, *TICKS_PER_SECOND),
        *(TypeKind.DECIMAL, TypeKind.DATE, TypeKind.TIME, TypeKind.TIME_TZ, TypeKind.ENUM, TypeKind.UUID),
        TypeKind.UHUGEINT,
    )
)

#: The widest DECIMAL.
MAX_DECIMAL_PRECISION = 38

#: By precision.
_DECIMAL_BOUNDS = [(1 - 10**precision, 10**precision - 1) for precision in range(MAX_DECIMAL_PRECISION + 1)]

NULL = DataType(TypeKind.NULL)
BOOLEAN = DataType(TypeKind.BOOLEAN)
TINYINT = DataType(TypeKind.TINYINT)
SMALLINT = DataType(TypeKind.SMALLINT)
INTEGER = DataType(TypeKind.INTEGER)
BIGINT = DataType(TypeKind.BIGINT)
HUGEINT = DataType(TypeKind.HUGEINT)
UTINYINT = DataType(TypeKind.UTINYINT)
USMALLINT = DataType(TypeKind.USMALLINT)
UINTEGER = DataType(TypeKind.UINTEGER)
UBIGINT = DataType(TypeKind.UBIGINT)
UHUGEINT = DataType(TypeKind.UHUGEINT)
FLOAT = DataType(TypeKind.FLOAT)
DOUBLE = DataType(TypeKind.DOUBLE)
VARCHAR = DataType(TypeKind.VARCHAR)
JSON = DataType(TypeKind.VARCHAR, alias="JSON")
BLOB = DataType(TypeKind.BLOB)
BIT = DataType(TypeKind.BIT)
DATE = DataType(TypeKind.DATE)
TIME = DataType(TypeKind.TIME)
TIME_TZ = DataType(TypeKind.TIME_TZ)
TIMESTAMP_S = DataType(TypeKind.TIMESTAMP_S)
TIMESTAMP_MS = DataType(TypeKind.TIMESTAMP_MS)
TIMESTAMP = DataType(TypeKind.TIMESTAMP)
TIMESTAMP_NS = DataType(TypeKind.TIMESTAMP_NS)
TIMESTAMP_TZ = DataType(TypeKind.TIMESTAMP_TZ)
INTERVAL = DataType(TypeKind.INTERVAL)
UUID = DataType(TypeKind.UUID)


def holds_json(data_type: DataType) -> bool:
    """Is it JSON, or are there values of JSON inside of it?"""
    return data_type.is_json or any(map(holds_json, data_type.children))


def holds_kind(data_type: DataType, kind: TypeKind) -> bool:
    """Is it of this kind, or are there such values inside of its values?"""
    return data_type.kind is kind or any(holds_kind(each, kind) for each in data_type.children)


def decimal(precision: int, scale: int) -> DataType:
    """DECIMAL(precision, scale), 1 <= precision <= 38, 0 <= scale <= precision."""
    if not (1 <= precision <= MAX_DECIMAL_PRECISION and 0 <= scale <= precision):
        raise ValueError(f"DECIMAL({precision},{scale}) is out of range")
    return DataType(TypeKind.DECIMAL, precision=precision, scale=scale)


def array(size: int, element: DataType = FLOAT) -> DataType:
    """element[size]: a list of fixed size. FLOAT[size] is a vector (an embedding), which holds no NULL."""
    return DataType(TypeKind.ARRAY, size=size, children=() if element == FLOAT else (element,))


def enum(values: Iterable[str]) -> DataType:
    """ENUM(values...), which are distinct and sort in this order."""
    return DataType(TypeKind.ENUM, categories=Categories(values))


def list_of(element: DataType) -> DataType:
    """element[]"""
    return DataType(TypeKind.LIST, children=(element,))


def struct(fields: Mapping[str, DataType]) -> DataType:
    """STRUCT(name type, ...), of one field at least."""
    return DataType(TypeKind.STRUCT, children=tuple(fields.values()), names=tuple(fields))


def map_of(key: DataType, value: DataType) -> DataType:
    """MAP(key, value)"""
    return DataType(TypeKind.MAP, children=(struct({"key": key, "value": value}),))


#: Members that a UNION has at most, as in DuckDB.
MOST_MEMBERS = 255


def union_of(members: Mapping[str, DataType]) -> DataType:
    """UNION(name type, ...), of one to 255 members."""
    children = (enum(members), *members.values())
    return DataType(TypeKind.UNION, children=children, names=("", *members))


def row_of(types: Iterable[DataType]) -> DataType:
    """TUPLE(type, ...): a STRUCT whose fields have no names."""
    children = tuple(types)
    return DataType(TypeKind.STRUCT, children=children, names=("",) * len(children))
