"""The state of a catalog: an immutable value, so that a statement makes the next one and a query keeps its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tqp.catalog.sequences import Sequence
from tqp.core.datatypes import DataType
from tqp.core.definitions import IndexDefinition
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.data.sources.base import Source
from tqp.data.sources.stored_tables import StoredTable
from tqp.ml.model import Model
from tqp.ml.python_functions import PythonFunction
from tqp.planner.algebra.expressions import Literal, Value
from tqp.planner.catalog_protocol import Macro, View


@dataclass(frozen=True, slots=True)
class CatalogState:
    """Everything by its name in lower case. Tables and views share their names.

    `tables`: registered ones, and those that statements made (`StoredTable`). `variables`: of SET VARIABLE. `settings`: what SET gave to those
    without effect. `functions`: models, and functions of Python.
    `began`: when the transaction around it began, in
    microseconds since 1970; None outside of one.
    """

    tables: Mapping[str, Source] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    macros: Mapping[str, Macro] = field(default_factory=dict)
    functions: Mapping[str, Model | PythonFunction] = field(default_factory=dict)
    types: Mapping[str, DataType] = field(default_factory=dict)
    sequences: Mapping[str, Sequence] = field(default_factory=dict)
    variables: Mapping[str, Literal] = field(default_factory=dict)
    settings: Mapping[str, Value] = field(default_factory=dict)
    began: int | None = None

    def with_table(self, table: Source) -> CatalogState:
        """With the table in place of a table or view of its name."""
        return self.without(table.name)._replaced(tables={**self.tables, lower_ascii(table.name): table})

    def with_view(self, view: View) -> CatalogState:
        """With the view in place of a table or view of its name."""
        return self.without(view.name)._replaced(views={**self.views, lower_ascii(view.name): view})

    def without(self, name: str) -> CatalogState:
        """Without the table or view of that name, if there is one."""
        return self._replaced(tables=_without(self.tables, name), views=_without(self.views, name))

    def with_macro(self, macro: Macro) -> CatalogState:
        """With the macro in place of one of its name."""
        return self._replaced(macros={**self.macros, lower_ascii(macro.name): macro})

    def without_macro(self, name: str) -> CatalogState:
        """Without the macro of that name, if there is one."""
        return self._replaced(macros=_without(self.macros, name))

    def with_function(self, function: Model | PythonFunction) -> CatalogState:
        """With the model or function in place of one of its name."""
        return self._replaced(functions={**self.functions, lower_ascii(function.name): function})

    def without_function(self, name: str) -> CatalogState:
        """Without the model or function of that name, if there is one."""
        return self._replaced(functions=_without(self.functions, name))

    def with_type(self, name: str, data_type: DataType) -> CatalogState:
        """With the type in place of one of its name."""
        return self._replaced(types={**self.types, lower_ascii(name): data_type})

    def without_type(self, name: str) -> CatalogState:
        """Without the type of that name, if there is one."""
        return self._replaced(types=_without(self.types, name))

    def with_sequence(self, sequence: Sequence) -> CatalogState:
        """With the sequence in place of one of its name."""
        return self._replaced(sequences={**self.sequences, lower_ascii(sequence.definition.name): sequence})

    def without_sequence(self, name: str) -> CatalogState:
        """Without the sequence of that name, if there is one."""
        return self._replaced(sequences=_without(self.sequences, name))

    def with_variable(self, name: str, value: Literal | None) -> CatalogState:
        """With the value of a variable; None takes it away."""
        if value is None:
            return self._replaced(variables=_without(self.variables, name))
        return self._replaced(variables={**self.variables, lower_ascii(name): value})

    def with_setting(self, name: str, value: Value) -> CatalogState:
        """With the value of a setting without effect, whose name is in lower case; None stands for the one that it has at first."""
        return self._replaced(
            settings={**_without(self.settings, name), **({} if value is None else {name: value})}
        )

    def with_session_of(self, other: CatalogState) -> CatalogState:
        """With what SET has said in another state: no transaction takes it back."""
        return self._replaced(variables=other.variables, settings=other.settings)

    def _replaced(self, **changes: Mapping[str, object]) -> CatalogState:
        return replace(self, **changes)  # type: ignore[arg-type]

    def kind_of(self, name: str) -> str | None:
        """ "table" or "view"; None if there is nothing of that name."""
        if lower_ascii(name) in self.tables:
            return "table"
        return "view" if lower_ascii(name) in self.views else None

    def stored_table(self, name: str, span: tuple[int, int] | None = None) -> StoredTable:
        """The table that a statement may change. Raises BindError if there is none of that name."""
        table = self.tables.get(lower_ascii(name))
        if isinstance(table, StoredTable):
            return table
        if table is not None:
            raise UnsupportedError(
                f'"{table.name}" was registered, and statements cannot change it; CREATE TABLE ... AS FROM "{table.name}"'
                " makes a table that they can",
                span,
            )
        if lower_ascii(name) in self.views:
            raise BindError(f'"{name}" is a view, whose rows cannot be changed', span)
        raise BindError(f'there is no table "{name}"{nearest(name, self.names())}', span)

    def indexes(self) -> Iterator[tuple[StoredTable, IndexDefinition]]:
        """All indexes, each with its table."""
        for table in self.tables.values():
            if isinstance(table, StoredTable):
                yield from ((table, index) for index in table.definition.indexes)

    def names(self) -> Iterator[str]:
        """The names of all tables and views."""
        yield from (table.name for table in self.tables.values())
        yield from (view.name for view in self.views.values() if not view.is_relation)


Item = TypeVar("Item")


def _without(items: Mapping[str, Item], name: str) -> Mapping[str, Item]:
    key = lower_ascii(name)
    return {known: item for known, item in items.items() if known != key} if key in items else items
