"""Moments by group against sums of fractions: around any mean, of several batches, of equal and of extreme values."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
import torch

from tests.operators.exact_moments import exact_moment
from tqp.operators.groups import moments

NUM_GROUPS = 7


@pytest.mark.parametrize("mean", [0.0, 0.1, 1e6, -1e9])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-3, 1.0, 1e4])
def test_sums_of_squares_around_any_mean(mean: float, spread: float) -> None:
    generator = random.Random(f"{mean}{spread}")
    ids = [generator.randrange(NUM_GROUPS - 1) for _ in range(2000)]
    values = [mean + spread * generator.random() for _ in ids]
    given = torch.tensor(values, dtype=torch.float64), torch.tensor(ids), NUM_GROUPS
    few, all_passes = (moments.differences_by_group(*given, for_squares=each) for each in (True, False))
    assert all_passes.is_exact and few.counts.tolist() == all_passes.counts.tolist()
    for group in range(NUM_GROUPS - 1):
        of_group = [value for value, id in zip(values, ids, strict=True) if id == group]
        expected = exact_moment((of_group, 2))
        assert all_passes.squares[group].item() == pytest.approx(expected, rel=1e-6)
        assert few.squares[group].item() == pytest.approx(expected, rel=1e-6)
        if len(set(of_group)) == 1:
            assert few.squares[group].item() == 0


def test_two_passes_are_enough_for_squares_of_some_size() -> None:
    ids = torch.arange(1000) % 4
    for values, is_exact in (
        (torch.arange(1000.0, dtype=torch.float64), False),
        (1e12 + torch.arange(1000.0, dtype=torch.float64), True),
        (torch.full((1000,), torch.inf, dtype=torch.float64), True),
    ):
        found = moments.differences_by_group(values, ids, 4, for_squares=True)
        assert found.is_exact == is_exact


_WANTED = [("co_moment", (0, 1)), ("second_moment", (1,)), ("fourth_moment", (0,)), ("third_moment", (0,))]


def _exact_moments(ys: list[float], xs: list[float]) -> list[float]:
    """Of `_WANTED`."""
    return [exact_moment((ys, 1), (xs, 1)), *(exact_moment(each) for each in ((xs, 2), (ys, 4), (ys, 3)))]


@pytest.mark.parametrize("has_nulls", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_moments_of_batches_merge(offset: float, has_nulls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "_BLOCK_ROWS", 256)
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(0, NUM_GROUPS + 1, (3000,), generator=generator)  # those of the last do not count
    ids[:1500].masked_fill_(ids[:1500] == 1, 2)  # the first batch has no row of group 1
    ys = torch.rand(3000, dtype=torch.float64, generator=generator).square() + offset
    xs = torch.randint(0, 100, (3000,), generator=generator).to(torch.int16)
    validity = torch.rand(3000, generator=generator) < 0.7 if has_nulls else None
    valid = torch.ones(3000, dtype=torch.bool) if validity is None else validity
    ys = ys.masked_fill(~valid, torch.nan)

    def states(rows: slice) -> moments.MomentStates:
        kept = None if validity is None else validity[rows]
        return moments.moment_states([(ys[rows], kept), (xs[rows], kept)], _WANTED, ids[rows], NUM_GROUPS)

    merged = moments.merge_moments(
        [states(slice(0, 1500)), states(slice(1500, 2999)), states(slice(2999, 3000))]
    )
    for group in range(NUM_GROUPS):
        rows = torch.nonzero(valid & (ids == group)).squeeze(1)
        if not rows.shape[0]:
            continue
        expected = _exact_moments(ys[rows].tolist(), xs[rows].tolist())
        found = [merged.moment(each)[group].item() for each in _WANTED]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("has_nulls", [False, True])
@pytest.mark.parametrize("apart", [0.0, 1.0, 1e6], ids=["near", "apart", "far apart"])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_moments_of_few_groups(offset: float, apart: float, has_nulls: bool) -> None:
    """By one pass where the means of groups are near one another; a value by itself, and values that are all equal."""
    generator = torch.Generator().manual_seed(6)
    ids = torch.randint(0, 3, (800,), generator=generator)
    ids[100], ids[200:250], ids[300:340] = 3, 4, 5  # 5: these do not count
    xs = torch.rand(800, dtype=torch.float64, generator=generator) + offset + ids * apart
    ys = torch.rand(800, dtype=torch.float64, generator=generator) - 5 * xs
    xs[200:250] = 0.1 + offset
    valid = torch.rand(800, generator=generator) < (0.7 if has_nulls else 2)
    valid[100] = True
    ys, xs = (each.masked_fill(~valid, torch.nan) for each in (ys, xs))
    wanted: list[moments.Moment] = [("co_moment", (0, 1)), ("second_moment", (1,)), ("second_moment", (0,))]
    pair = [(each, valid if has_nulls else None) for each in (ys, xs)]
    rows = moments._GroupedColumns(pair, wanted, ids, 5)
    assert rows.about_known_numbers() is None  # of equal values nothing may be left
    few = moments._GroupedColumns(pair, wanted, torch.where(ids == 4, 5, ids), 5).about_known_numbers()
    assert (few is None) == (apart > 3)
    states = moments.moment_states(pair, wanted, ids, 5)
    for group in range(5):
        chosen = torch.nonzero(valid & (ids == group)).squeeze(1)
        of_pairs, of_x, *_ = _exact_moments(ys[chosen].tolist(), xs[chosen].tolist())
        of_y = _exact_moments(xs[chosen].tolist(), ys[chosen].tolist())[1]
        for found in (states, few):
            if found is None or (found is few and group == 4):
                continue
            got = [found.moment(each)[group].item() for each in wanted]
            assert got == pytest.approx([of_pairs, of_x, of_y], rel=1e-9, abs=1e-9 * max(1.0, of_y))
            assert found.counts[0][group].item() == chosen.shape[0]
    assert states.moment(wanted[1])[4].item() == 0.0


@pytest.mark.parametrize("apart", [0.0, 0.2, 0.5], ids=["near", "less than a deviation", "more"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_higher_moments_of_few_groups(offset: float, apart: float) -> None:
    """By one pass only where means differ by less than values do: more digits cancel in fourth powers than in squares."""
    generator = torch.Generator().manual_seed(8)
    ids = torch.randint(0, 3, (900,), generator=generator)
    ids[100] = 3
    ys = torch.rand(900, dtype=torch.float64, generator=generator).square() + offset + ids * apart
    xs = torch.rand(900, dtype=torch.float64, generator=generator)
    rows = moments._GroupedColumns([(ys, None), (xs, None)], _WANTED, ids, 4)
    at_once = rows.about_known_numbers()
    assert (at_once is None) == (apart == 0.5)
    states = moments.moment_states([(ys, None), (xs, None)], _WANTED, ids, 4)
    for group in range(4):
        chosen = ids == group
        expected = _exact_moments(ys[chosen].tolist(), xs[chosen].tolist())
        found = [states.moment(each)[group].item() for each in _WANTED]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("has_nulls", [False, True])
def test_moments_of_all_rows(has_nulls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one group, of which one id is told: in blocks, merged, or of a single row."""
    monkeypatch.setattr(moments, "_BLOCK_ROWS", 256)
    generator = torch.Generator().manual_seed(4)
    ys = torch.rand(1000, dtype=torch.float64, generator=generator).square() + 10
    xs = torch.randint(0, 100, (1000,), generator=generator).to(torch.int16)
    valid = torch.rand(1000, generator=generator) < (0.7 if has_nulls else 2)
    valid[700:] = True
    ys = ys.masked_fill(~valid, torch.nan)

    def states(start: int, stop: int) -> moments.MomentStates:
        kept = valid[start:stop] if has_nulls else None
        pair = [(ys[start:stop], kept), (xs[start:stop], kept)]
        return moments.moment_states(pair, _WANTED, torch.zeros(1, dtype=torch.int64), 1)

    for ends in ([0, 1000], [0, 700, 999, 1000], [999, 1000]):
        merged = moments.merge_moments([states(*each) for each in pairwise(ends)])
        rows = torch.nonzero(valid[ends[0] :]).squeeze(1) + ends[0]
        expected = _exact_moments(ys[rows].tolist(), xs[rows].tolist())
        found = [merged.moment(each).item() for each in _WANTED]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert merged.counts[0].item() == rows.shape[0]


