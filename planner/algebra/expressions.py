"""Bound expressions: typed, nameless trees over column ids.

After binding every implicit conversion is an explicit `Cast`, so both sides of a comparison or an addition have one
type. Equality ignores where an expression stands in the SQL (`span`); hashes leave types out, which rarely tell expressions
apart. Aggregate calls stand only inside an Aggregate node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard

from tqp.core.datatypes import BOOLEAN, DataType
from tqp.core.frozen import dataclass
from tqp.core.models import FunctionSignature, ModelOutput, ModelSignature
from tqp.planner.algebra.derived import derived_once

if TYPE_CHECKING:
    from tqp.core.schema import Field

#: A storage value: bool, int (also decimals, scaled; dates as days; timestamps as ticks; an ENUM's as positions), float, str, bytes,
#: (months, days, microseconds) for intervals, the elements of arrays, None for NULL.
Value = bool | int | float | str | bytes | tuple[int, int, int] | tuple[float, ...] | None


@dataclass(frozen=True)
class Expression:
    """Base. `data_type` is a field or property of every expression."""

    __slots__ = ("__dict__",)  # which holds what is derived of the expression

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        return self

    def map_inputs(self, function: Callable[[Expression], Expression]) -> Expression:
        """The expression over `function` of each input; the same object if nothing changes."""
        inputs = self.inputs
        if not inputs:
            return self
        mapped = tuple([function(child) for child in inputs])
        return self if all(map(is_, mapped, inputs)) else self.with_inputs(mapped)

    if TYPE_CHECKING:

        @property
        def data_type(self) -> DataType: ...

        @property
        def inputs(self) -> tuple[Expression, ...]: ...

    else:
        inputs = ()  # of most expressions, which are leaves


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expression):
    """A constant. 0.0 and -0.0 are two, though SQL calls them equal: what is computed from them differs."""

    value: Value
    data_type: DataType

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = (self.value, self.data_type), (other.value, other.data_type)
        return mine == theirs and (not isinstance(self.value, (float, tuple)) or repr(mine) == repr(theirs))

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class Parameter(Expression):
    """A constant that is given when the program runs, not NULL: one side of a comparison (see `planner/shapes.py`), or an operand.

    `example`: what it was when the query was planned, for estimates only. `range`: of an operand that is an integer, the least and the
    greatest that it may be; an operand is not zero (see `planner/operands.py`).
    """

    index: int
    data_type: DataType
    example: Value = field(compare=False)
    range: tuple[int, int] | None = None

    @property
    def literal(self) -> Literal:
        """The constant that it was."""
        return Literal(self.example, self.data_type)


@dataclass(frozen=True, slots=True)
class TextConstant(Expression):
    """The constant at a place, whatever it is there: see `planner/binder/text_constants.py`."""

    place: int | str
    data_type: DataType
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Varying(Expression):
    """What is computed of constants of the SQL text by `recipe`: a constant whose value nothing may depend on.

    `example`: what it is in the text at hand, never NULL. `bends`: its type is not settled, as that of a SourceLiteral.
    """

    recipe: Expression
    data_type: DataType
    example: Value = field(compare=False)
    bends: bool = False

    @property
    def literal(self) -> Literal:
        """The constant in the text at hand."""
        return Literal(self.example, self.data_type)


Constant = Literal | Parameter | Varying


@dataclass(frozen=True, slots=True)
class ColumnRef(Expression):
    """A column by id. Free of any plan node, so a correlated reference is one whose id the input does not produce."""

    id: int
    data_type: DataType = field(hash=False)
    name: str = field(default="", compare=False)  # display only

    @staticmethod
    def of(field: Field) -> ColumnRef:
        """The expression that reads a field."""
        return ColumnRef(field.id, field.data_type, field.name)


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A scalar function or operator of `planner/functions/`, by its canonical name (`add`, `like`, `substring`, ...)."""

    function: str
    arguments: tuple[Expression, ...]
    data_type: DataType = field(hash=False)
    #: Where in the SQL; for errors and comments.
    span: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        return Call(self.function, inputs, self.data_type, self.span)


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    input: Expression
    data_type: DataType = field(hash=False)
    is_try: bool = False  # TRY_CAST: NULL instead of an error
    span: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        return replace(self, input=inputs[0])


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """CASE WHEN condition THEN value ... ELSE default END; all values have `data_type`."""

    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression
    data_type: DataType

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return (*(expression for branch in self.branches for expression in branch), self.default)

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        branches = tuple(zip(inputs[:-1:2], inputs[1:-1:2], strict=True))
        return replace(self, branches=branches, default=inputs[-1])


