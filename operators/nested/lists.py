"""Lists: made of values, measured, and elements or slices taken out of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import BLOB, DataType
from tqp.core.errors import ExecutionError
from tqp.data.backend import is_host
from tqp.data.nested import Lists, Structs, Values, Vector, count_of, element_dtype, take_slices
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, NullRule, Overload
from tqp.operators.nested import layout
from tqp.operators.nested.elements import Pair, lists_of
from tqp.operators.nested.order_keys import order_key
from tqp.operators.numbers import wide
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.batches import common_rows
from tqp.operators.strings.characters import slice_characters
from tqp.operators.strings.layout import broadcast


def in_element_form(values: Values, data_type: DataType) -> Values:
    """Values of any width as they stand inside of nested ones."""
    if not isinstance(values, Tensor):
        return values
    dtype = element_dtype(data_type)
    if dtype is None:
        return values if values.dim() == 2 else wide.from_narrow(values)
    return (
        wide.low_halves(values).to(dtype)
        if data_type.is_integer_like and values.dim() == 2
        else values.to(dtype)
    )


def vectors_of(pairs: Sequence[Pair], types: Sequence[DataType]) -> list[Vector]:
    """The arguments of a call as vectors of equal length."""
    vectors = [
        Vector(in_element_form(values, each), validity)
        for (values, validity), each in zip(pairs, types, strict=True)
    ]
    num_rows = common_rows(count_of(each.values) for each in vectors)
    return [layout.every_row_of(each, num_rows) for each in vectors]


def list_value(types: tuple[DataType, ...], *pairs: Pair) -> tuple[Lists, None]:
    """A list of each row's values: the elements of one argument stand after those of the other."""
    vectors = vectors_of(pairs, types)
    num_rows = count_of(vectors[0].values)
    elements = layout.interleaved(vectors)
    starts = torch.arange(num_rows, device=layout.device_of(elements.values)) * len(vectors)
    return Lists(starts, torch.full_like(starts, len(vectors)), elements), None


def struct_pack(types: tuple[DataType, ...], *pairs: Pair) -> tuple[Structs, None]:
    """A struct of each row's values."""
    return Structs(tuple(vectors_of(pairs, types))), None


def struct_extract(structs: Structs, position: int) -> tuple[Values, Tensor | None]:
    """The field at a position, counted from 1."""
    return structs.fields[position - 1]


def list_of_fields(lists: Lists, position: int) -> Lists:
    """Of lists of structs, none of which is NULL, the lists of the field at a position, counted from 1."""
    assert isinstance(lists.elements.values, Structs)
    return lists._replace(elements=lists.elements.values.fields[position - 1])


def list_length(lists: Lists) -> Tensor:
    """How many elements each list has."""
    return lists.lengths


def list_extract(lists: Lists, index: Tensor) -> tuple[Values, Tensor]:
    """The element at an index from 1, or from -1 backwards; NULL where there is none."""
    starts, lengths = lists.starts, lists.lengths
    if index.numel() == 1 and is_host(lengths):
        place = int(index)
        if place > 0:
            return layout.take_where(lists.elements, starts + (place - 1), lengths >= place)
        from_end = lengths + place
        inside = from_end >= 0 if place else torch.zeros_like(lengths, dtype=torch.bool)
        return layout.take_where(lists.elements, from_end.add_(starts), inside)
    place_of_each = torch.where(index > 0, index - 1, lengths + index)
    inside = (place_of_each >= 0) & (place_of_each < lengths) & (index != 0)
    return layout.take_where(lists.elements, starts + place_of_each, inside)


def list_slice(lists: Lists, first: Tensor, last: Tensor) -> Lists:
    """Elements `first` to `last` (both inclusive), counted from 1, or from -1 backwards."""
    begin, end = slice_bounds(lists.lengths, first, last)
    lengths = (end - begin + 1).clamp(min=0)
    return Lists(lists.starts + begin - 1, lengths, lists.elements)


def text_slice(strings: Strings, first: Tensor, last: Tensor) -> Strings:
    """As `list_slice`, of characters."""

    def bounds(characters: Tensor) -> tuple[Tensor, Tensor]:
        begin, end = slice_bounds(characters, first, last)
        return begin - 1, end

    return slice_characters(broadcast(strings, max(first.numel(), last.numel())), bounds)


def byte_slice(strings: Strings, first: Tensor, last: Tensor) -> Strings:
    """As `list_slice`, of bytes."""
    strings = broadcast(strings, max(first.numel(), last.numel()))
    begin, end = slice_bounds(strings.lengths.to(torch.int64), first, last)
    lengths = (end - begin + 1).clamp(min=0)
    return Strings(strings.starts + begin - 1, lengths.to(torch.int32), strings.data)


def slice_bounds(lengths: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Both ends of slices of so many elements, counted from 1, as far as there are elements; the second lies before the first where there are none.

    The first is at most the place behind the last element, so that an empty slice starts within the elements, too.
    """
    begin = torch.where(first < 0, lengths + first + 1, first).clamp(min=1)
    begin = torch.minimum(begin, lengths + 1)
    end = torch.minimum(torch.where(last < 0, lengths + last + 1, last), lengths)
    # constants are of one row, and beside them there may be none
    begin, end = torch.broadcast_tensors(begin, end)  # type: ignore[no-untyped-call]
    return begin, end


def list_slice_by_steps(
    lists: Lists, first: Tensor, last: Tensor, step: Tensor, validity: Tensor | None = None
) -> Lists:
    """As `list_slice`, of which every so many elements are taken; with a negative step from the first down to the last."""
    stands = step == 0
    if any_true(stands if validity is None else stands & validity):
        raise ExecutionError("the step of a slice is zero; give one that moves on")
    step = torch.where(stands, 1, step)
    begin, end = slice_bounds(
        lists.lengths, torch.where(step > 0, first, last), torch.where(step > 0, last, first)
    )
    span = end - begin
    lengths = torch.where(span >= 0, span.div(step.abs(), rounding_mode="floor") + 1, 0)
    begin = torch.where(step > 0, begin, end)
    return lists_of(lengths, *take_slices(lists.elements, lists.starts + begin - 1, lengths, step))


def _with_types(function: Any) -> Overload:
    """A kernel that needs the types of its arguments."""

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
        return Kernel(partial(function, argument_types), NullRule.CUSTOM, accepts_wide=True)

    return resolve


def _resolve_slice(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    if len(argument_types) > 3:
        return Kernel(list_slice_by_steps, checks=True)
    if argument_types[0] == BLOB:
        return Kernel(byte_slice)
    return Kernel(text_slice if argument_types[0].is_string else list_slice)


def _resolve_order_key(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    return Kernel(partial(order_key, data_type=argument_types[0]))


LIST_KERNELS: dict[str, Overload] = {
    "list_value": _with_types(list_value),
    "struct_pack": _with_types(struct_pack),
    "struct_extract": lambda types, result: Kernel(
        struct_extract, constant_arguments=frozenset((1,)), returns_validity=True, any_width=True
    ),
    "list_of_fields": lambda types, result: Kernel(list_of_fields, constant_arguments=frozenset((1,))),
    "list_extract": lambda types, result: Kernel(list_extract, returns_validity=True, any_width=True),
    "list_length": lambda types, result: Kernel(list_length),
    "cardinality": lambda types, result: Kernel(list_length),
    "list_slice": _resolve_slice,
    "order_key": _resolve_order_key,
}
