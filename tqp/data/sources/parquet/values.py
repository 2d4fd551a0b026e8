"""What a Parquet schema says of values: their types as DuckDB reads them, and how statistics hold them."""

from __future__ import annotations

import decimal
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tqp.core.datatypes import TypeKind
from tqp.core.errors import UnsupportedError
from tqp.core.keywords import quoted
from tqp.core.text.numbers import format_bytes
from tqp.data.results.value_text import date_text, time_text, timestamp_text

TYPES = "BOOLEAN INT32 INT64 INT96 FLOAT DOUBLE BYTE_ARRAY FIXED_LEN_BYTE_ARRAY".split()
REPETITIONS = ("REQUIRED", "OPTIONAL", "REPEATED")
CONVERTED_TYPES = (
    "UTF8 MAP MAP_KEY_VALUE LIST ENUM DECIMAL DATE TIME_MILLIS TIME_MICROS TIMESTAMP_MILLIS TIMESTAMP_MICROS UINT_8 UINT_16"
    " UINT_32 UINT_64 INT_8 INT_16 INT_32 INT_64 JSON BSON INTERVAL"
).split()
#: Fields of the union LogicalType that have no fields of their own.
_PLAIN_LOGICAL_TYPES = {
    1: "StringType()",
    2: "MapType()",
    3: "ListType()",
    4: "EnumType()",
    6: "DateType()",
    11: "NullType()",
    12: "JsonType()",
    13: "BsonType()",
    14: "UUIDType()",
    15: "Float16Type()",
}
_DECIMAL, _TIME, _TIMESTAMP, _INTEGER, _NULL, _JSON, _UUID, _FLOAT16 = 5, 7, 8, 10, 11, 12, 14, 15
#: Fields of the union TimeUnit.
_UNITS = {1: ("MILLIS", "MilliSeconds()"), 2: ("MICROS", "MicroSeconds()"), 3: ("NANOS", "NanoSeconds()")}
_TICKS_PER_SECOND = {1: 1_000, 2: 1_000_000, 3: 1_000_000_000}
_OF_CONVERTED = {
    "UTF8": "VARCHAR",
    "ENUM": "VARCHAR",
    "JSON": "JSON",
    "DATE": "DATE",
    "INTERVAL": "INTERVAL",
    "TIME_MILLIS": "TIME",
    "TIME_MICROS": "TIME",
    "TIMESTAMP_MILLIS": "TIMESTAMP",
    "TIMESTAMP_MICROS": "TIMESTAMP",
    "INT_8": "TINYINT",
    "INT_16": "SMALLINT",
    "INT_32": "INTEGER",
    "INT_64": "BIGINT",
    "UINT_8": "UTINYINT",
    "UINT_16": "USMALLINT",
    "UINT_32": "UINTEGER",
    "UINT_64": "UBIGINT",
}
_OF_PHYSICAL = {
    "BOOLEAN": "BOOLEAN",
    "INT32": "INTEGER",
    "INT64": "BIGINT",
    "INT96": "TIMESTAMP",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "BYTE_ARRAY": "BLOB",
    "FIXED_LEN_BYTE_ARRAY": "BLOB",
}


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a schema, a SchemaElement by its fields, and the elements in it; None of what it does not say.

    `is_entry`: it holds the keys and values of a map.
    """

    fields: Mapping[int, Any]
    children: Sequence[Element] = ()
    is_entry: bool = False

    @property
    def name(self) -> str:
        text: bytes = self.fields[4]
        return text.decode()

    @property
    def type(self) -> str | None:
        """Of values as they are stored; None of what holds other elements."""
        return _named(TYPES, self.fields.get(1))

    @property
    def repetition(self) -> str | None:
        return _named(REPETITIONS, self.fields.get(3))

    @property
    def converted_type(self) -> str | None:
        return _named(CONVERTED_TYPES, self.fields.get(6))

    @property
    def logical_type(self) -> str | None:
        """As DuckDB writes it, the bits of integers as a character among it."""
        for number, inner in self.fields.get(10, {}).items():
            if number == _DECIMAL:
                return f"DecimalType(scale={inner[1]}, precision={inner[2]})"
            if number in (_TIME, _TIMESTAMP):
                kind = "TimeType" if number == _TIME else "TimestampType"
                units = ", ".join(
                    f"{name}={shown if unit in inner[2] else '<null>'}"
                    for unit, (name, shown) in _UNITS.items()
                )
                return f"{kind}(isAdjustedToUTC={int(inner[1])}, unit=TimeUnit({units}))"
            if number == _INTEGER:
                return f"IntType(bitWidth={chr(inner[1])}, isSigned={int(inner[2])})"
            if number not in _PLAIN_LOGICAL_TYPES:
                raise UnsupportedError(f"the logical type {number} of Parquet's is not supported")
            return _PLAIN_LOGICAL_TYPES[number]
        return None

    @property
    def duckdb_type(self) -> str:
        """What DuckDB reads it as."""
        if not self.children:
            found = self._leaf_type()
        elif self.is_entry:
            return f"MAP({', '.join(each.duckdb_type for each in self.children)})"
        elif len(self.children) == 1 and (
            self.converted_type in ("LIST", "MAP") or self.repetition == "REPEATED"
        ):
            found = self.children[0].duckdb_type
        else:
            fields = (f"{quoted(each.name)} {each.duckdb_type}" for each in self.children)
            found = f"STRUCT({', '.join(fields)})"
        return f"{found}[]" if self.repetition == "REPEATED" else found

    def _leaf_type(self) -> str:
        logical: Mapping[int, Any] = self.fields.get(10, {})
        for number, inner in logical.items():
            if number == _TIMESTAMP:
                is_fine = 3 in inner[2]
                if inner[1]:
                    return "TIMESTAMPTZ_NS" if is_fine else "TIMESTAMP WITH TIME ZONE"
                return "TIMESTAMP_NS" if is_fine else "TIMESTAMP"
            if number == _TIME:
                return "TIME WITH TIME ZONE" if inner[1] else "TIME_NS" if 3 in inner[2] else "TIME"
            if number in _OF_LOGICAL:
                return _OF_LOGICAL[number]
        converted = self.converted_type
        if converted == "DECIMAL":
            return f"DECIMAL({self.fields.get(8)},{self.fields.get(7, 0)})"
        return _OF_CONVERTED.get(converted or "") or _OF_PHYSICAL[self.type or ""]

    def value_text(self, stored: bytes | None) -> str | None:
        """A minimum or maximum of its values, as DuckDB writes it."""
        if stored is None:
            return None
        kind = self.duckdb_type.removesuffix("[]")
        if kind.startswith("DECIMAL"):
            is_number = self.type in ("INT32", "INT64")
            number = int.from_bytes(stored, "little" if is_number else "big", signed=True)
            scale = self.fields.get(7, 0)
            text = f"{decimal.Decimal(number).scaleb(-scale, _EXACT):f}"
            return text.replace("0.", ".", 1) if scale == self.fields.get(8) else text
        if kind.startswith("TIME"):
            return self._time_text(kind, stored)
        writer = _WRITERS.get(kind)
        return None if writer is None else writer(stored)

    def _time_text(self, kind: str, stored: bytes) -> str:
        if self.type == "INT96":
            nanoseconds, day = int.from_bytes(stored[:8], "little"), int.from_bytes(stored[8:], "little")
            microseconds = (day - _JULIAN_DAY_OF_1970) * 86_400_000_000 + nanoseconds // 1_000
            return timestamp_text(microseconds, TypeKind.TIMESTAMP)
        per_second = 1_000 if (self.converted_type or "").endswith("MILLIS") else 1_000_000
        for inner in self.fields.get(10, {}).values():
            [unit] = inner[2]
            per_second = _TICKS_PER_SECOND[unit]
        ticks = int.from_bytes(stored, "little", signed=True)
        if kind.startswith("TIMESTAMP"):
            is_instant = kind.startswith(("TIMESTAMP WITH", "TIMESTAMPTZ"))
            if per_second == 1_000_000_000:
                return timestamp_text(ticks, TypeKind.TIMESTAMP_NS) + "+00" * is_instant
            microseconds = ticks * (1_000_000 // per_second)
            return timestamp_text(microseconds, TypeKind.TIMESTAMP_TZ if is_instant else TypeKind.TIMESTAMP)
        return time_text(ticks, per_second) + ("+00" if kind == "TIME WITH TIME ZONE" else "")


def elements(listed: Sequence[Mapping[int, Any]]) -> list[Element]:
    """The elements of a schema in the order in which it lists them, the root first."""
    found: dict[int, Element] = {}

    def read(at: int, in_map: bool) -> tuple[Element, int]:
        fields, place = listed[at], at
        count = fields.get(5) or 0
        is_map = _named(CONVERTED_TYPES, fields.get(6)) == "MAP" and count == 1
        children = []
        at += 1
        for _ in range(count):
            child, at = read(at, is_map)
            children.append(child)
        is_pair = in_map or _named(CONVERTED_TYPES, fields.get(6)) == "MAP_KEY_VALUE"
        is_entry = is_pair and count == 2 and _named(REPETITIONS, fields.get(3)) == "REPEATED"
        found[place] = Element(fields, children, is_entry)
        return found[place], at

    read(0, False)
    return [found[place] for place in range(len(listed))]


_OF_LOGICAL = {_NULL: '"NULL"', _JSON: "JSON", _UUID: "UUID", _FLOAT16: "FLOAT"}
_JULIAN_DAY_OF_1970 = 2_440_588
_EXACT = decimal.Context(prec=100)


def _named(names: Sequence[str], number: int | None) -> str | None:
    return None if number is None else name_of(names, number)


def name_of(names: Sequence[str], number: int) -> str:
    """The name of a value of an enumeration. Raises ValueError for one that is newer than this."""
    if not 0 <= number < len(names):
        raise ValueError(f"the value {number} is none of {', '.join(names)}")
    return names[number]


def _integer(stored: bytes) -> str:
    return str(int.from_bytes(stored, "little", signed=True))


def _unsigned(stored: bytes) -> str:
    return str(int.from_bytes(stored, "little"))


def _float(stored: bytes) -> str | None:
    """None of what is not finite: that says nothing."""
    width = {2: np.float16, 4: np.float32, 8: np.float64}[len(stored)]
    value = np.frombuffer(stored, width)[0]
    if not np.isfinite(value):
        return None
    return repr(float(str(value.astype(np.float32)) if len(stored) < 8 else value))


_WRITERS: Mapping[str, Callable[[bytes], str | None]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), _integer),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), _unsigned),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _float),
    **dict.fromkeys(("VARCHAR", "JSON"), lambda stored: stored.decode(errors="replace")),
    "BOOLEAN": lambda stored: "true" if stored[0] else "false",
    "DATE": lambda stored: date_text(int.from_bytes(stored, "little", signed=True)),
    "BLOB": lambda stored: format_bytes(stored).decode(),
    "UUID": lambda stored: str(uuid.UUID(bytes=stored)),
}
