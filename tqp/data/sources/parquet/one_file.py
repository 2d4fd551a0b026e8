"""One Parquet file: what its footer says, and the columns of its row groups."""

from __future__ import annotations

import enum
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from tqp.core.schema import ColumnFacts
from tqp.data.encoding.integers import all_bounds, expected_bounds
from tqp.data.sources.file_identity import reading
from tqp.data.sources.file_systems import Identity, as_native_file, identity_of, opened
from tqp.data.sources.parquet import pages
from tqp.data.sources.parquet.footer import leaf_elements, with_stored_integers
from tqp.data.sources.parquet.times import with_universal_times

_INTEGERS = ("INT32", "INT64")


class Way(enum.Enum):
    """How a column is read: as its type in Arrow, strings as dictionary codes, or decimals as the integers stored."""

    TYPED = enum.auto()
    DICTIONARY = enum.auto()
    STORED = enum.auto()


@dataclass(frozen=True)
class ParquetFile:
    path: str
    identity: Identity
    metadata: pq.FileMetaData
    schema: pa.Schema
    #: The first leaf column of each column, of which a nested one has several; and the number of all leaves.
    first_leaves: Sequence[int]
    #: The row groups that are read.
    groups: Sequence[int]

    @staticmethod
    def open(path: str) -> ParquetFile:
        with reading(path):
            identity = identity_of(path)
        with (
            reading(path, identity),
            opened(path) as source,
            pq.ParquetFile(source, pre_buffer=False) as parquet,
        ):
            # The schema of the metadata alone knows no extension types.
            metadata, schema = (
                parquet.metadata,
                with_universal_times(path, parquet.metadata, parquet.schema_arrow),
            )
        first_leaves = list(itertools.accumulate((_num_leaves(field.type) for field in schema), initial=0))
        groups = range(metadata.num_row_groups)
        return ParquetFile(path, identity, metadata, schema, first_leaves, groups)

    @functools.cached_property
    def num_rows(self) -> int:
        """Of the row groups that are read."""
        return sum(self.metadata.row_group(group).num_rows for group in self.groups)

    def num_bytes(self, position: int, groups: Iterable[int]) -> int:
        """Of one column in some row groups, before compression."""
        metadata, leaves = self.metadata, range(self.first_leaves[position], self.first_leaves[position + 1])
        return sum(
            metadata.row_group(group).column(leaf).total_uncompressed_size
            for group in groups
            for leaf in leaves
        )

    @functools.cached_property
    def stored(self) -> pq.FileMetaData:
        """The metadata with decimals as the integers that they are stored as, where they are."""
        return with_stored_integers(self.metadata)

    def is_stored_decimal(self, position: int) -> bool:
        """Whether the column is one of decimals that are stored as integers."""
        leaf = self.metadata.schema.column(self.first_leaves[position])
        return pa.types.is_decimal(self.schema.field(position).type) and leaf.physical_type in _INTEGERS

    @functools.cached_property
    def _facts(self) -> dict[int, Sequence[ColumnFacts | None]]:
        return {}

    def facts(self, position: int) -> Sequence[ColumnFacts | None]:
        """What statistics say of a flat column of integers as they are stored, by row group; None where they say nothing.

        Nothing makes sure that it is so.
        """
        found = self._facts.get(position)
        if found is None:
            found = self._facts[position] = self._read_facts(position)
        return found

    def _read_facts(self, position: int) -> Sequence[ColumnFacts | None]:
        leaf, metadata, arrow_type = (
            self.first_leaves[position],
            self.metadata,
            self.schema.field(position).type,
        )
        is_number = metadata.schema.column(leaf).physical_type in _INTEGERS
        if not is_number or isinstance(arrow_type, pa.BaseExtensionType):
            return [None] * metadata.num_row_groups
        facts: list[ColumnFacts | None] = []
        for group in range(metadata.num_row_groups):
            column = metadata.row_group(group).column(leaf)
            statistics = column.statistics
            if statistics is None:
                facts.append(None)
            elif statistics.has_min_max:
                bounds = expected_bounds(arrow_type, (statistics.min_raw, statistics.max_raw))
                facts.append(bounds and ColumnFacts(*bounds))
            else:
                is_null = statistics.null_count == column.num_values
                facts.append(ColumnFacts(is_null=True) if is_null else None)
        return facts

    def bounds(self, position: int) -> tuple[int, int] | None:
        """What all values of a column of integers lie between, as `facts` has it of each row group."""
        found = []
        for group in self.groups:
            facts = self.facts(position)[group]
            if facts is None:
                return None
            found.append(facts.range)
        return all_bounds(found)

    def read(self, position: int, groups: Sequence[int], way: Way) -> Iterator[pa.Array]:
        """The chunks of one column in some row groups, on this thread: other columns and groups are read beside it."""
        dictionaries = [self.schema.names[position]] if way is Way.DICTIONARY else None
        metadata = self.stored if way is Way.STORED else self.metadata
        leaves = list(range(self.first_leaves[position], self.first_leaves[position + 1]))
        with (
            reading(self.path, self.identity, f'column "{self.schema.names[position]}" of '),
            opened(self.path) as source,
            as_native_file(source) as stream,
        ):
            parquet = None
            for group in groups:
                content = self._decompressed(stream, position, group, way)
                if content is not None:
                    single = pq.ParquetFile(content, read_dictionary=dictionaries, pre_buffer=False)
                    table = single.reader.read_row_group(0, use_threads=False)
                else:
                    parquet = parquet or pq.ParquetFile(
                        stream, metadata=metadata, read_dictionary=dictionaries, pre_buffer=False
                    )
                    # By position: names may repeat.
                    table = parquet.reader.read_row_group(group, column_indices=leaves, use_threads=False)
                expected = self.metadata.row_group(group).num_rows
                if table.num_rows != expected:
                    raise ValueError(f"row group {group} has {table.num_rows} rows, not {expected}")
                yield from table.column(0).chunks

    def _decompressed(self, stream: pa.NativeFile, position: int, group: int, way: Way) -> pa.Buffer | None:
        """One column in a row group as a file in memory, if that is quicker to read."""
        field = self.schema.field(position)
        if isinstance(field.type, pa.BaseExtensionType) or field.type.num_fields:
            return None
        leaf = self.first_leaves[position]
        row_group = self.metadata.row_group(group)
        chunk = row_group.column(leaf)
        if not pages.pays(chunk):
            return None
        elements, typed = (self._stored_elements, None) if way is Way.STORED else (self._elements, field)
        return pages.decompressed(stream, chunk, row_group.num_rows, elements[leaf], typed)

    @functools.cached_property
    def _elements(self) -> list[bytes]:
        return leaf_elements(self.metadata)

    @functools.cached_property
    def _stored_elements(self) -> list[bytes]:
        return leaf_elements(self.stored)


def _num_leaves(arrow_type: pa.DataType) -> int:
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _num_leaves(arrow_type.storage_type)
    return sum(_num_leaves(arrow_type.field(index).type) for index in range(arrow_type.num_fields)) or 1
