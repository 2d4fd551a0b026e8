"""Parquet, CSV and Arrow IPC files as registered tables."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from tqp.core.datatypes import DataType
from tqp.core.errors import BindError, Error, ExecutionError
from tqp.data.arrow_types import data_type_of
from tqp.data.column import Column
from tqp.data.csv_files import read_csv
from tqp.data.encode import encode_chunks
from tqp.data.encode_integers import compact
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


@dataclass(frozen=True, slots=True)
class _ParquetFile:
    path: str
    metadata: pq.FileMetaData
    stamp: tuple[int, int]  # size and time of change when it was registered

    @staticmethod
    def open(path: str) -> _ParquetFile:
        with reading(path):
            return _ParquetFile(path, pq.read_metadata(path), _stamp(path))

    def leaf(self, column: str) -> int:
        """The position of a flat column among the file's leaf columns."""
        schema = self.metadata.schema
        return next(index for index in range(len(schema)) if schema.column(index).path == column)


class ParquetSource(Source):
    """Parquet files of one schema. Rows and types come from the metadata; a column is read when first touched."""

    def __init__(self, name: str, paths: Sequence[str], device: torch.device) -> None:
        self._files = [_ParquetFile.open(path) for path in paths]
        self._num_rows: int = sum(file.metadata.num_rows for file in self._files)
        self._schema: pa.Schema = self._files[0].metadata.schema.to_arrow_schema()
        for file in self._files[1:]:
            _check_schema(file.path, file.metadata.schema.to_arrow_schema(), paths[0], self._schema)
        super().__init__(name, self._schema.names, device)

    @property
    def num_rows(self) -> int:
        return self._num_rows

    def _type_at(self, position: int) -> DataType:
        return data_type_of(self._schema.field(position).type, self.column_names[position])

    def _encode(self, position: int) -> Column:
        data_type = self._type_at(position)
        column = self._schema.field(position).name
        chunks: list[pa.Array] = []
        as_dictionary = data_type.is_string and self._is_dictionary_encoded(column)
        for file in self._files:
            for chunk in _read_column(file, column, as_dictionary):
                chunks.append(compact(column, chunk, data_type) if data_type.is_integer_like else chunk)
        return encode_chunks(self.column_names[position], chunks, data_type, self.device)

    def _is_dictionary_encoded(self, column: str) -> bool:
        """Whether the files hold (nearly) all of a string column as codes, which are quick to read as such."""
        num_bytes: int = 0
        for file in self._files:
            leaf = file.leaf(column)
            num_bytes += sum(
                file.metadata.row_group(group).column(leaf).total_uncompressed_size
                for group in range(file.metadata.num_row_groups)
            )
        return num_bytes < _DICTIONARY_BYTES_PER_ROW * self._num_rows


def _read_column(file: _ParquetFile, column: str, as_dictionary: bool) -> Iterator[pa.Array]:
    """The chunks of one column, a row group at a time, on this thread: other columns are read beside it."""
    with reading(file.path):
        if _stamp(file.path) != file.stamp:
            raise ExecutionError(
                f"cannot read {file.path}: it has changed since it was registered; register it again"
            )
        dictionaries = [column] if as_dictionary else None
        with pq.ParquetFile(file.path, metadata=file.metadata, read_dictionary=dictionaries) as parquet:
            for group in range(file.metadata.num_row_groups):
                yield from parquet.read_row_group(group, columns=[column], use_threads=False).column(0).chunks


def _stamp(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


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
