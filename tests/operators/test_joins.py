"""Every join build against the reference: join type x key type x NULLs x duplicates x empty sides."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests import reference
from tqp.core.errors import ExecutionError
from tqp.operators.joins import hash_join
from tqp.operators.joins.hash_join import build_hash
from tqp.operators.joins.offset_array_join import OffsetArrayBuild, build_offset_array
from tqp.operators.joins.pairs import (
    JoinBuild,
    Membership,
    all_pairs,
    ask_with_arrays,
    check_single,
    expand_ranges,
    left_outer_pairs,
    mark_values,
    marks_of_found,
    marks_of_pairs,
    only_row,
    unmet_rows,
)
from tqp.operators.joins.perfect_hash_join import (
    PerfectHashBuild,
    build_dense,
    build_membership,
    build_perfect_hash,
)
from tqp.operators.joins.sort_join import build_sorted
from tqp.operators.memory.arrays import as_array, as_tensor
from tqp.operators.rows.hash_table import MULTIPLIERS, HashTable
from tqp.runtime.executor import Executor

SIZE = 100
SIDES = [(0, 0), (0, 5), (7, 0), (1, 1), (60, 80)]
DTYPES = [torch.int8, torch.int16, torch.int32, torch.int64]
JOIN_TYPES = ["inner", "left", "right", "full", "semi", "anti"]
BUILDS: dict[str, Callable[[Tensor, Tensor | None], JoinBuild]] = {
    "perfect hash": lambda keys, validity: build_perfect_hash(keys, SIZE, validity),
    "offset array": lambda keys, validity: build_offset_array(keys, SIZE, validity),
    "dense": lambda keys, validity: build_dense(keys, SIZE, validity),
    "offset array of few keys": lambda keys, validity: build_offset_array(keys, 10 * SIZE, validity),
    "hash": build_hash,
    "sort": build_sorted,
}


def draw(generator: random.Random, num_rows: int, unique: bool, nulls: str) -> list[int | None]:
    if nulls == "all":
        return [None] * num_rows
    keys = generator.sample(range(SIZE), num_rows) if unique else generator.choices(range(12), k=num_rows)
    return [None if nulls == "some" and generator.random() < 0.3 else key for key in keys]


def tensors(keys: list[int | None], dtype: torch.dtype, nulls: str) -> tuple[Tensor, Tensor | None]:
    values = torch.tensor([5 if key is None else key for key in keys], dtype=dtype)
    return values, None if nulls == "none" else torch.tensor(
        [key is not None for key in keys], dtype=torch.bool
    )


def as_rows(probe_rows: Tensor, build_rows: Tensor) -> list[tuple[int | None, int | None]]:
    pairs = zip(probe_rows.tolist(), build_rows.tolist(), strict=True)
    return [(i if i >= 0 else None, j if j >= 0 else None) for i, j in pairs]


def joined(
    join_type: str, build: JoinBuild, keys: Tensor, validity: Tensor | None, num_build: int
) -> list[tuple[int | None, int | None]]:
    """A join as the runtime composes it from the kernels."""
    num_probe = keys.shape[0]
    if join_type in ("semi", "anti"):
        found = build.contains(keys, validity).tolist()
        return [(i, None) for i in range(num_probe) if found[i] == (join_type == "semi")]
    probe_rows, build_rows = build.matches(keys, validity)
    unmatched = unmet_rows(build_rows, num_build).tolist()
    if join_type in ("left", "full"):
        probe_rows, build_rows = left_outer_pairs(probe_rows, build_rows, num_probe)
    rows = as_rows(probe_rows, build_rows)
    return rows + [(None, j) for j in unmatched] if join_type in ("right", "full") else rows


@pytest.mark.parametrize("kind", BUILDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("nulls", ["none", "some", "all"])
@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("sides", SIDES)
def test_joins_agree_with_the_reference(
    kind: str, dtype: torch.dtype, nulls: str, unique: bool, sides: tuple[int, int]
) -> None:
    generator = random.Random(f"{nulls}{unique}{sides}")
    num_probe, num_build = sides
    probe_keys = draw(generator, num_probe, False, nulls)
    build_keys = draw(generator, num_build, unique, nulls)
    build = BUILDS[kind](*tensors(build_keys, dtype, nulls))
    keys, validity = tensors(probe_keys, dtype, nulls)
    pairs = reference.join_pairs(probe_keys, build_keys)
    for join_type in JOIN_TYPES:
        expected = reference.join(join_type, num_probe, num_build, pairs)
        assert joined(join_type, build, keys, validity, num_build) == expected, join_type
    first = dict(reversed(pairs))
    got = build.first_match(keys, validity)
    assert got.dtype is torch.int32 and got.tolist() == [first.get(i, -1) for i in range(num_probe)]
    arrays = as_array((keys, validity))
    for method in ("matches", "contains", "first_match"):
        of_arrays = as_tensor(ask_with_arrays(build, method, *arrays))
        of_tensors = getattr(build, method)(keys, validity)
        for one, other in zip(
            *(x if isinstance(x, tuple) else (x,) for x in (of_arrays, of_tensors)), strict=True
        ):
            assert torch.equal(one, other)
    if build.unique:
        assert len({key for key in build_keys if key is not None}) == len(
            [k for k in build_keys if k is not None]
        )


@pytest.mark.parametrize("make", [build_hash, build_sorted])
def test_keys_of_64_bits(make: Callable[[Tensor], JoinBuild]) -> None:
    generator = random.Random(4)
    domain = [-(2**63), 2**63 - 1, 0, -1, *(generator.randrange(-(2**63), 2**63) for _ in range(300))]
    build_keys, probe_keys = generator.choices(domain, k=400), generator.choices(domain, k=300)
    pairs = make(torch.tensor(build_keys)).matches(torch.tensor(probe_keys))
    assert as_rows(*pairs) == reference.join_pairs(probe_keys, build_keys)


@pytest.mark.parametrize("copies", [1, 3])
def test_ranges_of_the_hash_are_one_build(copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random_keys = torch.randint(-(2**62), 2**62, (3000,), generator=torch.Generator().manual_seed(6))
    keys = random_keys.repeat(copies)
    valid = torch.arange(keys.shape[0]) % 11 != 0
    expected = build_hash(keys, valid)
    monkeypatch.setattr(hash_join, "_SHARED_ROWS", 100)
    executor = Executor(torch.device("cpu"), 3, None, None)
    build = build_hash(keys, valid, executor)
    executor.close()
    assert build.unique == expected.unique == (copies == 1)
    probe_keys = torch.cat([random_keys, random_keys + 1])
    for mine, theirs in zip(build.matches(probe_keys), expected.matches(probe_keys), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("order", ["ascending", "random"])
def test_keys_out_of_the_range_of_build_keys_are_not_looked_up(
    copies: int, dtype: torch.dtype, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = random.Random(8)
    monkeypatch.setattr(hash_join, "_FEWEST_IN_RANGE", 100)
    looked_up: list[int] = []
    find = HashTable.find
    monkeypatch.setattr(
        HashTable, "find", lambda table, keys: looked_up.append(keys.shape[0]) or find(table, keys)
    )
    build_keys = [None, *range(5000, 5100, 3)] * copies
    for lowest in (0, 4000, 5050):  # those of the build side lie behind the first ones, and among them
        probe_keys: list[int | None] = [*range(lowest, lowest + 8000, 4), None, 5003, None]
        if order == "random":
            generator.shuffle(probe_keys)
        build = build_hash(*tensors(build_keys, torch.int64, "some"))
        looked_up.clear()
        given, valid = tensors(probe_keys, dtype, "some")
        pairs = reference.join_pairs(probe_keys, build_keys)
        assert as_rows(*build.matches(given, valid)) == pairs
        assert build.contains(given, valid).tolist() == [row in dict(pairs) for row in range(len(probe_keys))]
        assert build.first_match(given, valid).tolist() == [
            dict(reversed(pairs)).get(row, -1) for row in range(len(probe_keys))
        ]
        assert max(looked_up) < 100  # of 2,003
    empty = build_hash(torch.tensor([], dtype=torch.int64))
    assert not empty.contains(torch.arange(200)).any()


def with_hashes(hashes: list[int]) -> list[int]:
    """The keys, 64 bits, of which the hash is one of these."""
    inverse = pow(MULTIPLIERS[0], -1, 2**64)
    return [(value * inverse + 2**63) % 2**64 - 2**63 for value in hashes]


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("threads", [1, 3])
def test_keys_that_share_a_code(copies: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = random.Random(7)
    near = [(generator.randrange(4) << 62) + generator.randrange(1 << 33) for _ in range(200)]
    domain = with_hashes([*near, *(generator.randrange(1 << 64) for _ in range(50))])
    build_keys = generator.sample(domain * copies, len(domain) * copies - 30)
    probe_keys = generator.choices([*domain, 0, -1], k=300)
    monkeypatch.setattr(hash_join, "_SHARED_ROWS", 100)
    executor = Executor(torch.device("cpu"), threads, None, None)
    build = build_hash(torch.tensor(build_keys), None, executor)
    executor.close()
    pairs = reference.join_pairs(probe_keys, build_keys)
    assert build.unique == (copies == 1)
    assert as_rows(*build.matches(torch.tensor(probe_keys))) == pairs
    first = dict(reversed(pairs))
    assert build.first_match(torch.tensor(probe_keys)).tolist() == [first.get(i, -1) for i in range(300)]
    assert build.contains(torch.tensor(probe_keys)).tolist() == [i in first for i in range(300)]


def test_one_key_of_many_rows_among_single_ones() -> None:
    build_keys = [2**40] * 500 + [key * 2**50 for key in range(1, 200)] + [2**40]
    probe_keys = [2**40, 3 * 2**50, 7, 2**40]
    pairs = build_hash(torch.tensor(build_keys)).matches(torch.tensor(probe_keys))
    assert as_rows(*pairs) == reference.join_pairs(probe_keys, build_keys)


def test_many_rows_in_batches_are_one_join() -> None:
    generator = torch.Generator().manual_seed(5)
    build_keys = torch.randint(0, 1000, (50_000,), generator=generator) * 2**40
    probe_keys = torch.randint(0, 2000, (3_000,), generator=generator) * 2**40
    build = build_hash(build_keys)
    whole = torch.stack(build.matches(probe_keys))
    assert torch.equal(torch.stack(build_sorted(build_keys).matches(probe_keys)), whole)
    for size in (1, 7, 1000):
        parts = []
        for start in range(0, 3_000 if size > 1 else 50, size):
            probe_rows, build_rows = build.matches(probe_keys[start : start + size])
            parts.append(torch.stack([probe_rows + start, build_rows]))
        merged = torch.cat(parts, 1)
        assert torch.equal(merged, whole[:, : merged.shape[1]])


def test_a_perfect_hash_falls_back_to_an_offset_array_on_duplicates() -> None:
    assert isinstance(build_perfect_hash(torch.tensor([3, 1]), 4), PerfectHashBuild)
    assert isinstance(build_perfect_hash(torch.tensor([3, 1, 3]), 4), OffsetArrayBuild)
    unique_but_for_null = build_perfect_hash(torch.tensor([3, 1, 3]), 4, torch.tensor([True, True, False]))
    assert isinstance(unique_but_for_null, PerfectHashBuild)
    narrow = build_perfect_hash(torch.tensor([3, 5, 9], dtype=torch.int8), 10)
    assert narrow.first_match(torch.tensor([9, 4, 3])).tolist() == [2, -1, 0]


def test_keys_that_turn_out_distinct_get_a_position_table() -> None:
    keys = torch.randperm(10_000)
    assert isinstance(build_dense(keys, 10_000), PerfectHashBuild)
    assert isinstance(build_dense(keys, 20_001), OffsetArrayBuild)  # few keys of the range have rows
    repeated = torch.cat([keys[:5_000], keys[4_999:]])
    assert isinstance(
        build_dense(repeated, 20_000), OffsetArrayBuild
    )  # beyond the rows that are looked at first
    assert isinstance(build_dense(repeated.sort().values, 20_000), OffsetArrayBuild)
    valid = torch.arange(10_001) != 4_999
    assert isinstance(build_dense(repeated, 20_000, valid), PerfectHashBuild)


@pytest.mark.parametrize("nulls", [False, True])
def test_a_second_equal_value_of_distinct_keys(nulls: bool) -> None:
    build = build_perfect_hash(torch.tensor([3, 1, 4]), 6)
    keys, values = torch.tensor([4, 3, 1, 5, 4]), torch.tensor([7, 9, 8, 7, 6], dtype=torch.int16)
    validity = torch.tensor([True, True, False, True, True]) if nulls else None
    arguments = keys, validity, values, torch.tensor([9, 8, 7])
    expected = [(0, 2), (1, 0)] if nulls else [(0, 2), (1, 0), (2, 1)]
    assert as_rows(*build.matches_equal(*arguments)) == expected
    arrays = ask_with_arrays(build, "matches_equal", *as_array(arguments))
    assert as_rows(*arrays) == expected


def test_membership_says_where_columns_by_key_stand() -> None:
    build = build_membership(torch.tensor([3, 5]), 10)
    keys = torch.tensor([5, 4, 3, 3], dtype=torch.int8)
    valid = torch.tensor([True, True, True, False])
    assert build.first_match(keys).tolist() == [5, -1, 3, 3]
    assert build.first_match(keys, valid).tolist() == [5, -1, 3, -1]
    assert as_rows(*build.matches(keys, valid)) == [(0, 5), (2, 3)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_membership(dtype: torch.dtype) -> None:
    build = build_membership(torch.tensor([1, 4, 2], dtype=dtype), SIZE, torch.tensor([True, True, False]))
    keys = torch.tensor([1, 2, 4, 4, 0], dtype=dtype)
    assert build.contains(keys).tolist() == [True, False, True, True, False]
    validity = torch.tensor([True, True, False, True, True])
    assert build.contains(keys, validity).tolist() == [True, False, False, True, False]
    assert build_membership(keys[:0], SIZE).contains(keys[:0]).tolist() == []


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("counts", [[], [0], [3], [0, 0, 0], [2, 0, 1, 0, 0, 3], [0, 1, 1, 0]])
def test_expand_ranges(counts: list[int], dtype: torch.dtype) -> None:
    starts = [10 * i for i in range(len(counts))]
    rows, positions = expand_ranges(torch.tensor(starts, dtype=dtype), torch.tensor(counts, dtype=dtype))
    assert rows.tolist() == [i for i, count in enumerate(counts) for _ in range(count)]
    assert positions.tolist() == [starts[i] + k for i, count in enumerate(counts) for k in range(count)]
    assert rows.dtype is torch.int32 and positions.dtype is dtype


@pytest.mark.parametrize(("num_probe", "num_build"), [(0, 3), (3, 0), (1, 4), (4, 1), (3, 5)])
def test_all_pairs(num_probe: int, num_build: int) -> None:
    pairs = as_rows(*all_pairs(num_probe, num_build, torch.device("cpu")))
    assert pairs == [(i, j) for i in range(num_probe) for j in range(num_build)]


def test_marks_are_three_valued() -> None:
    true_rows, null_rows = torch.tensor([0, 2, 2]), torch.tensor([1, 2], dtype=torch.int32)
    values, validity = mark_values(true_rows, null_rows, 4)
    assert values.tolist() == [True, False, True, False]
    assert validity is not None and validity.tolist() == [True, False, True, True]
    assert mark_values(true_rows, None, 3)[1] is None


@pytest.mark.parametrize("items", [[], [1, 2], [1, None], [None]])
@pytest.mark.parametrize("null_probe", [False, True])
def test_in_an_uncorrelated_set(items: list[int | None], null_probe: bool) -> None:
    probe: list[int | None] = [1, 3, None] if null_probe else [1, 3]
    keys, validity = tensors(probe, torch.int64, "some" if null_probe else "none")
    build_side = tensors(items, torch.int64, "some")
    sets: list[Membership] = [make(*build_side) for make in BUILDS.values()]
    for build in [*sets, build_membership(build_side[0], SIZE, build_side[1])]:
        values, mark_validity = marks_of_found(build, build.contains(keys, validity), validity)
        valid = [True] * len(probe) if mark_validity is None else mark_validity.tolist()
        got = [value if ok else None for value, ok in zip(values.tolist(), valid, strict=True)]
        assert got == [reference.is_in(value, items) for value in probe]


def test_few_keys_of_many_are_looked_for_by_blocks() -> None:
    generator = torch.Generator().manual_seed(3)
    size = 5_000_000
    keys = torch.cat([torch.randint(0, size, (500,), generator=generator), torch.tensor([0, size - 1])])
    build, many = build_membership(keys, size), build_membership(torch.arange(0, size, 1000), size)
    assert build.blocks is not None and many.blocks is None
    probe = torch.cat([keys, keys[2:-2] + 1, torch.randint(0, size, (10_000,), generator=generator)])
    validity = torch.rand(probe.shape[0], generator=generator) < 0.5
    expected = torch.isin(probe, keys)
    assert torch.equal(build.contains(probe), expected)
    assert torch.equal(build.contains(probe, validity), expected & validity)
    assert build.contains(probe.to(torch.int32).numpy()).tolist() == expected.tolist()


def test_marks_of_a_condition_on_pairs() -> None:
    probe_rows = torch.tensor([0, 0, 1, 1, 2, 4])
    condition = torch.tensor([False, True, False, True, False, True])
    validity = torch.tensor([True, True, True, False, True, False])
    values, mark_validity = marks_of_pairs(probe_rows, condition, validity, 5)
    assert values.tolist() == [True, False, False, False, False]
    assert mark_validity is not None and mark_validity.tolist() == [True, False, True, True, False]
    values, mark_validity = marks_of_pairs(probe_rows, condition, None, 5)
    assert values.tolist() == [True, True, False, False, True] and mark_validity is None


def test_a_build_side_of_at_most_one_row() -> None:
    device = torch.device("cpu")
    assert only_row(2, 1, device).tolist() == [0, 0] and only_row(2, 0, device).tolist() == [-1, -1]
    assert as_rows(*all_pairs(2, 2, device)) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_second_row_of_a_scalar_subquery_is_an_error() -> None:
    assert check_single(torch.tensor([0, 1, 3]), 4).tolist() == [0, 1, 3]
    check_single(torch.zeros(0, dtype=torch.int64), 0)
    with pytest.raises(ExecutionError, match="More than one row returned by a subquery"):
        check_single(torch.tensor([0, 1, 1]), 4)


@pytest.mark.parametrize(
    "build_keys", [[3, 3, 7, 20, 20, 20, 900], [900, 3, 20, 3, 7, 20, 20], [3, 7, 20, 900]]
)
def test_directory_of_few_keys_asked_for_neighbours(build_keys: list[int]) -> None:
    build = build_offset_array(torch.tensor(build_keys), 1000)
    for keys in (
        [3, 7, 20, 900],
        [7, 20],
        [900],
        [7, 900],
        [7, 7],
        [20, 7],
        [4, 7],
        [900, 901],
        [],
        [3, 7, 20, 900, 901],
    ):
        probe = torch.tensor(keys, dtype=torch.int32)
        expected = [
            (i, j) for i, key in enumerate(keys) for j, other in enumerate(build_keys) if key == other
        ]
        assert as_rows(*build.matches(probe)) == expected
        pairs = ask_with_arrays(build, "matches", probe.numpy(), None)
        assert as_rows(*map(torch.from_numpy, pairs)) == expected
        firsts = [build_keys.index(key) if key in build_keys else -1 for key in keys]
        assert build.first_match(probe).tolist() == firsts
        validity = torch.arange(len(keys)) % 2 == 0
        assert as_rows(*build.matches(probe, validity)) == [pair for pair in expected if pair[0] % 2 == 0]


@pytest.mark.parametrize("build_rows", [0, 1, 5, 40, 300])
@pytest.mark.parametrize("distinct", [1, 3, 30])
@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("nulls", [False, True])
def test_pairs_with_a_second_equal_value(build_rows: int, distinct: int, skewed: bool, nulls: bool) -> None:
    generator = torch.Generator().manual_seed(build_rows + distinct)

    def integers(high: int, size: int) -> torch.Tensor:
        return torch.randint(0, high, (size,), generator=generator)

    keys, build_keys = integers(distinct, 200), integers(distinct, build_rows)
    if skewed:
        build_keys[: build_rows // 2] = 0
    values, build_values = integers(3, 200).to(torch.int16), integers(3, build_rows).to(torch.int32)
    validity = integers(2, 200).to(torch.bool) if nulls else None
    built = list(zip(build_keys.tolist(), build_values.tolist(), strict=True))
    counts = [True] * 200 if validity is None else validity.tolist()
    probed = zip(keys.tolist(), values.tolist(), counts, strict=True)
    expected = [
        (i, j)
        for i, (key, value, is_valid) in enumerate(probed)
        for j, pair in enumerate(built)
        if is_valid and pair == (key, value)
    ]
    for size in (distinct, 4000):  # the second one numbers the keys that are there only
        build = build_offset_array(build_keys, size)
        probe_rows, found = build.matches_equal(keys, validity, values, build_values)
        assert list(zip(probe_rows.tolist(), found.tolist(), strict=True)) == expected
        arrays = ask_with_arrays(build, "matches_equal", *as_array((keys, validity, values, build_values)))
        assert list(zip(*(pairs.tolist() for pairs in arrays), strict=True)) == expected
