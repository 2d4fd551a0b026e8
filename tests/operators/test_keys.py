"""Codes: order of floats, packing, range packing, stable sort, hashes."""

from __future__ import annotations

import itertools
import math
import random

import pytest
import torch

from tests.reference import float_order
from tqp.operators.memory.arrays import as_array
from tqp.operators.numbers import wide
from tqp.operators.rows import keys
from tqp.operators.rows.keys import (
    Part,
    from_ordered_bits,
    hash_combine,
    mix,
    ordered_bits,
    pack,
    pack_by_range,
    pack_narrow,
    sort_bounded,
    sort_codes,
    unpack,
)

FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 3.4e38, -3.4e38]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ordered_bits_compare_as_sql_compares_floats(dtype: torch.dtype) -> None:
    values = torch.tensor([*FLOATS, -math.nan], dtype=dtype)
    bits = ordered_bits(values)
    assert bits.dtype is torch.int64
    for (a, left), (b, right) in itertools.product(
        zip(values.tolist(), bits.tolist(), strict=True), repeat=2
    ):
        assert (left < right) == (float_order(a) < float_order(b)), (a, b)
    back = from_ordered_bits(bits, dtype)
    assert torch.equal(torch.nan_to_num(back), torch.nan_to_num(values)) and back.isnan().sum() == 2


PACKINGS: list[list[Part]] = [
    [(0, 100, False)],
    [(-128, 256, False)],
    [(1, 100, True)],
    [(0, 3, True), (10**12, 50, False)],
    [(-5, 11, True), (0, 127, True), (-(2**31), 2**32, False)],
    [(-(2**31) - 5, 6, False)],
    [(7, 1, False), (0, 2, True)],
]


@pytest.mark.parametrize("parts", PACKINGS)
def test_unpack_inverts_pack(parts: list[Part]) -> None:
    generator = random.Random(1)
    num_rows = 50
    columns = []
    for minimum, span, nullable in parts:
        count = span - nullable
        drawn = [minimum + generator.randrange(count) for _ in range(num_rows)]
        dtype = next(
            dtype
            for dtype in (torch.int8, torch.int16, torch.int32, torch.int64)
            if all(torch.iinfo(dtype).min <= value <= torch.iinfo(dtype).max for value in drawn)
        )
        validity = torch.tensor([generator.random() < 0.7 for _ in drawn]) if nullable else None
        columns.append((torch.tensor(drawn, dtype=dtype), validity))
    codes = pack(columns, parts)
    size = math.prod(span for _, span, _ in parts)
    assert codes.dtype in (torch.int32, torch.int64)
    assert int(codes.min()) >= 0 and int(codes.max()) < size
    for (values, validity), (got, got_validity) in zip(columns, unpack(codes, parts), strict=True):
        assert (validity is None) == (got_validity is None)
        if validity is None or got_validity is None:
            assert torch.equal(got, values.to(torch.int64))
        else:
            assert torch.equal(got_validity, validity)
            assert torch.equal(got[validity], values[validity].to(torch.int64))
    assert pack([(values[:0], None) for values, _ in columns], parts).shape == (0,)


def test_pack_of_one_column_without_offset_is_that_column() -> None:
    values = torch.tensor([3, 1], dtype=torch.int32)
    assert pack([(values, None)], [(0, 10, False)]) is values
    assert pack([(values.to(torch.int8), None)], [(0, 10, False)]).dtype is torch.int32


def test_pack_gives_null_join_keys_a_safe_code() -> None:
    values, validity = torch.tensor([99, 4], dtype=torch.int8), torch.tensor([False, True])
    assert pack([(values, validity)], [(0, 10, False)]).tolist() == [0, 4]
    assert pack([(values, validity)], [(3, 10, False)]).tolist() == [0, 1]


