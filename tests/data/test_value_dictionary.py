"""The numbers of a column's values, against numpy's unique and Python's sets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

from tqp.core.datatypes import BIGINT
from tqp.data.column import Column
from tqp.data.encoding.columns import encode_column
from tqp.data.encoding.value_dictionary import make_value_dictionary
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
        found = make_value_dictionary(Column(BIGINT, rows, torch.from_numpy(values), None))
    expected, numbers = np.unique(values, return_inverse=True)
    np.testing.assert_array_equal(found.values.numpy(), expected)
    np.testing.assert_array_equal(found.codes.numpy(), numbers)
    assert found.values.numpy().dtype == dtype
    assert found.codes.dtype.itemsize <= (1 if len(expected) <= 128 else 2 if len(expected) <= 32_768 else 4)
    assert found.nbytes == found.values.nbytes + found.codes.nbytes


@pytest.mark.parametrize("rows", [7, 5000, 2 * WORTH_SHARING + 5])
def test_numbers_of_strings_lead_to_a_row_that_holds_them(rows: int) -> None:
    texts = [f"{number}é" * (number % 7) for number in _RANDOM.integers(0, 40_000, rows).tolist()]
    nullable = pa.array(texts, mask=_RANDOM.random(rows) < 0.1)
    for array in (pa.array(texts), nullable, nullable.cast(pa.binary()), nullable.cast(pa.string_view())):
        column = encode_column("x", array, torch.device("cpu"))
        if column.values is not None:  # it has a dictionary
            assert rows < 5000
            continue
        found = make_value_dictionary(column)
        stored = ["" if text is None else text for text in pa.array(array).cast(pa.string()).to_pylist()]
        firsts, numbers = found.values.tolist(), found.codes.tolist()
        assert len(firsts) == len(set(stored)) == max(numbers) + 1
        assert [stored[firsts[number]] for number in numbers] == stored
