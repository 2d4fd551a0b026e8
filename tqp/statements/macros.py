"""CREATE MACRO."""

from __future__ import annotations

from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii
from tqp.planner.binder.expressions.calls import function_names
from tqp.planner.binder.macros import reads_columns
from tqp.planner.catalog_protocol import Macro, MacroForm
from tqp.planner.parse import parse
from tqp.planner.syntax.clauses import CreateMacro, MacroFormClause
from tqp.result import Result
from tqp.statements.execution import Execution, is_there, made


def create_macro(execution: Execution) -> Result:
    """Keeps expressions or queries, which are bound where they are called."""
    clauses = execution.command.clauses
    assert isinstance(clauses, CreateMacro)
    execution.refuse_parameters("a macro")
    name = clauses.name.text
    if lower_ascii(name) in function_names():
        raise BindError(f'"{name}" is a function of SQL; give the macro another name', clauses.name.span)
    forms = tuple(_form(execution, form, clauses.is_table) for form in clauses.forms)
    numbers = [len(form.parameters) for form in forms]
    if len(set(numbers)) < len(numbers):
        raise BindError(f'two forms of the macro "{name}" have as many parameters', clauses.name.span)
    macro = Macro(name, forms, clauses.is_table)
    with execution.session.catalog.writing:
        if is_there(clauses, "macro", "macro" if lower_ascii(name) in execution.state.macros else None):
            return made()
        execution.session.catalog.change(lambda state: state.with_macro(macro))
    return made()


def _form(execution: Execution, clause: MacroFormClause, is_table: bool) -> MacroForm:
    source = execution.command.source
    parameters = tuple(lower_ascii(parameter.text) for parameter, _ in clause.parameters)
    for number, (parameter, _) in enumerate(clause.parameters):
        if lower_ascii(parameter.text) in parameters[:number]:
            raise BindError(f'the macro has two parameters "{parameter.text}"', parameter.span)
    defaults = {
        lower_ascii(parameter.text): parse(f"SELECT {source(default)}")
        for parameter, default in clause.parameters
        if default is not None
    }
    for parameter, _ in clause.parameters:
        default = defaults.get(lower_ascii(parameter.text))
        if default is not None and reads_columns(default):
            raise BindError(f'the default of "{parameter.text}" is not constant', parameter.span)
    body = source(clause.body)
    return MacroForm(parameters, defaults, parse(body if is_table else f"SELECT {body}"))
