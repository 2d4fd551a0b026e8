"""Values in the forms that code over them asks for: tensors, Python numbers, strings, order keys, and their validity."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import BLOB, COMPOSED, DataType
from tqp.operators.memory.arrays import narrowest
from tqp.operators.nested import layout as nested_layout
from tqp.operators.nested.order_keys import order_key as nested_keys
from tqp.operators.numbers import wide
from tqp.operators.rows import batches
from tqp.operators.rows.domain_tables import look_up
from tqp.operators.strings import layout as string_layout
from tqp.planner.algebra import text_words
from tqp.planner.algebra.expressions import Parameter
from tqp.planner.algebra.expressions import Value as StorageValue
from tqp.planner.algebra.known_fields import Answers
from tqp.runtime.lowering.expressions.numbers import range_of
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.layouts import Form, Layout, Pool, canonical_layout, integer_layout
from tqp.runtime.lowering.stream import Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.program_builder import ProgramBuilder


def common_dictionary(program: ProgramBuilder, values: Sequence[Value]) -> Pool | None:
    """A dictionary that has all these texts, which are codes into known ones, constants and NULLs.

    None where one is neither, where there are too many words, and of NULLs alone.
    """
    coded = [value for value in values if not value.is_constant]
    if not all(value.layout.has_dictionary for value in coded):
        return None
    if any(isinstance(value.constant, Parameter) for value in values):
        return None
    pools = {pool.slot: pool for value in coded if (pool := value.layout.pool) is not None}
    words = {_encoded(value.constant) for value in values if value.is_constant and not value.is_null}
    if len(pools) == 1 and not words:
        return next(iter(pools.values()))
    known = [entries for pool in pools.values() if (entries := program.dictionary(pool)) is not None]
    if (
        len(known) < len(pools)
        or sum(map(len, known)) + len(words) > text_words.MOST_WORDS
        or not (known or words)
    ):
        return None
    if len(known) == 1 and all(known[0].place(word) >= 0 for word in words):
        return next(iter(pools.values()))
    return program.literal_dictionary(sorted(words.union(*known)))


def _same(value: Any) -> Any:
    return value


def _encoded(constant: StorageValue | Parameter) -> bytes:
    assert isinstance(constant, str | bytes)
    return constant.encode() if isinstance(constant, str) else constant


class ValueForms(Answers):
    """What is made of the values of one stream, whatever expressions they come from."""

    def __init__(self, stream: Stream, program: ProgramBuilder) -> None:
        super().__init__()
        self.stream = stream
        self.program = program

    def tensor(self, value: Value) -> Node:
        """The values as a tensor over the rows of the current space (codes for CODES)."""
        if not value.is_constant:
            assert value.node is not None
            return value.node
        repeat = nested_layout.every_row if value.layout.form is Form.NESTED else batches.repeat
        return self.stream.builder.call(repeat, self.constant(value), self.stream.num_rows())

    def scalar_or_tensor(self, value: Value) -> Any:
        """A Python number for a literal, the tensor otherwise."""
        return self.tensor(value) if value.is_null or not value.is_literal else value.constant

    def number(self, value: Value, dtype: torch.dtype) -> Any:
        """A constant as a Python number, NULL as 0; otherwise a tensor of the dtype."""
        if value.is_null:
            return 0
        return self.plain(value) if value.is_constant else self.to_dtype(value, dtype)

    def plain(self, value: Value) -> Any:
        """A constant as what Python has for it: a literal's value, of a parameter what gives it when the program runs."""
        constant = value.constant
        if isinstance(constant, Parameter):
            return self.stream.object(self.program.parameter((constant,), "plain", _same))
        return constant

    def to_dtype(self, value: Value, dtype: torch.dtype) -> Node:
        node = self.tensor(value)
        if value.layout.dtype == dtype:
            return node
        return self.stream.builder.method("to", node, dtype)

    def strings(self, value: Value) -> Node:
        """The values as `Strings`; a literal as one row of them."""
        if value.is_constant:
            return self.constant(value)
        assert value.node is not None
        if value.layout.form is Form.STRINGS:
            return value.node
        assert value.layout.pool is not None
        pool = self.stream.object(value.layout.pool.slot)
        if value.node.target is batches.row_numbers:  # a table's column in its own order
            first, count = value.node.arguments[:2]
            return self.stream.builder.call(batches.pool_range, pool, first, count)
        return self.stream.builder.call(batches.pool_rows, pool, value.node)

    def distinguishable(self, value: Value) -> Value:
        """The same value, strings without a dictionary as strings of its own: equal ones may have different codes."""
        if value.layout.form is not Form.CODES or value.layout.has_dictionary:
            return value
        layout = canonical_layout(value.layout.data_type, value.layout.nullable)
        return replace(value, node=self.strings(value), layout=layout)

    def comparable(self, value: Value) -> Value:
        """The same value, strings as codes of a sorted dictionary or as strings of its own."""
        value, pool = self.distinguishable(value), value.layout.pool
        if not value.layout.has_dictionary or pool is None or pool.is_sorted:
            return value
        ranks, dtype, in_order = self.program.order_of(pool)
        layout = replace(value.layout, dtype=dtype, pool=in_order)
        table = self.stream.object(ranks)
        node = self.stream.builder.call(
            look_up, table, self.tensor(value), 0, value.layout.nullable, name="rank"
        )
        return replace(value, node=node, layout=layout)

    def equality_key(self, value: Value) -> Value:
        """What is equal where the value is, where that is composed; else the value, distinguishable."""
        return self.order_key(value) if value.layout.data_type.is_composed else self.distinguishable(value)

    def order_key(self, value: Value) -> Value:
        """What compares as the value does, where that is composed; else the value, comparable."""
        if value.layout.data_type.kind not in COMPOSED:
            return self.comparable(value)
        node = self.constant(value) if value.is_constant else value.node
        node = self.stream.builder.call(nested_keys, node, value.layout.data_type, name="order_key")
        return Value(canonical_layout(BLOB, value.layout.nullable), node, value.validity)

    def constant(self, value: Value) -> Node:
        """A literal as an object with one row, on the program's device."""
        return self.stream.object(self.program.constant(value.constant, value.layout))

    def materialise(self, value: Value) -> Value:
        """The same value with tensors over the rows of the current space."""
        if not value.is_constant:
            return value
        if value.layout.form is Form.STRINGS:
            node = self.stream.builder.call(
                string_layout.broadcast, self.constant(value), self.stream.num_rows()
            )
        else:
            node = self.tensor(value)
        validity = self.validity_node(value) if value.layout.nullable else None
        return Value(value.layout, node, validity)

    def in_layout(self, value: Value, layout: Layout) -> Value:
        """The value stored as `layout` says, which must be able to hold it."""
        if value.is_constant:
            value = self.materialise(
                replace(
                    value,
                    layout=replace(
                        value.layout,
                        dtype=layout.dtype,
                        form=(layout.form if layout.form is Form.WIDE else value.layout.form),
                    ),
                )
            )
        node = value.node
        if layout.form is Form.STRINGS:
            node = self.strings(value)
        elif layout.form is Form.WIDE and value.layout.form is not Form.WIDE:
            node = self.stream.builder.call(wide.from_narrow, value.node)
        elif layout.form is Form.NUMBER or layout.form is Form.CODES:
            node = self.to_dtype(value, layout.dtype)
        validity = value.validity
        if layout.nullable and validity is None:
            validity = self.validity_node(value)
        return Value(layout, node, validity)

    def in_dictionary(self, value: Value, dictionary: Pool) -> Value:
        """A text as its code in a dictionary that has it, as `common_dictionary` says."""
        if value.is_constant:
            code, dtype = None, torch.int8
            if not value.is_null:
                entries = self.program.dictionary(dictionary)
                assert entries is not None
                code = entries.place(_encoded(value.constant))
                dtype = narrowest((0, len(entries))) or torch.int64
            layout = replace(value.layout, form=Form.CODES, dtype=dtype, pool=dictionary)
            return replace(value, constant=code, layout=layout)
        pool = value.layout.pool
        assert pool is not None
        if pool.slot == dictionary.slot:
            return value
        places = self.program.dictionary_positions(pool, dictionary)
        assert places is not None, "both dictionaries are known"
        table, codes, nullable = self.stream.object(places), self.tensor(value), value.layout.nullable
        node = self.stream.builder.call(look_up, table, codes, 0, nullable, name="code")
        return replace(value, node=node, layout=replace(value.layout, dtype=torch.int32, pool=dictionary))

    def common_layout(self, values: list[Value], data_type: DataType) -> Layout:
        """A layout that holds all the values, which are of one type."""
        nullable = any(value.layout.nullable for value in values)
        if data_type.is_string:
            pools = {value.layout.pool for value in values}
            if (
                len(pools) == 1
                and None not in pools
                and all(value.layout.form is Form.CODES for value in values)
            ):
                widest_layout = max(
                    (value.layout for value in values), key=lambda layout: layout.dtype.itemsize
                )
                return widest_layout.with_nullable(nullable)
            return canonical_layout(data_type, nullable)
        if not data_type.is_integer_like:
            return canonical_layout(data_type, nullable)
        ranges = [range_of(value) for value in values if not value.is_null]
        if not ranges:
            ranges = [(0, 0)]
        known = (min(low for low, _ in ranges), max(high for _, high in ranges))
        layout = integer_layout(data_type, known, nullable)
        if layout.form is Form.NUMBER:
            dtypes = [value.layout.dtype for value in values if not value.is_constant] + [layout.dtype]
            layout = replace(layout, dtype=max(dtypes, key=lambda dtype: dtype.itemsize))
        return layout

    # validity

    def combine_validity(self, *values: Value) -> Node | None:
        """The AND of the values' validities; None if none can be NULL."""
        return self.all_valid(
            *(self.validity_node(each) if each.is_null else each.validity for each in values)
        )

    def all_valid(self, *masks: Node | None) -> Node | None:
        """The AND of the masks that are there; None without any."""
        combined: Node | None = None
        for mask in masks:
            if combined is None:
                combined = mask
            elif mask is not None and mask is not combined:
                combined = self.stream.builder.call(operator.and_, combined, mask)
        return combined

    def validity_node(self, value: Value) -> Node:
        """The validity as a tensor, also where nothing is NULL."""
        if value.validity is not None:
            return value.validity
        num_rows, device = self.stream.num_rows(), self.stream.object("device")
        return self.stream.builder.call(batches.all_or_none, not value.is_null, num_rows, device)
