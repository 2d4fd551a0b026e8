"""Range joins against every pair looked at: comparisons x keys x NULLs x duplicates x empty sides, and cut batches."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tqp.operators.joins import pairs as join_pairs
from tqp.operators.joins import range_join as join_ranges
from tqp.operators.joins import sorted_search
from tqp.operators.joins.pairs import TooManyPairs, ask_with_arrays
from tqp.operators.joins.range_join import build_ranges
from tqp.operators.memory.arrays import as_array, as_tensor

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
SIDES = [(0, 0), (0, 5), (7, 0), (1, 1), (40, 60), (5, 500)]
LOWEST, HIGHEST = -(2**63), 2**63 - 1


def column(generator: random.Random, num_rows: int, span: int) -> Tensor:
    edges = [LOWEST, HIGHEST] if span > 100 else []
    values = [generator.choice([generator.randrange(span), *edges]) for _ in range(num_rows)]
    return torch.tensor(values, dtype=torch.int64)


def validity(generator: random.Random, num_rows: int, nulls: bool) -> Tensor | None:
    return torch.tensor([generator.random() < 0.7 for _ in range(num_rows)]).bool() if nulls else None


def expected(
    comparisons: list[tuple[str, int]],
    probe: list[Tensor],
    build: list[Tensor],
    probe_valid: Tensor | None,
    build_valid: Tensor | None,
) -> set[tuple[int, int]]:
    def valid_rows(mask: Tensor | None, num_rows: int) -> list[int]:
        return [row for row in range(num_rows) if mask is None or bool(mask[row])]

    tests = [
        (COMPARISONS[name], build[key].tolist(), bound.tolist())
        for (name, key), bound in zip(comparisons, probe, strict=True)
    ]
    return {
        (p, b)
        for p in valid_rows(probe_valid, probe[0].shape[0])
        for b in valid_rows(build_valid, build[0].shape[0])
        if all(holds(keys[b], limits[p]) for holds, keys, limits in tests)
    }


def bounds() -> list[list[tuple[str, int]]]:
    """Comparisons with the number of the build key: one, two on a key, two on two keys, three."""
    names = list(COMPARISONS)
    one = [[(name, 0)] for name in names]
    pairs = [[(a, 0), (b, key)] for a in names for b in names for key in (0, 1)]
    return [*one, *pairs, [("greater", 0), ("less_equal", 0), ("greater_equal", 1)]]


@pytest.mark.parametrize("few", [8, 0], ids=["ranges", "from the root of the tree"])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("comparisons", bounds(), ids=str)
def test_the_pairs_are_those_that_satisfy_every_bound(
    comparisons: list[tuple[str, int]], nulls: bool, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_ranges, "_FEW", few)
    for module in (join_ranges, sorted_search):
        monkeypatch.setattr(module, "MANY_KEYS", 2)
    generator = random.Random(str(comparisons))
    for (num_probe, num_build), span in itertools.product(SIDES, (10, 1000)):
        probe = [column(generator, num_probe, span) for _ in comparisons]
        build = [column(generator, num_build, span) for _ in range(1 + comparisons[-1][1])]
        probe_valid, build_valid = (
            validity(generator, rows, nulls and rows > 1) for rows in (num_probe, num_build)
        )
        names = [name for name, _ in comparisons]
        made = build_ranges(names, build, build_valid)
        wanted = expected(comparisons, probe, build, probe_valid, build_valid)
        rows, places = made.matches(probe, probe_valid)
        pairs = list(zip(rows.tolist(), places.tolist(), strict=True))
        assert len(pairs) == len(wanted) and set(pairs) == wanted
        assert rows.tolist() == sorted(rows.tolist())
        found = made.contains(probe, probe_valid)
        assert found.dtype is torch.bool
        assert found.nonzero().squeeze(1).tolist() == sorted({row for row, _ in wanted})
        arrays = ask_with_arrays(made, "matches", as_array(probe), as_array(probe_valid))
        assert all(torch.equal(as_tensor(a), b) for a, b in zip(arrays, (rows, places), strict=True))
        assert torch.equal(
            as_tensor(ask_with_arrays(made, "contains", as_array(probe), as_array(probe_valid))), found
        )


def test_too_many_pairs_cut_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(join_pairs.MAX_PAIRS, "cpu", 1000)
    build = torch.arange(600)
    made = build_ranges(["greater"], [build])
    with pytest.raises(TooManyPairs):
        made.matches([torch.zeros(2, dtype=torch.int64)])
    assert made.matches([torch.zeros(1, dtype=torch.int64)])[0].shape[0] == 599
    tree = build_ranges(["less_equal", "greater_equal"], [build, build.flip(0)])
    with pytest.raises(TooManyPairs):
        tree.matches([torch.full((4,), 600), torch.zeros(4, dtype=torch.int64)])


def test_a_long_interval_costs_no_scan_of_those_after_it() -> None:
    num_rows = 100_000
    starts = torch.arange(num_rows)
    ends = starts.clone()
    ends[0] = num_rows  # so that every point has to look as far back as the first interval
    made = build_ranges(["less_equal", "greater_equal"], [starts, ends])
    points = torch.arange(num_rows)
    rows, places = made.matches([points, points])
    assert rows.shape[0] == 2 * num_rows - 1
    assert bool((starts[places] <= points[rows]).all() and (ends[places] >= points[rows]).all())
