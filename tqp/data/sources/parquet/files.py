"""Parquet files as registered tables: types from the metadata, columns read when first touched."""

from __future__ import annotations

import itertools
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import torch

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.keywords import lower_ascii
from tqp.core.process.memory_budget import reserve
from tqp.core.schema import ColumnFacts, RowConditions
from tqp.data.arrow_buffers import AnyArray
from tqp.data.arrow_types import field_type
from tqp.data.column import Column
from tqp.data.encoding.chosen_rows import can_be_taken, rows_of_chunks
from tqp.data.encoding.columns import encode_chunks, plain, reporting
from tqp.data.encoding.floats import FloatPieces
from tqp.data.encoding.integers import IntegerPieces, all_bounds
from tqp.data.encoding.string_views import take_rows
from tqp.data.encoding.strings import narrow_codes
from tqp.data.sharing import share, threads_at_work
from tqp.data.sources.base import Pieces, Source
from tqp.data.sources.file_columns import FileColumns, Span
from tqp.data.sources.file_identity import FileSet
from tqp.data.sources.parquet.one_file import ColumnReader, ParquetFile, Way
from tqp.data.sources.schemas import cast_like, conversions
from tqp.data.sources.streamed import TEXT_COST, NumberColumn, Parts, StreamedTable, TextColumn, is_plain_text

#: A string column whose pages take fewer bytes a row than this is certainly stored as dictionary codes: a plain string
#: takes four for its length alone.
_DICTIONARY_BYTES_PER_ROW = 4
#: Rows that one thread reads at a time at least, where row groups are smaller, and how often it comes for more of a column: a
#: file is opened for each part.
_PART_ROWS, _PARTS_PER_THREAD = 262_144, 4
#: Rows that are streamed together at least, where row groups are smaller: two of those that DuckDB writes.
_STREAMED_ROWS = 196_608


@dataclass(frozen=True, slots=True)
class _Part:
    """Some row groups of a file, read by one thread."""

    file: ParquetFile
    groups: Sequence[int]
    position: int
    cast_to: pa.DataType | None
    is_stored_decimal: bool
    #: The number of the first row in the table, and of its rows.
    first: int
    num_rows: int

    def way(self, of_others: Way) -> Way:
        """How it is read: stored decimals as such."""
        return Way.STORED if self.is_stored_decimal else of_others


