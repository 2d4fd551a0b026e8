"""Logical types as Arrow types and back; the one place that says which Arrow types tqp accepts."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

import pyarrow as pa

from tqp.core import datatypes
from tqp.core.arguments import unique_names
from tqp.core.datatypes import MAX_DECIMAL_PRECISION, DataType, TypeKind
from tqp.core.errors import UnsupportedError


class _WideArray(pa.ExtensionType):  # type: ignore[misc]
    """Integers of up to 128 bits as they are stored, of which no Arrow type tells that they are no decimals."""

    def __init__(self, name: str) -> None:
        super().__init__(pa.decimal128(MAX_DECIMAL_PRECISION, 0), name)

    def __arrow_ext_serialize__(self) -> bytes:
        name: str = self.extension_name
        return name.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> _WideArray:
        return cls(serialized.decode())


class _ZonedTimeArray(pa.ExtensionType):  # type: ignore[misc]
    """Times of day with a zone, as they are stored; Arrow has none."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "tqp.time_tz")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> _ZonedTimeArray:
        return cls()


class UniversalTimeArray(pa.ExtensionType):  # type: ignore[misc]
    """Times of day in UTC, in an Arrow type of times, that are read as TIME WITH TIME ZONE."""

    def __init__(self, storage_type: pa.DataType) -> None:
        super().__init__(storage_type, "tqp.universal_time")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> UniversalTimeArray:
        return cls(storage_type)

    def __str__(self) -> str:
        return f"{self.storage_type} in UTC"


#: The types of Arrow arrays made here that are read as HUGEINT, UHUGEINT and TIME WITH TIME ZONE.
HUGEINT_ARRAY = _WideArray("tqp.hugeint")
UHUGEINT_ARRAY = _WideArray("tqp.uhugeint")
ZONED_TIME_ARRAY = _ZonedTimeArray()


class Purpose(Enum):
    """What an Arrow array is made for: to be given out, to be written into a file, or to be encoded again as it was stored."""

    RESULT = auto()
    FILE = auto()
    STORAGE = auto()


_TO_ARROW: dict[TypeKind, pa.DataType] = {
    TypeKind.NULL: pa.null(),
    TypeKind.BOOLEAN: pa.bool_(),
    TypeKind.TINYINT: pa.int8(),
    TypeKind.SMALLINT: pa.int16(),
    TypeKind.INTEGER: pa.int32(),
    TypeKind.BIGINT: pa.int64(),
    # What DuckDB exports, though 39 digits need more than it declares.
    TypeKind.HUGEINT: pa.decimal128(38, 0),
    TypeKind.UTINYINT: pa.uint8(),
    TypeKind.USMALLINT: pa.uint16(),
    TypeKind.UINTEGER: pa.uint32(),
    TypeKind.UBIGINT: pa.uint64(),
    TypeKind.UHUGEINT: pa.decimal128(38, 0),
    TypeKind.FLOAT: pa.float32(),
    TypeKind.DOUBLE: pa.float64(),
    TypeKind.VARCHAR: pa.string(),
    TypeKind.BLOB: pa.binary(),
    TypeKind.BIT: pa.binary(),
    TypeKind.DATE: pa.date32(),
    TypeKind.TIME: pa.time64("us"),
    TypeKind.TIME_TZ: pa.time64("us"),  # what their clocks show
    TypeKind.TIMESTAMP_S: pa.timestamp("s"),
    TypeKind.TIMESTAMP_MS: pa.timestamp("ms"),
    TypeKind.TIMESTAMP: pa.timestamp("us"),
    TypeKind.TIMESTAMP_NS: pa.timestamp("ns"),
    TypeKind.TIMESTAMP_TZ: pa.timestamp("us", tz="UTC"),
    TypeKind.INTERVAL: pa.month_day_nano_interval(),
    TypeKind.UUID: pa.string(),
}

#: Those that leave in a type that is read as another.
_AS_OTHERS = (TypeKind.HUGEINT, TypeKind.UHUGEINT, TypeKind.UUID, TypeKind.TIME_TZ, TypeKind.BIT)

#: Those that are read as the type that leaves in them, and further ones.
_FROM_ARROW: dict[pa.DataType, DataType] = {
    **{arrow: DataType(kind) for kind, arrow in _TO_ARROW.items() if kind not in _AS_OTHERS},
    pa.float16(): datatypes.FLOAT,
    pa.large_string(): datatypes.VARCHAR,
    pa.string_view(): datatypes.VARCHAR,
    pa.large_binary(): datatypes.BLOB,
    pa.binary_view(): datatypes.BLOB,
    pa.date64(): datatypes.DATE,
    pa.time32("s"): datatypes.TIME,
    pa.time32("ms"): datatypes.TIME,
    pa.time64("ns"): datatypes.TIME,
}


