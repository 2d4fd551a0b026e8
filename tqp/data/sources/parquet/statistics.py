"""What is to be said of the values in a Parquet file, as RETURN_STATS of COPY says it: from its footer, and of NaNs and of nested values, which footers do
not count, from these columns themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tqp.core.keywords import in_quotes
from tqp.data.sources.file_systems import opened
from tqp.data.sources.parquet.descriptions import read_footer
from tqp.data.sources.parquet.values import Element, elements

#: Of a column by its name, what is said, each as text.
Said = Mapping[str, Mapping[str, str]]


class FileStatistics(NamedTuple):
    """Of a whole file; sizes are bytes."""

    num_rows: int
    num_bytes: int
    footer_bytes: int
    num_row_groups: int
    columns: Said


class _Column(NamedTuple):
    """One of the columns, or what lies in one, by the names on the way to it; of leaves the numbers come from the footer."""

    names: tuple[str, ...]
    is_leaf: bool


def file_statistics(file: str) -> FileStatistics:
    """Of a file that is complete."""
    footer, num_bytes, footer_bytes = read_footer(file)
    leaves = [each for each in elements(footer[2]) if not each.children]
    with opened(file) as place, pq.ParquetFile(place) as parquet:
        schema = parquet.schema_arrow
        columns = [each for field in schema for each in _columns(field.type, (field.name,))]
        counts = {each.names: np.zeros(3, np.int64) for each in columns}
        wanted = [field.name for field in schema if _is_counted(field.type)]
        for group in range(parquet.num_row_groups if wanted else 0):
            table = parquet.read_row_group(group, columns=wanted)
            for name, column in zip(table.column_names, table.columns, strict=True):
                for chunk in column.chunks:
                    for names, *found in _counted(chunk, (name,)):
                        counts[names] += found
    said: dict[str, dict[str, str]] = {}
    numbers = iter(range(len(leaves)))
    for column in columns:
        num_values, num_nulls, num_nans = map(int, counts[column.names])
        name = ".".join(map(in_quotes, column.names))
        if not column.is_leaf:
            said[name] = {"null_count": str(num_nulls), "num_values": str(num_values)}
            continue
        number = next(numbers)
        said[name] = _of_chunks(leaves[number], [group[1][number][3] for group in footer[4]])
        if leaves[number].type in ("FLOAT", "DOUBLE") and footer[4]:
            said[name] |= {"nan_count": str(num_nans), "has_nan": str(num_nans > 0).lower()}
    return FileStatistics(
        footer[3],
        num_bytes,
        footer_bytes,
        len(footer[4]),
        {name: dict(sorted(said[name].items())) for name in sorted(said)},
    )


def _of_chunks(leaf: Element, chunks: Sequence[Mapping[int, Any]]) -> dict[str, str]:
    statistics = [chunk.get(12, {}) for chunk in chunks]
    found = {
        "column_size_bytes": str(sum(chunk[7] for chunk in chunks)),
        "null_count": str(sum(each.get(3) or 0 for each in statistics)),
        "num_values": str(sum(chunk[5] for chunk in chunks)),
    }
    for name, key, is_exact, choose in (("min", 6, 8, min), ("max", 5, 7, max)):
        values = [(each[key], each.get(is_exact, True)) for each in statistics if each.get(key) is not None]
        if values:
            value, exact = choose(values, key=lambda each: _order(leaf, each[0]))
            text = _text(leaf, value)
            if text is not None:
                found |= {name: text, f"{name}_is_exact": str(exact).lower()}
    return found


def _order(leaf: Element, stored: bytes) -> Any:
    """What minima and maxima of a column are compared by."""
    if leaf.type in ("FLOAT", "DOUBLE"):
        return float(np.frombuffer(stored, np.float32 if leaf.type == "FLOAT" else np.float64)[0])
    if leaf.type in ("INT32", "INT64", "BOOLEAN"):
        is_unsigned = (leaf.converted_type or "").startswith("UINT")
        return int.from_bytes(stored, "little", signed=not is_unsigned)
    if leaf.converted_type == "DECIMAL":
        return int.from_bytes(stored, "big", signed=True)
    return stored


def _text(leaf: Element, stored: bytes) -> str | None:
    kind = leaf.duckdb_type.removesuffix("[]")
    if kind == "BLOB":
        return stored.hex().upper()
    if kind == "BOOLEAN":
        return str(int.from_bytes(stored, "little"))
    if leaf.type in ("FLOAT", "DOUBLE"):
        value = _order(leaf, stored)
        if not np.isfinite(value) or not value:
            return str(value + 0.0)  # Parquet has a minimum of -0.0 for 0.0
    return leaf.value_text(stored)


def _columns(data_type: pa.DataType, names: tuple[str, ...]) -> Iterator[_Column]:
    """A column and what lies in it, in the order in which a file has them."""
    inner = _inner(data_type)
    yield _Column(names, not inner)
    for name, each in inner.items():
        yield from _columns(each, (*names, name))


def _inner(data_type: pa.DataType) -> dict[str, pa.DataType]:
    if pa.types.is_struct(data_type):
        return {field.name: field.type for field in data_type}
    if pa.types.is_map(data_type):
        return {"key": data_type.key_type, "value": data_type.item_type}
    return {"element": data_type.value_type} if _is_list(data_type) else {}


def _is_list(data_type: pa.DataType) -> bool:
    return any(
        is_kind(data_type)
        for is_kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    )


def _is_counted(data_type: pa.DataType) -> bool:
    return pa.types.is_floating(data_type) or bool(_inner(data_type))


def _counted(values: pa.Array, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int, int, int]]:
    """Of a column and what lies in it, how many values, NULLs and NaNs there are."""
    num_nans = pc.sum(pc.is_nan(values)).as_py() or 0 if pa.types.is_floating(values.type) else 0
    yield names, len(values), values.null_count, num_nans
    there = values.drop_null()
    if pa.types.is_struct(values.type):
        inner = [there.field(place) for place in range(values.type.num_fields)]
    elif pa.types.is_map(values.type):
        inner = [there.keys, there.items]
    else:
        inner = [there.flatten()] if _is_list(values.type) else []
    for name, each in zip(_inner(values.type), inner, strict=True):
        yield from _counted(each, (*names, name))
