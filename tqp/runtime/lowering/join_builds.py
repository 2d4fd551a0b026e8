"""Lowering of a join's build side: what it stores, which columns stay where they are, and what the probe side may ask."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import BOOLEAN
from tqp.core.schema import Field
from tqp.operators.join_bucket import build_buckets
from tqp.operators.join_directory import build_directory
from tqp.operators.join_lookup import build_lookup, build_membership
from tqp.operators.join_sort import build_sorted
from tqp.planner import physical_plan as physical
from tqp.planner.expressions import Call, ColumnRef, Expression, column_ids
from tqp.planner.logical_plan import JoinType
from tqp.planner.physical_plan import JoinAlgorithm, KeyPacking
from tqp.runtime.breakers.collect import BuildJoin
from tqp.runtime.breakers.scatter_build import ScatterBuild
from tqp.runtime.lowering.keys import hashed_key, key_validity, lower_values, packed_key
from tqp.runtime.lowering.layouts import Form, Layout
from tqp.runtime.lowering.stream import StoredColumn, Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering


_EXISTENCE = (JoinType.SEMI, JoinType.ANTI, JoinType.MARK, JoinType.NULL_AWARE_ANTI)


@dataclass(frozen=True, slots=True)
class JoinSlot:
    """A finished build side: the build (None for nested loops), its columns, and what may be asked of it."""

    build: str
    payload: str
    columns: dict[int, tuple[Field, StoredColumn]]
    packing: KeyPacking | None
    null_equal: tuple[bool, ...]
    residual: tuple[Expression, ...]  # with the comparison of hashed keys


def lower_build(plan: PlanLowering, node: physical.Join) -> tuple[JoinSlot, list[tuple[int, Expression]]]:
    """Lower the build side; also the hidden columns by which the probe compares keys that were hashed."""
    program = plan.program
    stream = plan.lower(node.build)
    lowering = plan.enter(stream, node)
    wanted = {f.id for f in node.fields}.union(*(column_ids(part) for part in node.residual))
    fields = [f for f in node.build.fields if f.id in wanted]
    residual = list(node.residual)
    hidden: list[tuple[int, Expression]] = []
    algorithm = node.algorithm
    values: list[Value] = []
    if algorithm is not JoinAlgorithm.NESTED_LOOP:
        values = lower_values(lowering, node.build_keys)
    if algorithm is not JoinAlgorithm.NESTED_LOOP and node.packing is None:
        for position, (probe_key, build_key) in enumerate(zip(node.probe_keys, node.build_keys, strict=True)):
            probe_id, build_id = program.hidden_id(), program.hidden_id()
            hidden.append((probe_id, probe_key))
            name = f"build_key_{position}"
            stream.add_computed_column(build_id, name, values[position])
            field = Field(build_id, name, build_key.data_type)
            stream.fields[build_id] = field
            fields.append(field)
            compare = "is_not_distinct_from" if node.null_equal[position] else "equal"
            pair = (ColumnRef(probe_id, probe_key.data_type), ColumnRef(build_id, build_key.data_type))
            residual.append(Call(compare, pair, BOOLEAN))
    build_slot, payload = program.slot("join"), program.slot("join_rows")
    stored: dict[int, tuple[Field, StoredColumn]] = {}
    outputs: list[Value] = []
    if algorithm is not JoinAlgorithm.NESTED_LOOP:
        key = (
            packed_key(lowering, values, node.packing)
            if node.packing is not None
            else hashed_key(lowering, values, node.null_equal)
        )
        validity = key_validity(lowering, values, node.null_equal)
        layout = Layout(BOOLEAN, Form.NUMBER, torch.int64, validity is not None)
        outputs.append(Value(layout, key, validity))
    existence_only = node.join_type in _EXISTENCE and not residual
    sources = {field.id: stream.root_source(field.id) for field in fields}
    if node.algorithm is JoinAlgorithm.LOOKUP and _scatters(
        plan, node, stream, existence_only, sources.values()
    ):
        assert node.packing is not None
        for field in () if existence_only else fields:
            source = sources[field.id]
            assert source is not None
            stored[field.id] = (field, source)
        if not existence_only:
            row_layout = Layout(BOOLEAN, Form.NUMBER, torch.int64, False)
            outputs.append(Value(row_layout, stream.root_rows()))
        scatter = ScatterBuild(build_slot, node.packing.size, existence_only, program.device, algorithm.value)
        program.close(stream, outputs, scatter, f"build side of the {algorithm.value}")
        return JoinSlot(build_slot, payload, stored, node.packing, node.null_equal, tuple(residual)), hidden
    shift = len(outputs)
    for field in fields:
        source = stream.stored_source(field.id)
        if source is None:
            value = lowering.materialise(stream.column(field.id))
            source = StoredColumn(value.layout, payload, len(outputs) - shift)
            outputs.append(value)
        stored[field.id] = (field, source)
    breaker = BuildJoin(build_slot, payload, _build_function(node, existence_only), algorithm.value)
    program.close(stream, outputs, breaker, f"build side of the {algorithm.value}")
    return JoinSlot(build_slot, payload, stored, node.packing, node.null_equal, tuple(residual)), hidden


def _scatters(
    plan: PlanLowering,
    node: physical.Join,
    stream: Stream,
    existence_only: bool,
    sources: Iterable[StoredColumn | None],
) -> bool:
    """Can the build be a table that all workers fill, its columns staying in the source of the build side?"""
    if existence_only:
        return node.join_type in (JoinType.SEMI, JoinType.ANTI)
    table = plan.program.tables.get(stream.source_slot)
    fits = table is not None and table.source.num_rows < 2**31
    return fits and all(source is not None for source in sources)


def _build_function(node: physical.Join, existence_only: bool) -> Callable[..., Any] | None:
    match node.algorithm:
        case JoinAlgorithm.NESTED_LOOP:
            return None
        case JoinAlgorithm.LOOKUP | JoinAlgorithm.DIRECTORY:
            assert node.packing is not None
            build = build_lookup if node.algorithm is JoinAlgorithm.LOOKUP else build_directory
            return functools.partial(_sized, build_membership if existence_only else build, node.packing.size)
        case JoinAlgorithm.BUCKET:
            return build_buckets
        case _:
            return build_sorted


def _sized(build: Callable[..., Any], size: int, keys: torch.Tensor, validity: torch.Tensor | None) -> Any:
    return build(keys, size, validity)
