"""Files of text that are read in blocks of rows, and what holds of all blocks of a column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from tqp.core.process.memory_budget import reserve
from tqp.data.sharing import share
from tqp.data.sources.file_identity import reading
from tqp.data.sources.file_systems import Identity
from tqp.data.sources.text.csv_types import converted
from tqp.data.sources.text.date_forms import Convert


class FileInBlocks(ABC):
    """A file, of which some columns are read at a time."""

    #: Its columns as they are read; some of text may become others.
    schema: pa.Schema
    #: Known once all rows were read.
    num_rows: int | None = None

    def __init__(self, path: str, identity: Identity) -> None:
        self.path, self.identity = path, identity
        #: By position, the bytes of each column of which all rows were read, as it is read.
        self.num_bytes: dict[int, int] = {}

    def conversions(self, position: int) -> Sequence[Convert]:
        """What the column at `position` may be made of its text, in the order in which that is tried."""
        return ()

    def read(self, positions: Sequence[int]) -> Iterator[pa.Table]:
        """Blocks of some columns, at least one, in their order. Raises ExecutionError where the file cannot be read in blocks."""
        num_rows, num_bytes = 0, [0] * len(positions)
        with reading(self.path, self.identity):
            for table in self._blocks(positions):
                reserve()
                num_rows += table.num_rows
                for place, column in enumerate(table.columns):
                    num_bytes[place] += column.nbytes
                yield table
        self.num_rows = num_rows
        self.num_bytes.update(zip(positions, num_bytes, strict=True))

    @abstractmethod
    def _blocks(self, positions: Sequence[int]) -> Iterator[pa.Table]:
        """See `read`."""


def find_conversions(
    read: Callable[[Sequence[int]], Iterator[pa.Table]], tried: Mapping[int, Sequence[Convert]]
) -> dict[int, Convert]:
    """By column, the first conversion that every value has, in all blocks; none of columns that stay text.

    `read` gives the blocks of some columns. Where a block refutes what others told, these are read again, unless only text is left.
    """
    places, are_null = dict.fromkeys(tried, 0), set(tried)
    #: How many blocks are to be asked; None: all.
    asked: dict[int, int | None] = dict.fromkeys(tried)
    while asked:
        columns, again = list(asked), dict[int, int | None]()
        for number, table in enumerate(read(columns)):
            left = [each for each in columns if (most := asked[each]) is None or number < most]
            if not left:
                break

            def look(column: int, table: pa.Table = table, columns: Sequence[int] = columns) -> int:
                values = table.column(columns.index(column))
                if values.null_count == len(values):
                    return places[column]
                are_null.discard(column)
                return converted(values, tried[column], places[column])[0]

            for column, place in zip(left, share(look, left), strict=True):
                if place != places[column]:
                    places[column] = place
                    # Blocks that were not among those asked have told only that the places before hold.
                    again[column] = number if asked[column] is None else None
        asked = {
            column: most
            for column, most in again.items()
            if most != 0 and places[column] < len(tried[column])
        }
    return {
        column: tried[column][place]
        for column, place in places.items()
        if column not in are_null and place < len(tried[column])
    }
