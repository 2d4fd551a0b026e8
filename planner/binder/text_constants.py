"""Which constants may vary while everything else of a text's plan stays: operands of predicates, bound as `Varying`, and of computations.

They are numbers and texts of the SQL, and values given for its parameters.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping
from dataclasses import field
from typing import NamedTuple

from sqlglot import exp

from tqp.core.datatypes import VARCHAR
from tqp.core.errors import BindError
from tqp.core.frozen import dataclass
from tqp.planner.algebra.expressions import Expression, Literal, TextConstant, Varying
from tqp.planner.binder.expressions.literals import bind_number, literal_of
from tqp.planner.functions.type_rules import SourceLiteral, settle
from tqp.planner.parse import ParsedStatement
from tqp.planner.syntax.tokens import PIECES, Tokens, tokenize
from tqp.planner.syntax.words import NUMBER, TEXT

#: Key in the meta of a node: the place of its constant. It is an argument of literals, too, so that no two of these are equal.
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
_NO_CONSTANTS = (exp.Column, exp.PositionalColumn, exp.Star, exp.Query)
#: Where a value is computed with.
_COMPUTATIONS = (exp.Binary, exp.Func, exp.Alias)
#: What an operand may be made of constants by.
_COMPUTED = (exp.Neg, exp.Paren, exp.Cast, exp.Add, exp.Sub, exp.Mul, exp.Interval)


#: The number of a constant among those of the text; of a value given for a parameter, "$" and the parameter's key.
Place = int | str


@dataclass(frozen=True, slots=True)
class GivenValue:
    """The value of a parameter. Values are equal where their keys are."""

    value: object = field(compare=False)
    key: Hashable


#: A number or a text as it stands in the SQL, or what is given for a parameter.
Constants = Mapping[Place, str | GivenValue]


def places_of_constants(tokens: Tokens) -> list[int]:
    """The indexes of the tokens that are numbers and texts."""
    return [index for index, kind in enumerate(tokens.kinds) if kind in (NUMBER, TEXT)]


class LimitPlaces(NamedTuple):
    """The places of the numbers in the LIMIT and OFFSET of a whole query; None where there is none, or more than a number."""

    limit: Place | None
    offset: Place | None


NO_LIMIT = LimitPlaces(None, None)


def mark_text_constants(
    statement: ParsedStatement, computing: Container[Place]
) -> tuple[frozenset[Place], LimitPlaces]:
    """Let the binder take for `Varying` what stands for a value in predicates, and in no name of a column: their places.

    Of what is computed with, only what stands at the places `computing`. And those of the query's own LIMIT and OFFSET, which stay as they are.
    """
    tokens = tokenize(statement.text)
    indexes = places_of_constants(tokens)
    places = {tokens.starts[index]: place for place, index in enumerate(indexes)}

    def place_of(node: exp.Expr) -> Place | None:
        start = node.meta.get("start", -1)
        if isinstance(node, exp.Placeholder):
            return place_of_parameter(statement.parameter_keys[start])
        number = places.get(start) if isinstance(node, exp.Literal) else None
        if number is None:
            return None
        source = tokens.source(indexes[number])
        return number if node.this == (_text(source) if node.is_string else source) else None

    uses: dict[Place, list[exp.Expr]] = {}
    for node in statement.tree.find_all(exp.Literal, exp.Placeholder):
        if (place := place_of(node)) is not None:
            uses.setdefault(place, []).append(node)
    marked = frozenset(
        [
            place
            for place, nodes in uses.items()
            if all(_is_operand(each, place in computing) for each in nodes)
        ]
    )
    for place in marked:
        for use in uses[place]:
            use.meta[_PLACE] = place
            if isinstance(use, exp.Literal):
                use.set(_PLACE, place)
    clauses = [statement.tree.args.get(clause) for clause in ("limit", "offset")]
    numbers = [node.expression if isinstance(node, exp.Limit | exp.Offset) else None for node in clauses]
    own = (None if node is None else place_of(node) for node in numbers)
    return marked, LimitPlaces(
        *(place if place is not None and len(uses[place]) == 1 else None for place in own)
    )


def place_of_parameter(key: int | str) -> Place:
    """Of the number of `?` and `$1`, or the name of `$name`."""
    return f"${key}"


def _is_operand(node: exp.Expr, computes: bool) -> bool:
    while isinstance(node.parent, _COMPUTED) and not node.parent.find(*_NO_CONSTANTS):
        node = node.parent
    parent = node.parent
    if isinstance(parent, _PREDICATES):
        return parent.find(*_NO_CONSTANTS) is not None and not _is_in_name(parent)
    return computes and isinstance(parent, _COMPUTATIONS) and not _is_in_name(node)


def _is_in_name(node: exp.Expr) -> bool:
    """Does it stand in an item of a SELECT or a PIVOT that has no name but its text?"""
    is_named = False
    while (parent := node.parent) is not None:
        is_named = is_named or isinstance(node, exp.Alias)
        if isinstance(parent, exp.Select | exp.Pivot):
            if node.arg_key == "expressions" and not is_named:
                return True
            is_named = False
        node = parent
    return False


def varying(literal: Expression, node: exp.Expr, negative: bool = False) -> Expression:
    """A literal that was made of the node; of a marked one a constant whose value nothing may depend on."""
    place = node.meta.get(_PLACE)
    if (
        place is None
        or not isinstance(literal, Literal)
        or literal.value is None
        or literal.data_type.is_composed
    ):
        return literal
    constant = TextConstant(place, literal.data_type, negative)
    return Varying(constant, literal.data_type, literal.value, isinstance(literal, SourceLiteral))


def constant_of(constant: TextConstant, constants: Constants) -> Literal | None:
    """The constant among others of its kind; None where it is of another type."""
    source = constants[constant.place]
    literal: Expression
    try:
        if isinstance(source, GivenValue):
            literal = literal_of(source.value, str(constant.place), None)
        else:
            text = _text(source)
            literal = (
                bind_number(source, _NOWHERE, constant.negative) if text is None else Literal(text, VARCHAR)
            )
    except BindError:
        return None
    literal = settle(literal)
    return literal if isinstance(literal, Literal) and literal.data_type == constant.data_type else None


def number_of_rows(constant: str | GivenValue) -> int | None:
    """That a LIMIT or OFFSET of the constant says; None where it is no plain number."""
    if isinstance(constant, str):
        return int(constant) if constant.isdecimal() and constant.isascii() else None
    return constant.value if type(constant.value) is int and constant.value >= 0 else None


_NOWHERE = (0, 0)


def _text(source: str) -> str | None:
    """What a plain text in quotes says; None of numbers, and of texts of other kinds."""
    found = PIECES.fullmatch(source)
    return None if found is None else found[1].replace("''", "'")
