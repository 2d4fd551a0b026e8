"""Lowering of ORDER BY: what rows are ordered by, and which columns go with them or are read afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tqp.core.datatypes import DataType
from tqp.core.schema import Field
from tqp.operators.rows import batches
from tqp.operators.string_keys.first_bits import packed_range
from tqp.planner.algebra.logical_plan import SortKey
from tqp.planner.physical import plan as physical
from tqp.runtime.breakers.collect import SortRows
from tqp.runtime.lowering.expressions.scalars import ExpressionLowering
from tqp.runtime.lowering.layouts import PLACE_LAYOUT, canonical_layout
from tqp.runtime.lowering.stream import Link, Space, StoredColumn, Stream, Value
from tqp.runtime.lowering.zones import read_best_first

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering


def lower_sort(plan: PlanLowering, node: physical.Sort) -> Stream:
    """A stream of the rows in order, or of the first of them."""
    stream = plan.lower(node.input)
    lowering = plan.enter(stream, node)
    keys = [lower_key(lowering, key) for key in node.keys]
    directions = [(key.descending, key.nulls_first) for key in node.keys]
    packed = _packed_strings(plan, keys[0])
    if packed is not None:
        with stream.builder.fragment("ORDER BY ", node.keys[0].expression):
            keys.insert(0, _packed_key(lowering, keys[0], packed))
        directions.insert(0, directions[0])
    # Of nested values a top-k reads the first parts, and makes the bytes that compare of few rows.
    composed = [_composed_of_top_rows(key, node) for key in keys]
    if node.limit is not None:
        keys[1:] = [_compared_for_few_rows(lowering, key) for key in keys[1:]]
    keys = [
        lowering.order_key(key) if each is None else key for key, each in zip(keys, composed, strict=True)
    ]
    # Of columns that are stored elsewhere a top-k keeps row numbers: few rows' values are ever read.
    late = _stored_elsewhere(plan, stream, node.fields) if node.limit is not None else []
    taken = {field.id for _, fields in late for field in fields}
    fields = [field for field in node.fields if field.id not in taken]
    values = [lowering.materialise(stream.column(field.id)) for field in fields]
    if node.limit is None and plan.program.on_host:
        # workers put the bytes in order, not whoever reads the result
        values = list(map(lowering.distinguishable, values))
    outputs = [*values, *(Value(PLACE_LAYOUT, link.rows) for link, _ in late)]
    slot = plan.program.slot("sorted")
    wanted = None if node.limit is None else node.limit + node.offset
    zones = None if wanted is None else read_best_first(plan, stream, node)
    breaker = SortRows(slot, directions, wanted, node.offset, packed, composed, zones is not None)
    plan.program.close(stream, [*keys, *outputs], breaker, "ORDER BY")
    stored = [StoredColumn(value.layout, slot, i) for i, value in enumerate(outputs)]
    result = plan.stream_of(slot, stored[: len(values)], fields)
    _link_stored(stream, result, late, stored[len(values) :])
    return result


def lower_key(lowering: ExpressionLowering, key: SortKey) -> Value:
    """The values that rows are ordered by."""
    with lowering.stream.builder.fragment("ORDER BY ", key.expression):
        return lowering.materialised(key.expression)


def _composed_of_top_rows(key: Value, node: physical.Sort) -> DataType | None:
    """The type of a key that is composed, where the first rows only are wanted."""
    data_type = key.layout.data_type
    return data_type if node.limit is not None and data_type.is_composed else None


def _compared_for_few_rows(lowering: ExpressionLowering, key: Value) -> Value:
    """A key of a top-k behind the first: bytes of a few rows compare before a large dictionary has an order."""
    if not key.layout.has_dictionary or key.layout.has_sorted_dictionary:
        return key
    return lowering.in_layout(key, canonical_layout(key.layout.data_type, key.layout.nullable))


def _packed_strings(plan: PlanLowering, key: Value) -> str | None:
    """The slot of packed strings by which rows are ordered first, if the key is a table's column in its own order."""
    pool, node = key.layout.pool, key.node
    if pool is None or node is None or node.target is not batches.row_numbers:
        return None
    return plan.program.packed_strings_of(pool)


def _packed_key(lowering: ExpressionLowering, value: Value, slot: str) -> Value:
    """What the packed strings in a slot say of a key that is a table's column in its own order."""
    assert value.node is not None
    first, count = value.node.arguments[:2]
    stream = lowering.stream
    codes = stream.builder.call(packed_range, stream.object(slot), first, count, name="packed")
    return Value(PLACE_LAYOUT.with_nullable(value.layout.nullable), codes, value.validity)


def _stored_elsewhere(
    plan: PlanLowering, stream: Stream, fields: Iterable[Field]
) -> list[tuple[Link, list[Field]]]:
    """Stored columns that no row of the stream has fetched yet, by the link to where they are stored."""
    if any(table.source.is_streamed for table in plan.program.tables.values()):
        return []
    homes: dict[Space, list[Field]] = {}
    for field in fields:
        column = stream.columns[field.id]
        if column.stored is not None and column.home is not None and stream.space not in column.available:
            homes.setdefault(column.home, []).append(field)
    found = [(home, stream.rows_of(home), columns) for home, columns in homes.items()]
    return [(Link(home, *rows), columns) for home, rows, columns in found if rows is not None]


def _link_stored(
    stream: Stream,
    result: Stream,
    late: Sequence[tuple[Link, Sequence[Field]]],
    rows: Sequence[StoredColumn],
) -> None:
    """Give `result` the columns that `stream` left where they are stored, by the columns of their row numbers."""
    links = []
    for (link, fields), column in zip(late, rows, strict=True):
        links.append(Link(Space(), result.source_values("row", column.slot, column.index), link.padded))
        for field in fields:
            source = stream.columns[field.id].stored
            assert source is not None
            result.add_source_column(field.id, field.name, source, links[-1].space)
    if links:
        result.link(Link(result.root), *links)