@dataclass(frozen=True, slots=True)
class Try(Expression):
    """TRY(input): NULL for a row for which computing the input raises.

    `most_calls`: rows that are not told apart by so many computations are NULL, too; None: however many it takes.
    """

    input: Expression
    span: tuple[int, int] | None = field(default=None, compare=False)
    most_calls: int | None = None

    @property
    def data_type(self) -> DataType:
        return self.input.data_type

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        return replace(self, input=inputs[0])


@dataclass(frozen=True, slots=True)
class InList(Expression):
    """input IN (constant, ...): none is NULL, all are of the input's type; NOT IN is `not` around it.

    A NULL in the list, or an element that is not constant, is bound as an `or` of comparisons instead.
    """

    input: Expression
    values: tuple[Constant, ...]

    @property
    def data_type(self) -> DataType:
        return BOOLEAN

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        return replace(self, input=inputs[0])


#: A model and what it scores: calls that agree in it are scored once, whatever each makes of the scores.
Scoring = tuple[ModelSignature, tuple[Expression, ...]]


@dataclass(frozen=True, slots=True)
class Predict(Expression):
    """A call of a registered model. `arguments` pair up with its inputs: numbers, arrays, and codes of categories.

    `combinations`: in a physical plan, how many combinations of values are scored instead of rows; 0 for rows.
    """

    model: ModelSignature
    output: ModelOutput
    arguments: tuple[Expression, ...]
    combinations: int = 0
    span: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def data_type(self) -> DataType:
        return self.output.data_type

    @property
    def scoring(self) -> Scoring:
        return self.model, self.arguments

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        return replace(self, arguments=inputs)


@dataclass(frozen=True, slots=True)
class PythonCall(Expression):
    """A call of a Python function. It may raise for any row; equal calls give equal values."""

    function: FunctionSignature
    arguments: tuple[Expression, ...]
    span: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def data_type(self) -> DataType:
        return self.function.result

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        return replace(self, arguments=inputs)


@dataclass(frozen=True, slots=True)
class AggregateCall(Expression):
    """An aggregate of `planner/functions/`: count_star, count, sum, avg, min, max, ... Only inside Aggregate.

    `order`: of the rows of a group, for a function that minds it; ties as the rows come, as do all rows without one.
    """

    function: str
    arguments: tuple[Expression, ...]
    data_type: DataType
    distinct: bool = False
    filter: Expression | None = None
    span: tuple[int, int] | None = field(default=None, compare=False)
    order: tuple[SortKey, ...] = ()

    @property
    def inputs(self) -> tuple[Expression, ...]:
        inputs = self.arguments if self.filter is None else (*self.arguments, self.filter)
        return (*inputs, *(key.expression for key in self.order)) if self.order else inputs

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        given = iter(inputs)
        arguments = tuple([next(given) for _ in self.arguments])
        condition = None if self.filter is None else next(given)
        order = tuple([replace(key, expression=next(given)) for key in self.order])
        return replace(self, arguments=arguments, filter=condition, order=order)


@dataclass(frozen=True, slots=True)
class HasExpressions:
    """A part of a plan node that holds expressions among other things.

    An attribute named in EXPRESSIONS holds one, None, another such part, or a tuple of them.
    """

    EXPRESSIONS: ClassVar[tuple[str, ...]]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        found: list[Expression] = []
        for name in self.EXPRESSIONS:
            collect_values(getattr(self, name), found)
        return tuple(found)

    def map_expressions(self, function: Callable[[Expression], Expression]) -> Self:
        """The part with `function` applied to each expression; the same object if nothing changes."""
        changes = {}
        for name in self.EXPRESSIONS:
            old = getattr(self, name)
            new = map_values(old, function)
            if new is not old:
                changes[name] = new
        return replace(self, **changes) if changes else self


def collect_values(value: Any, found: list[Any]) -> None:
    """Add what an attribute holds to `found`, in order: the single values in tuples and the expressions of parts."""
    if isinstance(value, tuple):
        for each in value:
            collect_values(each, found)
    elif isinstance(value, HasExpressions):
        found.extend(value.expressions)
    elif value is not None:
        found.append(value)


