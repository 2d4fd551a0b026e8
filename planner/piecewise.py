"""What of a query can be computed for pieces of one table, one after the other, and what is then left to do.

Rows pass filters, projections and joins with other tables by themselves. Of groups, and of the first rows in an order, those
of each piece are made and put together. What else reads all rows at once reads those that the pieces have left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tqp.core.schema import Field, Schema, TableSource
from tqp.planner.algebra.expressions import AggregateCall
from tqp.planner.algebra.join_keys import JoinType
from tqp.planner.algebra.leaves import MOST_ROWS
from tqp.planner.algebra.logical_node import Ids
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    Project,
    Scan,
    Sort,
    Unnest,
    WorkingRows,
)
from tqp.planner.algebra.node import walk_plan
from tqp.planner.rules.columns import NewIds, pass_through, reference
from tqp.planner.rules.merged_aggregates import is_mergeable, merged, parts_of, result_of
from tqp.planner.scan_conditions import over_tables

#: What is made of the rows of pieces.
Step = Callable[[LogicalPlan], LogicalPlan]


class _Place(NamedTuple):
    """A node, and which of its inputs leads to the table."""

    node: LogicalPlan
    which: int


@dataclass(frozen=True, slots=True)
class Piecewise:
    """`plan` reads `table`, of which pieces are to stand in its place.

    `merge`: makes fewer rows of those of several pieces, with columns of the same types. `rest`: makes the answer of the rows
    of all pieces; without it they are the answer. `enough`: so many rows of pieces suffice.
    """

    plan: LogicalPlan
    table: TableSource
    merge: Step | None = None
    rest: Step | None = None
    enough: int | None = None

    @property
    def schema(self) -> Schema:
        """The columns of the rows of pieces."""
        return self.plan.schema

    def of_piece(self, piece: TableSource) -> LogicalPlan:
        """The rows of a piece."""
        return over_tables(self.plan, {self.table: piece}, ())

    def of_rows(self, step: Step, rows: TableSource) -> LogicalPlan:
        """A step over the rows of pieces, in a table with columns in the same order."""
        fields = tuple(Field(each.id, each.name, each.data_type) for each in self.schema)
        return step(Scan(rows, rows.name, tuple(rows.column_names), fields))


def piecewise(plan: LogicalPlan, table: TableSource) -> Piecewise | None:
    """A plan without subqueries as steps over pieces of a table; None where it reads all rows at once, or more than once."""
    above = _above(plan, table)
    if not above:
        return None
    rows = above.pop().node
    while above and _pass_by_themselves(above[-1]):
        rows = above.pop().node
    if not above:
        return Piecewise(rows, table)
    if not above[-1].node.BY_POSITION:
        rows = _only(rows, _needed(plan, above))
    ids = NewIds()
    ids.avoid(walk_plan(plan))
    match above[-1].node:
        case Aggregate() as groups if _is_mergeable(groups, rows):
            return _groups_by_pieces(groups, rows, table, above[:-1], ids)
        case Limit(limit=int(limit), offset=offset):
            return Piecewise(rows, table, None, _put_below(above), limit + offset)
        case Sort() as sort if len(above) > 1:
            match above[-2].node:
                case Limit(limit=int(limit), offset=offset):
                    first = _first_rows(sort, limit + offset)
                    return Piecewise(first(rows), table, first, _put_below(above))
    return None if isinstance(rows, Scan) else Piecewise(rows, table, None, _put_below(above))


def _above(plan: LogicalPlan, table: TableSource) -> list[_Place]:
    """The nodes from the root to the only scan of the table, which is the last; nothing where there are several."""
    found: list[list[_Place]] = []

    def descend(node: LogicalPlan, above: list[_Place]) -> None:
        if isinstance(node, Scan) and node.table is table:
            found.append([*above, _Place(node, 0)])
        for which, below in enumerate(node.inputs):
            if any(isinstance(each, Scan) and each.table is table for each in walk_plan(below)):
                descend(below, [*above, _Place(node, which)])

    descend(plan, [])
    return found[0] if len(found) == 1 else []


def _pass_by_themselves(place: _Place) -> bool:
    """Whether what comes of a row does not depend on the other rows."""
    match place.node:
        case Filter() | Project() | Unnest():
            return True
        case Join(join_type=join_type) as join:
            if WorkingRows in join.inputs[1 - place.which].kinds:
                return False  # other ones in each iteration
            return join_type is JoinType.INNER or (join_type is not JoinType.FULL and place.which == 0)
    return False


def _needed(plan: LogicalPlan, above: Sequence[_Place]) -> Ids:
    """The columns of the rows that what stands above them reads."""
    needed: Ids = plan.output_ids
    for node, which in above:
        needed = node.needs(needed)[which]
    return needed


def _only(rows: LogicalPlan, needed: Ids) -> LogicalPlan:
    kept = [field.id for field in rows.schema if field.id in needed]
    return rows if len(kept) == len(rows.schema) else pass_through(rows, kept)


def _put_below(above: Sequence[_Place]) -> Step:
    """What stands above the rows, as a step."""

    def step(rows: LogicalPlan) -> LogicalPlan:
        for node, which in reversed(above):
            inputs = list(node.inputs)
            inputs[which] = rows
            rows = node.with_inputs(inputs)
        return rows

    return step


def _first_rows(sort: Sort, number: int) -> Step:
    return lambda rows: Limit(Sort(rows, sort.keys), number)


def _is_mergeable(groups: Aggregate, rows: LogicalPlan) -> bool:
    return all(is_mergeable(call, rows.field_facts, MOST_ROWS) for call in groups.aggregates)


def _groups_by_pieces(
    groups: Aggregate, rows: LogicalPlan, table: TableSource, above: Sequence[_Place], ids: NewIds
) -> Piecewise:
    """Groups of the rows of each piece, and of these groups."""
    fields, keys = rows.field_facts, tuple(map(reference, groups.key_fields))
    parts = tuple(dict.fromkeys(part for call in groups.aggregates for part in parts_of(call)))
    of_piece = _fields_of(parts, ids)
    plan = Aggregate(rows, groups.key_fields, groups.keys, of_piece, parts)
    calls = tuple(merged(part, reference(field)) for part, field in zip(parts, of_piece, strict=True))
    of_pieces = _fields_of(parts, ids)
    values = dict(zip(parts, map(reference, of_pieces), strict=True))
    results = [
        result_of(
            call, [values[part] for part in parts_of(call)], groups.aggregates, bool(groups.keys), fields
        )
        for call in groups.aggregates
    ]

    def merge(rows: LogicalPlan) -> LogicalPlan:
        return Aggregate(rows, groups.key_fields, keys, of_pieces, calls)

    def rest(rows: LogicalPlan) -> LogicalPlan:
        return _put_below(above)(Project(merge(rows), groups.schema, (*keys, *results)))

    return Piecewise(plan, table, merge, rest)


def _fields_of(calls: Sequence[AggregateCall], ids: NewIds) -> Schema:
    return tuple(ids.new_field(call.function, call.data_type) for call in calls)
