"""A slow interpreter of physical plans over Python rows that checks every promise a plan makes on the way.

At each node: values lie in their field's range, NULL only where nullable, unique and sorted columns are, and no more
rows come out than `max_rows`. At joins and group-bys: every key lies in its packing, look-up keys are unique.
"""

from __future__ import annotations

from typing import Any

from tests.reference_plan import MemoryTable, Row, evaluate
from tests.reference_plan import run as run_logical
from tqp.core.datatypes import BOOLEAN
from tqp.core.errors import ExecutionError
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import Call
from tqp.planner.algebra.join_keys import KEEPS_RIGHT
from tqp.planner.algebra.logical_plan import Aggregate, JoinType, LogicalPlan, Scan, Sort
from tqp.planner.physical import plan as physical
from tqp.planner.physical.plan import GroupAlgorithm, JoinAlgorithm, KeyPacking, PhysicalPlan

_EXISTENCE = (JoinType.SEMI, JoinType.ANTI, JoinType.NULL_AWARE_ANTI, JoinType.MARK)


class PhysicalReference:
    """Runs one plan; with `use_runtime_filters` off, runtime filters let every row pass."""

    def __init__(self, use_runtime_filters: bool = True) -> None:
        self.use_runtime_filters = use_runtime_filters
        self.joins: dict[int, tuple[physical.Join, set[tuple[Any, ...]]]] = {}
        self.shared: dict[int, list[Row]] = {}

    def rows(self, plan: PhysicalPlan) -> list[tuple[Any, ...]]:
        """The output rows, in order of the fields."""
        ids = [field.id for field in plan.fields]
        return [tuple(row[identifier] for identifier in ids) for row in self.run(plan)]

    def run(self, plan: PhysicalPlan) -> list[Row]:
        rows = self._run(plan)
        assert len(rows) <= plan.max_rows, plan
        rows = [{field.id: row[field.id] for field in plan.fields} for row in rows]
        for field in plan.fields:
            check_field(field, [row[field.id] for row in rows])
        return rows

    def _run(self, plan: PhysicalPlan) -> list[Row]:
        match plan:
            case physical.TableScan():
                assert isinstance(plan.table, MemoryTable)
                columns = [plan.table.columns[name] for name in plan.columns]
                return [
                    {field.id: column[i] for field, column in zip(plan.fields, columns, strict=True)}
                    for i in range(plan.table.num_rows)
                ]
            case physical.ValuesScan():
                ids = [field.id for field in plan.fields]
                return [dict(zip(ids, [evaluate(e, {}) for e in row], strict=True)) for row in plan.rows]
            case physical.Filter():
                rows = self.run(plan.input)
                return [row for row in rows if all(evaluate(part, row) is True for part in plan.conjuncts)]
            case physical.RuntimeFilter():
                return self._runtime_filter(plan)
            case physical.Project():
                pairs = list(zip(plan.fields, plan.outputs, strict=True))
                return [{f.id: evaluate(e, row) for f, e in pairs} for row in self.run(plan.input)]
            case physical.Join():
                return self._join(plan)
            case physical.Aggregate():
                return self._aggregate(plan)
            case physical.Sort():
                rows = run_logical(Sort(_stored(self.run(plan.input), plan.input.fields), plan.keys), {})
                return rows if plan.limit is None else rows[plan.offset : plan.offset + plan.limit]
            case physical.Limit():
                stop = None if plan.limit is None else plan.offset + plan.limit
                return self.run(plan.input)[plan.offset : stop]
            case physical.UnionAll():
                return [row for branch in plan.branches for row in _renamed(self.run(branch), branch, plan)]
            case physical.Shared():
                if plan.identifier not in self.shared:
                    self.shared[plan.identifier] = self.run(plan.input)
                return _renamed(self.shared[plan.identifier], plan.input, plan)
        raise TypeError(f"no plan: {plan}")

    def _runtime_filter(self, plan: physical.RuntimeFilter) -> list[Row]:
        join, build_keys = self.joins[plan.join]  # its build side has to be there already
        rows = self.run(plan.input)
        keys = [tuple(evaluate(key, row) for key in plan.keys) for row in rows]
        if join.packing is not None:
            check_packing(join.packing, keys)
        if not self.use_runtime_filters:
            return rows
        return [row for row, key in zip(rows, keys, strict=True) if key in build_keys]

    def _join(self, plan: physical.Join) -> list[Row]:
        build_rows = self.run(plan.build)
        build_keys = [tuple(evaluate(key, row) for key in plan.build_keys) for row in build_rows]
        self.joins[plan.identifier] = (plan, set(build_keys))
        probe_rows = self.run(plan.probe)
        probe_keys = [tuple(evaluate(key, row) for key in plan.probe_keys) for row in probe_rows]
        if plan.packing is not None:
            check_packing(plan.packing, build_keys)
            check_packing(plan.packing, probe_keys)
        existence = plan.join_type in _EXISTENCE and not plan.residual
        if plan.algorithm is JoinAlgorithm.PERFECT_HASH and not existence:
            matchable = [key for key in build_keys if _can_match(key, plan.null_equal)]
            assert len(set(matchable)) == len(matchable), "a perfect-hash join needs unique keys"
        if plan.algorithm is JoinAlgorithm.NESTED_LOOP:
            assert not plan.probe_keys
        if plan.all_match and self.use_runtime_filters:  # which may have dropped the other rows
            assert set(probe_keys) <= set(build_keys), "every probe row has a partner"

        assert (plan.algorithm is JoinAlgorithm.RANGE) == bool(plan.bounds)
        bounds = [Call(bound.comparison, (bound.build, bound.probe), BOOLEAN) for bound in plan.bounds]
        result: list[Row] = []
        padding = {field.id: None for field in plan.build.fields}
        met: list[Row] = []
        for row, key in zip(probe_rows, probe_keys, strict=True):
            verdicts = [
                _all(
                    [
                        *(_equal(a, b, n) for a, b, n in zip(key, other_key, plan.null_equal, strict=True)),
                        *(evaluate(part, row | other) for part in (*bounds, *plan.residual)),
                    ]
                )
                for other, other_key in zip(build_rows, build_keys, strict=True)
            ]
            matches = [other for other, verdict in zip(build_rows, verdicts, strict=True) if verdict is True]
            met += matches
            match plan.join_type:
                case JoinType.INNER | JoinType.RIGHT:
                    result += [row | other for other in matches]
                case JoinType.LEFT | JoinType.FULL | JoinType.SINGLE:
                    if plan.join_type is JoinType.SINGLE and len(matches) > 1:
                        raise ExecutionError("more than one row")
                    result += [row | other for other in matches or [padding]]
                case JoinType.SEMI:
                    result += [row] if matches else []
                case JoinType.ANTI:
                    result += [] if matches else [row]
                case JoinType.NULL_AWARE_ANTI:
                    result += [row] if all(verdict is False for verdict in verdicts) else []
                case JoinType.MARK:
                    assert plan.mark is not None
                    mark = True if True in verdicts else None if None in verdicts else False
                    result.append(row | {plan.mark.id: mark})
        if plan.join_type in KEEPS_RIGHT:
            padding = {field.id: None for field in plan.probe.fields}
            result += [padding | other for other in build_rows if not any(other is each for each in met)]
        return result

    def _aggregate(self, plan: physical.Aggregate) -> list[Row]:
        rows = self.run(plan.input)
        keys = [tuple(evaluate(key, row) for key in plan.keys) for row in rows]
        if plan.packing is not None:
            check_packing(plan.packing, keys)
        if plan.algorithm is GroupAlgorithm.CLUSTERED:
            assert keys == sorted(keys)
        if plan.algorithm is GroupAlgorithm.DIRECT:
            assert plan.packing is not None
        assert (plan.algorithm is GroupAlgorithm.SINGLE) == (not plan.keys)
        count = len(plan.keys)
        grouped = Aggregate(
            _stored(rows, plan.input.fields),
            plan.fields[:count],
            plan.keys,
            plan.fields[count:],
            plan.aggregates,
        )
        return run_logical(grouped, {})


