"""Columns that files do not hold: what directories are named after, the name and number of each row's file, and the row's number in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii
from tqp.core.schema import ColumnFacts
from tqp.data.sources.file_identity import FileSet
from tqp.data.sources.hive_partitions import partition_columns

_NAME, _INDEX, _ROW = "filename", "file_index", "file_row_number"

_TEXT = pa.dictionary(pa.int8(), pa.string())

#: Consecutive rows of one file: the number of the file, of the first of them in it, and how many they are.
Span = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class FileColumns:
    """By name in order, the value for each file; None: the rows of each file are counted.

    The last ones, from `num_visible` on, may be named, and `*` does not stand for them.
    """

    values: Mapping[str, pa.Array | None]
    num_visible: int
    #: Those that directories are named after, which take the place of columns of a file.
    partitions: Sequence[str]

    @staticmethod
    def of(files: FileSet, own: Iterable[str], *, counts_rows: bool) -> FileColumns:
        """Beside columns with the names `own`, but for those that `partitions` takes the place of.

        Raises BindError where one of them is to have the name that an option says.
        """
        own = set(map(lower_ascii, own))
        options, paths = files.options, pa.array(files.files, pa.string())
        values: dict[str, pa.Array | None] = dict(partition_columns(files.files, options))
        partitions = list(values)
        if options.row_numbers:
            values[_ROW] = None
        if options.filename:
            if lower_ascii(options.filename) in own:
                raise BindError(
                    f'the option filename adds a column "{options.filename}", and the files have one of that name;'
                    " filename = 'another name' says what it is to be called"
                )
            values[options.filename] = paths
        num_visible, taken = len(values), own | set(map(lower_ascii, values))
        hidden = {
            _NAME: paths,
            _INDEX: pa.array(range(len(files.files)), pa.uint64()),
            _ROW: None,
        }
        if options.filename:
            del hidden[_NAME]
        if not counts_rows:
            del hidden[_ROW]
        values |= {name: each for name, each in hidden.items() if name not in taken}
        return FileColumns(values, num_visible, partitions)

    @property
    def visible(self) -> Sequence[str]:
        return list(self.values)[: self.num_visible]

    @property
    def hidden(self) -> Sequence[str]:
        return list(self.values)[self.num_visible :]

    def arrow_type(self, name: str) -> pa.DataType:
        """As which its values come."""
        values = self.values[name]
        if values is None:
            return pa.int64()
        return _TEXT if pa.types.is_string(values.type) else values.type

    def facts(self, name: str, span: Span) -> ColumnFacts:
        """What is known of integers in these rows."""
        values, (number, first, num_rows) = self.values[name], span
        if values is None:
            return ColumnFacts(first, first + num_rows - 1)
        value = values.cast(pa.int64())[number].as_py()
        return ColumnFacts(is_null=True) if value is None else ColumnFacts(value, value)

    def chunks(self, name: str, spans: Iterable[Span]) -> Iterator[pa.Array]:
        """Its values for these rows: texts as a dictionary of one."""
        values = self.values[name]
        for number, first, num_rows in spans:
            if values is None:
                yield pa.array(np.arange(first, first + num_rows))
            elif pa.types.is_string(values.type):
                code = pa.scalar(0 if values[number].is_valid else None, pa.int8())
                only = values.slice(number, 1).fill_null("")
                yield pa.DictionaryArray.from_arrays(pa.repeat(code, num_rows), only)
            else:
                yield pa.repeat(values[number], num_rows)

    def column(self, name: str, spans: Iterable[Span]) -> pa.ChunkedArray:

        return pa.chunked_array(self.chunks(name, spans), self.arrow_type(name))
