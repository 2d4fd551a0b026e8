"""PREPARE, EXECUTE and DEALLOCATE."""

from __future__ import annotations

from contextlib import suppress

from tqp.compiled import Parameters
from tqp.core.datatypes import BIGINT, DataType
from tqp.core.definitions import PreparedText
from tqp.core.errors import BindError, ParseError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.core.process.deep_recursion import call_deep
from tqp.planner.describe import describe
from tqp.planner.parse import Command, ParsedStatement, parse_statement
from tqp.planner.syntax.change_clauses import Delete, Insert, Update, WithTables
from tqp.planner.syntax.clauses import Argument, CallFunction, CopyFrom, CopyTo, Deallocate, Execute, Prepare
from tqp.planner.syntax.parts import Name
from tqp.queries import named_place
from tqp.result import Result
from tqp.statements.execution import Execution, done

#: Statements beside queries that DuckDB prepares.
_PREPARED = (Insert, Update, Delete, WithTables, CopyTo, CopyFrom, CallFunction)


def prepare(execution: Execution) -> Result:
    """Keeps the text of a statement under a name, in place of another. Raises BindError for what no value can mend."""
    clauses, session = execution.command.clauses, execution.session
    assert isinstance(clauses, Prepare)
    text = execution.command.source(clauses.statement)
    parsed = call_deep(lambda: parse_statement(text))
    is_other = isinstance(parsed, Command) and not isinstance(parsed.clauses, _PREPARED)
    if parsed.explain is not None or is_other:
        word = "EXPLAIN" if isinstance(parsed, ParsedStatement) else parsed.word
        raise ParseError(f"{word} cannot be prepared", execution.command.span(clauses.statement))
    types: tuple[DataType | None, ...] | None = (BIGINT,)
    if isinstance(parsed, ParsedStatement):
        types = None
        # What describing does not know, such as the values of a PIVOT, executing may.
        with named_place(text), suppress(UnsupportedError):
            types = describe(parsed, session.catalog.snapshot(execution.variables)).types
    elif isinstance(parsed.clauses, Insert | Update | Delete):
        execution.state.stored_table(parsed.clauses.table)
    prepared = PreparedText(clauses.name.text, text, len(set(parsed.parameter_keys.values())), types)
    session.catalog.change(lambda state: state.with_prepared(prepared))
    return done()


def execute_prepared(execution: Execution) -> Result:
    """Executes a statement of PREPARE with values, which are constant expressions."""
    clauses, session = execution.command.clauses, execution.session
    assert isinstance(clauses, Execute)
    text = _prepared(execution, clauses.name)
    return session.run_one(text, _values(execution, clauses.arguments), execution.variables)


def deallocate(execution: Execution) -> Result:
    """Forgets a statement of PREPARE, if there is one of that name."""
    clauses, session = execution.command.clauses, execution.session
    assert isinstance(clauses, Deallocate)
    session.catalog.change(lambda state: state.without_prepared(clauses.name.text))
    return done()


def _prepared(execution: Execution, name: Name) -> str:
    prepared = execution.state.prepared
    found = prepared.get(lower_ascii(name.text))
    if found is None:
        raise BindError(
            f'there is no prepared statement "{name.text}"{nearest(name.text, prepared)}', name.span
        )
    return found.text


def _values(execution: Execution, arguments: tuple[Argument, ...]) -> Parameters | None:
    if not arguments:
        return None
    pieces = [piece for argument in arguments for piece in (", ", "(", argument.value, ")")]
    (row,) = execution.rows(execution.command.query("SELECT", *pieces[1:]), execution.state).fetchall()
    names = [argument.name for argument in arguments]
    if all(name is None for name in names):
        return list(row)
    values: dict[str, object] = {}
    for name, argument, value in zip(names, arguments, row, strict=True):
        if name is None or name.text in values:
            what = "has no name, but others have one" if name is None else "is given twice"
            raise BindError(f"this value {what}", execution.command.span(argument.value))
        values[name.text] = value
    return values
