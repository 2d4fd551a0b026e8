"""Operators as they are written (-, +, ||, AND, NOT, IS, LIKE, GLOB): which function each calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BLOB, BOOLEAN, NULL, VARCHAR, TypeKind
from tqp.core.errors import UnsupportedError
from tqp.core.patterns import like_of_glob
from tqp.planner.algebra.expressions import FALSE, TRUE, Call, Expression, Literal, is_null_literal
from tqp.planner.binder.expressions.coercion import cast_to, condition_of, folded
from tqp.planner.binder.expressions.collations import of_arguments
from tqp.planner.binder.expressions.literals import bind_number, signed_number
from tqp.planner.binder.expressions.nested import values as nested_values
from tqp.planner.binder.expressions.operators import apply, bind_operator, negation
from tqp.planner.binder.text_constants import varying
from tqp.planner.functions.constants import constant_text
from tqp.planner.functions.type_rules import SourceLiteral
from tqp.planner.parse import chain_of, head_span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

#: The function of each operator, and how messages show it.
ARITHMETIC: dict[type, tuple[str, str]] = {
    exp.Add: ("add", "+"),
    exp.Sub: ("subtract", "-"),
    exp.Mul: ("multiply", "*"),
    exp.Div: ("/", "/"),
    exp.IntDiv: ("//", "//"),
    exp.Mod: ("%", "%"),
    exp.Pow: ("power", "**"),
    exp.BitwiseAnd: ("&", "&"),
    exp.BitwiseOr: ("|", "|"),
    exp.BitwiseLeftShift: ("<<", "<<"),
    exp.BitwiseRightShift: (">>", ">>"),
    exp.RegexpLike: ("regexp_matches", "~"),
    exp.RegexpFullMatch: ("regexp_full_match", "~"),
    exp.SimilarTo: ("regexp_full_match", "SIMILAR TO"),
    exp.StartsWith: ("starts_with", "^@"),
}
LIKES: dict[type, tuple[str, str]] = {exp.Like: ("~~", "LIKE"), exp.ILike: ("~~*", "ILIKE")}


def bind_negation(binder: ExpressionBinder, node: exp.Neg) -> Expression:
    """-x; a number written with any signs and parentheses is one literal."""
    number, negative = signed_number(node)
    if number is not None:
        return varying(bind_number(number.args["this"], head_span(number), negative), number, negative)
    return negation(binder, node.this, span_of(node))


def bind_arithmetic(binder: ExpressionBinder, node: exp.Binary) -> Expression:
    """An operator of `ARITHMETIC`; lists are joined by +."""
    name, sign = ARITHMETIC[type(node)]
    sides = [binder.bind_flexible(each) for each in (node.this, node.expression)]
    if name == "add" and nested_values.are_lists(sides):
        return nested_values.joined(sides, span_of(node))
    return apply(name, sides, span_of(node), sign)


def bind_regular_expression(binder: ExpressionBinder, node: exp.RegexpILike) -> Expression:
    """~*, as ~ whatever the case of letters."""
    sides = [binder.bind_flexible(each) for each in (node.this, node.expression)]
    return apply("regexp_matches", (*sides, Literal("i", VARCHAR)), span_of(node), "~*")


def bind_concatenation(binder: ExpressionBinder, node: exp.DPipe) -> Expression:
    """||, of texts, of bytes, or of lists."""
    span = span_of(node)
    bound = [binder.bind_flexible(side) for side in (node.this, node.expression)]
    if any(side.data_type.kind in (TypeKind.LIST, TypeKind.ARRAY) for side in bound):
        if any(side.data_type == NULL for side in bound):
            return Literal(None, NULL)
        return nested_values.concatenated(bound[0], bound[1], span)
    if any(side.data_type == NULL for side in bound):
        return Literal(None, NULL)
    target = BLOB if all(side.data_type == BLOB for side in bound) else VARCHAR
    if any(map(is_null_literal, bound)):
        return (SourceLiteral if target == VARCHAR else Literal)(None, target)
    sides = tuple(cast_to(side, target, span) for side in bound)
    return folded(Call("concat_operator", sides, of_arguments(target, sides, span), span))


def bind_connective(binder: ExpressionBinder, node: exp.Connector) -> Expression:
    """AND, OR; a chain of one kind becomes one n-ary call."""
    function = "and" if isinstance(node, exp.And) else "or"
    parts = tuple([binder.bind_condition(part) for part in chain_of(node)])
    return folded(Call(function, parts, BOOLEAN, span_of(node)))


def bind_not(binder: ExpressionBinder, node: exp.Not) -> Expression:
    """NOT."""
    span = span_of(node)
    operand = condition_of(binder.bind_flexible(node.this), span)
    return folded(Call("not", (operand,), BOOLEAN, span))


def bind_is(binder: ExpressionBinder, node: exp.Is) -> Expression:
    """IS [NOT] NULL, TRUE, FALSE."""
    span = span_of(node)
    operand, right = binder.bind(node.this), node.expression
    if isinstance(right, exp.Null):
        test = Call("is_null", (operand,), BOOLEAN, span)
    elif isinstance(right, exp.Boolean):
        flag = condition_of(operand, span)
        test = Call("is_not_distinct_from", (flag, TRUE if right.this else FALSE), BOOLEAN, span)
    else:
        raise UnsupportedError(f"IS {right.sql('duckdb')} is not supported", span)
    result = folded(test)
    return folded(Call("not", (result,), BOOLEAN, span)) if node.args.get("negate") else result


def bind_like(binder: ExpressionBinder, node: exp.Binary, escape: exp.Expr | None = None) -> Expression:
    """[NOT] LIKE, ILIKE."""
    operator, shown = LIKES[type(node)]
    right = node.expression
    if isinstance(right, (exp.Any, exp.All, exp.Tuple)):
        raise UnsupportedError(
            "LIKE ANY and LIKE ALL are not supported; join the patterns with OR", span_of(node)
        )
    arguments = (node.this, right) if escape is None else (node.this, right, escape)
    bound = bind_operator(binder, operator, arguments, span_of(node), shown)
    if node.args.get("negate"):
        return folded(Call("not", (bound,), BOOLEAN, span_of(node)))
    return bound


def bind_glob(binder: ExpressionBinder, node: exp.Glob) -> Expression:
    """GLOB, as LIKE where a constant pattern says no more than that can."""
    subject, written_pattern = node.this, node.expression
    pattern = constant_text(folded(binder.bind(written_pattern)))
    like = None if pattern is None else like_of_glob(pattern)
    if like is None:
        return bind_operator(binder, "~~~", (subject, written_pattern), span_of(node), "GLOB")
    written = exp.Like(this=subject, expression=exp.Literal.string(like))
    return bind_like(binder, written, exp.Literal.string("\\"))


def bind_escape(binder: ExpressionBinder, node: exp.Escape) -> Expression:
    """LIKE with an ESCAPE character."""
    if type(node.this) not in LIKES:
        raise UnsupportedError("ESCAPE after this operator is not supported", span_of(node))
    return bind_like(binder, node.this, node.expression)
