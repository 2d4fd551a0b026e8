"""One Parquet file: what its footer says, and the columns of its row groups."""

from __future__ import annotations

import contextlib
import enum
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

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
#: Rows of several row groups that are read in one step.
_ROWS_AT_ONCE = 1_048_576


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

    def may_hold_null(self, position: int) -> bool:
        """Of a flat column: False where the footer says that there is no NULL. Nothing makes sure that it is so."""
        leaf = self.first_leaves[position]
        if self.metadata.schema.column(leaf).max_definition_level == 0:
            return False
        statistics = (self.metadata.row_group(group).column(leaf).statistics for group in self.groups)
        return any(each is None or not each.has_null_count or each.null_count for each in statistics)

    def bounds(self, position: int) -> tuple[int, int] | None:
        """What all values of a column of integers lie between, as `facts` has it of each row group."""
        found = []
        for group in self.groups:
            facts = self.facts(position)[group]
            if facts is None:
                return None
            found.append(facts.range)
        return all_bounds(found)

    def read(self, position: int, groups: Iterable[int], way: Way) -> Iterator[pa.Array]:
        """The chunks of one column in some row groups, on this thread: other columns and groups are read beside it."""
        with self.reading(position), ColumnReader(self, position, way) as reader:
            for together in self._read_together(groups):
                yield from reader.chunks(together)

    def _read_together(self, groups: Iterable[int]) -> Iterator[list[int]]:
        """Consecutive row groups that are read in one step, as each takes some time before the first value and passes on the
        interpreter lock."""
        together: list[int] = []
        num_rows = 0
        for group in groups:
            more = self.metadata.row_group(group).num_rows
            if together and num_rows + more > _ROWS_AT_ONCE:
                yield together
                together, num_rows = [], 0
            together.append(group)
            num_rows += more
        if together:
            yield together

    def reading(self, position: int) -> contextlib.AbstractContextManager[None]:
        """Errors of the block name the column and the file. Raises FileChangedError if it is another one by now."""
        return reading(self.path, self.identity, f'column "{self.schema.names[position]}" of ')

    @functools.cached_property
    def elements(self) -> list[bytes]:
        return leaf_elements(self.metadata)

    @functools.cached_property
    def stored_elements(self) -> list[bytes]:
        return leaf_elements(self.stored)


class ColumnReader:
    """An open file of which one thread reads the row groups of one column. To be closed, or left to be collected."""

    def __init__(self, file: ParquetFile, position: int, way: Way) -> None:
        self._file, self._position, self._way = file, position, way
        self._dictionaries = [file.schema.names[position]] if way is Way.DICTIONARY else None
        with contextlib.ExitStack() as opening:
            self._stream = opening.enter_context(as_native_file(opening.enter_context(opened(file.path))))
            self._open = opening.pop_all()
        self._parquet: pq.ParquetFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def chunks(self, groups: Sequence[int]) -> list[pa.Array]:
        """The column in some row groups, one chunk for all where Arrow makes one."""
        chunks: list[pa.Array] = []
        for pays, some in itertools.groupby(groups, self._pays_to_decompress):
            together = list(some)
            content = self._decompressed(together) if pays else None
            table = self._of_file(together) if content is None else self._of_memory(content)
            chunks.extend(self._checked(table, together))
        return chunks

    def _checked(self, table: pa.Table, groups: Sequence[int]) -> list[pa.Array]:
        """The chunks of a column. Raises ValueError if they have not as many rows as the footer says."""
        expected = sum(self._file.metadata.row_group(group).num_rows for group in groups)
        if table.num_rows != expected:
            raise ValueError(f"row groups {list(groups)} have {table.num_rows} rows, not {expected}")
        chunks: list[pa.Array] = table.column(0).chunks
        return chunks

    def _of_memory(self, content: pa.Buffer) -> pa.Table:
        single = pq.ParquetFile(content, read_dictionary=self._dictionaries, pre_buffer=False)
        return single.reader.read_all(use_threads=False)

    def _of_file(self, groups: Sequence[int]) -> pa.Table:
        """As Arrow reads it."""
        file, position = self._file, self._position
        if self._parquet is None:
            metadata = file.stored if self._way is Way.STORED else file.metadata
            self._parquet = pq.ParquetFile(
                self._stream, metadata=metadata, read_dictionary=self._dictionaries, pre_buffer=False
            )
        # By position: names may repeat.
        leaves = list(range(file.first_leaves[position], file.first_leaves[position + 1]))
        return self._parquet.reader.read_row_groups(groups, column_indices=leaves, use_threads=False)

    def _pays_to_decompress(self, group: int) -> bool:
        """Whether the column in a row group is quicker to read from memory, as `_decompressed` has it."""
        field = self._file.schema.field(self._position)
        if isinstance(field.type, pa.BaseExtensionType) or field.type.num_fields:
            return False
        return pages.pays(self._chunk(group))

    def _chunk(self, group: int) -> pq.ColumnChunkMetaData:
        """Of a column that is not nested."""
        return self._file.metadata.row_group(group).column(self._file.first_leaves[self._position])

    def _decompressed(self, groups: Sequence[int]) -> pa.Buffer | None:
        """The column in some row groups as a file in memory."""
        file = self._file
        elements, field = file.elements, file.schema.field(self._position)
        if self._way is Way.STORED:
            elements, field = file.stored_elements, None
        return pages.decompressed(
            self._stream,
            list(map(self._chunk, groups)),
            [file.metadata.row_group(group).num_rows for group in groups],
            elements[file.first_leaves[self._position]],
            field,
        )


def _num_leaves(arrow_type: pa.DataType) -> int:
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _num_leaves(arrow_type.storage_type)
    return sum(_num_leaves(arrow_type.field(index).type) for index in range(arrow_type.num_fields)) or 1
