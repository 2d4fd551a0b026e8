"""Macros: calls are replaced in the tree before it is bound, each by the macro's expression or query with the arguments in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from tqp.core.datatypes import DataType
from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii
from tqp.planner.binder.expressions.aggregates.aggregate_arguments import written
from tqp.planner.binder.expressions.aggregates.formulas import called, with_aggregate_over
from tqp.planner.binder.expressions.forms.forms import filled
from tqp.planner.binder.expressions.nested.parts import before_dot
from tqp.planner.binder.select.names import expression_name
from tqp.planner.catalog_protocol import Catalog, Macro, MacroForm
from tqp.planner.parse import UNASKED, ParsedStatement, head_span, parse, span_of, without_places
from tqp.planner.syntax.parser import is_columns_call

#: Macros within macros, at most.
_DEEPEST = 50
#: For the parameters of a macro whose body is checked.
_EXAMPLES = tuple(
    parse(f"SELECT {each}").tree.expressions[0]
    for each in ("NULL", "'a'", "1", "DATE '2000-01-01'", "[1]", "{'a': 1}")
)
#: What takes a parameter of any type.
_OF_ANY_TYPE = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like, exp.ILike,
    exp.Connector, exp.Not, exp.Cast, exp.If, exp.Ordered,
    exp.Where, exp.Group, exp.Having, exp.Limit, exp.Offset,
)  # fmt: skip
#: The clauses of a SELECT in the order in which they are bound.
_CLAUSES = ("with_", "from_", "joins", "laterals", "where", "group", "having", "expressions")


def types_named(body: ParsedStatement) -> list[str]:
    """The names of types in a macro's body that are none of SQL's own."""
    return [
        node.sql("duckdb")
        for node in body.tree.find_all(exp.DataType)
        if node.this is exp.DataType.Type.USERDEFINED
    ]


def expanded(tree: exp.Expr, catalog: Catalog, text: str) -> exp.Expr:
    """The tree without calls of macros; itself if there are no macros. `text`: of which it is the tree.

    What is shown without an alias keeps the name that the call gives it.
    """
    if not catalog.macro_names() or not _calls(tree, catalog):
        return tree
    root = exp.Paren(this=tree.copy())
    for select in list(root.find_all(exp.Select)):
        for item in select.expressions:
            calls = [] if isinstance(item, exp.Alias | exp.Star) else list(item.find_all(exp.Anonymous))
            if calls and not any(map(is_columns_call, calls)):  # which makes columns of several names
                name = exp.to_identifier(expression_name(text, item), quoted=True)
                item.replace(exp.Alias(this=item.copy(), alias=name))
    for _ in range(_DEEPEST):
        calls = _calls(root, catalog)
        if not calls:
            found: exp.Expr = root.this
            return found
        for call, macro, is_qualified in reversed(calls):  # arguments before the calls that they stand in
            _replace(call, macro, is_qualified)
    raise BindError("macros call each other without end")


def _calls(tree: exp.Expr, catalog: Catalog) -> list[tuple[exp.Anonymous, Macro, bool]]:
    """The calls of macros: of those of queries in FROM, of those of values elsewhere. Each with whether its schema stands before it."""
    found = []
    for node in tree.find_all(exp.Anonymous):
        names = _names_before(node)
        macro = _macro_in(catalog, node.name, names) if names else None
        is_qualified = macro is not None
        if macro is None and not (names and isinstance(node.parent, exp.Table)):
            macro = catalog.lookup_macro(node.name)
        if macro is not None and macro.is_table == isinstance(node.parent, exp.Table):
            found.append((node, macro, is_qualified))
    return found


def _names_before(call: exp.Anonymous) -> list[str]:
    """The names that stand before a call, with dots between, of a schema or a column; none if it is something else."""
    parent = call.parent
    if isinstance(parent, exp.Table):
        return [parent.args[part].name for part in ("catalog", "db") if parent.args.get(part) is not None]
    base = parent.this if isinstance(parent, exp.Dot) and call.arg_key == "expression" else None
    parts = list(base.flatten()) if isinstance(base, exp.Dot) else [base]
    return (
        [part.name for part in parts if part is not None]
        if all(isinstance(part, exp.Identifier) for part in parts)
        else []
    )


def _macro_in(catalog: Catalog, name: str, names: Sequence[str]) -> Macro | None:
    """The macro of a schema; None if there is none, or no such schema."""
    try:
        schemas = catalog.schemas_named(names, None)
    except BindError:
        return None
    return catalog.lookup_macro(name, schemas)


def examples(form: MacroForm, is_table: bool) -> Iterator[ParsedStatement]:
    """The body of a form with a value in the place of each parameter: NULL at first, then values of several types where it has none."""
    for value in _EXAMPLES:
        values = {
            name: _as(exp.Null(), form.types[name]) if name in form.types else value
            for name in form.parameters
        }
        yield replace(form.body, tree=filled(form.body.tree.copy(), values, is_table))


def asks_before(form: MacroForm, span: tuple[int, int] | None) -> bool | None:
    """Whether DuckDB asks for the type of an argument before it looks for the column or table that stands there; None if none does."""
    untyped = set(form.parameters) - form.types.keys()
    names = list(form.body.tree.find_all(exp.Column, exp.Table))
    columns = [name for name in names if isinstance(name, exp.Column)]
    parameters = [column for column in columns if lower_ascii(column.parts[0].name) in untyped]
    found = next((_turn(name) for name in names if name not in parameters and span_of(name) == span), None)
    if found is None:
        return None
    turns = [turn for turn in map(_turn_of_asking, parameters) if turn is not None]
    return any(turn < found and found[: len(turn)] != turn for turn in turns)


def _turn_of_asking(parameter: exp.Column) -> tuple[int, ...] | None:
    """When what a parameter stands in asks for its type; None if it takes any."""
    used: exp.Expr = parameter
    while isinstance(used.parent, exp.Paren):
        used = used.parent
    parent = used.parent
    if len(parameter.parts) > 1 or isinstance(parent, exp.Query | None):
        return _turn(used)
    is_chosen = isinstance(parent, exp.If) and used.arg_key != "this"
    return None if isinstance(parent, _OF_ANY_TYPE) and not is_chosen else _turn(parent)


def _turn(node: exp.Expr) -> tuple[int, ...]:
    """When DuckDB binds a node, compared with others of its tree: in the order of the text but for the clauses of a SELECT."""
    turn: list[int] = []
    while node.parent is not None:
        key = node.arg_key or ""
        order = _CLAUSES if isinstance(node.parent, exp.Select) else list(node.parent.args)
        turn += (node.index or 0, order.index(key) if key in order else len(order))
        node = node.parent
    return tuple(reversed(turn))


def reads_columns(default: ParsedStatement) -> bool:
    """Whether the default of a parameter names columns, or other parameters, and is no constant."""
    return default.tree.find(exp.Column) is not None


def default_as(default: ParsedStatement, data_type: DataType) -> ParsedStatement:
    """The default of a parameter, `SELECT default`, as a value of its type."""
    value = default.tree.expressions[0].unalias()
    return replace(default, tree=exp.select(_as(value.copy(), data_type)))


def _as(value: exp.Expr, data_type: DataType) -> exp.Expr:
    """The value as one of the type that it must become without being asked."""
    cast = without_places(parse(f"SELECT CAST(NULL AS {data_type})").tree.expressions[0].unalias().copy())
    cast.this.replace(exp.Paren(this=value.copy()))
    cast.meta[UNASKED] = True
    return cast


def _replace(call: exp.Anonymous, macro: Macro, is_qualified: bool) -> None:
    table = call.parent if isinstance(call.parent, exp.Table) else None
    if table is not None:
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(macro.name, quoted=True))
        filled = _body(call, call.expressions, macro)
        table.replace(exp.Subquery(this=filled, alias=alias, joins=table.args.get("joins")))
        return
    whole: exp.Expr = call
    parts = written(call)
    assert parts is not None
    arguments = parts.arguments
    if (
        isinstance(call.parent, exp.Dot) and call.arg_key == "expression"
    ):  # argument.macro(...), or schema.macro(...)
        whole = call.parent
        arguments = arguments if is_qualified else [before_dot(whole), *arguments]
    value = _body(call, arguments, macro).expressions[0].unalias()
    around = whole.parent.parent if isinstance(whole.parent, exp.Filter) else whole.parent
    if isinstance(around, exp.Window) and called(around) is whole:
        around.replace(with_aggregate_over(around, parts, value))
    elif parts.distinct or parts.order or isinstance(whole.parent, exp.Filter):
        raise BindError(
            f'"{macro.name}" is a macro: DISTINCT, FILTER and ORDER BY are for aggregates, and macros with OVER',
            head_span(call),
        )
    else:
        whole.replace(exp.Paren(this=value))


def _body(call: exp.Anonymous, arguments: Sequence[exp.Expr], macro: Macro) -> exp.Expr:
    """What the macro stands for, with the arguments of a call in it."""
    form, values = _form_of(call, arguments, macro)
    return filled(without_places(form.body.tree.copy()), values, macro.is_table)


def _form_of(
    call: exp.Anonymous, arguments: Sequence[exp.Expr], macro: Macro
) -> tuple[MacroForm, Mapping[str, exp.Expr]]:
    """The form that the call means, and what stands for each of its parameters."""
    found: list[tuple[MacroForm, Mapping[str, exp.Expr]]] = []
    problems: list[BindError] = []
    for form in macro.forms:
        try:
            found.append((form, _arguments(call, arguments, macro.name, form)))
        except BindError as error:
            problems.append(error)
    if len(found) == 1:
        return found[0]
    if len(macro.forms) == 1:
        raise problems[0]
    shown = ", ".join(f"({', '.join(form.parameters)})" for form in macro.forms)
    if found:
        raise BindError(
            f'several forms of the macro "{macro.name}" take these arguments: name all of them (forms: {shown})',
            head_span(call),
        )
    raise BindError(
        f'no form of the macro "{macro.name}" takes these arguments (forms: {shown})', head_span(call)
    )


def _arguments(
    call: exp.Anonymous, arguments: Sequence[exp.Expr], name: str, form: MacroForm
) -> Mapping[str, exp.Expr]:
    """What stands for each parameter; raises BindError where the arguments are not for them."""
    values: dict[str, exp.Expr] = {}
    for number, argument in enumerate(arguments):
        if isinstance(argument, exp.PropertyEQ | exp.Kwarg):
            key = lower_ascii(argument.this.name)
            if key not in form.parameters or key in values:
                raise BindError(f'the macro "{name}" has no other parameter "{key}"', head_span(argument))
            values[key] = argument.expression
        elif number < len(form.parameters):
            values[form.parameters[number]] = argument
        else:
            raise BindError(
                f'the macro "{name}" takes {len(form.parameters)} arguments at most', head_span(call)
            )
    for parameter, value in values.items():
        if parameter in form.types:
            values[parameter] = _as(value, form.types[parameter])
    for parameter in form.parameters:
        default = form.defaults.get(parameter)
        if parameter not in values and default is not None:
            values[parameter] = default.tree.expressions[0].unalias()
        elif parameter not in values:
            raise BindError(f'the macro "{name}" needs a value for "{parameter}"', head_span(call))
    return values
