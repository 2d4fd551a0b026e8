"""Functions of a constant list of names or formats: as many calls of the function as the list has, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BOOLEAN, INTEGER, TIMESTAMP_TZ, VARCHAR
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.patterns import number_of_groups, parse_format
from tqp.planner.algebra.expressions import Call, Expression, Literal, is_null_literal, walk
from tqp.planner.binder.expressions.coercion import cast_to, folded
from tqp.planner.binder.expressions.forms.cases import make_case
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes, call_of
from tqp.planner.binder.expressions.nested.values import struct_of_values
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.functions.constants import constant_text, is_constant
from tqp.planner.functions.type_rules import SourceLiteral
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def texts_of(node: exp.Expr, what: str, span: Span | None) -> list[str] | None:
    """The texts of a list that is written out; None of what is no list."""
    if not isinstance(node, exp.Array):
        return None
    texts = [each.name for each in node.expressions if isinstance(each, exp.Literal) and each.is_string]
    if not node.expressions:
        raise BindError(f"{what} must be one at least", span)
    if len(texts) < len(node.expressions):
        raise UnsupportedError(f"{what} that are no constant texts are not supported", span)
    return texts


def _struct(
    names: Sequence[str], values: Sequence[Expression], of: Expression, span: Span | None
) -> Expression:
    """The values under their names; NULL where what they are of is."""
    if len(set(map(lower_ascii, names))) < len(names):
        raise BindError("a struct cannot have two fields of one name", span)
    made = struct_of_values(dict(zip(names, values, strict=True)), span)
    is_there = folded(Call("not", (folded(Call("is_null", (of,), BOOLEAN, span)),), BOOLEAN, span))
    return make_case([is_there], [made, Literal(None, made.data_type)], span)


def struct_of_parts(
    binder: ExpressionBinder,
    names: Sequence[str],
    part: Callable[[str], Expression],
    node: exp.Expr,
    span: Span | None,
) -> Expression:
    """date_part(['year', ...], x)"""
    value = binder.bind(node)
    is_part = any(each.data_type.is_nested for each in walk(value))
    if is_null_literal(value) or (is_part and is_constant(value)):
        raise UnsupportedError(
            "a list of parts of a constant that is NULL, or may be, is not supported", span
        )
    return _struct(names, [part(name) for name in names], binder.bind(node), span)


def _parsed(function: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """strptime(s, format), or of a list of formats the first that fits; instants with a zone if one of them reads an offset."""
    text = binder.bind_flexible(nodes[0])
    formats = texts_of(nodes[1], f"the formats of {function}()", span)
    if formats is None:
        pattern = binder.bind_flexible(nodes[1])
        instant = apply(function, (text, pattern), span, f"{function}()")
        return cast_to(instant, TIMESTAMP_TZ, span) if _reads_offset(constant_text(pattern)) else instant
    names = ["try_strptime"] * (len(formats) - 1) + [function]
    values = [
        apply(name, (text, SourceLiteral(each, VARCHAR)), span, f"{function}()")
        for name, each in zip(names, formats, strict=True)
    ]
    first = values[0] if len(values) == 1 else Call("coalesce", tuple(values), values[0].data_type, span)
    return cast_to(first, TIMESTAMP_TZ, span) if any(map(_reads_offset, formats)) else first


def _reads_offset(pattern: str | None) -> bool:
    """Does a format of dates read an offset from UTC?"""
    return pattern is not None and any(is_code and code[-1] == "z" for is_code, code in parse_format(pattern))


def _extracted(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """regexp_extract(s, pattern, group), or of a list of names a struct of the first groups; a text is options of the whole match."""
    names = texts_of(nodes[2], "the names of groups", span) if len(nodes) > 2 else None
    bound = [binder.bind_flexible(node) for place, node in enumerate(nodes) if names is None or place != 2]
    if names is None:
        if len(bound) == 3 and bound[2].data_type.is_string:
            bound.insert(2, Literal(0, INTEGER))
        return apply("regexp_extract", bound, span, "regexp_extract()")
    text, pattern, *options = bound
    _check_names(names, pattern, span)
    groups = [
        apply("regexp_extract", (text, pattern, Literal(group, INTEGER), *options), span, "regexp_extract()")
        for group in range(1, len(names) + 1)
    ]
    return _struct(names, groups, binder.bind(nodes[0]), span)


def _extracted_all(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """regexp_extract_all(s, pattern, group), or of a list of names structs of the first groups, one for each match."""
    names = texts_of(nodes[2], "the names of groups", span) if len(nodes) > 2 else None
    if names is None:
        bound = [binder.bind_flexible(node) for node in nodes]
        return apply("regexp_extract_all", bound, span, "regexp_extract_all()")
    text, pattern, _, *options = nodes
    _check_names(names, binder.bind_flexible(pattern), span)
    text = exp.cast(text.copy(), "VARCHAR")
    numbers = [exp.Literal.number(place) for place in range(1, len(names) + 1)]
    groups = [call_of("regexp_extract_all", text, pattern, number, *options) for number in numbers]
    row = exp.to_identifier("groups_of_match")
    fields = [
        exp.PropertyEQ(
            this=exp.to_identifier(name, quoted=True), expression=exp.Bracket(this=row, expressions=[number])
        )
        for name, number in zip(names, numbers, strict=True)
    ]
    function = exp.Lambda(this=exp.Struct(expressions=fields), expressions=[row])
    found = call_of("list_transform", call_of("list_zip", *groups), function)
    is_there = exp.Not(this=exp.Is(this=text, expression=exp.Null()))
    return binder.bind(exp.Case(ifs=[exp.If(this=is_there, true=found)]).copy())


def _check_names(names: Sequence[str], pattern: Expression, span: Span | None) -> None:
    """Raises BindError where there are more names than the pattern has groups, or one stands there twice."""
    written = constant_text(pattern)
    if written is None:
        raise UnsupportedError("names of the groups of a pattern that is no constant are not supported", span)
    count = number_of_groups(written)
    if len(names) > count:
        raise BindError(f"the pattern has {count} groups, and there are {len(names)} names", span)
    if len(set(map(lower_ascii, names))) < len(names):
        raise BindError("a struct cannot have two fields of one name", span)


LISTED_FORMS: Forms = {
    "strptime": (partial(_parsed, "strptime"), 2, 2),
    "try_strptime": (partial(_parsed, "try_strptime"), 2, 2),
    "regexp_extract": (_extracted, 2, 4),
    "regexp_extract_all": (_extracted_all, 2, 4),
}
