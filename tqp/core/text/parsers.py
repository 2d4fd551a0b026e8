"""Which parser reads the values of a type out of text, for casts of constants and of columns alike."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.json.values import parse_json
from tqp.core.text.bits import parse_bits
from tqp.core.text.numbers import ParseFailure, parse_boolean, parse_bytes, parse_float, parse_number
from tqp.core.text.times import (
    parse_date,
    parse_interval,
    parse_time,
    parse_time_with_zone,
    parse_timestamp,
)
from tqp.core.uuids import stored_uuid

_UUID_DIGITS = re.compile("[0-9a-fA-F]{32}")

#: One text to a storage value of the type; raises ParseFailure.
Parser = Callable[[str, DataType], Any]


def parse_category(text: str, target: DataType) -> int:
    """The position of the text among the values of an ENUM."""
    position = target.categories.positions.get(text)
    if position is None:
        raise ParseFailure(f"Could not convert string '{text}' to {target}")
    return position


def parse_blob(text: str, target: DataType) -> bytes:
    """Its bytes: see `parse_bytes`."""
    return parse_bytes(text.encode())


def parse_json_text(text: str, target: DataType) -> str:
    """The text itself, if it is JSON."""
    parse_json(text)
    return text


def parser_of_documents(data_type: DataType) -> Callable[[str], Any]:
    """What reads JSON out of values of the type, which are texts: ParseFailure, where one is malformed, but not of JSON.

    Text of that type was checked: one that is malformed is in rows that do not count.
    """
    return _parse_checked if data_type.is_json else parse_json


def _parse_checked(text: str) -> Any:
    try:
        return parse_json(text)
    except ParseFailure:
        return None


def parse_uuid(text: str, target: DataType) -> int:
    """Its stored integer: 32 digits of base 16, hyphens anywhere between or around them, in braces or not."""
    is_braced = text.startswith("{") and text.endswith("}") and len(text) > 1
    digits = (text[1:-1] if is_braced else text).replace("-", "")
    if _UUID_DIGITS.fullmatch(digits) is None:
        raise ParseFailure(f"Could not convert string '{text}' to UUID")
    return stored_uuid(int(digits, 16))


_BY_KIND: dict[TypeKind, Parser] = {
    TypeKind.BIT: lambda text, target: parse_bits(text),
    TypeKind.BLOB: parse_blob,
    TypeKind.BOOLEAN: parse_boolean,
    TypeKind.DATE: parse_date,
    TypeKind.TIME: parse_time,
    TypeKind.TIME_TZ: parse_time_with_zone,
    TypeKind.INTERVAL: parse_interval,
    TypeKind.ENUM: parse_category,
    TypeKind.UUID: parse_uuid,
}


def parser_of(target: DataType) -> Parser | None:
    """The parser of a type; None where there is no cast from VARCHAR or it makes no single value."""
    if target.is_whole or target.is_decimal:
        return parse_number
    if target.is_float:
        return parse_float
    if target.is_json:
        return parse_json_text
    if target.is_timestamp:
        return parse_timestamp
    return _BY_KIND.get(target.kind)
