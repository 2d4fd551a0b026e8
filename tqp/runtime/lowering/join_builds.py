"""Lowering of a join's build side: what it stores, which columns stay where they are, and what the probe side may ask."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import field as dataclass_field
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import BIGINT, BOOLEAN
from tqp.core.frozen import dataclass
from tqp.core.schema import Field
from tqp.operators.joins.hash_join import build_hash
from tqp.operators.joins.nearest_join import build_nearest
from tqp.operators.joins.perfect_hash_join import build_dense, build_membership, build_perfect_hash
from tqp.operators.joins.range_join import build_ranges
from tqp.operators.joins.sort_join import build_sorted
from tqp.operators.joins.string_join import build_strings
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, column_ids
from tqp.planner.algebra.join_keys import KEEPS_RIGHT, LEFT_ONLY, THREE_VALUED
from tqp.planner.algebra.logical_plan import JoinType
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.physical import plan as physical
from tqp.planner.physical.plan import JoinAlgorithm, KeyPacking
from tqp.runtime.breakers.collect import BuildJoin
from tqp.runtime.breakers.scatter_build import ScatterBuild
from tqp.runtime.lowering.keys import (
    hashed_key,
    is_exact,
    key_validity,
    lower_join_keys,
    packed_key,
    sorted_words,
)
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout
from tqp.runtime.lowering.stream import Space, StoredColumn, Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering
    from tqp.runtime.lowering.plan import PlanLowering


#: Several columns stand in tables by key where these have no more entries, or no more for a build row: a table of 6 million keys
#: takes 5 ms before it is first used, and one of them, of positions, does for all columns.
_FEW_ENTRIES, _MOST_ENTRIES = 1 << 22, 64


@dataclass(frozen=True, slots=True)
class JoinSlot:
    """A finished build side: the build (None for nested loops), its columns, and what may be asked of it.

    With `by_key` the columns of `columns` stand under their row's key. `positions`, if not None, is such a column too:
    the row of the source in which `in_source` stand. `has_keys`: whether any build row has a key; for probe keys that may raise.
    """

    build: str
    payload: str
    columns: dict[int, tuple[Field, StoredColumn]]
    packing: KeyPacking | None
    null_equal: tuple[bool, ...]
    residual: tuple[Expression, ...]  # with the comparison of hashed keys
    has_keys: str | None = None
    exact: bool = False  # a key that is not packed is not hashed either, but a word of 64 bits, or strings
    by_key: bool = False
    in_source: dict[int, tuple[Field, StoredColumn]] = dataclass_field(default_factory=dict)
    positions: StoredColumn | None = None

    def add_columns(self, stream: Stream, space: Space) -> None:
        """The columns of a build side for the stream, over a space of its rows."""
        for field, stored in self.columns.values():
            stream.add_source_column(field.id, field.name, stored, space)
            stream.fields[field.id] = field


def lower_build(plan: PlanLowering, node: physical.Join) -> tuple[JoinSlot, list[tuple[int, Expression]]]:
    """Lower the build side; also the hidden columns by which the probe compares keys that were hashed."""
    program = plan.program
    stream = plan.lower(node.build)
    lowering = plan.enter(stream, node)
    same = same_as_probe(node)
    wanted = {f.id for f in node.fields}.union(*(column_ids(part) for part in node.residual))
    fields = [f for f in node.build.fields if f.id in wanted and f.id not in same]
    if node.indexed:
        return _index(plan, node, stream, fields), []
    residual = list(node.residual)
    hidden: list[tuple[int, Expression]] = []
    algorithm = node.algorithm
    values: list[Value] = []
    by_equality = algorithm is not JoinAlgorithm.NESTED_LOOP and not node.bounds
    if by_equality:
        values = lower_join_keys(plan, lowering, node.build_keys, node.packing)
    exact = algorithm is JoinAlgorithm.STRINGS or (
        node.packing is None and is_exact(node.probe_keys, node.build_keys, node.null_equal)
    )
    if by_equality and node.packing is None and not exact:
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
    outputs: list[Value] = _sorted_keys(plan, lowering, node) if node.bounds else []
    if by_equality:
        key = (
            packed_key(lowering, values, node.packing)
            if node.packing is not None
            else hashed_key(lowering, values, node.null_equal, exact=exact)
        )
        validity = key_validity(lowering, values, node.null_equal)
        if algorithm is JoinAlgorithm.STRINGS:
            layout = canonical_layout(node.build_keys[0].data_type, validity is not None)
        else:
            layout = Layout(BOOLEAN, Form.NUMBER, torch.int64, validity is not None)
        outputs.append(Value(layout, key, validity))
    has_keys = program.slot("has_keys") if _probe_may_raise(node) else None
    slot = JoinSlot(build_slot, payload, {}, node.packing, node.null_equal, tuple(residual), has_keys, exact)
    existence_only = node.join_type in LEFT_ONLY and not residual
    title = f"build side of the {algorithm.value}"
    if algorithm is JoinAlgorithm.PERFECT_HASH and node.join_type not in (*THREE_VALUED, *KEEPS_RIGHT):
        in_tables = _by_key(plan, node, lowering, [] if existence_only else fields, slot)
        if in_tables is not None:
            by_key, found = in_tables
            assert node.packing is not None
            columns = [(value.layout.dtype, value.layout.nullable) for value in by_key]
            padded = node.join_type in (JoinType.LEFT, JoinType.SINGLE)
            scatter = ScatterBuild(
                build_slot,
                payload,
                node.packing.size,
                columns,
                padded,
                program.device,
                algorithm.value,
                has_keys,
            )
            program.close(stream, [*outputs, *by_key], scatter, title)
            return found, hidden
    shift = len(outputs)
    for field in fields:
        source = stream.stored_source(field.id)
        if source is None:
            value = lowering.materialise(stream.column(field.id))
            source = StoredColumn(value.layout, payload, len(outputs) - shift)
            outputs.append(value)
        slot.columns[field.id] = (field, source)
    build = _build_function(node, existence_only)
    breaker = BuildJoin(payload, build_slot, build, algorithm.value, max(1, shift), has_keys)
    program.close(stream, outputs, breaker, title)
    return slot, hidden


def _probe_may_raise(node: physical.Join) -> bool:
    """Can computing the key of a probe row fail? Where no build row has a key it must not: nothing is compared with it."""
    keys = (*node.probe_keys, *(bound.probe for bound in node.bounds))
    if all(isinstance(key, ColumnRef) for key in keys):
        return False
    fields = {field.id: field for field in node.probe.fields}
    return any(may_raise(key, fields) for key in keys)


def _sorted_keys(plan: PlanLowering, lowering: ExpressionLowering, node: physical.Join) -> list[Value]:
    """The words by which the build rows of a range or nearest join are sorted; valid, all, where none of their keys is NULL."""
    keys = dict.fromkeys((*node.build_keys, *(bound.build for bound in node.bounds)))
    words, validity = sorted_words(plan, lowering, list(keys), node.packing)
    layout = Layout(BIGINT, Form.NUMBER, torch.int64, validity is not None)
    return [Value(layout, word, validity) for word in words]


def _index(plan: PlanLowering, node: physical.Join, stream: Stream, fields: list[Field]) -> JoinSlot:
    """A table that stays where it is, as the build side of a join on a column that has an index, or a set of its values."""
    (key,), packing = node.build_keys, node.packing
    assert isinstance(key, ColumnRef) and packing is not None
    source = {field.id: (field, stream.stored_source(field.id)) for field in fields}
    columns = {id: (field, stored) for id, (field, stored) in source.items() if stored is not None}
    key_source = stream.stored_source(key.id)
    assert key_source is not None and len(columns) == len(fields), "an indexed build side is a table"
    of_column = plan.program.key_set_of if node.asks_for_keys else plan.program.index_of
    build = of_column(key_source, packing.parts[0].minimum, packing.size)
    return JoinSlot(build, stream.source_slot, columns, packing, node.null_equal, node.residual)


def same_as_probe(node: physical.Join) -> dict[int, int]:
    """Build columns (by id) that are keys of an inner join, and so equal to a column of the probe side."""
    if node.join_type is not JoinType.INNER:
        return {}
    return {
        build_key.id: probe_key.id
        for probe_key, build_key in zip(node.probe_keys, node.build_keys, strict=True)
        if isinstance(probe_key, ColumnRef)
        and isinstance(build_key, ColumnRef)
        and probe_key.data_type == build_key.data_type
        and probe_key.data_type.is_integer_like
    }


def _by_key(
    plan: PlanLowering, node: physical.Join, lowering: ExpressionLowering, fields: list[Field], slot: JoinSlot
) -> tuple[list[Value], JoinSlot] | None:
    """The columns of a build by key and where the probe side finds them; None if they do not fit into such tables, or hardly fill them.

    The columns themselves where the plan says so; else the row of the source they stand in, if that is a table.
    """
    stream = lowering.stream
    table = plan.program.tables.get(stream.source_slot)
    reaches_rows = table is not None and table.source.num_rows < 2**31
    values: list[Value] = []
    columns: dict[int, tuple[Field, StoredColumn]] = {}
    in_source: dict[int, tuple[Field, StoredColumn]] = {}
    for field in fields:
        source = stream.root_source(field.id) if reaches_rows else None
        is_flat = stream.columns[field.id].layout.form in (Form.NUMBER, Form.CODES)
        if source is not None and not (node.by_key and is_flat):
            in_source[field.id] = (field, source)
        elif is_flat:
            value = lowering.materialise(stream.column(field.id))
            columns[field.id] = (field, StoredColumn(value.layout, slot.payload, len(values)))
            values.append(value)
        else:
            return None
    positions = None
    if in_source:
        positions = StoredColumn(Layout(BIGINT, Form.NUMBER, torch.int32, False), slot.payload, len(values))
        values.append(Value(positions.layout, stream.root_rows()))
    assert node.packing is not None
    entries = len(values) * node.packing.size
    if len(values) > 1 and entries > max(_FEW_ENTRIES, _MOST_ENTRIES * node.build.estimated_rows):
        return None
    return values, replace(slot, columns=columns, by_key=True, in_source=in_source, positions=positions)


def _build_function(node: physical.Join, existence_only: bool) -> Callable[..., Any] | None:
    match node.algorithm:
        case JoinAlgorithm.NESTED_LOOP:
            return None
        case JoinAlgorithm.PERFECT_HASH | JoinAlgorithm.OFFSET_ARRAY:
            assert node.packing is not None
            build: Callable[..., Any] = build_dense
            if existence_only:
                build = build_membership
            elif node.algorithm is JoinAlgorithm.PERFECT_HASH:
                build = build_perfect_hash
            size = node.packing.size
            return lambda keys, validity, workers: build(keys, size, validity, workers.map)
        case JoinAlgorithm.HASH:
            return build_hash
        case JoinAlgorithm.RANGE:
            comparisons = [bound.comparison for bound in node.bounds]
            return lambda keys, validity, workers: build_ranges(
                comparisons, keys if isinstance(keys, list) else [keys], validity
            )
        case JoinAlgorithm.NEAREST:
            (bound,) = node.bounds
            return lambda keys, validity, workers: build_nearest(
                bound.comparison, keys if isinstance(keys, list) else [keys], validity
            )
        case JoinAlgorithm.STRINGS:
            return functools.partial(build_strings, existence_only=existence_only)
        case JoinAlgorithm.SORT:
            return lambda keys, validity, workers: build_sorted(keys, validity)
