"""An open pipeline: the graph under construction and the columns in flight.

Filters and joins do not move columns. Each opens a new `Space` of rows linked to the spaces its rows come from by one
index vector; a column is gathered into the current space at its first use there, from the nearest space that has it.

The batch is a space; a join opens one linked to two: the probe side's rows and the build side's. An outer join's link is
padded: -1 where there is no partner.

The path to the nearest space that has a column's values is composed into one index vector. So a column that nobody reads
after a filter is never gathered, and one that is read after three joins is gathered once. Equal calls in one graph give one node (`tqp/runtime/lowering/graph_builder.py`), so composed indices are
shared too.

Functions of two arrays do not even gather (`tqp/runtime/lowering/expressions/kernel_calls.py`): their kernels (`operators/vectors.py`)
get the stored matrices and the row indices of both sides. A cross join of items with a few query vectors, or with the one
row of a scalar subquery, is then a product of two matrices and a look-up of the pairs; a join that keeps few pairs takes
their rows block by block. `ORDER BY array_distance(e, $q) LIMIT k` reads the matrix where it was registered, once, and
keeps one float a row: a million rows of 384 floats take a sixth of DuckDB's processor time for cosines and
distances, a ninth for inner products.
"""

from __future__ import annotations

import operator
from collections.abc import Container
from dataclasses import field
from enum import Enum
from typing import NamedTuple

import torch

from tqp.core.frozen import dataclass
from tqp.data import nested
from tqp.operators.nested import layout as nested_layout
from tqp.operators.rows import batches
from tqp.operators.rows import selection as row_kernels
from tqp.planner.algebra.expressions import Parameter
from tqp.planner.algebra.expressions import Value as StorageValue
from tqp.planner.algebra.known_fields import KnownFields
from tqp.runtime.graph import Node
from tqp.runtime.lowering.graph_builder import GraphBuilder
from tqp.runtime.lowering.layouts import Form, Layout
from tqp.runtime.zone_filters import ZoneFilter
from tqp.runtime.zone_order import ZoneOrder

#: While more than this share of rows is left, look-ups on all of them cost less than selecting those first.
_MANY = 0.3

#: Forms of what is no single tensor.
_COMPOUND = (Form.STRINGS, Form.NESTED)


class InputKind(Enum):
    """What the executor hands to a placeholder of a pipeline's graph."""

    __hash__ = object.__hash__  # Enum's own is Python

    VALUES = "values of a source column, the batch's rows"
    VALIDITY = "validity of a source column, the batch's rows"
    ALL_VALUES = "values of a materialised column, all rows"
    ALL_VALIDITY = "validity of a materialised column, all rows"
    OBJECT = "an object of the program's state"
    NUM_ROWS = "rows in the batch"
    FIRST_ROW = "number of the batch's first row"
    FRAME_ROWS = "rows of a materialised frame"


#: Inputs that say something of the one batch; the others are the same for every batch.
BATCH_KINDS = frozenset({InputKind.VALUES, InputKind.VALIDITY, InputKind.NUM_ROWS, InputKind.FIRST_ROW})


class Input(NamedTuple):
    kind: InputKind
    slot: str = ""
    column: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """One expression's values over the rows of one space; or a constant, literal or parameter, until somebody needs its tensor."""

    layout: Layout
    node: Node | None
    validity: Node | None = None
    is_constant: bool = False
    constant: StorageValue | Parameter = None

    def __post_init__(self) -> None:
        if self.node is not None:
            self.node.row_bytes = self.layout.row_bytes

    @property
    def is_literal(self) -> bool:
        """Is it a constant whose value is known?"""
        return self.is_constant and not isinstance(self.constant, Parameter)

    @property
    def is_null(self) -> bool:
        """Is it the literal NULL?"""
        return self.is_constant and self.constant is None


@dataclass(eq=False, slots=True)
class Link:
    """`rows[i]` is the row of `space` that row i of another space comes from; None: the same rows.

    `padded`: rows may be -1, where an outer join found no partner. `selected`: rows may be None when the program runs,
    meaning the same rows. `repeated`: the space has one row, which all of them are.
    """

    space: Space
    rows: Node | None = None
    padded: bool = False
    selected: bool = False
    repeated: bool = False


