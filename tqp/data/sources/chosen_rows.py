"""Some rows of another table as a table: what a query that was never seen wants of one that is not encoded yet."""

from __future__ import annotations

from tqp.core.datatypes import DataType
from tqp.data.arrow_buffers import AnyArray
from tqp.data.column import Column
from tqp.data.sources.base import Source


class ChosenRows(Source):
    """Rows of `table` by their numbers, int64 ascending. Columns are read for these alone, and go with the query."""

    def __init__(self, table: Source, rows: AnyArray) -> None:
        super().__init__(table.name, table.column_names, table.device, hidden_names=table.hidden_names)
        self.num_rows, self.files = len(rows), table.files
        self._table, self._rows = table, rows

    def _type_at(self, position: int) -> DataType:
        return self._table.column_type(self._all_names[position])

    def _encode(self, position: int) -> Column:
        return self._table.column_of_rows(self._all_names[position], self._rows)
