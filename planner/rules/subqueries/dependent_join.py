"""Join a plan to one that reads its columns, without that dependency.

First by pulling the correlated predicates up into the join condition (`pull_up.py`): enough for most queries, and it
costs nothing. Projections that read outer columns go above the join, or above the left side alone where the right one has a row
for each left row (`row_by_row.py`). Otherwise by computing the right side for the distinct outer values, the domain (`domain.py`).
"""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import BOOLEAN
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import FALSE, TRUE, Call, ColumnRef, Expression, conjunction, conjuncts
from tqp.planner.algebra.join_keys import LEFT_ONLY, THREE_VALUED
from tqp.planner.algebra.logical_plan import (
    Filter,
    Join,
    JoinType,
    LogicalPlan,
    Project,
    Sort,
    Unnest,
    Values,
    as_nullable,
)
from tqp.planner.algebra.may_raise import raising_in
from tqp.planner.algebra.outcomes import null_if_padded, nullable
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.rules.columns import reference, renumber, substitute
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.nulls import conjoin, filtered, is_null, negate
from tqp.planner.rules.subqueries.outer_domain import over_domain
from tqp.planner.rules.subqueries.pull_up_predicates import PulledUp, is_equality_with, pull_up
from tqp.planner.rules.subqueries.row_by_row import (
    Beside,
    beside_one_row,
    both,
    extended,
    is_of_one_row,
    where,
    with_outputs,
)


def join_dependent(
    left: LogicalPlan,
    right: LogicalPlan,
    join_type: JoinType,
    condition: Expression,
    mark: Field | None,
    context: OptimizerContext,
) -> LogicalPlan:
    """`Join(left, right, join_type, condition, mark)` where `right` may read columns of `left`, as plain joins.

    The output has at least the columns of that join, in any order.
    """
    outer = left.output_ids
    if not right.free_ids & outer:
        if join_type is JoinType.SINGLE and condition == TRUE and right.max_rows > 1:
            # Whether it has one row is asked once: with that row, left rows meet it like any other join's
            right = Join(Values(((),), ()), right, JoinType.SINGLE, TRUE)
        return Join(left, right, _plain_type(join_type, right, condition), condition, mark)
    unnested = _beside_lists(left, right) if join_type is JoinType.INNER else None
    if unnested is not None:
        return filtered(unnested, conjuncts(condition))
    # LEFT_ONLY: what IN, ANY and ALL become
    may_raise = join_type in LEFT_ONLY and bool(raising_in(conjuncts(condition), left, right))
    if may_raise or not is_of_one_row(right):
        pulled = pull_up(right, outer, context)
        if (
            pulled is not None
            and pulled.empty_row is None
            and not (may_raise and _asks_first(pulled, join_type))
        ):
            return _joined(left, pulled, join_type, condition, mark)
    joined = None if may_raise else _row_by_row(left, right, join_type, condition, mark, context)
    if joined is None and join_type in (JoinType.INNER, JoinType.LEFT, JoinType.SINGLE):
        joined = _above_the_join(left, right, join_type, condition, context)
        if joined is not None and _compares_all_pairs(joined, left):
            joined = None  # there may be few different values among many left rows
    if joined is not None:
        return joined
    join_type = _plain_type(join_type, right, condition)
    left, right, matches = over_domain(left, right, outer, context)
    return Join(left, right, join_type, conjoin(matches, condition), mark)


def _asks_first(pulled: PulledUp, join_type: JoinType) -> bool:
    """Whether what is compared with the subquery's rows is computed only where there are such rows for some left row.

    DuckDB computes it for any inner row where the two sides meet by columns alone and rows without a match stay.
    """
    is_plain = all(
        isinstance(predicate, Call)
        and predicate.function == "equal"
        and all(isinstance(side, ColumnRef) for side in predicate.arguments)
        for predicate in pulled.predicates
    )
    return not is_plain or join_type is JoinType.SEMI


def _beside_lists(left: LogicalPlan, right: LogicalPlan) -> LogicalPlan | None:
    """The inner join with the elements of lists of the left rows: these rows, each once for each element; else None.

    Projections and filters of the elements stay above.
    """
    match right:
        case Unnest(input=Values(rows=((),))):
            return replace(right, input=left)
        case Filter():
            below = _beside_lists(left, right.input)
            return None if below is None else replace(right, input=below)
        case Project():
            below = _beside_lists(left, right.input)
            if below is None:
                return None
            pairs = zip(right.fields, right.outputs, strict=True)
            return extended(below, [pair for pair in pairs if pair[0].id not in below.output_ids])
        case Sort():
            return _beside_lists(left, right.input)
    return None


def _plain_type(join_type: JoinType, right: LogicalPlan, condition: Expression) -> JoinType:
    """The type of the join by how many rows the right side has for each left row."""
    if condition == TRUE and right.row_bounds == (1, 1) and join_type in (JoinType.SINGLE, JoinType.LEFT):
        return JoinType.INNER
    return JoinType.LEFT if join_type is JoinType.SINGLE and right.max_rows <= 1 else join_type


def _joined(
    left: LogicalPlan,
    pulled: PulledUp,
    join_type: JoinType,
    condition: Expression,
    mark: Field | None,
) -> LogicalPlan:
    """The join on the pulled-up predicates, as part of its condition."""
    right = pulled.plan
    predicates = pulled.predicates
    if join_type is JoinType.SINGLE and pulled.is_single_row:
        join_type = JoinType.LEFT
    if join_type in THREE_VALUED:
        # A row on which a predicate is NULL is no row of the subquery: it must not make the result unknown.
        fields = {**left.field_facts, **right.field_facts}
        outer, known = left.output_ids, []
        for predicate in predicates:
            sides = is_equality_with(predicate, outer)
            if not nullable(predicate, fields):
                known.append(predicate)
            elif sides is not None and isinstance(predicate, Call) and predicate.function == "equal":
                outer_side, inner_side = sides
                if nullable(inner_side, fields):
                    right = Filter(right, negate(is_null(inner_side)))
                known.append(Call("is_not_distinct_from", (outer_side, inner_side), BOOLEAN))
            else:
                known.append(Call("coalesce", (predicate, FALSE), BOOLEAN))
        predicates = tuple(known)
    return Join(left, right, join_type, conjunction((*predicates, *conjuncts(condition))), mark)


