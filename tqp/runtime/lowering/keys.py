"""Lowering of join and group keys to the integers that join builds and group-bys work on."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from tqp.core.datatypes import DataType, TypeKind
from tqp.operators.numbers import elementwise, wide
from tqp.operators.numbers.comparisons import interval_order
from tqp.operators.rows import keys as key_kernels
from tqp.operators.rows.domain_tables import look_up
from tqp.operators.string_keys import codes as string_codes
from tqp.operators.string_keys import hash as string_hash
from tqp.planner.algebra.expressions import Expression
from tqp.planner.physical.plan import KeyPacking
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.layouts import Form, Pool
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering
    from tqp.runtime.lowering.plan import PlanLowering


def lower_values(lowering: ExpressionLowering, expressions: Sequence[Expression]) -> list[Value]:
    """The expressions as tensors over the rows of the current space."""
    return [lowering.materialised(expression) for expression in expressions]


def lower_join_keys(
    plan: PlanLowering, lowering: ExpressionLowering, keys: Sequence[Expression], packing: KeyPacking | None
) -> list[Value]:
    """The keys of one side, strings as their numbers in the dictionaries that the packing names."""
    values = lower_values(lowering, keys)
    if packing is None:
        return values
    return [
        value if part.dictionary is None else _numbered(lowering, value, plan.dictionary(part.dictionary))
        for value, part in zip(values, packing.parts, strict=True)
    ]


def _numbered(lowering: ExpressionLowering, value: Value, dictionary: Pool) -> Value:
    """Strings as places in a table column's dictionary; its size for those that it lacks."""
    program, build = lowering.program, lowering.stream.builder
    assert dictionary.size is not None
    layout = replace(value.layout, form=Form.NUMBER, pool=None, value_range=(0, dictionary.size))
    pool = value.layout.pool
    if pool is not None and pool.slot == dictionary.slot:
        return replace(value, layout=layout)
    positions = None if pool is None else program.dictionary_positions(pool, dictionary)
    if positions is not None:
        table = lowering.stream.object(positions)
        node = build.call(look_up, table, value.node, 0, value.layout.nullable, name="place")
    else:
        entries = lowering.stream.object(dictionary.slot)
        node = build.call(string_codes.dictionary_positions, lowering.strings(value), entries, name="place")
    return replace(value, layout=replace(layout, dtype=torch.int32), node=node)


def packed_key(
    lowering: ExpressionLowering, values: Sequence[Value], packing: KeyPacking, narrow: bool = False
) -> Node:
    """One integer code per row; a NULL has code 0 where its part is nullable, anything in range otherwise.

    int32 or int64, which index tensors, or with `narrow` the narrowest width.
    """
    columns = [(_word(lowering, value), value.validity) for value in values]
    parts = [(part.minimum, part.span, part.nullable) for part in packing.parts]
    pack = key_kernels.pack_narrow if narrow else key_kernels.pack
    return lowering.stream.builder.call(pack, columns, parts, name="key")


def _word(lowering: ExpressionLowering, value: Value) -> Node | None:
    """The values in 64 bits at most: the key's range fits them, which is more than the value's form may know."""
    if value.layout.form is not Form.WIDE:
        return value.node
    return lowering.stream.builder.call(wide.low_halves, value.node)


def is_exact(
    probe_keys: Sequence[Expression], build_keys: Sequence[Expression], null_equal: Sequence[bool]
) -> bool:
    """Is the key of a join one number of 64 bits on both sides, which then needs no hash and no comparison after it?"""
    types = [key.data_type for key in (*probe_keys, *build_keys)]
    return len(types) == 2 and not null_equal[0] and all(_fits_a_word(data_type) for data_type in types)


def _fits_a_word(data_type: DataType) -> bool:
    if not data_type.is_integer_like:
        return data_type.is_float
    limits = torch.iinfo(torch.int64)
    return limits.min <= data_type.bounds[0] and data_type.bounds[1] <= limits.max


