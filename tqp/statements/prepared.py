"""PREPARE, EXECUTE and DEALLOCATE."""

from __future__ import annotations

from tqp.compiled import Parameters
from tqp.core.errors import BindError, nearest
from tqp.core.keywords import lower_ascii
from tqp.planner.syntax.clauses import Argument, Deallocate, Execute, Prepare
from tqp.planner.syntax.parts import Name
from tqp.result import Result
from tqp.statements.execution import Execution, done


def prepare(execution: Execution) -> Result:
    """Keeps the text of a statement under a name, in place of another."""
    clauses, session = execution.command.clauses, execution.session
    assert isinstance(clauses, Prepare)
    with session.lock:
        session.prepared[lower_ascii(clauses.name.text)] = execution.command.source(clauses.statement)
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
    with session.lock:
        session.prepared.pop(lower_ascii(clauses.name.text), None)
    return done()


def _prepared(execution: Execution, name: Name) -> str:
    prepared = execution.session.prepared
    text = prepared.get(lower_ascii(name.text))
    if text is None:
        raise BindError(
            f'there is no prepared statement "{name.text}"{nearest(name.text, prepared)}', name.span
        )
    return text


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
