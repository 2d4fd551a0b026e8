"""Lowering of joins: the build side ends in a build, the probe side goes on with the rows that match."""

from __future__ import annotations

import itertools
import operator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import BOOLEAN
from tqp.core.schema import Field
from tqp.operators.joins import pairs as join_pairs
from tqp.operators.numbers import elementwise
from tqp.operators.rows import batches
from tqp.operators.rows import selection as row_kernels
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, column_ids, conjunction
from tqp.planner.algebra.join_keys import DROPS_LEFT, KEEPS_RIGHT, THREE_VALUED
from tqp.planner.algebra.logical_plan import JoinType
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.physical import plan as physical
from tqp.planner.physical.plan import JoinAlgorithm
from tqp.runtime.lowering.column_keys import contains_column, key_of_valid
from tqp.runtime.lowering.expressions.scalars import ExpressionLowering
from tqp.runtime.lowering.full_joins import with_unmet_rows
from tqp.runtime.lowering.graph_builder import Node, listed
from tqp.runtime.lowering.join_builds import JoinSlot, lower_build, same_as_probe
from tqp.runtime.lowering.keys import (
    hashed_key,
    key_validity,
    lower_join_keys,
    lower_values,
    packed_key,
    sorted_words,
)
from tqp.runtime.lowering.layouts import Form, canonical_layout
from tqp.runtime.lowering.runtime_filters import can_defer
from tqp.runtime.lowering.stream import InputKind, Link, Space, Stream, Value
from tqp.runtime.lowering.zones import drop_early

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering


def lower_join(plan: PlanLowering, node: physical.Join) -> Stream:
    """The rows of the join, in the order of the probe side; of a full or right one, then the build rows that none has met."""
    node, original = _comparable(node), node
    drops = node.join_type in DROPS_LEFT and not node.all_match
    probe_first = not drops
    if plan.has_runtime_filters:
        probe_first = _build_needs_probe(node) or not (drops or _probe_needs_build(node))
    stream = plan.lower(node.probe) if probe_first else None
    keeps_build = node.join_type in KEEPS_RIGHT  # even if there is no probe row
    with nullcontext() if stream is None or keeps_build else plan.needing_rows_of(stream):
        slot, hidden = lower_build(plan, node)
    plan.joins[node.identifier] = slot
    needs: set[str] = {slot.build if slot.by_key else slot.payload} if drops else set()
    if stream is None:
        with plan.needing(plan.needs | needs):
            stream = plan.lower(node.probe)
    if drops and node.has_keys:
        drop_early(plan, stream, node.probe, node.probe_keys, slot)
    defers = _defers(node) and can_defer(stream, node.probe_keys, node.packing)
    if (
        node.all_match and stream.space is not stream.root
    ):  # nothing to drop by, and the key has to be gathered
        defers = False
    lowering = plan.enter(stream, node, settle=not defers)
    conditions = [Call("equal", pair, BOOLEAN) for pair in zip(node.probe_keys, node.build_keys, strict=True)]
    conditions += [Call(bound.comparison, (bound.build, bound.probe), BOOLEAN) for bound in node.bounds]
    parts = listed(conditions, " AND ") or ["every pair"]
    probe = _Probe(plan, lowering, node, slot, hidden)
    with stream.builder.fragment(f"{node.join_type.value} join on ", *parts):
        probe.lower()
    stream.needs |= needs
    stream.builder.operator = id(original)
    return with_unmet_rows(plan, lowering, node, slot, probe.build_space) if keeps_build else stream


def _defers(node: physical.Join) -> bool:
    """Is the join one look-up by a bare key, which may come before the rows are selected?"""
    kinds = (JoinType.INNER, JoinType.SEMI, JoinType.ANTI)
    return node.algorithm is JoinAlgorithm.PERFECT_HASH and node.join_type in kinds and not node.residual


def _build_needs_probe(node: physical.Join) -> bool:
    """Has the build side a runtime filter on a join of the probe side, which then has to be built before?"""
    wanted = _filtered_by(node.build)
    return bool(wanted) and not wanted.isdisjoint(_joins(node.probe))


def _probe_needs_build(node: physical.Join) -> bool:
    """Has the probe side a runtime filter on this join, or on one of the build side?"""
    wanted = _filtered_by(node.probe)
    return bool(wanted) and not wanted.isdisjoint({node.identifier, *_joins(node.build)})


