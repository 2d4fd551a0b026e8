"""Aggregate calls, and the rewriting of expressions over groups: keys and aggregates by reference, nothing else."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BOOLEAN, DOUBLE, TIME, TIME_TZ, VARCHAR
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.frozen import dataclass
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Case,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
)
from tqp.planner.algebra.subquery_expressions import Subquery
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.directions import direction_of
from tqp.planner.binder.expressions.aggregates.aggregate_arguments import (
    Written,
    refuse_parameters,
    sort_keys,
)
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.binder.expressions.collations import compared, of_arguments
from tqp.planner.binder.expressions.operators import no_overload
from tqp.planner.binder.select.ordinals import refuse_constant
from tqp.planner.functions import registry as functions
from tqp.planner.functions.constants import constant_number
from tqp.planner.functions.declaration import AggregateFunction
from tqp.planner.functions.overloads import NoOverloadError, resolve
from tqp.planner.functions.type_rules import settle
from tqp.planner.functions.unsupported import refuse_missing_form, refuse_missing_type
from tqp.planner.parse import Span, head_span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder
    from tqp.planner.binder.scope import Scope


#: Those of a BIGINT that is not negative.
_MOST_BITS = 63


@dataclass(frozen=True, slots=True)
class Grouping:
    """GROUPING(keys): a bit for each, the first the highest, that is 1 in the rows of a set without the key."""

    keys: tuple[Expression, ...]

    def number(self, grouping_set: Collection[Expression]) -> int:
        """Its value in the rows of a set."""
        bits = (key not in grouping_set for key in reversed(self.keys))
        return sum(bit << place for place, bit in enumerate(bits))


@dataclass(slots=True)
class AggregateCollector:
    """The aggregates of one query block; equal calls are computed once.

    `keys`: those of GROUP BY, if there is one.
    """

    context: BindContext
    calls: dict[AggregateCall, Field] = field(default_factory=dict)
    keys: Sequence[Expression] | None = None
    groupings: dict[Grouping, Field] = field(default_factory=dict)
    uses: int = 0  # calls as they are written, equal ones included
    is_inside: bool = False  # while one is bound
    #: Whether the one that is bound names an enclosing query's alias of a constant.
    names_outer_constant: bool = False

    def bind(self, binder: ExpressionBinder, call: Written, condition: exp.Expr | None) -> Expression:
        """A reference to the output column of the aggregate."""
        node = call.node
        span, name = span_of(node), functions.main_spelling(call.name)
        for key in (*call.order, *call.group_order):
            refuse_constant(key.this)
        if call.ignores_nulls:
            raise UnsupportedError(f"IGNORE NULLS inside {name}() is not supported without OVER", span)
        if self.is_inside:
            raise BindError(
                f"{name}() stands inside another aggregate; use a subquery for the inner one", head_span(node)
            )
        binder.inside_aggregate = self.is_inside = True
        self.names_outer_constant = False
        outside, binder.scope.uses = binder.scope.uses, None
        try:
            filter_ = None if condition is None else binder.bind_condition(condition)
            made = self._call(binder, call, name, filter_)
        finally:
            binder.inside_aggregate = self.is_inside = False
            binder.scope.uses = outside
        refuse_parameters(binder, made.inputs, name, span)
        if made.function != "count_star":
            self._refuse_outer([*made.inputs], binder.scope, name, span)
        return self._add(made, "count_star()" if made.function == "count_star" else name)

    def _call(
        self, binder: ExpressionBinder, call: Written, name: str, filter_: Expression | None
    ) -> AggregateCall:
        order = tuple(sort_keys(binder, call.order, f"{name}()"))
        if counts_rows(call, binder.scope):
            return AggregateCall("count_star", (), BIGINT, False, filter_, span_of(call.node))
        arguments = [binder.bind_flexible(argument) for argument in call.arguments]
        if call.percentile_order is not None and len(arguments) > 1:
            arguments[1] = _percentile(
                arguments[1],
                direction_of(call.percentile_order, binder.context.catalog)[0],
                span_of(call.node),
            )
            order = ()  # of the key, the direction is all that counts
        return aggregate_call(name, arguments, call.distinct, filter_, call.node, order)

    def bind_grouping(self, binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
        """GROUPING(keys), or of all keys without any: a reference to its column."""
        if not self.keys or binder.inside_aggregate:
            where = "an aggregate" if binder.inside_aggregate else "a query without keys in GROUP BY"
            raise BindError(f"GROUPING() is not allowed in {where}", span_of(node))
        keys = tuple(map(binder.bind, node.expressions)) if node.expressions else tuple(self.keys)
        for key, written in zip(keys, node.expressions):
            if key not in self.keys:
                raise BindError("GROUPING() takes keys of GROUP BY, and this is none", span_of(written))
        if len(keys) > _MOST_BITS:
            raise BindError(f"GROUPING() takes at most {_MOST_BITS} keys", span_of(node))
        grouping = Grouping(keys)
        if grouping not in self.groupings:
            self.groupings[grouping] = self.context.new_field("grouping", BIGINT, nullable=False)
        return ColumnRef.of(self.groupings[grouping])

    def _add(self, call: AggregateCall, name: str) -> Expression:
        self.uses += 1
        made = self.calls.get(call)
        if made is None:
            nullable = functions.AGGREGATES[call.function].of_nothing is None
            made = self.calls[call] = self.context.new_field(name, call.data_type, nullable)
        return ColumnRef.of(made)

    def _refuse_outer(self, arguments: list[Expression], scope: Scope, name: str, span: Span | None) -> None:
        """An aggregate over outer columns or aliases alone belongs to the outer query; what is looked for in a subquery tells nothing."""
        references, left = [], list(arguments)
        while left:
            part = left.pop()
            if isinstance(part, ColumnRef):
                references.append(part)
            elif not isinstance(part, Subquery):
                left.extend(part.inputs)
        keys = self.keys or ()
        is_outer = references or self.names_outer_constant
        if is_outer and not any(each.id in scope.used or each in keys for each in references):
            raise UnsupportedError(f"{name}() over columns of an enclosing query only is not supported", span)


def aggregate_call(
    name: str,
    arguments: Sequence[Expression],
    distinct: bool,
    filter_: Expression | None,
    node: exp.Anonymous,
    order: tuple[SortKey, ...] = (),
    *,
    is_window: bool = False,
) -> AggregateCall:
    """The call of the overload that fits, its arguments cast; raises BindError, UnsupportedError.

    `order`: of the rows, which a function that does not mind it leaves out.
    """
    span = span_of(node)
    name, arguments = by_collation(name, arguments, distinct, span)
    overloads = functions.aggregate_overloads(name)
    assert overloads
    function = functions.AGGREGATES[overloads[0].canonical]
    refuse_missing_form(name, len(arguments), head_span(node))
    if any(argument.data_type.kind in function.unsupported for argument in arguments):
        raise UnsupportedError(f"{name}() of {arguments[0].data_type} is not supported", span)
    try:
        resolution = resolve(overloads, arguments)
    except NoOverloadError as error:
        refuse_missing_type(name, [argument.data_type for argument in arguments], span)
        raise no_overload(error, arguments, head_span(node), f"{name}()") from None
    values = tuple(
        cast_to(argument, target, span) for argument, target in zip(arguments, resolution.argument_types)
    )
    result = resolution.result
    if function.name in _OF_FIRST and result == VARCHAR:
        result = of_arguments(result, values[:1], span)
    check_constants(name, function, values, head_span(node))
    given = {*map(settle, arguments), *values}
    if distinct and not all(_follows_from(given, key.expression) for key in order):
        order = _undetermined_order(name, function, is_window, head_span(node))
    distinct = distinct and not function.ignores_duplicates
    if distinct and (function.name, resolution.result) == ("avg", TIME_TZ):
        raise UnsupportedError(f"avg(DISTINCT ...) of {TIME_TZ} is not supported; cast to TIME", span)
    return AggregateCall(
        function.name,
        (taken(function.name, values[0], span), *values[1:]) if values else values,
        result,
        distinct,
        filter_,
        span,
        order if function.minds_order else (),
    )


#: Those that give one of the values of their first argument.
_OF_FIRST = frozenset(
    "min max arg_min arg_max arg_min_null arg_max_null arg_min_nulls_last arg_max_nulls_last first last any_value".split()
)


def by_collation(
    name: str, arguments: Sequence[Expression], distinct: bool, span: Span | None
) -> tuple[str, Sequence[Expression]]:
    """What is called in the place of an aggregate that compares texts with a collation, and with what.

    Extremes are the first of the texts that are equal; others compare the texts themselves, as in DuckDB.
    """
    if not any(each.data_type.holds_collation for each in arguments):
        return name, arguments
    if name in ("min", "max") and len(arguments) == 1:
        return f"arg_{name}", (arguments[0], compared(arguments[0], span))
    if name.startswith(("arg_min", "arg_max")):
        return name, (arguments[0], *(compared(each, span) for each in arguments[1:]))
    if name == "count" and distinct:
        return name, [compared(each, span) for each in arguments]
    if distinct:
        raise UnsupportedError(f"{name}(DISTINCT ...) of texts with a collation is not supported", span)
    return name, arguments


def taken(function: str, argument: Expression, span: Span | None) -> Expression:
    """What an aggregate takes for its argument.

    An average of times with a zone is one of what clocks in UTC show; approx_quantile() leaves out what is not finite.
    """
    if function == "avg" and argument.data_type == TIME_TZ:
        return Call("universal_clock", (argument,), TIME, span)
    if function == "approx_quantile" and argument.data_type.is_float:
        finite = Call("is_finite", (argument,), BOOLEAN, span)
        return Case(((finite, argument),), Literal(None, argument.data_type), argument.data_type)
    return argument


def _undetermined_order(
    name: str, function: AggregateFunction, is_window: bool, span: Span | None
) -> tuple[SortKey, ...]:
    """No order, of distinct values by what may differ for equal ones: as in DuckDB an error, but not of windows.

    Raises BindError, UnsupportedError.
    """
    if not is_window:
        raise BindError(
            f"ORDER BY inside {name}(DISTINCT ...) must be by its arguments, or what is computed of them",
            span,
        )
    if function.minds_order:
        raise UnsupportedError(
            f"ORDER BY inside {name}(DISTINCT ...) OVER by what is none of its arguments is not supported",
            span,
        )
    return ()


def _follows_from(given: Collection[Expression], key: Expression) -> bool:
    """Whether a key of ORDER BY has one value for each of what is given: it is computed of that and of constants."""
    if key in given or isinstance(key, Literal):
        return True
    return (
        not isinstance(key, Subquery)
        and bool(key.inputs)
        and all(_follows_from(given, each) for each in key.inputs)
    )


def _percentile(fraction: Expression, descends: bool, span: Span | None) -> Expression:
    """The fraction of a percentile, counted from the other end of an order that `descends`; raises BindError for a constant that is none."""
    number = constant_number(cast_to(fraction, DOUBLE, span))
    if number is None:
        return fraction
    if not 0 <= number <= 1:
        raise BindError("the fraction of a percentile must be between 0 and 1", span)
    return Literal(-number, DOUBLE) if descends else fraction


def check_constants(
    name: str, function: AggregateFunction, values: Sequence[Expression], span: Span | None
) -> None:
    """Raise BindError or UnsupportedError for a constant argument that is none, or is none that the function takes."""
    if function.check is not None and len(values) > 1:
        try:
            function.check(values)
        except (BindError, UnsupportedError) as error:
            raise type(error)(f"{name}(): {error.message}", span) from None


def counts_rows(call: Written, scope: Scope) -> bool:
    """Whether the call is a count() of rows: of nothing, or of a * or `t.*` alone, from which nothing is left out.

    Raises UnsupportedError where an outer join pads the table, of which DuckDB counts the rows that it does have, and where
    the table is one of an enclosing query; BindError for a * that is ordered.
    """
    if functions.main_spelling(call.name) != "count" or call.distinct:
        return False
    if not call.arguments:
        return True
    argument = call.arguments[0].unnest()
    star = argument.this if isinstance(argument, exp.Column) else argument
    if len(call.arguments) != 1 or not isinstance(star, exp.Star) or any(star.args.values()):
        return False
    if call.order:
        raise BindError("count(*) takes no ORDER BY", span_of(call.node))
    if isinstance(argument, exp.Column):
        named = [relation for relation in scope.relations if relation.is_named(argument.table)]
        if not named and scope.has_relation(argument.table):
            raise UnsupportedError(
                f"count({argument.table}.*) of a table of an enclosing query is not supported",
                span_of(argument),
            )
        if not named:
            raise scope.unknown_column("*", argument.table, span_of(argument))
        if any(relation.is_padded for relation in named):
            raise UnsupportedError(
                f"count({argument.table}.*) of a table that an outer join pads is not supported; "
                "count one of its columns that is never NULL",
                span_of(argument),
            )
    return True
