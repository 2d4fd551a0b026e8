"""What one query is bound to: the state of the catalog at one moment, files, and the variables of the caller."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from copy import copy
from typing import TypeVar

from tqp.catalog.reject_tables import ERROR_COLUMNS, SCAN_COLUMNS
from tqp.catalog.sequences import Sequence
from tqp.catalog.settings import current_settings
from tqp.catalog.state import CatalogState, Kind
from tqp.catalog.system_tables import system_table
from tqp.catalog.variables import Variables
from tqp.core.datatypes import DataType
from tqp.core.definitions import TableDefinition
from tqp.core.errors import BindError
from tqp.core.file_kinds import FileKind, kind_of_name
from tqp.core.keywords import in_quotes, lower_ascii
from tqp.core.names import SYSTEM_SCHEMAS, LookedUp, ObjectName
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.core.schema import TableSource
from tqp.data.sources.base import Source
from tqp.data.sources.open_files import NamedFiles, OpenFiles
from tqp.data.sources.stored_tables import StoredTable
from tqp.ml.model import Model
from tqp.ml.python_functions import PythonFunction
from tqp.planner.algebra.expressions import Literal
from tqp.planner.catalog_protocol import Macro, OrderDefaults, RejectingScan, Setting, View
from tqp.planner.parse import Span, parse

#: What names meant when they were looked up: the version of a table or of files, a view, a macro, a model or function, a type,
#: a sequence, a value, or None; under "path" the schemas that are searched, under "macros" the places of all macros; the time, under "clock"; the text of a setting; under "order" what ORDER BY means; and under "never", what no name means again.
Meaning = (
    int
    | str
    | tuple[str, ...]
    | tuple[ObjectName, ...]
    | View
    | Macro
    | Model
    | PythonFunction
    | DataType
    | Sequence
    | Literal
    | None
)
Meanings = dict[tuple[str, str | LookedUp | NamedFiles], Meaning]


Item = TypeVar("Item")

#: No version of anything.
_NO_TABLE = -1


class Snapshot:
    """The tables, views and models at one moment, whatever happens meanwhile. A name that is none of them may be a variable.

    Implements `tqp.planner.catalog_protocol.Catalog`. `read`: the names that were looked up.
    """

    def __init__(self, state: CatalogState, files: OpenFiles, variables: Variables | None = None) -> None:
        self.state = state
        self._files, self._open_files, self._variables = dict(files.tables()), files, variables
        #: The schemas that are searched where a view names something; None: those of the state.
        self._searched: tuple[str, ...] | None = None
        self._system: dict[str, Source] = {}
        self._time = time.time_ns() // 1000 if state.began is None else state.began
        self.read: Meanings = {}
        #: The files among them whose errors are stored when the query has run.
        self.rejecting: list[RejectingScan] = []

    def schemas_named(self, names: SequenceOf[str], span: Span | None) -> tuple[str, ...]:
        """See `Catalog`."""
        return self.state.schemas_named(names, span)

    def search_path(self) -> SequenceOf[str]:
        """See `Catalog`."""
        self.read["path", ""] = self.state.path
        return self.state.search_path()

    def seen_from(self, view: View) -> Snapshot:
        """See `Catalog`. What is looked up is noted here, too."""
        searched = self.state.searched([view.schema])
        if view.is_relation or searched == (self._searched or self.state.searched()):
            return self
        seen = copy(self)
        seen._searched = searched
        return seen

    def _looked_up(self, name: str, schemas: tuple[str, ...] = ()) -> LookedUp:
        if not schemas and self._searched is None:
            self.read["path", ""] = self.state.path
        return LookedUp(lower_ascii(name), schemas or self._searched or ())

    def lookup(self, name: str, schemas: tuple[str, ...] = ()) -> TableSource | None:
        """The table of that name, or None. Raises what keeps it from being read, such as that its file is gone."""
        looked_up = self._looked_up(name, schemas)
        table = self._table(looked_up)
        self.read["table", looked_up] = None if table is None else table.version
        if table is not None and table.error is not None:
            raise type(table.error)(table.error.message)
        return None if table is None or table.has_generated else table

    def lookup_definition(self, name: str, schemas: tuple[str, ...] = ()) -> TableDefinition | None:
        """How the table of that name was made by a statement, or None."""
        looked_up = self._looked_up(name, schemas)
        table = self._table(looked_up)
        self.read["table", looked_up] = None if table is None else table.version
        return table.definition if isinstance(table, StoredTable) else None

    def lookup_view(self, name: str, schemas: tuple[str, ...] = ()) -> View | None:
        """The view of that name, or None; of a table with generated columns, which is looked up first, its columns and what computes these."""
        looked_up = self._looked_up(name, schemas)
        view = self._view(looked_up)
        self.read["view", looked_up] = view
        if view is not None:
            return view
        table = self._table(looked_up)
        return _with_generated(table) if isinstance(table, StoredTable) and table.has_generated else None

    def lookup_macro(self, name: str, schemas: tuple[str, ...] = ()) -> Macro | None:
        """The macro of that name, or None."""
        looked_up = self._looked_up(name, schemas)
        macro = self._placed(looked_up, self.state.macros)
        if macro is not None:
            self.read["macro", looked_up] = macro
        return macro

    def macro_names(self) -> SequenceOf[str]:
        """Every macro's name. A new one may take that of a function which a query calls."""
        self.read["macros", ""] = tuple(self.state.macros)
        return [macro.name for macro in self.state.macros.values()]

    def lookup_files(
        self, paths: SequenceOf[str], kind: FileKind | None = None, options: ReadOptions = NO_OPTIONS
    ) -> TableSource | None:
        """The files of these names, which stay the same for the whole query; see `Catalog`."""
        if kind is None and any(kind_of_name(path) is None for path in paths):
            return None
        named = NamedFiles(tuple(paths), kind, options)
        if named not in self._files or self._files[named].error is not None:
            self._files[named] = self._open_files.open(named)
        self.read["file", named] = self.meaning("file", named)
        return self._files[named]

    def query_time(self) -> int:
        """Microseconds since 1970. A program for it is kept no longer than it is the time, within a transaction."""
        self.read["clock", ""] = self._time
        return self._time

    def lookup_type(self, name: str, schemas: tuple[str, ...] = ()) -> DataType | None:
        """The type that CREATE TYPE has made under that name, or None."""
        looked_up = self._looked_up(name, schemas)
        found = self.read["type", looked_up] = self._placed(looked_up, self.state.types)
        return found

    def lookup_sequence(self, name: str, schemas: tuple[str, ...] = ()) -> Sequence | None:
        """The sequence of that name, or None."""
        looked_up = self._looked_up(name, schemas)
        found = self.read["sequence", looked_up] = self._placed(looked_up, self.state.sequences)
        return found

    def sequence_names(self) -> SequenceOf[str]:
        """Every sequence's name."""
        return [each.definition.name for each in self.state.sequences.values()]

    def never_kept(self) -> None:
        """Note that the query answers something else each time, so that its program is not kept."""
        self.read["never", ""] = _NO_TABLE

    def store_rejects(self, scan: RejectingScan, span: Span | None) -> None:
        """See `Catalog`."""
        tables = scan.tables
        for name, columns in ((tables.errors, ERROR_COLUMNS), (tables.scans, SCAN_COLUMNS)):
            place = ObjectName.of(name, temporary=True)
            table = self.state.tables.get(place)
            tells = isinstance(table, StoredTable) and table.definition.columns == columns
            if self.state.kind_at(place) is not None and not tells:
                raise BindError(
                    f'there is a temporary table "{name}", which does not tell of rejects; drop it, or give other names with '
                    "rejects_table and rejects_scan",
                    span,
                )
        self.rejecting.append(scan)
        self.never_kept()

    def lookup_variable(self, name: str) -> Literal | None:
        """The value that SET VARIABLE has given to that name, or None."""
        self.read["variable", lower_ascii(name)] = self.meaning("variable", lower_ascii(name))
        return self.state.variables.get(lower_ascii(name))

    def lookup_setting(self, name: str) -> Setting | None:
        """The setting of that name, or None."""
        found = self._setting(lower_ascii(name))
        self.read["setting", lower_ascii(name)] = None if found is None else found.text
        return found

    def _setting(self, name: str) -> Setting | None:
        known = {lower_ascii(each): setting for each, setting in self.settings().items()}
        return known.get(name)

    def settings(self) -> Mapping[str, Setting]:
        """All settings by their names."""
        return current_settings(self.state.settings, self.state.path)

    def order_defaults(self) -> OrderDefaults:
        """See `Catalog`."""
        found = self.read["order", ""] = self._order_defaults()
        return found

    def _order_defaults(self) -> OrderDefaults:
        given = self.state.settings
        first = OrderDefaults()
        return OrderDefaults(
            str(given.get("default_order", first.order)), str(given.get("default_null_order", first.nulls))
        )

    def table_names(self) -> SequenceOf[str]:
        """The names of tables and views as they were given."""
        return list(self.state.names())

    def lookup_function(self, name: str) -> Model | PythonFunction | None:
        """The model or Python function of that name, or None."""
        self.read["function", lower_ascii(name)] = self.meaning("function", lower_ascii(name))
        return self.state.functions.get(lower_ascii(name))

    def function_names(self) -> SequenceOf[str]:
        """Every model's and Python function's name as it was registered."""
        return [each.name for each in self.state.functions.values()]

    def _placed(self, name: LookedUp, items: Mapping[ObjectName, Item]) -> Item | None:
        place = self.state.found(name, items)
        return None if place is None else items[place]

    def _table(self, name: LookedUp) -> Source | None:
        place = self.state.found(name, self.state.tables, self.state.views)
        if place is not None:
            return self.state.tables.get(place)
        table = self._system_table(name)
        if table is None and not name.schemas and self._variables is not None:
            return self._variables.table(name.name)
        return table

    def _system_table(self, name: LookedUp) -> Source | None:
        schema = next((each for each in name.schemas if each in SYSTEM_SCHEMAS), None)
        if schema is None and not name.name.startswith(("duckdb_", "pragma_")):
            return None
        key = name.name if schema is None else f"{schema}.{name.name}"
        if key not in self._system:
            table = system_table(key, self.state, self, self._open_files.device)
            if table is None:
                return None
            self._system[key] = table
        return self._system[key]

    def _view(self, name: LookedUp) -> View | None:
        place = self.state.found(name, self.state.tables, self.state.views)
        if place is None and not name.schemas and self._variables is not None:
            return self._variables.view(name.name)
        return None if place is None else self.state.views.get(place)

    def meaning(self, kind: str, name: str | LookedUp | NamedFiles) -> Meaning:
        """What a name (of a "table", "view", "macro", "type" or "sequence", of a "function" or "variable" in lower case, or of "file"s) stands for: see `Meanings`."""
        state = self.state
        table: Source | None
        try:
            if isinstance(name, NamedFiles):
                table = self._files.get(name)
            elif isinstance(name, LookedUp):
                if kind == "view":
                    return self._view(name)
                if kind == "macro":
                    return self._placed(name, state.macros)
                if kind == "type":
                    return self._placed(name, state.types)
                if kind == "sequence":
                    return self._placed(name, state.sequences)
                table = self._table(name)
            elif kind == "function":
                return state.functions.get(name)
            elif kind == "path":
                return state.path
            elif kind == "macros":
                return tuple(state.macros)
            elif kind == "order":
                return self._order_defaults()
            elif kind == "never":
                return None
            elif kind == "variable":
                return state.variables.get(name)
            elif kind == "clock":
                return self._time
            else:
                setting = self._setting(name)
                return None if setting is None else setting.text
        except BindError:  # a variable that is no table
            return _NO_TABLE
        return None if table is None else table.version

    def names_read(self, kind: Kind) -> set[ObjectName]:
        """What has been looked up of a kind, and is there."""
        items: Mapping[ObjectName, object] = getattr(self.state, f"{kind}s")
        found = (
            self.state.found(name, items)
            for each, name in self.read
            if each == kind and isinstance(name, LookedUp)
        )
        return {place for place in found if place is not None}

    def agrees(self, read: Meanings) -> bool:
        """Whether all these names still mean what they meant."""
        return all(self.meaning(kind, name) == meaning for (kind, name), meaning in read.items())

    def has_same_files(self, read: Meanings) -> bool:
        """Whether the files of the tables among these names are still as they were when the catalog looked at them last."""
        return all(table.files is None or table.files.are_unchanged() for table in self._stored_tables(read))

    def _stored_tables(self, read: Meanings) -> Iterator[Source]:
        for kind, name in read:
            if isinstance(name, NamedFiles):
                if name in self._files:
                    yield self._files[name]
            elif kind == "table" and isinstance(name, LookedUp):
                place = self.state.found(name, self.state.tables)
                if place is not None:
                    yield self.state.tables[place]


def _with_generated(table: StoredTable) -> View:
    """All columns of a table, and those that `*` does not stand for."""
    definition = table.definition
    source = in_quotes(definition.name)
    known = [*(column.name for column in definition.columns), *table.hidden_names]
    for each in definition.generated:
        items = ", ".join(map(in_quotes, known))
        value = f"CAST(({each.expression}) AS {each.column.data_type}) AS {in_quotes(each.column.name)}"
        source = f"(SELECT {items}, {value} FROM {source})"
        known.append(each.column.name)
    names = [*(column.name for column in definition.all_columns), *table.hidden_names]
    query = parse(f"SELECT {', '.join(map(in_quotes, names))} FROM {source}")
    return View(
        definition.name,
        query.reading({definition.name: table}),
        temporary=definition.temporary,
        schema=definition.schema,
        num_hidden=len(table.hidden_names),
    )
