"""What the footers of Parquet files say, as tables: of the files, their schemas, their column chunks and their keys and values.

The footers are read as they lie in the files, as pyarrow says less of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from tqp.core.errors import UnsupportedError
from tqp.core.file_kinds import FileKind
from tqp.data.sources.file_systems import opened
from tqp.data.sources.parquet.thrift import CompactReader
from tqp.data.sources.parquet.values import TYPES, Element, elements, name_of

_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
#: Bytes behind the footer: its length and the magic number.
_TAIL = 8
_CODECS = "UNCOMPRESSED SNAPPY GZIP LZO BROTLI LZ4 ZSTD LZ4_RAW".split()
_ENCODINGS = (
    "PLAIN 1 PLAIN_DICTIONARY RLE BIT_PACKED DELTA_BINARY_PACKED DELTA_LENGTH_BYTE_ARRAY DELTA_BYTE_ARRAY RLE_DICTIONARY"
    " BYTE_STREAM_SPLIT"
).split()
_PAGES = "DATA_PAGE INDEX_PAGE DICTIONARY_PAGE DATA_PAGE_V2".split()

_Footer = Mapping[int, Any]
_Row = tuple[Any, ...]


def described(kind: FileKind, file: str) -> pa.Table:
    """What the footer of a file says of that kind. Raises ValueError where the file is none of Parquet."""
    schema, rows = _TABLES[kind]
    try:
        listed = list(rows(file, *read_footer(file)))
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("its footer is damaged") from error
    arrays = [pa.array([row[place] for row in listed], field.type) for place, field in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)


def leaf_types(file: str) -> list[str]:
    """What DuckDB reads each column of a file as, those inside of nested ones by themselves."""
    footer, *_ = read_footer(file)
    return [each.duckdb_type.removesuffix("[]") for each in elements(footer[2]) if not each.children]


def read_footer(file: str) -> tuple[_Footer, int, int]:
    """A FileMetaData by its fields, the size of the file and that of the footer."""
    with opened(file) as place:
        stream = open(place, "rb") if isinstance(place, str) else place  # noqa: SIM115
        with stream:
            size = stream.seek(0, os.SEEK_END)
            if size < len(_MAGIC) + _TAIL:
                raise ValueError("the file is too small for one of Parquet")
            stream.seek(size - _TAIL)
            tail = stream.read(_TAIL)
            if tail[4:] == _ENCRYPTED:
                raise UnsupportedError(f"{file}: an encrypted footer is not supported")
            length = int.from_bytes(tail[:4], "little")
            if tail[4:] != _MAGIC or length > size - len(_MAGIC) - _TAIL:
                raise ValueError("no footer of Parquet ends the file")
            stream.seek(size - _TAIL - length)
            return CompactReader(stream.read(length)).struct(), size, length


def _of_file(file: str, footer: _Footer, size: int, length: int) -> Iterator[_Row]:
    encryption = footer.get(8)
    if encryption:
        raise UnsupportedError(f"{file}: an encrypted file is not supported")
    orders = footer.get(7)
    yield (
        file,
        _text(footer.get(6)),
        footer[3],
        len(footer[4]),
        footer[1],
        None,
        _text(footer.get(9)),
        size,
        length,
        None if orders is None else ["ColumnOrder(TYPE_ORDER=TypeDefinedOrder())"] * len(orders),
    )


def _of_schema(file: str, footer: _Footer, *_: int) -> Iterator[_Row]:
    for place, each in enumerate(elements(footer[2])):
        length = each.fields.get(2)
        yield (
            file,
            each.name,
            each.type,
            None if length is None else str(length),
            each.repetition,
            each.fields.get(5),
            each.converted_type,
            each.fields.get(7),
            each.fields.get(8),
            each.fields.get(9),
            each.logical_type,
            each.duckdb_type if place else None,
            place,
        )


def _of_column_chunks(file: str, footer: _Footer, *_: int) -> Iterator[_Row]:
    leaves = [each for each in elements(footer[2]) if not each.children]
    for number, group in enumerate(footer[4]):
        for place, (chunk, leaf) in enumerate(zip(group[1], leaves, strict=True)):
            column = chunk[3]
            if 17 in column:
                raise UnsupportedError(f"{file}: statistics of geometries are not supported")
            yield (
                file,
                number,
                group[3],
                len(group[1]),
                group[2],
                place,
                chunk.get(2),
                column[5],
                ", ".join(part.decode() for part in column[3]),
                name_of(TYPES, column[1]),
                *_statistics(column.get(12, {}), leaf),
                name_of(_CODECS, column[4]),
                ", ".join(name_of(_ENCODINGS, each) for each in column[2]),
                column.get(10),
                column.get(11),
                column.get(9),
                column.get(7),
                column.get(6),
                [(each[1], each.get(2, b"")) for each in column.get(8, [])],
                column.get(14),
                column.get(15),
                column.get(12, {}).get(8),
                column.get(12, {}).get(7),
                group.get(6),
                None,
                None,
                [
                    {
                        "page_type": name_of(_PAGES, each[1]),
                        "encoding": name_of(_ENCODINGS, each[2]),
                        "count": each[3],
                    }
                    for each in column.get(13, [])
                ],
                column.get(12, {}).get(9),
            )


def _statistics(statistics: Mapping[int, Any], leaf: Element) -> _Row:
    """In the form of before and, behind the counts, in that of now."""
    old, new = [[leaf.value_text(statistics.get(key)) for key in keys] for keys in ((2, 1), (6, 5))]
    return (*old, statistics.get(3), statistics.get(4), *new)


def _of_keys(file: str, footer: _Footer, *_: int) -> Iterator[_Row]:
    for pair in footer.get(5, []):
        yield file, pair[1], pair.get(2)


def _text(stored: bytes | None) -> str | None:
    return None if stored is None else stored.decode()


def _schema(names: str, others: Mapping[str, pa.DataType]) -> pa.Schema:
    """Columns of integers, but for the others."""
    return pa.schema([(name, others.get(name, pa.int64())) for name in names.split()])


def _texts(names: str) -> dict[str, pa.DataType]:
    return dict.fromkeys(names.split(), pa.string())


_BOX = pa.struct([(name, pa.float64()) for name in "xmin xmax ymin ymax zmin zmax mmin mmax".split()])
_ENCODING_STATISTICS = pa.struct(
    [("page_type", pa.string()), ("encoding", pa.string()), ("count", pa.int32())]
)
_TABLES: Mapping[FileKind, tuple[pa.Schema, Callable[[str, _Footer, int, int], Iterator[_Row]]]] = {
    "Parquet footers": (
        _schema(
            "file_name created_by num_rows num_row_groups format_version encryption_algorithm footer_signing_key_metadata"
            " file_size_bytes footer_size column_orders",
            {
                **_texts("file_name created_by encryption_algorithm footer_signing_key_metadata"),
                "file_size_bytes": pa.uint64(),
                "footer_size": pa.uint64(),
                "column_orders": pa.list_(pa.string()),
            },
        ),
        _of_file,
    ),
    "Parquet schema": (
        _schema(
            "file_name name type type_length repetition_type num_children converted_type scale precision field_id logical_type"
            " duckdb_type column_id",
            _texts("file_name name type type_length repetition_type converted_type logical_type duckdb_type"),
        ),
        _of_schema,
    ),
    "Parquet column chunks": (
        _schema(
            "file_name row_group_id row_group_num_rows row_group_num_columns row_group_bytes column_id file_offset num_values"
            " path_in_schema type stats_min stats_max stats_null_count stats_distinct_count stats_min_value stats_max_value"
            " compression encodings index_page_offset dictionary_page_offset data_page_offset total_compressed_size"
            " total_uncompressed_size key_value_metadata bloom_filter_offset bloom_filter_length min_is_exact max_is_exact"
            " row_group_compressed_bytes geo_bbox geo_types encoding_stats stats_nan_count",
            {
                **_texts("file_name path_in_schema type stats_min stats_max stats_min_value stats_max_value"),
                **_texts("compression encodings"),
                "min_is_exact": pa.bool_(),
                "max_is_exact": pa.bool_(),
                "key_value_metadata": pa.map_(pa.binary(), pa.binary()),
                "geo_bbox": _BOX,
                "geo_types": pa.list_(pa.string()),
                "encoding_stats": pa.list_(_ENCODING_STATISTICS),
            },
        ),
        _of_column_chunks,
    ),
    "Parquet key values": (
        _schema("file_name key value", {**_texts("file_name"), "key": pa.binary(), "value": pa.binary()}),
        _of_keys,
    ),
}
#: The kinds of descriptions.
DESCRIPTIONS = tuple(_TABLES)
