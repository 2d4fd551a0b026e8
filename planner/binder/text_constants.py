"""Which constants of a text may vary while everything else of its plan stays: operands of predicates, bound as `Varying`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tqp.core.datatypes import VARCHAR
from tqp.core.errors import BindError
from tqp.planner.algebra.expressions import Literal, TextConstant, Varying
from tqp.planner.binder.expressions.literals import bind_number
from tqp.planner.functions.type_rules import SourceLiteral, settle
from tqp.planner.syntax.tokens import PIECES, Tokens
from tqp.planner.syntax.words import NUMBER, TEXT

#: An argument of a literal: its place among the constants of the text. So no two are equal, whatever they are.
_PLACE = "place"

_PREDICATES = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Between,
    exp.In,
    exp.Like,
    exp.ILike,
)
_NO_CONSTANTS = (exp.Column, exp.Star, exp.Query)
#: What an operand may be made of constants by.
_COMPUTED = (exp.Neg, exp.Paren, exp.Cast, exp.Add, exp.Sub, exp.Mul, exp.Interval)


def places_of_constants(tokens: Tokens) -> list[int]:
    """The indexes of the tokens that are numbers and texts."""
    return [index for index, kind in enumerate(tokens.kinds) if kind in (NUMBER, TEXT)]


def mark_text_constants(tree: exp.Expr, tokens: Tokens) -> frozenset[int]:
    """Let the binder take for `Varying` what stands for a value in predicates, and in no name of a column: their places."""
    marked = set()
    indexes = places_of_constants(tokens)
    places = {tokens.starts[index]: place for place, index in enumerate(indexes)}
    for node in tree.find_all(exp.Literal):
        place = places.get(node.meta.get("start", -1))
        if place is None or not _is_operand(node):
            continue
        source = tokens.source(indexes[place])
        if node.this == (_text(source) if node.is_string else source):
            node.set(_PLACE, place)
            marked.add(place)
    return frozenset(marked)


def _is_operand(node: exp.Expr) -> bool:
    while isinstance(node.parent, _COMPUTED):
        node = node.parent
    predicate = node.parent
    if (
        not isinstance(predicate, _PREDICATES)
        or node.find(*_NO_CONSTANTS)
        or not predicate.find(*_NO_CONSTANTS)
    ):
        return False
    return not _is_in_name(predicate)


def _is_in_name(node: exp.Expr) -> bool:
    """Does it stand in an item of a SELECT that has no name but its text?"""
    is_named = False
    while (parent := node.parent) is not None:
        is_named = is_named or isinstance(node, exp.Alias)
        if isinstance(parent, exp.Select):
            if node.arg_key == "expressions" and not is_named:
                return True
            is_named = False
        node = parent
    return False


def varying(literal: Literal, node: exp.Literal, negative: bool = False) -> Literal | Varying:
    """A literal that was made of the node; of a marked one a constant whose value nothing may depend on."""
    place = node.args.get(_PLACE)
    if place is None:
        return literal
    constant = TextConstant(place, literal.data_type, negative)
    return Varying(constant, literal.data_type, literal.value, isinstance(literal, SourceLiteral))


def constant_of_text(constant: TextConstant, sources: Sequence[str]) -> Literal | None:
    """The constant in a text whose constants are `sources`; None where it is of another type."""
    source = sources[constant.place]
    text = _text(source)
    try:
        literal = (
            Literal(text, VARCHAR)
            if text is not None
            else settle(bind_number(source, _NOWHERE, constant.negative))
        )
    except BindError:
        return None
    return literal if isinstance(literal, Literal) and literal.data_type == constant.data_type else None


_NOWHERE = (0, 0)


def _text(source: str) -> str | None:
    """What a plain text in quotes says; None of numbers, and of texts of other kinds."""
    found = PIECES.fullmatch(source)
    return None if found is None else found[1].replace("''", "'")
