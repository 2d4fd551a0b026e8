"""Expressions as SQL-like text, for EXPLAIN and for the comments in generated programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta, timezone
from typing import Any

from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind, list_of
from tqp.core.keywords import quoted, quoted_text
from tqp.core.unsigned_128 import unsigned_of_stored
from tqp.core.uuids import uuid_of_stored
from tqp.core.zoned_times import clock_of_stored, offset_of_stored
from tqp.planner.algebra.element_expressions import ElementRef, OverElements, ReduceElements
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    Predict,
    PythonCall,
    SortKey,
    Try,
    Value,
)
from tqp.planner.algebra.subquery_expressions import Exists, QuantifiedComparison, ScalarSubquery
from tqp.planner.functions.registry import SCALARS

Names = Mapping[int, str]

_NO_NAMES: Names = {}
_MOST_LISTED = 8
_MOST_ELEMENTS = 3

_NOT_BINDS = 3


def format_expression(expression: Expression, names: Names = _NO_NAMES) -> str:
    """SQL-like text; a column by `names[id]`, else by its own name.

    >>> from tqp.core.datatypes import BOOLEAN, INTEGER
    >>> x, one = ColumnRef(0, INTEGER, "x"), Literal(1, INTEGER)
    >>> format_expression(Call("less", (Call("add", (x, one), INTEGER), one), BOOLEAN))
    'x + 1 < 1'
    """
    return format_operand(expression, names, 0)


def format_operand(expression: Expression, names: Names, binding: int) -> str:
    """Text, in parentheses if what stands around it binds tighter."""
    match expression:
        case ColumnRef():
            return names.get(expression.id) or expression.name or f"#{expression.id}"
        case Literal():
            return format_literal(expression)
        case Parameter():
            return f"?{expression.index + 1}"
        case Call():
            return _format_call(expression, names, binding)
        case Cast():
            keyword = "TRY_CAST" if expression.is_try else "CAST"
            return f"{keyword}({format_operand(expression.input, names, 0)} AS {expression.data_type})"
        case Try():
            return f"TRY({format_operand(expression.input, names, 0)})"
        case Case():
            branches = " ".join(
                f"WHEN {format_operand(condition, names, 0)} THEN {format_operand(value, names, 0)}"
                for condition, value in expression.branches
            )
            return f"CASE {branches} ELSE {format_operand(expression.default, names, 0)} END"
        case InList():
            return _format_in(expression, names, negated=False)
        case ElementRef():
            return expression.name
        case OverElements():
            names_of = ", ".join(each.name for each in (expression.element, expression.index) if each)
            operand, body = (format_operand(each, names, 0) for each in expression.inputs)
            return f"{expression.function}({operand}, lambda {names_of}: {body})"
        case ReduceElements():
            names_of = ", ".join(each.name for each in expression.parameters)
            operand, initial, body = (format_operand(each, names, 0) for each in expression.inputs)
            start = "" if expression.from_first else f", {initial}"
            return f"list_reduce({operand}, lambda {names_of}: {body}{start})"
        case Predict():
            return _format_predict(expression, names)
        case PythonCall():
            arguments = ", ".join(format_operand(argument, names, 0) for argument in expression.arguments)
            return f"{expression.function.name}({arguments})"
        case AggregateCall():
            arguments = ", ".join(format_operand(argument, names, 0) for argument in expression.arguments)
            function, distinct = expression.function, "DISTINCT " if expression.distinct else ""
            arguments += f" ORDER BY {sort_keys_text(expression.order, names)}" if expression.order else ""
            text = "count(*)" if function == "count_star" else f"{function}({distinct}{arguments})"
            if expression.filter is None:
                return text
            return f"{text} FILTER (WHERE {format_operand(expression.filter, names, 0)})"
        case ScalarSubquery():
            return "(subquery)"
        case Exists():
            return "EXISTS (subquery)"
        case QuantifiedComparison():
            operands = ", ".join(format_operand(operand, names, 5) for operand in expression.operands)
            infix = SCALARS[expression.comparison].infix
            operator = "" if infix is None else infix.operator
            return f"({operands}) {operator} {'ALL' if expression.is_all else 'ANY'} (subquery)"
    return type(expression).__name__


def sort_keys_text(keys: Iterable[SortKey], names: Names) -> str:
    """a DESC, b"""
    return ", ".join(
        format_expression(key.expression, names)
        + (" DESC" if key.descending else "")
        + (" NULLS FIRST" if key.nulls_first else "")
        for key in keys
    )


def _format_call(call: Call, names: Names, binding: int) -> str:
    function, arguments = call.function, call.arguments
    infix = SCALARS[function].infix
    if infix is not None and (len(arguments) == 2 or infix.is_associative):
        operator, strength, is_associative = infix
        right = strength if is_associative else strength + 1
        parts = [format_operand(arguments[0], names, strength)]
        parts += [format_operand(argument, names, right) for argument in arguments[1:]]
        return _wrap(f" {operator} ".join(parts), strength, binding)
    if function == "not":
        return _wrap(_format_not(arguments[0], names), _NOT_BINDS, binding)
    if function == "is_null":
        return _wrap(f"{format_operand(arguments[0], names, 5)} IS NULL", 4, binding)
    if function == "negate":
        return f"-{format_operand(arguments[0], names, 8)}"
    if function == "date_part" and isinstance(arguments[0], Literal):
        return f"{arguments[0].value!s}({format_operand(arguments[1], names, 0)})"
    return f"{function}({', '.join(format_operand(argument, names, 0) for argument in arguments)})"


def _format_predict(expression: Predict, names: Names) -> str:
    """The call as it may be written; strings without the codes that they become."""
    inputs = (
        argument.arguments[0]
        if isinstance(argument, Call) and argument.function == "category_code"
        else argument
        for argument in expression.arguments
    )
    text = f"{expression.model.title}({', '.join(format_operand(each, names, 0) for each in inputs)})"
    if expression.combinations:
        text += f" [of {expression.combinations} combinations]"
    return (
        text if expression.output == expression.model.default_output else f"{text}.{expression.output.kind}"
    )


def _format_not(operand: Expression, names: Names) -> str:
    match operand:
        case InList():
            return _format_in(operand, names, negated=True)
        case Call(function="is_null"):
            return f"{format_operand(operand.arguments[0], names, 5)} IS NOT NULL"
        case Call(function="like" | "ilike") if len(operand.arguments) == 2:
            left, pattern = (format_operand(argument, names, 5) for argument in operand.arguments)
            return f"{left} NOT {operand.function.upper()} {pattern}"
    return f"NOT {format_operand(operand, names, _NOT_BINDS + 1)}"


def _format_in(expression: InList, names: Names, *, negated: bool) -> str:
    shown = [format_operand(value, names, 0) for value in expression.values[:_MOST_LISTED]]
    if len(expression.values) > _MOST_LISTED:
        shown.append(f"... {len(expression.values)} values")
    return f"{format_operand(expression.input, names, 5)} {'NOT ' if negated else ''}IN ({', '.join(shown)})"


def _wrap(text: str, strength: int, binding: int) -> str:
    return f"({text})" if strength < binding else text


def format_literal(literal: Literal) -> str:
    """A constant as SQL writes it; the storage value where the calendar does not reach."""
    value, data_type = literal.value, literal.data_type
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return quoted_text(value) + ("::BIT" if data_type.kind is TypeKind.BIT else "")
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    if isinstance(value, tuple) and data_type.is_vector:
        shown = [str(element) for element in value[:_MOST_ELEMENTS]]
        more = ["..."] if len(value) > _MOST_ELEMENTS else []
        return f"[{', '.join(shown + more)}]::{data_type}"
    if isinstance(value, tuple) and data_type.is_nested:
        return _format_nested(value, data_type)
    if isinstance(value, tuple):
        months, days, microseconds = value
        parts = [(months, "months"), (days, "days"), (microseconds, "microseconds")]
        shown = [f"{count} {unit}" for count, unit in parts if count] or ["0 days"]
        return f"INTERVAL '{' '.join(shown)}'"
    if isinstance(value, int) and data_type.is_decimal and data_type.scale:
        digits = f"{abs(value):0{data_type.scale + 1}d}"
        sign = "-" if value < 0 else ""
        return f"{sign}{digits[: -data_type.scale]}.{digits[-data_type.scale :]}"
    if isinstance(value, int) and data_type.is_enum:
        return quoted_text(data_type.categories[value])
    if isinstance(value, int) and data_type.kind is TypeKind.UHUGEINT:
        return str(unsigned_of_stored(value))
    if isinstance(value, int) and data_type.kind is TypeKind.UUID:
        return f"'{uuid_of_stored(value)}'"
    if isinstance(value, int) and data_type.is_temporal:
        return _format_temporal(value, data_type.kind)
    return str(value)


def _format_nested(value: tuple[Value, ...], data_type: DataType) -> str:
    if data_type.kind is TypeKind.MAP:
        entries: tuple[Any, ...] = value
        lists = zip(zip(*entries, strict=True), map(list_of, data_type.element.children), strict=False)
        return f"MAP({', '.join(format_literal(Literal(*each)) for each in lists)})"
    if data_type.is_union:
        tag, *members = value
        assert isinstance(tag, int)
        name, member = list(data_type.members.items())[tag]
        return f"union_value({quoted(name)} := {format_literal(Literal(members[tag], member))})"
    is_list = data_type.has_elements
    types = [data_type.element] * len(value) if is_list else data_type.children
    texts = [format_literal(Literal(*each)) for each in zip(value[:_MOST_ELEMENTS], types, strict=False)]
    if not is_list and not data_type.is_tuple:
        texts = [f"{quoted(name)}: {text}" for name, text in zip(data_type.names, texts, strict=False)]
    shown = ", ".join([*texts, *["..."] * (len(value) > len(texts))])
    return f"[{shown}]" if is_list else f"({shown})" if data_type.is_tuple else f"{{{shown}}}"


def _format_temporal(value: int, kind: TypeKind) -> str:
    try:
        if kind is TypeKind.DATE:
            return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
        if kind is TypeKind.TIME:
            return f"TIME '{(datetime(1970, 1, 1) + timedelta(microseconds=value)).time()}'"
        if kind is TypeKind.TIME_TZ:
            zone = timezone(timedelta(seconds=offset_of_stored(value)))
            clock = datetime(1970, 1, 1, tzinfo=zone) + timedelta(microseconds=clock_of_stored(value))
            return f"TIMETZ '{clock.timetz()}'"
        microseconds = value * 10**6 // TICKS_PER_SECOND[kind]
        return f"TIMESTAMP '{datetime(1970, 1, 1) + timedelta(microseconds=microseconds)}'"
    except OverflowError:
        return f"{kind.value} {value}"
