"""CREATE MACRO."""

from __future__ import annotations

from tqp.core.datatypes import DataType
from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.binder.macros import asks_before, default_as, examples, reads_columns, types_named
from tqp.planner.catalog_protocol import Macro, MacroForm
from tqp.planner.parse import ParsedStatement, parse
from tqp.planner.syntax.clauses import CreateMacro, MacroFormClause
from tqp.result import Result
from tqp.statements.execution import Execution, is_there, made

#: What looks like a call and is none, in DuckDB: a macro of that name would never be called.
_SYNTAX = ("coalesce", "date", "ifnull", "nullif", "try")


def create_macro(execution: Execution) -> Result:
    """Keeps expressions or queries that could be bound; each call binds them again, with its arguments."""
    clauses = execution.command.clauses
    assert isinstance(clauses, CreateMacro)
    execution.refuse_parameters("a macro")
    name = clauses.name.text
    if lower_ascii(name) in _SYNTAX:
        raise BindError(
            f'"{name}" is syntax of SQL, and hides macros of that name; give the macro another name',
            clauses.name.span,
        )
    forms = tuple(_form(execution, form, clauses.is_table) for form in clauses.forms)
    numbers = [len(form.parameters) for form in forms]
    if len(set(numbers)) < len(numbers):
        message = f'two forms of the macro "{name}" have as many parameters'
        if any(form.types for form in forms):
            raise UnsupportedError(
                f"{message}, which is not supported; give them other names", clauses.name.span
            )
        raise BindError(message, clauses.name.span)
    with execution.session.catalog.writing:
        schema = execution.schema_for(clauses.name, clauses.temporary)
        macro = Macro(name, forms, clauses.is_table, clauses.temporary, schema)
        if is_there(clauses, "macro", "macro" if macro.place in execution.state.macros else None):
            return made()
        execution.session.catalog.change(lambda state: state.with_macro(macro))
    return made()


def _form(execution: Execution, clause: MacroFormClause, is_table: bool) -> MacroForm:
    source = execution.command.source
    parameters = tuple(lower_ascii(each.name.text) for each in clause.parameters)
    types: dict[str, DataType] = {}
    defaults: dict[str, ParsedStatement] = {}
    for number, (parameter, each) in enumerate(zip(parameters, clause.parameters)):
        if parameter in parameters[:number]:
            raise BindError(f'the macro has two parameters "{each.name.text}"', each.name.span)
        if each.type is not None:
            types[parameter] = execution.type_of(each.type)
        if each.default is not None:
            default = parse(f"SELECT {source(each.default)}")
            if reads_columns(default):
                raise BindError(f'the default of "{each.name.text}" is not constant', each.name.span)
            if parameter in types:
                default = default_as(default, types[parameter])
                execution.session.queries.types(default, execution.state)
            defaults[parameter] = default
    body = source(clause.body)
    form = MacroForm(parameters, defaults, parse(body if is_table else f"SELECT {body}"), types)
    for name in types_named(form.body):
        execution.session.queries.types_of_names([name], execution.state)
    _check(execution, form, is_table)
    return form


def _check(execution: Execution, form: MacroForm, is_table: bool) -> None:
    """Refuse a body that no arguments make right, and columns that DuckDB looks for at once."""
    first: BindError | None = None
    for query in examples(form, is_table):
        try:
            execution.session.queries.types(query, execution.state)
            return
        except (ExecutionError, UnsupportedError):
            return
        except BindError as error:
            asks = asks_before(form, error.span)
            if asks is False:
                raise
            if asks or (first is not None and first.message != error.message):
                return
            first = first or error
    if first is not None:
        raise first