def data_type_of(arrow_type: pa.DataType, column: str) -> DataType:
    """The logical type of an Arrow column named `column`; raises UnsupportedError naming both where there is none.

    >>> str(data_type_of(pa.dictionary(pa.int8(), pa.string_view()), "city"))
    'VARCHAR'
    """
    if isinstance(arrow_type, pa.BaseExtensionType):  # may lack __hash__
        return _extension_type(arrow_type, column)
    known = _FROM_ARROW.get(arrow_type)
    if known is not None:
        return known
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return data_type_of(arrow_type.value_type, column)
    if pa.types.is_decimal(arrow_type):
        return _decimal_type(arrow_type, column)
    if pa.types.is_timestamp(arrow_type):  # the dictionary above has those without a zone
        return datatypes.TIMESTAMP_TZ
    if pa.types.is_duration(arrow_type):
        return datatypes.INTERVAL
    if pa.types.is_fixed_size_binary(arrow_type):
        return datatypes.BLOB
    if pa.types.is_fixed_size_list(arrow_type):
        if arrow_type.list_size == 0:
            raise UnsupportedError(f'column "{column}" has the Arrow type {arrow_type}; arrays have elements')
        return datatypes.array(arrow_type.list_size, field_type(arrow_type.value_field, column))
    if any(is_list(arrow_type) for is_list in LIST_TYPES):
        return datatypes.list_of(field_type(arrow_type.value_field, column))
    if pa.types.is_map(arrow_type):
        parts = (field_type(each, column) for each in (arrow_type.key_field, arrow_type.item_field))
        return datatypes.map_of(*parts)
    if pa.types.is_struct(arrow_type) and arrow_type.num_fields:
        return datatypes.struct(_field_types(arrow_type, column))
    if pa.types.is_union(arrow_type) and arrow_type.num_fields:
        return datatypes.union_of(_field_types(arrow_type, column))
    raise UnsupportedError(
        f'column "{column}" has the Arrow type {arrow_type}, which tqp does not support: leave the column out or cast'
        " it before registering the table"
    )


#: Of the Arrow types that are read as LIST.
LIST_TYPES = (pa.types.is_list, pa.types.is_large_list, pa.types.is_list_view, pa.types.is_large_list_view)


def _field_types(arrow_type: pa.DataType, column: str) -> dict[str, DataType]:
    """Of a struct or a union. Names of fields are made unique ignoring case, as those of columns are."""
    given = (arrow_type.field(place).name or f"element{place + 1}" for place in range(arrow_type.num_fields))
    names = unique_names(given)
    types = (field_type(arrow_type.field(place), column) for place in range(arrow_type.num_fields))
    return dict(zip(names, types, strict=True))


def type_of_values(values: pa.Array | pa.ChunkedArray, column: str) -> DataType:
    """As `data_type_of`, of the values themselves: those of an ordered dictionary of text are an ENUM."""
    found = data_type_of(values.type, column)
    if found != datatypes.VARCHAR or not pa.types.is_dictionary(values.type) or not values.type.ordered:
        return found
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    categories = _shared_dictionary([chunk.dictionary for chunk in chunks])
    return found if categories is None else datatypes.enum(categories)


def _shared_dictionary(dictionaries: Sequence[pa.Array]) -> Sequence[str] | None:
    """The distinct texts that each dictionary begins the list of; None where there is no such list."""
    longest = max(dictionaries, key=len, default=None)
    if longest is None or longest.null_count:
        return None
    if not all(each.equals(longest[: len(each)]) for each in dictionaries):
        return None
    try:
        texts: list[str] = longest.to_pylist()
    except UnicodeDecodeError:  # who reads the column as text says so
        return None
    return texts if len(set(texts)) == len(texts) else None


