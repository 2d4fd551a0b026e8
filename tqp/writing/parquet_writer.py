"""Parquet, in row groups of the size that DuckDB writes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from tqp.core.arguments import parse_size, unique_names
from tqp.core.datatypes import INTERVAL, TIME, TIME_TZ, DataType, TypeKind
from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.process.memory_budget import check
from tqp.data.arrow_types import Purpose
from tqp.data.column import Table
from tqp.data.results.to_arrow import column_to_arrow
from tqp.writing.options import Options
from tqp.writing.parquet_fields import FieldIds, field_ids, numbered
from tqp.writing.replaced_files import written_beside

ROW_GROUP_ROWS = 122_880
_LEAST_ROWS = 2048
_VERSIONS = {"v1": "1.0", "v2": "2.0"}
_COMPRESSIONS = ("uncompressed", "snappy", "gzip", "brotli", "lz4", "lz4_raw", "zstd")


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """How a file is written: `row_group_bytes` at most in a row group, as Arrow has them, where that is said."""

    compression: str = "snappy"
    compression_level: int | None = None
    row_group_size: int = ROW_GROUP_ROWS
    row_group_bytes: int = 0
    data_page_version: str = "1.0"
    ids: FieldIds = field(default_factory=dict)
    key_values: Mapping[str, str] = field(default_factory=dict)


def parquet_format(options: Options, names: Sequence[str]) -> ParquetFormat:
    """What the options say of files with columns of these names; they are taken."""
    compression = lower_ascii(options.text("compression", "snappy"))
    if compression not in _COMPRESSIONS:
        raise BindError(f"compression {compression!r}: choose one of {', '.join(_COMPRESSIONS)}")
    level = None
    if "compression_level" in options:
        if compression != "zstd":
            raise BindError("COMPRESSION_LEVEL is one of the compression zstd")
        level = options.number("compression_level", 0, -131_072)
        if level > 22:
            raise BindError(f"COMPRESSION_LEVEL is 22 at most, not {level}")
    version = lower_ascii(str(options.take("parquet_version", "v1")))
    if version not in _VERSIONS:
        raise BindError(f"PARQUET_VERSION is V1 or V2, not {version!r}")
    group_bytes = options.take("row_group_size_bytes")
    pairs = options.take("kv_metadata", {})
    if not isinstance(pairs, Mapping) or None in pairs.values():
        raise BindError("KV_METADATA is a struct without NULL, such as {source: 'us'}")
    return ParquetFormat(
        compression,
        level,
        options.number("row_group_size", ROW_GROUP_ROWS) or 1,
        0 if group_bytes is None else parse_size(group_bytes, "ROW_GROUP_SIZE_BYTES") or 0,
        _VERSIONS[version],
        field_ids(options.take("field_ids", {}), names),
        {name: str(value) for name, value in pairs.items()},
    )


def write_parquet(tables: Iterable[Table], path: str, form: ParquetFormat) -> int:
    """Writes the rows of tables with the same columns, of which there is at least one, to a file; says how many they are.

    A HUGEINT becomes a decimal of 38 digits, an ENUM its texts; names that repeat a, a_1, ... Raises UnsupportedError for
    INTERVAL, which Arrow does not write, and ExecutionError that names the file if it cannot be written.
    """
    how = {"uncompressed": "none", "lz4_raw": "lz4"}.get(form.compression, form.compression)
    num_rows = 0
    remaining = iter(tables)
    try:
        with written_beside(path) as temporary:
            first = next(remaining)
            schema = numbered(_arrow_rows(first, 0, 0).schema, form.ids)
            size = _rows_of_group(first, form)
            with pq.ParquetWriter(
                temporary,
                schema,
                compression=how,
                compression_level=form.compression_level,
                data_page_version=form.data_page_version,
                write_time_adjusted_to_utc=_holds_zoned_times(first),
            ) as writer:
                for rows in _row_groups(itertools.chain([first], remaining), size):
                    writer.write_table(rows.cast(schema) if form.ids else rows, row_group_size=size)
                    num_rows += rows.num_rows
                if form.key_values:
                    writer.add_key_value_metadata(form.key_values)
    except pa.ArrowException as error:
        raise ExecutionError(f"cannot write {path}: {error}") from error
    return num_rows


def _rows_of_group(first: Table, form: ParquetFormat) -> int:
    """The rows of a row group; where bytes limit it, as many as the first rows let one expect, a vector of DuckDB's at least."""
    sample = min(first.num_rows, ROW_GROUP_ROWS)
    if not form.row_group_bytes or not sample:
        return form.row_group_size
    fitting: int = form.row_group_bytes * sample // max(_arrow_rows(first, 0, sample).nbytes, 1)
    return min(form.row_group_size, max(fitting, _LEAST_ROWS))


def _holds_zoned_times(table: Table) -> bool:
    """Whether there are times with a zone, which are written as adjusted to UTC; pyarrow writes all times of a file alike.

    Raises UnsupportedError for a table that also has times without.
    """
    kinds = {kind for column in table.columns for kind in _kinds_of(column.data_type)}
    if {TypeKind.TIME, TypeKind.TIME_TZ} <= kinds:
        raise UnsupportedError(
            f"{TIME} beside {TIME_TZ} in a Parquet file is not supported; cast to one of both"
        )
    return TypeKind.TIME_TZ in kinds


def _kinds_of(data_type: DataType) -> Iterator[TypeKind]:
    yield data_type.kind
    for child in data_type.children:
        yield from _kinds_of(child)


def _row_groups(tables: Iterable[Table], size: int) -> Iterator[pa.Table]:
    """The rows of all tables, so many at a time."""
    pending: list[pa.Table] = []
    missing = size
    for table in tables:
        start = 0
        while start < table.num_rows:
            check()
            stop = min(start + missing, table.num_rows)
            pending.append(_arrow_rows(table, start, stop))
            missing -= stop - start
            start = stop
            if not missing:
                yield pa.concat_tables(pending)
                pending, missing = [], size
    if pending:
        yield pa.concat_tables(pending)


def _arrow_rows(table: Table, start: int, stop: int) -> pa.Table:
    """Some rows; texts are those of one kind of Arrow array in all parts."""
    if not table.names:
        raise BindError("a Parquet file has at least one column")
    arrays, names = [], unique_names(table.names)
    for name, column in zip(names, table.columns, strict=True):
        if column.data_type == INTERVAL:
            raise UnsupportedError(
                f'column "{name}": INTERVAL in a Parquet file is not supported; cast it to VARCHAR'
            )
        array = column_to_arrow(name, column.cut(start, stop), Purpose.FILE)
        if pa.types.is_dictionary(array.type) or pa.types.is_large_string(array.type):
            array = array.cast(pa.string())
        elif pa.types.is_large_binary(array.type):
            array = array.cast(pa.binary())
        if column.data_type.is_json:
            array = pa.ExtensionArray.from_storage(pa.json_(array.type), array)
        arrays.append(array)
    return pa.Table.from_arrays(arrays, names=list(names))
