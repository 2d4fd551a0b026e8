"""Fields (a column as the planner sees it), what is known about their values, and tables as the planner sees them.

Soundness: `ColumnFacts` and a field's `nullable` are what code generation relies on (they choose widths, prove that
nothing overflows, and pick join algorithms). `ColumnEstimates` may only steer cost, and code generation does not read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tqp.core.datatypes import DataType
from tqp.core.frozen import dataclass
from tqp.core.names import ObjectName


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What is certain of a column's values. `None` means unknown.

    `minimum`/`maximum` are storage values of integer-like types (a scaled integer for decimals, days for dates), NULLs
    left out. For strings, `dictionary_size` is the number of entries when the column is dictionary-encoded.
    """

    minimum: int | None = None
    maximum: int | None = None
    is_unique: bool = False  # no two rows hold the same non-NULL value
    is_sorted: bool = False  # ascending, duplicates allowed, no NULLs
    dictionary_size: int | None = None
    is_null: bool = False  # NULL in every row
    is_checked: bool = False  # computing a value may raise, so that what the range decides must not drop it
    #: Of each field of structs, or of the elements of lists; empty where nothing is known.
    inner: tuple[InnerFacts, ...] = ()
    longest: int | None = None  # of lists: no list has more elements

    @property
    def range(self) -> tuple[int, int] | None:
        """(`minimum`, `maximum`), if they are known."""
        return None if self.minimum is None or self.maximum is None else (self.minimum, self.maximum)

    def between(self, minimum: int | None, maximum: int | None, is_sorted: bool) -> ColumnFacts:
        """With another range and order."""
        return ColumnFacts(
            minimum,
            maximum,
            self.is_unique,
            is_sorted,
            self.dictionary_size,
            self.is_null,
            self.is_checked,
            self.inner,
            self.longest,
        )

    def weakened(self, is_unique: bool, is_sorted: bool) -> ColumnFacts:
        """With uniqueness and order kept only if allowed."""
        return ColumnFacts(
            self.minimum,
            self.maximum,
            self.is_unique and is_unique,
            self.is_sorted and is_sorted,
            self.dictionary_size,
            self.is_null,
            self.is_checked,
            self.inner,
            self.longest,
        )


@dataclass(frozen=True, slots=True)
class InnerFacts:
    """What is certain of the values inside of nested ones: their range, whether they may be NULL where what holds them is not, and what they hold."""

    nullable: bool = True
    minimum: int | None = None
    maximum: int | None = None
    inner: tuple[InnerFacts, ...] = ()

    @property
    def range(self) -> tuple[int, int] | None:
        """(`minimum`, `maximum`), if they are known."""
        return None if self.minimum is None or self.maximum is None else (self.minimum, self.maximum)

    @property
    def facts(self) -> ColumnFacts:
        """As facts of a column of the values."""
        return ColumnFacts(self.minimum, self.maximum, inner=self.inner)

    @classmethod
    def of(cls, nullable: bool, facts: ColumnFacts) -> InnerFacts:
        """Of what is certain of the values as a column."""
        return cls(nullable, facts.minimum, facts.maximum, facts.inner)


@dataclass(frozen=True, slots=True)
class ColumnEstimates:
    """What is probable of a column's values; may only steer cost. `None` means unknown."""

    distinct_count: float | None = None
    #: Values that clearly more rows hold than the mean value's, as literals have them, each with its share of all rows.
    frequent: tuple[tuple[int | str | bytes, float], ...] = ()
    #: How far apart the values of rows are that lie near each other, as a share of the range: a third where rows are in no order.
    distance: float | None = None


NO_FACTS = ColumnFacts()
NO_ESTIMATES = ColumnEstimates()

Statistics = tuple[ColumnFacts, ColumnEstimates]


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a plan: identified by `id`, unique within a query; `name` is for display only."""

    id: int
    name: str
    data_type: DataType
    nullable: bool = True
    facts: ColumnFacts = NO_FACTS
    estimates: ColumnEstimates = NO_ESTIMATES

    def known(self, nullable: bool, facts: ColumnFacts, estimates: ColumnEstimates) -> Field:
        """The field with what is known of its values."""
        return Field(self.id, self.name, self.data_type, nullable, facts, estimates)


Schema = tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class ValueCondition:
    """A condition on one column, which raises for no value.

    `function`: "is_null" or "is_not_null"; a comparison ("equal", "not_equal", "less", "less_equal", "greater" or
    "greater_equal") with the one of `values`; or "in", which holds for each of these. They are not NULL, and are storage
    values of the column's own type.
    """

    column: str
    function: str
    values: tuple[int | str, ...] = ()


class RowConditions(Protocol):
    """What a query asks of the rows of a table."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that something is asked of."""
        ...

    def may_hold(self, facts: Mapping[str, ColumnFacts]) -> bool:
        """False: the query wants none of some rows of whose columns so much is known; of one that is missing, nothing is."""
        ...

    @property
    def alternatives(self) -> tuple[tuple[ValueCondition, ...], ...]:
        """Of each row that the query wants, all conditions of one of these hold: what is simple of what it asks."""
        ...


class TableSource(Protocol):
    """What the planner may ask of a registered table. Implemented by `tqp.data`; free of torch here."""

    @property
    def name(self) -> str: ...

    @property
    def place(self) -> ObjectName:
        """What a catalog keeps it under."""
        ...

    @property
    def num_rows(self) -> int:
        """Exact."""
        ...

    @property
    def column_names(self) -> Sequence[str]: ...

    @property
    def hidden_names(self) -> Sequence[str]:
        """Columns that a query may name, and that `*` does not stand for."""
        ...

    def column_type(self, name: str) -> DataType:
        """Raises UnsupportedError, naming the column, if there is no type for it. Encodes nothing."""
        ...

    def encode(self, names: Iterable[str]) -> None:
        """Read these columns, several at a time: what follows can be asked of them from now on without a scan."""
        ...

    def can_be_restricted(self, names: Iterable[str]) -> bool:
        """Whether `restricted` may be of use to a query that reads these columns: asked of each query, so that it is quick."""
        ...

    def restricted(self, conditions: RowConditions) -> TableSource:
        """The table, or one that lacks rows which no query with these conditions wants; reads no column."""
        ...

    def column_nullable(self, name: str) -> bool:
        """Exact: False promises there is no NULL."""
        ...

    def column_facts(self, name: str) -> ColumnFacts: ...

    def column_estimates(self, name: str) -> ColumnEstimates: ...

    def dictionary_encode(self, name: str) -> bool:
        """Make a dictionary of a column of integers of up to 64 bits, or of strings without one, and keep it: is it there now?

        The first query that asks for it makes none, as it takes longer than it spares one query.
        """
        ...

    def dictionary_size(self, name: str) -> int | None:
        """How many distinct values it holds; None if there is none, 0 if its values can have none."""
        ...
