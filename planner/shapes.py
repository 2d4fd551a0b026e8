"""The shape of a query: its plan with the constants of predicates taken out, so that one program serves all their values.

People send one query with other constants each time. Texts whose plans are equal but for constants that something is compared
with, listed constants and words that are searched for have one shape: these become parameters of the program, and no part of
the planner or of the program sees their values. Only estimates do, by an example; a plan whose constants keep another share of
the rows is another one of the shape.

The LIMIT and OFFSET of the whole query are constants, too: the program makes room for more rows, of which each text takes its
own. A constant that is computed with is a parameter where it was seen to vary, within a range (`planner/operands.py`). Constants
elsewhere are part of the shape, and so are the kind of a pattern, the length of a list, which constants are equal, and what ranks are
compared with, which tells how many rows of a partition are wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple

from tqp.core.datatypes import BIGINT, DataType
from tqp.core.patterns import words_of_like
from tqp.planner.algebra.cardinality import CombinedSelectivity
from tqp.planner.algebra.expression_text import format_expression, format_literal
from tqp.planner.algebra.expressions import (
    Call,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    Value,
    Varying,
    conjunction,
    conjuncts,
    transform,
    walk,
)
from tqp.planner.algebra.known_fields import KnownFields
from tqp.planner.algebra.logical_plan import (
    Filter,
    Join,
    Limit,
    LogicalPlan,
    Project,
    Recursive,
    Scan,
    Window,
)
from tqp.planner.algebra.node import transform_plan, walk_plan
from tqp.planner.algebra.node_text import limit_text
from tqp.planner.algebra.random_calls import is_random
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.functions.conditions import COMPARISONS, MIRRORED, ORDERINGS, TEXT_PREDICATES
from tqp.planner.functions.ranges import Range, within
from tqp.planner.functions.registry import counts_rows_before
from tqp.planner.operands import can_compute, range_of, with_labels, with_operands
from tqp.planner.rules.cast_comparisons import list_without_cast, without_cast
from tqp.planner.rules.instant_ranges import compared_instants

#: Constants of a list, at most: a longer one is part of the shape.
_LONGEST_LIST = 100
#: Plans for shares of a column's range that differ by this factor, and by this share, may differ.
_SHARE_FACTOR, _SHARE_SLACK = 4.0, 0.02
#: Rows that programs of queries with LIMIT make room for; a query that asks for more has a program of its own.
_ROOMS = (64, 256, 1024, 4096)


@dataclass(frozen=True, slots=True)
class Shape:
    """`key`: equal where the plans are, but for the values of the parameters. `plan` reads `values` as parameters.

    `lifts`: in turn, what became of the predicates, which read columns of `fields`. `operands`: in turn, the constants that are
    computed with.
    """

    key: Hashable
    plan: LogicalPlan
    constants: ShapeConstants
    lifts: tuple[Lift, ...] = ()
    fields: KnownFields = field(default_factory=KnownFields)
    operands: tuple[Literal, ...] = ()


class TakenRows(NamedTuple):
    """Which rows a query with LIMIT and OFFSET takes: so many, after those that it skips."""

    limit: int
    offset: int

    @property
    def room(self) -> int | None:
        """The LIMIT of a program that makes these rows for any such query: one of a few numbers; None: of no program."""
        return next((room for room in _ROOMS if self.limit + self.offset <= room), None)


@dataclass(frozen=True, slots=True)
class ShapeConstants:
    """What tells a text from others of its shape: the values of the parameters, and the rows that it takes of the program's.

    `selectivities`: of each column that is compared with parameters, the share of its range that they keep.
    """

    values: tuple[Value, ...] = ()
    selectivities: tuple[float, ...] = ()
    rows: TakenRows | None = None

    def keep_alike(self, selectivities: Sequence[float]) -> bool:
        """Would a plan made for these shares be made for this one's too, as far as estimates go?"""
        return all(
            max(a, b) <= _SHARE_FACTOR * min(a, b) + _SHARE_SLACK
            for a, b in zip(self.selectivities, selectivities, strict=True)
        )


class Effect(Enum):
    """What a predicate does to the rows of a filter, or of a join."""

    NONE = auto()  # it stands elsewhere
    DROPS = auto()  # those where it is not true
    MAY_DROP = auto()  # as others decide, in an OR


