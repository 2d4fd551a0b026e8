"""Which parts of its tables a bound query can do without, by what is said of the values in them: asked before any is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tqp.core.schema import ColumnFacts, TableSource
from tqp.planner.algebra.expressions import (
    Call,
    Expression,
    InList,
    all_column_ids,
    column_ids,
    conjuncts,
    has_subquery,
)
from tqp.planner.algebra.join_keys import JoinType
from tqp.planner.algebra.known_fields import KnownFields
from tqp.planner.algebra.logical_plan import Filter, Join, LogicalPlan, Scan, Sort
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.outcomes import TRUE, outcomes
from tqp.planner.algebra.value_ranges import value_range

_Range = tuple[int, int]

#: Comparisons, and whether they may be true of a left value within the first range and a right one within the second.
_MAY_HOLD: dict[str, Callable[[_Range, _Range], bool]] = {
    "equal": lambda left, right: left[0] <= right[1] and right[0] <= left[1],
    "less": lambda left, right: left[0] < right[1],
    "less_equal": lambda left, right: left[0] <= right[1],
    "greater": lambda left, right: left[1] > right[0],
    "greater_equal": lambda left, right: left[1] >= right[0],
}
#: Joins whose left rows pass unchanged, or not at all: a condition on them above holds below.
_PASSES_LEFT = frozenset(JoinType) - {JoinType.FULL}


@dataclass(frozen=True, slots=True)
class TableConditions:
    """The scans of one table, each with conditions that all rows that the query wants of it satisfy."""

    scans: tuple[tuple[Scan, tuple[Expression, ...]], ...]

    @property
    def columns(self) -> frozenset[str]:
        """The columns that something of is asked."""
        return frozenset(
            name
            for scan, parts in self.scans
            for field, name in zip(scan.fields, scan.columns, strict=True)
            if field.id in all_column_ids(parts)
        )

    def may_hold(self, facts: Mapping[str, ColumnFacts]) -> bool:
        """Whether the query may want one of some rows, of whose columns so much is known; a column that is missing holds anything."""
        return any(_may_be_wanted(scan, parts, facts) for scan, parts in self.scans)


def scan_conditions(plan: LogicalPlan) -> dict[TableSource, TableConditions]:
    """Of each table of which every scan has a condition, with the scans of subqueries; nothing where no table can be restricted."""
    nodes = list(walk_plan(plan, into_subqueries=True))
    scans = [node for node in nodes if isinstance(node, Scan)]
    if not any(scan.table.can_be_restricted(scan.columns) for scan in scans):
        return {}
    readers = Counter(id(below) for node in nodes for below in (*node.inputs, *node.subqueries))
    parts: dict[int, list[Expression]] = {id(scan): [] for scan in scans}
    for node in nodes:
        match node:
            case Filter():
                found = _scans(node.input, readers)
            case Join(join_type=JoinType.INNER):
                found = (scan for side in node.inputs for scan in _scans(side, readers))
            case _:
                continue
        for scan in found:
            ids = {field.id for field in scan.fields}
            parts[id(scan)] += [
                part
                for part in conjuncts(node.condition)
                if not ids.isdisjoint(column_ids(part)) and not has_subquery(part)
            ]
    by_table: dict[TableSource, list[Scan]] = {}
    for scan in scans:
        by_table.setdefault(scan.table, []).append(scan)
    return {
        table: TableConditions(tuple((scan, tuple(parts[id(scan)])) for scan in found))
        for table, found in by_table.items()
        if all(parts[id(scan)] for scan in found)
        and table.can_be_restricted([name for scan in found for name in scan.columns])
    }


def _scans(plan: LogicalPlan, readers: Mapping[int, int]) -> Iterator[Scan]:
    """The scans whose rows come out unchanged, and nowhere else."""
    if readers[id(plan)] != 1:
        return
    match plan:
        case Scan():
            yield plan
        case Filter() | Sort():
            yield from _scans(plan.input, readers)
        case Join(join_type=JoinType.INNER):
            yield from _scans(plan.left, readers)
            yield from _scans(plan.right, readers)
        case Join() if plan.join_type in _PASSES_LEFT:
            yield from _scans(plan.left, readers)


def _may_be_wanted(scan: Scan, parts: tuple[Expression, ...], facts: Mapping[str, ColumnFacts]) -> bool:
    fields = KnownFields(
        {
            field.id: replace(field, facts=facts[name])
            for field, name in zip(scan.fields, scan.columns, strict=True)
            if name in facts
        }
    )
    return all(_may_be_true(part, fields) for part in parts)


def _may_be_true(condition: Expression, fields: KnownFields) -> bool:
    """False promises that no row satisfies the condition, and that it raises for none."""
    match condition:
        case Call(function="and"):
            return all(_may_be_true(part, fields) for part in condition.arguments)
        case Call(function="or"):
            return any(_may_be_true(part, fields) for part in condition.arguments)
        case Call(function=function, arguments=(left, right)) if function in _MAY_HOLD:
            impossible = not _may_compare(function, left, (right,), fields)
        case InList():
            impossible = not _may_compare("equal", condition.input, condition.values, fields)
        case _:
            impossible = False
    if not impossible and any(field.facts.is_null for field in fields.values()):
        impossible = not outcomes(condition, fields) & TRUE
    return not impossible or may_raise(condition, fields)


def _may_compare(function: str, left: Expression, rights: Sequence[Expression], fields: KnownFields) -> bool:
    """Whether the comparison with any of the right sides may be true by the ranges of both."""
    known = value_range(left, fields)
    ranges = [value_range(right, fields) for right in rights]
    return known is None or any(each is None or _MAY_HOLD[function](known, each) for each in ranges)
