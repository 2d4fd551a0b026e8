"""A region of inner joins taken apart: its relations, its conjuncts, and which columns are equal in every row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tqp.core.frozen import dataclass
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, conjunction, conjuncts
from tqp.planner.algebra.logical_plan import Filter, Join, JoinType, LogicalPlan
from tqp.planner.algebra.may_raise import may_raise, raising_in
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.functions.conditions import EQUALITIES
from tqp.planner.rules.columns import is_pass_through
from tqp.planner.rules.nulls import filtered


@dataclass(frozen=True, slots=True)
class JoinRegion:
    """The rows of the cross product of `relations` (in their original order) on which all `parts` are true."""

    relations: tuple[LogicalPlan, ...]
    parts: tuple[Expression, ...]


def flatten(plan: LogicalPlan, parts: Iterable[Expression] = ()) -> JoinRegion:
    """The inner joins at the top of a plan, through filters and projects that only drop columns.

    The parts that may raise come last: those of a subquery's filter before those of the filter above it, and of these the
    parts of several relations after those of one, whatever the order in which they are written. Otherwise they keep their
    order: those of a join before those of the filter above it, which asks for rows that passed.
    """
    relations: list[LogicalPlan] = []
    parts = tuple(parts)
    from_above, from_below = list(parts), dict[Expression, int]()
    _collect(plan, relations, from_above, from_below, 0)
    raising = {part: from_below.get(part, 0) for part in (*from_below, *parts) if may_raise(part, {})}
    harmless = dict.fromkeys(part for part in from_above if part not in raising)
    in_turn = sorted(raising, key=lambda part: (-raising[part], not reads_one(part, relations)))
    return JoinRegion(tuple(relations), (*harmless, *in_turn))


def reads_one(part: Expression, relations: Iterable[LogicalPlan]) -> bool:
    """Does one of the relations have all that the part reads?"""
    return any(read_ids(part) <= relation.output_ids for relation in relations)


def filtered_in_turn(
    plan: LogicalPlan, parts: Sequence[Expression], relations: Sequence[LogicalPlan]
) -> LogicalPlan:
    """The rows of joined relations on which all parts are true, asked in this order: by several filters if need be."""
    turn: list[Expression] = []
    for part in parts:
        if turn and reads_one(part, relations) and not reads_one(turn[-1], relations):
            plan, turn = filtered(plan, tuple(turn)), []
        turn.append(part)
    return filtered(plan, tuple(turn))


def _collect(
    plan: LogicalPlan,
    relations: list[LogicalPlan],
    from_above: list[Expression],
    from_below: dict[Expression, int],
    depth: int,
) -> None:
    """What a plan joins, and its conditions: those above before those below; and those below first, each with how many
    filters it is in or under.
    """
    if (
        isinstance(plan, Join)
        and plan.join_type is JoinType.INNER
        or isinstance(plan, Filter)
        and leads_to_join(plan.input)
    ):
        parts, below = conjuncts(plan.condition), plan.inputs
    elif is_pass_through(plan) and leads_to_join(plan.inputs[0]):
        parts, below = (), plan.inputs
    else:
        relations.append(plan)
        return
    depth += isinstance(plan, Filter)
    from_above.extend(parts)
    for child in below:
        _collect(child, relations, from_above, from_below, depth)
    from_below.update(dict.fromkeys((part for part in parts if part not in from_below), depth))


def held_back(region: JoinRegion) -> tuple[Expression, ...]:
    """The parts that wait until all relations are joined: they may raise for a row that another part, or a join, drops.

    Equalities of two relations do not wait: they are what makes a join of a cross product. Nor do parts that shield a
    key of one, which is computed for the rows of a relation: those that read this relation alone.
    """
    if len(region.relations) < 2:
        return ()
    ids = [relation.output_ids for relation in region.relations]

    def joins(part: Expression) -> bool:
        reads = [read_ids(side) for side in part.inputs]
        is_equality = isinstance(part, Call) and part.function in EQUALITIES
        return (
            is_equality
            and all(any(side and side <= available for available in ids) for side in reads)
            and not any(set().union(*reads) <= available for available in ids)
        )

    raising = raising_in(region.parts, *region.relations)
    keys = [part for part in raising if joins(part)]
    sides = [
        read_ids(side)
        for side in raising_in((side for key in keys for side in key.inputs), *region.relations)
    ]

    def shields(part: Expression) -> bool:
        reads = read_ids(part)
        return any(reads and reads | side <= available for available in ids for side in sides)

    return tuple(part for part in raising if part not in keys and not shields(part))


def leads_to_join(plan: LogicalPlan) -> bool:
    """Is the plan an inner join, or filters and projects that only drop columns above one?"""
    while isinstance(plan, Filter) or is_pass_through(plan):
        plan = plan.inputs[0]
    return isinstance(plan, Join) and plan.join_type is JoinType.INNER


def column_equality(part: Expression) -> tuple[ColumnRef, ColumnRef] | None:
    """The two columns of `a = b`."""
    if isinstance(part, Call) and part.function == "equal":
        first, second = part.arguments
        if isinstance(first, ColumnRef) and isinstance(second, ColumnRef) and first.id != second.id:
            return first, second
    return None


def equivalence_classes(parts: Iterable[Expression]) -> list[dict[int, ColumnRef]]:
    """Columns that equalities among the parts make equal (and not NULL), as classes of two or more."""
    classes: list[dict[int, ColumnRef]] = []
    for part in parts:
        pair = column_equality(part)
        if pair is None:
            continue
        merged = {column.id: column for column in pair}
        rest = []
        for known in classes:
            if known.keys() & merged.keys():
                merged = {**known, **merged}
            else:
                rest.append(known)
        classes = [*rest, merged]
    return classes


def connected_order(relations: Sequence[LogicalPlan], parts: Sequence[Expression]) -> LogicalPlan:
    """Join the relations left-deep in their order, but a connected one before one that makes a cross product.

    Every part stands at the lowest join that has its columns.
    """
    ids = [relation.output_ids for relation in relations]
    reads = [(part, read_ids(part)) for part in parts]
    waiting = list(range(1, len(relations)))
    plan, available = relations[0], set(ids[0])
    while waiting:
        chosen = next((i for i in waiting if _connects(reads, available, ids[i])), waiting[0])
        waiting.remove(chosen)
        available |= ids[chosen]
        here = tuple(part for part, needed in reads if needed <= available)
        reads = [(part, needed) for part, needed in reads if not needed <= available]
        plan = Join(plan, relations[chosen], JoinType.INNER, conjunction(here))
    return filtered(plan, tuple(part for part, _ in reads))


def _connects(
    reads: list[tuple[Expression, frozenset[int]]], available: set[int], ids: frozenset[int]
) -> bool:
    return any(
        isinstance(part, Call)
        and part.function == "equal"
        and needed & available
        and needed & ids
        and needed <= available | ids
        for part, needed in reads
    )


def with_condition(join: Join, parts: Iterable[Expression]) -> Join:
    """The join on other conjuncts; the same object if they are the same."""
    condition = conjunction(tuple(dict.fromkeys(parts)))
    return join if condition == join.condition else replace(join, condition=condition)


def condition_may_raise(join: Join) -> bool:
    """Can the condition of the join fail for a pair of rows?"""
    return bool(raising_in((join.condition,), join.left, join.right))
