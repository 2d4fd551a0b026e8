"""Which parts of its tables a bound query can do without: by what is said of the values in them, before any is read, or by some columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tqp.core.schema import ColumnFacts, Field, Schema, TableSource, ValueCondition
from tqp.planner.algebra.expressions import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    all_column_ids,
    column_ids,
    conjunction,
    conjuncts,
    walk,
)
from tqp.planner.algebra.join_keys import JoinType
from tqp.planner.algebra.known_fields import KnownFields
from tqp.planner.algebra.logical_plan import Aggregate, Filter, Join, LogicalPlan, Project, Scan, Sort
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.node import transform_plan, walk_plan
from tqp.planner.algebra.outcomes import TRUE, outcomes
from tqp.planner.algebra.subquery_expressions import has_subquery
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.conditions import COMPARISONS, MAY_HOLD, MIRRORED, TEXT_PREDICATES
from tqp.planner.rules.columns import in_subqueries, reference, substitute
from tqp.planner.rules.joins.region import column_equality
from tqp.planner.rules.or_predicates import any_of, branches_of, implied_by_branches

#: What conditions consist of that are looked at row by row before the query is planned: as quick as reading a column.
_QUICK = (ColumnRef, Literal, Call, Cast, InList)
_QUICK_CALLS = COMPARISONS | TEXT_PREDICATES | {"and", "or", "not"}
#: Joins whose left rows pass unchanged, or not at all: a condition on them above holds below.
_PASSES_LEFT = frozenset(JoinType) - {JoinType.FULL}
#: Joins of which only those rows of a side count that satisfy the condition with a row of the other side.
_RESTRICTS_BOTH = frozenset({JoinType.INNER, JoinType.SEMI})
_RESTRICTS_RIGHT = _RESTRICTS_BOTH | {JoinType.LEFT, JoinType.SINGLE, JoinType.ANTI}


@dataclass(frozen=True, slots=True)
class Partner:
    """Wanted rows have in `column` a value that a wanted row of the other table has in `other_column`."""

    column: str
    table: TableSource
    other_column: str


@dataclass(frozen=True, slots=True)
class TableConditions:
    """The scans of one table, each with conditions that all rows that the query wants of it satisfy.

    `partners`: of a table that is scanned once, other such tables.
    """

    scans: tuple[tuple[Scan, tuple[Expression, ...]], ...]
    partners: tuple[Partner, ...] = ()

    @property
    def read(self) -> frozenset[str]:
        """All columns that the scans read."""
        return frozenset(name for scan, _ in self.scans for name in scan.columns)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that something of is asked."""
        return frozenset(name for scan, parts in self.scans for name, _ in _asked(scan, parts))

    def may_hold(self, facts: Mapping[str, ColumnFacts]) -> bool:
        """Whether the query may want one of some rows, of whose columns so much is known; a column that is missing holds anything."""
        return any(_may_be_wanted(scan, parts, facts) for scan, parts in self.scans)

    @property
    def alternatives(self) -> tuple[tuple[ValueCondition, ...], ...]:
        """See `tqp.core.schema.RowConditions`: one for each scan."""
        found = []
        for scan, parts in self.scans:
            names = {field.id: name for field, name in zip(scan.fields, scan.columns, strict=True)}
            conditions = (_value_condition(part, names) for part in parts)
            found.append(tuple(dict.fromkeys(filter(None, conditions))))
        return tuple(found)

    def on(self, columns: Collection[str]) -> TableConditions | None:
        """The quick ones that read these columns alone; None where one of the scans has none."""
        scans = []
        for scan, parts in self.scans:
            ids = {field.id for field, name in zip(scan.fields, scan.columns, strict=True) if name in columns}
            scans.append((scan, tuple(part for part in parts if column_ids(part) <= ids and _is_quick(part))))
        return TableConditions(tuple(scans)) if all(parts for _, parts in scans) else None

    def safe(self, table: TableSource) -> TableConditions | None:
        """Those that raise for no row of the table, whose columns asked of are read; None where one of the scans has none."""
        scans = []
        for scan, parts in self.scans:
            known = KnownFields(_scan(table, _asked(scan, parts)).field_facts)
            scans.append((scan, tuple(part for part in parts if not may_raise(part, known))))
        return TableConditions(tuple(scans)) if all(parts for _, parts in scans) else None

    def of_rows(self, table: TableSource) -> Filter:
        """The rows of the table that satisfy the conditions of a scan."""
        fields: dict[str, Field] = {}
        wanted = []
        for scan, parts in self.scans:
            renamed: dict[int, Expression] = {
                field.id: reference(fields.setdefault(name, replace(field, id=len(fields))))
                for name, field in _asked(scan, parts)
            }
            wanted.append(conjunction(tuple(substitute(part, renamed) for part in parts)))
        return Filter(_scan(table, list(fields.items())), any_of(wanted))

    @property
    def of_all_rows(self) -> tuple[Expression, ...]:
        """Those that all rows of a table satisfy that has no others than `of_rows`: of one scan only."""
        return self.scans[0][1] if len(self.scans) == 1 else ()


