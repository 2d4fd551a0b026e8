"""A query's bound plan, run row by row: does its answer depend on values that fail, and may one be computed too early?

What docs/semantics.md says of what raises, as a slow interpreter. It shares the binder and the kernels with the engine,
nothing of its optimizer, physical plans and programs, which are what drops, moves and repeats expressions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any
from unittest.mock import patch

import tqp
from tests.random.constants import Kernels, TooLongError
from tests.reference_plan import Interpreter, Row, all_of, any_of
from tqp.core.datatypes import BOOLEAN, VARCHAR, DataType, TypeKind
from tqp.core.errors import Error, ExecutionError
from tqp.planner.algebra.asof import AsofJoin
from tqp.planner.algebra.element_expressions import ElementRef, OverElements, ReduceElements
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Try,
    conjuncts,
    walk,
)
from tqp.planner.algebra.leaves import WorkingRows
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    LogicalPlan,
    Project,
    Scan,
    Shared,
    Window,
)
from tqp.planner.algebra.recursive import Recursive
from tqp.planner.algebra.subquery_expressions import QuantifiedComparison, ScalarSubquery, Subquery, read_ids
from tqp.planner.algebra.unnest import Unnest
from tqp.planner.bind import bind
from tqp.planner.binder.query import BoundQuery, QueryBinder
from tqp.planner.functions.constant_folding import fold
from tqp.planner.functions.declaration import NullRule
from tqp.planner.functions.literal_casts import cast_value
from tqp.planner.functions.registry import SCALARS
from tqp.planner.rules.columns import reference, substitute

#: Expressions that are evaluated for one query, at most.
_MAX_STEPS = 300_000
#: A call is NULL where any argument is.
_NULL_OF_NULL = (NullRule.STRICT, NullRule.STRICT_IF_FINITE, NullRule.PROPAGATES)


@dataclass(frozen=True)
class Substitutes:
    """What stands in place of a value that fails: the first of the texts that its type takes; of a comparison, an outcome.

    `outcomes` take turns. Nothing is NULL: that what fails is not NULL may be known without computing it.
    """

    texts: tuple[str, ...]
    outcomes: tuple[bool, ...]

    def value(self, data_type: DataType) -> Any:
        """A value of the type."""
        if data_type.is_enum:
            return len(self.texts[0]) % len(data_type.categories)
        if data_type.is_string:
            return self.texts[0] if data_type.kind is TypeKind.VARCHAR else self.texts[0].encode()
        for text in self.texts:
            with suppress(ExecutionError):
                value = cast_value(text, VARCHAR, data_type)
                if value is not NotImplemented:
                    return value
        raise TooLongError(f"no value of {data_type}")


SUBSTITUTES = (
    Substitutes(("0.5", "true", "12:00:00", "2000-01-01", "1 day"), (True,)),
    Substitutes(("0", "false", "00:00:00", "1970-01-01", "0 days"), (False,)),
    Substitutes(("7", "0.7", "true", "13:00:00", "1980-01-01", "5 days"), (True, False)),
    Substitutes(("99", "0.99", "false", "23:00:00", "1900-01-01", "-9 days"), (False, True, True)),
)


class UnknownError(Exception):
    """A value is asked for that a row outside would give."""


class Effect(Enum):
    """What values that fail do to the answer."""

    NOTHING_FAILS = auto()
    NONE = auto()  # it is the same whatever stands in place of them
    ANOTHER_ANSWER = auto()
    UNKNOWN = auto()


class PossibleAnswers(Interpreter):
    """Runs a plan with substitutes in place of what fails; without them, what fails raises ExecutionError.

    Whether something failed is in `has_failed`. Where nothing is substituted, the conditions of joins are also computed for
    each table by itself, as either side may come first, and so are those of filters that read several tables, subqueries and
    the query around among them; with `filters_early` those of one, too, and every part of them, as DuckDB compares rows whole.
    """

    def __init__(
        self, kernels: Kernels, substitutes: Substitutes | None, *, filters_early: bool = False
    ) -> None:
        self._kernels, self._substitutes, self._filters_early = kernels, substitutes, filters_early
        self._outcomes = itertools.cycle(substitutes.outcomes if substitutes else ())
        self._rows: dict[int, tuple[LogicalPlan, list[Row]]] = {}
        self._steps = 0
        self.has_failed = False

    # plans

    def run(self, plan: LogicalPlan, outer: Row) -> list[Row]:
        if isinstance(plan, (Window, AsofJoin, Recursive, Unnest, WorkingRows)):
            raise TooLongError(f"{type(plan).__name__} is not run row by row")
        if self._substitutes is None and isinstance(plan, Filter):
            below, filters = plan.input, conjuncts(plan.condition)
            while outputs := _passed_on(below):  # what the condition reads may be of several tables below
                (below,), filters = below.inputs, [substitute(each, outputs) for each in filters]
            self._compute_early(below, outer, filters)
            for subquery in (part for part in walk(plan.condition) if outer and isinstance(part, Subquery)):
                with suppress(UnknownError):  # what it does not take from a row of `below`
                    self.run(subquery.plan, outer)
        if plan.free_ids:
            return super().run(plan, outer)
        if id(plan) not in self._rows:
            self._rows[id(plan)] = plan, super().run(plan, {})
        return self._rows[id(plan)][1]

    def column(self, scan: Scan, name: str) -> Sequence[Any]:
        return self._kernels.column(scan.table, name)

    def values(self, expressions: Iterable[Expression], row: Row) -> list[Any]:
        return [self._value(expression, row) for expression in expressions]

    def _value(self, expression: Expression, row: Row) -> Any:
        try:
            return self.evaluate(expression, row)
        except UnknownError:
            return None
        except ExecutionError:
            if self._substitutes is None:
                raise
            self.has_failed = True
            return self._substitutes.value(expression.data_type)

    def _join(self, plan: Join, outer: Row) -> list[Row]:
        if self._substitutes is None:
            self._compute_early(plan, outer, ())
            for left in self.run(plan.left, outer) if plan.right.free_ids & plan.left.output_ids else ():
                for subquery in _subqueries(plan.right):
                    with suppress(UnknownError):
                        self.run(subquery.plan, outer | left)
        return super()._join(plan, outer)

    def _compute_early(self, plan: LogicalPlan, outer: Row, filters: Sequence[Expression]) -> None:
        """Raises where a part of a condition fails for rows of the tables that it reads, whatever else drops them."""
        tables, conditions = _joined(plan)
        for table in tables:
            self.run(table, outer)
        for part in itertools.chain(*map(conjuncts, conditions), filters):
            is_guarded = part in filters and not self._filters_early
            num_read = sum(bool(each.output_ids & read_ids(part)) for each in tables)
            num_read += any(isinstance(node, ScalarSubquery) for node in walk(part))
            num_read += len(tables) > 1 and not outer.keys().isdisjoint(read_ids(part))
            if is_guarded and num_read < 2:
                continue
            for expression in walk(part) if self._filters_early else (part, *part.inputs):
                read = read_ids(expression)
                rows = [self.run(table, outer) for table in tables if table.output_ids & read]
                rows = (
                    list(filter(None, rows)) or rows
                )  # without a row, a table gives what nothing asks for, or nothing
                if math.prod(map(len, rows)) > _MAX_STEPS:
                    raise TooLongError("too many pairs")
                for combination in itertools.product(*rows):
                    with suppress(UnknownError):
                        self.evaluate(
                            expression, {**outer, **dict(itertools.chain(*map(dict.items, combination)))}
                        )

    def compute_early(self, plan: LogicalPlan) -> None:
        """Raises where something fails that may be computed before there is a row: what a subquery does not take from one."""
        self.run(plan, {})
        for subquery in _subqueries(plan):
            self.run(subquery.plan, {})
            operands = subquery.operands if isinstance(subquery, QuantifiedComparison) else ()
            is_one = isinstance(subquery, ScalarSubquery) and not subquery.plan.free_ids
            for expression in (*operands, *((subquery,) if is_one else ())):
                with suppress(UnknownError):
                    self.evaluate(expression, {})

    def verdict(self, condition: Expression, row: Row) -> bool | None:
        try:
            return super().verdict(condition, row)
        except UnknownError:
            return True

    # values

    def _look_for_failures(self, expressions: Iterable[Expression], row: Row) -> None:
        """Whether something fails that nothing asks for: DuckDB computes some of that."""
        for expression in () if self.has_failed or self._substitutes is None else expressions:
            try:
                self.evaluate(expression, row)
            except UnknownError:
                pass
            except ExecutionError:
                self.has_failed = True

    def _call(self, call: AggregateCall, rows: list[Row], outer: Row) -> Any:
        for row in rows if call.filter is not None else ():
            self._look_for_failures(call.arguments, outer | row)
        return super()._call(call, rows, outer)

    def aggregate(self, call: AggregateCall, values: list[Any]) -> Any:
        if len(call.arguments) > 1 or call.order:
            raise TooLongError("aggregates of several arguments are not interpreted")
        try:
            return self._kernels.aggregate(call, values)
        except ExecutionError:
            if self._substitutes is None:
                raise
            self.has_failed = True
            return self._substitutes.value(call.data_type)

    def identity(self, value: Any, data_type: DataType) -> Any:
        if isinstance(value, float) and math.isnan(value):
            return "NaN"
        return _normal(value) if data_type.kind is TypeKind.INTERVAL and value is not None else value

    def order(self, a: Any, b: Any, data_type: DataType) -> int:
        if data_type.kind is TypeKind.INTERVAL:
            a, b = _normal(a), _normal(b)
        if isinstance(a, float):
            a, b = ((math.isnan(each), 0.0 if math.isnan(each) else each) for each in (a, b))
        return bool(a > b) - bool(a < b)

    def compare(self, function: str, data_type: DataType, a: Any, b: Any) -> bool | None:
        if a is None or b is None:
            return None
        result: bool = self._kernels.compute(
            Call(function, (Literal(a, data_type), Literal(b, data_type)), BOOLEAN)
        )
        return result

    def in_list(self, expression: InList, value: Any) -> bool | None:
        data_type = expression.input.data_type
        return any_of(self.compare("equal", data_type, value, each.value) for each in expression.values)

    def cast(self, cast: Cast, value: Any) -> Any:
        return (
            None
            if value is None
            else self._kernels.compute(replace(cast, input=Literal(value, cast.input.data_type)))
        )

    def evaluate(self, expression: Expression, row: Row) -> Any:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise TooLongError("too many steps")
        if isinstance(expression, OverElements | ReduceElements | ElementRef):
            raise TooLongError("the elements of lists are not computed one by one")
        if isinstance(expression, ColumnRef) and expression.id not in row:
            raise UnknownError
        if isinstance(expression, Try) and self._substitutes is not None:
            return PossibleAnswers(self._kernels, None).evaluate(expression, row)
        if isinstance(expression, Case) or (
            isinstance(expression, Call) and expression.function == "coalesce"
        ):
            self._look_for_failures(expression.inputs, row)
        try:
            return super().evaluate(expression, row)
        except ExecutionError:
            if self._substitutes is None or not _is_comparison(expression):
                raise
            self.has_failed = True
            return next(self._outcomes)

    def function(self, call: Call, row: Row) -> Any:
        if call.function == "coalesce":
            values = (self.evaluate(argument, row) for argument in call.arguments)
            return next((value for value in values if value is not None), None)
        is_connective, deciding = call.function in ("and", "or"), call.function == "or"
        arguments: list[Any] = []
        failed: tuple[int, ExecutionError] | None = None
        is_unknown = False
        for position, argument in enumerate(call.arguments):
            try:
                arguments.append(self.evaluate(argument, row))
            except ExecutionError as error:
                if is_connective and self._substitutes is None and deciding not in arguments:
                    raise  # a condition after it may decide, but need not come first
                failed = position, error
            except UnknownError:
                is_unknown = True
        if is_connective:
            verdict = any_of(arguments) if deciding else all_of(arguments)
            if verdict is not deciding:
                if failed is not None:
                    raise failed[1]
                if is_unknown:
                    raise UnknownError
            return verdict
        if is_unknown and (failed is None or self._substitutes is not None):
            raise UnknownError
        if failed is None:
            pairs = zip(arguments, call.arguments, strict=True)
            literals = tuple(Literal(value, argument.data_type) for value, argument in pairs)
            return self._kernels.compute(replace(call, arguments=literals))
        if self._substitutes is not None:
            self.has_failed = True
            if call.function == "is_null":
                return False
            if None in arguments and call.function in ("is_distinct_from", "is_not_distinct_from"):
                return call.function == "is_distinct_from"
        if self._is_decided_by_null(call, arguments, failed[0]):
            return None
        raise failed[1]

    def _is_decided_by_null(self, call: Call, arguments: Sequence[Any], failed: int) -> bool:
        """Whether a call is NULL though an argument fails. A column's is computed all the same, a constant's after NULL is not."""
        if None not in arguments or SCALARS[call.function].null not in _NULL_OF_NULL:
            return False
        return self._substitutes is not None or (
            not read_ids(call.arguments[failed]) and None in arguments[:failed]
        )

    def quantified(self, expression: QuantifiedComparison, row: Row) -> bool | None:
        try:
            return super().quantified(expression, row)
        except ExecutionError:
            if self._substitutes is None:
                raise
            self.has_failed = True
            known = [None if None in inner.values() else True for inner in self.run(expression.plan, row)]
            if True in known:
                raise
            return all_of(known) if expression.is_all else any_of(known)


def _normal(interval: tuple[int, int, int]) -> int:
    months, days, microseconds = interval
    return (months * 30 + days) * 86_400_000_000 + microseconds


def _is_comparison(expression: Expression) -> bool:
    """Whether it has an outcome whatever its operands are: any BOOLEAN but AND, OR, NOT and what chooses one."""
    if expression.data_type != BOOLEAN or isinstance(expression, Literal | ColumnRef | Case):
        return False
    return not (isinstance(expression, Call) and expression.function in ("and", "or", "not", "coalesce"))


def _joined(plan: LogicalPlan) -> tuple[list[LogicalPlan], list[Expression]]:
    """What is joined, and the conditions."""
    if not isinstance(plan, Join):
        return [plan], []
    tables, conditions = zip(*map(_joined, (plan.left, plan.right)), strict=True)
    return [*itertools.chain(*tables)], [plan.condition, *itertools.chain(*conditions)]


def _subqueries(plan: LogicalPlan) -> Iterator[Subquery]:
    """The subqueries in a plan, those in others too."""
    for expression in plan.expressions:
        for node in walk(expression):
            if isinstance(node, Subquery):
                yield node
                yield from _subqueries(node.plan)
    for below in plan.inputs:
        yield from _subqueries(below)


def _passed_on(plan: LogicalPlan) -> dict[int, Expression]:
    """What conditions on these columns of a plan are of the rows below it; nothing where they cannot go there."""
    match plan:
        case Project():
            return {field.id: each for field, each in zip(plan.fields, plan.outputs, strict=True)}
        case Aggregate():
            return {field.id: each for field, each in zip(plan.key_fields, plan.keys, strict=True)}
        case Shared():
            pairs = zip(plan.fields, plan.input.schema, strict=True)
            return {field.id: reference(below) for field, below in pairs}
    return {}


def _plans(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    yield plan
    for below in plan.inputs:
        yield from _plans(below)


def _has_failing_constant(plan: LogicalPlan, kernels: Kernels) -> bool:
    """Whether a constant fails, for a row or not: DuckDB computes some over no rows."""
    run = PossibleAnswers(kernels, None)
    for part in (plan, *(subquery.plan for subquery in _subqueries(plan))):
        for expression in itertools.chain.from_iterable(node.expressions for node in _plans(part)):
            for node in walk(expression):
                if not isinstance(node, AggregateCall | Subquery) and not read_ids(node):
                    try:
                        run.evaluate(node, {})
                    except ExecutionError:
                        return True
    return False


def _bound(
    connection: tqp.Connection, sql: str, parameters: Any, *, with_unread: bool = False
) -> LogicalPlan:
    """The bound plan, in which nothing that fails is dropped since another constant decides.

    `with_unread`: nor columns of derived tables that nobody reads, if they can be bound.
    """

    def fold_constants(expression: Expression) -> Expression:
        return (
            fold(expression) if all(isinstance(each, Literal) for each in expression.inputs) else expression
        )

    def all_branches(
        conditions: Sequence[Expression], values: Sequence[Expression]
    ) -> tuple[Any, Expression]:
        return list(zip(conditions, values, strict=False)), values[-1]

    bind_lazy = QueryBinder.bind_lazy

    def bind_whole(*arguments: Any) -> BoundQuery:
        bound = bind_lazy(*arguments)
        for column in bound.columns:
            with suppress(Error):
                column.reference()
        return bound

    bind_derived = bind_whole if with_unread else bind_lazy
    with (
        patch("tqp.planner.binder.expressions.coercion.fold", fold_constants),
        patch("tqp.planner.binder.expressions.forms.cases._that_may_be_taken", all_branches),
        patch("tqp.planner.binder.expressions.forms.special_forms._that_may_be_taken", list),
        patch.object(QueryBinder, "bind_lazy", bind_derived),
    ):
        return bind(sql, connection._snapshot(), parameters or None).plan


def effect_of_failures(connection: tqp.Connection, sql: str, parameters: Any, num_rows: int) -> Effect:
    """What values that fail do to an answer of so many rows."""
    try:
        kernels = Kernels(connection)
        plan = _bound(connection, sql, parameters)
        runs = [PossibleAnswers(kernels, each) for each in SUBSTITUTES]
        answers = [run.rows_of(plan) for run in runs]
        whole = _bound(connection, sql, parameters, with_unread=True)
        if not runs[0].has_failed and not _fails_somewhere(whole, kernels):
            return Effect.NOTHING_FAILS
    except (TooLongError, Error):
        return Effect.UNKNOWN
    is_one = len({tuple(sorted(map(repr, answer))) for answer in answers}) == 1
    return Effect.NONE if is_one and len(answers[0]) == num_rows else Effect.ANOTHER_ANSWER


def may_raise(connection: tqp.Connection, sql: str, parameters: Any) -> bool | None:
    """Whether a value fails that may be computed; None where it cannot be found out."""
    try:
        return _fails_early(_bound(connection, sql, parameters), Kernels(connection))
    except (TooLongError, Error):
        return None


def _fails_somewhere(plan: LogicalPlan, kernels: Kernels) -> bool:
    if _has_failing_constant(plan, kernels) or _fails_early(plan, kernels, filters_early=True):
        return True
    run = PossibleAnswers(kernels, SUBSTITUTES[0])
    run.compute_early(plan)
    return run.has_failed


def _fails_early(plan: LogicalPlan, kernels: Kernels, *, filters_early: bool = False) -> bool:
    try:
        PossibleAnswers(kernels, None, filters_early=filters_early).compute_early(plan)
    except ExecutionError:
        return True
    return False
