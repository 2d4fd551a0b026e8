"""Array forms give what their kernels give of tensors, and leave their arguments as they are."""

from __future__ import annotations

import math
import operator
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tqp.operators.call_operations import operation_of
from tqp.operators.groups import aggregates
from tqp.operators.joins.perfect_hash_join import build_perfect_hash
from tqp.operators.memory.arrays import as_array, as_tensor, running_sums
from tqp.operators.numbers import elementwise
from tqp.operators.rows import domain_tables, keys
from tqp.operators.rows import selection as rows

DTYPES = [torch.int8, torch.int16, torch.int32, torch.int64]
_MANY = rows._MANY_INDICES


def _calls(size: int) -> list[tuple[Any, tuple[Any, ...]]]:
    """Kernels, or names of methods, with arguments of so many rows."""
    generator = torch.Generator().manual_seed(size)

    def integers(high: int, dtype: torch.dtype = torch.int64, low: int = 0) -> Tensor:
        return torch.randint(low, high, (size,), generator=generator).to(dtype)

    mask, valid = integers(2, torch.bool), integers(2, torch.bool)
    bytes_, words, wide = (
        integers(100, torch.int8),
        integers(1000, torch.int16),
        integers(50, torch.int64, -50),
    )
    table, pairs = torch.arange(1000), torch.arange(2000).reshape(1000, 2)
    compares = [
        elementwise.equal, elementwise.not_equal, elementwise.less, elementwise.less_equal, elementwise.greater,
        elementwise.greater_equal,
    ]  # fmt: skip
    calls: list[tuple[Any, tuple[Any, ...]]] = [(kernel, (bytes_, words)) for kernel in compares]
    for kernel in (elementwise.add, elementwise.subtract, elementwise.multiply):
        calls += [
            (kernel, arguments)
            for arguments in ((bytes_, words), (words, 7), (100, bytes_), (wide, wide[:1]))
        ]
    calls += [
        (elementwise.all_of, ([mask, valid, bytes_ > 3],)),
        (elementwise.any_of, ([mask, valid],)),
        (elementwise.put_where, (None, mask, bytes_, torch.int8)),
        (elementwise.choose, (mask, words, 3, torch.int16)),
        (elementwise.choose, (mask, wide, wide[:1] if size else 1, torch.int64)),
        (elementwise.choose, (mask, valid, False, torch.bool)),
        (elementwise.keep_where, (wide, mask)),
        (elementwise.keep_where, (wide.to(torch.float64), mask)),
        (elementwise.keep_where, (valid, mask)),
        (rows.row_indices, (mask, valid)),
        (rows.select_most, (mask, size)),
        (rows.select_most, (mask | ~mask, size)),
        (rows.select_most, (bytes_ > 0, size)),
        (rows.take_selected, (table, words.to(torch.int32))),
        (rows.take_selected, (table, None)),
        (rows.take_padded, (table, wide)),
        (rows.take_padded, (table[:0], torch.full((size,), -1))),
        (rows.compose_padded, (table.to(torch.int32), wide)),
        (rows.compose_padded, (table, wide.to(torch.int32))),
        (rows.padding_validity, (wide, None)),
        (rows.padding_validity, (wide, table > 3)),
        (keys.pack, ([(words, None)], [(0, 1000, False)])),
        (keys.pack, ([(wide, None)], [(0, 1000, False)])),
        (keys.pack, ([(wide, valid), (mask, None)], [(-50, 101, True), (0, 2, False)])),
        (keys.pack, ([(wide, valid)], [(-50, 100, False)])),
        (keys.pack_narrow, ([(words, None)], [(-7, 1007, False)])),
        (keys.pack_narrow, ([(wide - 2**40, None), (bytes_, None)], [(-(2**40) - 50, 100, False), (0, 100, False)])),
        (keys.pack_narrow, ([(bytes_, None)], [(0, 127, False)])),
        (keys.pack_narrow, ([(bytes_, None)] * 3, [(0, 100, False)] * 3)),
        (keys.unpack, (words, [(3, 10, True), (0, 10, False), (-4, 10, True)])),
        (keys.unpack, (words.to(torch.int32), [(0, 1000, False)])),
        (domain_tables.look_up, (table, words, 0, False)),
        (domain_tables.look_up, (pairs, bytes_, -20, False)),
        (domain_tables.look_up, (table[:20], wide, -5, True)),
        (domain_tables.look_up, (table[:0], bytes_, 0, True)),
        (torch.index_select, (table, 0, words.to(torch.int32))),
        (torch.index_select, (pairs, 0, words.to(torch.int64))),
        ("to", (wide, torch.int8)),
        ("to", (wide, torch.int64)),
        ("to", (wide.to(torch.float64) / 3, torch.int32)),
        ("to", (mask, torch.int16)),
        ("contains", (build_perfect_hash(torch.arange(0, 100, 3), 100), bytes_, None)),
        (operator.ge, (mask, valid)),
        (operator.invert, (mask,)),
        *((kernel, (words, wide)) for kernel in (operator.add, operator.sub, operator.mul, operator.truediv)),
        *((kernel, (words, 3)) for kernel in (operator.add, operator.sub, operator.mul, operator.truediv)),
        (operator.neg, (wide,)),
        (elementwise.absolute, (wide,)),
        (aggregates.count_all, (size, None, "cpu")),
        (aggregates.count_all, (size, mask, "cpu")),
        *((kernel, (values,)) for kernel in (aggregates.min_all, aggregates.max_all) for values in (words, wide, mask)),
        *((kernel, (words, mask)) for kernel in (aggregates.sum_all, aggregates.min_all, aggregates.max_all)),
        (aggregates.sum_all, (words, None, 1000)),
        (aggregates.sum_all, (wide, None)),
    ]  # fmt: skip
    return calls