def scan_conditions(plan: LogicalPlan) -> dict[TableSource, TableConditions]:
    """Of each table of which every scan has a condition, with the scans of subqueries; nothing where no table can be restricted."""
    nodes = list(walk_plan(plan, into_subqueries=True))
    scans = [node for node in nodes if isinstance(node, Scan)]
    if not any(scan.table.can_be_restricted(scan.columns) for scan in scans):
        return {}
    readers = Counter(id(below) for node in nodes for below in (*node.inputs, *node.subqueries))
    parts: dict[int, list[Expression]] = {id(scan): [] for scan in scans}
    partners: dict[TableSource, list[Partner]] = {scan.table: [] for scan in scans}
    by_table: dict[TableSource, list[Scan]] = {}
    for scan in scans:
        by_table.setdefault(scan.table, []).append(scan)
    for node in nodes:
        match node:
            case Filter():
                restricted, others = [*_scans(node.input, readers)], []
            case Join() if node.join_type in _RESTRICTS_RIGHT:
                restricted, others = [*_scans(node.right, readers)], [*_scans(node.left, readers)]
                if node.join_type in _RESTRICTS_BOTH:
                    restricted, others = restricted + others, []
            case _:
                continue
        pieces = [part for part in _pieces(node.condition) if not has_subquery(part)]
        for scan, ids in restricted:
            for part in pieces:
                if not ids.isdisjoint(column_ids(part)):
                    parts[id(scan)] += (part, *implied_by_branches(part, ids))
        columns = {
            field.id: (scan.table, name)
            for scan, ids in (*restricted, *others)
            if len(by_table[scan.table]) == 1
            for field, name in zip(scan.fields, scan.columns, strict=True)
            if field.id in ids
        }
        wanted = frozenset().union(*(ids for _, ids in restricted))
        for pair in filter(None, map(column_equality, pieces)):
            for one, other in (pair, pair[::-1]):
                mine, theirs = columns.get(one.id), columns.get(other.id)
                if one.id in wanted and mine and theirs and mine[0] is not theirs[0]:
                    partners[mine[0]].append(Partner(mine[1], *theirs))
    return {
        table: TableConditions(
            tuple((scan, tuple(parts[id(scan)])) for scan in found), tuple(partners[table])
        )
        for table, found in by_table.items()
        if all(parts[id(scan)] for scan in found)
    }


def _pieces(condition: Expression) -> Iterator[Expression]:
    """The conjuncts, with those that all branches of an OR have in common."""
    for part in conjuncts(condition):
        branches = branches_of(part)
        yield from (part,) if len(branches) == 1 else conjuncts(any_of(branches))