class Shares:
    """The shares of columns' ranges that predicates keep, one after the other."""

    def __init__(self, fields: KnownFields) -> None:
        self._fields, self._kept, self._others = fields, CombinedSelectivity(fields), list[float]()

    def add(self, predicate: Expression, effect: Effect) -> None:
        """Ranges of one column are one, unless they stand in an OR."""
        if effect is Effect.DROPS:
            self._kept.add(predicate)
        elif effect is Effect.MAY_DROP:
            alone = CombinedSelectivity(self._fields)
            alone.add(predicate)
            self._others += alone.selectivities

    @property
    def values(self) -> tuple[float, ...]:
        """All of them."""
        return (*self._kept.selectivities, *self._others)


@dataclass(frozen=True, slots=True)
class Lift:
    """A predicate before and after its constants became parameters, or a constant that is computed with.

    `effect`: what it does to the rows of a filter, or join.
    """

    predicate: Expression
    lifted: Expression
    effect: Effect


class Lifting:
    """Takes the constants out of predicates over such fields, one after the other: those that are equal become one parameter."""

    def __init__(self, fields: KnownFields) -> None:
        self._fields = fields
        self.values: list[Value] = []
        self._indexes: dict[tuple[str, DataType], int] = {}

    def lifted(self, expression: Expression) -> list[Expression]:
        """What together is the predicate, with parameters in place of its constants; nothing of all else."""
        found = _with_constants(with_literals(expression, lambda each: each.literal), self._fields)
        return [self._with_parameters(predicate) for predicate in found]

    def _with_parameters(self, predicate: Call | InList) -> Expression:
        if isinstance(predicate, InList):
            literals = [value for value in predicate.values if isinstance(value, Literal)]
            return replace(predicate, values=tuple(map(self._parameter, literals)))
        side, literal = predicate.arguments
        assert isinstance(literal, Literal)
        return replace(predicate, arguments=(side, self._parameter(literal)))

    def operand(self, literal: Literal) -> Parameter | None:
        """A parameter in place of a constant that is computed with; None where it can be none."""
        return self._parameter(literal, range_of(literal)) if can_compute(literal) else None

    def _parameter(self, literal: Literal, range: Range | None = None) -> Parameter:
        index = self._indexes.setdefault((repr(literal.value), literal.data_type), len(self.values))
        if index == len(self.values):
            self.values.append(literal.value)
        return Parameter(index, literal.data_type, literal.value, range)


class ValuesByIndex:
    """What the parameters of a shape are in another text of it, predicate by predicate.

    Where the shape has one parameter for several constants, these must be equal here too; those of several may be equal.
    """

    def __init__(self, fields: KnownFields) -> None:
        self._fields = fields
        self._values: dict[int, Value] = {}

    @property
    def values(self) -> tuple[Value, ...]:
        """Those of all parameters, once each has been put."""
        return tuple([self._values[index] for index in range(len(self._values))])

    def put(self, lifted: Expression, predicate: Expression) -> Expression | None:
        """The lifted predicate with the constants of `predicate` as examples; None if no part of that is such."""
        if isinstance(lifted, Parameter):
            if not isinstance(predicate, Literal) or not can_compute(predicate):
                return None
            examples = self._put_all((lifted,), (predicate,)) if range_of(predicate) == lifted.range else ()
            return examples[0] if examples else None
        for found in _with_constants(predicate, self._fields):
            match lifted, found:
                case InList(), InList() if found.input == lifted.input and len(found.values) == len(
                    lifted.values
                ):
                    examples = self._put_all(lifted.values, found.values)
                    return replace(lifted, values=examples) if examples else None
                case Call(function, (side, parameter)), Call(same, (other, literal)) if (function, side) == (
                    same,
                    other,
                ):
                    examples = self._put_all((parameter,), (literal,))
                    return replace(lifted, arguments=(side, *examples)) if examples else None
        return None

    def _put_all(
        self, parameters: Sequence[Expression], literals: Sequence[Expression]
    ) -> tuple[Parameter, ...]:
        """The parameters with these examples; none where one cannot be it."""
        examples: list[Parameter] = []
        for parameter, literal in zip(parameters, literals, strict=True):
            assert isinstance(parameter, Parameter) and isinstance(literal, Literal)
            known = self._values.setdefault(parameter.index, literal.value)
            if literal.data_type != parameter.data_type or not _is_one(known, literal.value):
                return ()
            examples.append(replace(parameter, example=literal.value))
        return tuple(examples)