def map_values(value: Any, function: Callable[[Any], Any]) -> Any:
    """What an attribute holds with `function` applied to each such value; the same object if nothing changes."""
    if isinstance(value, tuple):
        mapped = tuple([map_values(each, function) for each in value])
        return value if all(map(is_, mapped, value)) else mapped
    if value is None:
        return None
    if isinstance(value, HasExpressions):
        return value.map_expressions(function)
    return function(value)


@dataclass(frozen=True, slots=True)
class SortKey(HasExpressions):
    EXPRESSIONS = ("expression",)

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def are_literals(constants: Sequence[Constant]) -> TypeGuard[tuple[Literal, ...]]:
    """Is each known to whoever plans, and no parameter?"""
    return all(isinstance(constant, Literal) for constant in constants)


def is_true(expression: Expression) -> bool:
    """Is it the constant TRUE?"""
    return type(expression) is Literal and expression.value is True


def is_false(expression: Expression) -> bool:
    """Is it the constant FALSE?"""
    return type(expression) is Literal and expression.value is False


def is_null_literal(expression: Expression) -> bool:
    """Is it a constant that is NULL?"""
    return type(expression) is Literal and expression.value is None


def literal_labels(expression: Expression) -> frozenset[Value]:
    """The strings that a CASE chooses from, if it chooses between literals only; else none.

    The runtime stores such a value as codes into a dictionary of them.
    """
    if not isinstance(expression, Case) or not expression.data_type.is_string:
        return frozenset()
    values = (*(value for _, value in expression.branches), expression.default)
    if not all(isinstance(value, Literal) for value in values):
        return frozenset()
    return frozenset(part.value for part in values if isinstance(part, Literal) and part.value is not None)


def walk(expression: Expression) -> list[Expression]:
    """The expression and everything below it, parents first; does not enter the plans of subqueries."""
    found, left = [], [expression]
    while left:
        node = left.pop()
        found.append(node)
        left += node.inputs[::-1]
    return found


def has_side_effects(parts: Iterable[Expression]) -> bool:
    """Whether one of them, not of what is below it, is a call that counts for which rows it is made."""
    return any(isinstance(part, PythonCall) and part.function.has_side_effects for part in parts)


@derived_once
def column_ids(expression: Expression) -> frozenset[int]:
    """Ids of the columns an expression reads; does not enter the plans of subqueries."""
    found, left = set(), [expression]
    while left:
        node = left.pop()
        if isinstance(node, ColumnRef):
            found.add(node.id)
        else:
            left += node.inputs
    return frozenset(found)


def all_column_ids(expressions: Iterable[Expression]) -> frozenset[int]:
    """Ids of the columns that any of the expressions reads; does not enter the plans of subqueries."""
    return frozenset().union(*map(column_ids, expressions))


def has_prediction(expression: Expression) -> bool:
    """Does a model's call stand in the expression?"""
    return any(isinstance(node, Predict) for node in walk(expression))


def predictions_in(expression: Expression) -> list[Predict]:
    """The calls of models in the expression, in order."""
    return [node for node in walk(expression) if isinstance(node, Predict)]


def transform(expression: Expression, function: Callable[[Expression], Expression]) -> Expression:
    """Rebuild bottom-up, with `function` applied to every node after its children, first to last."""
    parents_first: list[tuple[Expression, tuple[Expression, ...]]] = []
    left = [expression]
    while left:
        node = left.pop()
        inputs = node.inputs
        parents_first.append((node, inputs))
        left.extend(inputs)
    done: list[Expression] = []  # the rebuilt nodes whose parents are still to come
    while parents_first:
        node, inputs = parents_first.pop()
        if inputs:
            changed = done[-len(inputs) :]
            del done[-len(inputs) :]
            for new, old in zip(changed, inputs, strict=True):
                if new is not old:
                    node = node.with_inputs(tuple(changed))
                    break
        done.append(function(node))
    return done[0]


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """Split at top-level ANDs; TRUE splits into nothing."""
    if not (type(condition) is Call and condition.function == "and"):
        return () if is_true(condition) else (condition,)
    parts: list[Expression] = []
    left: list[Expression] = [condition]
    while left:
        part = left.pop()
        if type(part) is Call and part.function == "and":
            left += part.arguments[::-1]
        elif not is_true(part):
            parts.append(part)
    return tuple(parts)


def conjunction(parts: tuple[Expression, ...]) -> Expression:
    """The AND of the parts; TRUE for none."""
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else Call("and", parts, BOOLEAN)