@pytest.mark.parametrize("has_nulls", [False, True])
@pytest.mark.parametrize("apart", [0.0, 1e6], ids=["near", "far apart"])
@pytest.mark.parametrize("jump", [0.0, 1e9], ids=["alike", "the first far away"])
@pytest.mark.parametrize(
    "wanted", [_WANTED, [("second_moment", (0,)), ("co_moment", (0, 1))]], ids=["higher", "squares"]
)
def test_moments_of_groups_that_stand_together(
    wanted: list[moments.Moment], jump: float, apart: float, has_nulls: bool
) -> None:
    """As of the same rows in any order. The first row of each run may be far from all others."""
    generator = torch.Generator().manual_seed(3)
    ids = torch.cat([torch.full((900,), group) for group in (*range(NUM_GROUPS), 0, 3)])
    ys = torch.rand(ids.shape[0], dtype=torch.float64, generator=generator) + ids * apart
    ys[::900] += jump
    xs = ys + torch.rand(ids.shape[0], dtype=torch.float64, generator=generator)
    validity = torch.rand(ids.shape[0], generator=generator) < 0.95 if has_nulls else None
    ys[~validity if validity is not None else slice(0)] = math.nan
    order = torch.randperm(ids.shape[0], generator=generator)
    valid = None if validity is None else validity[order]
    found = moments.moment_states([(ys, validity), (xs, validity)], wanted, ids, NUM_GROUPS)
    columns: list[tuple[torch.Tensor, torch.Tensor | None]] = [(ys[order], valid), (xs[order], valid)]
    expected = moments.moment_states(columns, wanted, ids[order], NUM_GROUPS)
    assert [each.tolist() for each in found.counts] == [each.tolist() for each in expected.counts]
    for moment in wanted:
        size = expected.moment(moment).abs().max().item()
        assert found.moment(moment).tolist() == pytest.approx(
            expected.moment(moment).tolist(), rel=1e-8, abs=1e-12 * size
        )


