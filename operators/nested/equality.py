"""Whether nested values are equal: NULL inside of them equals NULL, NaN equals NaN. Elements are read of lists of the same length only."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.data.nested import Lists, Nested, Structs, Values, Vector, count_of, take_slices
from tqp.data.strings import Strings
from tqp.operators.nested.elements import any_element
from tqp.operators.nested.layout import every_row
from tqp.operators.numbers import comparisons
from tqp.operators.rows.batches import common_rows
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.strings import compare as string_compare


def equal(left: Nested, right: Nested, data_type: DataType) -> Tensor:
    """bool [n] of values of one type; one row stands for as many as the other has."""
    num_rows = common_rows(map(count_of, (left, right)))
    return _are_equal(every_row(left, num_rows), every_row(right, num_rows), data_type)


def _are_equal(left: Values, right: Values, data_type: DataType) -> Tensor:
    if isinstance(left, Lists) and isinstance(right, Lists):
        return _equal_lists(left, right, data_type.element)
    if isinstance(left, Structs) and isinstance(right, Structs):
        fields = zip(left.fields, right.fields, data_type.children, strict=True)
        return functools.reduce(torch.logical_and, (_equal_vectors(*each) for each in fields))
    if isinstance(left, Strings) and isinstance(right, Strings):
        return string_compare.equal(left, right)
    assert isinstance(left, Tensor) and isinstance(right, Tensor)
    if data_type.kind is TypeKind.INTERVAL:
        return comparisons.interval_equal(left, right)
    same = comparisons.float_equal(left, right) if left.is_floating_point() else left == right
    return same.all(1) if same.dim() == 2 else same


def _equal_vectors(left: Vector, right: Vector, data_type: DataType) -> Tensor:
    same = _are_equal(left.values, right.values, data_type)
    if left.validity is None and right.validity is None:
        return same
    there = [torch.ones_like(same) if each.validity is None else each.validity for each in (left, right)]
    return (same & there[0] & there[1]) | ~(there[0] | there[1])


def _equal_lists(left: Lists, right: Lists, element: DataType) -> Tensor:
    same = left.lengths == right.lengths
    rows = row_indices(same)
    lengths = take(left.lengths, rows)
    of_left, of_right = (
        take_slices(each.elements, take(each.starts, rows), lengths) for each in (left, right)
    )
    different = any_element(lengths, ~_equal_vectors(of_left, of_right, element))
    return same.index_fill_(0, take(rows, row_indices(different)), False)
