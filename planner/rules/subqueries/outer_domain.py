"""Compute a correlated plan once for every distinct value of its outer columns (their domain), without dependency.

The general case of unnesting: `over_domain` gives the correlated plan extra columns that say for which outer values a
row was made; each node passes them on, so the outer query joins on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field

from tqp.core.datatypes import BIGINT, BOOLEAN
from tqp.core.errors import UnsupportedError
from tqp.core.schema import NO_ESTIMATES, NO_FACTS, Field, Schema
from tqp.planner.algebra.expressions import TRUE, Call, Expression, Literal, conjunction
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Recursive,
    Shared,
    Sort,
    UnionAll,
    Unnest,
    Window,
    WorkingRows,
)
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.rules.columns import numbered, reference, restore_schema, shared_twice, substitute
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.nulls import conjoin
from tqp.planner.rules.subqueries.first_row import first_row
from tqp.planner.rules.subqueries.pull_up_predicates import PulledUp, row_of_nothing, with_single_row

#: Outer column id -> the field that holds its value beside the rows computed for it.
Binding = Mapping[int, Field]


def over_domain(
    left: LogicalPlan, right: LogicalPlan, outer: frozenset[int], context: OptimizerContext
) -> tuple[LogicalPlan, LogicalPlan, Expression]:
    """The left plan (now shared with the domain), the right plan for all outer values, and the condition that pairs them."""
    shared_left, source = shared_twice(left, context)
    used = right.free_ids & outer
    pairs = [
        pair for pair in zip(left.facts_in_order, source.facts_in_order, strict=True) if pair[0].id in used
    ]
    columns = tuple(column for column, _ in pairs)
    keys = tuple(replace(field, facts=NO_FACTS, estimates=NO_ESTIMATES) for _, field in pairs)
    distinct = Aggregate(source, keys, tuple(map(reference, keys)), (), ())
    domain = Domain(distinct, columns, context.new_shared(), context)
    computed, binding = domain.apply(right)
    matches = tuple(_same(column, binding[column.id]) for column in columns)
    return shared_left, computed, conjunction(matches)


def _same(a: Field, b: Field) -> Expression:
    """Equal, NULLs too; a plain comparison where neither can be NULL."""
    function = "is_not_distinct_from" if a.nullable or b.nullable else "equal"
    return Call(function, (reference(a), reference(b)), BOOLEAN)


@dataclass(frozen=True, slots=True)
class Domain:
    """The distinct outer values: `plan` puts out one column for each of `columns`."""

    plan: LogicalPlan
    columns: Schema
    identifier: int
    context: OptimizerContext
    shared: dict[int, tuple[LogicalPlan, Binding, int]] = dataclass_field(default_factory=dict)
    recursions: set[int] = dataclass_field(
        default_factory=set
    )  # those whose rows have the columns of the domain

    def instance(self) -> tuple[LogicalPlan, Binding]:
        """The domain once more, under new ids."""
        fields = tuple(map(self.context.renewed, self.plan.schema))
        binding = {column.id: field for column, field in zip(self.columns, fields, strict=True)}
        return Shared(self.plan, self.identifier, fields), binding

    def depends(self, plan: LogicalPlan) -> bool:
        if not plan.free_ids.isdisjoint(column.id for column in self.columns):
            return True
        nodes = walk_plan(plan) if self.recursions else ()
        return any(isinstance(node, WorkingRows) and node.identifier in self.recursions for node in nodes)

    def apply(self, plan: LogicalPlan) -> tuple[LogicalPlan, Binding]:
        """For every row of the domain the rows of the plan, beside it."""
        if not self.depends(plan):
            values, binding = self.instance()
            return Join(values, plan, JoinType.INNER, TRUE), binding
        match plan:
            case Filter():
                below, binding = self.apply(plan.input)
                return Filter(below, bind(plan.condition, binding)), binding
            case Sort():
                return self.apply(plan.input)  # the order of a subquery's rows without LIMIT means nothing
            case Project():
                return self._project(plan)
            case Aggregate():
                return self._aggregate(plan)
            case Unnest():
                below, binding = self.apply(plan.input)
                changed = plan.map_expressions(lambda expression: bind(expression, binding))
                return replace(changed, input=below), binding
            case Window():
                return self._window(plan)
            case Join():
                return self._join(plan)
            case UnionAll():
                return self._union(plan)
            case Shared():
                return self._shared(plan)
            case Recursive():
                return self._recursive(plan)
            case WorkingRows():
                if plan.is_whole:  # of outer values whose recursion has ended, too
                    raise UnsupportedError(
                        "a recursion that reads all of its rows (recurring.), and columns of an outer query, is not supported"
                    )
                fields = {column.id: self.context.renewed(column) for column in self.columns}
                return replace(plan, fields=(*plan.fields, *fields.values())), fields
            case Limit():
                return self._limit(plan)
            case _:
                raise UnsupportedError(
                    f"a {type(plan).__name__} that reads columns of an outer query is not supported; move them out of it"
                )

    def _limit(self, plan: Limit) -> tuple[LogicalPlan, Binding]:
        sort = plan.input
        keys = sort.keys if isinstance(sort, Sort) else ()
        rows, binding = self.apply(sort.input if isinstance(sort, Sort) else sort)
        bound = [replace(key, expression=bind(key.expression, binding)) for key in keys]
        group = tuple(binding[column.id] for column in self.columns)
        if plan.limit == 1 and not plan.offset:
            return first_row(rows, group, bound, plan.schema, self.context), binding
        window, number = numbered(rows, self.context, group, bound)
        conditions: list[Expression] = [Call("greater", (number, Literal(plan.offset, BIGINT)), BOOLEAN)]
        if plan.limit is not None:
            last = Literal(plan.offset + plan.limit, BIGINT)
            conditions.append(Call("less_equal", (number, last), BOOLEAN))
        return Filter(window, conjunction(tuple(conditions[not plan.offset :]))), binding

    def _project(self, plan: Project) -> tuple[LogicalPlan, Binding]:
        below, binding = self.apply(plan.input)
        outputs = tuple(bind(output, binding) for output in plan.outputs)
        extra = tuple(binding[column.id] for column in self.columns)
        return Project(below, plan.fields + extra, outputs + tuple(map(reference, extra))), binding

    def _aggregate(self, plan: Aggregate) -> tuple[LogicalPlan, Binding]:
        below, binding = self.apply(plan.input)
        extra = tuple(binding[column.id] for column in self.columns)
        grouped = replace(
            plan,
            input=below,
            key_fields=plan.key_fields + extra,
            keys=tuple(bind(key, binding) for key in plan.keys) + tuple(map(reference, extra)),
            aggregates=tuple(bind(call, binding) for call in plan.aggregates),  # type: ignore[misc]
        )
        if plan.keys:
            return grouped, binding
        return self._with_empty_groups(grouped, plan, binding)

    def _window(self, plan: Window) -> tuple[LogicalPlan, Binding]:
        """The rows for each outer value are partitions of their own."""
        below, binding = self.apply(plan.input)
        extra = tuple(reference(binding[column.id]) for column in self.columns)
        changed = plan.map_expressions(lambda expression: bind(expression, binding))
        return replace(changed, input=below, partition=changed.partition + extra), binding

    def _with_empty_groups(
        self, grouped: Aggregate, plan: Aggregate, binding: Binding
    ) -> tuple[LogicalPlan, Binding]:
        """Without GROUP BY there is a row for no input too."""
        values, outer_binding = self.instance()
        matches = tuple(_same(outer_binding[column.id], binding[column.id]) for column in self.columns)
        rows = PulledUp(grouped, matches, row_of_nothing(plan))
        return with_single_row(values, rows, self.context), outer_binding

    def _join(self, plan: Join) -> tuple[LogicalPlan, Binding]:
        on_left, on_right = self.depends(plan.left), self.depends(plan.right)
        if plan.join_type is JoinType.INNER and on_right and not on_left:
            right, binding = self.apply(plan.right)
            return replace(
                plan, left=plan.left, right=right, condition=bind(plan.condition, binding)
            ), binding
        left, binding = self.apply(plan.left)
        if not on_right and plan.join_type is not JoinType.FULL:
            return replace(plan, left=left, condition=bind(plan.condition, binding)), binding
        right, right_binding = self.apply(plan.right)
        matches = tuple(_same(binding[column.id], right_binding[column.id]) for column in self.columns)
        condition = conjoin(*matches, bind(plan.condition, binding))
        joined = replace(plan, left=left, right=right, condition=condition)
        if plan.join_type is not JoinType.FULL:
            return joined, binding
        return self._merged(joined, binding, right_binding)

    def _merged(self, joined: Join, left: Binding, right: Binding) -> tuple[LogicalPlan, Binding]:
        """After a FULL join either side's outer values may be padding; the other's hold then."""
        merged, outputs = {}, []
        for column in self.columns:
            merged[column.id] = self.context.new_field(column.name, column.data_type)
            sides = (reference(left[column.id]), reference(right[column.id]))
            outputs.append(Call("coalesce", sides, column.data_type))
        fields = joined.schema
        projected = Project(joined, (*fields, *merged.values()), (*map(reference, fields), *outputs))
        return projected, merged

    def _shared(self, plan: Shared) -> tuple[LogicalPlan, Binding]:
        """The shared plan, computed once for the whole domain too."""
        known = self.shared.get(plan.identifier)
        if known is None:
            computed, inner = self.apply(plan.input)
            extra = tuple(inner[column.id] for column in self.columns)
            computed = restore_schema(computed, plan.input.schema + extra)
            known = self.shared[plan.identifier] = (computed, inner, self.context.new_shared())
        computed, inner, identifier = known
        fields = {column.id: self.context.renewed(inner[column.id]) for column in self.columns}
        return Shared(computed, identifier, (*plan.fields, *fields.values())), fields

    def _recursive(self, plan: Recursive) -> tuple[LogicalPlan, Binding]:
        """The rows of each iteration stand beside the outer values that they are for."""
        parts = []
        for part in plan.inputs:
            computed, binding = self.apply(part)
            extra = tuple(binding[column.id] for column in self.columns)
            parts.append(restore_schema(computed, part.schema + extra))
            self.recursions.add(plan.identifier)
        fields = {column.id: self.context.new_field(column.name, column.data_type) for column in self.columns}
        first, step = parts
        keys = plan.keys
        if keys is not None:
            width = len(plan.fields)
            keys = (*keys, *range(width, width + len(fields)))
        every = (*plan.fields, *fields.values())
        return replace(plan, first=first, step=step, fields=every, keys=keys), fields

    def _union(self, plan: UnionAll) -> tuple[LogicalPlan, Binding]:
        branches = []
        for branch in plan.branches:
            computed, binding = self.apply(branch)
            by_id = {field.id: field for field in computed.schema}
            fields = [by_id[field.id] for field in branch.schema]
            fields += [binding[column.id] for column in self.columns]
            branches.append(Project(computed, tuple(fields), tuple(map(reference, fields))))
        merged = {column.id: self.context.new_field(column.name, column.data_type) for column in self.columns}
        return UnionAll(tuple(branches), (*plan.fields, *merged.values())), merged


def bind(expression: Expression, binding: Binding) -> Expression:
    """The expression with outer columns read from the binding."""
    if read_ids(expression).isdisjoint(binding):
        return expression
    return substitute(expression, {identifier: reference(field) for identifier, field in binding.items()})
