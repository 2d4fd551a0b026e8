"""What the pipelines of one program share while it is built: slots, constants, tables, look-up tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from tqp.core.backends import Backend
from tqp.core.datatypes import BIGINT, Categories
from tqp.core.schema import ColumnFacts, Field
from tqp.data.column import Column
from tqp.data.encoding.dictionary_order import DictionaryOrder, dtype_of_ranks, order_of_dictionary
from tqp.data.encoding.sorted_columns import KeyIndex, KeySet, SortedRuns, runs_of_column
from tqp.data.sources.base import Source
from tqp.data.strings import Strings
from tqp.operators.joins.perfect_hash_join import MembershipBuild, build_of_index
from tqp.operators.memory.allocation import Map
from tqp.operators.memory.arrays import narrowest
from tqp.operators.nested import layout as nested_layout
from tqp.operators.numbers import wide
from tqp.operators.rows.domain_tables import domain_values
from tqp.operators.string_keys import codes as string_codes
from tqp.operators.string_keys.first_bits import PackedStrings, pack_column
from tqp.operators.strings import layout as string_layout
from tqp.planner.algebra.expression_text import format_expression
from tqp.planner.algebra.expressions import (
    ColumnRef,
    Constant,
    Expression,
    Parameter,
    are_literals,
    transform,
)
from tqp.planner.algebra.expressions import Value as StorageValue
from tqp.runtime.breakers.collect import BuildDictionary, Collect, SortRows
from tqp.runtime.frame import Frame, FrameColumn
from tqp.runtime.graph import Graph, identifier, live_bytes
from tqp.runtime.graph_function import lowered_for_torch
from tqp.runtime.lowering.expressions.code_ranges import DictionaryEntries, Ranges
from tqp.runtime.lowering.expressions.domain import Domain
from tqp.runtime.lowering.layouts import Form, Layout, Pool, canonical_layout, element_layout
from tqp.runtime.lowering.stream import StoredColumn, Stream, Value
from tqp.runtime.lowering.zones import ask_together
from tqp.runtime.pipeline import Breaker, Pipeline

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


#: From so many rows on, keeping their strings as integers too is worth the memory.
_MANY_ROWS = 16_384
#: What any node of a graph may be.
_COUNTS_ROWS, _MAKES_TEXT = attrgetter("counts_rows"), attrgetter("makes_text")


class TableInput:
    """The columns that a program reads of one table, in the order of its frame."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.columns: list[str] = []

    def index(self, name: str) -> int:
        if name not in self.columns:
            self.columns.append(name)
        return self.columns.index(name)


class DictionaryEncodedColumn(NamedTuple):
    """The codes of a table column, themselves a column with a row for each of the table's."""

    table_slot: str
    codes: StoredColumn
    values_slot: str


