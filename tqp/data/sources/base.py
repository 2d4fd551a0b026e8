"""What every registered table has in common: unique column names, and columns encoded once, when first touched."""

from __future__ import annotations

import itertools
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import torch
from torch import Tensor

from tqp.core.arguments import check_text, unique_names
from tqp.core.datatypes import DataType
from tqp.core.errors import BindError, Error, nearest
from tqp.core.names import ObjectName
from tqp.core.process.forks import renew_after_fork
from tqp.core.process.memory_budget import note_freed
from tqp.core.process.progress import Steps
from tqp.core.schema import ColumnEstimates, ColumnFacts, RowConditions
from tqp.data.arrow_buffers import AnyArray
from tqp.data.column import Column
from tqp.data.encoding.chosen_rows import rows_of_column
from tqp.data.encoding.columns import encode_chunks
from tqp.data.encoding.value_dictionary import ValueDictionary, make_value_dictionary
from tqp.data.encoding.zones import Zones, zones_of_column
from tqp.data.sharing import Handout, share
from tqp.data.sources.file_identity import FileSet

#: Rows from which encoding a column takes longer than waking a thread: one of text takes so many times as long.
_WORTH_WORKERS, _TIMES_OF_TEXT = 16_384, 8

#: Rows from which it takes less time to find those that a query wants first than to encode its other columns whole.
WORTH_CHOOSING = 100_000


#: A column, or what is found of one and kept beside it; both say as `nbytes` what they take, and as `KEPT` what they are.
Found = TypeVar("Found")

#: Two tables must never have the same: compiled queries are known by the versions of their tables.
_versions = Handout(itertools.count(1))


class EncodedColumns:
    """The columns of one immutable table on one device, each encoded at most once; shared by all who register it."""

    def __init__(self, num_columns: int) -> None:
        self.version = next(_versions)
        #: By the column's place and its own type, `Column` or another.
        self._found: dict[tuple[int, Any], Any] = {}
        self._num_columns = num_columns
        #: Columns, by their places, that a query has read batch by batch.
        self.streamed: set[int] = set()
        self.wished: set[int] = set()  # columns of which a query has asked for a dictionary
        weakref.finalize(self, _note_freed, self._found).atexit = False
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """A thread of the parent may have been encoding a column: it will never give its lock back here."""
        self._locks = [threading.Lock() for _ in range(self._num_columns)]

    def peek(self, index: int, kind: type[Found]) -> Found | None:
        """What is known of that `kind` of the column at `index`; None if nobody has asked for it."""
        return self._found.get((index, kind))

    def get(self, index: int, kind: type[Found], make: Callable[[], Found]) -> Found:
        """What is known of that `kind` of the column at `index`, from `make()` if nobody has asked before; one caller at a time."""
        found: Found | None = self._found.get((index, kind))
        if found is None:
            with self._locks[index]:
                found = self._found.get((index, kind))
                if found is None:
                    found = self._found[index, kind] = make()
        return found

    @property
    def memory_bytes(self) -> int:
        return _bytes_of(self._found)

    def kept(self) -> list[tuple[int, str, int]]:
        """What is kept now: of which column, what, and its bytes."""
        return [(index, kind.KEPT, item.nbytes) for (index, kind), item in list(self._found.items())]


def _bytes_of(found: Mapping[tuple[int, Any], Any]) -> int:
    return sum(item.nbytes for item in list(found.values()))


def _note_freed(found: Mapping[tuple[int, Any], Any]) -> None:
    note_freed(_bytes_of(found))


#: Gives the parts of a table, one after the other: each is made when it is asked for, and kept by nobody.
Pieces = Callable[[], Iterator["Source"]]


