"""The numbers of a column's values, against numpy's unique."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tqp.core.datatypes import BIGINT
from tqp.data.column import Column
from tqp.data.numbered_values import number_values
from tqp.data.sharing import WORTH_SHARING, sharing_threads

_RANDOM = np.random.default_rng(6)


@pytest.mark.parametrize("rows", [0, 1, 7, 1000, WORTH_SHARING, 2 * WORTH_SHARING + 5])
@pytest.mark.parametrize("distinct", [1, 100, 300, 40_000])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_numbers_lead_to_the_values(rows: int, distinct: int, dtype: type[np.signedinteger]) -> None:
    limits = np.iinfo(dtype)
    domain = _RANDOM.integers(limits.min, limits.max, distinct, dtype, endpoint=True)
    values = _RANDOM.choice(domain, rows)
    with sharing_threads(2):
        found = number_values(Column(BIGINT, rows, torch.from_numpy(values), None))
    expected, numbers = np.unique(values, return_inverse=True)
    np.testing.assert_array_equal(found.values.numpy(), expected)
    np.testing.assert_array_equal(found.numbers.numpy(), numbers)
    assert found.values.numpy().dtype == dtype
    assert found.numbers.dtype.itemsize <= (
        1 if len(expected) <= 128 else 2 if len(expected) <= 32_768 else 4
    )
    assert found.nbytes == found.values.nbytes + found.numbers.nbytes
