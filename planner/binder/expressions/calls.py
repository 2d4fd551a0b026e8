"""Function calls: overloads are chosen by `planner/functions/`, special forms are written out here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import (
    BIGINT,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    NULL,
    SMALLINT,
    TINYINT,
    VARCHAR,
)
from tqp.core.errors import BindError, ExecutionError, UnsupportedError, nearest
from tqp.planner.algebra.expressions import Call, Expression, Literal
from tqp.planner.binder.expressions.arrays import bind_array_value
from tqp.planner.binder.expressions.cases import make_case
from tqp.planner.binder.expressions.coercion import (
    as_text,
    cast_to,
    common_type_of,
    compare,
    condition_of,
    folded,
    of_type,
)
from tqp.planner.binder.expressions.models import bind_model
from tqp.planner.binder.expressions.subqueries import bind_exists
from tqp.planner.functions import registry as functions
from tqp.planner.functions.declaration import ScalarFunction
from tqp.planner.functions.literal_casts import unit_name
from tqp.planner.functions.missing import missing_feature, missing_form
from tqp.planner.functions.overloads import NoOverloadError, Overload, choose, finish, null_type
from tqp.planner.functions.type_rules import SourceLiteral, settle
from tqp.planner.parse import Span, head_span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder
    from tqp.planner.binder.scope import Scope


def bind_operator(
    binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], span: Span | None, shown: str
) -> Expression:
    """An operator that is a function of the table under `name`."""
    overloads = functions.scalar_overloads(name)
    assert overloads is not None
    arguments = [binder.bind_flexible(node) for node in nodes]
    return apply(overloads, arguments, span, shown)


def bind_negation(binder: ExpressionBinder, node: exp.Expr, span: Span | None) -> Expression:
    """-x; the negation of a constant that is its type's smallest value has the next wider type."""
    operand = binder.bind_flexible(node)
    overloads = functions.scalar_overloads("-")
    assert overloads is not None
    if isinstance(operand, Literal) and operand.data_type in _WIDER:
        value = operand.value
        if value == operand.data_type.bounds[0] and isinstance(value, int):
            return Literal(-value, _WIDER[operand.data_type])
    return apply(overloads, [operand], span, "-")


_WIDER = {TINYINT: SMALLINT, SMALLINT: INTEGER, INTEGER: BIGINT, BIGINT: HUGEINT}


def apply(
    overloads: Sequence[Overload],
    arguments: Sequence[Expression],
    span: Span | None,
    shown: str,
) -> Expression:
    """The call of the overload that fits, its arguments cast, folded if they are literals.

    A NULL that comes of a constant NULL is a constant, too; as text it mostly bends, as a constant text does.
    """
    try:
        overload = choose(overloads, arguments)
        function = functions.SCALARS[overload.canonical]
        _check_constants(function, overload, arguments, span)
        null = null_type(overload, arguments)
        if null is not None:
            return (SourceLiteral if null == VARCHAR and function.bends else Literal)(None, null)
        if function.takes_digits and len(arguments) > 1 and arguments[0].data_type.is_decimal:
            arguments = (arguments[0], _digits(arguments[1], span, shown))
        resolution = finish(overload, arguments)
    except NoOverloadError as error:
        raise _no_overload(error, arguments, span, shown) from None
    values = tuple(
        cast_to(argument, target, span) for argument, target in zip(arguments, resolution.argument_types)
    )
    if overload.swapped:
        values = values[::-1]
    if overload.constant is not None:
        values = (Literal(overload.constant, VARCHAR), *values)
    return folded(Call(resolution.overload.canonical, values, resolution.result, span))


def _check_constants(
    function: ScalarFunction, overload: Overload, arguments: Sequence[Expression], span: Span | None
) -> None:
    """Constant patterns are part of the query: one that is wrong is refused, whatever rows there are, as in DuckDB."""
    if function.check is None:
        return
    try:
        function.check(arguments[::-1] if overload.swapped else arguments)
    except (ExecutionError, BindError) as error:
        error.span = error.span or span
        raise


def _digits(digits: Expression, span: Span | None, shown: str) -> Literal:
    """The number of digits to round a DECIMAL to, which decides its type."""
    digits = cast_to(digits, INTEGER, span)
    if isinstance(digits, Literal) and digits.value is not None:
        return digits
    raise BindError(f"the number of digits of {shown} of a DECIMAL must be a constant, and not NULL", span)


