"""CSV and JSON files that memory may not hold: their types are found block by block, and queries read their columns in pieces."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import torch

from tqp.core.datatypes import DataType
from tqp.core.errors import Error, ResourceError
from tqp.core.file_kinds import FileKind
from tqp.core.keywords import lower_ascii
from tqp.core.process.memory_budget import most_of_a_file
from tqp.data.arrow_types import field_type
from tqp.data.column import Column
from tqp.data.encoding.columns import encode_column
from tqp.data.sharing import share
from tqp.data.sources.base import Pieces, Source
from tqp.data.sources.file_columns import FileColumns
from tqp.data.sources.file_identity import FileChangedError, FileSet
from tqp.data.sources.file_systems import compression_of
from tqp.data.sources.objects.arrow_tables import ArrowSource
from tqp.data.sources.schemas import conversions
from tqp.data.sources.text.blocks import FileInBlocks, find_conversions
from tqp.data.sources.text.csv_blocks import CsvInBlocks
from tqp.data.sources.text.csv_types import in_one_form, values_or_none
from tqp.data.sources.text.json_blocks import JsonInBlocks

#: A file that is compressed is taken to hold so many times its bytes.
_COMPRESSED = 5
#: Bytes of a block, at least and at most, and its share of what memory may hold of a file: Arrow reads some 40 blocks ahead.
_LEAST, _MOST, _SHARE = 1 << 16, 1 << 20, 1 / 64


def text_files_source(name: str, files: FileSet, kind: FileKind, device: torch.device) -> Source | None:
    """The source for CSV or JSON files that are larger than what this thread's query may hold of them.

    None for smaller ones, and for files that cannot be read in blocks: all that is wrong with a file is told by who reads it whole.
    """
    most = most_of_a_file()
    if (
        most is None
        or files.options.by_name
        or kind == "json"
        and files.options.says_of_json
        or sum(map(_size, files.files, _sizes(files))) <= most
    ):
        return None
    block_bytes = min(max(int(_SHARE * most), _LEAST), _MOST)
    try:
        parts = [
            CsvInBlocks(file, files.identities[file], files.options, block_bytes)
            if kind == "csv"
            else JsonInBlocks(file, files.identities[file], block_bytes, files.options)
            for file in files.files
        ]
        source = _TextFilesSource(name, files, device, parts)
    except (FileChangedError, ResourceError):
        raise
    except Error:
        return None
    return source if source.num_rows else None


def _sizes(files: FileSet) -> Iterator[int]:
    return (files.identities[file][2] for file in files.files)


def _size(file: str, stored: int) -> int:
    return stored if compression_of(file) is None else _COMPRESSED * stored


class _TextFilesSource(Source):
    """Files with the columns of the first one, those that directories are named after, and the name of the file if it is wanted."""

    def __init__(
        self, name: str, files: FileSet, device: torch.device, parts: Sequence[FileInBlocks]
    ) -> None:
        """Reads them all, once or more often, to find the types."""
        self._parts = parts
        first = parts[0].schema
        self._of_files = FileColumns.of(files, first.names, counts_rows=False)
        named_after = set(map(lower_ascii, self._of_files.partitions))
        fields = [field for field in first if lower_ascii(field.name) not in named_after]
        names = [field.name for field in fields]
        expected = pa.schema(fields)
        self._places = [self._in_file(part, expected) for part in parts]
        #: By position, the columns that no file holds.
        self._not_held = dict(enumerate(self._of_files.values, len(fields)))
        tried = {place: parts[0].conversions(at) for place, at in enumerate(self._places[0])}
        if all(part.num_rows is not None for part in parts):
            tried = {place: each for place, each in tried.items() if each}
        self._conversions = find_conversions(self._text, tried)
        again = in_one_form([self._conversions.get(place) for place in range(len(fields))])
        if again:
            kept = {place: each for place, each in self._conversions.items() if place not in again}
            self._conversions = kept | find_conversions(
                self._text, {place: [each] for place, each in again.items()}
            )
        self._fields = [
            *fields,
            *(pa.field(each, self._of_files.arrow_type(each)) for each in self._of_files.values),
        ]
        for place, convert in self._conversions.items():
            values = convert(pa.chunked_array([], pa.string()))
            assert values is not None
            self._fields[place] = pa.field(names[place], values.type)
        self.num_rows = sum(part.num_rows or 0 for part in parts)
        self._num_bytes = [
            sum(part.num_bytes[at[place]] for part, at in zip(parts, self._places, strict=True))
            for place in range(len(fields))
        ]
        self._read: dict[int, pa.ChunkedArray] = {}
        self._reading = threading.Lock()
        hidden = self._of_files.hidden
        shown = [field.name for field in self._fields[: len(self._fields) - len(hidden)]]
        super().__init__(name, shown, device, hidden_names=hidden)
        self.files = files

    def _in_file(self, part: FileInBlocks, expected: pa.Schema) -> list[int]:
        """Where the columns are in a file. Raises ExecutionError where it lacks one, or one has another type."""
        found = conversions(part.path, part.schema, self._parts[0].path, expected)
        return [place for place, _ in found]

    def unread_bytes(self, names: Iterable[str]) -> int:
        places = [self._position(name) for name in names if not self.is_encoded(name)]
        return sum(self._num_bytes[place] for place in places if place < len(self._num_bytes))

    def pieces(self, names: Iterable[str], num_bytes: int) -> Pieces:
        positions = list(map(self._position, names))
        return lambda: self._pieces(positions, num_bytes)

    def _pieces(self, positions: Sequence[int], num_bytes: int) -> Iterator[Source]:
        tables, taken = list[pa.Table](), 0
        for table in self._tables(positions):
            tables.append(table)
            taken += table.nbytes
            if taken >= num_bytes:
                yield self._piece(tables)
                tables, taken = [], 0
        if tables:
            yield self._piece(tables)

    def _piece(self, tables: Sequence[pa.Table]) -> Source:
        piece = ArrowSource(self.name, pa.concat_tables(tables), self.device)
        piece.files = self.files
        return piece

    def encode(self, names: Iterable[str]) -> None:
        """As of other tables; the files are read once for all columns."""
        names = list(names)
        with self._reading:
            missing = [self._position(name) for name in dict.fromkeys(names) if not self.is_encoded(name)]
            if missing:
                table = pa.concat_tables(self._tables(missing))
                self._read = dict(zip(missing, table.columns, strict=True))
                del table
                super().encode(names)
                self._read = {}

    def _type_at(self, position: int) -> DataType:
        return field_type(self._fields[position], self._all_names[position])

    def _encode(self, position: int) -> Column:
        values = self._read.pop(position, None)
        if values is None:
            values = pa.concat_tables(self._tables([position])).column(0)
        return encode_column(self._all_names[position], values, self.device)

    def _tables(self, positions: Sequence[int]) -> Iterator[pa.Table]:
        """Columns in their types, block by block."""
        stored = [position for position in positions if position not in self._not_held]
        for number, table in self._blocks(stored or [0]):
            typed = share(self._typed, list(zip(stored, table.columns)))
            if any(each is None for each in typed):  # all values had the type when it was found
                raise FileChangedError.of(self._parts[number].path)
            columns = dict(zip(stored, typed, strict=True))
            for position in positions:
                if position in self._not_held:
                    span = number, 0, table.num_rows
                    columns[position] = self._of_files.column(self._not_held[position], [span])
            yield pa.Table.from_arrays(
                [columns[position] for position in positions],
                names=[self._all_names[position] for position in positions],
            )

    def _typed(self, column: tuple[int, pa.ChunkedArray]) -> pa.ChunkedArray | None:
        position, text = column
        convert = self._conversions.get(position)
        return text if convert is None else values_or_none(convert, text)

    def _text(self, positions: Sequence[int]) -> Iterator[pa.Table]:
        return (table for _, table in self._blocks(positions))

    def _blocks(self, positions: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
        """Columns as they are read, block by block, with the numbers of the files."""
        for number, (part, places) in enumerate(zip(self._parts, self._places, strict=True)):
            for table in part.read([places[position] for position in positions]):
                yield number, table
