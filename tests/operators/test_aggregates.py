"""Aggregates by group against the reference: types, NULLs, empty groups, batches, merges."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from tests import reference
from tqp.operators.groups import aggregates, moment_formulas, moments, quantiles
from tqp.operators.groups.choices import first_extreme_rows, last_extreme_rows
from tqp.operators.groups.ordered import order_values
from tqp.operators.numbers import wide

NUM_GROUPS = 5  # group 4 stays empty
SIZES = [0, 1, 200]
NULLS = ["none", "some", "all"]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64]


def draw(
    dtype: torch.dtype, num_rows: int, nulls: str
) -> tuple[list[Any], Tensor, Tensor | None, list[int], Tensor]:
    """(values with None, values, validity, ids, ids)."""
    generator = random.Random(f"{dtype}{num_rows}{nulls}")
    if dtype is torch.bool:
        pool: list[Any] = [True, True, True, False]
    elif dtype.is_floating_point:
        pool = [0.5, -1.25, 3.0, math.inf, -math.inf, math.nan, 1e30]
        pool = [float(torch.tensor(value, dtype=dtype)) for value in pool]
    else:
        bound = min(torch.iinfo(dtype).max, 2**55)
        pool = [-bound, bound, 0, 1, -7, 13]
    ids = [generator.randrange(NUM_GROUPS - 1) for _ in range(num_rows)]
    drawn = [generator.choice(pool) for _ in range(num_rows)]
    valid = [nulls == "none" or (nulls == "some" and generator.random() < 0.6) for _ in range(num_rows)]
    values = torch.tensor(drawn, dtype=dtype)
    validity = None if nulls == "none" else torch.tensor(valid, dtype=torch.bool)
    kept = [value if ok else None for value, ok in zip(drawn, valid, strict=True)]
    return kept, values, validity, ids, torch.tensor(ids, dtype=torch.int64)


def with_none(results: list[Any], kept: list[Any], ids: list[int]) -> list[Any]:
    counts = reference.aggregate(len, kept, ids, NUM_GROUPS)
    return [None if count is None else result for result, count in zip(results, counts, strict=True)]


def same(got: list[Any], expected: list[Any]) -> bool:
    return all(
        a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))
        for a, b in zip(got, expected, strict=True)
    )


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, torch.bool])
@pytest.mark.parametrize("num_rows", SIZES)
@pytest.mark.parametrize("nulls", NULLS)
def test_sum_count_and_extremes(dtype: torch.dtype, num_rows: int, nulls: str) -> None:
    kept, values, validity, ids, group_ids = draw(dtype, num_rows, nulls)
    functions: list[tuple[Any, Callable[[list[Any]], Any]]] = [
        (aggregates.sum_by_group, sum),
        (aggregates.min_by_group, reference.least),
        (aggregates.max_by_group, reference.greatest),
    ]
    half = num_rows // 2
    for kernel, function in functions:
        expected = reference.aggregate(function, kept, ids, NUM_GROUPS)
        whole = kernel(values, group_ids, NUM_GROUPS, validity)
        assert same(with_none(whole.tolist(), kept, ids), expected)
        first = None if validity is None else validity[:half]
        second = None if validity is None else validity[half:]
        state = kernel(values[:half], group_ids[:half], NUM_GROUPS, first)
        kernel(values[half:], group_ids[half:], NUM_GROUPS, second, out=state)
        assert same(with_none(state.tolist(), kept, ids), expected)
    counts = [0 if count is None else count for count in reference.aggregate(len, kept, ids, NUM_GROUPS)]
    assert aggregates.count_by_group(group_ids, NUM_GROUPS, validity).tolist() == counts
    if validity is None:
        assert aggregates.count_by_group(group_ids.to(torch.int8), NUM_GROUPS).tolist() == counts


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("which", ["amin", "amax"])
def test_extremes_merge(dtype: torch.dtype, which: Literal["amin", "amax"]) -> None:
    kept, values, validity, ids, group_ids = draw(dtype, 40, "some")
    assert validity is not None
    kernel = aggregates.min_by_group if which == "amin" else aggregates.max_by_group
    parts = [
        kernel(values[i : i + 3], group_ids[i : i + 3], NUM_GROUPS, validity[i : i + 3])
        for i in range(0, 40, 3)
    ]
    merged = parts[0]
    for part in parts[1:]:
        merged = aggregates.merge_extremes(merged, part, which)
    function = reference.least if which == "amin" else reference.greatest
    assert same(with_none(merged.tolist(), kept, ids), reference.aggregate(function, kept, ids, NUM_GROUPS))


FLOAT_POOLS = {
    "finite": [0.5, -1.25, 3.0],
    "zeros": [-0.0, 0.0],
    "with NaN": [0.5, -1.25, math.nan],
    "only NaN": [math.nan, -math.nan],
    "infinities": [math.inf, -math.inf],
    "infinity and NaN": [math.inf, math.nan],
    "negative infinity": [-math.inf, -1.0],
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FLOAT_POOLS)
@pytest.mark.parametrize("share", [None, 0.0, 0.5, 0.95])
def test_extremes_of_floats(dtype: torch.dtype, name: str, share: float | None) -> None:
    generator = random.Random(name)
    for num_rows in (1, 2, 40):
        drawn = generator.choices(FLOAT_POOLS[name], k=num_rows)
        values = torch.tensor(drawn, dtype=dtype)
        group_ids = torch.tensor([generator.randrange(NUM_GROUPS - 1) for _ in drawn])
        valid = [share is None or generator.random() < share for _ in drawn]
        validity = None if share is None else torch.tensor(valid)
        kept = [value if ok else None for value, ok in zip(drawn, valid, strict=True)]
        present = [value for value in kept if value is not None]
        ids = group_ids.tolist()
        for by_group, of_all, function in (
            (aggregates.min_by_group, aggregates.min_all, reference.least),
            (aggregates.max_by_group, aggregates.max_all, reference.greatest),
        ):
            got = by_group(values, group_ids, NUM_GROUPS, validity).tolist()
            assert same(with_none(got, kept, ids), reference.aggregate(function, kept, ids, NUM_GROUPS))
            extreme = of_all(values, validity).item()
            empty = math.nan if function is reference.least else -math.inf
            assert same([extreme], [function(present) if present else empty])
            assert extreme != 0.0 or math.copysign(1.0, extreme) == 1.0


@pytest.mark.parametrize("dtype", [torch.int16, torch.int64, *FLOATS])
@pytest.mark.parametrize("id_dtype", [torch.int8, torch.int64])
@pytest.mark.parametrize("share", [None, 0.5])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("special", [[], [math.nan], [math.inf, -math.inf, math.nan], [0.0, -0.0]])
def test_extremes_of_many_rows_by_few_groups(
    dtype: torch.dtype, id_dtype: torch.dtype, share: float | None, late: bool, special: list[float]
) -> None:
    """Where most rows are worse than every group's extreme; group 4 has rows in the last batch only, or none."""
    generator = torch.Generator().manual_seed(7)
    num_rows, batch = 40_000, 10_000
    values = torch.randint(100, 30_000, (num_rows,), generator=generator).to(dtype)
    group_ids = torch.randint(0, NUM_GROUPS - 1, (num_rows,), generator=generator).to(id_dtype)
    if special and not dtype.is_floating_point:
        return
    for place, number in enumerate(special):  # one in a batch whose other rows change nothing
        values[25_000 + place] = number
    if late:
        group_ids[-5:] = NUM_GROUPS - 1
        values[-5:] = 15_000
    values[-10], values[-11] = 5, 30_001
    validity = None if share is None else torch.rand(num_rows, generator=generator) < share
    ids = group_ids.tolist()
    valid = [True] * num_rows if validity is None else validity.tolist()
    kept = [value if ok else None for value, ok in zip(values.tolist(), valid, strict=True)]
    for kernel, function in (
        (aggregates.min_by_group, reference.least),
        (aggregates.max_by_group, reference.greatest),
    ):
        expected = reference.aggregate(function, kept, ids, NUM_GROUPS)
        state = None
        for start in range(0, num_rows, batch):
            rows = slice(start, start + batch)
            some = None if validity is None else validity[rows]
            state = kernel(values[rows], group_ids[rows], NUM_GROUPS, some, state)
        for got in (state, kernel(values, group_ids, NUM_GROUPS, validity)):
            assert got is not None
            assert same(with_none(got.tolist(), kept, ids), expected)
            assert not any(math.copysign(1.0, extreme) < 0 for extreme in got.tolist() if extreme == 0.0)