@dataclass(eq=False, slots=True)
class Space:
    links: tuple[Link, ...] = ()
    num_rows: Node | None = None
    kept: Node | None = None  # which of the rows count, None when the program runs: all; see `Stream.select`


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of a frame in the program's state."""

    layout: Layout
    slot: str
    index: int
    implicit: bool = False  # codes that are the row numbers themselves


@dataclass(eq=False, slots=True)
class StreamColumn:
    layout: Layout
    name: str
    available: dict[Space, Value] = field(default_factory=dict)
    stored: StoredColumn | None = None  # where, and as the rows of which space, if it is stored
    home: Space | None = None


class Stream:
    def __init__(self, source_slot: str) -> None:
        self.source_slot = source_slot
        self.builder = GraphBuilder()
        self.columns: dict[int, StreamColumn] = {}
        self.fields = KnownFields()
        self.root = Space()
        self.space = self.root
        # a mask over the rows of `space` that is still to be applied, and the share of rows it is expected to keep
        self.pending: Node | None = None
        self.selectivity = 1.0
        self.expected_selectivity = 1.0  # of rows that `select` is expected to keep
        self.row_limit: int | None = None  # rows after which the pipeline may stop
        #: Frames of which each must have a row, or the pipeline puts out none: build sides of joins that keep what matches.
        self.needs: set[str] = set()
        self.zone_filters: list[ZoneFilter] = []  # of the source: rows of other zones would be dropped
        self.zone_order: ZoneOrder | None = None  # of the source, in which a top-k had better read it
        #: Of each join or filter on the way that drops rows of the source by a column of integers, what is asked.
        self.asked: list[tuple[Node | None, Node | None, tuple[int, int, bool], Node]] = []
        self.estimated_rows: float | None = None  # that the last node of the plan puts out; None: unknown
        self.is_domain = False  # the rows are the values of a column's domain
        #: After which physical node which rows are left, as indices or mask; None: all.
        self.marks: list[tuple[int, Node | None]] = []

    # inputs

    def input(self, name: str, kind: InputKind, slot: str = "", column: int = 0) -> Node:
        """The placeholder for an input; equal inputs share one."""
        return self.builder.input(name, Input(kind, slot, column))

    def object(self, slot: str) -> Node:
        return self.input(slot, InputKind.OBJECT, slot)

    def whole(self, slot: str, column: int, name: str, validity: bool = False) -> Node:
        """All rows of a column of the frame in `slot`, whatever the batch."""
        return self.input(name, InputKind.ALL_VALIDITY if validity else InputKind.ALL_VALUES, slot, column)

    def num_rows(self) -> Node:
        """How many rows the current space has."""
        space = self.space
        while space.num_rows is None and len(space.links) >= 1 and space.links[0].rows is None:
            space = space.links[0].space
        if space.num_rows is None:
            if space is self.root:
                space.num_rows = self.input("num_rows", InputKind.NUM_ROWS)
            else:
                space.num_rows = self.builder.call(batches.count, space.links[0].rows, name="num_rows")
        return space.num_rows

    # columns

    def add_source_column(self, id: int, name: str, stored: StoredColumn, space: Space | None = None) -> None:
        """A stored column: by batches, as one of the source's; or whole, over the rows of another `space`."""
        layout, slot = stored.layout, stored.slot
        whole = space is not None
        if stored.implicit:
            first = 0 if whole else self.input("first_row", InputKind.FIRST_ROW)
            count = (
                self.input(f"{slot}_rows", InputKind.FRAME_ROWS, slot)
                if whole
                else self.input("num_rows", InputKind.NUM_ROWS)
            )
            node = self.builder.call(
                batches.row_numbers, first, count, self.object("device"), name=f"{name}_row"
            )
        else:
            kind = InputKind.ALL_VALUES if whole else InputKind.VALUES
            node = self.input(name, kind, slot, stored.index)
        validity = None
        if layout.nullable:
            kind = InputKind.ALL_VALIDITY if whole else InputKind.VALIDITY
            validity = self.input(f"{name}_valid", kind, slot, stored.index)
        home = space or self.root
        self.columns[id] = StreamColumn(layout, name, {home: Value(layout, node, validity)}, stored, home)

    def source_values(self, name: str, slot: str, index: int) -> Node:
        """The batch's values of a stored column that is no column of the plan."""
        return self.input(name, InputKind.VALUES, slot, index)

    def add_computed_column(self, id: int, name: str, value: Value) -> None:
        self.columns[id] = StreamColumn(value.layout, name, {self.space: value})

    def column(self, id: int) -> Value:
        """The column's values over the rows of the current space."""
        column = self.columns[id]
        value = column.available.get(self.space)
        if value is None:
            value = column.available[self.space] = self._gather(column)
        return value

    def ungathered(self, id: int) -> tuple[Node | None, Node | None]:
        """The column's values where they are, and which of them each row of the current space has; None: its own."""
        available = self.columns[id].available
        elsewhere = [space for space in available if space is not self.space]
        path = self._path(self.space, elsewhere) or Link(self.space)
        return available[path.space].node, path.rows

    def root_source(self, id: int) -> StoredColumn | None:
        """Where the column is stored, if it is one of the source's; the current rows may be any of the source's."""
        column = self.columns[id]
        return column.stored if column.home is self.root else None

    def stored_source(self, id: int) -> StoredColumn | None:
        """Where the column is stored, if it is one of the source's and no row has been dropped or moved since."""
        return self.root_source(id) if self.space is self.root else None

    def rows_of(self, home: Space) -> tuple[Node, bool] | None:
        """For each row of the current space, the row of a stored column's home; and whether it may be -1.

        None if the two are the same rows. Of the stream's source, rows of the source, not of the batch.
        """
        if home is self.root:
            return self.root_rows(), False
        path = self._path(self.space, (home,))
        assert path is not None, "a column's home is in reach"
        return None if path.rows is None or path.selected else (path.rows, path.padded)

    def mark(self, operator: int) -> None:
        """Note that the rows of the current space are what the physical node puts out; for EXPLAIN ANALYZE."""
        if self.pending is not None:
            self.marks.append((operator, self.pending))
            return
        space = self.space
        while space.links and space.links[0].rows is None:
            space = space.links[0].space
        rows = space.num_rows if space.kept is not None else space.links[0].rows if space.links else None
        self.marks.append((operator, rows))

    def root_rows(self) -> Node:
        """For each row of the current space, the number of the source's row that it comes from."""
        first = self.input("first_row", InputKind.FIRST_ROW)
        path = self._path(self.space, (self.root,))
        assert path is not None and not path.padded, "a source row is never padding"
        if path.rows is not None and not path.selected:
            return self.builder.call(operator.add, path.rows, first, name="row")
        count = self.input("num_rows", InputKind.NUM_ROWS)
        numbers = self.builder.call(batches.row_numbers, first, count, self.object("device"), name="row")
        if path.rows is None:
            return numbers
        return self.builder.call(row_kernels.take_selected, numbers, path.rows, name="row")

    def has_all_rows(self) -> bool:
        """Are the rows of the current space those of the batch, or expected to be most of them?"""
        path = self._path(self.space, (self.root,))
        return path is not None and (path.rows is None or path.selected and self.expected_selectivity > 0.5)

    # spaces

    def filter(self, mask: Node, selectivity: float, *, may_wait: bool = True) -> None:
        """Go on with the rows of a mask, of which about the share `selectivity` will be left.

        While many are left, and if that `may_wait`, they are not selected before `settle`: what comes
        next may look up all rows and add a mask of its own, which costs less than selecting rows twice.
        """
        pending = self.pending
        self.pending = (
            mask if pending is None else self.builder.call(operator.and_, pending, mask, name="mask")
        )
        self.selectivity *= min(1.0, selectivity)
        if self.selectivity < _MANY or not may_wait:
            self.settle()

    def settle(self) -> None:
        """Select the rows of the pending mask, if there is one. To be done before columns are read for good."""
        if self.pending is not None:
            mask, self.pending = self.pending, None
            self.keep(self.builder.call(row_kernels.row_indices, mask, name="rows"))
        self.selectivity = 1.0

    def keep(self, rows: Node, num_rows: Node | None = None) -> None:
        """Go on with only the rows whose indices are given; how many there are is counted if it is not."""
        assert self.pending is None, "rows are selected twice"
        self.space = Space((Link(self.space, rows),), num_rows)

    def select(self, mask: Node, selectivity: float) -> None:
        """Go on with only the rows of the mask where they are few; else with all, the new space knowing which count.

        Which of both is decided batch by batch, `selectivity` is what is expected. What comes next must observe `space.kept`.
        """
        self.expected_selectivity = selectivity
        selection = self.builder.call(row_kernels.select_most, mask, self.num_rows(), name="selection")
        rows, kept, count = (
            self.builder.call(operator.getitem, selection, part, name=name)
            for part, name in enumerate(("rows", "kept", "num_rows"))
        )
        self.space = Space((Link(self.space, rows, selected=True),), count, kept)

    def select_pending(self) -> None:
        """As `select`, by the pending mask, if there is one."""
        if self.pending is not None:
            mask, selectivity, self.pending, self.selectivity = self.pending, self.selectivity, None, 1.0
            self.select(mask, selectivity)

    def guard(self) -> Node:
        """bool [n]: the rows of the current space that count, where some may not."""
        return self.or_all_rows(self.space.kept, "kept")

    def or_all_rows(self, mask: Node | None, name: str | None = None) -> Node:
        """bool [n]: the mask, or all rows of the current space where it is None when the program runs."""
        device = self.object("device")
        return self.builder.call(batches.validity_or_true, mask, self.num_rows(), device, name=name)

    def link(self, *links: Link) -> None:
        """Go on in a new space whose rows come from several spaces at once, as after a join."""
        self.space = Space(links)

    def _gather(self, column: StreamColumn) -> Value:
        path = self._path(self.space, column.available)
        assert path is not None, f"column {column.name} is not in reach"
        rows, value = path.rows, column.available[path.space]
        if (
            rows is None or value.is_constant
        ):  # a literal is never on the padded side: build columns are materialised
            return value
        layout, validity = value.layout, None
        if path.padded:
            validity = self.builder.call(
                row_kernels.padding_validity, rows, value.validity, name=f"{column.name}_valid"
            )
            layout = layout.with_nullable(True)
            is_compound = layout.form in _COMPOUND
            take_padded = nested_layout.take_padded_values if is_compound else row_kernels.take_padded
            return Value(layout, self.builder.call(take_padded, value.node, rows, name=column.name), validity)
        if value.validity is not None:
            validity = self._take(path, value.validity, f"{column.name}_valid")
        if self._is_row_number(column, path):
            node = self.builder.method("to", rows, layout.dtype, name=column.name)
            return Value(layout, node, validity)
        if layout.form not in _COMPOUND:
            return Value(layout, self._take(path, value.node, column.name), validity)
        kernel = nested_layout.take_selected_values if path.selected else nested.take
        return Value(layout, self.builder.call(kernel, value.node, rows, name=column.name), validity)

    def _is_row_number(self, column: StreamColumn, path: Link) -> bool:
        """Is the code of a row simply its number? Codes of a column that is stored by reference are 0, 1, ..."""
        if column.stored is None or not column.stored.implicit or path.padded or path.selected:
            return False
        return path.space is column.home is not self.root

    def _take(self, path: Link, values: Node | None, name: str) -> Node:
        if path.repeated:
            return self.builder.call(batches.every_row, values, self.num_rows(), name=name)
        if path.selected:
            return self.builder.call(row_kernels.take_selected, values, path.rows, name=name)
        return self.builder.call(torch.index_select, values, 0, path.rows, name=name)

    def _path(self, space: Space, targets: Container[Space]) -> Link | None:
        """The way to the nearest of the target spaces."""
        if space in targets:
            return Link(space)
        for link in space.links:
            found = self._path(link.space, targets)
            if found is None:
                continue
            if found.rows is None:
                return Link(found.space, link.rows, link.padded, link.selected, link.repeated)
            padded = found.padded or link.padded
            if link.rows is None:
                return Link(found.space, found.rows, padded, found.selected, found.repeated)
            if found.selected:
                assert not link.padded, "no join comes after rows are selected"
                rows = self.builder.call(row_kernels.compose_selected, found.rows, link.rows, name="rows")
                return Link(found.space, rows, selected=link.selected)
            if link.selected:
                rows = self.builder.call(row_kernels.take_selected, found.rows, link.rows, name="rows")
            elif link.padded:
                rows = self.builder.call(row_kernels.compose_padded, found.rows, link.rows, name="rows")
            else:
                rows = self.builder.call(torch.index_select, found.rows, 0, link.rows, name="rows")
            return Link(found.space, rows, padded, repeated=found.repeated)
        return None
