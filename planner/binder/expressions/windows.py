"""Window functions: the calls of a query block, by what they partition and order its rows by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BIGINT, DataType
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, ColumnRef, Expression, Literal, SortKey
from tqp.planner.algebra.logical_plan import LogicalPlan, Window
from tqp.planner.algebra.window_calls import WHOLE_PARTITION, WindowCall
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.aggregates import aggregate_call, counts_rows
from tqp.planner.binder.expressions.coercion import cast_to, condition_of
from tqp.planner.binder.expressions.window_frames import bind_frame
from tqp.planner.binder.select.named_windows import definition_of
from tqp.planner.binder.unsupported_clauses import check_understood
from tqp.planner.functions import registry as functions
from tqp.planner.functions.overloads import NoOverloadError, resolve
from tqp.planner.functions.type_rules import settle
from tqp.planner.functions.unsupported import refuse_missing
from tqp.planner.functions.windows import WindowFunction
from tqp.planner.parse import head_span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder
    from tqp.planner.binder.select.grouping import GroupedRewriter


#: PARTITION BY and ORDER BY.
_Sorting = tuple[tuple[Expression, ...], tuple[SortKey, ...]]


@dataclass(slots=True)
class WindowCollector:
    """The window functions of one query block; equal calls are computed once."""

    context: BindContext
    definitions: Sequence[exp.Window]  # those of the WINDOW clause
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
            raise BindError(
                "a window function cannot stand inside another one; use a subquery for the inner one",
                span_of(node),
            )
        self.is_inside = True
        try:
            sorting, call = self._call(binder, node)
        finally:
            self.is_inside = False
        self.uses += 1
        calls = self.calls.setdefault(sorting, {})
        made = calls.get(call)
        if made is None:
            made = calls[call] = self.context.new_field(call.function, call.data_type)
        return ColumnRef.of(made)

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
        call, condition = node.this, None
        if isinstance(call, exp.Filter):
            call, condition = call.this, call.expression.this
        if not isinstance(call, exp.Anonymous):
            raise UnsupportedError("OVER after this expression is not supported", span_of(node))
        definition = definition_of(node, self.definitions)
        partition = tuple(_keys(map(binder.bind, definition.partition)))
        order = tuple(_sort_keys(binder, definition.order))
        frame = bind_frame(binder, definition.frame, order, len(definition.order))
        name = functions.main_spelling(str(call.this).lower())
        nodes, distinct, ignores = _written_arguments(call, name)
        kept = None
        if condition is not None:
            kept = condition_of(binder.bind_flexible(condition), span_of(condition))
        function = functions.window_overloads(name)
        if function is not None:
            declared = functions.WINDOWS[function[0].canonical]
            for word, is_there in (("FILTER", condition is not None), ("DISTINCT", distinct)):
                if is_there:
                    raise BindError(f"{word} is for aggregates, and {name}() is none", head_span(call))
            if ignores and not declared.picks_value:
                raise BindError(f"{name}() does not take IGNORE NULLS", head_span(call))
            made = self._function(binder, declared, call, nodes)
            frame = frame if declared.takes_frame else WHOLE_PARTITION
            return (partition, order), WindowCall(*made, frame, ignores, span=span_of(call))
        aggregate = self._aggregate(binder, call, name, nodes, distinct, kept)
        if ignores:
            raise BindError(
                "aggregates skip NULLs anyway; IGNORE NULLS is for lag() and the like", head_span(call)
            )
        made = aggregate.function, aggregate.arguments, aggregate.data_type
        return (partition, order), WindowCall(
            *made, frame, False, aggregate.distinct, aggregate.filter, aggregate.span
        )

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
            given = ", ".join(str(argument.data_type) for argument in arguments)
            takes = ", ".join(error.candidates[:4])
            raise BindError(f"{name}() does not take ({given}); it takes {takes}", head_span(node)) from None
        types = resolution.argument_types
        if len(types) == 3:  # what stands for a row that is not there has the type of the values
            types = (*types[:2], types[0])
        values = tuple(
            cast_to(settle(argument), target, span) for argument, target in zip(arguments, types, strict=True)
        )
        return name, values, resolution.result

    def _aggregate(
        self,
        binder: ExpressionBinder,
        node: exp.Anonymous,
        name: str,
        nodes: Sequence[exp.Expr],
        distinct: bool,
        kept: Expression | None,
    ) -> AggregateCall:
        span = span_of(node)
        if functions.aggregate_overloads(name) is None:
            if functions.scalar_overloads(name) is not None:
                raise BindError(f"{name}() is no window function and no aggregate", head_span(node))
            refuse_missing(name, head_span(node))
            raise BindError(f'there is no window function or aggregate "{name}"', head_span(node))
        if name == "count" and not distinct and counts_rows(nodes, binder.scope):
            return AggregateCall("count_star", (), BIGINT, False, kept, span)
        arguments = [binder.bind_flexible(argument) for argument in nodes]
        return aggregate_call(name, arguments, distinct, kept, node)


def _keys(keys: Iterable[Expression]) -> Iterator[Expression]:
    """Those that tell rows apart, each once."""
    return (key for key in dict.fromkeys(keys) if not isinstance(key, Literal))


def _sort_keys(binder: ExpressionBinder, nodes: Sequence[exp.Ordered]) -> Iterator[SortKey]:
    seen: set[Expression] = set()
    for node in nodes:
        check_understood(node)
        if isinstance(node.this, exp.Var) and node.this.name.upper() == "ALL":
            raise BindError("a window cannot be ordered by ALL", span_of(node))
        key = binder.bind(node.this)
        if key not in seen and not isinstance(key, Literal):
            seen.add(key)
            yield SortKey(key, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def _written_arguments(call: exp.Anonymous, name: str) -> tuple[list[exp.Expr], bool, bool]:
    """The arguments without what stands among them: DISTINCT, and IGNORE NULLS."""
    nodes: list[exp.Expr] = list(call.expressions)
    distinct = bool(nodes) and isinstance(nodes[0], exp.Distinct)
    if distinct:
        nodes = nodes[0].expressions
    ignores = False
    for place, argument in enumerate(nodes):
        if isinstance(argument, exp.Order):
            raise UnsupportedError(
                f"ORDER BY inside {name}() is not supported", span_of(argument) or span_of(call)
            )
        if isinstance(argument, exp.IgnoreNulls | exp.RespectNulls):
            ignores = isinstance(argument, exp.IgnoreNulls)
            nodes[place] = argument.this
    return nodes, distinct, ignores
