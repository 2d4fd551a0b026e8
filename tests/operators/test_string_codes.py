"""Strings as integers: they must compare, or be equal, exactly as the strings do, whatever way they were made."""

from __future__ import annotations

import functools
import itertools
import random

import pytest
import torch

from tqp.operators.string_keys import codes as string_codes
from tqp.operators.string_keys import hash as string_hash
from tqp.operators.string_keys import pack as string_pack
from tqp.operators.strings.layout import from_list, take, to_list

ALPHABETS = [b"01", b"0123456789", b"abz ", b"\0a", b"\xff\x00\x7f\x80", bytes(range(256))]


def random_values(seed: int) -> list[bytes]:
    chance = random.Random(seed)
    alphabet = chance.choice(ALPHABETS)
    prefix = chance.choice([b"", b"Customer#", b"x" * 70])
    length = chance.choice([0, 1, 3, 7, 8, 9, 16, 30])
    varies = chance.random() < 0.5
    return [
        prefix
        + bytes(chance.choice(alphabet) for _ in range(chance.randrange(length + 1) if varies else length))
        for _ in range(chance.choice([1, 2, 40]))
    ]


def check(codes: list[int], values: list[bytes], *, ordered: bool) -> None:
    for (code, value), (other_code, other) in itertools.combinations(zip(codes, values, strict=True), 2):
        assert (code == other_code) == (value == other)
        if ordered:
            assert (code < other_code) == (value < other)


@pytest.mark.parametrize("seed", range(150))
def test_codes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = random_values(seed)
    strings = from_list(values)
    packed = string_pack.pack(strings)
    if packed is not None:
        check(packed.tolist(), values, ordered=True)
    valid = torch.tensor([random.Random(seed + i).random() < 0.7 for i in range(len(values))])
    present = [value for value, keep in zip(values, valid, strict=True) if keep]
    for way in range(4):
        if way > 0:
            monkeypatch.setattr(string_codes, "_FEW_ROWS", 0)
        if way > 1:
            monkeypatch.setattr(string_codes, "pack", lambda strings: None)
            monkeypatch.setattr(string_codes, "is_mostly_distinct", lambda strings, way=way: way == 3)
        check(string_codes.order_codes(strings).tolist(), values, ordered=True)
        check(string_codes.group_codes(strings).tolist(), values, ordered=False)
        check(string_codes.order_codes(strings, valid)[valid].tolist(), present, ordered=True)
        check(string_codes.group_codes(strings, valid)[valid].tolist(), present, ordered=False)
    assert values[string_codes.extreme_row(strings, greatest=True)] == max(values)
    assert values[string_codes.extreme_row(strings, greatest=False)] == min(values)
    for of_all, best in ((string_codes.least_of_all, min), (string_codes.greatest_of_all, max)):
        assert to_list(of_all(strings)) == [best(values)]
        assert to_list(of_all(strings, valid)) == ([best(present)] if present else [])


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 2 else ()) for seed in range(20)]
)
def test_extremes_of_few_pieces(seed: int) -> None:
    random_number = random.Random(seed)
    pieces = from_list([value[:20] for value in random_values(seed)[:10]] + [b"", b"a", b"ab"])
    rows = torch.tensor([random_number.randrange(pieces.num_rows) for _ in range(50_000)])
    strings = take(pieces, rows)
    texts = to_list(pieces)
    values = [texts[row] for row in rows.tolist()]
    assert string_codes._rows_of_pieces(strings) is not None
    assert to_list(string_codes.greatest_of_all(strings)) == [max(values)]
    assert to_list(string_codes.least_of_all(strings)) == [min(values)]