def test_pack_of_booleans() -> None:
    values, validity = torch.tensor([True, False, True]), torch.tensor([True, True, False])
    assert pack([(values, validity)], [(0, 3, True)]).tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "ranges",
    [
        [(5, 5)],
        [(0, 10), (-3, 3), (7, 7)],
        [(-(2**63), 2**63 - 1), (0, 1)],
        [(0, 2**62), (0, 2**40), (-1, 1)],
        [(-(2**63), -(2**63) + 3), (2**63 - 3, 2**63 - 1)],
    ],
)
def test_pack_by_range_keeps_lexicographic_order(ranges: list[tuple[int, int]]) -> None:
    generator = random.Random(2)
    rows = [
        tuple(generator.choice([low, high, (low + high) // 2]) for low, high in ranges) for _ in range(40)
    ]
    words = pack_by_range([torch.tensor(column) for column in zip(*rows, strict=True)])
    codes = list(zip(*(word.codes.tolist() for word in words), strict=True))
    for (a, left), (b, right) in itertools.product(zip(rows, codes, strict=True), repeat=2):
        assert (left < right) == (a < b)
    assert pack_by_range([torch.zeros(0, dtype=torch.int64)] * 3)[0].codes.shape == (0,)


@pytest.mark.parametrize("in_words", [False, True])
@pytest.mark.parametrize("num_rows", [0, 1, 100, 20_000, 40_000])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_sort_codes_is_stable(
    num_rows: int, dtype: torch.dtype, in_words: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "numpy_sorts_words_faster", lambda: in_words)
    top = torch.iinfo(dtype).max
    codes = torch.randint(top - 50, top, (num_rows,)).to(dtype)
    codes[::7] = top
    ordered, order = sort_codes(codes)
    assert order.tolist() == sorted(range(num_rows), key=codes.tolist().__getitem__)
    assert torch.equal(ordered, codes[order])


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("span", [1, 2, 2**8, 2**16, 2**20, 2**21, 2**32])
def test_sort_codes_in_words_of_32_and_64_bits(
    dtype: torch.dtype, span: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4,096 rows leave 20 bits of the narrow words; the least of the codes is negative, or the least that there is."""
    monkeypatch.setattr(keys, "numpy_sorts_words_faster", lambda: True)
    least, greatest = (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    for low in {least, max(least, -7)}:
        high = min(low + span - 1, greatest)
        codes = torch.randint(low, min(high + 1, 2**63 - 1), (4096,)).to(dtype)
        codes[5], codes[-1] = low, high
        ordered, order = sort_codes(codes)
        assert order.tolist() == sorted(range(4096), key=codes.tolist().__getitem__)
        assert torch.equal(ordered, codes[order]) and ordered.dtype is dtype


@pytest.mark.parametrize("low", [0, -(2**40), -(2**63)])
def test_sort_codes_of_many_bits(low: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes that have no room beside their rows: few tie by what has, many, or all."""
    monkeypatch.setattr(keys, "numpy_sorts_words_faster", lambda: True)
    for top in (2**63 - 1, low + 2**50):
        codes = torch.randint(low, top, (3000,))
        codes[:1000] = torch.randint(low, low + 40, (1000,))
        codes[1000:1100] = top
        ordered, order = sort_codes(codes)
        assert order.tolist() == sorted(range(3000), key=codes.tolist().__getitem__)
        assert torch.equal(ordered, codes[order])


@pytest.mark.parametrize("in_words", [False, True])
@pytest.mark.parametrize("span", [1, 2**15, 2**31, 2**46 + 1, 2**62])
def test_sort_bounded_is_stable(in_words: bool, span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "numpy_sorts_words_faster", lambda: in_words)
    for num_rows in (0, 1, 500, 50_000):
        codes = torch.randint(max(0, span - 1000), span, (num_rows,))
        codes[::7] = span - 1
        codes[::11] = 0
        ordered, order = sort_bounded(codes, span)
        assert order.tolist() == sorted(range(num_rows), key=codes.tolist().__getitem__)
        assert torch.equal(ordered.to(torch.int64), codes[order])


def test_mix_is_injective_and_spreads_low_bits() -> None:
    values = torch.cat([torch.arange(-5000, 5000), torch.arange(5000) << 40])
    assert len(set(mix(values).tolist())) == len(set(values.tolist()))
    counts = torch.bincount(mix(torch.arange(1 << 14) << 49) & 1023, minlength=1024)
    assert int(counts.max()) < 60


def test_hash_combine_uses_order_and_both_words() -> None:
    a, b = torch.tensor([1, 2, 1, 2]), torch.tensor([2, 1, 2, 2])
    hashes = hash_combine([a, b]).tolist()
    assert hashes[0] == hashes[2] and len(set(hashes)) == 3
    wide = torch.tensor([[0, 1], [1, 0], [0, 0], [-1, -1]])
    assert len(set(hash_combine([wide]).tolist())) == 4
    assert hash_combine([a.to(torch.int8), b.to(torch.int16)]).tolist() == hashes


def test_a_wide_number_hashes_as_the_narrow_one_that_it_equals() -> None:
    narrow = torch.tensor([0, 1, -1, 2**63 - 1, -(2**63)])
    other = torch.tensor([5, 6, 7, 8, 9], dtype=torch.int8)
    expected = hash_combine([other, narrow])
    assert hash_combine([other, wide.from_narrow(narrow)]).equal(expected)
    beyond = wide.from_ints([value + 2**64 for value in narrow.tolist()])
    assert not (hash_combine([other, beyond]) == expected).any()


def test_narrow_codes_also_hold_the_number_of_codes() -> None:
    values = torch.tensor([-100, 26], dtype=torch.int8)
    assert pack_narrow([(values, None)], [(-100, 127, False)]).dtype is torch.int8
    assert pack_narrow([(values, None)], [(-100, 128, False)]).dtype is torch.int16
    assert pack_narrow([(values, None)], [(-100, 200, True)]).tolist() == [1, 127]
    days = torch.tensor([9000, 9099], dtype=torch.int16)
    flags = torch.tensor([True, False])
    assert pack_narrow([(days, flags), (flags, None)], [(9000, 50, False), (0, 2, False)]).tolist() == [1, 0]
    assert pack_narrow([(days, None)], [(9000, 100, False)]).tolist() == [0, 99]


@pytest.mark.parametrize(
    "parts",
    [
        [(0, 3, False), (0, 2, False), (0, 9, False), (0, 11, False)],  # 8 bits, then 16
        [
            (0, 100, False),
            (200, 100, False),
            (-300, 7, False),
        ],  # 16 bits before the last column, which brings them back
        [(-(2**15), 2**16, False), (5, 2, True), (-1, 3, False), (10**12, 9, False)],
        [(0, 1, False), (0, 200, False), (2**31, 2, True)],
        [(0, 1, False), (-128, 127, False)],
    ],
)
@pytest.mark.parametrize("width", [None, torch.int64])
def test_packing_goes_from_width_to_width(parts: list[Part], width: torch.dtype | None) -> None:
    generator = random.Random(2)
    columns, expected = [], [0] * 100
    for minimum, span, nullable in parts:
        ends = [minimum, minimum + span - 1 - nullable]
        drawn = [generator.choice([*ends, generator.randint(*ends)]) for _ in expected]
        expected = [
            code * span + value - minimum + nullable for code, value in zip(expected, drawn, strict=True)
        ]
        dtype = width or next(
            dtype
            for dtype in (torch.int8, torch.int16, torch.int32, torch.int64)
            if torch.iinfo(dtype).min <= ends[0] and ends[1] <= torch.iinfo(dtype).max
        )
        columns.append((torch.tensor(drawn, dtype=dtype), None))
    before = [values.tolist() for values, _ in columns]
    for packed in (pack, pack_narrow):
        assert packed(columns, parts).tolist() == expected
        arrays = as_array(columns)
        assert packed(arrays, parts).tolist() == expected
    assert [values.tolist() for values, _ in columns] == before


def test_codes_of_one_value_are_sorted_on_a_device_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "is_host", lambda _: False)
    monkeypatch.setattr(keys, "_sort_words", None)
    for rows in (0, 1, 20, 5_000):
        codes, order = keys.sort_bounded(torch.zeros(rows, dtype=torch.int64), 1)
        assert codes.tolist() == [0] * rows
        assert order.tolist() == list(range(rows))
