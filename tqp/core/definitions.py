"""What a table made by CREATE TABLE was declared to be: columns, defaults, constraints. Expressions are kept as SQL."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tqp.core.datatypes import DataType
from tqp.core.errors import BindError, nearest
from tqp.core.keywords import lower_ascii
from tqp.core.names import MAIN, ObjectName


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """`default`: the SQL of an expression; None stands for NULL."""

    name: str
    data_type: DataType
    nullable: bool = True
    default: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class GeneratedColumn:
    """A column of which nothing is stored: where it stands among all columns, and the SQL of what it is computed by."""

    place: int
    column: ColumnDefinition
    expression: str


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """Columns whose values no two rows have in common; NULLs are not compared."""

    columns: tuple[str, ...]
    is_primary: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns whose values, where none is NULL, are those of a key of a row of another table, or of the same one."""

    columns: tuple[str, ...]
    table: str
    schema: str
    temporary: bool
    #: The columns of the key, in the order of `columns`.
    referenced: tuple[str, ...]

    @property
    def place(self) -> ObjectName:
        """What a catalog keeps the table under."""
        return ObjectName.of(self.table, self.schema, self.temporary)


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index, of which nothing is stored. `items`: the SQL of its columns and other expressions; `unique`: the columns that a unique one keeps apart."""

    name: str
    items: tuple[str, ...]
    unique: UniqueKey | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """`columns`: those that are stored; `checks`: the SQL of conditions that are false for no row."""

    name: str
    columns: tuple[ColumnDefinition, ...]
    keys: tuple[UniqueKey, ...] = ()
    checks: tuple[str, ...] = ()
    temporary: bool = False
    schema: str = MAIN
    indexes: tuple[IndexDefinition, ...] = ()
    #: Each after those that it reads.
    generated: tuple[GeneratedColumn, ...] = ()
    comment: str | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()

    @property
    def place(self) -> ObjectName:
        """What a catalog keeps it under."""
        return ObjectName.of(self.name, self.schema, self.temporary)

    @property
    def unique_keys(self) -> tuple[UniqueKey, ...]:
        """Those of the table and of its indexes."""
        return (*self.keys, *(index.unique for index in self.indexes if index.unique is not None))

    @property
    def all_columns(self) -> tuple[ColumnDefinition, ...]:
        """The columns that are stored, and those that are generated, each at its place."""
        found = list(self.columns)
        for each in sorted(self.generated, key=lambda each: each.place):
            found.insert(each.place, each.column)
        return tuple(found)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def place_of(self, name: str, span: tuple[int, int] | None = None) -> int:
        """Where the column stands, ignoring case. Raises BindError if there is none."""
        for place, column in enumerate(self.columns):
            if lower_ascii(column.name) == lower_ascii(name):
                return place
        if any(lower_ascii(each.column.name) == lower_ascii(name) for each in self.generated):
            raise BindError(
                f'column "{name}" of table "{self.name}" is generated, which is not possible here', span
            )
        raise BindError(f'table "{self.name}" has no column "{name}"' + nearest(name, self.names), span)

    def column(self, name: str, span: tuple[int, int] | None = None) -> ColumnDefinition:
        """The column of that name, ignoring case, be it stored or generated. Raises BindError if there is none."""
        for column in self.all_columns:
            if lower_ascii(column.name) == lower_ascii(name):
                return column
        return self.columns[self.place_of(name, span)]

    def changed(self, old: ColumnDefinition, new: ColumnDefinition) -> TableDefinition:
        """With another definition of a column, be it stored or generated."""
        columns = tuple(new if each is old else each for each in self.columns)
        generated = tuple(
            replace(each, column=new) if each.column is old else each for each in self.generated
        )
        return replace(self, columns=columns, generated=generated)

    def has_column(self, name: str) -> bool:
        """Whether there is a column of that name, ignoring case."""
        return any(lower_ascii(name) == lower_ascii(each.name) for each in self.all_columns)


@dataclass(frozen=True, slots=True)
class SequenceDefinition:
    """Numbers from `start` by `increment`, none outside the bounds; one that `cycles` begins at the other bound again."""

    name: str
    start: int
    increment: int
    minimum: int
    maximum: int
    cycles: bool = False
    temporary: bool = False
    schema: str = MAIN

    @property
    def place(self) -> ObjectName:
        """What a catalog keeps it under."""
        return ObjectName.of(self.name, self.schema, self.temporary)


@dataclass(frozen=True, slots=True)
class PreparedText:
    """A statement of PREPARE. `types`: of its columns; None where only values tell it."""

    name: str
    text: str
    num_parameters: int
    types: tuple[DataType | None, ...] | None