def check_field(field: Field, values: list[Any]) -> None:
    """Every promise of the field holds for its values."""
    known, statistics = [value for value in values if value is not None], field.facts
    assert field.nullable or len(known) == len(values), f"NULL in {field}"
    if statistics.minimum is not None and statistics.maximum is not None:
        assert all(statistics.minimum <= value <= statistics.maximum for value in known), (field, known)
    assert not statistics.is_unique or len(set(known)) == len(known), f"duplicates in {field}"
    assert not statistics.is_sorted or (values == known and known == sorted(known)), f"{field} is not sorted"


def check_packing(packing: KeyPacking, keys: list[tuple[Any, ...]]) -> None:
    """Every key is in the ranges of the parts; NULL needs a part with a code for it, or no code at all."""
    size = 1
    for part in packing.parts:
        size *= part.span
    assert size == packing.size
    for key in keys:
        for value, part in zip(key, packing.parts, strict=True):
            if value is not None:
                assert 0 <= value - part.minimum + part.nullable < part.span, (key, packing)


def _can_match(key: tuple[Any, ...], null_equal: tuple[bool, ...]) -> bool:
    return all(value is not None or matches for value, matches in zip(key, null_equal, strict=True))


def _equal(a: Any, b: Any, null_equal: bool) -> bool | None:
    if null_equal:
        return bool(a == b)
    return None if a is None or b is None else bool(a == b)


def _all(verdicts: list[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _renamed(rows: list[Row], source: PhysicalPlan, target: PhysicalPlan) -> list[Row]:
    pairs = [(a.id, b.id) for a, b in zip(source.fields, target.fields, strict=True)]
    return [{new: row[old] for old, new in pairs} for row in rows]


def _stored(rows: list[Row], fields: tuple[Field, ...]) -> LogicalPlan:
    """The rows as a table, for the logical interpreter."""
    columns = {str(field.id): [row[field.id] for row in rows] for field in fields}
    types = {str(field.id): field.data_type for field in fields}
    table = _RowTable("stored", columns, types, len(rows))
    return Scan(table, "stored", tuple(columns), tuple({field.id: field for field in fields}.values()))


class _RowTable(MemoryTable):
    """A table that knows its number of rows even without columns."""

    def __init__(self, name: str, columns: dict[str, list[Any]], types: dict[str, Any], count: int) -> None:
        super().__init__(name, columns, types)
        self._count = count

    @property
    def num_rows(self) -> int:
        return self._count
