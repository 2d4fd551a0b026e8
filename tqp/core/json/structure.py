"""What json_structure() says of a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tqp.core.json.values import type_name, write_json


def structure_of(value: Any) -> str:
    """The types of the parts of a document, as JSON: those of all elements of an array as one."""
    return write_json(_named(_structure(value)))


def _named(structure: Any) -> Any:
    """Objects without keys may be anything."""
    if isinstance(structure, list):
        return [_named(structure[0])]
    if isinstance(structure, tuple):
        return tuple((key, _named(each)) for key, each in structure) or "JSON"
    return structure


def _structure(value: Any) -> Any:
    if isinstance(value, list):
        return [_merged([_structure(part) for part in value])]
    if isinstance(value, tuple):
        return tuple(
            {
                key: _merged([_structure(each) for other, each in value if other == key]) for key, _ in value
            }.items()
        )
    return type_name(value)


def _merged(structures: Sequence[Any]) -> Any:
    merged: Any = "NULL"
    for each in structures:
        merged = _common(merged, each)
    return merged


_WHOLE = {"UBIGINT", "BIGINT", "HUGEINT"}


def _common(left: Any, right: Any) -> Any:
    if left == right or right == "NULL":
        return left
    if left == "NULL":
        return right
    if isinstance(left, list) and isinstance(right, list):
        return [_common(left[0], right[0])]
    if isinstance(left, tuple) and isinstance(right, tuple):
        fields = dict(left)
        for key, each in right:
            fields[key] = _common(fields.get(key, "NULL"), each)
        return tuple(fields.items())
    if isinstance(left, str) and isinstance(right, str) and {left, right} <= _WHOLE | {"DOUBLE"}:
        return "DOUBLE" if "DOUBLE" in (left, right) else "HUGEINT"
    return "JSON"
