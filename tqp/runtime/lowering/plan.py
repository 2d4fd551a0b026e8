"""Lowering of a physical plan: streams grow until a breaker ends them; joins, aggregates and sorts have files of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from tqp.core.schema import Field
from tqp.data.sources.base import Source
from tqp.planner.algebra.cardinality import CombinedSelectivity
from tqp.planner.algebra.expressions import ColumnRef, Literal
from tqp.planner.algebra.outcomes import null_rejected_columns
from tqp.planner.physical import plan as physical
from tqp.planner.physical.filter_order import RemainingConjuncts
from tqp.runtime.breakers.collect import Collect
from tqp.runtime.breakers.iterate import Iterate
from tqp.runtime.breakers.kept_rows import Kept
from tqp.runtime.breakers.makers import MakeSeries
from tqp.runtime.frame import Frame, FrameColumn
from tqp.runtime.lowering.aggregates import lower_aggregate
from tqp.runtime.lowering.expressions.conditions import all_of
from tqp.runtime.lowering.expressions.scalars import ExpressionLowering
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.join_builds import JoinSlot
from tqp.runtime.lowering.joins import lower_join
from tqp.runtime.lowering.keys import lower_values
from tqp.runtime.lowering.layouts import Form, Layout, Pool, canonical_layout, integer_layout
from tqp.runtime.lowering.program_builder import DictionaryEncodedColumn, ProgramBuilder, constant_values
from tqp.runtime.lowering.runtime_filters import lower_runtime_filter
from tqp.runtime.lowering.sorts import lower_sort
from tqp.runtime.lowering.stream import StoredColumn, Stream, Value
from tqp.runtime.lowering.unions import Branch, lower_union, one_after_the_other
from tqp.runtime.lowering.unnests import lower_unnest
from tqp.runtime.lowering.windows import lower_window
from tqp.runtime.lowering.zones import skip_zones
from tqp.runtime.pipeline import Maker


class PlanLowering:
    """Turns one physical plan into the pipelines of a ProgramBuilder."""

    def __init__(self, program: ProgramBuilder, root: physical.PhysicalPlan) -> None:
        self.program = program
        self._scan_columns: dict[int, tuple[physical.TableScan, str]] = {}
        self.has_runtime_filters = False
        self._note_columns(root, set())
        self.joins: dict[int, JoinSlot] = {}
        self.selecting: set[int] = set()  # ids of nodes that may leave rows in place, see Stream.select
        self.needs: set[str] = set()  # of every stream that is lowered now, see Stream
        self._in_step = False  # of a recursion
        self._shared: dict[int, tuple[str, list[StoredColumn]]] = {}
        #: By identifier of a recursion, the slots of its last rows and of all so far, and their layouts.
        self._iterations: dict[int, tuple[tuple[str, str], Sequence[Layout]]] = {}

    def lower(self, node: physical.PhysicalPlan) -> Stream:
        """A stream that yields the node's rows, with at least the node's fields as columns."""
        stream = _LOWERED[type(node)](self, node)
        if id(node) in self.selecting and self.program.on_host:  # a device would wait for the number of rows
            stream.select_pending()
        stream.fields.put(node.fields)
        stream.needs |= self.needs
        stream.estimated_rows = node.estimated_rows
        stream.mark(id(node))
        return stream

    @contextmanager
    def needing(self, frames: set[str]) -> Iterator[None]:
        """What is lowered here is read by nobody else, and in vain if one of the frames has no row."""
        outer, self.needs = self.needs, frames
        yield
        self.needs = outer

    @contextmanager
    def needing_rows_of(self, stream: Stream) -> Iterator[None]:
        """What is lowered here is read by nobody else, and in vain if the stream has no row.

        In a recursion's step it would depend on the rows of an iteration then, and be computed again in each.
        """
        frames = self.needs if self._in_step else stream.needs | {stream.source_slot}
        with self.needing(set(frames)):
            yield

    def enter(
        self, stream: Stream, node: physical.PhysicalPlan, *, settle: bool = True
    ) -> ExpressionLowering:
        """Nodes made from here on belong to `node`, which works on selected rows unless it says otherwise."""
        if settle:
            stream.settle()
        stream.builder.operator = id(node)
        self.program.operator = id(node)
        return ExpressionLowering(stream, self.program)

    def _note_columns(self, node: physical.PhysicalPlan, shared: set[int]) -> None:
        """Note which table columns the scans below put out, what is stored of them for several uses, and runtime filters."""
        if not (isinstance(node, physical.Shared) and node.identifier in shared):
            for below in node.inputs:
                self._note_columns(below, shared)
        if isinstance(node, physical.TableScan):
            pairs = zip(node.fields, node.columns, strict=True)
            self._scan_columns.update((f.id, (node, name)) for f, name in pairs)
        elif isinstance(node, physical.Shared):
            shared.add(node.identifier)
            for output, stored in zip(node.fields, node.input.fields, strict=True):
                if stored.id in self._scan_columns:
                    self._scan_columns[output.id] = self._scan_columns[stored.id]
        elif isinstance(node, physical.RuntimeFilter):
            self.has_runtime_filters = True

    def dictionary(self, column: int) -> Pool:
        """The dictionary of the table column that a scan of the plan puts out under an id."""
        scan, name = self._scan_columns[column]
        source: Source = scan.table  # type: ignore[assignment]
        slot, _ = self.program.table(source, scan.table_name)
        pool = self.program.column_layout(slot, name, source.column(name)).pool
        assert pool is not None and pool.is_dictionary
        return pool

    def dictionary_encoded(self, column: int) -> DictionaryEncodedColumn:
        """The dictionary-encoded form of the table column that a scan of the plan puts out under an id."""
        scan, name = self._scan_columns[column]
        source: Source = scan.table  # type: ignore[assignment]
        return self.program.codes_of(source, scan.table_name, name)

    # leaves

    def _scan(self, node: physical.TableScan) -> Stream:
        source: Source = node.table  # type: ignore[assignment]
        slot, table = self.program.table(source, node.table_name)
        stream = Stream(slot)
        self.enter(stream, node)
        for output, name in zip(node.fields, node.columns, strict=True):
            column = source.column(name)
            layout = self.program.column_layout(slot, name, column)
            is_row_number = layout.form is Form.CODES and column.values is None
            stream.add_source_column(
                output.id, name, StoredColumn(layout, slot, table.index(name), is_row_number)
            )
        return stream

    def _values(self, node: physical.ValuesScan) -> Stream:
        if all(isinstance(value, Literal) for row in node.rows for value in row):
            return self._literal_rows(node)
        rows = []
        for row in node.rows:
            lowering = self.enter(Stream(self._unit()), node)
            rows.append(Branch(lowering, lower_values(lowering, row)))
        return one_after_the_other(self, rows, node, "row", "one row of VALUES")

    def _literal_rows(self, node: physical.ValuesScan) -> Stream:
        unit = Stream(self._unit())
        lowering = self.enter(unit, node)
        slot = self.program.slot("values")
        columns = []
        layouts = []
        for position, output in enumerate(node.fields):
            literals = [row[position] for row in node.rows]
            parts = [lowering.lower(literal) for literal in literals]
            null = Literal(None, output.data_type)
            layout = lowering.common_layout(parts or [lowering.lower(null)], output.data_type)
            constants = [literal.value for literal in literals if isinstance(literal, Literal)]
            values = constant_values(constants, layout, self.program.device)
            validity = None
            if layout.nullable:
                validity = torch.tensor(
                    [c is not None for c in constants], dtype=torch.bool, device=self.program.device
                )
            columns.append(FrameColumn(values, validity))
            layouts.append(layout)
        self.program.constants[slot] = Frame(len(node.rows), tuple(columns))
        return self._stream_of_frame(slot, layouts, node)

    def _series(self, node: physical.SeriesScan) -> Stream:
        (output,) = node.fields
        layout = integer_layout(output.data_type, output.facts.range, nullable=False)
        slot = self.program.slot("series")
        maker = MakeSeries(slot, node.start, node.step, node.max_rows, layout.dtype)
        return self.made(maker, [layout], node, "series")

    def made(
        self, maker: Maker, layouts: Sequence[Layout], node: physical.PhysicalPlan, title: str
    ) -> Stream:
        """The rows of a frame that is made of no batches."""
        stream = Stream(self._unit())
        self.enter(stream, node)
        self.program.close(stream, [], maker, title)
        return self._stream_of_frame(maker.slot, layouts, node)

    def _unit(self) -> str:
        """The slot of a frame with one row and no columns."""
        self.program.constants.setdefault("unit", Frame(1, ()))
        return "unit"

    # row by row

    def _filter(self, node: physical.Filter) -> Stream:
        stream = self.lower(node.input)
        lowering = self.enter(stream, node)
        build = stream.builder
        selects_early = self.program.on_host  # on a device, each time waits for it
        masks: list[Node] = []
        remaining = RemainingConjuncts(node.conjuncts, stream.fields)
        kept = CombinedSelectivity(stream.fields)  # by the conjuncts of the masks
        for position, condition in enumerate(node.conjuncts, 1):
            with build.fragment("WHERE ", condition):
                # what an earlier conjunct has dropped must not make this one raise
                with lowering.only_where(partial(tuple, masks) if masks else None):
                    masks.append(lowering.condition(condition))
                lowering.present |= null_rejected_columns(condition, stream.fields)
                kept.add(condition)
                is_last = position == len(node.conjuncts)
                if is_last and id(node) in self.selecting:
                    stream.select(all_of(build, masks), kept.selectivity)
                elif is_last or (selects_early and remaining.worth_selecting(position, kept.selectivity)):
                    stream.filter(all_of(build, masks), kept.selectivity, may_wait=is_last)
                    masks, kept = [], CombinedSelectivity(stream.fields)
        skip_zones(self, stream, node)
        return stream

    def _project(self, node: physical.Project) -> Stream:
        stream = self.lower(node.input)
        lowering = self.enter(stream, node)
        for output, expression in zip(node.fields, node.outputs, strict=True):
            if isinstance(expression, ColumnRef) and expression.id == output.id:
                continue
            with stream.builder.fragment(expression, f" AS {output.name}"):
                stream.add_computed_column(output.id, output.name, lowering.lower(expression))
        return stream

    # breakers

    def materialise(
        self,
        stream: Stream,
        fields: Iterable[Field],
        prefix: str,
        *,
        by_reference: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> tuple[str, list[StoredColumn]]:
        """End the stream in a frame with these columns.

        `by_reference`: table columns of an unfiltered scan are used where they are instead of being copied.
        """
        stream.settle()
        lowering = ExpressionLowering(stream, self.program)
        slot = self.program.slot(prefix)
        stored: list[StoredColumn] = []
        values: list[Value] = []
        for output in fields:
            source = stream.stored_source(output.id) if by_reference else None
            if source is not None:
                stored.append(source)
                continue
            value = lowering.materialise(stream.column(output.id))
            stored.append(StoredColumn(value.layout, slot, len(values)))
            values.append(value)
        self.program.close(stream, values, Collect(slot, limit, offset), f"{prefix}")
        return slot, stored

    def stream_of(self, slot: str, stored: Sequence[StoredColumn], fields: Sequence[Field]) -> Stream:
        """A new stream over a frame, its columns under the ids of `fields`."""
        stream = Stream(slot)
        for output, column in zip(fields, stored, strict=True):
            stream.add_source_column(output.id, output.name, column)
        stream.fields.put(fields)
        return stream

    def _limit(self, node: physical.Limit) -> Stream:
        stream = self.lower(node.input)
        self.enter(stream, node)
        if node.limit is not None:
            stream.row_limit = node.limit + node.offset
        slot, stored = self.materialise(stream, node.fields, "limited", limit=node.limit, offset=node.offset)
        return self.stream_of(slot, stored, node.fields)

    def _working_rows(self, node: physical.WorkingRows) -> Stream:
        slots, layouts = self._iterations[node.identifier]
        return self._stream_of_frame(slots[node.is_whole], layouts, node)

    def _recursive(self, node: physical.Recursive) -> Stream:
        """The rows of each iteration, in layouts that hold all values of the columns' types."""
        layouts = [canonical_layout(field.data_type, True) for field in node.fields]
        working, whole = self.program.slot("working"), self.program.slot("whole")
        self._iterations[node.identifier] = (working, whole), layouts
        first = self._iteration(node.first, node, layouts, "first rows")
        begin = len(self.program.pipelines)
        outer, self._in_step = self._in_step, True
        with self.needing(set()):
            step = self._iteration(node.step, node, layouts, "rows of an iteration")
        self._in_step = outer
        body = self.program.pipelines[begin:]
        del self.program.pipelines[begin:]
        own = itertools.count(len(layouts))  # nested values have keys of their own, behind the columns
        compared = [next(own) if each.form is Form.NESTED else i for i, each in enumerate(layouts)]
        slot, kept = self.program.slot("recursive"), Kept(compared, node.distinct, node.keys)
        iterate = Iterate(slot, first, step, working, whole, kept, body, node.most_rows)
        return self.made(iterate, layouts, node, "WITH RECURSIVE")

    def _iteration(
        self,
        plan: physical.PhysicalPlan,
        node: physical.Recursive,
        layouts: Sequence[Layout],
        title: str,
    ) -> str:
        """The slot of the plan's rows in these layouts; what tells nested values apart comes behind them."""
        lowering = self.enter(self.lower(plan), node)
        values = [lowering.materialise(lowering.stream.column(field.id)) for field in plan.fields]
        slot = self.program.slot("rows")
        stored = list(map(lowering.in_layout, values, layouts))
        if node.distinct or node.keys is not None:
            stored += [lowering.order_key(each) for each in stored if each.layout.data_type.is_composed]
        self.program.close(lowering.stream, stored, Collect(slot), title)
        return slot

    def _stream_of_frame(self, slot: str, layouts: Iterable[Layout], node: physical.PhysicalPlan) -> Stream:
        """A new stream over a frame that has the node's fields as columns, in these layouts."""
        return self.stream_of(
            slot, [StoredColumn(each, slot, i) for i, each in enumerate(layouts)], node.fields
        )

    def _shared_plan(self, node: physical.Shared) -> Stream:
        known = self._shared.get(node.identifier)
        if known is None:
            with self.needing(set()):
                stream = self.lower(node.input)
            self.enter(stream, node)
            known = self._shared[node.identifier] = self.materialise(stream, node.input.fields, "shared")
        slot, stored = known
        return self.stream_of(slot, stored, node.fields)


_LOWERED: dict[type[physical.PhysicalPlan], Callable[[PlanLowering, Any], Stream]] = {
    physical.TableScan: PlanLowering._scan,
    physical.ValuesScan: PlanLowering._values,
    physical.SeriesScan: PlanLowering._series,
    physical.Filter: PlanLowering._filter,
    physical.Project: PlanLowering._project,
    physical.RuntimeFilter: lower_runtime_filter,
    physical.Join: lower_join,
    physical.Aggregate: lower_aggregate,
    physical.Sort: lower_sort,
    physical.Unnest: lower_unnest,
    physical.Window: lower_window,
    physical.Limit: PlanLowering._limit,
    physical.UnionAll: lower_union,
    physical.WorkingRows: PlanLowering._working_rows,
    physical.Recursive: PlanLowering._recursive,
    physical.Shared: PlanLowering._shared_plan,
}


def lower_plan(program: ProgramBuilder, plan: physical.PhysicalPlan) -> tuple[str, list[StoredColumn]]:
    """Lower a whole plan; the result's frame and its columns, one per field of the plan."""
    lowering = PlanLowering(program, plan)
    stream = lowering.lower(plan)
    slot, columns = lowering.materialise(stream, plan.fields, "result", by_reference=True)
    return slot, columns