class ProgramBuilder:
    def __init__(self, device: torch.device, backend: Backend, *, carries_gradients: bool = False) -> None:
        self.device = device
        #: Does the program run on arrays?
        self.on_host = backend is Backend.HOST
        #: Gradients pass through tensors and breakers only: not through arrays, nor where graphs reduce all rows to one value.
        self.carries_gradients = carries_gradients
        self.pipelines: list[Pipeline] = []
        self.tables: dict[str, TableInput] = {}
        self.constants: dict[str, Any] = {}
        #: By slot, what is made before a run: of which constants, by what.
        self.placeholders: dict[str, tuple[Sequence[Constant], Callable[..., Any]]] = {}
        self.pools: dict[str, tuple[Source, str]] = {}  # by slot of a pool, the table's column that has it
        #: By slot, what else is kept with columns of tables: made by workers when it is first wanted.
        self.derived: dict[str, Callable[[Map], Any]] = {}
        self._constant_slots: dict[Any, str] = {}
        self._domain_tables: dict[Any, StoredColumn] = {}
        self._dictionaries: dict[str, DictionaryEntries] = {}
        self._texts_of_enums: dict[Categories, tuple[Pool, str, torch.dtype]] = {}
        self._slots: dict[str, int] = {}
        self._next_hidden = 0
        self.operator: int | None = None  # id of the physical node being lowered

    def slot(self, prefix: str) -> str:
        """A name for something in the program's state, like no other."""
        number = self._slots[prefix] = self._slots.get(prefix, 0) + 1
        return prefix if number == 1 else f"{prefix}_{number}"

    def hidden_id(self) -> int:
        """A column id that no plan uses."""
        self._next_hidden -= 1
        return self._next_hidden

    # tables

    def table(self, source: Source, name: str) -> tuple[str, TableInput]:
        for slot, known in self.tables.items():
            if known.source is source:
                return slot, known
        slot = self.slot(f"table_{name}")
        self.tables[slot] = TableInput(source)
        return slot, self.tables[slot]

    def _table_column(self, stored: StoredColumn) -> tuple[Source, str]:
        table = self.tables[stored.slot]
        return table.source, table.columns[stored.index]

    def runs_of(self, stored: StoredColumn) -> str:
        """The slot of the runs of a sorted table column."""
        source, name = self._table_column(stored)
        slot = f"{stored.slot}_{name}_runs"
        self.derived[slot] = lambda workers: source.derived(name, SortedRuns, runs_of_column)
        return slot

    def zones_of(self, stored: StoredColumn) -> str | None:
        """The slot of the zones of a table column of integers; None where they would not tell rows apart."""
        source, name = self._table_column(stored)
        zones = source.zones(name)
        if zones.least.shape[0] == 0:
            return None
        slot = f"{stored.slot}_{name}_zones"
        self.derived[slot] = lambda workers: zones
        return slot

    def packed_strings_of(self, pool: Pool) -> str | None:
        """The slot of the packed strings of a table column, integers that compare as their first bits do.

        None of other pools, of dictionaries, of few strings, and for torch.
        """
        place = self.pools.get(pool.slot)
        if place is None or pool.is_dictionary or not self.on_host or (pool.size or 0) < _MANY_ROWS:
            return None
        slot, (source, name) = f"{pool.slot}_packed", place
        self.derived[slot] = lambda workers: source.derived(
            name, PackedStrings, partial(pack_column, workers=workers)
        )
        return slot

    def codes_of(self, source: Source, table_name: str, name: str) -> DictionaryEncodedColumn:
        """The codes of a table column, and where the values stand."""
        slot, _ = self.table(source, table_name)
        found = source.value_dictionary(name)
        layout = Layout(BIGINT, Form.NUMBER, found.codes.dtype, False, (0, max(0, found.values.shape[0] - 1)))
        codes, values_slot = StoredColumn(layout, f"{slot}_{name}_codes", 0), f"{slot}_{name}_values"
        self.derived[codes.slot] = lambda _: _frame_of_one(source.value_dictionary(name).codes)
        self.derived[values_slot] = lambda _: source.value_dictionary(name).values
        return DictionaryEncodedColumn(slot, codes, values_slot)

    def index_of(self, stored: StoredColumn, minimum: int, size: int) -> str:
        """The slot of the index on a sorted table column, a join build over its values from `minimum` on."""
        source, name = self._table_column(stored)

        def build(workers: Map) -> Any:
            index = source.derived(name, KeyIndex, KeyIndex).over(minimum, size)
            return build_of_index(index, size)

        prefix = f"{stored.slot}_{name}_index"
        return self._once((prefix, minimum, size), prefix, lambda: build, self.derived)

    def key_set_of(self, stored: StoredColumn, minimum: int, size: int) -> str:
        """The slot of the set of the values of a table column, a join build that tells which there are from `minimum` on."""
        source, name = self._table_column(stored)

        def build(workers: Map) -> Any:
            return MembershipBuild(source.derived(name, KeySet, KeySet).over(minimum, size))

        prefix = f"{stored.slot}_{name}_set"
        return self._once((prefix, minimum, size), prefix, lambda: build, self.derived)

    def column_layout(self, slot: str, name: str, column: Column) -> Layout:
        """How a table's column is stored."""
        nullable = column.validity is not None
        if column.pool is not None:
            pool_slot = f"{slot}_{name}_pool"
            self.pools[pool_slot] = (self.tables[slot].source, name)
            size = column.pool.num_rows
            dtype = torch.int64 if column.num_rows >= 2**31 else torch.int32
            if column.values is not None:
                dtype = column.values.dtype
            return Layout(
                column.data_type,
                Form.CODES,
                dtype,
                nullable,
                None,
                Pool(pool_slot, column.pool_is_dictionary, column.pool_is_sorted, size),
            )
        facts = column.facts
        if column.values is None:  # nested, or text that is read batch by batch
            layout = canonical_layout(column.data_type, nullable)
            return replace(layout, inner=facts.inner, longest=facts.longest) if facts.inner else layout
        value_range = None
        if facts.minimum is not None and facts.maximum is not None:
            value_range = (facts.minimum, facts.maximum)
        elif column.data_type.is_integer_like:
            value_range = (0, 0)  # no value at all
        form = Form.NUMBER
        if column.values.dim() == 2:
            form = Form.WIDE if column.data_type.is_integer_like else Form.MATRIX
        return Layout(column.data_type, form, column.values.dtype, nullable, value_range)

    def dictionary(self, pool: Pool) -> DictionaryEntries | None:
        """The entries of a dictionary of a table column or of literals; None of one that a run makes."""
        entries = self._dictionaries.get(pool.slot)
        known = self._known_entries(pool) if entries is None and pool.is_dictionary else None
        if known is not None:
            entries = self._dictionaries[pool.slot] = DictionaryEntries(known, is_sorted=pool.is_sorted)
        return entries

    def order_of(self, pool: Pool) -> tuple[str, torch.dtype, Pool]:
        """The slot of the rank of each entry in a table column's dictionary, their dtype, and the dictionary in order."""
        source, name = self.pools[pool.slot]
        ranks, entries = f"{pool.slot}_ranks", f"{pool.slot}_in_order"
        self.derived[ranks] = lambda _: source.derived(name, DictionaryOrder, order_of_dictionary).ranks
        self.derived[entries] = lambda _: source.derived(name, DictionaryOrder, order_of_dictionary).entries
        assert pool.size is not None
        return ranks, dtype_of_ranks(pool.size), replace(pool, slot=entries, is_sorted=True)

    def literal_dictionary(self, words: Sequence[bytes]) -> Pool:
        """A dictionary of sorted, distinct words, as a constant."""
        key = ("dictionary", tuple(words))
        slot = self._once(key, "labels", lambda: string_layout.from_list(list(words), self.device))
        return Pool(slot, True, True, len(words))

    def texts_of_enum(self, categories: Categories) -> tuple[Pool, str, torch.dtype]:
        """A dictionary of the texts of an ENUM, the slot of the place of each value in it, and the dtype of the places."""
        known = self._texts_of_enums.get(categories)
        if known is None:
            texts = [value.encode() for value in categories]
            order = sorted(range(len(texts)), key=texts.__getitem__)
            dtype = _code_dtype(len(texts))
            places = torch.empty(len(texts), dtype=dtype)
            places[order] = torch.arange(len(texts), dtype=dtype)
            slot = self.slot("places")
            self.constants[slot] = places.to(self.device)
            pool = self.literal_dictionary([texts[place] for place in order] or [b""])
            known = self._texts_of_enums[categories] = pool, slot, dtype
        return known

    def dictionary_positions(self, pool: Pool, dictionary: Pool) -> str | None:
        """The slot of int32 [entries of pool]: the place of each in another dictionary, its size for those that it lacks.

        None unless both are known before the program runs.
        """
        entries, others = self._known_entries(pool), self._known_entries(dictionary)
        if entries is None or others is None or not pool.is_dictionary:
            return None
        key = ("positions", pool.slot, dictionary.slot)
        return self._once(key, "places", lambda: string_codes.dictionary_positions(entries, others))

    def _known_entries(self, pool: Pool) -> Strings | None:
        """Those of a table column, or of constants; None of what a run makes."""
        place = self.pools.get(pool.slot)
        known: Strings | None = (
            self.constants.get(pool.slot) if place is None else place[0].column(place[1]).pool
        )
        return known

    # constants

    def _once(
        self, key: Any, prefix: str, make: Callable[[], Any], into: dict[str, Any] | None = None
    ) -> str:
        """The slot of a constant (of something `into` another table) that is made once for each key."""
        slot = self._constant_slots.get(key)
        if slot is None:
            slot = self._constant_slots[key] = self.slot(prefix)
            (self.constants if into is None else into)[slot] = make()
        return slot

    def constant(self, value: StorageValue | Parameter, layout: Layout) -> str:
        """The slot of a one-row tensor (or Strings) that holds a literal, zero for NULL, or a parameter."""
        if isinstance(value, Parameter):
            form = "row", layout.form, layout.dtype
            return self.parameter((value,), form, partial(self.one_row, layout=layout))
        exact = repr(value) if isinstance(value, (float, tuple)) else value  # 0.0 and -0.0 are equal
        key = (
            type(value),
            exact,
            layout.form,
            layout.dtype,
            layout.data_type.is_composed and layout.data_type,
        )
        return self._once(key, "constant", lambda: self.one_row(value, layout))

    def parameter(self, constants: Sequence[Constant], form: Hashable, convert: Callable[..., Any]) -> str:
        """The slot of what `convert` makes of the values of constants before each run; `form` tells conversions apart."""
        made, key = (constants, convert), ("parameter", *constants, form)
        if are_literals(constants):  # which all runs have in common
            return self._once(key, "constant", lambda: convert(*[each.value for each in constants]))
        return self._once(key, "parameter", lambda: made, self.placeholders)

    def one_row(self, value: StorageValue, layout: Layout) -> Any:
        """A value as a tensor, or Strings, with one row."""
        return constant_values([value], layout, self.device)

    def module(self, module: nn.Module, name: str) -> str:
        """The slot of a torch module."""
        return self._once(module, identifier(name), lambda: module)

    def integer_list(self, values: tuple[Any, ...], dtype: torch.dtype) -> str:
        """The slot of a tensor with the values that the dtype can hold: an IN list."""
        limits = torch.iinfo(dtype)
        kept = tuple(value for value in values if limits.min <= value <= limits.max)
        return self._once(
            (kept, dtype), "in_list", lambda: torch.tensor(kept, dtype=dtype, device=self.device)
        )

    def literal_list(self, values: tuple[StorageValue, ...], layout: Layout) -> str:
        """The slot of a tensor with one row for each literal, none of them NULL, in a form that is not of strings."""
        key = (tuple(map(repr, values)), layout.form, layout.dtype)
        return self._once(key, "in_list", lambda: constant_values(values, layout, self.device))

    def membership_table(self, ranges: Ranges, low: int, high: int) -> str:
        """The slot of a bool tensor [high - low]: which of the integers from `low` on are in the ranges."""

        def table() -> Tensor:
            members = torch.zeros(high - low, dtype=torch.bool)
            for first, after in ranges:
                members[first - low : after - low] = True
            return members.to(self.device)

        return self._once((ranges, low, high), "members", table)

    # domain tables

    def domain_table(self, expression: Expression, domain: Domain, column: Layout) -> StoredColumn:
        """The expression over every value of a column's domain, computed once per run by a pipeline of its own.

        Strings are codes into a dictionary of their own.
        """
        neutral = transform(
            expression, lambda e: ColumnRef(0, e.data_type) if isinstance(e, ColumnRef) else e
        )
        key = (neutral, replace(domain, column=0), column.dtype)
        known = self._domain_tables.get(key)
        if known is not None:
            return known
        from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

        source = self.slot("domain")
        self.constants[source] = DomainFrame(domain)
        stream = Stream(source)
        stream.is_domain = True
        layout = column
        if domain.pool is not None:
            layout = replace(column, form=Form.STRINGS, dtype=torch.uint8, pool=None)
        else:
            assert column.value_range is not None
            layout = replace(column, dtype=narrowest(domain.bounds) or torch.int64)
        stream.add_source_column(domain.column, "domain_value", StoredColumn(layout, source, 0))
        if domain.pool is None:  # narrow results have narrow tables
            facts = ColumnFacts(*domain.bounds)
            stream.fields[domain.column] = Field(
                domain.column, "domain_value", column.data_type, False, facts
            )
        lowering: ExpressionLowering = ExpressionLowering(stream, self)
        with stream.builder.fragment(expression):
            value = lowering.materialise(lowering.lower_over_rows(expression))
            if value.layout.form is Form.CODES:
                value = lowering.in_layout(value, replace(value.layout, form=Form.STRINGS, pool=None))
        slot = self.slot("lookup")
        result = value.layout
        breaker: Breaker = Collect(slot)
        if value.layout.form is Form.STRINGS:
            pool = Pool(f"{slot}_pool", True, True, domain.size)
            result = replace(value.layout, form=Form.CODES, dtype=_code_dtype(domain.size), pool=pool)
            breaker = BuildDictionary(slot, pool.slot, result.dtype)
        title = f"{format_expression(expression)} for every value of its column's domain"
        self.close(stream, [value], breaker, title)
        table = self._domain_tables[key] = StoredColumn(result, slot, 0)
        return table

    # pipelines

    def close(self, stream: Stream, values: Sequence[Value], breaker: Breaker, title: str) -> None:
        """End a stream: its graph puts out the number of rows, then values and validity of each column."""
        outputs: list[Any] = [stream.num_rows()]
        for value in values:
            outputs += [value.node, value.validity]
        if stream.asked:
            ask_together(stream)
        graph, inputs = stream.builder.graph(tuple(outputs))
        if not self.on_host and not self.carries_gradients:
            graph = lowered_for_torch(graph)
        self.pipelines.append(
            Pipeline(
                graph,
                inputs,
                stream.source_slot,
                breaker,
                row_limit=stream.row_limit,
                needs=frozenset(stream.needs),
                zone_filters=tuple(stream.zone_filters),
                zone_order=stream.zone_order,
                marks=tuple(stream.marks),
                operator=self.operator,
                title=title,
                row_bytes=_row_bytes(stream, graph, breaker),
                in_order=any(map(_COUNTS_ROWS, graph.nodes)),
                makes_text=any(map(_MAKES_TEXT, graph.nodes)),
                on_arrays=self.on_host and not self.carries_gradients,
                calls_modules=any(isinstance(self.constants.get(item.slot), nn.Module) for item in inputs),
            )
        )


