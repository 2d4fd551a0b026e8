"""Nested values as bytes that compare as the values do: for comparisons, ORDER BY, GROUP BY, DISTINCT and joins.

Lists compare element by element, the shorter one being less where it is the beginning of the longer one; structs field
by field. NULL inside of them equals NULL and is greater than every value. So the bytes of a list are those of its
elements, one after the other, and 0 behind the last; those of a struct are the bytes of its fields. Before each stands
1, or 2 for NULL. Numbers have as many bytes as their type, the highest first, the sign bit inverted.

The first number or text in a value says already of most values which is less (`leading_numbers`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tqp.core import zoned_times
from tqp.core.datatypes import DataType, TypeKind, holds_kind
from tqp.data.backend import is_host
from tqp.data.nested import Lists, Structs, Values, Vector, count_of, element_dtype, take_vector
from tqp.data.strings import Strings
from tqp.operators.nested.layout import compact, device_of
from tqp.operators.numbers.comparisons import interval_order
from tqp.operators.rows.keys import ordered_bits
from tqp.operators.rows.runs import sums_before
from tqp.operators.strings import layout as string_layout
from tqp.operators.strings import words
from tqp.operators.strings.build import join

_END, _VALUE, _NULL = 0, 1, 2
#: Leading numbers of values lie between that of a list without elements and that of NULL.
_LEADING_BITS = 61
_LEADING_EMPTY, _LEADING_NULL = -1 << _LEADING_BITS + 1, 1 << _LEADING_BITS + 1


def order_key(values: Values, data_type: DataType) -> Strings:
    """Bytes [n] that are equal for equal values of the type, which is nested or FLOAT[n], and less for lesser ones."""
    values = _as_ordered(values, data_type)
    if isinstance(values, Lists):
        return _list_bytes(values, data_type)
    if isinstance(values, Tensor):
        return string_layout.of_equal_lengths(_number_bytes(values.reshape(-1, data_type.size), data_type))
    assert isinstance(values, Structs)
    return _struct_bytes(values, data_type)


def leading_numbers(values: Values, data_type: DataType) -> Tensor:
    """int64 [n] that are at most as great for lesser values of the type (as of `order_key`): of the first part of each."""
    return _leading_numbers(_as_ordered(values, data_type), data_type)


def _leading_numbers(values: Values, data_type: DataType) -> Tensor:
    if isinstance(values, Structs):
        return _leading_of_vector(values.fields[0], data_type.children[0])
    if isinstance(values, Lists):
        is_empty = values.lengths == 0
        if not count_of(values.elements.values):
            return torch.full_like(values.starts, _LEADING_EMPTY)
        firsts = take_vector(values.elements, values.starts.masked_fill(is_empty, 0))
        return _leading_of_vector(firsts, data_type.element).masked_fill_(is_empty, _LEADING_EMPTY)
    unused_bits = 63 - _LEADING_BITS
    if isinstance(values, Strings):
        return words.order_key(words.words(values, 0)) >> unused_bits
    if data_type.kind is TypeKind.INTERVAL:
        values = interval_order(values)
    if values.dim() == 2:
        values = values[:, 0]
    if values.is_floating_point():
        return ordered_bits(values) >> unused_bits
    return values.to(torch.int64).clamp(-1 << _LEADING_BITS, 1 << _LEADING_BITS)


def _leading_of_vector(vector: Vector, data_type: DataType) -> Tensor:
    numbers = _leading_numbers(vector.values, data_type)
    if vector.validity is None:
        return numbers
    return numbers.masked_fill_(vector.validity.logical_not(), _LEADING_NULL)


def _as_ordered(values: Values, data_type: DataType, inside: bool = False) -> Values:
    """The values with each TIMETZ and BIT `inside` of a map or union replaced by what DuckDB orders it by there.

    It compares those as it stores them: times by what the clock shows, bits first by how many are left in the last byte.
    """
    if not any(holds_kind(data_type, kind) for kind in (TypeKind.TIME_TZ, TypeKind.BIT)):
        return values
    inside = inside or data_type.is_union or data_type.kind is TypeKind.MAP
    if isinstance(values, Lists):
        return values._replace(elements=_vector_as_ordered(values.elements, data_type.element, inside))
    if isinstance(values, Structs):
        fields = zip(values.fields, data_type.children, strict=True)
        return Structs(tuple(_vector_as_ordered(field, each, inside) for field, each in fields))
    if not inside:
        return values
    return _behind_bits_left(values) if isinstance(values, Strings) else zoned_times.by_clock(values)


def _vector_as_ordered(vector: Vector, data_type: DataType, inside: bool) -> Vector:
    return vector._replace(values=_as_ordered(vector.values, data_type, inside))


def _behind_bits_left(bits: Strings) -> Strings:
    """BITs, a digit for each bit, behind the number of bits that their last byte has left."""
    left = (-bits.lengths % 8).to(torch.uint8).reshape(-1, 1)
    return join([string_layout.of_equal_lengths(left), bits])


def _list_bytes(lists: Lists, data_type: DataType) -> Strings:
    """Those of the elements of each list, without what ends them."""
    lists = compact(lists)
    elements = _vector_bytes(lists.elements, data_type.element)
    offsets = sums_before(elements.lengths)
    starts = torch.index_select(offsets, 0, lists.starts)
    lengths = torch.index_select(offsets, 0, lists.starts + lists.lengths) - starts
    return Strings(starts, lengths.to(torch.int32), elements.data)


def _struct_bytes(structs: Structs, data_type: DataType) -> Strings:
    fields = zip(structs.fields, data_type.children, strict=True)
    return join([_vector_bytes(field, each) for field, each in fields])


def _vector_bytes(vector: Vector, data_type: DataType) -> Strings:
    """The bytes of values that may be NULL, contiguous; none are the beginning of others."""
    values, validity = vector
    count, device = count_of(values), device_of(values)
    mark = torch.full((count, 1), _VALUE, dtype=torch.uint8, device=device)
    if validity is not None:
        mark[:, 0] = torch.where(validity, _VALUE, _NULL)
    if isinstance(values, Tensor):
        data = _number_bytes(values, data_type)
        if validity is not None:
            data = data * validity.unsqueeze(1)
        return string_layout.of_equal_lengths(torch.cat([mark, data], dim=1))
    if isinstance(values, Strings):
        parts = [_text_bytes(values, data_type), _end(device)]
    elif isinstance(values, Lists):
        parts = [_list_bytes(values, data_type), _end(device)]
    else:
        parts = [_struct_bytes(values, data_type)]
    if validity is not None:
        parts = [
            part._replace(lengths=part.lengths.expand(count) * validity) for part in _as_long(parts, count)
        ]
    joined = join([string_layout.of_equal_lengths(mark), *parts])
    return string_layout.compact(joined)


def _as_long(parts: Sequence[Strings], count: int) -> Sequence[Strings]:
    return [part._replace(starts=part.starts.expand(count)) for part in parts]


def _end(device: torch.device) -> Strings:
    return string_layout.of_equal_lengths(torch.full((1, 1), _END, dtype=torch.uint8, device=device))


def _text_bytes(strings: Strings, data_type: DataType) -> Strings:
    """Bytes without a 0, which ends a text: of UTF-8 the next greater ones, of others a 1 before each."""
    strings = string_layout.compact(strings)
    if data_type.kind in (TypeKind.VARCHAR, TypeKind.BIT):
        return strings._replace(data=strings.data + 1)
    data = torch.stack([torch.ones_like(strings.data), strings.data], dim=1).reshape(-1)
    return Strings(strings.starts * 2, strings.lengths * 2, data)


def _number_bytes(values: Tensor, data_type: DataType) -> Tensor:
    """uint8 [n, width] of numbers, truth values, dates, intervals and arrays."""
    if data_type.kind is TypeKind.NULL:
        return torch.zeros((values.shape[0], 0), dtype=torch.uint8, device=values.device)
    if data_type.kind is TypeKind.INTERVAL:
        return torch.cat([_word_bytes(word, 8) for word in interval_order(values).unbind(1)], dim=1)
    if data_type.is_float:
        return _word_bytes(ordered_bits(values), values.element_size())
    if data_type.kind is TypeKind.ARRAY:
        words = ordered_bits(values.reshape(-1))
        return _word_bytes(words, 4).reshape(values.shape[0], 4 * values.shape[1])
    dtype = element_dtype(data_type)
    if dtype is None:  # the lower word has no sign
        high, low = values.unbind(1)
        return torch.cat([_word_bytes(high, 8), _word_bytes(low ^ torch.iinfo(torch.int64).min, 8)], dim=1)
    return _word_bytes(values.to(torch.int64), dtype.itemsize)


def _word_bytes(words: Tensor, width: int) -> Tensor:
    """The lowest `width` bytes of int64 [n], the highest first, with the sign inverted."""
    if is_host(words):
        sign = np.int64(-(2**63) if width == 8 else 1 << (8 * width - 1))
        highest_first = (words.numpy() ^ sign).astype(f">u{width}")
        return torch.from_numpy(highest_first.view(np.uint8).reshape(-1, width))
    shifts = torch.arange(8 * (width - 1), -1, -8, device=words.device)
    data = ((words.unsqueeze(1) >> shifts) & 0xFF).to(torch.uint8)
    data[:, 0] ^= 0x80
    return data
