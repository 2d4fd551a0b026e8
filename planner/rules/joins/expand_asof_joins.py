"""ASOF joins by one sort of both sides: where rows lie by value, the last right row before a left one is the nearest.

For those that cannot be searched for by one word (`planner/physical/joins/nearest.py`).
"""

from __future__ import annotations

from tqp.core.datatypes import BIGINT, BOOLEAN
from tqp.core.schema import Schema
from tqp.planner.algebra.expressions import Call, Expression, Literal, SortKey
from tqp.planner.algebra.join_keys import is_word
from tqp.planner.algebra.logical_plan import (
    AsofJoin,
    Filter,
    Join,
    JoinType,
    LogicalPlan,
    Project,
    UnionAll,
    Window,
)
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.window_calls import BoundKind, FrameBound, FrameMode, WindowCall, WindowFrame
from tqp.planner.rules.columns import (
    NewIds,
    in_subqueries,
    numbered,
    reference,
    restore_schema,
    shared_twice,
    substitute,
)
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.nulls import conjoin, is_null, negate

_BEFORE = WindowFrame(
    FrameMode.ROWS, FrameBound(BoundKind.UNBOUNDED_PRECEDING), FrameBound(BoundKind.CURRENT_ROW)
)


def expand_asof_joins(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Those by values that are no words, and those with subqueries, or in correlated ones, which are unnested in other joins."""
    if AsofJoin not in map(type, walk_plan(plan, into_subqueries=True)):
        return plan

    def visit(node: LogicalPlan) -> LogicalPlan:
        node = in_subqueries(context.rewrite_inputs(node, visit), visit)
        if not isinstance(node, AsofJoin) or (is_word(node.left_value.data_type) and not _is_nested(node)):
            return node
        return expanded(node, context)

    return visit(plan)


def _is_nested(join: AsofJoin) -> bool:
    return bool(join.free_ids or join.subqueries)


def expanded(join: AsofJoin, context: NewIds) -> LogicalPlan:
    """Joins by the numbers of rows, where a window over the rows of both sides finds each left row the right one."""
    (left_rows, left_number), (right_rows, right_number) = (
        numbered(side, context) for side in (join.left, join.right)
    )
    left, left_again = shared_twice(left_rows, context)
    right, right_again = shared_twice(right_rows, context)
    renamed: dict[int, Expression] = {
        old.id: reference(new)
        for one, other in ((left, left_again), (right, right_again))
        for old, new in zip(one.fields, other.fields, strict=True)
    }
    keys = [*join.left_keys, join.left_value]
    fields = tuple(context.new_field("key", key.data_type) for key in keys)
    side, of_left, of_right = (context.new_field(name, BIGINT) for name in ("side", "left", "right"))
    nothing = Literal(None, BIGINT)
    # of rows with one value, a right row that matches lies before the left ones, any other behind
    first_sides = (0, 1) if join.is_strict else (1, 0)
    branches = []
    for rows, values, numbers, place in (
        (left_again, keys, (renamed[left_number.id], nothing), first_sides[0]),
        (
            right_again,
            [*join.right_keys, join.right_value],
            (nothing, renamed[right_number.id]),
            first_sides[1],
        ),
    ):
        outputs = tuple(substitute(value, renamed) for value in values)
        known = Filter(rows, conjoin(*(negate(is_null(value)) for value in outputs)))
        branches.append(_branch(known, (*outputs, Literal(place, BIGINT), *numbers), context))
    union = UnionAll(tuple(branches), (*fields, side, of_left, of_right))
    order = (
        SortKey(reference(fields[-1]), descending=join.from_above),
        SortKey(reference(side)),
        SortKey(reference(of_right), descending=True),  # of right rows with one value, the first is the last
    )
    nearest = context.new_field("nearest", BIGINT)
    call = WindowCall("last_value", (reference(of_right),), BIGINT, _BEFORE, ignore_nulls=True)
    window = Window(union, tuple(map(reference, fields[:-1])), order, (nearest,), (call,))
    found = Filter(window, conjoin(negate(is_null(reference(of_left))), negate(is_null(reference(nearest)))))
    of_pair = Call("equal", (right_number, reference(nearest)), BOOLEAN)
    pairs = Join(right, found, JoinType.LEFT if join.keeps_right else JoinType.INNER, of_pair)
    of_row = Call("equal", (left_number, reference(of_left)), BOOLEAN)
    if join.join_type is JoinType.RIGHT:
        joined = Join(pairs, left, JoinType.LEFT, of_row)
    else:
        joined = Join(left, pairs, join.join_type, of_row)
    return restore_schema(joined, join.schema)


def _branch(rows: LogicalPlan, outputs: tuple[Expression, ...], context: NewIds) -> Project:
    fields: Schema = tuple(context.new_field("key", output.data_type) for output in outputs)
    return Project(rows, fields, outputs)