def _is_one(value: Value, other: Value) -> bool:
    """0.0 and -0.0 are two."""
    return value is other or repr(value) == repr(other)


def shape_of(plan: LogicalPlan, varying: Collection[int] = ()) -> Shape:
    """The shape of a bound plan `without_subqueries` (see the optimizer) whose columns are encoded.

    `varying`: the places among its operands of those that are parameters.
    """
    fields = KnownFields()
    ranks: set[int] = set()
    for node in walk_plan(plan):
        if isinstance(node, Scan):
            fields.put(node.field_facts.values())
        if isinstance(node, Window):
            pairs = zip(node.fields, node.calls, strict=True)
            ranks.update(
                field.id for field, call in pairs if counts_rows_before(call.function) and not call.order
            )
        if node.scorings:  # constants prune models
            return Shape((), plan, ShapeConstants())
    roomy, rows = _with_room(plan)
    if rows is not None and is_random(plan):  # a row more is seen where it draws from a sequence
        rows = None
    plan = plan if rows is None else roomy
    lifting, selectivities = Lifting(fields), Shares(fields)
    lifts: list[tuple[Expression, Expression]] = []
    effects: dict[int, Effect] = {}
    operands: list[Literal] = []

    def operand(constant: Literal | Varying) -> Expression:
        literal = constant if isinstance(constant, Literal) else constant.literal
        operands.append(literal)
        parameter = lifting.operand(literal) if len(operands) - 1 in varying else None
        if parameter is None:
            return constant
        lifts.append((constant, parameter))
        return parameter

    def lifted(expression: Expression) -> Expression:
        if ranks and not ranks.isdisjoint(read_ids(expression)):
            return expression
        expression = with_operands(expression, operand)
        parts = lifting.lifted(expression)
        if not parts:
            return expression
        lifts.extend([(expression, part) for part in parts])
        return conjunction(tuple(parts))

    def with_parameters(node: LogicalPlan) -> LogicalPlan:
        changed = with_labels(node.map_expressions(lambda expression: transform(expression, lifted)), operand)
        if isinstance(changed, Filter | Join):
            for part in conjuncts(changed.condition):
                for predicate in filter(_has_parameter, walk(part)):
                    effects[id(predicate)] = Effect.DROPS if predicate is part else Effect.MAY_DROP
        return changed

    plan = transform_plan(plan, with_parameters)
    made = tuple(Lift(before, after, effects.get(id(after), Effect.NONE)) for before, after in lifts)
    for lift in made:
        selectivities.add(lift.lifted, lift.effect)
    constants = ShapeConstants(tuple(lifting.values), selectivities.values, rows)
    return Shape(_key(plan), plan, constants, made, fields, tuple(operands))


def _with_room(plan: LogicalPlan) -> tuple[LogicalPlan, TakenRows | None]:
    """The plan with room for the rows of other LIMITs and OFFSETs, and which of its rows it took; None where it has no LIMIT, or a large one."""
    if isinstance(plan, Project):
        below, rows = _with_room(plan.input)
        return (plan if rows is None else plan.with_inputs((below,))), rows
    if not isinstance(plan, Limit) or plan.limit is None:
        return plan, None
    below = plan.input
    while isinstance(below, Project):
        below = below.input
    if isinstance(below, Recursive):
        return plan, None  # it may be without end, and raise behind the rows that are asked for
    rows = TakenRows(plan.limit, plan.offset)
    return (plan, None) if rows.room is None else (Limit(plan.input, rows.room), rows)


def explain_shape(shape: Shape) -> str:
    """A section of EXPLAIN: the predicates that have other constants in texts that share a program, with those of this text.

    "" where there are none. A plan is also shared only where ranges keep about the same share: `ShapeConstants.keep_alike`.
    """
    lines = []
    for lift in shape.lifts:
        parameters = [part for part in operands_of(lift.lifted) if isinstance(part, Parameter)]
        notes = [f"?{each.index + 1} = {format_literal(each.literal)}" for each in dict.fromkeys(parameters)]
        if (
            lift.effect is not Effect.NONE
            and isinstance(lift.lifted, Call)
            and lift.lifted.function in ORDERINGS
        ):
            notes.append("others that keep about as many rows")
        lines.append(f"{format_expression(lift.lifted)}  ({'; '.join(notes)})")
    rows = shape.constants.rows
    if rows is not None:
        lines.append(f"Limit{limit_text(*rows)}  (others of the first {rows.room} rows)")
    return "\n\nShape\n" + "\n".join(dict.fromkeys(lines)) if lines else ""