class ParquetSource(Source):
    """Parquet files with the columns of the first one, and those that directories are named after.

    Rows and types come from the metadata; a column is read when first touched.
    """

    reads_rows = True

    def __init__(
        self,
        name: str,
        files: FileSet,
        device: torch.device,
        parts: Sequence[ParquetFile] | None = None,
        were_streamed: set[str] | None = None,
    ) -> None:
        """`parts`: the files, of which some row groups are to be left out; None: read from them, with all.

        `were_streamed`: names of columns, which are added to it.
        """
        self._files = [ParquetFile.open(path) for path in files.files] if parts is None else parts
        self.num_rows = sum(file.num_rows for file in self._files)
        self._num_groups = sum(len(file.groups) for file in self._files)
        #: By row groups, for as long as a program reads them; and the rows of all that there ever were.
        self._restricted: weakref.WeakValueDictionary[tuple[Sequence[int], ...], ParquetSource]
        self._restricted, self._restricted_rows = weakref.WeakValueDictionary(), 0
        self._were_streamed = set() if were_streamed is None else were_streamed
        first = self._files[0]
        self._of_files = FileColumns.of(files, first.schema.names, counts_rows=True)
        named_after = {lower_ascii(each) for each in self._of_files.partitions}
        self._positions_in_first = [
            position
            for position, column in enumerate(first.schema.names)
            if lower_ascii(column) not in named_after
        ]
        self._fields = [first.schema.field(position) for position in self._positions_in_first]
        expected = pa.schema(self._fields)
        self._conversions = [
            conversions(file.path, file.schema, first.path, expected, casts=True) for file in self._files
        ]
        self._firsts: dict[int, Sequence[int]] = {}
        #: By position, the columns that no file holds.
        self._not_held = dict(enumerate(self._of_files.values, len(self._fields)))
        super().__init__(
            name,
            [*expected.names, *self._of_files.visible],
            device,
            hidden_names=self._of_files.hidden,
        )
        self.files: FileSet = files

    def can_be_restricted(self, names: Iterable[str]) -> bool:
        """Whether there are columns that have not been read yet, and several row groups, or rows that may be chosen."""
        missing = [name for name in names if not self.is_encoded(name)]
        return bool(missing) and (self._num_groups > 1 or self.can_choose_rows(missing))

    def restricted(self, conditions: RowConditions) -> ParquetSource:
        """The table itself, or without row groups whose statistics rule out what is asked, if that leaves at most half the rows.

        Columns of such a part are read for it alone. Once parts have had as many rows as the table, it is the better choice.
        """
        positions = [
            (name, self._position(name))
            for name in conditions.columns
            if self.column_type(name).is_integer_like
        ]
        if not positions:
            return self
        parts, num_rows = [], 0
        for number, file in enumerate(self._files):
            groups = []
            for group in file.groups:
                if conditions.may_hold(self._facts(number, file, group, positions)):
                    groups.append(group)
                    num_rows += file.metadata.row_group(group).num_rows
                    if 2 * num_rows > self.num_rows:
                        return self
            parts.append(replace(file, groups=tuple(groups)))
        key = tuple(part.groups for part in parts)
        known = self._restricted.get(key)
        if known is None:
            if self._restricted_rows + num_rows > self.num_rows:
                return self
            self._restricted_rows += num_rows
            known = self._restricted[key] = self._part(parts)
        return known

    def unread_bytes(self, names: Iterable[str]) -> int:
        positions = [self._position(name) for name in names if not self.is_encoded(name)]
        return sum(size for _, _, size in self._sizes(positions))

    def pieces(self, names: Iterable[str], num_bytes: int) -> Pieces | None:
        pieces: list[dict[int, list[int]]] = [{}]
        taken = 0
        for number, group, size in self._sizes(list(map(self._position, names))):
            if taken and taken + size > num_bytes:
                pieces.append({})
                taken = 0
            pieces[-1].setdefault(number, []).append(group)
            taken += size
        if len(pieces) == 1:
            return None
        return lambda: (
            self._part(
                [replace(file, groups=piece.get(number, ())) for number, file in enumerate(self._files)]
            )
            for piece in pieces
        )

    def _sizes(self, positions: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """The bytes of some columns, before compression, in each row group, by the number of the file."""
        for number, (file, converted) in enumerate(zip(self._files, self._conversions, strict=True)):
            places = [converted[position][0] for position in positions if position not in self._not_held]
            for group in file.groups:
                yield number, group, sum(file.num_bytes(place, [group]) for place in places)

    def _part(self, files: Sequence[ParquetFile]) -> ParquetSource:
        return ParquetSource(self.name, self.files, self.device, files, self._were_streamed)

    def streamed(self, names: Iterable[str], texts: Collection[str], num_bytes: int) -> Source | None:
        found = {name: self._position(name) for name in names if not self.is_encoded(name)}
        sizes = [num_rows for _, _, num_rows in self._consecutive(_STREAMED_ROWS)]
        parts = Parts(sizes, threads_at_work() + 1)
        columns = {
            name: column
            for name, place in found.items()
            if (column := self._streamed_column(place, parts, name in texts))
        }
        are_texts = [name for name, column in columns.items() if isinstance(column, TextColumn)]
        spared = self.unread_bytes(columns) + (TEXT_COST - 1) * self.unread_bytes(are_texts)
        if spared < num_bytes or not self._were_streamed.isdisjoint(columns):
            return None
        self._were_streamed.update(columns)
        return StreamedTable(self, columns)

    def _streamed_column(
        self, position: int, parts: Parts, as_text: bool
    ) -> NumberColumn | TextColumn | None:
        """A column to be read batch by batch; None where more has to be known of its values than footers say."""
        if position in self._not_held:
            return None
        data_type, name = self._type_at(position), self.column_names[position]
        if data_type.is_string:
            stored = self._fields[position].type
            if (
                not as_text
                or self._way_of_text(position) is Way.DICTIONARY
                or not is_plain_text(stored, data_type)
            ):
                return None
            return TextColumn(
                name, data_type, parts, self._reader(position, data_type), self._may_hold_null(position)
            )
        # the bounds of numbers without a sign are not said as such
        has_bounds = data_type.is_integer_like and not any(
            pa.types.is_unsigned_integer(file.schema.field(converted[position][0]).type)
            for file, converted in zip(self._files, self._conversions, strict=True)
        )
        bounds = self._expected(position) if has_bounds else None
        if bounds is None and not data_type.is_float:
            return None
        read, nullable = self._reader(position, data_type), self._may_hold_null(position)
        part_bounds = () if bounds is None else self._bounds_of_parts(position)
        return NumberColumn(name, data_type, parts, read, bounds, nullable, part_bounds)

    def _bounds_of_parts(self, position: int) -> list[tuple[int, int] | None]:
        """Of a column of integers of which all footers tell, in the parts that are streamed; None without values."""
        return [
            all_bounds(
                facts.range
                for group in part.groups
                if (facts := part.file.facts(part.position)[group]) is not None
            )
            for part in self._parts(position, _STREAMED_ROWS)
        ]

    def _reader(self, position: int, data_type: DataType) -> Callable[[int], list[pa.Array]]:
        """Gives the chunks of a column in one of the parts that are streamed, by its number."""
        name, own_parts = self.column_names[position], self._parts(position, _STREAMED_ROWS)
        #: Open files that no thread reads at the moment.
        readers: dict[str, list[ColumnReader]] = defaultdict(list)

        def read(number: int) -> list[pa.Array]:
            part = own_parts[number]
            with part.file.reading(part.position):
                idle = readers[part.file.path]
                try:
                    reader = idle.pop()
                except IndexError:
                    reader = ColumnReader(part.file, part.position, part.way(Way.TYPED))
                chunks = reader.chunks(part.groups)
                idle.append(reader)
            with reporting(name):
                return [plain(self._cast(name, part, chunk), name, data_type) for chunk in chunks]

        return read

    def _may_hold_null(self, position: int) -> bool:
        """False where the footers say that there is no NULL."""
        return any(
            file.may_hold_null(converted[position][0])
            for file, converted in zip(self._files, self._conversions, strict=True)
        )

    def kept(self) -> list[tuple[str, str, int]]:
        """As that of other tables, with what is kept of its parts."""
        sizes: Counter[tuple[str, str]] = Counter()
        parts = [part.kept() for part in list(self._restricted.values())]
        for name, what, size in itertools.chain(super().kept(), *parts):
            sizes[name, what] += size
        return sorted(
            ((name, what, size) for (name, what), size in sizes.items()),
            key=lambda each: (self._position(each[0]), each[1:]),
        )

    def _facts(
        self, number: int, file: ParquetFile, group: int, positions: Iterable[tuple[str, int]]
    ) -> dict[str, ColumnFacts]:
        """What is known of columns of integers in a row group of the file of that number."""
        known = {}
        for name, position in positions:
            if position in self._not_held:
                span = number, self._first_rows(number)[group], file.metadata.row_group(group).num_rows
                known[name] = self._of_files.facts(self._not_held[position], span)
                continue
            place, cast_to = self._conversions[number][position]
            stored = file.schema.field(place).type
            if _is_as_stored(stored, cast_to) and not pa.types.is_unsigned_integer(stored):
                facts = file.facts(place)[group]
                if facts is not None:
                    known[name] = facts
        return known

    def _type_at(self, position: int) -> DataType:
        if position in self._not_held:
            arrow_type = self._of_files.arrow_type(self._not_held[position])
            return field_type(pa.field("", arrow_type), self._all_names[position])
        return field_type(self._fields[position], self.column_names[position])

    def _encode(self, position: int) -> Column:
        data_type = self._type_at(position)
        name = self._all_names[position]
        if position in self._not_held:
            chunks = list(self._of_files.chunks(self._not_held[position], self._spans()))
            return encode_chunks(name, chunks, data_type, self.device)
        parts = self._parts(position)
        if data_type.is_integer_like:
            return self._integers(name, position, data_type, parts).to(self.device)
        if data_type.is_float:
            return self._floats(name, data_type, parts).to(self.device)
        way = self._way_of_text(position)
        with reporting(name):
            chunks = share(lambda part: list(map(narrow_codes, self._read(name, part, way))), parts)
        return encode_chunks(name, list(itertools.chain(*chunks)), data_type, self.device)

    def chunks_of_rows(self, position: int, rows: AnyArray) -> list[pa.Array] | None:
        name = self._all_names[position]
        if position in self._not_held:
            return rows_of_chunks(list(self._of_files.chunks(self._not_held[position], self._spans())), rows)
        if not can_be_taken(self._fields[position].type):
            return None
        way = self._way_of_text(position)

        def chosen(part: _Part) -> list[pa.Array]:
            found, first = [], part.first
            for chunk in self._read(name, part, way):
                start, stop = np.searchsorted(rows, (first, first + len(chunk)))
                if start < stop:
                    found.append(narrow_codes(take_rows(chunk, rows[start:stop] - first)))
                first += len(chunk)
            return found if way is Way.DICTIONARY or len(found) < 2 else [pa.concat_arrays(found)]

        with reporting(name):
            return list(itertools.chain(*share(chosen, self._parts(position))))

    def _way_of_text(self, position: int) -> Way:
        data_type = self._type_at(position)
        is_cast = any(converted[position][1] is not None for converted in self._conversions)
        as_stored = data_type.is_string and data_type.kind is not TypeKind.BIT and not is_cast
        as_codes = as_stored and self._is_dictionary_encoded(position)
        return Way.DICTIONARY if as_codes else Way.TYPED

    def _integers(self, name: str, position: int, data_type: DataType, parts: Sequence[_Part]) -> Column:
        """A column of integers, decimals or times: each row group is narrowed while it is in the processor's cache."""
        pieces = IntegerPieces(name, data_type, self.num_rows, self._expected(position))

        def put(part: _Part) -> None:
            first = part.first
            for chunk in self._read(name, part, Way.TYPED):
                pieces.put(first, plain(chunk, name, data_type))
                first += len(chunk)

        with reporting(name):
            share(put, parts)
            return pieces.column()

    def _floats(self, name: str, data_type: DataType, parts: Sequence[_Part]) -> Column:
        """A column of floats, put together as it is read."""
        pieces = FloatPieces(data_type, self.num_rows)

        def put(part: _Part) -> None:
            first = part.first
            for chunk in self._read(name, part, Way.TYPED):
                pieces.put(first, plain(chunk, name, data_type))
                first += len(chunk)

        with reporting(name):
            share(put, parts)
            return pieces.column()

    def _read(self, name: str, part: _Part, way: Way) -> Iterator[pa.Array]:
        reserve()
        for chunk in part.file.read(part.position, part.groups, part.way(way)):
            yield self._cast(name, part, chunk)

    def _cast(self, name: str, part: _Part, chunk: pa.Array) -> pa.Array:
        return chunk if part.cast_to is None else cast_like(part.file.path, name, chunk, part.cast_to)

    def _parts(self, position: int, enough: int | None = None) -> list[_Part]:
        """The row groups of all files, consecutive ones together until they have enough rows; None: as many as a thread is to read."""
        if enough is None:
            enough = max(_PART_ROWS, self.num_rows // (_PARTS_PER_THREAD * threads_at_work()))
        parts, first = [], 0
        for number, groups, num_rows in self._consecutive(enough):
            file, (place, cast_to) = self._files[number], self._conversions[number][position]
            stored = cast_to is None and file.is_stored_decimal(place)
            parts.append(_Part(file, groups, place, cast_to, stored, first, num_rows))
            first += num_rows
        return parts

    def _consecutive(self, enough: int) -> Iterator[tuple[int, Sequence[int], int]]:
        """As for `_parts`: the number of a file, row groups of it, and their rows."""
        for number, file in enumerate(self._files):
            groups: list[int] = []
            num_rows = 0
            for group in file.groups:
                groups.append(group)
                num_rows += file.metadata.row_group(group).num_rows
                if num_rows >= enough or group == file.groups[-1]:
                    yield number, groups, num_rows
                    groups, num_rows = [], 0

    def _expected(self, position: int) -> tuple[int, int] | None:
        """Bounds of a column of integers as the statistics of all files have them."""
        found = []
        for file, converted in zip(self._files, self._conversions, strict=True):
            place, cast_to = converted[position]
            if file.num_rows:
                known = _is_as_stored(file.schema.field(place).type, cast_to)
                bounds = file.bounds(place) if known else None
                if bounds is None:
                    return None
                found.append(bounds)
        return all_bounds(found)

    def _spans(self) -> Iterator[Span]:
        """Which rows of which file the row groups have."""
        for number, file in enumerate(self._files):
            for group in file.groups:
                yield number, self._first_rows(number)[group], file.metadata.row_group(group).num_rows

    def _first_rows(self, number: int) -> Sequence[int]:
        """The number of the first row of each row group of a file in it."""
        found = self._firsts.get(number)
        if found is None:
            metadata = self._files[number].metadata
            sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
            found = self._firsts[number] = list(itertools.accumulate(sizes, initial=0))
        return found

    def _is_dictionary_encoded(self, position: int) -> bool:
        """Whether the files hold (nearly) all of a string column as codes, which are quick to read as such."""
        places = [
            (file, converted[position][0])
            for file, converted in zip(self._files, self._conversions, strict=True)
        ]
        num_bytes = sum(file.num_bytes(place, file.groups) for file, place in places)
        num_rows = sum(file.num_rows for file, _ in places)
        return num_bytes < _DICTIONARY_BYTES_PER_ROW * num_rows


def _is_as_stored(stored: pa.DataType, cast_to: pa.DataType | None) -> bool:
    """Whether what a footer says of integers holds for the column: they are at most made wider or narrower."""
    return cast_to is None or (pa.types.is_integer(stored) and pa.types.is_integer(cast_to))
