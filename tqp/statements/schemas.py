"""CREATE SCHEMA of the schemas that there are, and LOAD and INSTALL of extensions that are built in."""

from __future__ import annotations

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.syntax.clauses import CreateSchema, LoadExtension
from tqp.result import Result
from tqp.statements.execution import Execution, done, made

#: DuckDB's extensions, of what tqp has as well.
_BUILT_IN = frozenset(("core_functions", "icu", "json", "parquet"))


def create_schema(execution: Execution) -> Result:
    """Does nothing where IF NOT EXISTS is said: there are all schemas that there can be."""
    clauses = execution.command.clauses
    assert isinstance(clauses, CreateSchema)
    if not clauses.if_not_exists:
        raise BindError(f'the schema "{clauses.name.text}" is there already', clauses.name.span)
    return made()


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
