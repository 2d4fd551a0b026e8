"""Index joins: few rows look up their partners in a whole table through the index on its key, which outlives the query.

What the table is filtered by comes after the join: the conditions see the rows found, not all rows of the table. Where it is only
asked whether an unfiltered table has a key, the set of its keys is enough, which a table in any order has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from tqp.core.frozen import dataclass
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef, Expression, all_column_ids, conjuncts
from tqp.planner.algebra.field_facts import filter_fields, join_fields
from tqp.planner.algebra.join_keys import LEFT_ONLY, JoinKeys
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.logical_plan import Filter, Join, JoinType, LogicalPlan, Scan
from tqp.planner.physical.joins.algorithms import every_row_matches
from tqp.planner.physical.joins.packing import pack_join_keys
from tqp.planner.physical.plan import Filter as PhysicalFilter
from tqp.planner.physical.plan import Join as PhysicalJoin
from tqp.planner.physical.plan import JoinAlgorithm, KeyPacking, PhysicalPlan
from tqp.planner.rules.columns import is_pass_through

# Nanoseconds, in the measure of planner/physical/joins/costs.py.
_LOOK_UP = 10.0  # a probe row: one or two look-ups that miss the caches
_ASKED = 3.0  # a probe row that asks a set of keys, as one that asks a build side does
_PAIR = 8.0  # a row found, where a key has several
_READ = 3.0  # a value that a condition reads
_SCANNED = 1.0  # a row of the table, for each condition: what joins without an index have to evaluate

_LARGEST_INDEX = 1 << 28
_ENTRIES_PER_ROW, _FREE_ENTRIES = 16, 1 << 16  # at most; an entry takes four bytes

#: Joins that become a list of pairs, on which conditions can be evaluated.
_JOIN_TYPES = (JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI)


@dataclass(frozen=True)
class IndexedTable:
    """A table sorted on the column `key`, and the conditions on its rows; with `has_set` any table, asked for its keys only."""

    scan: Scan
    key: Field
    conditions: tuple[Expression, ...]
    has_set: bool = False

    @property
    def rows_per_key(self) -> float:
        if self.key.facts.is_unique:
            return 1.0
        return self.scan.table.num_rows / max(1.0, self.key.estimates.distinct_count or 1.0)

    def cost(self, probe_rows: float) -> float:
        """What a join of so many rows with the table costs more than the table's scan, which it saves."""
        return probe_rows * self._cost_of_row - self._cost_of_scan

    @cached_property
    def _cost_of_row(self) -> float:
        if self.has_set:
            return _ASKED
        formed = 0.0 if self.key.facts.is_unique else _PAIR
        return _LOOK_UP + (formed + _READ * len(all_column_ids(self.conditions))) * self.rows_per_key

    @cached_property
    def _cost_of_scan(self) -> float:
        return _SCANNED * len(self.conditions) * self.scan.table.num_rows


def indexed_table(plan: LogicalPlan, key: Expression) -> IndexedTable | None:
    """The table that a plan filters, if it is sorted on the key."""
    found = _table_with(plan, key)
    if found is None or found.key.nullable or not found.key.facts.is_sorted:
        return None
    return found


def _table_with(plan: LogicalPlan, key: Expression) -> IndexedTable | None:
    """The table that a plan filters, if the key is one of its columns, of integers."""
    conditions: tuple[Expression, ...] = ()
    while isinstance(plan, Filter) or is_pass_through(plan):
        if isinstance(plan, Filter):
            conditions = (*conjuncts(plan.condition), *conditions)
        plan = plan.inputs[0]
    if not isinstance(plan, Scan) or not isinstance(key, ColumnRef) or not key.data_type.is_integer_like:
        return None
    if plan.table.num_rows >= 2**31:
        return None
    return IndexedTable(plan, plan.field_facts[key.id], conditions)


def table_with_set(keys: JoinKeys, probe_fields: Fields, build: LogicalPlan) -> IndexedTable | None:
    """The table that the build side of a semi or anti join is, if a set of all its keys is worth its memory."""
    if len(keys.left) != 1 or keys.null_equal[0] or keys.residual:
        return None
    found = _table_with(build, keys.right[0])
    if found is None or found.conditions or _packing(found, keys, probe_fields) is None:
        return None
    return replace(found, has_set=True)


def index_for(
    join_type: JoinType, keys: JoinKeys, probe_fields: Fields, build: LogicalPlan
) -> IndexedTable | None:
    """The indexed table that the build side is, if an index over all values of the keys is worth its memory."""
    if join_type not in _JOIN_TYPES or len(keys.left) != 1 or keys.null_equal[0]:
        return None
    if join_type in LEFT_ONLY and (found := table_with_set(keys, probe_fields, build)) is not None:
        return found
    found = indexed_table(build, keys.right[0])
    if found is None:
        return None
    return found if _packing(found, keys, probe_fields) is not None else None


def _packing(index: IndexedTable, keys: JoinKeys, probe_fields: Fields) -> KeyPacking | None:
    packing = pack_join_keys(keys, probe_fields, {index.key.id: index.key}, {}, None)
    most = min(_LARGEST_INDEX, max(_FREE_ENTRIES, _ENTRIES_PER_ROW * index.scan.table.num_rows))
    return packing if packing is not None and packing.size <= most else None


def index_join(
    plan: Join,
    index: IndexedTable,
    keys: JoinKeys,
    probed: PhysicalPlan,
    table: PhysicalPlan,
    required: frozenset[int],
    identifier: int,
    rows: float,
    in_order: Callable[[Sequence[Expression], Fields], Sequence[Expression]],
) -> PhysicalPlan | None:
    """The join of planned probe rows with the scan of the table, and the table's conditions on what it finds.

    None if less is known of the planned rows' keys than `index_for` was told. `in_order` orders conjuncts for evaluation.
    The rows come out in the order of the probe side.
    """
    left, right = probed.field_facts, table.field_facts
    is_inner, is_unique = plan.join_type is JoinType.INNER, index.key.facts.is_unique
    if not is_inner:
        keys = replace(keys, residual=(*keys.residual, *index.conditions))
    after = index.conditions if is_inner else ()
    packing = _packing(index, keys, left)
    if packing is None:
        return None
    known = join_fields(
        left,
        right,
        plan.join_type,
        keys,
        None,
        left_once=is_unique,
        right_once=False,
        keeps_left_order=True,
    )
    needed = required | all_column_ids(after)
    all_match = is_unique and not keys.residual and every_row_matches(keys, probed, table)
    joined: PhysicalPlan = PhysicalJoin(
        tuple(field for field in known.values() if field.id in needed),
        probed.estimated_rows * index.rows_per_key if after else rows,
        probed.max_rows * (1 if is_unique else index.scan.table.num_rows) if after else plan.max_rows,
        identifier,
        probed,
        table,
        plan.join_type,
        JoinAlgorithm.PERFECT_HASH if is_unique or index.has_set else JoinAlgorithm.OFFSET_ARRAY,
        keys.left,
        keys.right,
        keys.null_equal,
        keys.residual,
        packing,
        all_match=all_match and plan.join_type in (JoinType.INNER, JoinType.SEMI),
        indexed=True,
    )
    if after:
        parts = tuple(in_order(after, known))
        fields = filter_fields(known, parts).values()
        kept = tuple(field for field in fields if field.id in required)
        joined = PhysicalFilter(kept, rows, plan.max_rows, joined, parts)
    return joined