def test_sums_of_floats_by_few_groups_are_those_of_rows_in_order() -> None:
    generator = torch.Generator().manual_seed(8)
    for dtype in FLOATS:
        values = torch.randn(1000, generator=generator, dtype=dtype)
        values[:3] = torch.tensor([1e300, -1e300, 1.0]).to(dtype)
        group_ids = torch.randint(0, NUM_GROUPS - 1, (1000,), generator=generator)
        expected = [0.0] * NUM_GROUPS
        for value, group in zip(values.tolist(), group_ids.tolist(), strict=True):
            expected[group] += value
        sums = aggregates.sum_by_group(values, group_ids.to(torch.int16), NUM_GROUPS)
        assert sums.dtype == torch.float64 and same(sums.tolist(), expected)
        again = aggregates.sum_by_group(values[:0], group_ids[:0], NUM_GROUPS, None, sums)
        assert same(again.tolist(), expected)


def test_extremes_of_wide_integers() -> None:
    generator = random.Random(3)
    pool = [-(2**127), 2**127 - 1, 2**64, 2**64 - 1, -1, 0, 1, -(2**64), 2**63]
    numbers = generator.choices(pool, k=60)
    ids = [generator.randrange(NUM_GROUPS - 1) for _ in numbers]
    values, group_ids = wide.from_ints(numbers), torch.tensor(ids)
    for kernel, function in ((aggregates.min_by_group, min), (aggregates.max_by_group, max)):
        state = kernel(values[:30], group_ids[:30], NUM_GROUPS)
        kernel(values[30:], group_ids[30:], NUM_GROUPS, out=state)
        expected = reference.aggregate(function, numbers, ids, NUM_GROUPS)
        assert with_none(wide.to_ints(state), numbers, ids) == expected
    assert wide.to_ints(aggregates.max_all(values)[None]) == [max(numbers)]
    assert wide.to_ints(aggregates.min_all(values[:0])[None]) == [2**127 - 1]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, torch.bool])