def _row_bytes(stream: Stream, graph: Graph, breaker: Breaker) -> int:
    """What a row's values take at once, for which batches are cut so that the caches hold it; 0: they need not be cut."""
    if not stream.has_all_rows():
        return 0
    # Text drives the groups' accumulators out of the caches once a batch, and what stands beside it is little.
    if getattr(breaker, "scatters", False) and any(node.scans for node in graph.nodes):
        return 0
    # The first rows of an order are found by one key, of all others few rows are looked at.
    if isinstance(breaker, SortRows) and breaker.wanted is not None:
        return live_bytes(graph, handed_on=False)
    return live_bytes(graph)


class DomainFrame:
    """Stands in the constants for a frame that the run makes: the entries of a pool, or a range of integers."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def frame(self, state: dict[str, Any], device: torch.device) -> Frame:
        domain = self.domain
        if domain.pool is not None:
            pool = state[domain.pool.slot]
            return Frame(pool.num_rows, (FrameColumn(pool, None),))
        dtype = narrowest(domain.bounds) or torch.int64
        return _frame_of_one(domain_values(domain.low, domain.high, domain.unit, dtype, device))


def _frame_of_one(values: Tensor) -> Frame:
    return Frame(values.shape[0], (FrameColumn(values, None),))


def constant_values(values: Sequence[StorageValue], layout: Layout, device: torch.device) -> Any:
    """Literals of one type as a tensor, Strings or nested values with one row each; zero, empty or of NULLs for NULL."""
    if layout.form is Form.STRINGS:
        return string_layout.from_list(
            [value if isinstance(value, (str, bytes)) else "" for value in values], device
        )
    if layout.form is Form.NESTED:
        return nested_layout.from_python(
            values,
            layout.data_type,
            lambda items, data_type: constant_values(items, element_layout(data_type), device),
        )
    if layout.form is Form.WIDE:
        return wide.from_ints([int(value) if isinstance(value, int) else 0 for value in values], device)
    if layout.form is Form.MATRIX:
        width = 3 if layout.dtype is torch.int64 else layout.data_type.size
        rows = [list(value) if isinstance(value, tuple) else [0] * width for value in values]
        return torch.tensor(rows, dtype=layout.dtype, device=device).reshape(len(rows), width)
    return torch.tensor(
        [0 if value is None else value for value in values], dtype=layout.dtype, device=device
    )


def _code_dtype(size: int | None) -> torch.dtype:
    return (narrowest((0, size)) if size is not None else None) or torch.int64
