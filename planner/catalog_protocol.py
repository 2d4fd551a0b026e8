"""What the binder asks of whoever knows the registered tables and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tqp.core.datatypes import DataType
from tqp.core.definitions import TableDefinition
from tqp.core.file_kinds import FileKind
from tqp.core.models import FunctionSignature, ModelSignature
from tqp.core.names import MAIN, ObjectName
from tqp.core.read_options import NO_OPTIONS, ReadOptions, RejectTables
from tqp.core.schema import TableSource
from tqp.planner.algebra.expressions import Literal, Value
from tqp.planner.parse import ParsedStatement, Span


@dataclass(frozen=True, eq=False)
class View:
    """A query under a name; equal to nothing but itself. `columns`: what they are called, all or the first of them."""

    name: str
    query: ParsedStatement
    columns: tuple[str, ...] = ()
    temporary: bool = False
    schema: str = MAIN
    #: It was made by methods, and has no name that SQL could say.
    is_relation: bool = False
    comment: str | None = None
    #: Of columns, by their names in lower case.
    comments: Mapping[str, str | None] = field(default_factory=dict)
    #: How many of its columns, the last ones, `*` does not stand for.
    num_hidden: int = 0

    @property
    def place(self) -> ObjectName:
        """What a catalog keeps it under."""
        return ObjectName.of(self.name, self.schema, self.temporary)


@dataclass(frozen=True, eq=False)
class MacroForm:
    """An expression, `SELECT expression`, or a query, whose `parameters` (in lower case) stand for arguments."""

    parameters: tuple[str, ...]
    #: By parameter, `SELECT default`, as a value of the parameter's type.
    defaults: Mapping[str, ParsedStatement]
    body: ParsedStatement
    #: By parameter, where it has one, the type that its arguments must become without being asked.
    types: Mapping[str, DataType] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Macro:
    """A call takes the one of the forms whose parameters its arguments are for; with `is_table` these are queries."""

    name: str
    forms: tuple[MacroForm, ...]
    is_table: bool = False
    temporary: bool = False
    schema: str = MAIN
    comment: str | None = None

    @property
    def place(self) -> ObjectName:
        """What a catalog keeps it under."""
        return ObjectName.of(self.name, self.schema, self.temporary)


class Setting(NamedTuple):
    """What a setting is now."""

    value: Value
    data_type: DataType
    description: str

    @property
    def text(self) -> str:
        """The value as text."""
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)


class OrderDefaults(NamedTuple):
    """What ORDER BY says where it does not say it, in the words of SET."""

    order: str = "ASCENDING"
    nulls: str = "NULLS_LAST"

    @property
    def descends(self) -> bool:
        """Whether keys descend that are neither ASC nor DESC."""
        return self.order == "DESC"

    def nulls_first(self, descends: bool) -> bool:
        """Whether NULLs come first of a key that does not say it."""
        if self.nulls.endswith("_DESC"):
            return (self.nulls == "NULLS_LAST_ON_ASC_FIRST_ON_DESC") == descends
        return self.nulls == "NULLS_FIRST"


class NumberSequence(Protocol):
    """A sequence; implemented by `tqp.catalog.sequences`."""

    @property
    def last(self) -> int | None:
        """The number that was drawn last; None before the first."""
        ...

    def values(self) -> FunctionSignature:
        """The numbers of one call of nextval(): a function of the numbers of rows."""
        ...

    def setter(self) -> FunctionSignature:
        """One call of setval(): a function of the numbers of rows, what they set, and whether that counts as drawn."""
        ...


class RejectingScan(NamedTuple):
    """CSV files that a query reads, whose errors are told in tables. `casts`: by the places of columns, the types that are given for them."""

    tables: RejectTables
    table: TableSource
    options: ReadOptions
    casts: Mapping[int, DataType]


class Catalog(Protocol):
    """The tables, views and models a query may name; names match without regard to case.

    `schemas`: in lower case, those in which a name is looked up in turn, as `schemas_named` gives them; by default all that are searched.
    """

    def schemas_named(self, names: Sequence[str], span: Span | None) -> tuple[str, ...]:
        """The schemas that the names before that of a table, or the like, stand for. Raises BindError for what is none."""
        ...

    def search_path(self) -> Sequence[str]:
        """The schemas that SET has given, the one in which things are made first; `main` of none."""
        ...

    def seen_from(self, view: View) -> Catalog:
        """The same catalog, of which the schema of a view is searched first."""
        ...

    def lookup(self, name: str, schemas: tuple[str, ...] = ()) -> TableSource | None:
        """The table of that name, or None."""
        ...

    def lookup_definition(self, name: str, schemas: tuple[str, ...] = ()) -> TableDefinition | None:
        """How the table of that name was made by a statement, or None."""
        ...

    def lookup_view(self, name: str, schemas: tuple[str, ...] = ()) -> View | None:
        """The view of that name, or None."""
        ...

    def lookup_macro(self, name: str, schemas: tuple[str, ...] = ()) -> Macro | None:
        """The macro of that name, or None."""
        ...

    def macro_names(self) -> Sequence[str]:
        """Every macro's name."""
        ...

    def lookup_files(
        self, paths: Sequence[str], kind: FileKind | None = None, options: ReadOptions = NO_OPTIONS
    ) -> TableSource | None:
        """The files at these paths, which may be patterns, as one table.

        Without `kind` their names tell it; None if the name of one is not that of a file. Raises BindError if there is no
        such file, ExecutionError if one cannot be read.
        """
        ...

    def query_time(self) -> int:
        """When the query, or the transaction around it, began: microseconds since 1970 at UTC."""
        ...

    def lookup_type(self, name: str, schemas: tuple[str, ...] = ()) -> DataType | None:
        """The type that CREATE TYPE has made under that name, or None."""
        ...

    def lookup_sequence(self, name: str, schemas: tuple[str, ...] = ()) -> NumberSequence | None:
        """The sequence of that name, or None."""
        ...

    def sequence_names(self) -> Sequence[str]:
        """Every sequence's name."""
        ...

    def never_kept(self) -> None:
        """Note that the query answers something else each time, so that its program is not kept."""
        ...

    def store_rejects(self, scan: RejectingScan, span: Span | None) -> None:
        """Note that errors in these files are stored when the query has run. Raises BindError where other tables have the names of those that tell of them."""
        ...

    def lookup_variable(self, name: str) -> Literal | None:
        """The value that SET VARIABLE has given to that name, or None."""
        ...

    def lookup_setting(self, name: str) -> Setting | None:
        """The setting of that name, or None."""
        ...

    def settings(self) -> Mapping[str, Setting]:
        """All settings by their names."""
        ...

    def order_defaults(self) -> OrderDefaults:
        """What ORDER BY means where it does not say it."""
        ...

    def table_names(self) -> Sequence[str]:
        """Every table's and view's name, for the "did you mean" of an error."""
        ...

    def lookup_function(self, name: str) -> ModelSignature | FunctionSignature | None:
        """The model or Python function of that name, or None."""
        ...

    def function_names(self) -> Sequence[str]:
        """Every model's and Python function's name."""
        ...
