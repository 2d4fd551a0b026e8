"""One case of `tqp bench operators`."""

from __future__ import annotations

from dataclasses import dataclass

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