def arrow_type_of(data_type: DataType, purpose: Purpose = Purpose.RESULT) -> pa.DataType:
    """The Arrow type in which a result column of this type leaves; DuckDB's choice, but an ENUM's order is kept.

    `purpose`: UUIDs leave as text, into files as Arrow's own; times with a zone as what their clocks show, into files as
    those of UTC; in storage both are integers. BITs leave in DuckDB's bytes, else as text.
    """
    if data_type.kind is TypeKind.BIT and purpose is not Purpose.RESULT:
        return pa.string()
    if data_type.kind is TypeKind.UUID and purpose is Purpose.FILE:
        return pa.uuid()
    if data_type.kind is TypeKind.UUID and purpose is Purpose.STORAGE:
        return HUGEINT_ARRAY.storage_type
    if purpose is Purpose.STORAGE and data_type.kind is TypeKind.TIME_TZ:
        return pa.int64()
    if data_type.is_decimal:
        return pa.decimal128(data_type.precision, data_type.scale)
    if data_type.kind is TypeKind.ARRAY:
        return pa.list_(arrow_type_of(data_type.element, purpose), data_type.size)
    if data_type.kind is TypeKind.LIST:
        return pa.list_(pa.field("l", arrow_type_of(data_type.element, purpose)))
    if data_type.kind is TypeKind.MAP:
        key, value = (arrow_type_of(each, purpose) for each in data_type.element.children)
        return pa.map_(pa.int32() if key == pa.null() else key, value)  # Arrow has no keys without a type
    if data_type.is_union and purpose is Purpose.RESULT:
        if len(data_type.members) > MOST_ARROW_MEMBERS:
            raise UnsupportedError(
                f"Arrow has unions of at most {MOST_ARROW_MEMBERS} members; cast the UNION to VARCHAR, or read its members"
            )
        members = data_type.members.items()
        return pa.sparse_union([pa.field(name, arrow_type_of(each, purpose)) for name, each in members])
    if data_type.has_fields:
        names = field_names(data_type)
        return pa.struct(
            [
                pa.field(name, arrow_type_of(each, purpose))
                for name, each in zip(names, stored_fields(data_type), strict=True)
            ]
        )
    if data_type.is_enum:
        return pa.dictionary(arrow_type_of(data_type.position_type), pa.string(), ordered=True)
    return _TO_ARROW[data_type.kind]


#: Whose tags are integers of 8 bits without a sign.
MOST_ARROW_MEMBERS = 128


def stored_fields(data_type: DataType) -> Sequence[DataType]:
    """The types of the fields of a STRUCT, and of a UNION that is stored or written as one: its tag is a number then."""
    return (datatypes.UTINYINT, *data_type.children[1:]) if data_type.is_union else data_type.children


def field_names(data_type: DataType) -> Sequence[str]:
    """The names of the fields of a STRUCT, and of a UNION's tag and members; those that DuckDB gives where there is none."""
    return [name or f"element{place}" for place, name in enumerate(data_type.names, 1)]


def field_type(field: pa.Field, column: str) -> DataType:
    """As `data_type_of`, for a field that may say in its metadata that its type is an extension pyarrow does not know."""
    name = (field.metadata or {}).get(b"ARROW:extension:name")
    if name is not None:
        _check_extension(name.decode(errors="replace"), None, column)
    return data_type_of(field.type, column)


def _extension_type(arrow_type: pa.BaseExtensionType, column: str) -> DataType:
    """An extension type's values are read as what they are stored as, as in DuckDB, but for those known to mean more."""
    match arrow_type.extension_name:
        case "tqp.hugeint":
            return datatypes.HUGEINT
        case "tqp.uhugeint":
            return datatypes.UHUGEINT
        case "tqp.time_tz" | "tqp.universal_time":
            return datatypes.TIME_TZ
        case "arrow.uuid":
            return datatypes.UUID
        case "arrow.json":
            return datatypes.JSON
        case "arrow.opaque" if (arrow_type.vendor_name, arrow_type.type_name) == ("DuckDB", "bit"):
            return datatypes.BIT
        case "arrow.bool8":
            return datatypes.BOOLEAN
        case name:
            _check_extension(name, getattr(arrow_type, "vendor_name", None), column)
            return data_type_of(arrow_type.storage_type, column)


def _check_extension(name: str, vendor: str | None, column: str) -> None:
    """Refuses types whose bytes mean nothing to a query: geometry, pandas' periods and intervals, and DuckDB's own types."""
    if name.startswith(("geoarrow.", "ogc.", "pandas.")) or vendor == "DuckDB":
        raise UnsupportedError(
            f'column "{column}" has the Arrow extension type {name}, which tqp does not support: cast it to its storage'
            " type before registering the table"
        )


def _decimal_type(arrow_type: pa.DataType, column: str) -> DataType:
    """Arrow allows a scale below 0 or above the precision; SQL does not, so the precision grows to hold the same values."""
    precision, scale = arrow_type.precision, arrow_type.scale
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    if precision > MAX_DECIMAL_PRECISION:
        raise UnsupportedError(
            f'column "{column}" has the Arrow type {arrow_type}; decimals have at most {MAX_DECIMAL_PRECISION} digits:'
            f" cast it to decimal128({MAX_DECIMAL_PRECISION}, scale)"
        )
    return datatypes.decimal(precision, scale)
