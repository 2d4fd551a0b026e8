"""The state of a catalog: an immutable value, so that a statement makes the next one and a query keeps its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from typing import Literal as OneOf

from tqp.catalog.sequences import Sequence
from tqp.core.datatypes import DataType
from tqp.core.definitions import IndexDefinition, PreparedText
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.core.names import DATABASE, MAIN, SYSTEM_SCHEMAS, TEMPORARY, LookedUp, ObjectName
from tqp.data.sources.base import Source
from tqp.data.sources.stored_tables import StoredTable
from tqp.ml.model import Model
from tqp.ml.python_functions import PythonFunction
from tqp.planner.algebra.expressions import Literal, Value
from tqp.planner.catalog_protocol import Macro, View
from tqp.planner.parse import Span
from tqp.planner.syntax.parts import Name


@dataclass(frozen=True, slots=True)
class CatalogState:
    """What stands in a schema by its `ObjectName`, everything else by its name in lower case. Tables and views share their names.

    `tables`: registered ones, and those that statements made (`StoredTable`). `schemas`: their names as they were written.
    `path`: what SET gave as the schemas that are searched, as it was written. `variables`: of SET VARIABLE. `settings`: what SET gave to
    those without effect. `prepared`: of PREPARE. `functions`: models, and functions of Python. `began`: when the transaction around it began, in
    microseconds since 1970; None outside of one.
    """

    tables: Mapping[ObjectName, Source] = field(default_factory=dict)
    views: Mapping[ObjectName, View] = field(default_factory=dict)
    macros: Mapping[ObjectName, Macro] = field(default_factory=dict)
    functions: Mapping[str, Model | PythonFunction] = field(default_factory=dict)
    types: Mapping[ObjectName, DataType] = field(default_factory=dict)
    sequences: Mapping[ObjectName, Sequence] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=lambda: {MAIN: MAIN})
    path: tuple[str, ...] = ()
    variables: Mapping[str, Literal] = field(default_factory=dict)
    settings: Mapping[str, Value] = field(default_factory=dict)
    prepared: Mapping[str, PreparedText] = field(default_factory=dict)
    began: int | None = None

    # schemas

    def searched(self, first: SequenceOf[str] | None = None) -> tuple[str, ...]:
        """The schemas, in lower case, in which a name is looked up that stands behind that of none. `first`: in place of the path."""
        own = map(lower_ascii, self.path if first is None else first)
        return tuple(dict.fromkeys((TEMPORARY, *own, MAIN)))

    def schemas_named(self, names: SequenceOf[str], span: Span | None = None) -> tuple[str, ...]:
        """The schemas, in lower case, that the names before that of a table, or the like, stand for: of no names none.

        Raises BindError for what is none.
        """
        if not names:
            return ()
        *databases, schema = map(lower_ascii, names)
        if not databases and schema == MAIN:
            return TEMPORARY, MAIN
        if not databases and schema in (DATABASE, TEMPORARY):
            databases, schema = [schema], MAIN
        known = self.schemas if databases in ([], [DATABASE]) else [MAIN] if databases == [TEMPORARY] else []
        if schema not in known and (databases not in ([], ["system"]) or schema not in SYSTEM_SCHEMAS):
            if databases and not known:
                raise BindError(f'there is no database "{names[0]}"; tables are in "{DATABASE}"', span)
            raise BindError(
                f'there is no schema "{names[-1]}"{nearest(names[-1], self.schemas.values())}; CREATE SCHEMA makes one',
                span,
            )
        return (TEMPORARY,) if databases == [TEMPORARY] else (schema,)

    def schema_for(self, names: SequenceOf[str], temporary: bool, span: Span | None = None) -> str:
        """The schema in which a statement makes something, as it was written; `names`: before that of what is made.

        Raises BindError for what is none, and for one of another database.
        """
        found = self.schemas_named(names or self.search_path()[:1], span)[-1]
        if (found == TEMPORARY) > temporary or temporary and names and found not in (TEMPORARY, MAIN):
            raise BindError('what is temporary, and nothing else, is made in the database "temp"', span)
        if found in SYSTEM_SCHEMAS:
            raise BindError(f'nothing can be made in the schema "{found}"', span)
        return MAIN if temporary else self.schemas[found]

    def search_path(self) -> tuple[str, ...]:
        """What SET gave as the schemas that are searched; `main` where it gave none."""
        return self.path or (MAIN,)

    def with_path(self, path: tuple[str, ...]) -> CatalogState:
        """With other schemas that are searched."""
        return replace(self, path=path)

    def with_schema(self, name: str) -> CatalogState:
        """With a schema."""
        return self._replaced(schemas={**self.schemas, lower_ascii(name): name})

    def without_schema(self, name: str) -> CatalogState:
        """Without a schema and all that stands in it; it is not searched any more."""
        kept: dict[str, Mapping[ObjectName, object]] = {
            kind: {place: each for place, each in items.items() if place.schema != lower_ascii(name)}
            for kind, items in self._placed().items()
        }
        path = tuple(each for each in self.path if lower_ascii(each) != lower_ascii(name))
        return replace(self._replaced(schemas=_without(self.schemas, name), **kept), path=path)

    def _placed(self) -> Mapping[str, Mapping[ObjectName, object]]:
        return {
            "tables": self.tables,
            "views": self.views,
            "macros": self.macros,
            "types": self.types,
            "sequences": self.sequences,
        }

    def is_empty(self, schema: str) -> bool:
        """Whether nothing stands in the schema."""
        return not any(
            place.schema == lower_ascii(schema) for items in self._placed().values() for place in items
        )

    def found(self, name: LookedUp, *kinds: Mapping[ObjectName, object]) -> ObjectName | None:
        """The first of the name's schemas in which something of these kinds has it; None if there is none."""
        for schema in name.schemas or self.searched():
            place = ObjectName(schema, name.name)
            if any(place in items for items in kinds):
                return place
        return None

    # what stands in them

    def with_table(self, table: Source) -> CatalogState:
        """With the table in place of a table or view of its name."""
        return self.without(table.place)._replaced(tables={**self.tables, table.place: table})

    def with_view(self, view: View) -> CatalogState:
        """With the view in place of a table or view of its name."""
        return self.without(view.place)._replaced(views={**self.views, view.place: view})

    def without(self, place: ObjectName) -> CatalogState:
        """Without the table or view of that name, if there is one."""
        return self._replaced(
            tables=_without_place(self.tables, place), views=_without_place(self.views, place)
        )

    def with_macro(self, macro: Macro) -> CatalogState:
        """With the macro in place of one of its name."""
        return self._replaced(macros={**self.macros, macro.place: macro})

    def without_macro(self, place: ObjectName) -> CatalogState:
        """Without the macro of that name, if there is one."""
        return self._replaced(macros=_without_place(self.macros, place))

    def with_type(self, place: ObjectName, data_type: DataType) -> CatalogState:
        """With the type in place of one of its name."""
        return self._replaced(types={**self.types, place: data_type})

    def without_type(self, place: ObjectName) -> CatalogState:
        """Without the type of that name, if there is one."""
        return self._replaced(types=_without_place(self.types, place))

    def with_sequence(self, sequence: Sequence) -> CatalogState:
        """With the sequence in place of one of its name."""
        return self._replaced(sequences={**self.sequences, sequence.definition.place: sequence})

    def without_sequence(self, place: ObjectName) -> CatalogState:
        """Without the sequence of that name, if there is one."""
        return self._replaced(sequences=_without_place(self.sequences, place))

    def with_function(self, function: Model | PythonFunction) -> CatalogState:
        """With the model or function in place of one of its name."""
        return self._replaced(functions={**self.functions, lower_ascii(function.name): function})

    def without_function(self, name: str) -> CatalogState:
        """Without the model or function of that name, if there is one."""
        return self._replaced(functions=_without(self.functions, name))

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
        return replace(
            self,
            variables=other.variables,
            settings=other.settings,
            path=other.path,
            prepared=other.prepared,
        )

    def with_prepared(self, statement: PreparedText) -> CatalogState:
        """With the statement in place of one of its name."""
        return self._replaced(prepared={**self.prepared, lower_ascii(statement.name): statement})

    def without_prepared(self, name: str) -> CatalogState:
        """Without the statement of that name, if there is one."""
        return self._replaced(prepared=_without(self.prepared, name))

    def keeps_what_lasts(self, other: CatalogState) -> bool:
        """Whether nothing that is not temporary is another than in the other state."""
        pairs: SequenceOf[tuple[Mapping[Any, object], Mapping[Any, object]]] = [
            (self.tables, other.tables),
            (self.views, other.views),
            (self.macros, other.macros),
            (self.types, other.types),
            (self.sequences, other.sequences),
            (self.schemas, other.schemas),
        ]
        return all(
            mine is theirs
            or all(
                mine.get(name) is theirs.get(name)
                for name in {**mine, **theirs}
                if not isinstance(name, ObjectName) or name.schema != TEMPORARY
            )
            for mine, theirs in pairs
        )

    def _replaced(self, **changes: Mapping[Any, object]) -> CatalogState:
        return replace(self, **changes)  # type: ignore[arg-type]

    def kind_at(self, place: ObjectName | None) -> str | None:
        """ "table" or "view"; None if there is nothing."""
        if place in self.tables:
            return "table"
        return "view" if place in self.views else None

    def looked_up(self, name: Name) -> LookedUp:
        """What a statement names, to be found in its schemas. Raises BindError for a schema that is none."""
        return LookedUp(lower_ascii(name.text), self.schemas_named(name.qualifiers, name.span))

    def place_of(self, name: Name) -> ObjectName | None:
        """Where the table or view stands that a statement names; None if there is none. Raises BindError for a schema that is none."""
        return self.found(self.looked_up(name), self.tables, self.views)

    def stored_table(self, name: Name) -> StoredTable:
        """The table that a statement may change. Raises BindError if there is none of that name."""
        place = self.place_of(name)
        table = None if place is None else self.tables.get(place)
        if isinstance(table, StoredTable):
            return table
        if table is not None:
            raise UnsupportedError(
                f'"{table.name}" was registered, and statements cannot change it; CREATE TABLE ... AS FROM "{table.name}"'
                " makes a table that they can",
                name.span,
            )
        if place is not None:
            raise BindError(f'"{name.text}" is a view, whose rows cannot be changed', name.span)
        raise self.no_such("table", name, self.names())

    def no_such(self, kind: str, name: Name, known: Iterable[str]) -> BindError:
        """The error for a name of nothing."""
        return BindError(f'there is no {kind} "{name.shown}"{nearest(name.text, known)}', name.span)

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
#: What stands in schemas.
Kind = OneOf["table", "view", "macro", "type", "sequence"]


def _without_place(items: Mapping[ObjectName, Item], place: ObjectName) -> Mapping[ObjectName, Item]:
    return {known: item for known, item in items.items() if known != place} if place in items else items


def _without(items: Mapping[str, Item], name: str) -> Mapping[str, Item]:
    key = lower_ascii(name)
    return {known: item for known, item in items.items() if known != key} if key in items else items
