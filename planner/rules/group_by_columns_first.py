"""Group by the columns that the keys are computed of, and the few groups of that by the keys."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tqp.core.datatypes import BIGINT
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import Call, Cast, ColumnRef, Expression, Literal, column_ids, walk
from tqp.planner.algebra.field_facts import fit_table
from tqp.planner.algebra.granularity import number_of_unit, start_of_unit, ticks_read
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import Aggregate, LogicalPlan
from tqp.planner.algebra.value_ranges import is_finite
from tqp.planner.functions.declaration import Work
from tqp.planner.functions.registry import SCALARS
from tqp.planner.rules.columns import reference, substitute
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.functional_dependencies import same_for_equal_inputs
from tqp.planner.rules.merged_aggregates import in_two_steps, is_mergeable

#: Rows for each group of the first step, at least.
_ROWS_PER_GROUP = 8.0
#: Fewest rows for which a step of its own is worth it.
_FEWEST_ROWS = 100_000.0
#: Columns to group by first, at most.
_MOST_COLUMNS = 4

_COSTLY_WORK = frozenset((Work.CALENDAR, Work.SEARCH, Work.OTHER))
#: Functions that give equal values for 0.0 and -0.0.
_SAME_FOR_ZEROS = frozenset("add subtract multiply negate abs round floor ceil trunc number_of_unit".split())


def group_by_columns_first(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """GROUP BY monthname(x), upper(s): by the day of x and s, then by the keys, each computed for so many groups only.

    Where there are few combinations of the columns' values, and of the units of time that the keys read of instants.
    What is aggregated has to be in two steps, too.
    """
    return context.rewrite_each(plan, Aggregate, lambda node: _split(node, context))


def _split(plan: Aggregate, context: OptimizerContext) -> LogicalPlan:
    computed = [key for key in plan.keys if not isinstance(key, ColumnRef)]
    if not computed or context.estimator.rows(plan.input) < _FEWEST_ROWS:
        return plan
    if not any(map(column_ids, computed)) or not all(map(_is_plain, computed)):
        return plan
    rows, fields = context.estimator.rows(plan.input), plan.input.field_facts
    keys_fit = fit_table(plan.keys, fields, rows / _ROWS_PER_GROUP)
    if keys_fit and not any(map(_is_costly, computed)):
        return plan
    if not all(is_mergeable(call, fields, plan.input.max_rows) for call in plan.aggregates):
        return plan
    units = _units(plan.keys, fields)
    if len(units) > _MOST_COLUMNS or not units.keys() <= fields.keys():
        return plan
    first_fields: list[Field] = []
    first_keys: list[Expression] = []
    instants: dict[int, Expression] = {}
    for id, ticks in units.items():
        field = fields[id]
        key: Expression = reference(field)
        if ticks > 1:
            key = number_of_unit(key, ticks)
            field = context.new_field(field.name, BIGINT, field.nullable)
            instants[id] = start_of_unit(reference(field), ticks, fields[id].data_type)
        first_fields.append(field)
        first_keys.append(key)
    if context.estimator.distinct(plan.input, first_keys) * _ROWS_PER_GROUP > rows:
        return plan
    if keys_fit and not fit_table(first_keys, fields, rows / _ROWS_PER_GROUP):
        return plan
    second = [substitute(key, instants) for key in plan.keys]
    return in_two_steps(plan, plan.input, first_fields, first_keys, second, context)


def _is_plain(key: Expression) -> bool:
    """Does it give equal values, and always the same, for columns that are equal?"""
    if isinstance(key, ColumnRef):
        return True
    parts = walk(key)
    if not all(isinstance(part, ColumnRef | Literal | Call | Cast) for part in parts):
        return False
    if any(isinstance(part, Call) and SCALARS[part.function].is_random for part in parts):
        return False
    if any(isinstance(part, ColumnRef) and part.data_type.is_nested for part in parts):
        return False  # a struct of 0.0 equals one of -0.0
    return same_for_equal_inputs(key) or all(map(_keeps_zeros_equal, parts))


def _keeps_zeros_equal(part: Expression) -> bool:
    match part:
        case Call("divide", (_, divisor)):
            return isinstance(divisor, Literal)
        case Call(function):
            return function in _SAME_FOR_ZEROS
        case Cast(_, data_type):
            return data_type.is_numeric
    return part.data_type.is_numeric


def _is_costly(key: Expression) -> bool:
    """Does a row of it take longer than to be grouped by?"""
    return any(
        (isinstance(part, Call) and SCALARS[part.function].work in _COSTLY_WORK)
        or (isinstance(part, Cast) and part.data_type.is_string)
        for part in walk(key)
    )


def _units(keys: Sequence[Expression], fields: FieldsById) -> dict[int, int]:
    """By the id of each column that the keys read: the length of the units that they read of it, in ticks; 1: all of it."""
    found: defaultdict[int, int] = defaultdict(int)
    for key in keys:
        for id, ticks in _reads(key):
            found[id] = math.gcd(found[id], ticks)
    return {
        id: ticks if ticks > 1 and id in fields and is_finite(reference(fields[id]), fields) else 1
        for id, ticks in found.items()
    }


def _reads(expression: Expression) -> Iterator[tuple[int, int]]:
    if isinstance(expression, ColumnRef):
        yield expression.id, 1
        return
    ticks = ticks_read(expression)
    for part in expression.inputs:
        if ticks is not None and isinstance(part, ColumnRef):
            yield part.id, ticks
        else:
            yield from _reads(part)
