"""Predict for the rows that ORDER BY and LIMIT leave, where the order does not depend on it."""

from __future__ import annotations

from dataclasses import replace

from tqp.planner.algebra.expressions import ColumnRef, has_prediction
from tqp.planner.algebra.logical_plan import Limit, LogicalPlan, Project, Sort
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.rules.columns import reference, substitute
from tqp.planner.rules.context import OptimizerContext


def predict_after_limit(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """SELECT id, m(x) FROM t ORDER BY y LIMIT 5 scores five rows: columns that call a model move above the sort."""

    def move(node: LogicalPlan) -> LogicalPlan:
        if isinstance(node, Limit) and node.limit is not None:
            sort = node.input
            if isinstance(sort, Sort) and isinstance(sort.input, Project):
                return _moved(node, sort, sort.input)
        return node

    return context.rewrite(plan, move)


def _moved(limit: Limit, sort: Sort, project: Project) -> LogicalPlan:
    keys = set[int]().union(*(read_ids(key.expression) for key in sort.keys))
    pairs = [*zip(project.fields, project.outputs, strict=True)]
    later = {field.id for field, output in pairs if has_prediction(output) and field.id not in keys}
    if not later:
        return limit
    kept = [(field, output) for field, output in pairs if field.id not in later]
    passed = {output.id: reference(field) for field, output in kept if isinstance(output, ColumnRef)}
    # Those that no prediction reads are pruned.
    kept += [(field, reference(field)) for field in project.input.schema if field.id not in passed]
    above = (substitute(output, passed) if field.id in later else reference(field) for field, output in pairs)
    below = Project(project.input, *zip(*kept, strict=True))
    return Project(replace(limit, input=replace(sort, input=below)), project.fields, tuple(above))
