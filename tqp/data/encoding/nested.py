"""LIST, MAP and STRUCT columns: Arrow's offsets, and what they hold encoded as columns of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.schema import ColumnFacts, InnerFacts
from tqp.data.arrow_buffers import AnyArray, tensor_of, validity_of, values_view
from tqp.data.column import Column
from tqp.data.encoding.integers import joined_validity
from tqp.data.nested import Lists, Nested, Structs, Values, Vector, element_dtype, take
from tqp.data.strings import Strings

#: Encodes what nested values hold: the pieces of it, and its type.
Encode = Callable[[Sequence[pa.Array], DataType], Column]


def encode_nested(chunks: Sequence[pa.Array], data_type: DataType, encode: Encode) -> Column:
    """A column on the CPU from list arrays of any kind, map arrays, or struct arrays, of a UNION those of its tag and its members."""
    num_rows = sum(len(chunk) for chunk in chunks)
    nested: Nested
    if data_type.has_elements:
        nested, *inner = _lists(chunks, data_type, encode)
    else:
        fields = (
            zip(*(_fields(chunk) for chunk in chunks), strict=True)
            if chunks
            else [()] * len(data_type.children)
        )
        inner = [encode(list(parts), each) for parts, each in zip(fields, data_type.children, strict=True)]
        nested = Structs(tuple(map(vector_of, inner)))
    facts = ColumnFacts(
        inner=tuple(InnerFacts.of(each.validity is not None, each.facts) for each in inner),
        longest=int(nested.lengths.max()) if isinstance(nested, Lists) and num_rows else None,
    )
    return Column(data_type, num_rows, None, tensor_of(joined_validity(chunks)), facts=facts, nested=nested)


def _fields(chunk: pa.StructArray) -> list[pa.Array]:
    """The fields of structs, NULL where these are. A union cannot be: pyarrow ends the process that asks for that."""
    fields = [chunk.field(place) for place in range(chunk.type.num_fields)]
    if any(pa.types.is_union(field.type) for field in fields):
        fields = [fields_of_union(field) if pa.types.is_union(field.type) else field for field in fields]
        chunk = pa.StructArray.from_arrays(fields, list(map(str, range(len(fields)))), mask=chunk.is_null())
    parts: list[pa.Array] = chunk.flatten()
    return parts


def fields_of_union(chunk: pa.UnionArray) -> pa.StructArray:
    """A union as a struct of its tag and its members. Where the member is NULL so is the union, as in DuckDB: Arrow has no other NULL."""
    num_rows, buffers = len(chunk), chunk.buffers()
    codes = np.frombuffer(buffers[1], np.int8, num_rows, chunk.offset)  # pyarrow's own forget the offset
    places = np.arange(num_rows)
    if chunk.type.mode == "dense":
        places = np.frombuffer(buffers[2], np.int32, num_rows, chunk.offset * np.dtype(np.int32).itemsize)
    tags, valid = np.zeros(num_rows, np.uint8), np.zeros(num_rows, bool)
    members = []
    for place, code in enumerate(chunk.type.type_codes):
        rows, member = codes == code, chunk.field(place)
        member = member.take(pa.array(places, mask=~rows))
        tags[rows] = place
        valid |= rows & member.is_valid().to_numpy(zero_copy_only=False)
        members.append(member)
    names = [str(place) for place in range(len(members) + 1)]
    return pa.StructArray.from_arrays([pa.array(tags), *members], names, mask=pa.array(~valid))


def _lists(chunks: Sequence[pa.Array], data_type: DataType, encode: Encode) -> tuple[Lists, Column]:
    """The lists, and their elements as a column."""
    parts, starts, lengths, num_elements = [], [], [], 0
    for chunk in chunks:
        first, sizes, elements = _slices(chunk)
        valid = validity_of(chunk)
        parts.append(elements)
        starts.append(first + num_elements)
        if data_type.kind is TypeKind.MAP:
            _check_keys(sizes, elements, valid)
        lengths.append(sizes if valid is None else sizes * valid)
        num_elements += len(elements)
    elements = encode(parts, data_type.element)
    return Lists(_joined(starts), _joined(lengths), vector_of(elements)), elements


def _check_keys(sizes: AnyArray, entries: pa.StructArray, valid: AnyArray | None) -> None:
    """Raises ExecutionError where a key stands twice in a map, which Arrow leaves to whom it concerns; of nested keys nobody looks."""
    keys = entries.field(0)
    if isinstance(keys, pa.ExtensionArray):
        keys = keys.storage
    if pa.types.is_nested(keys.type):
        return
    rows = np.repeat(np.arange(len(sizes)), sizes)
    pairs = pa.table({"row": rows, "key": keys})
    if valid is not None:
        pairs = pairs.filter(pa.array(np.repeat(valid, sizes)))
    if pairs.group_by(["row", "key"]).aggregate([]).num_rows < pairs.num_rows:
        raise ExecutionError("a key stands twice in a map; the keys of a map are distinct")


def _joined(parts: Sequence[AnyArray]) -> Tensor:
    return torch.from_numpy(np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64, copy=False))


def _slices(chunk: pa.Array) -> tuple[AnyArray, AnyArray, pa.Array]:
    """Where each list begins, how long it is, and the elements that these places are among."""
    width = (
        np.int64
        if pa.types.is_large_list(chunk.type) or pa.types.is_large_list_view(chunk.type)
        else np.int32
    )
    if pa.types.is_fixed_size_list(chunk.type):
        size, count = chunk.type.list_size, len(chunk)
        return (
            np.arange(count) * size,
            np.full(count, size),
            chunk.values.slice(chunk.offset * size, count * size),
        )
    if pa.types.is_list_view(chunk.type) or pa.types.is_large_list_view(chunk.type):
        offsets, sizes = (
            np.frombuffer(buffer, width, len(chunk), chunk.offset * width().itemsize).astype(np.int64)
            for buffer in chunk.buffers()[1:3]
        )
        return offsets, sizes, chunk.values
    offsets = values_view(chunk.offsets, width).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    return offsets[:-1] - first, np.diff(offsets), chunk.values.slice(first, last - first)


def vector_of(column: Column) -> Vector:
    """A column as values inside of nested ones: as wide as its type, and text without a dictionary."""
    return Vector(_values_of(column), column.validity)


def _values_of(column: Column) -> Values:
    if column.nested is not None:
        return column.nested
    values = column.values
    if column.pool is not None:
        if values is None:
            return column.pool
        if column.pool.num_rows:
            return take(column.pool, values.to(torch.int64))
        none = torch.zeros(column.num_rows, dtype=torch.int64)
        return Strings(none, none.to(torch.int32), column.pool.data)
    assert values is not None
    dtype = element_dtype(column.data_type)
    if dtype is not None:
        return values.to(dtype)
    return values if values.dim() == 2 else torch.stack([values.long() >> 63, values.long()], dim=1)
