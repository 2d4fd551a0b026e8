"""Large tensors come from kept blocks: right values, and never memory that somebody still holds."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from tqp.operators.memory import allocation
from tqp.operators.memory.allocation import BlockPool

CPU = torch.device("cpu")
MIB = 1 << 20


@pytest.mark.parametrize("size", [0, 1, 5 * MIB, 40 * MIB, 40 * MIB + 3])
def test_zeros_are_zeros_again_after_use(size: int) -> None:
    for _ in range(3):
        tensor = allocation.zeros(size, torch.int8, CPU)
        assert tensor.shape == (size,) and not tensor.any()
        tensor.fill_(7)
        del tensor


def test_empty_has_the_shape_and_dtype() -> None:
    assert allocation.empty((5 * MIB, 2), torch.int64, CPU).shape == (5 * MIB, 2)
    assert allocation.full(9 * MIB, 1.5, torch.float64, CPU).sum().item() == 9 * MIB * 1.5


def test_a_block_is_used_again_only_when_nobody_holds_it() -> None:
    pool = BlockPool(limit=1 << 30)
    array, fresh = pool.take(40 * MIB, np.int8)
    assert fresh
    tensor = torch.from_numpy(array)
    address = tensor.data_ptr()
    view = tensor[5:10].numpy()  # a view of a view keeps the block
    del array, tensor
    gc.collect()
    assert pool.kept() == 0
    del view
    gc.collect()
    assert pool.kept() == 40 * MIB
    again, fresh = pool.take(10 * MIB, np.int32)  # the same number of bytes
    assert not fresh and torch.from_numpy(again).data_ptr() == address
    assert pool.kept() == 0


def test_a_pool_keeps_no_more_than_its_limit() -> None:
    pool = BlockPool(limit=60 * MIB)
    arrays = [pool.take(40 * MIB, np.int8)[0] for _ in range(2)]
    arrays.clear()
    gc.collect()
    assert pool.kept() == 40 * MIB


def test_concatenate_large_parts() -> None:
    parts = [torch.arange(3 * MIB) + i for i in range(2)]
    assert torch.equal(allocation.concatenate(parts), torch.cat(parts))
