"""FULL joins written as other joins before they are planned."""

from __future__ import annotations

from tqp.planner.algebra.expressions import Expression, Literal
from tqp.planner.algebra.join_keys import JoinType
from tqp.planner.algebra.logical_plan import Join, LogicalPlan, Project, Shared, UnionAll, as_nullable
from tqp.planner.rules.columns import NewIds, reference, substitute


def expand_full_join(join: Join, new: NewIds) -> LogicalPlan:
    """left FULL JOIN right = (left LEFT JOIN right) UNION ALL (right ANTI left, the left columns NULL).

    Both inputs are shared, so each is computed once.
    """
    inputs, shared = (join.left, join.right), (new.new_shared(), new.new_shared())

    def readers() -> tuple[Shared, Shared, Expression]:
        left, right = (
            Shared(plan, identifier, tuple(map(new.renewed, plan.schema)))
            for plan, identifier in zip(inputs, shared, strict=True)
        )
        pairs = zip(join.left.schema + join.right.schema, left.fields + right.fields, strict=True)
        return left, right, substitute(join.condition, {old.id: reference(field) for old, field in pairs})

    left, right, condition = readers()
    matched = Join(left, right, JoinType.LEFT, condition)
    left, right, condition = readers()
    unmatched = Join(right, left, JoinType.ANTI, condition)
    padding = tuple(map(new.renewed, as_nullable(join.left.schema)))
    outputs = (*(Literal(None, field.data_type) for field in padding), *map(reference, right.fields))
    padded = Project(unmatched, padding + right.fields, outputs)
    return UnionAll((matched, padded), as_nullable(join.left.schema + join.right.schema))