def _no_overload(
    error: NoOverloadError, arguments: Sequence[Expression], span: Span | None, shown: str
) -> BindError:
    types = ", ".join(_type_shown(argument) for argument in arguments)
    candidates = ", ".join(error.candidates[:4]) + (", ..." if len(error.candidates) > 4 else "")
    if error.ambiguous:
        return BindError(f"{shown} on ({types}) may mean {candidates}; cast the text explicitly", span)
    return BindError(
        f"{shown} does not take ({types}); it takes {candidates}; cast the arguments to fit", span
    )


def _type_shown(argument: Expression) -> str:
    return (
        "text"
        if isinstance(argument, SourceLiteral) and isinstance(argument.value, str)
        else str(argument.data_type)
    )


def bind_call(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    """`name(arguments)`, scalar or aggregate."""
    written = node.this
    name = (written.name if isinstance(written, exp.Expr) else str(written)).lower()
    span = span_of(node)
    if functions.aggregate_overloads(name) is not None:
        return bind_aggregate(binder, node, name, None)
    if name == "exists" and node.expressions:
        return bind_exists(binder, node)
    nodes: list[exp.Expr] = node.expressions
    special = _SPECIAL.get(name) or _SPECIAL.get(functions.main_spelling(name))
    if special is not None:
        return special(binder, nodes, span)
    overloads = functions.scalar_overloads(name)
    if overloads is None:
        prediction = bind_model(binder, name, nodes, span)
        if prediction is not None:
            return prediction
        missing = missing_feature(name)
        if missing is not None:
            raise UnsupportedError(f"{missing} not supported", head_span(node))
        hint = nearest(name, [*functions.function_names(), *binder.context.catalog.model_names()])
        raise BindError(f'there is no function "{name}"{hint}', head_span(node))
    arguments = [binder.bind_flexible(argument) for argument in nodes]
    missing = missing_form(name, len(nodes))
    if missing is not None:
        raise UnsupportedError(f"{missing} not supported", head_span(node))
    return apply(overloads, arguments, span, f"{name}()")


def bind_aggregate(
    binder: ExpressionBinder, node: exp.Anonymous, name: str, condition: exp.Expr | None
) -> Expression:
    """Hand an aggregate call to the collector of the block it belongs to, or say that it may not stand here."""
    outer = _block_of(binder.scope, [node] if condition is None else [node, condition])
    if outer is not None:
        assert outer.open_aggregates is not None
        return outer.open_aggregates.bind(binder.for_scope(outer), node, name, condition)
    if binder.aggregates is None:
        raise BindError(f"aggregates such as {name}() are not allowed in {binder.clause}", head_span(node))
    return binder.aggregates.bind(binder, node, name, condition)


def _block_of(scope: Scope, nodes: Sequence[exp.Expr]) -> Scope | None:
    """An enclosing block that the aggregate belongs to: SQL has it where its columns come from, if all are outer.

    Those that its FILTER names count, those of subqueries in it do not.
    """
    if scope.parent is None:
        return None
    columns = [
        (column.name, column.args["table"].name if column.args.get("table") is not None else None)
        for node in nodes
        for column in node.walk(prune=lambda part: isinstance(part, exp.Query))
        if isinstance(column, exp.Column) and isinstance(column.this, exp.Identifier)
    ]
    if not columns or any(scope.has_column(*column) for column in columns):
        return None
    around: Scope | None = scope.parent
    while around is not None:
        if any(around.has_column(*column) for column in columns):
            return around if around.open_aggregates is not None else None
        around = around.parent
    return None


def bind_filtered(binder: ExpressionBinder, node: exp.Filter) -> Expression:
    """aggregate(...) FILTER (WHERE condition)."""
    call = node.this
    if not isinstance(call, exp.Anonymous):
        raise UnsupportedError("FILTER after this expression is not supported", span_of(node))
    name = str(call.this).lower()
    if functions.aggregate_overloads(name) is None:
        missing = missing_feature(name)
        if missing is not None:
            raise UnsupportedError(f"{missing} not supported", head_span(call))
        raise BindError(f'FILTER needs an aggregate, and "{name}" is none', head_span(call))
    return bind_aggregate(binder, call, name, node.expression.this)


# ---- special forms ----


def bind_if(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    """if(condition, value, otherwise), as a CASE."""
    if len(nodes) != 3:
        raise BindError("if() takes a condition and two values", span)
    condition = condition_of(binder.bind_flexible(nodes[0]), span_of(nodes[0]))
    values = [binder.bind_flexible(node) for node in nodes[1:]]
    return make_case([condition], values, span)


def _coalesce(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    _need(nodes, 1, "coalesce()", span)
    if len(nodes) == 1:
        return binder.bind_flexible(nodes[0])
    values = [binder.bind_flexible(node) for node in nodes]
    common = common_type_of(values, "coalesce()", span)
    rest: list[Expression] = []
    for value in values:
        if isinstance(value, Literal) and value.value is None:
            continue
        rest.append(cast_to(value, common, span))
        if isinstance(value, Literal):
            break  # never NULL: the rest is not looked at
    if not rest:
        return Literal(None, common)
    return rest[0] if len(rest) == 1 else Call("coalesce", tuple(rest), common, span)


def _nullif(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    _need(nodes, 2, "nullif()", span, exactly=True)
    left, right = (binder.bind_flexible(node) for node in nodes)
    condition = compare("equal", left, right, span)
    return make_case([condition], [Literal(None, NULL), settle(left)], span)


def _extreme(function: str) -> Callable[..., Expression]:
    def bind(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
        _need(nodes, 1, f"{function}()", span)
        values = [binder.bind_flexible(node) for node in nodes]
        common = common_type_of(values, f"{function}()", span)
        if common == NULL:
            return Literal(None, NULL)
        cast = tuple(cast_to(value, common, span) for value in values)
        return cast[0] if len(cast) == 1 else folded(Call(function, cast, common, span))

    return bind


def _concat(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    _need(nodes, 1, "concat()", span)
    values = tuple(as_text(binder.bind_flexible(node), span) for node in nodes)
    return Call("concat", values, VARCHAR, span)


def _concat_ws(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    _need(nodes, 2, "concat_ws()", span)
    bound = [binder.bind_flexible(node) for node in nodes]
    if bound[0].data_type not in (VARCHAR, NULL) and not bound[0].data_type.is_enum:
        raise BindError(f"the separator of concat_ws() must be VARCHAR, not {bound[0].data_type}", span)
    return Call("concat_ws", tuple(as_text(each, span) for each in bound), VARCHAR, span)


def _typeof(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    _need(nodes, 1, "typeof()", span, exactly=True)
    data_type = binder.bind(nodes[0]).data_type
    return Literal('"NULL"', VARCHAR) if data_type == NULL else SourceLiteral(str(data_type), VARCHAR)


def _fmod(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    """fmod(x, y), a macro of DuckDB: what one of the operators of x - y * floor(x / y) refuses, it refuses, too."""
    _need(nodes, 2, "fmod()", span, exactly=True)
    arguments = [binder.bind_flexible(node) for node in nodes]
    dividend, divisor = arguments
    quotient = _result("/", (dividend, divisor), span)
    product = _result("multiply", (divisor, quotient), span)
    _result("subtract", (dividend, product), span)
    overloads = functions.scalar_overloads("fmod")
    assert overloads is not None
    return apply(overloads, arguments, span, "fmod()")


def _result(operator: str, arguments: Sequence[Expression], span: Span | None) -> Expression:
    """A stand-in for what the operator gives."""
    overloads = functions.scalar_overloads(operator)
    assert overloads is not None
    try:
        overload = choose(overloads, arguments)
        return of_type(null_type(overload, arguments) or finish(overload, arguments).result)
    except NoOverloadError as error:
        raise _no_overload(error, arguments, span, f"fmod(), with its {operator},") from None


def _date(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    """date(x), a cast."""
    return cast_to(binder.bind_flexible(nodes[0]), DATE, span)


def _enum_operand(
    binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], span: Span | None
) -> Expression:
    _need(nodes, 1, f"{name}()", span, exactly=True)
    value = binder.bind(nodes[0])
    if not value.data_type.is_enum:
        raise BindError(f"{name}() takes an ENUM, not {value.data_type}", span)
    return value


def _enum_code(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    value = _enum_operand(binder, "enum_code", nodes, span)
    return folded(Call("enum_code", (value,), value.data_type.position_type, span))


def _enum_end(name: str, place: int) -> Callable[..., Expression]:
    def bind(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
        categories = _enum_operand(binder, name, nodes, span).data_type.categories
        return Literal(categories[place] if categories else None, VARCHAR)

    return bind


def _date_add(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    _need(nodes, 2, "date_add()", span, exactly=True)
    return bind_operator(binder, "add", nodes, span, "date_add()")


def _unary_plus(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    """+x: a number as it is (what abs() takes), but it no longer bends to its surroundings."""
    _need(nodes, 1, "+", span, exactly=True)
    call = bind_operator(binder, "abs", nodes, span, "+")
    return call.arguments[0] if isinstance(call, Call) else call


def _sum(name: str, alone: Callable[..., Expression]) -> Callable[..., Expression]:
    """add(a, b) and subtract(a, b); of one argument they are signs."""

    def bind(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
        if len(nodes) == 1:
            return alone(binder, nodes, span)
        return bind_operator(binder, name, nodes, span, f"{name}()")

    return bind


def _unary_minus(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    return bind_negation(binder, nodes[0], span)


def _array_value(binder: ExpressionBinder, nodes: list[exp.Expr], span: Span | None) -> Expression:
    return bind_array_value([binder.bind(node) for node in nodes], span)


def _pi(_: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    if nodes:
        raise BindError("pi() takes no arguments", span)
    return Literal(math.pi, DOUBLE)


def _date_part(binder: ExpressionBinder, nodes: Sequence[exp.Expr], span: Span | None) -> Expression:
    _need(nodes, 2, "date_part()", span, exactly=True)
    part = binder.bind(nodes[0])
    if part.data_type.is_enum:
        part = as_text(part, span)
    if isinstance(part, Literal) and part.value is None:
        return bind_operator(binder, "date_part", nodes, span, "date_part()")
    if not isinstance(part, Literal) or not isinstance(part.value, str):
        raise UnsupportedError("date_part() with a part that is not a constant is not supported", span)
    return date_part(binder, part.value, nodes[1], span)


def date_part(binder: ExpressionBinder, part: str, node: exp.Expr, span: Span | None) -> Expression:
    """One part of a date, time or interval: EXTRACT and the functions named after parts."""
    name = _part_name(part)
    if name is None:
        raise BindError(f'"{part}" is not a part of a date or time{nearest(part, _PART_NAMES)}', span)
    overloads = functions.scalar_overloads("date_part")
    assert overloads is not None
    arguments = [SourceLiteral(name, VARCHAR), binder.bind_flexible(node)]
    return apply(overloads, arguments, span, "date_part()")


_PART_NAMES = """
    year month day decade century millennium quarter week isodow isoyear yearweek era dow doy hour
    minute second millisecond microsecond epoch julian timezone timezone_hour timezone_minute
""".split()
_PART_SPELLINGS = {
    **{name: name for name in _PART_NAMES},
    **dict.fromkeys(("dayofweek", "weekday"), "dow"),
    "dayofyear": "doy",
    "dayofmonth": "day",
    "weekofyear": "week",
}


def _part_name(part: str) -> str | None:
    lowered = part.lower()
    return _PART_SPELLINGS.get(lowered) or unit_name(lowered)


def bind_extract(binder: ExpressionBinder, node: exp.Extract) -> Expression:
    """EXTRACT(part FROM x)."""
    return date_part(binder, node.this.name, node.expression, span_of(node))


def bind_substring(binder: ExpressionBinder, node: exp.Substring) -> Expression:
    """SUBSTRING(s FROM start FOR length), and with commas."""
    start, length = node.args.get("start"), node.args.get("length")
    if start is None and length is not None:
        start = exp.Literal.number(1)
    parts = [node.this, start, length]
    nodes = [part for part in parts if part is not None]
    return bind_operator(binder, "substring", nodes, span_of(node), "substring()")


def bind_position(binder: ExpressionBinder, node: exp.StrPosition) -> Expression:
    """POSITION(needle IN s), strpos and instr."""
    return bind_operator(binder, "strpos", (node.this, node.args["substr"]), span_of(node), "position()")


def bind_trim(binder: ExpressionBinder, node: exp.Trim) -> Expression:
    """TRIM([LEADING | TRAILING | BOTH] characters FROM s)."""
    function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
        str(node.args.get("position") or "").upper(), "trim"
    )
    nodes = [part for part in (node.this, node.expression) if part is not None]
    return bind_operator(binder, function, nodes, span_of(node), f"{function}()")


def _need(nodes: Sequence[exp.Expr], count: int, name: str, span: Span | None, exactly: bool = False) -> None:
    if len(nodes) < count or (exactly and len(nodes) > count):
        least = "" if exactly else "at least "
        raise BindError(
            f"{name} takes {least}{count} argument{'s' if count > 1 else ''}, not {len(nodes)}", span
        )


_SPECIAL: dict[str, Callable[..., Expression]] = {
    "coalesce": _coalesce,
    "ifnull": _coalesce,
    "nullif": _nullif,
    "if": bind_if,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "typeof": _typeof,
    "fmod": _fmod,
    "date": _date,
    "enum_code": _enum_code,
    "enum_first": _enum_end("enum_first", 0),
    "enum_last": _enum_end("enum_last", -1),
    "date_add": _date_add,
    "date_part": _date_part,
    "pi": _pi,
    "+": _unary_plus,
    "add": _sum("add", _unary_plus),
    "subtract": _sum("subtract", _unary_minus),
    "array_value": _array_value,
}