def _filtered_by(side: physical.PhysicalPlan) -> set[int]:
    """The joins that runtime filters of a side are on; not those of the side: what both sides share is complete in itself."""
    wanted = {below.join for below in walk_plan(side) if isinstance(below, physical.RuntimeFilter)}
    return wanted and wanted.difference(_joins(side))


def _joins(side: physical.PhysicalPlan) -> set[int]:
    return {below.identifier for below in walk_plan(side) if isinstance(below, physical.Join)}


#: Algorithms that find one build row of each probe row.
_OF_ONE_ROW = (JoinAlgorithm.PERFECT_HASH, JoinAlgorithm.NEAREST)


class _Probe:
    """The probe side of one join, on a stream whose current rows are the probe rows."""

    def __init__(
        self,
        plan: PlanLowering,
        lowering: ExpressionLowering,
        node: physical.Join,
        slot: JoinSlot,
        hidden: list[tuple[int, Expression]],
    ) -> None:
        self.plan, self.lowering, self.node, self.slot = plan, lowering, node, slot
        self.stream, self.build = lowering.stream, lowering.stream.builder
        self.build_space = Space()
        for id, expression in hidden:
            with self._if_sought():
                key = lowering.materialised(expression)
            self.stream.add_computed_column(id, "probe_key", key)
            self.stream.fields[id] = Field(id, "probe_key", expression.data_type)
        self.probe_space = self.stream.space

    def lower(self) -> None:
        node = self.node
        is_loop = node.algorithm is JoinAlgorithm.NESTED_LOOP
        unique = node.algorithm in _OF_ONE_ROW or (is_loop and node.build.max_rows <= 1)
        match node.join_type:
            case JoinType.INNER | JoinType.RIGHT if unique:
                self._inner_unique()
            case JoinType.LEFT | JoinType.FULL | JoinType.SINGLE if unique and not self.slot.residual:
                self._add_build_columns()
                one = self._matches_one_row()
                match = Link(self.build_space, self._first_match(), padded=not one, repeated=one)
                self.stream.link(Link(self.probe_space), match)
            case JoinType.SEMI if node.all_match:
                return
            case JoinType.SEMI | JoinType.ANTI:
                self._keep(self._found(), node.join_type is JoinType.SEMI)
            case JoinType.MARK | JoinType.NULL_AWARE_ANTI:
                self._mark()
            case JoinType.LEFT | JoinType.FULL if not self.slot.residual and not is_loop:
                self._padded_pairs()
            case _:
                self._through_pairs()

    # matches

    def _if_sought(self) -> AbstractContextManager[None]:
        """What is lowered here raises for no row if no build row has a key."""
        has_keys, stream = self.slot.has_keys, self.stream
        if has_keys is None:
            return nullcontext()
        return self.lowering.only_where(
            lambda: [
                self.build.call(
                    batches.all_or_none, stream.object(has_keys), stream.num_rows(), stream.object("device")
                )
            ]
        )

    def _keys(self) -> tuple[Any, Node | None]:
        """The probe rows' key, or their words for each bound of a range or nearest join; and which rows can match."""
        node = self.node
        if node.bounds:
            with self._if_sought():
                keys = (*node.probe_keys, *(bound.probe for bound in node.bounds))
                return sorted_words(self.plan, self.lowering, keys, node.packing)
        with self._if_sought():
            values = lower_join_keys(self.plan, self.lowering, self.node.probe_keys, self.node.packing)
        validity = key_validity(self.lowering, values, self.node.null_equal)
        if self.node.packing is None:
            key = hashed_key(self.lowering, values, self.node.null_equal, exact=self.slot.exact)
            return key, validity
        return packed_key(self.lowering, values, self.node.packing), validity

    def _matches_one_row(self) -> bool:
        """Does every probe row match the only build row, whatever it holds?"""
        return self.node.algorithm is JoinAlgorithm.NESTED_LOOP and self.node.build.has_one_row

    def _first_match(self) -> Node:
        """The one build row of each probe row, or -1."""
        if self.node.algorithm is JoinAlgorithm.NESTED_LOOP:
            return self.build.call(
                join_pairs.only_row,
                self.stream.num_rows(),
                self._build_rows(),
                self.stream.object("device"),
                name="match",
            )
        key, validity = self._keys()
        return self.build.method(
            "first_match", self.stream.object(self.slot.build), key, validity, name="match"
        )

    def _contains(self) -> Node:
        found = contains_column(self.lowering, self.node.probe_keys, self.slot)
        if found is None:
            key, validity = self._keys()
            build_side = self.stream.object(self.slot.build)
            found = self.build.method("contains", build_side, key, validity, name="found")
        return found

    def _build_rows(self) -> Node:
        return self.stream.input(f"{self.slot.payload}_count", InputKind.FRAME_ROWS, self.slot.payload)

    def _compares_rows(self, part: Expression) -> bool:
        """Is the condition an equality of an integer column of each side, without NULLs, that an offset-array join can compare?"""
        if self.node.algorithm is not JoinAlgorithm.OFFSET_ARRAY or not isinstance(part, Call):
            return False
        if part.function != "equal" or not all(isinstance(side, ColumnRef) for side in part.arguments):
            return False
        ids = [side.id for side in part.arguments if isinstance(side, ColumnRef)]
        layouts = [self.stream.columns[id].layout for id in ids]
        on_build = [id in self.slot.columns for id in ids]
        if sum(on_build) != 1 or not all(
            layout.form is Form.NUMBER and layout.data_type.is_integer_like and not layout.nullable
            for layout in layouts
        ):
            return False
        return all(values is not None for values in self._second_values(part))  # none are of a constant

    def _second_values(self, part: Call) -> tuple[Node | None, Node | None]:
        """The probe rows' and all build rows' values of an equality that `_compares_rows`."""
        first, second = (side.id for side in part.arguments if isinstance(side, ColumnRef))
        probe, build = (second, first) if first in self.slot.columns else (first, second)
        values = self.stream.columns[build].available[self.build_space]
        return self.stream.column(probe).node, values.node

    def _pairs(self, second: Expression | None = None) -> tuple[Node, Node]:
        """The pairs with equal keys, and for which the `second` condition, one that `_compares_rows`, is true: the stream's rows now."""
        if self.node.algorithm is JoinAlgorithm.NESTED_LOOP:
            pairs = self.build.call(
                join_pairs.all_pairs,
                self.stream.num_rows(),
                self._build_rows(),
                self.stream.object("device"),
                name="pairs",
            )
        else:
            key, validity = self._keys()
            build_side = self.stream.object(self.slot.build)
            if isinstance(second, Call):
                values = self._second_values(second)
                pairs = self.build.method("matches_equal", build_side, key, validity, *values, name="pairs")
            else:
                pairs = self.build.method("matches", build_side, key, validity, name="pairs")
        return self._linked(pairs)

    def _linked(self, pairs: Node, padded: bool = False) -> tuple[Node, Node]:
        """The rows of both sides, over which the stream goes on; `padded`: the build's may be -1."""
        probe_rows = self.build.call(operator.getitem, pairs, 0, name="probe_rows")
        build_rows = self.build.call(operator.getitem, pairs, 1, name="build_rows")
        self._link(probe_rows, build_rows, padded)
        return probe_rows, build_rows

    def _link(self, probe_rows: Node | None, build_rows: Node, padded: bool = False) -> None:
        self.stream.link(Link(self.probe_space, probe_rows), Link(self.build_space, build_rows, padded))

    def _add_build_columns(self) -> None:
        slot, stream = self.slot, self.stream
        slot.add_columns(stream, self.build_space)
        for build_id, probe_id in same_as_probe(self.node).items():
            if build_id not in slot.columns:
                stream.columns[build_id] = stream.columns[probe_id]
        if slot.positions is None:
            return
        positions = stream.whole(slot.payload, slot.positions.index, "position")
        rows = Space()
        self.build_space.links = (Link(rows, positions),)
        for field, stored in slot.in_source.values():
            stream.add_source_column(field.id, field.name, stored, rows)
            stream.fields[field.id] = field

    # join types

    def _inner_unique(self) -> None:
        self._add_build_columns()
        if not self.slot.by_key:
            self._inner_by_position()
        else:
            self._inner_by_key()
        if self.slot.residual:
            self.stream.settle()
            mask = self.lowering.condition(conjunction(self.slot.residual))
            self.stream.filter(mask, 1.0)

    def _inner_by_key(self) -> None:
        stream, slot, keys = self.stream, self.slot, self.node.probe_keys
        has_columns = bool(slot.columns or slot.in_source)
        found = None if self.node.all_match else contains_column(self.lowering, keys, slot)
        key, validity = self._keys() if found is None else (None, None)
        if not self.node.all_match:
            if found is None:
                found = self.build.method("contains", stream.object(slot.build), key, validity, name="found")
            stream.filter(found, self._selectivity(), may_wait=not has_columns)
            if not has_columns:
                return
            rows = stream.space.links[0].rows
            if key is None:
                key = key_of_valid(self.lowering, keys, slot)
            else:
                key = self.build.call(torch.index_select, key, 0, rows, name="build_rows")
        if has_columns:
            stream.link(Link(stream.space), Link(self.build_space, key))

    def _inner_by_position(self) -> None:
        self.stream.settle()
        self.probe_space = self.stream.space
        match = self._first_match()
        if self._matches_one_row():
            self.stream.link(Link(self.probe_space), Link(self.build_space, match, repeated=True))
            return
        found = self.build.call(elementwise.greater_equal, match, 0, name="found")
        rows = self.build.call(row_kernels.row_indices, found, name="rows")
        build_rows = self.build.call(torch.index_select, match, 0, rows, name="build_rows")
        self._link(rows, build_rows)

    def _selectivity(self) -> float:
        """The share of probe rows that is expected to find a partner."""
        return self.node.estimated_rows / max(1.0, self.node.probe.estimated_rows)

    def _keep(self, found: Node, wanted: bool) -> None:
        self.stream.filter(found if wanted else self.build.call(operator.invert, found), self._selectivity())

    def _surviving_pairs(self) -> tuple[Node, Node]:
        """The pairs for which the residual is true; the stream is over them afterwards."""
        residual = self.slot.residual
        second = next((part for part in residual if self._compares_rows(part)), None)
        if second is not None:
            residual = tuple(part for part in residual if part is not second)
        sides = (self.probe_space, self.stream.num_rows()), (self.build_space, self._build_rows())
        pairs = self._pairs(second)
        for side, parts in itertools.groupby(residual, self._side_of):
            condition = conjunction(tuple(parts))
            if side is None:
                mask = self.lowering.condition(condition)
            else:
                mask = self._mask_of_side(condition, *sides[side], pairs[side])
            kept = self.build.call(row_kernels.row_indices, mask, name="kept")
            probe_rows, build_rows = (
                self.build.call(torch.index_select, rows, 0, kept, name=name)
                for rows, name in zip(pairs, ("probe_rows", "build_rows"), strict=True)
            )
            pairs = probe_rows, build_rows
            self._link(*pairs)
        return pairs

    def _side_of(self, part: Expression) -> int | None:
        """Whether a conjunct is evaluated for rows of the probe side (0) or build side (1), or for pairs (None).

        Most of those that read one side stand below the join. Those that may raise for rows without partners do not, and in a
        nested loop a row has many.
        """
        ids = column_ids(part)
        if self.node.algorithm is not JoinAlgorithm.NESTED_LOOP or not ids:
            return None
        if ids <= self.slot.columns.keys():
            return 1
        return 0 if ids.isdisjoint(self.slot.columns) else None

    def _mask_of_side(self, condition: Expression, side: Space, num_rows: Node, rows: Node) -> Node:
        """bool [number of pairs]: is the condition true? Evaluated once for each row of its side that is in a pair."""
        build, stream, of_pairs = self.build, self.stream, self.stream.space
        in_pairs = build.call(join_pairs.any_by_row, rows, num_rows, name="in_pairs")
        asked = build.call(row_kernels.row_indices, in_pairs, name="asked")
        stream.link(Link(side, asked))
        mask = self.lowering.condition(condition)
        stream.space = of_pairs
        true = build.call(torch.index_select, asked, 0, build.call(row_kernels.row_indices, mask))
        table = build.call(join_pairs.any_by_row, true, num_rows, name="holds")
        return build.call(torch.index_select, table, 0, rows, name="mask")

    def _padded_pairs(self) -> None:
        num_probe = self.stream.num_rows()
        self._add_build_columns()
        key, validity = self._keys()
        build_side = self.stream.object(self.slot.build)
        pairs = self.build.call(
            join_pairs.matches_or_none, build_side, key, validity, num_probe, name="pairs"
        )
        self._linked(pairs, padded=True)

    def _through_pairs(self) -> None:
        num_probe = self.stream.num_rows()
        self._add_build_columns()
        probe_rows, build_rows = self._surviving_pairs()
        if self.node.join_type in (JoinType.INNER, JoinType.RIGHT):
            return
        if self.node.join_type is JoinType.SINGLE:
            probe_rows = self.build.call(join_pairs.check_single, probe_rows, num_probe, name="probe_rows")
        pairs = self.build.call(join_pairs.left_outer_pairs, probe_rows, build_rows, num_probe, name="pairs")
        self._linked(pairs, padded=True)

    def _mark(self) -> None:
        """Three-valued: true if any pair is true, else NULL if any is NULL, else false."""
        node, stream = self.node, self.stream
        values = self._mark_values()
        if node.join_type is JoinType.NULL_AWARE_ANTI:
            mask = self.build.call(operator.invert, values.node)
            if values.validity is not None:
                mask = self.build.call(operator.and_, mask, values.validity)
            stream.filter(mask, self._selectivity())
            return
        assert node.mark is not None
        stream.add_computed_column(node.mark.id, node.mark.name, values)
        stream.fields[node.mark.id] = node.mark

    def _mark_values(self) -> Value:
        lowering, build, slot = self.lowering, self.build, self.slot
        node = self.node
        by_pairs = node.algorithm is JoinAlgorithm.NESTED_LOOP
        if not by_pairs and not node.bounds and node.residual:
            by_pairs = any(nullable(part, _fields_of(node)) for part in node.residual)
        if not by_pairs:
            found = self._found()
            if node.bounds or node.residual or node.null_equal[0] or len(node.probe_keys) > 1:
                # then nothing can be NULL: see _comparable
                return Value(canonical_layout(BOOLEAN, False), found)
            with self._if_sought():
                validity = lowering.combine_validity(*lower_values(lowering, node.probe_keys))
            build_side = self.stream.object(slot.build)
            return self._marks(
                build.call(join_pairs.marks_of_found, build_side, found, validity, name="marks")
            )
        num_probe = self.stream.num_rows()
        self._add_build_columns()
        probe_rows, _ = self._pairs()
        condition = lowering.lower(conjunction(slot.residual))
        values, validity = lowering.tensor(condition), lowering.combine_validity(condition)
        self.stream.space = self.probe_space
        return self._marks(
            build.call(join_pairs.marks_of_pairs, probe_rows, values, validity, num_probe, name="marks")
        )

    def _found(self) -> Node:
        """Which probe rows have a match."""
        if not self.slot.residual and self.node.algorithm is not JoinAlgorithm.NESTED_LOOP:
            return self._contains()
        num_probe = self.stream.num_rows()
        self._add_build_columns()
        probe_rows, _ = self._surviving_pairs()
        self.stream.space = self.probe_space
        return self.build.call(join_pairs.any_by_row, probe_rows, num_probe, name="found")

    def _marks(self, marks: Node) -> Value:
        values = self.build.call(operator.getitem, marks, 0, name="mark")
        validity = self.stream.or_all_rows(self.build.call(operator.getitem, marks, 1, name="mark_valid"))
        return Value(canonical_layout(BOOLEAN, True), values, validity)


