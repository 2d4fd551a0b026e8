"""Parquet, CSV and Arrow IPC files as registered tables."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from tqp.core.datatypes import DataType
from tqp.core.errors import BindError, Error, ExecutionError
from tqp.data.arrow_types import data_type_of
from tqp.data.column import Column
from tqp.data.csv_files import read_csv
from tqp.data.encode import encode_column
from tqp.data.frames import ArrowSource
from tqp.data.source_base import Source

_CSV_ENDINGS = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".tsv", ".tsv.gz", ".tbl", ".txt")
_IPC_ENDINGS = (".arrow", ".feather", ".ipc")
_PARQUET_ENDINGS = (".parquet", ".parq", ".pq")

#: A string column whose pages take fewer bytes a row than this is certainly stored as dictionary codes: a plain string
#: takes four for its length alone.
_DICTIONARY_BYTES_PER_ROW = 4


def file_source(name: str, paths: Any, device: torch.device) -> Source:
    """The source for a path, a list of paths, a glob pattern or a directory of Parquet files.

    Raises BindError if there is no such file or its kind is not known, ExecutionError if a file cannot be read.
    """
    files = _expand(name, paths)
    endings = {_kind(file) for file in files}
    if len(endings) > 1:
        raise BindError(f'table "{name}": the files are of different kinds ({", ".join(sorted(endings))})')
    match endings.pop():
        case "parquet":
            return ParquetSource(name, files, device)
        case "csv":
            read = read_csv
        case _:
            read = _read_ipc
    tables = []
    for file in files:
        with reading(file):
            tables.append(read(file))
    return ArrowSource(name, _concatenated(files, tables), device)


class ParquetSource(Source):
    """Parquet files of one schema. Rows and types come from the metadata; a column is read when first touched."""

    def __init__(self, name: str, files: Sequence[str], device: torch.device) -> None:
        self._files: list[tuple[str, pq.FileMetaData]] = []
        self._num_rows = 0
        for file in files:
            with reading(file):
                metadata = pq.read_metadata(file)
                schema = metadata.schema.to_arrow_schema()
            if not self._files:
                self._schema = schema
            _check_schema(file, schema, files[0], self._schema)
            self._files.append((file, metadata))
            self._num_rows += metadata.num_rows
        super().__init__(name, self._schema.names, device)

    @property
    def num_rows(self) -> int:
        return self._num_rows

    def _type_at(self, position: int) -> DataType:
        return data_type_of(self._schema.field(position).type, self.column_names[position])

    def _encode(self, position: int) -> Column:
        field = self._schema.field(position)
        data_type = data_type_of(field.type, self.column_names[position])
        as_dictionary = data_type.is_string and self._all_dictionary(field.name)
        chunks: list[pa.Array] = []
        for file, metadata in self._files:
            with reading(file):
                chunks += _read_column(file, metadata.num_row_groups, field.name, as_dictionary)
        if sum(len(chunk) for chunk in chunks) != self._num_rows:
            raise ExecutionError(
                f'cannot read table "{self.name}": its files have changed since it was registered; register it again'
            )
        arrow_type = chunks[0].type if chunks else field.type
        column = pa.chunked_array([_same_type(chunk, arrow_type) for chunk in chunks], arrow_type)
        return encode_column(self.column_names[position], column, self.device)

    def _all_dictionary(self, column: str) -> bool:
        """Whether reading the column as a dictionary saves work in every file; asking the metadata is cheap."""
        num_bytes = num_rows = 0
        for _, metadata in self._files:
            for group in range(metadata.num_row_groups):
                row_group = metadata.row_group(group)
                for index in range(row_group.num_columns):
                    chunk = row_group.column(index)
                    if chunk.path_in_schema == column:
                        num_bytes += chunk.total_uncompressed_size
                        num_rows += chunk.num_values
        return num_bytes < _DICTIONARY_BYTES_PER_ROW * num_rows


def _read_column(file: str, num_row_groups: int, column: str, as_dictionary: bool) -> list[pa.Array]:
    """The chunks of one column, a row group at a time, on this thread: other columns are read beside it."""
    chunks: list[pa.Array] = []
    with pq.ParquetFile(
        file, read_dictionary=[column] if as_dictionary else None, pre_buffer=False
    ) as parquet:
        for group in range(num_row_groups):
            chunks += parquet.read_row_group(group, columns=[column], use_threads=False).column(0).chunks
    return chunks


@contextlib.contextmanager
def reading(file: str) -> Iterator[None]:
    """Turns what the block raises into an ExecutionError that names the file."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        raise ExecutionError(f"cannot read {file}: {error}") from error


def _expand(name: str, paths: Any) -> list[str]:
    """The files that a path, pattern, directory or list of these stands for, in a fixed order."""
    files: list[str] = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        text = os.path.expanduser(os.fspath(path))
        if os.path.isdir(text):
            found = sorted(
                file
                for file in glob.glob(os.path.join(glob.escape(text), "**", "*"), recursive=True)
                if file.lower().endswith(_PARQUET_ENDINGS)
            )
        elif os.path.exists(text):
            found = [text]
        else:
            found = sorted(file for file in glob.glob(text, recursive=True) if os.path.isfile(file))
        if not found:
            what = "no Parquet file in the directory" if os.path.isdir(text) else "no file matches"
            raise BindError(f'table "{name}": {what} {text}')
        files += found
    return files


def _kind(file: str) -> str:
    lower = file.lower()
    for kind, endings in (("parquet", _PARQUET_ENDINGS), ("csv", _CSV_ENDINGS), ("Arrow IPC", _IPC_ENDINGS)):
        if lower.endswith(endings):
            return kind
    with open(file, "rb") as stream:
        if stream.read(4) == b"PAR1":
            return "parquet"
    raise BindError(
        f"cannot tell what kind of file {file} is; its name should end in one of"
        f" {', '.join((*_PARQUET_ENDINGS, *_CSV_ENDINGS, *_IPC_ENDINGS))}"
    )


def _check_schema(file: str, schema: pa.Schema, first_file: str, first_schema: pa.Schema) -> None:
    """Files of one table must agree in columns and logical types."""
    if schema.names != first_schema.names:
        raise ExecutionError(
            f"cannot read {file}: its columns ({', '.join(schema.names)}) differ from those of {first_file}"
            f" ({', '.join(first_schema.names)})"
        )
    for field, expected in zip(schema, first_schema, strict=True):
        if field.type != expected.type and data_type_of(field.type, field.name) != data_type_of(
            expected.type, expected.name
        ):
            raise ExecutionError(
                f'cannot read {file}: its column "{field.name}" is {field.type}, but {expected.type} in {first_file}'
            )


def _same_type(chunk: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    return chunk if chunk.type == arrow_type else chunk.cast(arrow_type)


def _read_ipc(file: str) -> pa.Table:
    with pa.memory_map(file) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()


def _concatenated(files: Sequence[str], tables: Sequence[pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    for file, table in zip(files, tables, strict=True):
        _check_schema(file, table.schema, files[0], tables[0].schema)
    return pa.concat_tables([table.cast(tables[0].schema) for table in tables])
