"""How build rows are found: the first rule that applies tells the algorithm."""

from __future__ import annotations

from dataclasses import dataclass

from tqp.core.backends import Backend
from tqp.planner.algebra.expressions import ColumnRef
from tqp.planner.algebra.join_keys import LEFT_ONLY, JoinKeys, JoinType
from tqp.planner.algebra.null_facts import nullable
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.physical.choice import Choice
from tqp.planner.physical.joins.costs import is_dense
from tqp.planner.physical.plan import Bound, Join, JoinAlgorithm, KeyPacking, PhysicalPlan, Project, TableScan


@dataclass(frozen=True, slots=True)
class JoinSituation:
    """What the choice depends on. `bounds`: of a join without keys, the inequalities that sorted build rows are searched by."""

    join_type: JoinType
    keys: JoinKeys
    bounds: tuple[Bound, ...]
    packing: KeyPacking | None
    build_is_unique: bool
    probe_rows: float
    build_rows: float
    backend: Backend

    @property
    def is_dense(self) -> bool:
        """Are there so few keys that a table over them pays?"""
        return self.packing is not None and is_dense(self.packing.size, self.probe_rows, self.build_rows)

    @property
    def one_row_a_key(self) -> bool:
        """Does at most one build row matter for each key?"""
        return self.build_is_unique or (self.join_type in LEFT_ONLY and not self.keys.residual)

    @property
    def is_one_string(self) -> bool:
        """Is the only key a string, and not numbered by a dictionary?"""
        if len(self.keys.left) != 1 or self.keys.null_equal[0] or self.packing is not None:
            return False
        return self.keys.left[0].data_type.is_string


#: In order of preference.
JOIN_CHOICES: tuple[Choice[JoinSituation, JoinAlgorithm], ...] = (
    Choice(JoinAlgorithm.RANGE, "range_join", lambda join: bool(join.bounds)),
    Choice(JoinAlgorithm.NESTED_LOOP, None, lambda join: not join.keys.left),
    Choice(
        JoinAlgorithm.PERFECT_HASH, "perfect_hash_join", lambda join: join.is_dense and join.one_row_a_key
    ),
    Choice(JoinAlgorithm.OFFSET_ARRAY, "offset_array_join", lambda join: join.is_dense),
    Choice(JoinAlgorithm.STRINGS, "string_join", lambda join: join.is_one_string),
    Choice(JoinAlgorithm.SORT, None, lambda join: join.backend is Backend.TORCH),
    Choice(JoinAlgorithm.HASH, None, lambda join: True),
)


def every_row_matches(keys: JoinKeys, probe: PhysicalPlan, build: PhysicalPlan) -> bool:
    """True if each probe row is known to have a partner: the build side is a whole table with every key there can be."""
    if len(keys.left) != 1 or keys.residual or not isinstance(keys.right[0], ColumnRef):
        return False
    probe_fields, build_fields = probe.field_facts, build.field_facts
    field = build_fields[keys.right[0].id]
    known, asked = value_range(keys.right[0], build_fields), value_range(keys.left[0], probe_fields)
    if known is None or asked is None or field.nullable or not field.facts.is_unique:
        return False
    return (
        known[1] - known[0] + 1 == _rows_of_whole_table(build)
        and known[0] <= asked[0]
        and asked[1] <= known[1]
        and not nullable(keys.left[0], probe_fields)
    )


def _rows_of_whole_table(plan: PhysicalPlan) -> int | None:
    """The number of rows of a table that the plan neither drops nor repeats rows of."""
    match plan:
        case TableScan():
            return plan.table.num_rows
        case Project():
            return _rows_of_whole_table(plan.input)
        case Join() if plan.all_match:
            return _rows_of_whole_table(plan.probe)
    return None