def over_tables(
    plan: LogicalPlan, tables: Mapping[TableSource, TableSource], satisfied: Collection[Expression]
) -> LogicalPlan:
    """The plan over tables with the same columns in place of those, in subqueries too, and without what their rows satisfy.

    `satisfied`: parts of the plan's own conditions, by identity: what equals them may stand above an outer join, too.
    """
    known = set(map(id, satisfied))

    def over(node: LogicalPlan) -> LogicalPlan:
        match node:
            case Scan():
                return node.changed({"table": tables[node.table]}) if node.table in tables else node
            case Filter() | Join(join_type=JoinType.INNER):
                parts = conjuncts(node.condition)
                left = tuple(part for part in parts if id(part) not in known)
                if not left and isinstance(node, Filter):
                    return node.input
                if len(left) < len(parts):
                    node = node.changed({"condition": conjunction(left)})
        return in_subqueries(node, lambda plan: over_tables(plan, tables, satisfied))

    return transform_plan(plan, over)


def _scans(plan: LogicalPlan, readers: Mapping[int, int]) -> Iterator[tuple[Scan, frozenset[int]]]:
    """The scans whose rows come out, and nowhere else, each with those of its columns that do.

    A condition on these above a group-by holds below, as it drops whole groups.
    """
    if readers[id(plan)] != 1:
        return
    match plan:
        case Scan():
            yield plan, plan.output_ids
        case Filter() | Sort():
            yield from _scans(plan.input, readers)
        case Project():
            yield from _passed(plan, plan.fields, plan.outputs, readers)
        case Aggregate():
            yield from _passed(plan, plan.key_fields, plan.keys, readers)
        case Join(join_type=JoinType.INNER):
            yield from _scans(plan.left, readers)
            yield from _scans(plan.right, readers)
        case Join() if plan.join_type in _PASSES_LEFT:
            yield from _scans(plan.left, readers)


def _value_condition(condition: Expression, names: Mapping[int, str]) -> ValueCondition | None:
    """The condition as one on a column of these names, by its id; None where it is no such."""
    match condition:
        case Call(function=function, arguments=(ColumnRef(id=id), Literal(value=int() | str() as value))) if (
            function in COMPARISONS
        ):
            pass
        case Call(function=mirrored, arguments=(Literal(value=int() | str() as value), ColumnRef(id=id))) if (
            mirrored in COMPARISONS
        ):
            function = MIRRORED[mirrored]
        case InList(input=ColumnRef(id=id)):
            values = [each.value for each in condition.values if isinstance(each, Literal)]
            listed = tuple(value for value in values if isinstance(value, (int, str)))
            is_known = len(listed) == len(condition.values)
            return ValueCondition(names[id], "in", listed) if is_known and id in names else None
        case Call(function="is_null", arguments=(ColumnRef(id=id),)):
            return ValueCondition(names[id], "is_null") if id in names else None
        case Call(function="not", arguments=(Call(function="is_null", arguments=(ColumnRef(id=id),)),)):
            return ValueCondition(names[id], "is_not_null") if id in names else None
        case _:
            return None
    return ValueCondition(names[id], function, (value,)) if id in names else None


def _passed(
    plan: Project | Aggregate, fields: Schema, values: Sequence[Expression], readers: Mapping[int, int]
) -> Iterator[tuple[Scan, frozenset[int]]]:
    """As `_scans`, of a node some fields of which are columns of its input."""
    passed = {
        field.id
        for field, value in zip(fields, values, strict=True)
        if isinstance(value, ColumnRef) and value.id == field.id
    }
    for scan, ids in _scans(plan.input, readers) if passed else ():
        yield scan, ids & passed


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
        case Call(function=function, arguments=(left, right)) if function in COMPARISONS:
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
    return known is None or any(each is None or MAY_HOLD[function](known, each) for each in ranges)


def _asked(scan: Scan, parts: Sequence[Expression]) -> list[tuple[str, Field]]:
    """The columns that something of is asked."""
    read = all_column_ids(parts)
    return [(name, field) for name, field in zip(scan.columns, scan.fields, strict=True) if field.id in read]


def _scan(table: TableSource, columns: Sequence[tuple[str, Field]]) -> Scan:
    return Scan(table, table.name, tuple(name for name, _ in columns), tuple(field for _, field in columns))


def _is_quick(condition: Expression) -> bool:
    return all(
        isinstance(node, _QUICK) and (not isinstance(node, Call) or node.function in _QUICK_CALLS)
        for node in walk(condition)
    )
