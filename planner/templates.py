"""Texts that differ by constants only, told by their tokens: what another of them asks for, without parsing and binding it.

The values of parameters are such constants, too.

A template is learnt of one text: it is bound with constants of predicates whose values nothing can depend on (`Varying`), and
if that gives the shape that the text itself has, any text with the same words gives it too, as far as its constants come out
the same way: those are computed again, and taken out of the predicates again, by what did so the first time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from tqp.core.deep_recursion import call_deep
from tqp.core.errors import Error, ExecutionError
from tqp.planner.algebra.expressions import (
    Expression,
    InList,
    Literal,
    TextConstant,
    Varying,
    transform,
    walk,
)
from tqp.planner.algebra.known_fields import KnownFields
from tqp.planner.bind import bind
from tqp.planner.binder.context import Parameters
from tqp.planner.binder.text_constants import Constants, GivenValue, Place, constant_of, places_of_constants
from tqp.planner.catalog_protocol import Catalog
from tqp.planner.functions.constant_folding import fold
from tqp.planner.optimizer import without_subqueries
from tqp.planner.parse import Query
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.shapes import Lift, Lifting, Shape, ShapeConstants, Shares, shape_of
from tqp.planner.syntax.tokens import tokenize

_NOTHING: Mapping[Place, GivenValue] = {}


@dataclass(frozen=True, slots=True)
class SplitText:
    """A text taken apart: its constants, and by `words` what stands around them, and which parameters values are given for."""

    words: tuple[Hashable, ...]
    constants: Constants


def split(text: str, given: Mapping[Place, GivenValue] = _NOTHING) -> SplitText:
    """`given`: the values of parameters. Raises ParseError for what are no tokens.

    >>> split("SELECT x FROM t WHERE y = 'a' AND z < 5").constants
    {0: "'a'", 1: '5'}
    """
    tokens = tokenize(text)
    words: list[Hashable] = []
    constants: dict[Place, str | GivenValue] = {}
    end = 0
    for place, index in enumerate(places_of_constants(tokens)):
        start, stop = tokens.starts[index], tokens.stops[index]
        words.append(text[end:start])
        constants[place] = text[start:stop]
        end = stop
    return SplitText((*words, text[end:], *given), {**constants, **given})


@dataclass(frozen=True, slots=True)
class Template:
    """`fixed`: the constants that all its texts have in common, by place."""

    fixed: Constants
    lifts: tuple[Lift, ...]
    fields: KnownFields

    def constants_of(self, constants: Constants) -> ShapeConstants | None:
        """What a text with the same words and these constants is in the template's shape; None if it may have another."""
        if any(constants[place] != source for place, source in self.fixed.items()):
            return None
        lifting, shares = Lifting(), Shares(self.fields)
        for lift in self.lifts:
            predicate = _filled(lift.predicate, constants)
            lifted = None if predicate is None else lifting.lifted(predicate)
            if lifted != lift.lifted or lifted is None:
                return None
            shares.add(lifted, lift.effect)
        return ShapeConstants(tuple(lifting.values), shares.values)


def learn(
    query: Query, parameters: Parameters, text: SplitText, shape: Shape, catalog: Catalog
) -> Template | None:
    """The template of a text and its shape; None where another text with the same words may have another shape."""
    try:
        statement = bind(query, catalog, parameters, with_text_constants=True)
        same = call_deep(lambda: shape_of(without_subqueries(statement.plan, OptimizerContext())))
    except Error:
        return None
    places = {
        leaf.place
        for lift in same.lifts
        for constant in _varying(lift.predicate)
        for leaf in walk(constant.recipe)
        if isinstance(leaf, TextConstant)
    }
    if same.key != shape.key or same.constants != shape.constants or places != statement.varying:
        return None
    fixed = {place: source for place, source in text.constants.items() if place not in places}
    return Template(fixed, same.lifts, same.fields)


def _varying(predicate: Expression) -> list[Varying]:
    operands = predicate.values if isinstance(predicate, InList) else predicate.inputs
    return [operand for operand in operands if isinstance(operand, Varying)]


def _filled(predicate: Expression, constants: Constants) -> Expression | None:
    """The predicate with the constants of another text; None where one of them is of another type, or fails."""
    known: dict[Expression, Literal] = {}
    for operand in _varying(predicate):
        literal = _computed(operand, constants)
        if literal is None:
            return None
        known[operand] = literal
    if isinstance(predicate, InList):
        return replace(predicate, values=tuple(known.get(value, value) for value in predicate.values))
    return predicate.map_inputs(lambda operand: known.get(operand, operand))


def _computed(operand: Varying, constants: Constants) -> Literal | None:
    """As when the template was bound: cast by cast and call by call."""

    def computed(part: Expression) -> Expression:
        if isinstance(part, TextConstant):
            return constant_of(part, constants) or part
        return fold(part)

    try:
        literal = transform(operand.recipe, computed)
    except ExecutionError:
        return None
    if not isinstance(literal, Literal) or literal.value is None or literal.data_type != operand.data_type:
        return None
    return literal
