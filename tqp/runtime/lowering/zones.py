"""Rows of a table that a pipeline leaves out early: of zones, or by look-ups, of which a filter, join or top-k on the way keeps none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tqp.operators.joins.column_keys import values_in_build
from tqp.planner.algebra.expressions import (
    Call,
    ColumnRef,
    Constant,
    Expression,
    InList,
    Literal,
    Parameter,
)
from tqp.planner.algebra.known_fields import KnownFields
from tqp.planner.algebra.logical_plan import JoinType
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.functions.conditions import LOWER, MIRRORED, UPPER
from tqp.planner.physical import plan as physical
from tqp.planner.physical.runtime_filters import FEWEST_ZONED_ROWS
from tqp.runtime.lowering.join_builds import JoinSlot
from tqp.runtime.lowering.layouts import Form
from tqp.runtime.lowering.stream import StoredColumn, Stream
from tqp.runtime.zone_filters import KeyFilter, RangeFilter
from tqp.runtime.zone_order import ZoneOrder

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering


def drop_early(
    plan: PlanLowering,
    stream: Stream,
    below: physical.PhysicalPlan,
    keys: Sequence[Expression],
    join: JoinSlot,
) -> None:
    """Have the stream's pipeline read only zones that may have a key of the build side, by its first column, and the first of
    its look-ups know those that come later.

    `below` gives the rows that are asked.

    For a join or filter that drops the others. Nothing on the way from the table may raise for a row, or see other rows.
    """
    packing = join.packing
    if packing is None or any(join.null_equal):
        return
    key, part = keys[0], packing.parts[0]
    stored = _zoned(plan, stream, key)
    if stored is None or part.dictionary is not None or part.nullable:
        return
    if not _only_drops(below):
        return
    zones = plan.program.zones_of(stored)
    if zones is not None:
        stream.zone_filters.append(KeyFilter(zones, part.minimum, packing.size // part.span, join.build))
    if len(packing.parts) == 1:
        assert isinstance(key, ColumnRef)
        value = stream.columns[key.id].available[stream.root]
        known = part.minimum, part.span, part.nullable
        stream.asked.append((value.node, value.validity, known, stream.object(join.build)))


def skip_zones(plan: PlanLowering, stream: Stream, node: physical.Filter) -> None:
    """Have the stream's pipeline read only zones whose columns may have values that the filter compares with."""
    table = plan.program.tables.get(stream.source_slot)
    if table is None or table.source.num_rows < FEWEST_ZONED_ROWS:
        return
    found = [named for conjunct in node.conjuncts if (named := _ranges_named(conjunct)) is not None]
    stored = {each.column.id: _zoned(plan, stream, each.column) for each in found}
    if not any(stored.values()) or not _only_drops(node):
        return
    for each in found:
        column = stored[each.column.id]
        zones = None if column is None else plan.program.zones_of(column)
        if zones is not None:
            ranges = plan.program.parameter(each.constants, ("ranges", each.function), each.given)
            stream.zone_filters.append(RangeFilter(zones, ranges))


class _Ranges(NamedTuple):
    """What a predicate says that a column's values are: by a comparison, or as one of the constants ("equal")."""

    column: ColumnRef
    function: str
    constants: Sequence[Constant]

    def given(self, *values: int) -> npt.NDArray[np.int64]:
        """[n, 2]: the ends of the ranges, in order."""
        ends = np.array([_ends(self.function, value) for value in sorted(values)], object)
        return ends.clip(*_INT64).astype(np.int64)


_INT64 = -(2**63), 2**63 - 1


def _ends(function: str, value: int) -> tuple[int, int]:
    """The least and the greatest integer for which a comparison with the value may hold."""
    least, greatest = _INT64
    match function:
        case "less" | "less_equal":
            return least, value - (function == "less")
        case "greater" | "greater_equal":
            return value + (function == "greater"), greatest
    return value, value


_OF_RANGES = LOWER | UPPER | {"equal"}


def _ranges_named(predicate: Expression) -> _Ranges | None:
    match predicate:
        case Call(function, sides) if function in _OF_RANGES:
            column, constant = sides
            if isinstance(constant, ColumnRef):
                column, constant, function = constant, column, MIRRORED[function]
            values: Sequence[Expression] = (constant,)
        case InList(column, values):
            function = "equal"
        case _:
            return None
    constants = [value for value in values if isinstance(value, Literal | Parameter)]
    if not isinstance(column, ColumnRef) or len(constants) < len(values):
        return None
    examples = [each.value if isinstance(each, Literal) else each.example for each in constants]
    if any(each.data_type != column.data_type for each in constants) or {*map(type, examples)} != {int}:
        return None
    return _Ranges(column, function, tuple(constants))


def read_best_first(plan: PlanLowering, stream: Stream, node: physical.Sort) -> str | None:
    """The slot of the zones of the first key of a top-k, if the stream's pipeline may read the best zones first and leave out those
    that come after the rows it has by then; None if it may not."""
    key = node.keys[0]
    stored = _zoned(plan, stream, key.expression)
    if stored is None or (stored.layout.nullable and key.nulls_first) or not _only_drops(node.input):
        return None
    fields = KnownFields(node.input.field_facts)
    if any(may_raise(each.expression, fields) for each in node.keys[1:]):
        return None
    zones = plan.program.zones_of(stored)
    if zones is not None:
        stream.zone_order = ZoneOrder(zones, key.descending)
    return zones


def _zoned(plan: PlanLowering, stream: Stream, key: Expression) -> StoredColumn | None:
    """Where a key is stored, if it is a column of integers of the pipeline's table, and that has many rows in main memory."""
    program = plan.program
    stored = stream.root_source(key.id) if program.on_host and isinstance(key, ColumnRef) else None
    if stored is None or stored.slot not in program.tables or stored.implicit:
        return None
    layout = stored.layout
    is_integer = (
        layout.form is Form.NUMBER and layout.data_type.is_integer_like and layout.dtype is not torch.bool
    )
    has_many = program.tables[stored.slot].source.num_rows >= FEWEST_ZONED_ROWS
    return stored if is_integer and has_many else None


def ask_together(stream: Stream) -> None:
    """Tell the first look-up of all rows of the source what is asked of them later; see `values_in_build`."""
    for node in stream.builder.calls_of(values_in_build):
        if node.arguments in stream.asked:
            also = [each for each in stream.asked if each[3] is not node.arguments[3]]
            if also:
                node.add_argument(also)
            return


def _only_drops(plan: physical.PhysicalPlan) -> bool:
    """Are the plan's rows those of a table, of which filters and joins that raise for no row left some?"""
    while True:
        match plan:
            case physical.TableScan():
                return True
            case physical.RuntimeFilter():
                conditions: Sequence[Expression] = plan.keys
                below = plan.input
            case physical.Filter():
                conditions, below = plan.conjuncts, plan.input
            case physical.Project():
                conditions, below = plan.outputs, plan.input
            case physical.Join(join_type=JoinType.INNER | JoinType.SEMI):
                conditions, below = (*plan.probe_keys, *plan.residual), plan.probe
                if plan.bounds:
                    return False
            case _:
                return False
        fields = KnownFields(below.field_facts)
        if isinstance(plan, physical.Join):
            fields.update(plan.build.field_facts)
        if any(may_raise(each, fields) for each in conditions if not isinstance(each, ColumnRef)):
            return False
        plan = below