def _row_by_row(
    left: LogicalPlan,
    right: LogicalPlan,
    join_type: JoinType,
    condition: Expression,
    mark: Field | None,
    context: OptimizerContext,
) -> LogicalPlan | None:
    """The join by projections and filters over its left side; None where the right side may have many rows for a left one."""
    drops = join_type in (JoinType.INNER, JoinType.SEMI)
    beside = beside_one_row(Beside(left, TRUE), right, drops, context)
    if beside is None:
        return None
    matched = both(beside.present, condition)
    if matched != TRUE and join_type in (JoinType.LEFT, JoinType.SINGLE):
        return _padded(left, right, condition, context)
    return _on_single_row(beside.plan, join_type, matched, mark)


def _above_the_join(
    left: LogicalPlan,
    right: LogicalPlan,
    join_type: JoinType,
    condition: Expression,
    context: OptimizerContext,
) -> LogicalPlan | None:
    """The join with the right side's topmost projection above it; None where that reads no left column, or has to stay.

    What LEFT and SINGLE joins pad is NULL: an output that is not so by itself asks whether its row has a partner.
    """
    if isinstance(right, Sort):
        return _above_the_join(left, right.input, join_type, condition, context)
    if isinstance(right, Filter):
        condition = conjoin(right.condition, condition)
        return _above_the_join(left, right.input, join_type, condition, context)
    outer = left.output_ids
    if not isinstance(right, Project) or not any(read_ids(output) & outer for output in right.outputs):
        return None
    below = right.input
    outputs = {field.id: output for field, output in zip(right.fields, right.outputs, strict=True)}
    if join_type is JoinType.INNER:
        joined = join_dependent(left, below, JoinType.INNER, TRUE, None, context)
        joined = with_outputs(Beside(joined, TRUE), right.fields, right.outputs).plan
        return filtered(joined, conjuncts(condition))
    raising = set(map(id, raising_in(right.outputs, left, below)))
    if any(id(outputs[identifier]) in raising for identifier in read_ids(condition) & outputs.keys()):
        return None  # the condition would compute it for rows that have no partner
    passed = below.output_ids
    added = [
        pair
        for pair in zip(as_nullable(right.fields), right.outputs, strict=True)
        if pair[0].id not in passed
    ]
    guarded = {id(out) for _, out in added if id(out) in raising or not null_if_padded(out, passed)}
    if guarded:
        schema = below.schema
        present = context.new_field("present", BOOLEAN, nullable=False)
        below = Project(below, (*schema, present), (*map(reference, schema), TRUE))
        added = [
            (field, where(reference(present), out) if id(out) in guarded else out) for field, out in added
        ]
    joined = join_dependent(left, below, join_type, substitute(condition, outputs), None, context)
    return extended(joined, added)


def _compares_all_pairs(plan: LogicalPlan, left: LogicalPlan) -> bool:
    """Whether the join of `left` below projections and filters has conditions on pairs of rows, and no key by which they meet."""
    while not isinstance(plan, Join):
        if len(plan.inputs) != 1:
            return False
        (plan,) = plan.inputs
    outer = left.output_ids
    parts = [
        part
        for part in conjuncts(plan.condition)
        if read_ids(part) & outer and read_ids(part) & plan.right.output_ids
    ]
    return bool(parts) and not any(is_equality_with(part, outer) for part in parts)


def _padded(
    left: LogicalPlan, right: LogicalPlan, condition: Expression, context: OptimizerContext
) -> LogicalPlan:
    """A LEFT join with a right side of at most one row for each left row, NULLs where the condition is not true."""
    fields = right.schema
    inner = {field.id: context.renewed(field) for field in fields}
    right = renumber(right, {identifier: field.id for identifier, field in inner.items()})
    beside = beside_one_row(Beside(left, TRUE), right, False, context)
    assert beside is not None
    values = {identifier: reference(field) for identifier, field in inner.items()}
    matched = beside.present
    if condition != TRUE:
        matched = both(matched, substitute(condition, values))
    present = context.new_field("present", BOOLEAN)
    plan = extended(beside.plan, [(present, matched)])
    return extended(
        plan, [(field, where(reference(present), values[field.id])) for field in as_nullable(fields)]
    )


def _on_single_row(
    plan: LogicalPlan, join_type: JoinType, condition: Expression, mark: Field | None
) -> LogicalPlan:
    """The join's outcome, where its right side's only row already stands beside each left row."""
    match join_type:
        case JoinType.SEMI | JoinType.INNER:
            return plan if condition == TRUE else Filter(plan, condition)
        case JoinType.ANTI:
            return Filter(plan, negate(Call("coalesce", (condition, FALSE), BOOLEAN)))
        case JoinType.NULL_AWARE_ANTI:
            return Filter(plan, negate(condition))
        case JoinType.MARK:
            assert mark is not None
            fields = plan.schema
            return Project(plan, (*fields, mark), (*map(reference, fields), condition))
        case JoinType.LEFT | JoinType.SINGLE:  # the condition is true
            return plan
        case JoinType.RIGHT | JoinType.FULL:
            raise AssertionError("the right side of a RIGHT or FULL join reads no column of the left one")
