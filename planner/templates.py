"""Texts that differ by constants only, told by their tokens: what another of them asks for, without parsing and binding it.

The values of parameters are such constants, too.

A template is learnt of one text: it is bound with constants of predicates whose values nothing can depend on (`Varying`), and
if that gives the shape that the text itself has, any text with the same words gives it too, as far as its constants come out
the same way: those are computed again, and taken out of the predicates again, by what did so the first time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

from tqp.core.errors import Error, ExecutionError
from tqp.core.process.deep_recursion import call_deep
from tqp.planner.algebra.expressions import Expression, Literal, TextConstant, Varying, transform, walk
from tqp.planner.algebra.known_fields import KnownFields
from tqp.planner.bind import bind
from tqp.planner.binder.context import Parameters
from tqp.planner.binder.text_constants import (
    NO_LIMIT,
    Constants,
    GivenValue,
    LimitPlaces,
    Place,
    constant_of,
    number_of_rows,
    places_of_constants,
)
from tqp.planner.catalog_protocol import Catalog
from tqp.planner.functions.constant_folding import fold
from tqp.planner.optimizer import without_subqueries
from tqp.planner.parse import Query, text_of
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.shapes import (
    Lift,
    Shape,
    ShapeConstants,
    Shares,
    TakenRows,
    ValuesByIndex,
    operands_of,
    shape_of,
    with_literals,
)
from tqp.planner.syntax.tokens import tokenize

_NOTHING: Mapping[Place, GivenValue] = {}
_NONE: frozenset[Place] = frozenset()


@dataclass(frozen=True, slots=True)
class SplitText:
    """A text taken apart: its constants, and by `words` what stands around them, and which parameters values are given for."""

    words: tuple[Hashable, ...]
    constants: Constants


@dataclass(frozen=True, slots=True)
class Varied:
    """What texts with the same words differ in: constants, by their places, and among the operands of their shapes."""

    places: frozenset[Place] = frozenset()
    operands: frozenset[int] = frozenset()


#: What stands around constants as far as it goes, and a constant. It cuts nearly all texts as `tokenize` does, at a fifth of the time.
_WORDS_AND_CONSTANT = re.compile(
    r"""
    ( (?> [^\W\d][\w$]*+ | \$(?:[^\W\d]\w*+)?+ | [^\w'"`$./-]++ | "[^"]*+" | `[^`]*+` | --[^\n\r]*+ | /\*(?>[^*/]++|\*(?!/)|/(?!\*))*+\*/
        | -(?!-) | /(?!\*) | \.(?!\d) )*+ )
    ( '[^']*+(?:''[^']*+)*+' | (?> \d++(?:\.\d*+)? | \.\d++ ) (?:[eE][-+]?\d++)?+ (?![\w.$]) | \Z )
    """,
    re.VERBOSE,
)


def split(text: str, given: Mapping[Place, GivenValue] = _NOTHING) -> SplitText | None:
    """`given`: the values of parameters. None of a text with unusual numbers, or with comments in comments.

    >>> split("SELECT x FROM t WHERE y = 'a' AND z < 5").constants
    {0: "'a'", 1: '5'}
    """
    words: list[str] = []
    constants: dict[Place, str | GivenValue] = {}
    position = 0
    while (found := _WORDS_AND_CONSTANT.match(text, position)) is not None:
        before, constant = found.groups()
        words.append(before)
        if not constant:
            return SplitText((*words, *given), {**constants, **given})
        constants[len(constants)] = constant
        position = found.end()
    return None


def _is_cut_at_tokens(split_text: SplitText, query: str) -> bool:
    """Are its constants those of its tokens? Then that holds for each text with the same words."""
    tokens = tokenize(query)
    starts, end = [], 0
    for words, constant in zip(split_text.words, split_text.constants.values()):
        if isinstance(words, str) and isinstance(constant, str):
            starts.append((end + len(words), constant))
            end += len(words) + len(constant)
    return starts == [(tokens.starts[index], tokens.source(index)) for index in places_of_constants(tokens)]


@dataclass(frozen=True, slots=True)
class Template:
    """`names`: those of the columns. `fixed`: the constants that all its texts have in common, by place.

    `rows`: those that the text took that it is learnt of; other texts take others by the numbers at the places of `limit`.
    """

    names: tuple[str, ...]
    fixed: Constants
    lifts: tuple[Lift, ...]
    fields: KnownFields
    rows: TakenRows | None
    limit: LimitPlaces

    def constants_of(self, constants: Constants) -> ShapeConstants | None:
        """What a text with the same words and these constants is in the template's shape; None if it may have another."""
        if any(constants[place] != source for place, source in self.fixed.items()):
            return None
        values, shares = ValuesByIndex(self.fields), Shares(self.fields)
        for lift in self.lifts:
            predicate = _filled(lift.predicate, constants)
            lifted = None if predicate is None else values.put(lift.lifted, predicate)
            if lifted is None:
                return None
            shares.add(lifted, lift.effect)
        rows = None if self.rows is None else _rows_taken(self.rows, self.limit, constants)
        if self.rows is not None and (rows is None or rows.room != self.rows.room):
            return None
        return ShapeConstants(values.values, shares.values, rows)


def learn(
    query: Query, parameters: Parameters, text: SplitText, shape: Shape, varied: Varied, catalog: Catalog
) -> Template | None:
    """The template of a text and its shape; None where another text with the same words may have another shape.

    `varied`: what varies among the texts with these words.
    """
    if not _is_cut_at_tokens(text, text_of(query)):
        return None
    # what is computed with in one place may say more than a value in another
    tried = [varied.places, _NONE] if varied.operands else [_NONE]
    learnt = (_learn(query, parameters, text, shape, varied.operands, each, catalog) for each in tried)
    return next((template for template in learnt if template is not None), None)


def _learn(
    query: Query,
    parameters: Parameters,
    text: SplitText,
    shape: Shape,
    operands: Collection[int],
    computing: Collection[Place],
    catalog: Catalog,
) -> Template | None:
    try:
        statement = bind(query, catalog, parameters, text_constants=computing)
        same = call_deep(lambda: shape_of(without_subqueries(statement.plan, OptimizerContext()), operands))
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
    limit, rows = statement.limit, same.constants.rows
    # it may be another LIMIT, or more than a number
    if rows is None or _rows_taken(rows, limit, text.constants) != rows:
        limit = NO_LIMIT
    varying = places.union(limit)
    fixed = {place: source for place, source in text.constants.items() if place not in varying}
    return Template(statement.names, fixed, same.lifts, same.fields, rows, limit)


def _rows_taken(rows: TakenRows, places: LimitPlaces, constants: Constants) -> TakenRows | None:
    """The rows that another text takes; None where one of its constants is no plain number."""
    numbers = [
        own if place is None else number_of_rows(constants[place])
        for own, place in zip(rows, places, strict=True)
    ]
    limit, offset = numbers
    return None if limit is None or offset is None else TakenRows(limit, offset)


def _varying(predicate: Expression) -> list[Varying]:
    return [operand for operand in operands_of(predicate) if isinstance(operand, Varying)]


def _filled(predicate: Expression, constants: Constants) -> Expression | None:
    """The predicate with the constants of another text; None where one of them is of another type, or fails."""
    try:
        return with_literals(predicate, lambda each: _computed(each, constants))
    except _OtherTypeError:
        return None


class _OtherTypeError(Exception):
    """A constant of another text is of another type, or cannot be computed."""


def _computed(operand: Varying, constants: Constants) -> Literal:
    """As when the template was bound: cast by cast and call by call."""

    def computed(part: Expression) -> Expression:
        if isinstance(part, TextConstant):
            return constant_of(part, constants) or part
        return fold(part)

    try:
        literal = transform(operand.recipe, computed)
    except ExecutionError:
        raise _OtherTypeError from None
    if not isinstance(literal, Literal) or literal.value is None or literal.data_type != operand.data_type:
        raise _OtherTypeError
    return literal
