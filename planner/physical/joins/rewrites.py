"""Joins written as other joins before they are planned."""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import BLOB, BOOLEAN
from tqp.planner.algebra.expressions import TRUE, Call, Expression, column_ids, conjunction, conjuncts
from tqp.planner.algebra.join_keys import JoinType
from tqp.planner.algebra.logical_plan import Join, LogicalPlan, Project
from tqp.planner.algebra.may_raise import raising_in
from tqp.planner.physical.joins.ranges import split_bounds
from tqp.planner.rules.columns import NewIds, reference


def key_left_condition(join: Join, new: NewIds) -> Join:
    """A LEFT or FULL JOIN without keys or ranges, some of whose conjuncts read the left side alone: these as a key, against a true column.

    So left rows that cannot match meet no right row.
    """
    if join.join_type not in (JoinType.LEFT, JoinType.FULL) or join.keys.left:
        return join
    others, own = _own_parts(join.condition, join.left)
    sides = join.left.field_facts, join.right.field_facts
    if not own or split_bounds(join.keys, JoinType.LEFT, *sides)[0]:
        return join
    always = new.new_field("true", BOOLEAN, nullable=False)
    fields = (*join.right.schema, always)
    right = Project(join.right, fields, (*map(reference, join.right.schema), TRUE))
    key = Call("equal", (conjunction(own), reference(always)), BOOLEAN)
    return replace(join, right=right, condition=conjunction((key, *others)))


def by_order_keys(join: Join) -> Join:
    """A join that asks whether a right row matches, its nested keys compared by the bytes that stand for them.

    These can be looked up, or grouped by. Hashes of the values would have to be compared with those of all right rows that share them.
    """
    keys = join.keys
    if keys.residual or not any(key.data_type.is_composed for key in keys.left):
        return join
    equalities = tuple(
        Call(
            "is_not_distinct_from" if null_equal else "equal",
            tuple(Call("order_key", (key,), BLOB) if key.data_type.is_composed else key for key in pair),
            BOOLEAN,
        )
        for *pair, null_equal in zip(keys.left, keys.right, keys.null_equal, strict=True)
    )
    return replace(join, condition=conjunction(equalities))


def _own_parts(
    condition: Expression, side: LogicalPlan
) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """The conjuncts, and apart from the others those that read this side alone and cannot raise for its rows."""
    parts = conjuncts(condition)
    own = [part for part in parts if column_ids(part) <= side.output_ids]
    raising = raising_in(own, side)
    own = [part for part in own if part not in raising]
    return tuple(part for part in parts if part not in own), tuple(own)
