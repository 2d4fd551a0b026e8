"""Calls that are no function of their arguments' types alone: COALESCE, IF, greatest(), EXTRACT, TRIM and their like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import DATE, DOUBLE, NULL, VARCHAR
from tqp.core.errors import BindError, UnsupportedError, nearest
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
)
from tqp.planner.binder.expressions.operators import apply, bind_negation, bind_operator
from tqp.planner.functions.literal_casts import unit_name
from tqp.planner.functions.type_rules import SourceLiteral, settle
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


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
    """fmod(x, y), a macro of DuckDB: x - y * floor(x / y)."""
    _need(nodes, 2, "fmod()", span, exactly=True)
    dividend, divisor = (binder.bind_flexible(node) for node in nodes)
    quotient = apply("/", (dividend, divisor), span, "fmod(), with its /,")
    whole = apply("floor", (quotient,), span, "fmod()")
    product = apply("multiply", (divisor, whole), span, "fmod(), with its *,")
    return apply("subtract", (dividend, product), span, "fmod(), with its -,")


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
    return apply("date_part", [SourceLiteral(name, VARCHAR), binder.bind_flexible(node)], span, "date_part()")


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


#: By name, what is bound otherwise than by its overloads.
SPECIAL_FORMS: dict[str, Callable[..., Expression]] = {
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
