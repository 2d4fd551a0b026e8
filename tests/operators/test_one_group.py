"""The row at a place of the only group, found without a sort, beside the sort of several groups."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from tqp.operators.groups.ordered import (
    OrderedGroups,
    UnorderedGroup,
    order_groups,
    order_values,
    value_at_place,
)
from tqp.operators.groups.quantiles import DEVIATIONS, MEDIANS, QUANTILES
from tqp.operators.sorting.sort import SortColumn

_random = np.random.default_rng(5)
_COLUMNS = {
    "doubles": _random.random(50_000),
    "with NaN and infinity": np.concatenate(
        [_random.random(30_000), [math.nan] * 9000, [math.inf, -math.inf] * 900]
    ),
    "mostly one value": np.where(_random.random(50_000) < 0.9, 7.0, _random.random(50_000)),
    "in order": np.arange(50_000),
    "periodic": np.tile(np.arange(12), 4100),
    "narrow": _random.integers(-128, 128, 40_000).astype(np.int8),
    "few": np.array([3.5, 1.5, 2.5, -0.0]),
    "one": np.array([2**62]),
}


@pytest.mark.parametrize("name", _COLUMNS)
def test_the_value_at_a_place(name: str) -> None:
    values = _COLUMNS[name]
    ordered = np.sort(values)
    size = len(values)
    for place in {0, size // 100, size // 2, (size - 1) // 2, size - 1}:
        assert np.array_equal(
            value_at_place(values, place), ordered[place], equal_nan=values.dtype.kind == "f"
        )


@pytest.mark.parametrize("name", _COLUMNS)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_rows_hold_what_rows_in_order_hold(name: str, nulls: float) -> None:
    values, ids = torch.from_numpy(_COLUMNS[name]), torch.zeros(len(_COLUMNS[name]), dtype=torch.int64)
    validity = torch.from_numpy(_random.random(len(values)) >= nulls) if nulls else None
    one = order_values(values, ids, 1, validity)
    several: Any = order_groups([SortColumn(values)], ids, 1, validity)
    assert isinstance(one, UnorderedGroup) and isinstance(several, OrderedGroups)
    assert one.counts.tolist() == several.counts.tolist()
    count = int(one.counts)
    for place in {0, count // 3, count // 2, max(0, count - 1)}:
        row, expected = (int(each.at(torch.tensor([place]))) for each in (one, several))
        assert (row < 0) == (expected < 0) == (count == 0)
        if count:
            assert validity is None or bool(validity[row])
            assert torch.equal(values[row].nan_to_num(-1.0), values[expected].nan_to_num(-1.0))


@pytest.mark.parametrize("nulls", [0.0, 0.3])
@pytest.mark.parametrize("name", ["doubles", "mostly one value", "few", "one", "narrow"])
def test_reductions_of_one_group_and_of_it_beside_another(name: str, nulls: float) -> None:
    values = torch.from_numpy(_COLUMNS[name])
    validity = torch.from_numpy(_random.random(len(values)) >= nulls) if nulls else None
    ids = torch.zeros(len(values), dtype=torch.int64)
    ordered = [order_values(values, ids, count, validity) for count in (1, 2)]
    empty = validity is not None and not bool(validity.any())
    for kind in ("median", "quantile"):
        found = [
            MEDIANS[kind](values, each) if kind == "median" else QUANTILES[kind](values, each, 0.3)
            for each in ordered
        ]
        assert empty or found[0].tolist() == found[1][:1].tolist()
    mads = [DEVIATIONS["mad"](values, ids, count, validity) for count in (1, 2)]
    assert empty or mads[0].tolist() == mads[1][:1].tolist()
