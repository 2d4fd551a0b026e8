"""Joins written as other joins before they are planned: FULL, and semi joins whose build side the probe side reduces."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef, Expression, Literal, transform
from tqp.planner.algebra.join_keys import JoinType
from tqp.planner.algebra.logical_plan import Join, LogicalPlan, Project, Shared, UnionAll, as_nullable


class FreshIds:
    """Hands out column ids and Shared identifiers that the query does not use yet."""

    def __init__(self, next_id: int, next_shared: int) -> None:
        self._next_id = next_id
        self._next_shared = next_shared

    def field(self, field: Field) -> Field:
        """The field under a new id."""
        self._next_id += 1
        return replace(field, id=self._next_id - 1)

    def shared(self) -> int:
        self._next_shared += 1
        return self._next_shared - 1


def expand_full_join(join: Join, fresh: FreshIds) -> LogicalPlan:
    """left FULL JOIN right = (left LEFT JOIN right) UNION ALL (right ANTI left, the left columns NULL).

    Both inputs are shared, so each is computed once.
    """
    left, right = join.left, join.right
    left_shared, right_shared = fresh.shared(), fresh.shared()

    def copy() -> tuple[Shared, Shared, Expression]:
        left_fields = tuple(fresh.field(field) for field in left.schema)
        right_fields = tuple(fresh.field(field) for field in right.schema)
        renamed = {
            old.id: new
            for old, new in zip(left.schema + right.schema, left_fields + right_fields, strict=True)
        }
        condition = transform(
            join.condition,
            lambda node: (
                ColumnRef(renamed[node.id].id, node.data_type, node.name)
                if isinstance(node, ColumnRef) and node.id in renamed
                else node
            ),
        )
        return Shared(left, left_shared, left_fields), Shared(right, right_shared, right_fields), condition

    first_left, first_right, first_condition = copy()
    matched = Join(first_left, first_right, JoinType.LEFT, first_condition)
    second_left, second_right, second_condition = copy()
    unmatched = Join(second_right, second_left, JoinType.ANTI, second_condition)
    padding = tuple(fresh.field(field) for field in as_nullable(left.schema))
    padded = Project(
        unmatched,
        padding + second_right.fields,
        (
            *(Literal(None, field.data_type) for field in padding),
            *(ColumnRef(field.id, field.data_type, field.name) for field in second_right.fields),
        ),
    )
    return UnionAll((matched, padded), as_nullable(left.schema + right.schema))
