"""What statements say that change rows: INSERT, UPDATE, DELETE and MERGE, and WITH around them; see `clauses`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from tqp.planner.syntax.parts import Name, Part


@dataclass(frozen=True, slots=True)
class Assignment:
    """column = value, where None stands for DEFAULT."""

    column: Name
    value: Part | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """What becomes of a row whose key is there. `columns`: of the key; None for every key.

    `assignments`: of DO UPDATE, those of OR REPLACE being None for all columns that are given; `ignores`: of DO NOTHING.
    """

    columns: tuple[Name, ...] | None
    ignores: bool
    assignments: tuple[Assignment, ...] | None = None
    condition: Part | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """`rows`: of VALUES, each its expressions; `query`: any other; neither of DEFAULT VALUES."""

    table: Name
    alias: Name | None
    columns: tuple[Name, ...] | None
    by_name: bool
    rows: tuple[tuple[Part, ...], ...] | None
    query: Part | None
    conflict: Conflict | None
    returning: Part | None


@dataclass(frozen=True, slots=True)
class Update:
    """`others`: the tables of FROM."""

    table: Name
    alias: Name | None
    assignments: tuple[Assignment, ...]
    others: Part | None
    condition: Part | None
    returning: Part | None


@dataclass(frozen=True, slots=True)
class Delete:
    """`others`: the tables of USING. TRUNCATE is one without a condition."""

    table: Name
    alias: Name | None = None
    others: Part | None = None
    condition: Part | None = None
    returning: Part | None = None


@dataclass(frozen=True, slots=True)
class UpdateRow:
    """UPDATE of MERGE; without `assignments` all columns, or with `by_name` those that the source has, from the source."""

    assignments: tuple[Assignment, ...] | None
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class DeleteRow:
    """DELETE of MERGE."""


@dataclass(frozen=True, slots=True)
class InsertRow:
    """INSERT of MERGE: `values` for some or all columns, or without them the row of the source. Other columns get defaults."""

    columns: tuple[Name, ...] | None
    values: tuple[Part, ...] | None
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class DoNothing:
    """DO NOTHING of MERGE."""


@dataclass(frozen=True, slots=True)
class RaiseError:
    """ERROR of MERGE, which any row makes fail."""

    message: Part | None


MergeAction = UpdateRow | DeleteRow | InsertRow | DoNothing | RaiseError
#: Rows of the table with their partners in the source, and the rows of either that the other has no partner for.
Match = OneOf["MATCHED", "NOT MATCHED BY SOURCE", "NOT MATCHED BY TARGET"]


@dataclass(frozen=True, slots=True)
class MergeBranch:
    """WHEN ... AND condition THEN action."""

    match: Match
    condition: Part | None
    action: MergeAction


@dataclass(frozen=True, slots=True)
class Merge:
    """`partners`: ON condition, or USING (columns). A row takes the first branch of its kind whose condition holds."""

    table: Name
    alias: Name | None
    source: Part
    partners: Part
    branches: tuple[MergeBranch, ...]
    returning: Part | None


#: A statement that changes rows.
Change = Insert | Update | Delete | Merge


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A table that WITH defines. `definition`: all of it; `change`: what is no query, with the first word of it."""

    name: Name
    columns: tuple[Name, ...]
    definition: Part
    change: Change | None
    word: str


@dataclass(frozen=True, slots=True)
class WithTables:
    """A change behind WITH, or a query behind a WITH that holds changes. `word`: the first one of `statement`."""

    is_recursive: bool
    tables: tuple[CommonTable, ...]
    statement: Change | Part
    word: str
