"""Lowering of runtime filters: rows go whose keys the build side of a later join lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tqp.operators.joins.run_rows import rows_in_build
from tqp.operators.rows import selection as row_kernels
from tqp.planner.algebra.expressions import ColumnRef, Expression
from tqp.planner.physical import plan as physical
from tqp.runtime.lowering.column_keys import contains_column
from tqp.runtime.lowering.graph_builder import listed
from tqp.runtime.lowering.join_builds import JoinSlot
from tqp.runtime.lowering.keys import hashed_key, key_validity, lower_values, packed_key, range_checks
from tqp.runtime.lowering.stream import InputKind, Stream
from tqp.runtime.lowering.zones import drop_early

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering


def lower_runtime_filter(plan: PlanLowering, node: physical.RuntimeFilter) -> Stream:
    """The input's rows whose keys the join's build side has."""
    stream = plan.lower(node.input)
    join = plan.joins[node.join]
    lowering = plan.enter(stream, node, settle=False)
    build = stream.builder
    drop_early(plan, stream, node.input, node.keys, join)
    source_keys = can_defer(stream, node.keys, join.packing)
    if not source_keys:
        stream.settle()
    with build.fragment("runtime filter on ", *listed(node.keys, ", ")):
        if node.by_runs and source_keys and plan.program.on_host:
            _keep_runs(plan, stream, node, join)
            return stream
        values = lower_values(lowering, node.keys)
        validity = key_validity(lowering, values, join.null_equal)
        if join.packing is not None:
            inside = range_checks(lowering, values, join.packing)
            if inside is not None:
                stream.keep(build.call(row_kernels.row_indices, inside, validity, name="rows"))
                values = lower_values(lowering, node.keys)
                validity = key_validity(lowering, values, join.null_equal)
        mask = contains_column(lowering, node.keys, join)
        if mask is None:
            if join.packing is None:
                key = hashed_key(lowering, values, join.null_equal, exact=join.exact)
            else:
                key = packed_key(lowering, values, join.packing)
            mask = build.method("contains", stream.object(join.build), key, validity)
    stream.filter(mask, node.estimated_rows / max(1.0, node.input.estimated_rows))
    return stream


def _keep_runs(plan: PlanLowering, stream: Stream, node: physical.RuntimeFilter, join: JoinSlot) -> None:
    """Go on with the rows of a table whose runs of equal keys the build side has."""
    (key,), packing = node.keys, join.packing
    assert isinstance(key, ColumnRef) and packing is not None and len(packing.parts) == 1
    stored, part = stream.stored_source(key.id), packing.parts[0]
    assert stored is not None, "runs are looked up before rows are dropped"
    first_row = stream.input("first_row", InputKind.FIRST_ROW)
    rows = stream.builder.call(
        rows_in_build,
        stream.object(plan.program.runs_of(stored)),
        (part.minimum, part.span, part.nullable),
        stream.object(join.build),
        first_row,
        stream.num_rows(),
        name="rows",
    )
    stream.keep(rows)


def can_defer(stream: Stream, keys: Sequence[Expression], packing: physical.KeyPacking | None) -> bool:
    """Can keys be looked up for rows that a pending mask drops? Those of the source, whose range the table covers."""
    if packing is None:
        return False
    for key, part in zip(keys, packing.parts, strict=True):
        stored = stream.root_source(key.id) if isinstance(key, ColumnRef) else None
        known = None if stored is None else stored.layout.value_range
        if known is None or known[0] < part.minimum or known[1] >= part.minimum + part.span - part.nullable:
            return False
    return True