def hashed_key(
    lowering: ExpressionLowering, values: Sequence[Value], null_equal: Sequence[bool], *, exact: bool = False
) -> Node:
    """An int64 hash per row, equal for equal keys, which have to be compared afterwards; the one key itself if `exact`."""
    if exact:
        (value,) = values
        return lowering.strings(value) if value.layout.data_type.is_string else hash_word(lowering, value)
    build = lowering.stream.builder
    words: list[Any] = []
    for value, with_null in zip(values, null_equal, strict=True):
        word = hash_word(lowering, value)
        if with_null:
            valid = lowering.validity_node(value)
            valid_column = build.method("unsqueeze", valid, 1) if value.layout.form is Form.WIDE else valid
            word = build.call(operator.mul, word, valid_column)
            words.append(build.method("to", valid, torch.int64))
        words.append(word)
    return build.call(key_kernels.hash_combine, words, name="key")


def hash_word(lowering: ExpressionLowering, value: Value) -> Node:
    """int64 [n] (or [n, 2]) that is equal for equal values of the type."""
    build = lowering.stream.builder
    data_type = value.layout.data_type
    if data_type.is_composed:
        return build.call(string_hash.hash64, lowering.order_key(value).node)
    if data_type.is_string:
        return build.call(string_hash.hash64, lowering.strings(value))
    if data_type.is_float:
        return build.call(key_kernels.ordered_bits, value.node)
    if data_type.kind is TypeKind.INTERVAL:
        return build.call(key_kernels.hash_combine, [build.call(interval_order, value.node)])
    if value.layout.form is Form.WIDE:
        assert value.node is not None
        return value.node
    return lowering.to_dtype(value, torch.int64)


def sorted_words(
    plan: PlanLowering, lowering: ExpressionLowering, keys: Sequence[Expression], packing: KeyPacking | None
) -> tuple[list[Node], Node | None]:
    """A word for each of the keys by which rows are sorted, but one for those first ones that the packing is of; valid, all, where none is NULL."""
    packed = 0 if packing is None else len(packing.parts)
    values = lower_join_keys(plan, lowering, keys[:packed], packing)
    words = [packed_key(lowering, values, packing)] if packing is not None else []
    rest = lower_values(lowering, keys[packed:])
    words += [ordered_word(lowering, value) for value in rest]
    return words, lowering.combine_validity(*values, *rest)


def ordered_word(lowering: ExpressionLowering, value: Value) -> Node:
    """int64 [n] that compares as the values do: integers that 64 bits are known to hold, or floats."""
    if value.layout.form is Form.WIDE:
        return lowering.stream.builder.call(wide.low_halves, value.node)
    return hash_word(lowering, value)


def key_validity(
    lowering: ExpressionLowering, values: Sequence[Value], null_equal: Sequence[bool]
) -> Node | None:
    """The rows whose key can match at all: no NULL but where NULLs are equal."""
    return lowering.combine_validity(
        *(value for value, with_null in zip(values, null_equal, strict=True) if not with_null)
    )


def range_checks(lowering: ExpressionLowering, values: Sequence[Value], packing: KeyPacking) -> Node | None:
    """A mask of the rows whose keys lie in the packing's ranges; None if all are known to."""
    build = lowering.stream.builder
    mask: Node | None = None
    for value, part in zip(values, packing.parts, strict=True):
        low, high = part.minimum, part.minimum + part.span - 1 - int(part.nullable)
        known = value.layout.value_range
        if known is not None and low <= known[0] and known[1] <= high:
            continue
        is_wide = value.layout.form is Form.WIDE
        node = _word(lowering, value) if is_wide else lowering.to_dtype(value, torch.int64)
        inside = build.call(
            operator.and_,
            build.call(elementwise.greater_equal, node, low),
            build.call(elementwise.less_equal, node, high),
        )
        if is_wide:
            inside = build.call(operator.and_, inside, build.call(wide.fits_narrow, value.node))
        mask = inside if mask is None else build.call(operator.and_, mask, inside)
    return mask
