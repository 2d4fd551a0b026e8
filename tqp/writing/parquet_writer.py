"""Parquet, in row groups of the size that DuckDB writes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from tqp.core.arguments import unique_names
from tqp.core.datatypes import INTERVAL, TIME, TIME_TZ, DataType, TypeKind
from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.core.process.memory_budget import check
from tqp.data.arrow_types import Purpose
from tqp.data.column import Table
from tqp.data.results.to_arrow import column_to_arrow
from tqp.writing.replaced_files import written_beside

ROW_GROUP_ROWS = 122_880
_COMPRESSIONS = ("uncompressed", "snappy", "gzip", "brotli", "lz4", "lz4_raw", "zstd")


def write_parquet(
    tables: Iterable[Table], path: str, compression: str = "snappy", row_group_size: int = ROW_GROUP_ROWS
) -> int:
    """Writes the rows of tables with the same columns, of which there is at least one, to a file; says how many they are.

    A HUGEINT becomes a decimal of 38 digits, an ENUM its texts; names that repeat a, a_1, ... Raises UnsupportedError for
    INTERVAL, which Arrow does not write, and ExecutionError that names the file if it cannot be written.
    """
    compression = compression.lower()
    if compression not in _COMPRESSIONS:
        raise BindError(f"compression {compression!r}: choose one of {', '.join(_COMPRESSIONS)}")
    if row_group_size < 1:
        raise BindError(f"row_group_size={row_group_size}: a row group has at least one row")
    how = {"uncompressed": "none", "lz4_raw": "lz4"}.get(compression, compression)
    num_rows, remaining = 0, iter(tables)
    try:
        with written_beside(path) as temporary:
            first = next(remaining)
            schema = _arrow_rows(first, 0, 0).schema
            in_universal_time = _holds_zoned_times(first)
            with pq.ParquetWriter(
                temporary, schema, compression=how, write_time_adjusted_to_utc=in_universal_time
            ) as writer:
                for rows in _row_groups(itertools.chain([first], remaining), row_group_size):
                    writer.write_table(rows, row_group_size=row_group_size)
                    num_rows += rows.num_rows
    except pa.ArrowException as error:
        raise ExecutionError(f"cannot write {path}: {error}") from error
    return num_rows


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
