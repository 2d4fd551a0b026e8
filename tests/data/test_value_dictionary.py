"""The numbers of a column's values, against numpy's unique and Python's sets."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tqp
from tests.settings import sharing_threads
from tqp.core.datatypes import BIGINT, DOUBLE
from tqp.data.column import Column
from tqp.data.encoding.value_dictionary import make_value_dictionary
from tqp.data.sharing import WORTH_SHARING

_RANDOM = np.random.default_rng(6)


@pytest.mark.parametrize("rows", [0, 1, 7, 1000, WORTH_SHARING, 2 * WORTH_SHARING + 5])
@pytest.mark.parametrize("distinct", [1, 100, 300, 40_000])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_numbers_lead_to_the_values(rows: int, distinct: int, dtype: type[np.signedinteger]) -> None:
    limits = np.iinfo(dtype)
    domain = _RANDOM.integers(limits.min, limits.max, distinct, dtype, endpoint=True)
    values = _RANDOM.choice(domain, rows)
    with sharing_threads(2):
        found = make_value_dictionary(Column(BIGINT, rows, torch.from_numpy(values), None))
    expected, numbers = np.unique(values, return_inverse=True)
    np.testing.assert_array_equal(found.values.numpy(), expected)
    np.testing.assert_array_equal(found.codes.numpy(), numbers)
    assert found.values.numpy().dtype == dtype
    assert found.codes.dtype.itemsize <= (1 if len(expected) <= 128 else 2 if len(expected) <= 32_768 else 4)
    assert found.nbytes == found.values.nbytes + found.codes.nbytes


@pytest.mark.parametrize("rows", [1, 1000, 2 * WORTH_SHARING + 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_floats_lead_to_the_values(rows: int, dtype: type[np.floating]) -> None:
    for zero in (0.0, -0.0):
        domain = np.array([zero, np.nan, np.inf, -np.inf, 1.5, -2.5, 1e-40, *range(1, 200)], dtype)
        values = _RANDOM.choice(domain, rows)
        with sharing_threads(2):
            found = make_value_dictionary(Column(DOUBLE, rows, torch.from_numpy(values), None))
        made = found.values.numpy()[found.codes.numpy()]
        np.testing.assert_array_equal(made, values)
        np.testing.assert_array_equal(np.signbit(made[made == 0]), np.signbit(values[values == 0]))
        np.testing.assert_array_equal(found.values.numpy(), np.unique(values))


def test_floats_with_both_zeros_have_no_dictionary() -> None:
    values = torch.tensor([0.0, 1.5, -0.0])
    assert make_value_dictionary(Column(DOUBLE, 3, values, None)).values.shape == (0,)
    with tqp.connect(threads=1) as connection:
        keys = np.tile(np.array([1.5, 0.0, -0.0, 2.5]), 50_000)
        connection.register("t", {"k": keys, "v": np.arange(len(keys))})
        for _ in range(3):
            query = "SELECT k, count(*) FROM t WHERE v >= 2 GROUP BY k ORDER BY k"
            assert repr(connection.sql(query).fetchall()) == "[(-0.0, 99999), (1.5, 49999), (2.5, 50000)]"