class Source(ABC):
    """A registered table; subclasses say how to read a column. Implements `tqp.core.schema.TableSource`.

    Safe to use from several threads. Column names are made unique ignoring case, as SQL needs and DuckDB does.
    """

    #: Exact; subclasses set it.
    num_rows: int
    #: Whether some rows of a column can be read without encoding all: `chunks_of_rows`.
    reads_rows = False
    #: Whether columns are read batch by batch, so that no rows of them can be read afterwards: see `streamed`.
    is_streamed = False
    #: Whether it has columns that are computed when they are read, so that it is read as a view is.
    has_generated = False

    def __init__(
        self,
        name: str,
        names: Iterable[object],
        device: torch.device,
        encoded: EncodedColumns | None = None,
        hidden_names: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.hidden_names = hidden_names
        self.device = device
        #: The files that this is read from, if any; see `tqp.data.sources.files.up_to_date`.
        self.files: FileSet | None = None
        #: Why they cannot be read any more, if so: what a query that names the table raises.
        self.error: Error | None = None
        self.column_names: Sequence[str] = unique_names(names)
        for column in self.column_names:
            check_text(f'table "{name}": the name of a column', column)
        self._all_names = (*self.column_names, *hidden_names)
        self._positions = {column: position for position, column in enumerate(self._all_names)}
        self._read_for_rows: set[str] = set()
        self._encoded = encoded if encoded is not None else EncodedColumns(len(self._all_names))

    @property
    def version(self) -> int:
        """Differs between objects with different contents; the same when one immutable table is registered again."""
        return self._encoded.version

    @property
    def memory_bytes(self) -> int:
        """What the columns encoded so far take."""
        return self._encoded.memory_bytes

    def kept(self) -> list[tuple[str, str, int]]:
        """Of which columns what is kept, and its bytes, in the order of the columns."""
        return [(self._all_names[index], what, size) for index, what, size in sorted(self._encoded.kept())]

    def column_type(self, name: str) -> DataType:
        """Raises UnsupportedError naming the column if tqp has no type for it. Encodes nothing."""
        position = self._position(name)
        column = self._encoded.peek(position, Column)
        return column.data_type if column is not None else self._type_at(position)

    def column_nullable(self, name: str) -> bool:
        return self.column(name).validity is not None

    def column_facts(self, name: str) -> ColumnFacts:
        return self.column(name).facts

    def column_estimates(self, name: str) -> ColumnEstimates:
        return self.column(name).estimates

    def can_be_restricted(self, names: Iterable[str]) -> bool:
        """See `tqp.core.schema.TableSource.can_be_restricted`."""
        return self.can_choose_rows(names)

    def can_choose_rows(self, names: Iterable[str]) -> bool:
        """Whether a query that reads these columns may do so for the rows that it wants only.

        Each column is read so once at most: what a second query asks for is worth to be encoded whole.
        """
        if not self.reads_rows or self.num_rows < WORTH_CHOOSING:
            return False
        missing = [name for name in names if not self.is_encoded(name)]
        return bool(missing) and self._read_for_rows.isdisjoint(missing)

    def column_of_rows(self, name: str, rows: AnyArray) -> Column:
        """Some rows of a column, by their numbers, int64 ascending: of a column that is not encoded, they alone are."""
        position = self._position(name)
        column = self._encoded.peek(position, Column)
        if column is None:
            self._read_for_rows.add(name)
            chunks = self.chunks_of_rows(position, rows)
            if chunks is not None:
                return encode_chunks(name, chunks, self.column_type(name), self.device)
            column = self.column(name)
        return rows_of_column(column, rows)

    def chunks_of_rows(self, position: int, rows: AnyArray) -> list[pa.Array] | None:
        """Some rows of a column that nobody has encoded, as Arrow arrays; None where all had better be encoded."""
        raise NotImplementedError

    def restricted(self, conditions: RowConditions) -> Source:
        """See `tqp.core.schema.TableSource.restricted`."""
        return self

    def unread_bytes(self, names: Iterable[str]) -> int:
        """What it takes to hold those of the columns that are read from files and have not been yet."""
        return 0

    def pieces(self, names: Iterable[str], num_bytes: int) -> Pieces | None:
        """The rows in consecutive parts, each of which takes about so many bytes to hold these columns of; None where the table
        cannot be read in parts."""
        return None

    @property
    def place(self) -> ObjectName:
        """What a catalog keeps it under."""
        return ObjectName.of(self.name)

    def is_encoded(self, name: str) -> bool:
        """Whether the column is encoded already."""
        return self._encoded.peek(self._position(name), Column) is not None

    def dictionary_encode(self, name: str) -> bool:
        position = self._position(name)
        if position not in self._encoded.wished:
            self._encoded.wished.add(position)
            return False
        self.value_dictionary(name)
        return True

    def dictionary_size(self, name: str) -> int | None:
        found = self._encoded.peek(self._position(name), ValueDictionary)
        return None if found is None else found.values.shape[0]

    def value_dictionary(self, name: str) -> ValueDictionary:
        """See `dictionary_encode`: found once, kept as long as the column."""
        return self.derived(name, ValueDictionary, make_value_dictionary)

    def column(self, name: str) -> Column:
        """The encoded column on the source's device."""
        position = self._position(name)
        return self._encoded.get(position, Column, lambda: self._encode(position))

    def stored(self, name: str) -> tuple[Any, Any]:
        """What a program reads of a column: its values, and its validity if there may be NULLs; tensors, or `Streamed`."""
        column = self.column(name)
        return (column.values if column.nested is None else column.nested), column.validity

    def streamed(self, names: Iterable[str], texts: Collection[str], num_bytes: int) -> Source | None:
        """The table with what it can of these columns read batch by batch on the CPU, for one program that reads each row once.

        `texts`: the columns of text that may be. None unless that is of as many bytes, and of columns that are neither encoded nor
        were streamed before: what a second query asks for is worth to be encoded.
        """
        return None

    def plain_texts(self, name: str) -> Sequence[pa.Array] | None:
        """A column of text that nobody has encoded, as Arrow arrays of slices of bytes; None of any other."""
        return None

    def note_streamed(self, names: Iterable[str]) -> bool:
        """Note that a query reads these columns batch by batch, the first one that does: False if one has before."""
        positions = {self._position(name) for name in names}
        is_first = self._encoded.streamed.isdisjoint(positions)
        self._encoded.streamed |= positions
        return is_first

    def with_gradient(self, name: str) -> Tensor | None:
        """The column as a tensor that requires a gradient, on the source's device; None of all other columns."""
        return None

    def derived(self, name: str, kind: type[Found], make: Callable[[Column], Found]) -> Found:
        """Something of a `kind` that `make` finds of the encoded column: made once, kept as long as the column."""
        column = self.column(name)
        return self._encoded.get(self._position(name), kind, lambda: make(column))

    def zones(self, name: str) -> Zones:
        """The zones of a column of integers in main memory."""
        return self.derived(name, Zones, zones_of_column)

    def encode(self, names: Iterable[str]) -> None:
        """Encode the columns that are not yet, several at a time."""
        missing = [name for name in dict.fromkeys(names) if not self.is_encoded(name)]
        with_text = any(self.column_type(name).is_string for name in missing)
        if self.num_rows * (_TIMES_OF_TEXT if with_text else 1) >= _WORTH_WORKERS:
            progress = Steps(f"reading {self.name}", len(missing))

            def read(name: str) -> None:
                progress.begin()
                self.column(name)

            with progress:
                share(read, missing)
        else:
            for name in missing:
                self.column(name)

    def _position(self, name: str) -> int:
        position = self._positions.get(name)
        if position is None:
            raise BindError(f'table "{self.name}" has no column "{name}"' + nearest(name, self.column_names))
        return position

    @abstractmethod
    def _type_at(self, position: int) -> DataType:
        """The type of a column that is not encoded yet."""

    @abstractmethod
    def _encode(self, position: int) -> Column:
        """Read and encode a column; called once."""
