"""How build rows are found: the first rule that applies tells the algorithm."""

from __future__ import annotations

from dataclasses import dataclass

from tqp.core.backends import Backend
from tqp.planner.algebra.join_keys import LEFT_ONLY, JoinKeys, JoinType
from tqp.planner.algebra.unique_sets import all_find_one
from tqp.planner.physical.algorithm_choice import Choice
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
    return all_find_one(keys, probe.field_facts, build.field_facts, _rows_of_whole_table(build))


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
