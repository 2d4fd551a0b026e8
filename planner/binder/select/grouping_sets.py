"""GROUPING SETS, ROLLUP and CUBE: a union of aggregates, one for each set, over one shared input.

A key that a set lacks is NULL in its rows. So are keys of the data, which is why GROUPING() is a column of the union: a
constant of each set. A predicate on GROUPING() goes into each branch and drops it or nothing, so rules need to know of nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, combinations, product

from sqlglot import exp

from tqp.core.datatypes import INTEGER
from tqp.core.errors import UnsupportedError
from tqp.core.frozen import dataclass
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    transform,
    walk,
)
from tqp.planner.algebra.logical_plan import LogicalPlan, Project, Shared, UnionAll
from tqp.planner.algebra.subquery_expressions import Subquery
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.aggregates.aggregates import Grouping
from tqp.planner.binder.select.groups import grouped
from tqp.planner.parse import span_of, written_fields

#: What the keys of one set are: each once, in the order in which they are written.
GroupingSet = tuple[Expression, ...]
#: DuckDB takes 65,535. Each is an aggregate of the plan, and of the program.
_MOST_SETS = 4096


def bind_grouping_sets(group: exp.Group, bind_key: Callable[[exp.Expr], Expression]) -> list[GroupingSet]:
    """The sets of GROUP BY: of `a, ROLLUP (b, c)` these are (a, b, c), (a, b) and (a). Without such a word there is one.

    Raises UnsupportedError for too many.
    """
    elements = [_sets_of(node, bind_key) for node in group.expressions]
    count = 1
    for sets in elements:
        count *= len(sets)
    if count > _MOST_SETS:
        raise UnsupportedError(f"more than {_MOST_SETS} grouping sets are not supported", span_of(group))
    return [tuple(dict.fromkeys(chain(*parts))) for parts in product(*elements)]


@dataclass(frozen=True, slots=True)
class Element:
    """An element of GROUP BY, as it is written; `place`: of the item of SELECT that a number or an alias names."""

    text: str
    place: int | None = None


def keys_apart(keys: Mapping[Element, Expression]) -> dict[Element, Expression]:
    """The keys of elements in the order in which they are written, those that are equal told apart by casts to their own type.

    As DuckDB has them: `SELECT x, x GROUP BY GROUPING SETS ((1), (2))` has two, each NULL in the rows of the other's set. The last
    of equal ones is what expressions mean elsewhere. An item named once more in another way is a constant that nothing means.
    """
    first = named_first(keys)
    named = {
        element: key if element.place is None or first[element.place] == element else _NAMED_AGAIN
        for element, key in keys.items()
    }
    last = {key: element for element, key in named.items()}
    taken = set(last)
    found: dict[Element, Expression] = {}
    for element, key in named.items():
        if last[key] != element:
            while key in taken:
                key = Cast(key, key.data_type)
            taken.add(key)
        found[element] = key
    return found


def named_first(elements: Iterable[Element]) -> dict[int, Element]:
    """By the items that elements name, the first that does so."""
    found: dict[int, Element] = {}
    for element in elements:
        if element.place is not None:
            found.setdefault(element.place, element)
    return found


_NAMED_AGAIN = Cast(Literal(42, INTEGER), INTEGER)


def has_sets(group: exp.Group) -> bool:
    """Whether a word in GROUP BY stands for several sets."""
    return any(isinstance(node, exp.GroupingSets | exp.Rollup | exp.Cube) for node in group.expressions)


def _sets_of(node: exp.Expr, bind_key: Callable[[exp.Expr], Expression]) -> list[GroupingSet]:
    """The sets that one element of GROUP BY, or of GROUPING SETS, stands for."""
    if isinstance(node, exp.GroupingSets):
        return [found for part in node.expressions for found in _sets_of(part, bind_key)]
    if not isinstance(node, exp.Rollup | exp.Cube):
        return [_keys_of(node, bind_key)]
    parts = [_keys_of(part, bind_key) for part in node.expressions]
    sizes = range(len(parts), -1, -1)
    if isinstance(node, exp.Rollup):
        return [tuple(chain(*parts[:size])) for size in sizes]
    if 2 ** len(parts) > _MOST_SETS:
        raise UnsupportedError(f"more than {_MOST_SETS} grouping sets are not supported", span_of(node))
    return [tuple(chain(*chosen)) for size in sizes for chosen in combinations(parts, size)]


def _keys_of(node: exp.Expr, bind_key: Callable[[exp.Expr], Expression]) -> GroupingSet:
    """A key, or those of a row, which come and go together."""
    fields = written_fields(node)
    if fields is None:
        return (bind_key(node),)
    return tuple(chain.from_iterable(_keys_of(field, bind_key) for field in fields))


def aggregate_sets(
    context: BindContext,
    plan: LogicalPlan,
    sets: Sequence[GroupingSet],
    keys: Mapping[Expression, Field],
    calls: Mapping[AggregateCall, Field],
    groupings: Mapping[Grouping, Field],
) -> UnionAll:
    """The rows of every set in turn: `keys`, the results of `calls`, and of calls of GROUPING(), in these fields."""
    source, columns = _source(context, plan, [*keys, *_with_subqueries(calls)])
    identifier = context.new_shared()
    branches: list[LogicalPlan] = []
    for grouping_set in sets:
        shared = Shared(source, identifier, tuple(map(context.renewed, source.schema)))
        pairs = zip(source.schema, shared.fields, strict=True)
        renamed: dict[int, Expression] = {old.id: ColumnRef.of(new) for old, new in pairs}
        key_columns = {key: renamed[columns[key].id] for key in grouping_set}
        key_fields = [field for field in shared.fields if ColumnRef.of(field) in key_columns.values()]
        references = list(map(ColumnRef.of, key_fields))
        for place, field in enumerate(key_fields):
            if field.data_type.collation:  # the text that stands for a group is a column of its own
                key_fields[place] = context.renewed(field)
        values: dict[Expression, Expression] = dict(
            zip(references, map(ColumnRef.of, key_fields), strict=True)
        )
        made = [*map(context.renewed, calls.values())]
        aggregate = grouped(
            context, shared, key_fields, references, made, [_over(call, columns, renamed) for call in calls]
        )
        outputs: list[Expression] = [
            values[key_columns[key]] if key in key_columns else Literal(None, key.data_type) for key in keys
        ]
        outputs += map(ColumnRef.of, made)
        outputs += [
            Literal(grouping.number(grouping_set), field.data_type) for grouping, field in groupings.items()
        ]
        fields = [*keys.values(), *calls.values(), *groupings.values()]
        branches.append(Project(aggregate, tuple(map(context.renewed, fields)), tuple(outputs)))
    return UnionAll(tuple(branches), (*keys.values(), *calls.values(), *groupings.values()))


def _with_subqueries(calls: Mapping[AggregateCall, Field]) -> list[Expression]:
    """What aggregates take that holds a subquery, which is bound once, for one place."""
    parts = (part for call in calls for part in call.inputs)
    return [part for part in parts if any(isinstance(each, Subquery) for each in walk(part))]


def _source(
    context: BindContext, plan: LogicalPlan, values: Sequence[Expression]
) -> tuple[LogicalPlan, dict[Expression, ColumnRef]]:
    """The plan with a column for each of the values, and these columns.

    The projection also where it adds none: a CTE below may yet get columns, which these rows do not have.
    """
    own = {field.id for field in plan.schema}
    columns: dict[Expression, ColumnRef] = {}
    made: dict[Expression, Field] = {}
    for value in values:
        if isinstance(value, ColumnRef) and value.id in own:
            columns[value] = value
        elif value not in made:
            made[value] = context.new_field("key", value.data_type)
            columns[value] = ColumnRef.of(made[value])
    outputs = (*map(ColumnRef.of, plan.schema), *made)
    return Project(plan, (*plan.schema, *made.values()), outputs), columns


def _over(
    call: AggregateCall, columns: Mapping[Expression, ColumnRef], renamed: Mapping[int, Expression]
) -> AggregateCall:
    """The call over the columns of one reference to the source."""

    def in_reference(part: Expression) -> Expression:
        return renamed.get(part.id, part) if isinstance(part, ColumnRef) else part

    inputs = tuple(transform(columns.get(part, part), in_reference) for part in call.inputs)
    moved = call.with_inputs(inputs)
    assert isinstance(moved, AggregateCall)
    return moved
