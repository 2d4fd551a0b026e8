"""What statements other than queries say, one class for each kind; their queries and expressions are left as tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from tqp.planner.syntax.change_clauses import Delete, Insert, Merge, Update, WithTables
from tqp.planner.syntax.parts import Name, Part


@dataclass(frozen=True, slots=True)
class ColumnClause:
    """A column of CREATE TABLE; without `type` and `generated`, what it is computed by, only its name was given, in front of AS."""

    name: Name
    type: Part | None = None
    nullable: bool = True
    default: Part | None = None
    generated: Part | None = None
    collation: Part | None = None

    @property
    def is_name(self) -> bool:
        """Whether only its name was given."""
        return self.type is None and self.generated is None


@dataclass(frozen=True, slots=True)
class KeyClause:
    """UNIQUE or PRIMARY KEY."""

    columns: tuple[Name, ...]
    is_primary: bool


@dataclass(frozen=True, slots=True)
class ForeignKeyClause:
    """FOREIGN KEY (columns) REFERENCES table(referenced); of none of these, the columns of its PRIMARY KEY."""

    columns: tuple[Name, ...]
    table: Name
    referenced: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`query`: behind AS; `with_data` is false behind WITH NO DATA."""

    name: Name
    columns: tuple[ColumnClause, ...] = ()
    keys: tuple[KeyClause, ...] = ()
    foreign_keys: tuple[ForeignKeyClause, ...] = ()
    checks: tuple[Part, ...] = ()
    query: Part | None = None
    with_data: bool = True
    temporary: bool = False
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW name(columns) AS query. `recursive`: the query may read the view, as one of WITH RECURSIVE reads itself."""

    name: Name
    columns: tuple[Name, ...]
    query: Part
    temporary: bool = False
    or_replace: bool = False
    if_not_exists: bool = False
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class ParameterClause:
    """A parameter of a macro, which may have a type and a default."""

    name: Name
    type: Part | None
    default: Part | None


@dataclass(frozen=True, slots=True)
class MacroFormClause:
    """(parameters) AS expression, or AS TABLE query."""

    parameters: tuple[ParameterClause, ...]
    body: Part


@dataclass(frozen=True, slots=True)
class CreateMacro:
    """CREATE MACRO name form, form, ..., all of them expressions, or with `is_table` queries."""

    name: Name
    forms: tuple[MacroFormClause, ...]
    is_table: bool
    temporary: bool = False
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateType:
    """`type`: what the name stands for; `query`: of an ENUM, its values. One of them is there."""

    name: Name
    type: Part | None
    query: Part | None
    temporary: bool
    or_replace: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CreateSequence:
    """CREATE SEQUENCE; None stands for what is not said."""

    name: Name
    start: int | None = None
    increment: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    cycles: bool = False
    temporary: bool = False
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE INDEX name ON table(items), which are names of columns or other expressions."""

    name: Name
    table: Name
    items: tuple[Part, ...]
    is_unique: bool
    if_not_exists: bool


ObjectKind = OneOf["table", "view", "macro", "type", "sequence", "index", "schema"]


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP TABLE, VIEW, MACRO, TYPE, SEQUENCE, INDEX or SCHEMA."""

    kind: ObjectKind
    name: Name
    if_exists: bool
    cascades: bool = False


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE SCHEMA."""

    name: Name
    or_replace: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON; of a column, `name` is that of its table or view. None takes a comment away."""

    kind: ObjectKind
    name: Name
    column: Name | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Use:
    """USE of a schema."""

    name: Name


@dataclass(frozen=True, slots=True)
class LoadExtension:
    """LOAD or INSTALL."""

    name: Name


@dataclass(frozen=True, slots=True)
class RenameTable:
    """ALTER TABLE table RENAME TO name."""

    name: Name


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """ALTER TABLE table RENAME column TO name."""

    column: Name
    name: Name


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ALTER TABLE table ADD COLUMN."""

    column: ColumnClause
    if_not_exists: bool
    is_unique: bool = False


@dataclass(frozen=True, slots=True)
class AddKey:
    """ALTER TABLE table ADD PRIMARY KEY or UNIQUE."""

    key: KeyClause


