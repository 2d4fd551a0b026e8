"""Lowering of GROUP BY: how rows find their group, and the columns of the result."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import BIGINT, BOOLEAN
from tqp.operators.groups import aggregates
from tqp.operators.numbers import logic
from tqp.operators.rows import keys as key_kernels
from tqp.operators.rows.domain_tables import look_up
from tqp.planner.physical import plan as physical
from tqp.planner.physical.plan import GroupAlgorithm
from tqp.runtime.breakers.aggregate import FoldGroups
from tqp.runtime.breakers.collect_groups import CollectGroups, partition_bits
from tqp.runtime.breakers.hash_groups import HashGroups
from tqp.runtime.breakers.reductions import OF_ALL_ROWS, PACKED, Reduction
from tqp.runtime.lowering.aggregate_calls import AggregateCalls
from tqp.runtime.lowering.expressions.conditions import choices
from tqp.runtime.lowering.expressions.scalars import ExpressionLowering
from tqp.runtime.lowering.graph_builder import Node, listed
from tqp.runtime.lowering.keys import lower_values, packed_key
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout
from tqp.runtime.lowering.pending import Pending, Reference
from tqp.runtime.lowering.stream import Link, Space, StoredColumn, Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering

#: Sums of floats keep accumulators per batch, for a result that does not depend on threads. Up to about so many groups
#: these take less memory than the rows, and are added up in less time than rows are collected.
_MAX_ORDERED_GROUPS = 131_072
#: Direct groups of which moments and chosen rows are merged batch by batch, at most, as what is known of them stays in the caches,
#: and rows for each of these at least.
_MAX_MERGED_GROUPS, _ROWS_OF_MERGED_GROUPS = 16_384, 16
#: Sets of DISTINCT values take a byte for each group and possible value; for so many in all, or so many a row, they are
#: filled in less time than rows are collected.
_MAX_SET_BYTES, _SET_BYTES_PER_ROW = 1 << 20, 8.0


def lower_aggregate(plan: PlanLowering, node: physical.Aggregate) -> Stream:
    """A stream of the groups: their keys, then the aggregates."""
    if node.algorithm not in (GroupAlgorithm.CLUSTERED, GroupAlgorithm.HASH):
        below = node.input
        while isinstance(below, physical.Project):
            below = below.input
        plan.selecting.add(id(below))
    stream = plan.lower(node.input)
    lowering = plan.enter(stream, node)
    return _AggregateLowering(plan, lowering, node).lower()


class _AggregateLowering:
    def __init__(self, plan: PlanLowering, lowering: ExpressionLowering, node: physical.Aggregate) -> None:
        self.plan, self.lowering, self.node = plan, lowering, node
        self.in_runs = False  # is the input clustered on a key that is an integer?
        self.outputs: list[Value] = []  # what the pipeline puts out: keys, then what the reductions read
        self.calls = AggregateCalls(lowering, node, self.outputs)

    def lower(self) -> Stream:
        node, program, stream = self.node, self.plan.program, self.lowering.stream
        with stream.builder.fragment("GROUP BY ", *listed(node.keys, ", ")):
            keys = lower_values(self.lowering, node.keys)
            packing = node.packing if self._packs(keys) else None
            factors = None if packing is None or program.carries_gradients else node.factors
            if node.algorithm is GroupAlgorithm.CLUSTERED and packing is not None:
                packing, self.in_runs = None, keys[0].validity is None  # the key stays as it is
            if factors is not None:
                self._add_keys([*keys, *lower_values(self.lowering, factors.columns)], factors.packing)
            elif node.keys:
                self._add_keys(keys, packing)
        num_keys = len(self.outputs)
        pending = []
        sums = (None,) * len(node.aggregates) if factors is None else factors.sums
        for call, factored in zip(node.aggregates, sums, strict=True):
            with stream.builder.fragment(call):
                pending.append(self.calls.lower(call, factored))
        reductions = self.calls.reductions
        slot = program.slot("groups")
        folds = self._folds(packing)
        breaker: FoldGroups | HashGroups | CollectGroups
        if folds and node.algorithm is GroupAlgorithm.SINGLE:
            self._reduce_rows()
        has_kept = self._add_kept()
        if folds and node.algorithm is GroupAlgorithm.HASH:
            assert not has_kept
            breaker = HashGroups(slot, reductions, node.estimated_rows, node.input.max_rows)
        elif folds:
            presence = self._presence() if node.algorithm is GroupAlgorithm.DIRECT else None
            size = packing.size if packing is not None else 1
            breaker = FoldGroups(
                slot,
                node.algorithm,
                size,
                reductions,
                node.input.max_rows,
                program.device,
                has_kept,
                presence,
                () if factors is None else [part.span for part in factors.packing.parts[len(node.keys) :]],
                [place for place, output in enumerate(self.outputs) if output.validity is None],
            )
        else:
            bits = partition_bits(node.input.estimated_rows, program.device) if num_keys else 0
            dense = packing is not None and packing.size <= 4 * node.input.estimated_rows
            codes = packing.size if packing is not None and dense else None
            breaker = CollectGroups(slot, num_keys, reductions, program.device, has_kept, bits, codes)
        program.close(stream, self.outputs, breaker, "GROUP BY")
        return self._results(slot, keys, packing, num_keys, pending)

    def _presence(self) -> int:
        """The reduction that says which direct groups have rows: one that is there anyway, or another one."""
        reductions = self.calls.reductions
        for index, reduction in enumerate(reductions):
            counts_values = reduction.kind == "count" and reduction.distinct
            counts_rows = reduction.kind == "count_star" and not reduction.tables
            if (
                counts_rows
                or reduction.kind == "reference"
                or counts_values
                and self.outputs[reduction.column].validity is None
            ):
                return index
        # a count may share an accumulator with a sum; alone, a mark is smaller
        sums = any(reduction.kind in PACKED for reduction in reductions)
        reductions.append(Reduction("count_star" if sums else "present"))
        return len(reductions) - 1

    def _reduce_rows(self) -> None:
        """Has the graph reduce its rows where all of them are one group: no column waits for the others then."""
        stream, inputs = self.lowering.stream, self.outputs.copy()
        build, kept, reductions = stream.builder, stream.space.kept, self.calls.reductions
        # sets of DISTINCT values are filled from batch to batch, moments take several passes, and rows are chosen: what these read
        # comes first, as it is
        reads_rows = [each.distinct or each.is_moment or each.is_choice for each in reductions]
        read = (
            set(reduction.columns) for reduction, reads in zip(reductions, reads_rows, strict=True) if reads
        )
        columns = sorted(set[int]().union(*read))
        self.outputs[:] = [inputs[column] for column in columns]
        places = {column: place for place, column in enumerate(columns)}
        readers = Counter(each.column for each in reductions if each.kind != "count")
        for index, reduction in enumerate(reductions):
            if reads_rows[index]:
                reductions[index] = reduction.reading(places)
                continue
            value = inputs[reduction.column] if reduction.column >= 0 else None
            validity = None if value is None else value.validity
            if kept is not None:
                validity = kept if validity is None else build.call(logic.combine_validity, validity, kept)
            if reduction.kind in ("count_star", "count"):
                device = stream.object("device")
                node = build.call(aggregates.count_all, stream.num_rows(), validity, device, name="count")
            else:
                assert value is not None
                given: list[Any] = [value.node, validity, *reduction.parameters]
                if reduction.kind == "sum" and value.layout.dtype not in (torch.bool, torch.int64):
                    given.append(max(map(abs, reduction.value_range)))
                # what is read for another reduction too has to be chosen anyway
                alone = reduction.kind == "sum_float" and readers[reduction.column] == 1
                of_choices = self._sum_of_choices(value, validity) if alone else None
                node = of_choices or build.call(OF_ALL_ROWS[reduction.kind], *given, name=reduction.kind)
            reductions[index] = replace(reduction, column=len(self.outputs), reduced=True)
            self.outputs.append(Value(Layout(BIGINT, Form.NUMBER, torch.int64, False), node))
            node.row_bytes = 0  # one value for all rows

    def _sum_of_choices(self, value: Value, validity: Node | None) -> Node | None:
        """The sum of what a CASE chooses, as the sum of what each of its branches gives: nothing is chosen then.

        None if the value is not a CASE.
        """
        build = self.lowering.stream.builder
        assert value.node is not None
        sums: list[Node] = []
        for condition, given in choices(build, value.node):
            if isinstance(given, Node) or given != 0:
                both = (condition, validity)  # the validity may be None when the program runs
                counts = condition if validity is None else build.call(logic.combine_validity, *both)
                sums.append(build.call(aggregates.sum_where, given, counts, name="sum_float"))
        if len(sums) < 2:
            return sums[0] if sums else None
        return build.call(aggregates.total, sums, name="sum_float")

    def _add_kept(self) -> bool:
        """Puts out which rows count, last, where some may not."""
        node = self.lowering.stream.space.kept
        if node is not None:
            self.outputs.append(Value(canonical_layout(BOOLEAN, False), node))
        return node is not None

    # keys

    def _packs(self, keys: list[Value]) -> bool:
        """The planner packs strings by the size of their dictionary: they must have one. Numbers are beside the table's rows."""
        if self.node.packing is None:
            return False
        for value, part in zip(keys, self.node.packing.parts, strict=True):
            pool = value.layout.pool
            if part.dictionary is not None:
                stored = self.lowering.stream.columns[part.dictionary].stored
                if stored is None or stored.slot != self.plan.dictionary_encoded(part.dictionary).table_slot:
                    return False
            elif value.layout.form is not Form.NUMBER:
                size = pool.size if pool is not None and value.layout.has_dictionary else None
                if size is None or size > part.span - part.nullable:
                    return False
        return True

    def _folds(self, packing: physical.KeyPacking | None) -> bool:
        algorithm, reductions = self.node.algorithm, self.calls.reductions
        if self.plan.program.carries_gradients:  # autograd does not follow what accumulators are written to
            return False
        few = self._has_few_groups(packing)
        if not all(
            reduction.folds
            or few
            and (reduction.is_moment or reduction.is_choice)
            or self._is_of_strings(reduction)
            for reduction in reductions
        ):
            return False
        if algorithm is GroupAlgorithm.HASH:
            has_one_key = len(self.node.keys) == 1  # several that cannot be packed after all make no word
            is_word = packing is not None or (has_one_key and self.outputs[0].layout.form is Form.NUMBER)
            return is_word and not any(reduction.distinct for reduction in reductions)
        if algorithm is GroupAlgorithm.SORT or (self.node.keys and packing is None and not self.in_runs):
            return False
        sums_floats = any(reduction.kind == "sum_float" or reduction.is_moment for reduction in reductions)
        width = sum(reduction.domain.width for reduction in reductions if reduction.domain is not None)
        if width:
            groups = packing.size if packing is not None else 1
            most = float(_MAX_SET_BYTES)
            if not sums_floats:  # sets for every batch then
                most = max(most, _SET_BYTES_PER_ROW * self.node.input.estimated_rows)
            if self.in_runs or groups * width > most:
                return False
        if algorithm is GroupAlgorithm.DIRECT and sums_floats:
            assert packing is not None
            return packing.size <= _MAX_ORDERED_GROUPS
        return True

    def _has_few_groups(self, packing: physical.KeyPacking | None) -> bool:
        """Are there so few direct groups, or one, that moments and chosen rows of each batch cost less than collecting all rows?"""
        if self.node.algorithm is GroupAlgorithm.SINGLE:
            return True
        if self.node.algorithm is not GroupAlgorithm.DIRECT or packing is None:
            return False
        rows = self.node.input.estimated_rows
        return packing.size <= _MAX_MERGED_GROUPS and packing.size * _ROWS_OF_MERGED_GROUPS <= rows

    def _is_of_strings(self, reduction: Reduction) -> bool:
        """Is it a string of all rows, of which each batch leaves one?"""
        return (
            reduction.is_of_strings
            and self.node.algorithm is GroupAlgorithm.SINGLE
            and self.outputs[reduction.column].layout.form is Form.STRINGS
        )

    def _add_keys(self, keys: list[Value], packing: physical.KeyPacking | None) -> None:
        if packing is not None:
            values = [
                value if part.dictionary is None else self._code(value, part.dictionary)
                for value, part in zip(keys, packing.parts, strict=True)
            ]
            code = packed_key(self.lowering, values, packing, narrow=True)
            layout = Layout(self.node.keys[0].data_type, Form.NUMBER, torch.int64, False)
            self.outputs.append(Value(layout, code))
            return
        self.outputs += map(self.lowering.distinguishable, keys)

    def _code(self, key: Value, id: int) -> Value:
        """The codes of a table column, in place of its values."""
        stream, hidden = self.lowering.stream, self.plan.program.hidden_id()
        codes, column = self.plan.dictionary_encoded(id).codes, stream.columns[id]
        home = None if column.home is stream.root else column.home
        stream.add_source_column(hidden, f"{column.name}_code", codes, home)
        layout = codes.layout.with_nullable(key.layout.nullable)
        return replace(key, layout=layout, node=stream.column(hidden).node)

    # results

    def _results(
        self,
        slot: str,
        keys: list[Value],
        packing: physical.KeyPacking | None,
        num_keys: int,
        pending: list[Pending | Reference],
    ) -> Stream:
        node = self.node
        stream = Stream(slot)
        lowering = self.plan.enter(stream, node)
        build = stream.builder
        key_fields, aggregate_fields = node.fields[: len(node.keys)], node.fields[len(node.keys) :]
        if packing is not None and node.keys:
            codes = stream.source_values("key", slot, 0)
            parts = [(part.minimum, part.span, part.nullable) for part in packing.parts]
            unpacked = build.call(key_kernels.unpack, codes, parts, name="keys")
            for position, (field, value) in enumerate(zip(key_fields, keys, strict=True)):
                pair = build.call(operator.getitem, unpacked, position)
                values = build.call(operator.getitem, pair, 0)
                part = packing.parts[position]
                if part.dictionary is None:
                    values = build.method("to", values, value.layout.dtype, name=field.name)
                else:
                    table = stream.object(self.plan.dictionary_encoded(part.dictionary).values_slot)
                    values = build.call(look_up, table, values, 0, part.nullable, name=field.name)
                validity = None
                layout = value.layout.with_nullable(part.nullable)
                if layout.nullable:
                    validity = build.call(operator.getitem, pair, 1, name=f"{field.name}_valid")
                stream.add_computed_column(field.id, field.name, Value(layout, values, validity))
        else:
            for position, field in enumerate(key_fields):
                stream.add_source_column(
                    field.id, field.name, StoredColumn(self.outputs[position].layout, slot, position)
                )
        group_space, homes = stream.space, dict[Space, Link]()
        for field, call, item in zip(aggregate_fields, node.aggregates, pending, strict=True):
            if isinstance(item, Reference):
                link = homes.get(item.home)
                if link is None:
                    rows = stream.source_values("row", slot, num_keys + item.reduction)
                    link = homes[item.home] = Link(Space(), rows, item.padded)
                stream.add_source_column(field.id, field.name, item.stored, link.space)
                continue
            nodes = [
                stream.source_values(self.calls.reductions[index].kind, slot, num_keys + index)
                for index in item.reductions
            ]
            with build.fragment(call, f" AS {field.name}"):
                stream.add_computed_column(field.id, field.name, item.finish(lowering, nodes))
        if homes:
            stream.link(Link(group_space), *homes.values())
        return stream