@pytest.mark.parametrize("size", [0, 1, 1000, _MANY])
def test_array_forms_are_their_kernels(size: int) -> None:
    for target, arguments in _calls(size):
        expected = (
            getattr(arguments[0], target)(*arguments[1:]) if isinstance(target, str) else target(*arguments)
        )
        before = [item.clone() for item in _tensors(arguments)]
        found = operation_of(target).host(*as_array(arguments))
        assert not list(_tensors(found)), target
        _assert_equal(as_tensor(found), expected, target)
        assert all(map(torch.equal, before, _tensors(arguments))), target


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0, 1, 5000])
def test_float_forms_are_their_kernels(dtype: torch.dtype, size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    a, b = (torch.randn(size, generator=generator, dtype=dtype) for _ in range(2))
    for place, number in enumerate([math.inf, -math.inf, math.nan, 0.0, -0.0, 1e-310][: size // 10]):
        a[place] = b[-place] = number
    valid = torch.rand(size, generator=generator) < 0.5
    for target in (*_TWO, *_ONE):
        one = target in _ONE
        form = operation_of(target).host
        if form is None:  # torch's is the quicker one on this processor
            continue
        for arguments in (
            [(a,)] if one else [(a, b), (a, 2.5), (2.5, a), (a, a), (a, torch.tensor(3.0, dtype=dtype))]
        ):
            if target in (operator.truediv, elementwise.divide) and not isinstance(arguments[0], Tensor):
                continue  # which no graph has: torch would multiply by a reciprocal
            expected = target(*arguments)
            copies = [item.clone() for item in arguments if isinstance(item, Tensor)]
            with np.errstate(all="ignore"):
                found = form(*as_array(arguments))
            assert as_tensor(found).dtype is expected.dtype
            np.testing.assert_array_equal(found, expected.numpy(), str(target))
            for copy, item in zip(copies, (i for i in arguments if isinstance(i, Tensor)), strict=True):
                np.testing.assert_array_equal(copy.numpy(), item.numpy())
    for kernel in (aggregates.sum_all, aggregates.min_all, aggregates.max_all):
        for validity in (None, valid):
            with np.errstate(all="ignore"):
                found = operation_of(kernel).host(as_array(a), as_array(validity))
            expected = kernel(a, validity)
            assert as_tensor(found).dtype is expected.dtype
            np.testing.assert_array_equal(found, expected.numpy(), str(kernel))


_TWO = (operator.add, operator.sub, operator.mul, operator.truediv, elementwise.divide)
_ONE = (
    operator.neg, elementwise.absolute, elementwise.square_root, elementwise.exponential, elementwise.natural_logarithm,
    elementwise.binary_logarithm, elementwise.decimal_logarithm,
)  # fmt: skip


def _tensors(item: Any) -> Any:
    if isinstance(item, Tensor):
        yield item
    elif isinstance(item, (tuple, list)):
        for part in item:
            yield from _tensors(part)


def _assert_equal(found: Any, expected: Any, target: Any) -> None:
    if isinstance(expected, Tensor):
        assert found.dtype is expected.dtype and torch.equal(found, expected), target
    elif isinstance(expected, (tuple, list)):
        for one, other in zip(found, expected, strict=True):
            _assert_equal(one, other, target)
    else:
        assert found == expected, target


@pytest.mark.parametrize("dtype", DTYPES)
def test_keys_of_the_whole_range_of_a_dtype(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    generator = random.Random(str(dtype))
    values = [limits.min, limits.max, 0, -1, *(generator.randint(limits.min, limits.max) for _ in range(50))]
    columns, parts = (
        [(torch.tensor(values, dtype=dtype), None)],
        [(limits.min, limits.max - limits.min + 1, False)],
    )
    if dtype is torch.int64:
        columns[0] = (columns[0][0].clamp(min=0), None)
        parts = [(0, 2**63 - 1, False)]
        values = [max(0, min(value, 2**63 - 2)) for value in values]
        columns = [(torch.tensor(values), None)]
    codes = keys.pack(columns, parts)
    assert codes.tolist() == [value - parts[0][0] for value in values]
    assert keys.unpack(codes, parts)[0][0].tolist() == values


def test_running_sums() -> None:
    values = np.array([3, -1, 7], np.int8)
    out = np.zeros(4, np.int64)
    assert running_sums(values, np.int64, out=out[1:]).tolist() == [3, 2, 9]
    assert out.tolist() == [0, 3, 2, 9]
    assert running_sums(values, np.int8).tolist() == [3, 2, 9]
    assert running_sums(values, np.int8).dtype == np.int8
    assert running_sums(values[:0], np.int64).tolist() == []