def operands_of(predicate: Expression) -> Sequence[Expression]:
    """What a predicate compares: of a list, what is listed. A constant is its own operand."""
    if isinstance(predicate, Varying):
        return (predicate,)
    return predicate.values if isinstance(predicate, InList) else predicate.inputs


def with_literals(predicate: Expression, literal_of: Callable[[Varying], Literal]) -> Expression:
    """The predicate with literals in place of the operands that vary."""
    if isinstance(predicate, Varying):
        return literal_of(predicate)
    if isinstance(predicate, InList):
        values = [literal_of(each) if isinstance(each, Varying) else each for each in predicate.values]
        return replace(predicate, values=tuple(values))
    return predicate.map_inputs(lambda each: literal_of(each) if isinstance(each, Varying) else each)


def _has_parameter(expression: Expression) -> bool:
    return isinstance(expression, Call) and any(isinstance(part, Parameter) for part in expression.arguments)


def _with_constants(expression: Expression, fields: KnownFields) -> Sequence[Call | InList]:
    """Predicates with constants that a program can take as parameters, those on the right, which together are this one; else none."""
    match expression:
        case InList() if (listed := list_without_cast(expression)) is not expression:
            return _with_constants(listed, fields)
        case InList():
            return (expression,) if _can_all_vary(expression) else ()
        case Call(function, (text, Literal(str()) as literal)) if function in TEXT_PREDICATES:
            return () if isinstance(text, Literal) else (_search(expression, text, literal),)
        case Call(function) if function in COMPARISONS:
            return _comparisons(expression, fields)
    return ()


def _can_all_vary(expression: InList) -> bool:
    return (
        len(expression.values) <= _LONGEST_LIST
        and not isinstance(expression.input, Literal)
        and all(isinstance(value, Literal) and _can_vary(value) for value in expression.values)
    )


def _search(call: Call, text: Expression, literal: Literal) -> Call:
    """Patterns with one word are what is quicker than a pattern and varies with the word alone."""
    assert isinstance(literal.value, str)
    words = words_of_like(literal.value) if call.function == "like" else None
    match words:
        case (word,):
            function = "equal"
        case (word, ""):
            function = "starts_with"
        case ("", word):
            function = "ends_with"
        case ("", word, ""):
            function = "contains"
        case _:
            function, word = call.function, literal.value
    return replace(call, function=function, arguments=(text, replace(literal, value=word)))


def _comparisons(expression: Call, fields: KnownFields) -> Sequence[Call]:
    left, right = expression.arguments
    if isinstance(left, Literal):
        expression = replace(expression, function=MIRRORED[expression.function], arguments=(right, left))
    expression = without_cast(expression)
    side, literal = expression.arguments
    if isinstance(side, Literal) or not isinstance(literal, Literal) or not _can_vary(literal):
        return ()
    return (expression,) if type(side) is ColumnRef else compared_instants(expression, fields)


def _can_vary(literal: Literal) -> bool:
    """Not NULL, nor NaN; text, a float, or an integer of up to 64 bits that is no BOOLEAN."""
    value, data_type = literal.value, literal.data_type
    match value:
        case bool() | None:
            return False
        case int():
            return data_type.is_integer_like and within((value, value), BIGINT)
        case float():
            return data_type.is_float and not math.isnan(value)
        case str():
            return data_type.is_string
    return False


def _key(plan: LogicalPlan) -> Hashable:
    """Each node once, after its inputs, which it knows by their places; what columns are called is left out."""
    places: dict[int, int] = {}
    parts: list[Hashable] = []

    def place(node: LogicalPlan) -> int:
        known = places.get(id(node))
        if known is None:
            inputs = tuple(map(place, node.inputs))
            fields = [(each.id, each.data_type, each.nullable, each.facts) for each in node.created_fields]
            parts.append((node.shape(lambda expression: expression), inputs, *fields))
            known = places[id(node)] = len(parts)
        return known

    place(plan)
    return tuple(parts)
