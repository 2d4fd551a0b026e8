"""Predict for the rows that ORDER BY and LIMIT leave, where the order does not depend on it."""

from __future__ import annotations

from dataclasses import replace

from tqp.planner.algebra.expressions import ColumnRef, Expression, read_ids
from tqp.planner.algebra.logical_plan import Limit, LogicalPlan, Project, Sort
from tqp.planner.rules.columns import reference, substitute
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.models.predictions import has_prediction


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
    fields, outputs = [], []
    above: list[Expression] = []
    missing: dict[int, None] = {}
    for field, output in zip(project.fields, project.outputs, strict=True):
        if has_prediction(output) and field.id not in keys:
            above.append(output)
            missing.update(dict.fromkeys(sorted(read_ids(output))))
        else:
            above.append(reference(field))
            fields.append(field)
            outputs.append(output)
    if len(fields) == len(project.fields):
        return limit
    pairs = zip(fields, outputs, strict=True)
    passed: dict[int, Expression] = {
        output.id: reference(field) for field, output in pairs if isinstance(output, ColumnRef)
    }
    for field in project.input.schema:
        if field.id in missing and field.id not in passed:
            fields.append(field)
            outputs.append(reference(field))
    above = [substitute(output, passed) if has_prediction(output) else output for output in above]
    below = Project(project.input, tuple(fields), tuple(outputs))
    limited = replace(limit, input=replace(sort, input=below))
    return Project(limited, project.fields, tuple(above))
