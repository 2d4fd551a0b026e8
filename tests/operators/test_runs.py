"""Reductions of runs of rows against those of groups by number, on both backends."""

from __future__ import annotations

import pytest
import torch

from tqp.core.backends import Backend
from tqp.data.backend import computing_with
from tqp.operators.groups.folds import FOLDS
from tqp.operators.groups.runs import _OF_RUNS, REDUCED_TWICE, fold_runs, long_runs, reduce_runs

_DTYPES = {"int8": torch.int8, "int64": torch.int64, "float64": torch.float64, "float32": torch.float32}


@pytest.mark.parametrize("kind", sorted(_OF_RUNS))
@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize(
    "lengths", [[], [0], [0, 0, 3], [2, 0, 5, 1, 0], [1, 1, 1], [0, 7, 0, 0], [20, 0, 31, 9]], ids=str
)
@pytest.mark.parametrize("backend", Backend)
def test_runs_are_reduced_as_groups_are(kind: str, dtype: str, lengths: list[int], backend: Backend) -> None:
    if kind == "sum_wide" and dtype.startswith("float"):
        pytest.skip("of integers only")
    generator = torch.Generator().manual_seed(len(lengths))
    counts = torch.tensor(lengths, dtype=torch.int64)
    num_rows = sum(lengths)
    values = torch.randint(-9, 9, (num_rows,), generator=generator).to(_DTYPES[dtype])
    if values.is_floating_point():
        values /= 7  # so that the order in which they are added shows
    if values.is_floating_point() and num_rows > 2:
        values[1], values[2] = float("nan"), float("-inf")
    ids = torch.repeat_interleave(torch.arange(len(lengths)), counts)
    for validity in (None, torch.ones(num_rows, dtype=torch.bool), torch.arange(num_rows) % 3 > 0):
        with computing_with(backend):
            found = reduce_runs(kind, values, validity, counts)
            expected = FOLDS[kind].by_group(values, ids, len(lengths), validity, None)
        assert torch.equal(found.nan_to_num(7.5), expected.nan_to_num(7.5)), (validity, found, expected)


def test_sums_beyond_64_bits_are_exact() -> None:
    values = torch.full((3,), 2**62)
    assert reduce_runs("sum_wide", values, None, torch.tensor([3])).tolist() == [[0, -(2**62)]]


@pytest.mark.parametrize("kind", REDUCED_TWICE)
@pytest.mark.parametrize("dtype", [*_DTYPES, "bool"])
def test_rows_of_long_runs_are_folded_run_by_run(kind: str, dtype: str) -> None:
    """Groups come up more than once, one never; with accumulators of a batch before and without."""
    generator = torch.Generator().manual_seed(5)
    groups, lengths = (
        torch.randint(0, 50, (120,), generator=generator),
        torch.randint(1, 200, (120,), generator=generator),
    )
    ids = torch.repeat_interleave(groups, lengths).to(torch.int16)
    values = torch.randint(-99, 99, ids.shape, generator=generator).to(_DTYPES.get(dtype, torch.bool))
    if values.is_floating_point():
        values[7], values[5000] = float("nan"), float("-inf")
    runs = long_runs(ids)
    assert runs is not None
    for validity in (None, torch.arange(ids.shape[0]) % 3 > 0, torch.zeros(ids.shape[0], dtype=torch.bool)):
        with computing_with(Backend.HOST):
            found, expected = None, None
            for _ in range(2):
                found = fold_runs(kind, None if kind == "present" else values, validity, runs, ids, 51, found)
                expected = FOLDS[kind].by_group(values, ids, 51, validity, expected)
        assert found is not None and expected is not None
        assert torch.equal(found.nan_to_num(7.5), expected.nan_to_num(7.5)), (validity, found, expected)


def test_rows_in_any_order_have_no_long_runs() -> None:
    ids = torch.arange(10_000) % 50
    with computing_with(Backend.HOST):
        assert long_runs(ids) is None
        assert long_runs(ids[:0]) is None
        assert long_runs(torch.cat([torch.zeros(5000, dtype=torch.int64), ids])) is None
