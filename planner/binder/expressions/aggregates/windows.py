"""Window functions: the calls of a query block, by what they partition and order its rows by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BIGINT, DataType, TypeKind
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, ColumnRef, Expression, Literal, SortKey, walk
from tqp.planner.algebra.logical_plan import LogicalPlan, Window
from tqp.planner.algebra.window_calls import WHOLE_PARTITION, Exclusion, WindowCall, WindowFrame
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.aggregates.aggregate_arguments import (
    Written,
    refuse_parameters,
    sort_key,
    sort_keys,
    written,
)
from tqp.planner.binder.expressions.aggregates.aggregates import aggregate_call, counts_rows
from tqp.planner.binder.expressions.aggregates.window_frames import bind_frame
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.binder.expressions.collations import compared
from tqp.planner.binder.expressions.operators import no_overload
from tqp.planner.binder.select.named_windows import definition_of
from tqp.planner.functions import registry as functions
from tqp.planner.functions.overloads import NoOverloadError, resolve
from tqp.planner.functions.unsupported import refuse_missing
from tqp.planner.functions.windows import WindowFunction
from tqp.planner.parse import head_span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder
    from tqp.planner.binder.select.grouping import GroupedRewriter
    from tqp.planner.binder.select.unnests import UnnestCollector


#: The aggregates that window functions are with ORDER BY inside.
_IN_ORDER = {"first_value": "first", "last_value": "last"}
#: What tells a row's place among others, or finds another one by it, and may have an ORDER BY inside.
_AMONG_ROWS = ("row_number", "rank", "percent_rank", "cume_dist", "ntile", "lag", "lead")
#: Formulas of two aggregates.
_FORMULAS = ("wavg", "weighted_avg")
#: What fill() takes, or fills by, in DuckDB only.
_NOT_FILLED = (TypeKind.UHUGEINT, TypeKind.TIME_TZ)
#: PARTITION BY and ORDER BY.
_Sorting = tuple[tuple[Expression, ...], tuple[SortKey, ...]]


@dataclass(slots=True)
class WindowCollector:
    """The window functions of one query block; equal calls are computed once."""

    context: BindContext
    definitions: Sequence[exp.Window]  # those of the WINDOW clause
    unnests: UnnestCollector  # of the same block, which come after window functions
    may_be_written: bool = True  # or rows are only numbered, for what is drawn for each
    calls: dict[_Sorting, dict[WindowCall, Field]] = field(default_factory=dict)
    uses: int = 0  # calls as they are written
    is_inside: bool = False  # while one is bound

    def bind(self, binder: ExpressionBinder, node: exp.Window) -> Expression:
        """A reference to the column that holds the values of the call."""
        if binder.inside_aggregate:
            raise BindError(
                "a window function cannot stand inside an aggregate; use a subquery", span_of(node)
            )
        if self.is_inside:
            raise _nested(node)
        self.is_inside = True
        try:
            sorting, call = self._call(binder, node)
        finally:
            self.is_inside = False
        inside = (*sorting[0], *(key.expression for key in sorting[1]), *call.expressions)
        if any(map(self.is_in, inside)):  # by an alias
            raise _nested(node)
        lists = {made.id for made in self.unnests.lists.values()}
        if lists and any(_reads(each, lists) for each in inside):
            raise BindError(
                "unnest() cannot stand inside a window function; unnest in a subquery", span_of(node)
            )
        refuse_parameters(binder, inside, call.function, span_of(node))
        self.uses += 1
        calls = self.calls.setdefault(sorting, {})
        made = calls.get(call)
        if made is None:
            made = calls[call] = self.context.new_field(call.function, call.data_type)
        return ColumnRef.of(made)

    def is_in(self, expression: Expression) -> bool:
        """Does it hold the values of a call?"""
        return _reads(expression, {made.id for calls in self.calls.values() for made in calls.values()})

    def rewritten(self, rewriter: GroupedRewriter) -> None:
        """Make the calls some over the groups of the block."""
        changed: dict[_Sorting, dict[WindowCall, Field]] = {}
        for (partition, order), calls in self.calls.items():
            keys = tuple(map(rewriter.rewrite, partition))
            sorting = tuple(key.map_expressions(rewriter.rewrite) for key in order)
            mine = changed.setdefault((keys, sorting), {})
            mine.update((call.map_expressions(rewriter.rewrite), made) for call, made in calls.items())
        self.calls = changed

    def over(self, plan: LogicalPlan) -> LogicalPlan:
        """The plan under a node for each PARTITION BY and ORDER BY; one without either sees the rows as they come."""
        for (partition, order), calls in sorted(self.calls.items(), key=lambda item: item[0] != ((), ())):
            plan = Window(plan, partition, order, tuple(calls.values()), tuple(calls))
        return plan

    def _call(self, binder: ExpressionBinder, node: exp.Window) -> tuple[_Sorting, WindowCall]:
        called, condition = node.this, None
        if isinstance(called, exp.Filter):
            called, condition = called.this, called.expression.this
        call = written(called)
        if call is None:
            raise UnsupportedError("OVER after this expression is not supported", span_of(node))
        if call.group_order:
            raise BindError(f"{call.name}() takes no OVER behind WITHIN GROUP", head_span(call.node))
        definition = definition_of(node, self.definitions)
        partition = tuple(_keys(compared(binder.bind(node)) for node in definition.partition))
        order = tuple(sort_keys(binder, definition.order, "a window"))
        frame = bind_frame(binder, definition.frame, order, definition.order)
        name = functions.main_spelling(call.name)
        kept = None if condition is None else binder.bind_condition(condition)
        is_plain = not (call.distinct or call.order or call.ignores_nulls) and condition is None
        # arbitrary() is an aggregate, which takes more, and gives what the window function first() does
        function = functions.window_overloads(name if is_plain else call.name)
        if function is not None:
            declared = functions.WINDOWS[function[0].canonical]
            for word, is_there in (("FILTER", condition is not None), ("DISTINCT", call.distinct)):
                if is_there:
                    raise BindError(f"{word} is for aggregates, and {name}() is none", head_span(call.node))
            if call.ignores_nulls and not declared.picks_value:
                raise BindError(f"{name}() does not take IGNORE NULLS", head_span(call.node))
            if declared.fills:
                return self._filled(binder, declared, call, partition, definition.order)
            if call.order and declared.name in _AMONG_ROWS and frame.is_partition and not call.ignores_nulls:
                # over all rows of the partition, an order inside does what one behind OVER does
                order, call = tuple(sort_keys(binder, call.order, f"{name}()")), replace(call, order=())
            if call.order:
                _refuse_order(call, declared, frame)
            if not call.order or declared.name in _AMONG_ROWS:
                made = self._function(binder, declared, call.node, call.arguments)
                frame = frame if declared.takes_frame or call.order else WHOLE_PARTITION
                inside = tuple(sort_keys(binder, call.order, f"{name}()"))
                if call.order and not inside:  # by a constant all are peers
                    inside = (sort_key(binder, call.order[0]),)
                return (partition, order), WindowCall(
                    *made, frame, call.ignores_nulls, span=span_of(call.node), order=inside
                )
            name = _IN_ORDER[declared.name]
        aggregate = self._aggregate(binder, call, name, kept)
        if call.ignores_nulls or (call.says_nulls and function is None):
            raise BindError(
                "aggregates skip NULLs anyway; IGNORE NULLS and RESPECT NULLS are for lag() and the like",
                head_span(call.node),
            )
        return (partition, order), WindowCall(
            aggregate.function,
            aggregate.arguments,
            aggregate.data_type,
            frame,
            False,
            aggregate.distinct,
            aggregate.filter,
            aggregate.span,
            aggregate.order,
        )

    def _filled(
        self,
        binder: ExpressionBinder,
        function: WindowFunction,
        call: Written,
        partition: tuple[Expression, ...],
        order: Sequence[exp.Ordered],
    ) -> tuple[_Sorting, WindowCall]:
        """fill(), of which ORDER BY inside takes the place of the one behind OVER."""
        written_keys, span = call.order or order, span_of(call.node)
        if len(written_keys) != 1:
            raise BindError(
                f"fill() needs one key in ORDER BY, by which it fills, and has {len(written_keys)}", span
            )
        name, (value,), result = self._function(binder, function, call.node, call.arguments)
        key = sort_key(binder, written_keys[0])
        for expression, what in ((value, "argument"), (key.expression, "key of ORDER BY")):
            data_type = expression.data_type
            if not (data_type.is_numeric or data_type.is_temporal):
                raise BindError(f"fill() needs numbers, dates or times, and its {what} is {data_type}", span)
            if data_type.kind in _NOT_FILLED:
                raise UnsupportedError(f"fill() where its {what} is {data_type} is not supported", span)
        sorting = tuple(sort_keys(binder, written_keys, "fill()"))
        return (partition, sorting), WindowCall(name, (value, key.expression), result, span=span)

    def _function(
        self,
        binder: ExpressionBinder,
        function: WindowFunction,
        node: exp.Anonymous,
        nodes: Sequence[exp.Expr],
    ) -> tuple[str, tuple[Expression, ...], DataType]:
        name, span = function.name, span_of(node)
        overloads = functions.window_overloads(name)
        assert overloads is not None
        arguments = [binder.bind_flexible(argument) for argument in nodes]
        try:
            resolution = resolve(overloads, arguments)
        except NoOverloadError as error:
            raise no_overload(error, arguments, head_span(node), f"{name}()") from None
        types = resolution.argument_types
        if len(types) == 3:  # what stands for a row that is not there has the type of the values
            types = (*types[:2], types[0])
        values = tuple(
            cast_to(argument, target, span) for argument, target in zip(arguments, types, strict=True)
        )
        return name, values, resolution.result

    def _aggregate(
        self, binder: ExpressionBinder, call: Written, name: str, kept: Expression | None
    ) -> AggregateCall:
        node, span = call.node, span_of(call.node)
        if functions.aggregate_overloads(name) is None:
            if name in _FORMULAS:
                raise BindError(
                    f"{name}() is a formula of two aggregates, and takes no OVER", head_span(node)
                )
            if functions.scalar_overloads(name) is not None:
                raise BindError(f"{name}() is no window function and no aggregate", head_span(node))
            refuse_missing(name, head_span(node))
            raise BindError(f'there is no window function or aggregate "{name}"', head_span(node))
        order = tuple(sort_keys(binder, call.order, f"{name}()"))
        if counts_rows(call, binder.scope):
            return AggregateCall("count_star", (), BIGINT, False, kept, span)
        arguments = [binder.bind_flexible(argument) for argument in call.arguments]
        return aggregate_call(name, arguments, call.distinct, kept, node, order, is_window=True)


def _reads(expression: Expression, ids: Collection[int]) -> bool:
    """Does it read one of these columns? Not in a subquery: its plan may still grow, and there an alias does not stand for them."""
    return any(isinstance(part, ColumnRef) and part.id in ids for part in walk(expression))


def _refuse_order(call: Written, function: WindowFunction, frame: WindowFrame) -> None:
    """Raise for an ORDER BY inside a call of a function of places or values that does not take it."""
    name, span = call.name, span_of(call.order[0]) or span_of(call.node)
    if function.name not in _AMONG_ROWS and function.name not in _IN_ORDER:
        raise BindError(f"{name}() takes no ORDER BY inside its parentheses", span)
    if call.ignores_nulls:
        raise UnsupportedError(f"ORDER BY and IGNORE NULLS inside {name}() are not supported", span)
    if function.name in _AMONG_ROWS and frame.exclusion is not Exclusion.NO_OTHERS:
        raise BindError(f"{name}() with ORDER BY inside takes no EXCLUDE", span)


def _nested(node: exp.Window) -> BindError:
    return BindError(
        "a window function cannot stand inside another one; use a subquery for the inner one", span_of(node)
    )


def _keys(keys: Iterable[Expression]) -> Iterator[Expression]:
    """Those that tell rows apart, each once."""
    return (key for key in dict.fromkeys(keys) if not isinstance(key, Literal))