@pytest.mark.parametrize("prefix", [b"", b"/", b"\xff\xff"])
@pytest.mark.parametrize("letters", [b"abcdefghijklmnopqrstuvwxyz", bytes(range(256)), b"ab"])
@pytest.mark.parametrize("shortest", [0, 1, 9])
def test_extremes_of_many_rows(prefix: bytes, letters: bytes, shortest: int) -> None:
    chance = random.Random(len(letters) + shortest)
    values = [
        prefix + bytes(chance.choices(letters, k=chance.randrange(shortest, 12)))
        for _ in range(10 * string_codes._SAMPLE_ROWS)
    ]
    rows = torch.randperm(len(values), generator=torch.Generator().manual_seed(3))
    for strings in (from_list(values), take(from_list(values), rows)):
        assert to_list(string_codes.greatest_of_all(strings)) == [max(values)]
        assert to_list(string_codes.least_of_all(strings)) == [min(values)]


@pytest.mark.parametrize("seed", range(60))
def test_extremes_of_groups(seed: int) -> None:
    chance = random.Random(seed)
    values = random_values(seed) * 2
    ids = [chance.randrange(5) for _ in values]
    valid = [chance.random() < 0.7 for _ in values] if seed % 2 else None
    for greatest, best in ((False, min), (True, max)):
        rows, groups = string_codes.extreme_rows(
            from_list(values),
            None if valid is None else torch.tensor(valid),
            torch.tensor(ids),
            5,
            greatest=greatest,
        )
        expected = {
            group: best(
                value
                for value, id, counts in zip(values, ids, valid or [True] * len(ids), strict=True)
                if id == group and counts
            )
            for group in {id for id, counts in zip(ids, valid or [True] * len(ids), strict=True) if counts}
        }
        assert set(groups.tolist()) == set(expected)
        for row, group in zip(rows.tolist(), groups.tolist(), strict=True):
            assert values[row] == expected[group] and ids[row] == group


