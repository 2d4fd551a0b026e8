"""Row selection, gathers and padded gathers."""

from __future__ import annotations

import pytest
import torch

from tqp.operators.rows.selection import (
    compose_padded,
    compose_selected,
    padding_validity,
    row_indices,
    select_most,
    take,
    take_optional,
    take_padded,
    take_selected,
)


def test_row_indices_are_the_true_and_valid_rows() -> None:
    mask = torch.tensor([True, False, True, True])
    assert row_indices(mask).tolist() == [0, 2, 3]
    assert row_indices(mask, torch.tensor([True, True, False, True])).tolist() == [0, 3]
    assert row_indices(torch.zeros(0, dtype=torch.bool)).tolist() == []
    assert row_indices(torch.ones(10, dtype=torch.bool)[::2]).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("offset", [0, 3])
@pytest.mark.parametrize("size", [16_383, 16_384, 20_001, 1_048_579])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.09, 0.1, 0.5, 1.0])
def test_row_indices_of_many_rows(share: float, size: int, offset: int) -> None:
    generator = torch.Generator().manual_seed(size)
    mask = (torch.rand(size + offset, generator=generator) < share)[offset:]
    assert torch.equal(row_indices(mask), torch.nonzero(mask).squeeze(1))
    mask[-1] = True
    assert torch.equal(row_indices(mask), torch.nonzero(mask).squeeze(1))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_take_and_compose(dtype: torch.dtype) -> None:
    values = torch.tensor([10, 20, 30, 40])
    outer, inner = torch.tensor([3, 1, 0], dtype=dtype), torch.tensor([2, 2, 0], dtype=dtype)
    assert take(values, outer).tolist() == [40, 20, 10]
    assert torch.equal(take(take(values, outer), inner), take(values, compose_selected(outer, inner)))
    assert take_optional(None, outer) is None
    validity = take_optional(torch.tensor([True, False, True, True]), outer)
    assert validity is not None and validity.tolist() == [True, False, True]


@pytest.mark.parametrize("outer_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("inner_dtype", [torch.int32, torch.int64])
def test_compose_padded_keeps_padding_of_both(outer_dtype: torch.dtype, inner_dtype: torch.dtype) -> None:
    outer, inner = torch.tensor([5, -1, 7], dtype=outer_dtype), torch.tensor([2, -1, 1, 0], dtype=inner_dtype)
    assert compose_padded(outer, inner).tolist() == [7, -1, -1, 5]
    assert compose_padded(outer[:0], torch.full((2,), -1, dtype=inner_dtype)).tolist() == [-1, -1]


def test_padded_rows_are_null() -> None:
    values = torch.tensor([10, 20])
    rows = torch.tensor([1, -1, 0], dtype=torch.int32)
    assert take_padded(values, rows)[[0, 2]].tolist() == [20, 10]
    assert padding_validity(rows, None).tolist() == [True, False, True]
    assert padding_validity(rows, torch.tensor([False, True])).tolist() == [True, False, False]


@pytest.mark.parametrize("shape", [(0,), (0, 2)])
def test_padding_from_no_rows(shape: tuple[int, ...]) -> None:
    rows = torch.full((3,), -1, dtype=torch.int32)
    assert take_padded(torch.zeros(shape), rows).shape == (3, *shape[1:])
    assert padding_validity(rows, torch.zeros(0, dtype=torch.bool)).tolist() == [False] * 3


def test_few_rows_are_selected_and_most_are_masked() -> None:
    values = torch.arange(10)
    few, most = values > 7, values > 0
    rows, kept, count = select_most(few, 10)
    assert kept is None and count == 2 and take_selected(values, rows).tolist() == [8, 9]
    rows, kept, count = select_most(most, 10)
    assert rows is None and kept is most and count == 10 and take_selected(values, rows) is values
    assert select_most(values >= 0, 10) == (None, None, 10)
    assert select_most(most[:0], 0) == (None, None, 0)