@pytest.mark.parametrize("num_rows", SIZES)
@pytest.mark.parametrize("nulls", NULLS)
def test_single_group(dtype: torch.dtype, num_rows: int, nulls: str) -> None:
    kept, values, validity, _, _ = draw(dtype, num_rows, nulls)
    present = [value for value in kept if value is not None]
    assert int(aggregates.count_all(num_rows, validity)) == len(present)
    assert same([aggregates.sum_all(values, validity).item()], [sum(present)])
    least, greatest = aggregates.min_all(values, validity), aggregates.max_all(values, validity)
    assert least.dim() == greatest.dim() == 0
    if present:
        assert same([least.item(), greatest.item()], [reference.least(present), reference.greatest(present)])


@pytest.mark.parametrize("num_rows", SIZES)
@pytest.mark.parametrize("nulls", NULLS)
def test_bool_aggregates(num_rows: int, nulls: str) -> None:
    kept, values, validity, ids, group_ids = draw(torch.bool, num_rows, nulls)
    for kernel, function in ((aggregates.bool_and_by_group, all), (aggregates.bool_or_by_group, any)):
        got = kernel(values, group_ids, NUM_GROUPS, validity)
        assert with_none(got.tolist(), kept, ids) == reference.aggregate(function, kept, ids, NUM_GROUPS)
        again = kernel(values, group_ids, NUM_GROUPS, validity, out=got.clone())
        assert torch.equal(again, got)


@pytest.mark.parametrize("num_rows", SIZES)
@pytest.mark.parametrize("nulls", NULLS)
def test_first_row(num_rows: int, nulls: str) -> None:
    kept, _, validity, ids, group_ids = draw(torch.int32, num_rows, nulls)
    rows = [None if value is None else row for row, value in enumerate(kept)]
    expected = reference.aggregate(min, rows, ids, NUM_GROUPS)
    got = aggregates.first_by_group(group_ids, NUM_GROUPS, validity)
    assert got.tolist() == [-1 if row is None else row for row in expected]


