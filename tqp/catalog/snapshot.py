"""What one query is bound to: the state of the catalog at one moment, files, and the variables of the caller."""

from __future__ import annotations

import time
from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf

from tqp.catalog.sequences import Sequence
from tqp.catalog.settings import current_settings
from tqp.catalog.state import CatalogState
from tqp.catalog.system_tables import system_table
from tqp.catalog.variables import Variables
from tqp.core.datatypes import DataType
from tqp.core.definitions import TableDefinition
from tqp.core.errors import BindError
from tqp.core.file_kinds import FileKind, kind_of_name
from tqp.core.keywords import lower_ascii
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.core.schema import TableSource
from tqp.data.sources.base import Source
from tqp.data.sources.open_files import NamedFiles, OpenFiles
from tqp.data.sources.stored_tables import StoredTable
from tqp.ml.model import Model
from tqp.ml.python_functions import PythonFunction
from tqp.planner.algebra.expressions import Literal
from tqp.planner.catalog_protocol import Macro, Setting, View

#: What names meant when they were looked up: the version of a table or of files, a view, a macro, a model or function, a type,
#: a sequence, a value, or None; the time, under "clock"; the text of a setting; and under "never", what no name means again.
Meanings = dict[
    tuple[str, str | NamedFiles],
    int | str | View | Macro | Model | PythonFunction | DataType | Sequence | Literal | None,
]


#: No version of anything.
_NO_TABLE = -1


class Snapshot:
    """The tables, views and models at one moment, whatever happens meanwhile. A name that is none of them may be a variable.

    Implements `tqp.planner.catalog_protocol.Catalog`. `read`: the names that were looked up.
    """

    def __init__(self, state: CatalogState, files: OpenFiles, variables: Variables | None = None) -> None:
        self.state = state
        self._files, self._open_files, self._variables = files.tables(), files, variables
        self._system: dict[str, Source] = {}
        self._time = time.time_ns() // 1000 if state.began is None else state.began
        self.read: Meanings = {}

    def lookup(self, name: str) -> TableSource | None:
        """The table of that name, or None. Raises what keeps it from being read, such as that its file is gone."""
        table = self._table(lower_ascii(name))
        self.read["table", lower_ascii(name)] = None if table is None else table.version
        if table is not None and table.error is not None:
            raise type(table.error)(table.error.message)
        return table

    def lookup_definition(self, name: str) -> TableDefinition | None:
        """How the table of that name was made by a statement, or None."""
        table = self.lookup(name)
        return table.definition if isinstance(table, StoredTable) else None

    def lookup_view(self, name: str) -> View | None:
        """The view of that name, or None."""
        view = self._view(lower_ascii(name))
        self.read["view", lower_ascii(name)] = view
        return view

    def lookup_macro(self, name: str) -> Macro | None:
        """The macro of that name, or None."""
        macro = self.state.macros.get(lower_ascii(name))
        if macro is not None:
            self.read["macro", lower_ascii(name)] = macro
        return macro

    def macro_names(self) -> SequenceOf[str]:
        """Every macro's name."""
        return [macro.name for macro in self.state.macros.values()]

    def lookup_files(
        self, paths: SequenceOf[str], kind: FileKind | None = None, options: ReadOptions = NO_OPTIONS
    ) -> TableSource | None:
        """The files of these names, which stay the same for the whole query; see `Catalog`."""
        if kind is None and any(kind_of_name(path) is None for path in paths):
            return None
        named = NamedFiles(tuple(paths), kind, options)
        if named not in self._files or self._files[named].error is not None:
            self._files = {**self._files, named: self._open_files.open(named)}
        self.read["file", named] = self.meaning("file", named)
        return self._files[named]

    def query_time(self) -> int:
        """Microseconds since 1970. A program for it is kept no longer than it is the time, within a transaction."""
        self.read["clock", ""] = self._time
        return self._time

    def lookup_type(self, name: str) -> DataType | None:
        """The type that CREATE TYPE has made under that name, or None."""
        self.read["type", lower_ascii(name)] = self.meaning("type", lower_ascii(name))
        return self.state.types.get(lower_ascii(name))

    def lookup_sequence(self, name: str) -> Sequence | None:
        """The sequence of that name, or None."""
        self.read["sequence", lower_ascii(name)] = self.meaning("sequence", lower_ascii(name))
        return self.state.sequences.get(lower_ascii(name))

    def sequence_names(self) -> SequenceOf[str]:
        """Every sequence's name."""
        return [each.definition.name for each in self.state.sequences.values()]

    def never_kept(self) -> None:
        """Note that the query answers something else each time, so that its program is not kept."""
        self.read["never", ""] = _NO_TABLE

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
        return current_settings(self.state.settings)

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

    def _table(self, name: str) -> Source | None:
        table = self.state.tables.get(name) or self._system.get(name)
        if table is None and name.startswith(
            ("information_schema.", "duckdb_", "pragma_version", "pg_catalog.")
        ):
            table = system_table(name, self.state, self, self._open_files.device)
            if table is not None:
                self._system[name] = table
        if table is None and name not in self.state.views and self._variables is not None:
            return self._variables.table(name)
        return table

    def _view(self, name: str) -> View | None:
        view = self.state.views.get(name)
        if view is None and name not in self.state.tables and self._variables is not None:
            return self._variables.view(name)
        return view

    def meaning(
        self, kind: str, name: str | NamedFiles
    ) -> int | str | View | Macro | Model | PythonFunction | DataType | Sequence | Literal | None:
        """What a name (of a "table", "view", "macro", "function", "type", "sequence" or "variable", in lower case, or of "file"s) stands for: see `Meanings`."""
        table: Source | None
        try:
            if isinstance(name, NamedFiles):
                table = self._files.get(name)
            elif kind == "view":
                return self._view(name)
            elif kind == "macro":
                return self.state.macros.get(name)
            elif kind == "function":
                return self.state.functions.get(name)
            elif kind == "type":
                return self.state.types.get(name)
            elif kind == "sequence":
                return self.state.sequences.get(name)
            elif kind == "never":
                return None
            elif kind == "variable":
                return self.state.variables.get(name)
            elif kind == "clock":
                return self._time
            elif kind == "setting":
                setting = self._setting(name)
                return None if setting is None else setting.text
            else:
                table = self._table(name)
        except BindError:  # a variable that is no table
            return _NO_TABLE
        return None if table is None else table.version

    def agrees(self, read: Meanings) -> bool:
        """Whether all these names still mean what they meant."""
        return all(self.meaning(kind, name) == meaning for (kind, name), meaning in read.items())