def _fields_of(node: physical.Join) -> dict[int, Field]:
    return {**node.probe.field_facts, **node.build.field_facts}


def _comparable(node: physical.Join) -> physical.Join:
    """A mark join by keys can tell false from NULL if there is one key and nothing else, or if no comparison of keys can be NULL.

    A range join is only chosen where nothing can.

    Any other one becomes a nested loop, which evaluates the whole condition for every pair.
    """
    if node.join_type not in THREE_VALUED or node.algorithm in (
        JoinAlgorithm.NESTED_LOOP,
        JoinAlgorithm.RANGE,
    ):
        return node
    if len(node.probe_keys) == 1 and not node.residual and not node.null_equal[0]:
        return node
    fields = _fields_of(node)
    compared = zip((*node.probe_keys, *node.build_keys), node.null_equal * 2, strict=True)
    if not any(nullable(key, fields) for key, null_equal in compared if not null_equal):
        return node
    compare = tuple(
        Call("is_not_distinct_from" if null_equal else "equal", (probe_key, build_key), BOOLEAN)
        for probe_key, build_key, null_equal in zip(
            node.probe_keys, node.build_keys, node.null_equal, strict=True
        )
    )
    return replace(
        node,
        algorithm=JoinAlgorithm.NESTED_LOOP,
        probe_keys=(),
        build_keys=(),
        null_equal=(),
        packing=None,
        residual=(*compare, *node.residual),
    )