@pytest.mark.parametrize("few", [0, 512])
@pytest.mark.parametrize("seed", range(20))
def test_codes_of_rows_that_share_slices(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of several places may hold one text; NULL rows lie anywhere in the buffer."""
    monkeypatch.setattr(string_codes, "_FEW_ROWS", few)
    chance = random.Random(seed)
    texts = [value[:20] for value in random_values(seed)[:6] if value] + [b"ab", b"abc", b"ab", b""]
    pieces = from_list(texts)  # no two begin at one place
    rows = torch.tensor([chance.randrange(pieces.num_rows) for _ in range(2 * pieces.data.shape[0] + 90)])
    strings, values = take(pieces, rows), [texts[row] for row in rows.tolist()]
    valid = torch.tensor([chance.random() < 0.7 for _ in values])
    places = [chance.randrange(pieces.data.shape[0] + 1) for _ in values]
    with_nulls = strings._replace(
        starts=torch.where(valid, strings.starts, torch.tensor(places)),
        lengths=torch.where(valid, strings.lengths, 0),
    )
    assert string_codes.distinct_slices(with_nulls, valid) is not None
    present = [value for value, keep in zip(values, valid.tolist(), strict=True) if keep]
    for validity, expected in ((None, values), (valid, present)):
        kept = slice(None) if validity is None else validity
        given = strings if validity is None else with_nulls
        distinct = sorted(set(expected))
        places_of = [distinct.index(value) for value in expected]
        ordered = string_codes.order_codes(given, validity)[kept]
        assert torch.unique(ordered, return_inverse=True)[1].tolist() == places_of
        of_groups = string_codes.group_codes(given, validity)[kept].tolist()
        assert len({*zip(of_groups, places_of, strict=True)}) == len(distinct) == len(set(of_groups))
        codes, uniques = string_codes.factorize(given, validity)
        assert (codes[kept].tolist(), to_list(uniques)) == (places_of, distinct)
        assert int(codes.min()) >= 0 and int(codes.max()) < len(distinct)


def test_equal_hashes_are_not_taken_for_equal_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [b"a" * 70, b"b" * 70, b"a" * 70, b"c" * 70]
    monkeypatch.setattr(string_codes, "_FEW_ROWS", 0)
    monkeypatch.setattr(string_codes, "hash64", lambda strings: torch.zeros_like(strings.starts))
    monkeypatch.setattr(string_codes, "is_mostly_distinct", lambda strings: True)
    check(string_codes.group_codes(from_list(values)).tolist(), values, ordered=False)


def test_many_rows_in_blocks() -> None:
    chance = random.Random(1)
    distinct = [f"Part#{number:07d}".encode() for number in range(0, 3_000_000, 1001)]
    rows = torch.tensor([chance.randrange(len(distinct)) for _ in range(150_000)])
    strings = take(from_list(distinct), rows)
    packed = string_pack.pack(strings)
    assert packed is not None
    assert torch.equal(
        torch.unique(packed, return_inverse=True)[1], torch.unique(rows, return_inverse=True)[1]
    )
    strings = take(from_list([value * 6 for value in distinct]), rows)
    codes = string_codes.group_codes(strings)
    assert len({*zip(codes.tolist(), rows.tolist(), strict=True)}) == len(set(rows.tolist()))


@pytest.mark.parametrize("seed", range(150))
def test_rows_of_several_calls(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_hash, "BLOCK", 13)
    calls = [random_values(seed), random_values(seed + 150), random_values(seed)]
    values = [value for call in calls for value in call]
    found = [string_hash.partition_and_pack(from_list(call)) for call in calls]
    hashes = torch.cat([each for each, _ in found]).tolist()
    of_value = dict(zip(values, hashes, strict=True))
    assert [of_value[value] for value in values] == hashes
    joined: string_pack.Packing | None = None
    packings = []
    for _, packed in found:
        if packed is None:
            return
        joined = packed[1] if joined is None else joined.joined(packed[1])
        if joined is None:
            return
        packings.append(packed)
    assert joined is not None
    codes = torch.cat([string_pack.repack(codes, packing, joined) for codes, packing in packings])
    check(codes.tolist(), values, ordered=True)


def test_differing_prefixes_of_several_calls() -> None:
    calls = [[b"ab1", b"ab2"], [b"cd1"], [b"", b"ab1cd1ef1gh1"], [b"ab\xff"]]
    found = [string_hash.partition_and_pack(from_list(call))[1] for call in calls]
    joined = functools.reduce(lambda one, other: one.joined(other), [packed[1] for packed in found])
    codes = torch.cat([string_pack.repack(*packed, joined) for packed in found])
    check(codes.tolist(), [value for call in calls for value in call], ordered=True)
    wide = [[b"\x7f" * 8, b"\x00" * 7 + b"1"], [b"\x7f" * 8 + b"~~~"]]
    one, other = (string_hash.partition_and_pack(from_list(call))[1][1] for call in wide)
    assert one.joined(other) is None


def test_rows_that_differ_later_in_more_bits() -> None:
    chance = random.Random(2)
    values = [f"number {chance.randrange(10_000)}".encode() for _ in range(70_000)]
    values += [f"Number {chance.randrange(10_000_000)}".encode() for _ in range(70_000)]
    rows = torch.arange(0, len(values), 7919)
    for pack in (string_pack.pack, lambda strings: string_hash.partition_and_pack(strings)[1][0]):
        codes = pack(from_list(values))
        check(codes[rows].tolist(), [values[row] for row in rows.tolist()], ordered=True)
        assert len(set(codes.tolist())) == len(set(values))


@pytest.mark.parametrize("seed", range(60))
def test_append_bits(seed: int) -> None:
    chance = random.Random(seed)
    bits = chance.choice([0x0F0F0F0F0F0F0F0F, 0x1F3F00000000FF01, 1 << 63, 1, chance.getrandbits(64)])
    bits &= ~1 if bits == (1 << 64) - 1 else -1
    while bits.bit_count() > 40:
        bits &= chance.getrandbits(64)
    words = [chance.getrandbits(64) for _ in range(20)]
    codes = torch.arange(20)
    string_pack.append_bits(codes, torch.tensor([word - (word >> 63 << 64) for word in words]), bits)
    for row, word in enumerate(words):
        expected = row
        for place in range(63, -1, -1):
            if bits >> place & 1:
                expected = expected * 2 + (word >> place & 1)
        assert int(codes[row]) == expected