@pytest.mark.parametrize("num_rows", SIZES)
@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("dtype", [torch.int32, torch.float64])
def test_variance_and_median(dtype: torch.dtype, num_rows: int, nulls: str) -> None:
    kept, values, validity, ids, group_ids = draw(dtype, num_rows, nulls)
    values = values.nan_to_num(nan=2.5, posinf=8.0, neginf=-8.0).clamp(-1e9, 1e9)
    kept = [None if value is None else values.tolist()[row] for row, value in enumerate(kept)]
    expected = reference.aggregate(reference.variance_population, kept, ids, NUM_GROUPS)
    state = moments.differences_by_group(values, group_ids, NUM_GROUPS, validity)
    got = with_none((moments.second_moment(state) / state.counts).tolist(), kept, ids)
    pairs = zip(got, expected, strict=True)
    assert all(a is b is None or a == pytest.approx(b, rel=1e-12, abs=1e-12) for a, b in pairs)
    medians = quantiles.median_by_group(values, order_values(values, group_ids, NUM_GROUPS, validity))
    expected = reference.aggregate(reference.median, kept, ids, NUM_GROUPS)
    assert with_none(medians.tolist(), kept, ids) == expected


@pytest.mark.parametrize("nulls", NULLS)
def test_median_of_scaled_integers_rounds_down(nulls: str) -> None:
    kept, values, validity, ids, group_ids = draw(torch.int64, 200, nulls)
    medians = quantiles.median_integers_by_group(
        values, order_values(values, group_ids, NUM_GROUPS, validity)
    )

    def middle(group: list[int]) -> int:
        ordered = sorted(group)
        return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2

    assert with_none(medians.tolist(), kept, ids) == reference.aggregate(middle, kept, ids, NUM_GROUPS)


def test_variance_is_null_without_enough_rows() -> None:
    state = moments.differences_by_group(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 1, 1]), 3)
    m2 = moments.second_moment(state)
    values, validity = moment_formulas.of_sample(m2, state.counts), state.counts > 1
    assert validity.tolist() == [False, True, False] and values[1] == 2.0
    values, validity = moment_formulas.of_population(m2, state.counts), state.counts > 0
    assert validity.tolist() == [True, True, False] and values[:2].tolist() == [0.0, 1.0]


def test_float_sums_do_not_depend_on_the_threads() -> None:
    values = torch.rand(300_000, dtype=torch.float64, generator=torch.Generator().manual_seed(6))
    group_ids = torch.arange(300_000) % 7
    before = torch.get_num_threads()
    try:
        sums = []
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            by_group = aggregates.sum_by_group(values, group_ids, 7)
            sums.append((by_group.tolist(), aggregates.sum_all(values).item()))
    finally:
        torch.set_num_threads(before)
    assert sums[0] == sums[1] == sums[2]


@pytest.mark.parametrize(("halves", "expected"), [("down", -2), ("to_zero", -1), ("away", -2)])
def test_halves_of_medians_below_zero(halves: quantiles.Halves, expected: int) -> None:
    values, group_ids = torch.tensor([-1, -2]), torch.tensor([0, 0])
    for sign, middle in ((1, expected), (-1, {"down": 1, "to_zero": 1, "away": 2}[halves])):
        numbers = sign * values
        found = quantiles.median_integers_by_group(numbers, order_values(numbers, group_ids, 1), halves)
        assert found.tolist() == [middle]


def test_median_of_wide_integers_rounds_down() -> None:
    numbers = [-(10**38) + 1, -(10**38) + 4, 3, 10**38 - 1, 10**38 - 4, 5, -3, 0]
    group_ids = torch.tensor([0, 0, 1, 2, 2, 3, 4, 4])
    values = wide.from_ints(numbers)
    medians = quantiles.median_integers_by_group(values, order_values(values, group_ids, 6))
    assert wide.to_ints(medians)[:5] == [-(10**38) + 2, 3, 10**38 - 3, 5, -2]


def test_extreme_rows_of_intervals_are_the_last_of_equal_ones() -> None:
    intervals = torch.tensor([[0, 30, 0], [1, 0, 0], [0, 29, 86_400_000_000], [0, 1, 0], [0, 0, 5]])
    group_ids = torch.tensor([1, 1, 1, 2, 2])
    assert last_extreme_rows(intervals, group_ids, 3, greatest=False).tolist() == [-1, 2, 4]
    assert last_extreme_rows(intervals, group_ids, 3, greatest=True).tolist() == [-1, 2, 3]
    valid = torch.tensor([True, True, False, False, True])
    assert last_extreme_rows(intervals, group_ids, 3, valid, greatest=True).tolist() == [-1, 1, 4]


def test_variance_of_a_single_infinity_is_zero() -> None:
    single = moments.differences_by_group(torch.tensor([math.inf]), torch.tensor([0]), 2)
    assert moments.second_moment(single).tolist() == [0.0, 0.0]


