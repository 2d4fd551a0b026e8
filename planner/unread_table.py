"""A table of which no column is read: what a query is planned over that is to be run for pieces of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tqp.core.datatypes import DataType
from tqp.core.names import ObjectName
from tqp.core.schema import NO_ESTIMATES, NO_FACTS, ColumnEstimates, ColumnFacts, RowConditions, TableSource


@dataclass(frozen=True, slots=True, eq=False)
class UnreadTable:
    """Says of its columns what binding asks for, and nothing of their values, so that a plan over it holds of every piece."""

    table: TableSource

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def place(self) -> ObjectName:
        return self.table.place

    @property
    def num_rows(self) -> int:
        return self.table.num_rows

    @property
    def column_names(self) -> Sequence[str]:
        return self.table.column_names

    @property
    def hidden_names(self) -> Sequence[str]:
        return self.table.hidden_names

    def column_type(self, name: str) -> DataType:
        return self.table.column_type(name)

    def encode(self, names: Iterable[str]) -> None:
        pass

    def can_be_restricted(self, names: Iterable[str]) -> bool:
        return False

    def restricted(self, conditions: RowConditions) -> TableSource:
        return self

    def column_nullable(self, name: str) -> bool:
        return True

    def column_facts(self, name: str) -> ColumnFacts:
        return NO_FACTS

    def column_estimates(self, name: str) -> ColumnEstimates:
        return NO_ESTIMATES

    def dictionary_encode(self, name: str) -> bool:
        return False

    def dictionary_size(self, name: str) -> int | None:
        return None
