"""Parquet files as registered tables: types from the metadata, columns read when first touched."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from tqp.core.datatypes import DataType
from tqp.data.arrow_types import field_type
from tqp.data.column import Column
from tqp.data.encoding.columns import encode_chunks
from tqp.data.encoding.integers import compact
from tqp.data.sources.base import Source
from tqp.data.sources.file_identity import FileSet, Identity, identity_of, reading
from tqp.data.sources.hive_partitions import partition_columns
from tqp.data.sources.schemas import cast_like, conversions

#: A string column whose pages take fewer bytes a row than this is certainly stored as dictionary codes: a plain string
#: takes four for its length alone.
_DICTIONARY_BYTES_PER_ROW = 4


@dataclass(frozen=True, slots=True)
class _ParquetFile:
    path: str
    identity: Identity
    metadata: pq.FileMetaData
    schema: pa.Schema
    #: The first leaf column of each column, of which a nested one has several; and the number of all leaves.
    first_leaves: Sequence[int]

    @staticmethod
    def open(path: str) -> _ParquetFile:
        with reading(path):
            identity = identity_of(path)
        with reading(path, identity):
            metadata = pq.read_metadata(path)
            schema = metadata.schema.to_arrow_schema()
        first_leaves = list(itertools.accumulate((_num_leaves(field.type) for field in schema), initial=0))
        return _ParquetFile(path, identity, metadata, schema, first_leaves)

    def num_bytes(self, position: int) -> int:
        """Of one flat column, before compression."""
        leaf, metadata = self.first_leaves[position], self.metadata
        sizes = (
            metadata.row_group(group).column(leaf).total_uncompressed_size
            for group in range(metadata.num_row_groups)
        )
        return sum(sizes)

    def read(self, position: int, as_dictionary: bool) -> Iterator[pa.Array]:
        """The chunks of one column, a row group at a time, on this thread: other columns are read beside it."""
        dictionaries = [self.schema.names[position]] if as_dictionary else None
        leaves = list(range(self.first_leaves[position], self.first_leaves[position + 1]))
        with (
            reading(self.path, self.identity, f'column "{self.schema.names[position]}" of '),
            pq.ParquetFile(self.path, metadata=self.metadata, read_dictionary=dictionaries) as parquet,
        ):
            for group in range(self.metadata.num_row_groups):
                # By position: names may repeat.
                table = parquet.reader.read_row_group(group, column_indices=leaves, use_threads=False)
                yield from table.column(0).chunks


def _num_leaves(arrow_type: pa.DataType) -> int:
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _num_leaves(arrow_type.storage_type)
    return sum(_num_leaves(arrow_type.field(index).type) for index in range(arrow_type.num_fields)) or 1


class ParquetSource(Source):
    """Parquet files with the columns of the first one, and those that directories are named after.

    Rows and types come from the metadata; a column is read when first touched.
    """

    def __init__(self, name: str, files: FileSet, device: torch.device) -> None:
        self._files = [_ParquetFile.open(path) for path in files.files]
        self.num_rows = sum(file.metadata.num_rows for file in self._files)
        partitions = partition_columns(files.files)
        first = self._files[0]
        named_after = {partition.lower() for partition in partitions}
        self._positions_in_first = [
            position
            for position, column in enumerate(first.schema.names)
            if column.lower() not in named_after
        ]
        self._fields = [first.schema.field(position) for position in self._positions_in_first]
        expected = pa.schema(self._fields)
        self._conversions = [
            conversions(file.path, file.schema, first.path, expected) for file in self._files
        ]
        self._partitions: Mapping[int, pa.Array] = dict(enumerate(partitions.values(), len(self._fields)))
        super().__init__(name, [*expected.names, *partitions], device)
        self.files = files

    def _type_at(self, position: int) -> DataType:
        if position in self._partitions:
            return field_type(pa.field("", self._partitions[position].type), self.column_names[position])
        return field_type(self._fields[position], self.column_names[position])

    def _encode(self, position: int) -> Column:
        data_type = self._type_at(position)
        name = self.column_names[position]
        if position in self._partitions:
            chunks = list(self._repeated(self._partitions[position]))
            return encode_chunks(name, chunks, data_type, self.device)
        as_dictionary = data_type.is_string and self._is_dictionary_encoded(position)
        chunks = []
        for file, converted in zip(self._files, self._conversions, strict=True):
            place, cast_to = converted[position]
            for chunk in file.read(place, as_dictionary):
                part = chunk if cast_to is None else cast_like(file.path, name, chunk, cast_to)
                chunks.append(compact(name, part, data_type) if data_type.is_integer_like else part)
        return encode_chunks(name, chunks, data_type, self.device)

    def _repeated(self, values: pa.Array) -> Iterator[pa.Array]:
        """The value of each file as often as it has rows."""
        for value, file in zip(values, self._files, strict=True):
            yield pa.repeat(value, file.metadata.num_rows)

    def _is_dictionary_encoded(self, position: int) -> bool:
        """Whether the files hold (nearly) all of a string column as codes, which are quick to read as such."""
        places = [
            (file, converted[position][0])
            for file, converted in zip(self._files, self._conversions, strict=True)
        ]
        num_bytes = sum(file.num_bytes(place) for file, place in places)
        return num_bytes < _DICTIONARY_BYTES_PER_ROW * self.num_rows
