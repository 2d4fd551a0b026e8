"""CREATE SCHEMA, and LOAD and INSTALL of extensions that are built in."""

from __future__ import annotations

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.names import DATABASE, SYSTEM_SCHEMAS, TEMPORARY
from tqp.planner.syntax.clauses import CreateSchema, LoadExtension
from tqp.planner.syntax.parts import Name
from tqp.result import Result
from tqp.statements.execution import Execution, done, is_there, made

#: DuckDB's extensions, of what tqp has as well.
_BUILT_IN = frozenset(("core_functions", "icu", "json", "parquet"))


def create_schema(execution: Execution) -> Result:
    """Makes a schema with nothing in it. Raises BindError where OR REPLACE names one that is not empty."""
    clauses, catalog = execution.command.clauses, execution.session.catalog
    assert isinstance(clauses, CreateSchema)
    name = clauses.name
    schema = schema_of(name)
    if schema in SYSTEM_SCHEMAS:
        raise BindError(f'the schema "{name.text}" tells of the catalog, and cannot be made', name.span)
    if schema in (DATABASE, TEMPORARY, "system"):
        raise UnsupportedError(
            f'a schema with the name of a database ("{name.text}") is not supported; give it another',
            name.span,
        )
    with catalog.writing:
        if is_there(clauses, "schema", "schema" if schema in execution.state.schemas else None):
            return made()
        if not execution.state.is_empty(schema):
            raise BindError(f'the schema "{name.text}" is not empty, and so cannot be replaced', name.span)
        catalog.change(lambda state: state.with_schema(name.text))
    return made()


def schema_of(name: Name) -> str:
    """The name of a schema, in lower case, behind that of no other database than the one that has schemas. Raises BindError."""
    if tuple(map(lower_ascii, name.qualifiers)) not in ((), (DATABASE,)):
        raise BindError(f'"{name.qualifiers[0]}" is no database in which schemas are made', name.span)
    return lower_ascii(name.text)


def load_extension(execution: Execution) -> Result:
    """Does nothing for what is built in. Raises UnsupportedError for other extensions."""
    clauses = execution.command.clauses
    assert isinstance(clauses, LoadExtension)
    name = clauses.name
    if lower_ascii(name.text) not in _BUILT_IN:
        known = ", ".join(sorted(_BUILT_IN))
        raise UnsupportedError(
            f'the extension "{name.text}" is not supported; built in is what tqp has of {known}', name.span
        )
    return done()
