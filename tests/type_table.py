"""The table of types in docs/semantics.md: which Arrow types each is read from, and which it is written as."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tqp.core.datatypes import INTEGER, VARCHAR, DataType, TypeKind, list_of, map_of, struct, union_of
from tqp.data import arrow_types

_ARROW_TYPES = (
    *(pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal32(9, 2), pa.decimal64(15, 2), pa.decimal128(15, 2), pa.decimal256(15, 2)),
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4)),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")),
    *(pa.timestamp("us", "UTC"), pa.duration("us"), pa.month_day_nano_interval()),
    *(pa.uuid(), pa.opaque(pa.binary(), "bit", "DuckDB")),
    *(pa.list_(pa.float16(), 3), pa.list_(pa.float32(), 3)),
    *(
        pa.list_(pa.int32()),
        pa.large_list(pa.int32()),
        pa.list_view(pa.int32()),
        pa.large_list_view(pa.int32()),
    ),
    pa.struct({"a": pa.int32()}),
    pa.map_(pa.string(), pa.int32()),
    *(pa.sparse_union([pa.field("a", pa.int32())]), pa.dense_union([pa.field("a", pa.int32())])),
)
#: Of the types that hold others, and need some.
_NESTED_TYPES = {
    "INTEGER[]": list_of(INTEGER),
    "STRUCT(a INTEGER)": struct({"a": INTEGER}),
    "MAP(VARCHAR, INTEGER)": map_of(VARCHAR, INTEGER),
    "UNION(a INTEGER)": union_of({"a": INTEGER}),
}


def type_rows(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The rows of the table with the Arrow columns filled; what is stored is written by hand."""
    taken: dict[TypeKind, list[str]] = {}
    for arrow in _ARROW_TYPES:
        taken.setdefault(arrow_types.data_type_of(arrow, "x").kind, []).append(_arrow_text(arrow))
    ordered = pa.DictionaryArray.from_arrays([0], ["a"], ordered=True)
    taken[arrow_types.type_of_values(ordered, "x").kind] = ["an ordered `dictionary` of texts"]
    kinds = {name: _kind_of(name) for name, *_ in rows}
    assert set(kinds.values()) == set(TypeKind)
    filled = []
    for name, stored, *_ in rows:
        kind = kinds[name]
        out = arrow_types.arrow_type_of(
            _NESTED_TYPES.get(name) or DataType(kind, precision=15, scale=2, size=3)
        )
        filled.append((name, stored, ", ".join(dict.fromkeys(taken.get(kind, ["none"]))), _arrow_text(out)))
    return filled


def _kind_of(name: str) -> TypeKind:
    if name in _NESTED_TYPES:
        return _NESTED_TYPES[name].kind
    return TypeKind.ARRAY if "[" in name else TypeKind(name.split("(")[0])


def _arrow_text(arrow: pa.DataType) -> str:
    text = str(arrow).replace("(15, 2)", "").replace("(9, 2)", "").replace("<item: ", "<")
    return f"`{text.replace('[4]', '[n]').replace('[3]', '[n]')}`"
