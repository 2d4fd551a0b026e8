"""CREATE MACRO."""

from __future__ import annotations

from tqp.core.errors import BindError
from tqp.planner.catalog_protocol import Macro
from tqp.planner.functions.registry import function_names
from tqp.planner.parse import parse
from tqp.planner.syntax.clauses import CreateMacro
from tqp.result import Result
from tqp.statements.execution import Execution, is_there, made


def create_macro(execution: Execution) -> Result:
    """Keeps an expression or a query, which is bound where it is called."""
    clauses, command = execution.command.clauses, execution.command
    assert isinstance(clauses, CreateMacro)
    execution.refuse_parameters("a macro")
    name = clauses.name.text
    if name.lower() in function_names():
        raise BindError(f'"{name}" is a function of SQL; give the macro another name', clauses.name.span)
    parameters = tuple(parameter.text.lower() for parameter, _ in clauses.parameters)
    for number, (parameter, _) in enumerate(clauses.parameters):
        if parameter.text.lower() in parameters[:number]:
            raise BindError(f'the macro has two parameters "{parameter.text}"', parameter.span)
    defaults = {
        parameter.text.lower(): parse(f"SELECT {command.source(default)}")
        for parameter, default in clauses.parameters
        if default is not None
    }
    body = command.source(clauses.body)
    tree = parse(body if clauses.is_table else f"SELECT {body}")
    macro = Macro(name, parameters, defaults, tree, clauses.is_table)
    with execution.session.catalog.writing:
        if is_there(clauses, "macro", "macro" if name.lower() in execution.state.macros else None):
            return made()
        execution.session.catalog.change(lambda state: state.with_macro(macro))
    return made()
