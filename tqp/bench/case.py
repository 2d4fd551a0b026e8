"""One case of `tqp bench`, and data sets with their cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tqp.measuring.query import Query


@dataclass(frozen=True, slots=True)
class Case:
    """A query over the tables of one data set; `table` is the one whose rows the operator works on."""

    name: str
    table: str
    text: str

    def query(self, number: int) -> Query:
        """The case as what measuring takes."""
        return Query(number, self.name, self.text)


#: Makes tables by name, for a number of rows.
MakeTables = Callable[[int], Mapping[str, pa.Table]]

#: Data sets with the cases that run on each.
Suites = Sequence[tuple[MakeTables, Sequence[Case]]]