def test_moments_of_equal_values_are_zero() -> None:
    ids, values = torch.zeros(1000, dtype=torch.int64), torch.full((1000,), 0.1, dtype=torch.float64)
    wanted: list[moments.Moment] = [("fourth_moment", (0,)), ("second_moment", (0,))]
    states = [moments.moment_states([(values[:n], None)], wanted, ids[:n], 1) for n in (333, 7, 1000, 0)]
    merged = moments.merge_moments(states)
    assert [merged.moment(each).item() for each in wanted] == [0.0, 0.0]
    assert merged.means[0].item() == 0.1 and merged.counts[0].item() == 1340


def test_moments_of_extreme_floats() -> None:
    ids = torch.tensor([0, 1, 1, 2, 2])
    values = torch.tensor([math.inf, math.inf, 1.0, 1.7e308, 1.7e308], dtype=torch.float64)
    wanted: list[moments.Moment] = [("second_moment", (0,))]
    whole = moments.moment_states([(values, None)], wanted, ids, 3)
    parts = [
        moments.moment_states([(values[rows], None)], wanted, ids[rows], 3)
        for rows in (slice(2), slice(2, 4), slice(4, 5))
    ]
    for found in (whole, moments.merge_moments(parts)):
        infinite, mixed, large = found.moment(wanted[0]).tolist()
        assert infinite == 0 and math.isnan(mixed) and large == 0
