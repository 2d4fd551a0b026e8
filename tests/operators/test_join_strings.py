"""String joins, by number and by hash, against a nested loop; and the numbers themselves."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from tqp.data.strings import Strings
from tqp.operators.joins import string_join as join_strings
from tqp.operators.joins.pairs import matches_or_none
from tqp.operators.joins.string_join import EncodedStrings, HashedStrings, build_strings
from tqp.operators.string_keys import byte_numbers as string_numbers
from tqp.operators.string_keys.byte_numbers import number_strings
from tqp.operators.strings.layout import from_list, take


class OneByOne:
    threads = 1

    @staticmethod
    def map(function, items):  # type: ignore[no-untyped-def]
        return [function(item) for item in items]


WORKERS = OneByOne()
CHANCE = random.Random(0)


def texts(alphabet: str, lengths: range, count: int) -> list[bytes]:
    return ["".join(CHANCE.choices(alphabet, k=CHANCE.choice(lengths))).encode() for _ in range(count)]


SETS = {
    "none": [],
    "one": [b"abc"],
    "one long": [b"x" * 33],
    "empty only": [b""],
    "digits": [b"item %d" % number for number in range(0, 3000, 7)],
    "fixed": [b"Customer#%09d" % number for number in range(300)],
    "prefixes": [b"abcdefghijklmnopqrstuvwxyz"[:length] for length in range(27)],
    "zeros within": [b"a\0b", b"a\0c", b"\0\0b", b"ab", b""],
    "zeros at the end": [b"a", b"a\0", b"a\0\0", b"", b"\0"],
    "few letters": texts("ab", range(7), 200),
    "unicode": texts("aé日🙂", range(9), 200),
    "many values": texts("abcdefghijklmnopqrstuvwxyzABCDEF", range(8, 9), 400),
    "long": texts("abcdefghij", range(40, 70), 50),
    "up to 64": [b"x" * 58 + text for text in texts("ab", range(7), 50)],
}


def lay_out(values: list[bytes], how: str) -> Strings:
    if how == "in order":
        return from_list(values)
    order = list(range(len(values)))
    CHANCE.shuffle(order)
    strings = from_list([b"zz", *(values[place] for place in order)])
    back = torch.empty(len(values), dtype=torch.int64)
    back[torch.tensor(order, dtype=torch.int64)] = torch.arange(1, len(values) + 1)
    return take(strings, back)


def probes(values: list[bytes]) -> list[bytes]:
    other = [value[:-1] for value in values] + [
        value + tail for value in values for tail in (b"\0", b"a", b"1")
    ]
    changed = [value[:2] + b"#" + value[3:] for value in values]
    return [*values, *other, *changed, b"", b"\0", b"item 1", b"item 10000", b"y" * 100, b"item 1\0"]


@pytest.mark.parametrize("how", ["in order", "shuffled"])
@pytest.mark.parametrize("name", SETS)
def test_numbers(name: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_numbers, "_BLOCK", 64)
    values = SETS[name]
    numbers = number_strings(lay_out(values, how), WORKERS.map)
    if name in ("zeros at the end", "long"):
        assert numbers is None
        return
    if numbers is None:
        assert name == "many values"
        return
    own = numbers.number(lay_out(values, how)).tolist()
    assert all(0 < number <= numbers.size for number in own)
    number_of = dict(zip(values, own, strict=True))
    assert len(set(number_of.values())) == len(number_of)
    assert [number_of[value] for value in values] == own
    asked = probes(values)
    for value, number in zip(asked, numbers.number(lay_out(asked, how)).tolist(), strict=True):
        if value in number_of:
            assert number == number_of[value]
        else:
            assert number not in number_of.values()
            assert 0 <= number <= numbers.size
    valid = torch.tensor([position % 3 > 0 for position in range(len(asked))], dtype=torch.bool)
    strings = lay_out(asked, how)
    assert torch.equal(numbers.number(strings, valid), numbers.number(strings) * valid)


def test_numbers_of_both_widths() -> None:
    assert number_strings(from_list(SETS["digits"]), WORKERS.map).dtype is torch.int32  # type: ignore[union-attr]
    wide = [b"%012x" % CHANCE.randrange(1 << 48) for _ in range(1000)]
    numbers = number_strings(from_list(wide), WORKERS.map)
    assert numbers is not None
    assert numbers.dtype is torch.int64
    assert len(set(numbers.number(from_list(wide)).tolist())) == len(set(wide))


def test_too_many_numbers_are_seen_in_a_sample() -> None:
    many = [b"%032x" % CHANCE.randrange(1 << 128) for _ in range(5000)]
    assert number_strings(from_list(many), WORKERS.map) is None


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("free", [1 << 20, 0])
@pytest.mark.parametrize("name", SETS)
def test_joins(name: str, free: int, nulls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_strings, "_FREE_ENTRIES", free)
    values = SETS[name] + (SETS[name][:3] if free else [])
    asked = probes(SETS[name])
    build_valid = [not nulls or position % 5 > 0 for position in range(len(values))]
    probe_valid = [not nulls or position % 4 > 0 for position in range(len(asked))]
    expected = [
        (i, j)
        for (i, a), (j, b) in itertools.product(enumerate(asked), enumerate(values))
        if a == b and probe_valid[i] and build_valid[j]
    ]
    validity = [
        torch.tensor(flags, dtype=torch.bool) if nulls else None for flags in (build_valid, probe_valid)
    ]
    strings, keys = lay_out(values, "shuffled"), lay_out(asked, "in order")
    found = {row for row, _ in expected}
    contained = [row in found for row in range(len(asked))]
    bare = build_strings(strings, validity[0], WORKERS, existence_only=True)
    assert bare.contains(keys, validity[1]).tolist() == contained
    build = build_strings(strings, validity[0], WORKERS)
    assert isinstance(build, (EncodedStrings, HashedStrings))
    assert build.nulls == (not values, not all(build_valid))
    assert build.contains(keys, validity[1]).tolist() == contained
    pairs = build.matches(keys, validity[1])
    assert list(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True)) == expected
    first: dict[int, int] = {}
    for row, build_row in expected:
        first.setdefault(row, build_row)
    assert build.first_match(keys, validity[1]).tolist() == [first.get(row, -1) for row in range(len(asked))]
    pairs = matches_or_none(build, keys, validity[1], len(asked))
    padded = sorted(expected + [(row, -1) for row in range(len(asked)) if row not in found])
    assert list(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True)) == padded


def test_first_matches_look_at_other_strings_of_a_hash_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of one hash are compared one by one; equal ones are not: 30,000 rows of two texts are 450 million pairs."""
    monkeypatch.setattr(join_strings, "number_strings", lambda strings, map_rows: None)
    texts = [b"a", b"bb", b"c"]
    build = build_strings(from_list([texts[i % 2] for i in range(30_000)]), None, WORKERS)
    assert isinstance(build, HashedStrings)
    keys = from_list([texts[i % 3] for i in range(30_000)])
    assert build.first_match(keys).tolist() == [(0, 1, -1)[i % 3] for i in range(30_000)]
    monkeypatch.setattr(join_strings, "hash64", lambda strings: strings.lengths.to(torch.int64) % 2)
    build = build_strings(from_list([b"x", b"bb", b"c", b"a"]), None, WORKERS)
    keys = from_list([b"a", b"bb", b"c", b"d", b"ee"])
    assert build.first_match(keys).tolist() == [3, 1, 2, -1, -1]
    assert build.contains(keys).tolist() == [True, True, True, False, False]
