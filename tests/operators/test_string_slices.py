"""Moving, comparing, hashing, ranking and searching byte slices, against Python's own bytes."""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable

import pyarrow as pa
import pytest
import torch
from torch import Tensor

from tqp.core.backends import Backend
from tqp.data.backend import computing_with
from tqp.data.strings import Strings
from tqp.operators.string_keys import codes as string_codes
from tqp.operators.string_keys.codes import factorize, rank
from tqp.operators.string_keys.hash import hash64
from tqp.operators.strings import compare as string_compare
from tqp.operators.strings import layout as string_layout
from tqp.operators.strings import match as string_match
from tqp.operators.strings import scan as string_scan
from tqp.operators.strings import search as string_search
from tqp.operators.strings.layout import from_arrow, from_list, take, to_list
from tqp.operators.strings.like import like
from tqp.operators.strings.words import order_key, words

SEEDS = range(8)


@pytest.fixture(autouse=True, params=[False, True], ids=["few", "many"])
def many_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows by the ways of few, and by those of many."""
    if request.param:
        monkeypatch.setattr(string_codes, "_FEW_ROWS", 0)
        monkeypatch.setattr(string_layout, "_FEW_ROWS", 0)
        monkeypatch.setattr(string_layout, "FEW_BYTES", 0)


EMPTY = from_list([])


def random_values(generator: random.Random, count: int, alphabet: bytes = b"ab\0") -> list[bytes]:
    lengths = [0, 1, 2, 3, 7, 8, 9, 16, 17, 30, 70, 200]
    return [bytes(generator.choices(alphabet, k=generator.choice(lengths))) for _ in range(count)]


def random_strings(seed: int) -> tuple[Strings, list[bytes], random.Random]:
    """Shuffled rows with repeats, over a buffer that starts with bytes of no row."""
    generator = random.Random(seed)
    values = random_values(generator, 60)
    values += [b"", *values[:20]]
    strings = from_list([b"unused", *values])
    order = list(range(len(values)))
    generator.shuffle(order)
    return take(strings, torch.tensor(order) + 1), [values[index] for index in order], generator


@pytest.mark.parametrize("seed", SEEDS)
def test_moving_rows(seed: int) -> None:
    strings, values, _ = random_strings(seed)
    assert to_list(strings) == values
    dense = string_layout.compact(strings)
    assert to_list(dense) == values
    assert torch.equal(dense.data, string_layout._gather_bytes(strings, dense.starts, dense.data.shape[0]))
    assert to_list(string_layout.cut(strings, 3, 9)) == values[3:9]
    assert to_list(from_arrow(string_layout.to_arrow_binary(strings))) == values


@pytest.mark.parametrize("seed", SEEDS)
def test_concatenate_and_choose(seed: int) -> None:
    strings, values, generator = random_strings(seed)
    other_values = random_values(generator, len(values))
    other = from_list(other_values)
    parts = [strings, other, string_layout.cut(strings, 3, 9), from_list([b"x"]), EMPTY]
    assert to_list(string_layout.concatenate(parts)) == values + other_values + values[3:9] + [b"x"]
    first = torch.tensor([generator.random() < 0.3 for _ in values])
    second = torch.tensor([generator.random() < 0.5 for _ in values])
    chosen = string_layout.choose([first, second], [strings, from_list([b"literal"])], other)
    expected = [
        value if one else b"literal" if two else default
        for value, default, one, two in zip(values, other_values, first, second, strict=True)
    ]
    assert to_list(chosen) == expected
    assert to_list(string_layout.choose([first], [strings], None)) == [
        value if one else b"" for value, one in zip(values, first, strict=True)
    ]


def test_parts_over_one_buffer_share_it() -> None:
    strings = from_list([b"abc", b"de", b"f"])
    joined = string_layout.concatenate([string_layout.cut(strings, 2, 3), string_layout.cut(strings, 0, 1)])
    assert joined.data is strings.data


def test_a_small_part_of_a_large_buffer_is_copied_alone() -> None:
    strings = from_list([b"x" * 1_000_000, b"a", b"y" * 1_000_000, b"b"])
    joined = string_layout.concatenate([take(strings, torch.tensor([3, 1])), from_list([b"c"])])
    assert to_list(joined) == [b"b", b"a", b"c"]
    assert joined.data.shape[0] == 3


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (string_compare.equal, operator.eq),
        (string_compare.less, operator.lt),
    ],
)
def test_comparisons(
    seed: int, kernel: Callable[[Strings, Strings], Tensor], expected: Callable[[bytes, bytes], bool]
) -> None:
    strings, values, generator = random_strings(seed)
    others = random_values(generator, len(values))
    others[::3] = values[::3]
    others[::7] = [value + b"\0" for value in values[::7]]
    other = from_list(others)
    assert kernel(strings, other).tolist() == [expected(a, b) for a, b in zip(values, others, strict=True)]
    for index in range(0, len(values), 9):
        single = string_layout.cut(other, index, index + 1)
        assert kernel(strings, single).tolist() == [expected(value, others[index]) for value in values]
        assert kernel(single, strings).tolist() == [expected(others[index], value) for value in values]


@pytest.mark.parametrize("seed", SEEDS)
def test_ranks_codes_and_hashes(seed: int) -> None:
    strings, values, generator = random_strings(seed)
    distinct = sorted(set(values))
    codes = [distinct.index(value) for value in values]
    assert rank(strings).tolist() == codes
    found, uniques = factorize(strings)
    assert (found.tolist(), to_list(uniques)) == (codes, distinct)
    hashes = hash64(from_list(distinct)).tolist()
    assert len(set(hashes)) == len(distinct)
    assert hash64(strings).tolist() == [hashes[code] for code in codes]
    valid = torch.tensor([generator.random() < 0.5 for _ in values])
    present = sorted({value for value, keep in zip(values, valid, strict=True) if keep})
    found, uniques = factorize(strings, valid)
    assert to_list(uniques) == present
    assert [code for code, keep in zip(found.tolist(), valid, strict=True) if keep] == [
        present.index(value) for value, keep in zip(values, valid, strict=True) if keep
    ]
    assert max(found.tolist()) < len(present)


def test_factorize_without_a_valid_row() -> None:
    codes, uniques = factorize(from_list(["a", "b"]), torch.tensor([False, False]))
    assert (codes.tolist(), to_list(uniques)) == ([0, 0], [b""])


@pytest.mark.parametrize("count", [0, 1, 3, 30])
def test_in_list(count: int) -> None:
    strings, values, generator = random_strings(count)
    wanted = generator.sample(values, min(count, 20)) + random_values(generator, count)
    assert string_compare.in_list(strings, wanted).tolist() == [value in wanted for value in values]


def test_long_equal_prefixes() -> None:
    values = [b"p" * 5000 + ending for ending in (b"a", b"b", b"", b"a\0", b"ab", b"a")]
    strings = from_list(values)
    distinct = sorted(set(values))
    assert rank(strings).tolist() == [distinct.index(value) for value in values]
    first = string_layout.cut(strings, 0, 1)
    assert string_compare.less(strings, first).tolist() == [value < values[0] for value in values]
    assert string_compare.equal(strings, first).tolist() == [value == values[0] for value in values]
    assert len(set(hash64(strings).tolist())) == len(distinct)


@pytest.mark.parametrize("seed", range(60))
def test_like_against_regular_expressions(seed: int) -> None:
    generator = random.Random(seed)
    alphabet = generator.choice(["ab", "abcé", "ab\0"])
    texts = [
        "".join(generator.choices(alphabet, k=generator.choice([0, 1, 2, 3, 5, 9, 20]))) for _ in range(80)
    ]
    wildcards = "%%_" if seed % 3 else "%%"
    pattern = "".join(generator.choices(alphabet + wildcards, k=generator.randint(0, 9)))
    rows = list(range(0, 80, 3)) if seed % 4 == 0 else generator.sample(range(80), 80)
    strings = take(from_list(texts), torch.tensor(rows))
    pieces = {"%": ".*", "_": "."}
    expression = re.compile("".join(pieces.get(letter, re.escape(letter)) for letter in pattern), re.DOTALL)
    assert like(strings, pattern).tolist() == [expression.fullmatch(texts[row]) is not None for row in rows]


@pytest.mark.parametrize("word", [b"a", b"ab", b"aab", b"babab" * 3, b"c"])
def test_first_occurrences(word: bytes) -> None:
    strings, values, _ = random_strings(3)
    expected = [(row, value.find(word)) for row, value in enumerate(values) if word in value]
    for backend in Backend:
        with computing_with(backend):
            rows, offsets = string_search.first_occurrences(strings, word)
        assert list(zip(rows.tolist(), offsets.tolist(), strict=True)) == expected
    on_device = string_search._scan(strings.data, 0, strings.data.shape[0], word)
    search = string_match.search_for(strings, word)
    assert on_device.tolist() == string_scan.find_all(strings.data.numpy(), search).tolist()


def test_words_at_the_end_of_the_buffer() -> None:
    strings = from_list([b"abcdefgh", b"xyz"])
    assert words(strings, 0).tolist() == [int.from_bytes(v, "little") for v in (b"abcdefgh", b"xyz")]
    assert words(strings, 2, 2)[1].tolist() == [ord("z"), 0]
    assert words(from_list([b"", b"\xff"]), 0).tolist() == [0, 255]
    keys = order_key(words(from_list([b"a", b"\xff", b"\x7f", b""]), 0))
    assert keys.argsort().tolist() == [3, 0, 2, 1]


def test_no_rows() -> None:
    assert rank(EMPTY).tolist() == []
    assert string_compare.equal(EMPTY, from_list(["a"])).tolist() == []
    assert string_compare.less(EMPTY, EMPTY).tolist() == []
    assert string_compare.in_list(EMPTY, [b"a"]).tolist() == []
    assert hash64(EMPTY).tolist() == []
    assert factorize(EMPTY)[1].num_rows == 0
    assert to_list(string_layout.compact(EMPTY)) == []
    assert string_layout.choose([torch.zeros(0, dtype=torch.bool)], [EMPTY], EMPTY).num_rows == 0


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", None, "ccc", "é"]),
        pa.array(["skip", "a", None, "ccc", "é"], pa.large_string()).slice(1),
        pa.chunked_array([["a", None], ["ccc", "é"]], pa.string_view()),
        pa.array(["a", None, "ccc", "é"]).dictionary_encode(),
        pa.array([b"a", None, b"ccc", "é".encode()], pa.binary()),
        pa.LargeStringArray.from_buffers(
            4,
            pa.py_buffer(torch.tensor([0, 1, 3, 6, 8]).numpy()),
            pa.py_buffer("aXXcccé".encode()),
            pa.py_buffer(bytes([0b1101])),
        ),
    ],
)
def test_from_arrow(array: pa.Array) -> None:
    strings = from_arrow(array)
    assert to_list(strings) == [b"a", b"", b"ccc", "é".encode()]
    assert strings.lengths.tolist() == [1, 0, 3, 2]


def test_to_arrow_keeps_nulls_and_shares_contiguous_bytes() -> None:
    strings = from_list(["a", "", "ccc"])
    array = string_layout.to_arrow(strings, torch.tensor([True, False, True]))
    assert array.to_pylist() == ["a", None, "ccc"]
    assert array.buffers()[2].address == strings.data.data_ptr()
    assert from_arrow(array).data.data_ptr() == strings.data.data_ptr()
