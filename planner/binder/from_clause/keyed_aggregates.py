"""USING KEY (a, max(b)): a row for each key, whose other columns are aggregates of all rows that there were of the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BOOLEAN, DataType
from tqp.core.errors import UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import AggregateCall, Call, ColumnRef, Expression, Literal, conjunction
from tqp.planner.algebra.logical_plan import Aggregate, Join, JoinType, LogicalPlan, Project
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.aggregates.aggregates import aggregate_call
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.parse import span_of

#: Aggregates whose value for some rows, and that for others, make that for all.
_MERGED = frozenset(("sum", "min", "max", "count"))


def aggregate_of_key(node: exp.Expr) -> exp.Anonymous:
    """What USING KEY asks for beside names of columns. Raises UnsupportedError for what is no sum, minimum, maximum or count of a column."""
    call = node.this if isinstance(node, exp.Alias) else node
    arguments = call.expressions if isinstance(call, exp.Anonymous) else ()
    if lower_ascii(call.name) not in _MERGED or len(arguments) != 1 or type(arguments[0]) is not exp.Column:
        raise UnsupportedError(
            "USING KEY by anything but names of columns, and sum, min, max and count of one, is not supported",
            span_of(node),
        )
    assert isinstance(call, exp.Anonymous)
    return call


def grouped_by_key(
    context: BindContext, plan: LogicalPlan, keys: Sequence[int], calls: Mapping[int, exp.Anonymous]
) -> LogicalPlan:
    """A row for each key: aggregates of the columns that have one, and of others the last value."""
    columns = list(map(ColumnRef.of, plan.schema))
    fields: dict[int, Field] = {place: plan.schema[place] for place in keys}
    made: list[AggregateCall] = []
    for place, column in enumerate(columns):
        if place in fields:
            continue
        call = calls.get(place)
        made.append(
            AggregateCall("last", (column,), column.data_type)
            if call is None
            else aggregate_call(lower_ascii(call.name), [column], False, None, call)
        )
        fields[place] = context.new_field(column.name, made[-1].data_type)
    results = [fields[place] for place in range(len(columns)) if place not in keys]
    groups = Aggregate(
        plan,
        tuple(plan.schema[place] for place in keys),
        tuple(columns[place] for place in keys),
        tuple(results),
        tuple(made),
    )
    in_order = tuple(fields[place] for place in range(len(columns)))
    return Project(groups, in_order, tuple(map(ColumnRef.of, in_order)))


def merged_with(
    context: BindContext,
    plan: LogicalPlan,
    known: LogicalPlan,
    keys: Sequence[int],
    calls: Mapping[int, exp.Anonymous],
) -> LogicalPlan:
    """Rows of keys, with what is known of their keys so far."""
    pairs = list(zip(map(ColumnRef.of, plan.schema), map(ColumnRef.of, known.schema), strict=True))
    same = [Call("is_not_distinct_from", pairs[place], BOOLEAN) for place in keys]
    joined = Join(plan, known, JoinType.LEFT, conjunction(tuple(same)))
    outputs = [
        _merged(lower_ascii(calls[place].name), new, old) if place in calls else new
        for place, (new, old) in enumerate(pairs)
    ]
    return Project(joined, tuple(map(context.renewed, plan.schema)), tuple(outputs))


def _merged(function: str, new: ColumnRef, old: ColumnRef) -> Expression:
    data_type: DataType = new.data_type
    if function in ("min", "max"):
        return Call("least" if function == "min" else "greatest", (new, old), data_type)
    if function == "count":
        before = Call("coalesce", (old, Literal(0, BIGINT)), data_type)
        return apply("add", (new, before), None, "count()")
    both = cast_to(apply("add", (new, old), None, "sum()"), data_type, None)
    return Call("coalesce", (both, new, old), data_type)