@dataclass(frozen=True, slots=True)
class DropColumn:
    """ALTER TABLE table DROP COLUMN."""

    column: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class ChangeType:
    """ALTER TABLE table ALTER column TYPE type COLLATE collation USING value."""

    column: Name
    type: Part
    value: Part | None
    collation: Part | None = None


@dataclass(frozen=True, slots=True)
class ChangeDefault:
    """ALTER TABLE table ALTER column SET DEFAULT, or DROP DEFAULT where `value` is None."""

    column: Name
    value: Part | None


@dataclass(frozen=True, slots=True)
class ChangeNullable:
    """ALTER TABLE table ALTER column SET NOT NULL, or DROP NOT NULL."""

    column: Name
    nullable: bool


Alteration = (
    RenameTable | RenameColumn | AddColumn | AddKey | DropColumn | ChangeType | ChangeDefault | ChangeNullable
)


@dataclass(frozen=True, slots=True)
class Alter:
    """ALTER TABLE; of a view, only its name can be changed."""

    kind: OneOf["table", "view"]
    name: Name
    if_exists: bool
    alteration: Alteration


@dataclass(frozen=True, slots=True)
class Set:
    """SET name = value; of a variable, SET VARIABLE."""

    name: Name
    value: Part
    is_variable: bool = False


@dataclass(frozen=True, slots=True)
class Reset:
    """RESET name; of a variable, RESET VARIABLE."""

    name: Name
    is_variable: bool = False


@dataclass(frozen=True, slots=True)
class Pragma:
    """PRAGMA name, PRAGMA name(arguments) or, with `is_setting`, PRAGMA name = argument."""

    name: Name
    arguments: tuple[Part, ...] = ()
    is_setting: bool = False


@dataclass(frozen=True, slots=True)
class Prepare:
    """PREPARE name AS statement: its text."""

    name: Name
    statement: Part


@dataclass(frozen=True, slots=True)
class Argument:
    """A value, perhaps for a parameter of a name."""

    name: Name | None
    value: Part


@dataclass(frozen=True, slots=True)
class Execute:
    """EXECUTE name(values)."""

    name: Name
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Deallocate:
    """DEALLOCATE name."""

    name: Name


@dataclass(frozen=True, slots=True)
class Transaction:
    """BEGIN, COMMIT or ROLLBACK."""

    action: OneOf["begin", "commit", "rollback"]
    only_reads: bool = False


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """CHECKPOINT, perhaps of a database."""

    database: Name | None


@dataclass(frozen=True, slots=True)
class Vacuum:
    """VACUUM or ANALYZE, perhaps of a table or some of its columns."""

    table: Name | None = None
    columns: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFunction:
    """CALL function(...)."""

    call: Part


@dataclass(frozen=True, slots=True)
class CopyOption:
    """An option of COPY; one without a value is on."""

    name: Name
    value: Part | None


@dataclass(frozen=True, slots=True)
class CopyTo:
    """COPY (query) TO file, or COPY table(columns) TO file."""

    query: Part | None
    table: Name | None
    columns: tuple[Name, ...] | None
    path: Part
    options: tuple[CopyOption, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """COPY table(columns) FROM file."""

    table: Name
    columns: tuple[Name, ...] | None
    path: Part
    options: tuple[CopyOption, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportDatabase:
    """EXPORT DATABASE database TO folder, or EXPORT DATABASE folder; with the options of COPY."""

    database: Name | None
    path: Part
    options: tuple[CopyOption, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportDatabase:
    """IMPORT DATABASE folder."""

    path: Part


Clauses = (
    CreateTable
    | CreateView
    | CreateMacro
    | CreateType
    | CreateSequence
    | CreateIndex
    | CreateSchema
    | Use
    | Comment
    | LoadExtension
    | Drop
    | Insert
    | Update
    | Delete
    | Merge
    | WithTables
    | Alter
    | Set
    | Reset
    | Pragma
    | Prepare
    | Execute
    | Deallocate
    | Transaction
    | Checkpoint
    | Vacuum
    | CallFunction
    | CopyTo
    | CopyFrom
    | ExportDatabase
    | ImportDatabase
)
