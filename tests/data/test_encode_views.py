"""Short strings in Arrow's view layout: the same columns as from any other layout."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
import torch

from tqp.data.encode import encode_column
from tqp.operators.string_layout import to_list

CPU = torch.device("cpu")
COMMON = ["AIR", "MAIL", "REG AIR", "", "exactly 12 b", "nul\0", "nul\0\0", "é"]


def decoded(column: object) -> list[bytes]:
    assert column.values is not None and column.pool_is_dictionary  # type: ignore[attr-defined]
    entries = to_list(column.pool)  # type: ignore[attr-defined]
    assert entries == sorted(set(entries))
    return [entries[code] for code in column.values.tolist()]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "rare", [[], ["RARE"], [f"rare {i}" for i in range(40)], ["longer than twelve bytes"]], ids=len
)
@pytest.mark.parametrize("with_nulls", [False, True])
def test_views_like_other_strings(rare: list[str], with_nulls: bool) -> None:
    chance = random.Random(0)
    values: list[str | None] = [chance.choice(COMMON) for _ in range(150_000)]
    for position, value in enumerate(rare * 2):  # hardly in a sample
        values[position * 701 + 3] = value
    if with_nulls:
        values[::7] = [None] * len(values[::7])
    whole = pa.array(values, pa.string())
    chunks = [whole.slice(0, 70_001), whole.slice(70_001)]
    expected = encode_column("s", pa.chunked_array(chunks), CPU)
    for view in (pa.string_view(), pa.binary_view()):
        cut = pa.concat_arrays([pa.array(["cut off"], pa.string()), whole])
        sliced = (cut.cast(view) if view == pa.string_view() else cut.cast(pa.binary()).cast(view)).slice(1)
        column = encode_column("s", pa.chunked_array([sliced.slice(0, 70_001), sliced.slice(70_001)]), CPU)
        keep = [value is not None for value in values]
        found = [value for value, valid in zip(decoded(column), keep, strict=True) if valid]
        assert found == [value.encode() for value in values if value is not None]
        assert (column.validity is None) == (not with_nulls)
        if column.validity is not None:
            assert column.validity.tolist() == keep
        assert column.statistics.dictionary_size == expected.statistics.dictionary_size
