"""CREATE TYPE."""

from __future__ import annotations

from tqp.core.datatypes import DataType, enum
from tqp.core.errors import BindError
from tqp.core.keywords import in_quotes
from tqp.core.names import ObjectName
from tqp.planner.syntax.clauses import CreateType
from tqp.planner.syntax.parts import Part
from tqp.result import Result
from tqp.statements.execution import Execution, is_there, made


def create_type(execution: Execution) -> Result:
    """Keeps a type under a name; columns that are declared by it keep it, whatever becomes of the name."""
    clauses = execution.command.clauses
    assert isinstance(clauses, CreateType)
    execution.refuse_parameters("a type")
    with execution.session.catalog.writing:
        schema = execution.schema_for(clauses.name, clauses.temporary)
        place = ObjectName.of(clauses.name.text, schema, clauses.temporary)
        if is_there(clauses, "type", "type" if place in execution.state.types else None):
            return made()
        if clauses.query is not None:
            data_type = _enum_of(execution, clauses.query)
        else:
            assert clauses.type is not None
            data_type = execution.type_of(clauses.type)
        execution.session.catalog.change(lambda state: state.with_type(place, data_type))
    return made()


def _enum_of(execution: Execution, query: Part) -> DataType:
    """The ENUM of what a query answers, without NULL, each value once."""
    names = execution.session.queries.describe(
        execution.command.query(query), execution.state, execution.variables
    ).names
    if len(names) != 1:
        raise BindError("the query of an ENUM has one column, its values", execution.command.span(query))
    asked = f"SELECT CAST({in_quotes(names[0])} AS VARCHAR) FROM ("
    texts = execution.rows(execution.command.query(asked, query, ")"), execution.state).fetchall()
    values = list(dict.fromkeys(text for (text,) in texts if text is not None))
    if not values:
        raise BindError("an ENUM has at least one value", execution.command.span(query))
    return enum(values)