def test_wide_sums_of_all_rows() -> None:
    values = torch.tensor([2**63 - 1, 5, -(2**63), 2**63 - 1])
    valid = torch.tensor([True, False, False, True])
    for given, validity, expected in (
        (values, None, 2**63 - 1 + 4),
        (values, valid, 2**64 - 2),
        (values[1:2], None, 5),
        (values[:0], None, 0),
        (wide.widen(values), valid, 2**64 - 2),
        (values[1:2].to(torch.int8), valid[1:2], 0),
    ):
        assert wide.to_ints(aggregates.sum_wide_all(given, validity).unsqueeze(0)) == [expected]


@pytest.mark.parametrize("rows", [0, 1, 4_095, 4_096, 9_000])
def test_float_sums_of_any_length(rows: int) -> None:
    values = torch.arange(rows, dtype=torch.float64)
    assert aggregates.sum_all(values) == sum(range(rows))
    assert aggregates.sum_all(values.to(torch.float32), values % 2 == 0) == sum(range(0, rows, 2))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows", [0, 1, 8_192, 20_001])
@pytest.mark.parametrize("special", [[], [torch.nan], [torch.inf], [torch.inf, -torch.inf]])
def test_sums_where_a_condition_is_true(dtype: torch.dtype, rows: int, special: list[float]) -> None:
    values = torch.arange(rows).remainder(1_000).to(dtype)
    values[: len(special)] = torch.tensor(special[:rows], dtype=dtype)
    for condition in (torch.arange(rows) % 3 > 0, torch.arange(rows) % 3 < 2, torch.arange(rows) < 0):
        expected = sum(values[condition].tolist())
        assert same([aggregates.sum_where(values, condition).item()], [expected])
        of_arrays = aggregates.sum_where(values.numpy(), condition.numpy())
        assert same([of_arrays.item()], [expected])
        once = aggregates.sum_where(special[0] if special else 0.25, condition)
        assert same([once.item()], [sum([special[0] if special else 0.25] * int(condition.sum()))])
        assert same(
            [aggregates.total([aggregates.sum_where(values, condition), once]).item()],
            [expected + once.item()],
        )


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("rows", [0, 1, 255, 256, 70_001])
def test_integer_sums_of_any_length_and_size(dtype: torch.dtype, rows: int) -> None:
    limits = torch.iinfo(dtype)
    for low, high in ((limits.min, limits.max), (0, limits.max), (-100, 3)):
        low, high = max(low, -(2**40)), min(high, 2**40)
        values = (
            torch.arange(rows, dtype=torch.int64).mul_(2_654_435_761).remainder_(high - low + 1).add_(low)
        )
        values = values.to(dtype)
        valid = torch.arange(rows) % 3 > 0
        for validity in (None, valid):
            kept = values.tolist() if validity is None else values[validity].tolist()
            for largest in (None, max(-low, high)):
                assert aggregates.sum_all(values, validity, largest).item() == sum(kept)
        if rows:
            assert aggregates.min_all(values).item() == min(values.tolist())
            assert aggregates.max_all(values).item() == max(values.tolist())
            assert aggregates.max_all(values).dtype is dtype


@pytest.mark.parametrize("greatest", [False, True])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.float64])
def test_first_extreme_rows(dtype: torch.dtype, nulls: bool, greatest: bool) -> None:
    generator = torch.Generator().manual_seed(9)
    ids = torch.randint(0, 3, (5000,), generator=generator)
    ids[::101] = 3  # a group of nothing but the worst value; the one behind is empty
    values = torch.randint(-100, 100, (5000,), generator=generator).to(dtype)
    worst = -math.inf if greatest else math.inf
    values[::101] = (
        worst if dtype.is_floating_point else getattr(torch.iinfo(dtype), "min" if greatest else "max")
    )
    validity = torch.rand(5000, generator=generator) < 0.5 if nulls else None
    found = first_extreme_rows(values, ids, 5, validity, greatest=greatest).tolist()
    for group in range(5):
        of_group = ids == group if validity is None else (ids == group) & validity
        rows = of_group.nonzero().squeeze(1).tolist()
        numbers = [value if greatest else -value for value in values[of_group].tolist()]
        assert found[group] == (rows[numbers.index(max(numbers))] if rows else -1)
