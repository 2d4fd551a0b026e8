"""Order inner joins by estimated cost, and place semi and anti joins below or above them, left joins above."""

from __future__ import annotations

from dataclasses import replace

from tqp.planner.algebra.expressions import Expression
from tqp.planner.algebra.logical_plan import Join, JoinType, LogicalPlan
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.rules.columns import is_pass_through, substitute
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.joins.graph import JoinGraph
from tqp.planner.rules.joins.region import (
    condition_may_raise,
    equivalence_classes,
    filtered_in_turn,
    flatten,
    held_back,
    leads_to_join,
)
from tqp.planner.rules.joins.search import best_tree

_REDUCING = (JoinType.SEMI, JoinType.ANTI)


def reorder_joins(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Choose the order and the build sides of every region of inner joins.

    The `right` side of each join is the one to build: the smaller by estimate. A SEMI or ANTI join above a region is
    tried below it, on the relation that it reads, and stays there if that is cheaper; a LEFT join below one, whose right side
    no inner join reads, is tried above it.
    """
    if leads_to_join(plan):
        return _reorder_region(plan, (), context)
    if isinstance(plan, Join) and plan.join_type in _REDUCING:
        reducing, base = _reducing_joins(plan)
        if leads_to_join(base):
            done = [replace(join, right=reorder_joins(join.right, context)) for join in reducing]
            return _reorder_region(base, tuple(done), context)
    return context.rewrite_inputs(plan, lambda child: reorder_joins(child, context))


def _reducing_joins(plan: LogicalPlan) -> tuple[list[Join], LogicalPlan]:
    """The SEMI and ANTI joins at the top of a plan, outermost first, and what they stand on."""
    joins = []
    while (isinstance(plan, Join) and plan.join_type in _REDUCING) or is_pass_through(plan):
        if isinstance(plan, Join):
            joins.append(plan)
        plan = plan.inputs[0]
    return joins, plan


def _reorder_region(plan: LogicalPlan, reducing: tuple[Join, ...], context: OptimizerContext) -> LogicalPlan:
    region = flatten(plan)
    relations = [reorder_joins(relation, context) for relation in region.relations]
    above_all = held_back(region)
    above_all += tuple(part for part in region.parts if not read_ids(part) and part not in above_all)
    parts = tuple(part for part in region.parts if part not in above_all) if above_all else region.parts
    graph = JoinGraph(relations, parts, context.estimator, context.uses_indexes)
    tree = best_tree(graph)
    late: list[Join] = []
    for index in range(len(relations)):
        while (outer := _late_outer_join(relations[index], parts)) is not None:
            changed = [*relations[:index], outer.left, *relations[index + 1 :]]
            other = JoinGraph(changed, parts, context.estimator, context.uses_indexes)
            late_tree = best_tree(other)
            if late_tree.cost + late_tree.rows >= tree.cost + context.estimator.rows(outer.left):
                break
            relations[index], graph, tree = outer.left, other, late_tree
            late.append(outer)
    above: list[Join] = []
    for join in reversed(reducing):  # innermost first
        # the condition might fail on a row that another join drops
        placed = None if condition_may_raise(join) else _pushed(join, relations, parts)
        if placed is not None:
            index, below = placed
            changed = [*relations[:index], below, *relations[index + 1 :]]
            other = JoinGraph(changed, parts, context.estimator, context.uses_indexes)
            pushed_tree = best_tree(other)
            if pushed_tree.cost + context.estimator.rows(relations[index]) < tree.cost + tree.rows:
                relations[index], graph, tree = below, other, pushed_tree
                continue
        above.append(join)
    result = graph.plan(tree)
    for join in (*reversed(late), *above):
        result = replace(join, left=result)
    return filtered_in_turn(result, above_all, region.relations)


def _late_outer_join(relation: LogicalPlan, parts: tuple[Expression, ...]) -> Join | None:
    """The LEFT join that a relation is, if it may be made after the inner joins: none of them reads its right side."""
    while is_pass_through(relation):
        relation = relation.inputs[0]
    if not isinstance(relation, Join) or relation.join_type is not JoinType.LEFT:
        return None
    right = relation.right.output_ids
    return None if any(read_ids(part) & right for part in parts) else relation


def _pushed(
    join: Join, relations: list[LogicalPlan], parts: tuple[Expression, ...]
) -> tuple[int, LogicalPlan] | None:
    """The join on one relation instead of on all: on the one whose columns (or equal ones) its condition reads."""
    right_ids = join.right.output_ids
    reads = read_ids(join.condition) - right_ids
    if not reads:
        return None
    classes = equivalence_classes(parts)
    for index, relation in enumerate(relations):
        available = relation.output_ids
        mapping: dict[int, Expression] = {}
        for identifier in reads - available:
            equal = next(
                (
                    column
                    for known in classes
                    if identifier in known
                    for column in known.values()
                    if column.id in available
                ),
                None,
            )
            if equal is None:
                break
            mapping[identifier] = equal
        else:
            condition = substitute(join.condition, mapping) if mapping else join.condition
            return index, Join(relation, join.right, join.join_type, condition)
    return None
