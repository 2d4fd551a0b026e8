"""Two words read at once, and equality built on it, against the bytes themselves: places up to the end of the bytes."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor

from tqp.data.string_buffers import strings_of
from tqp.data.strings import OrderedStrings, Strings
from tqp.operators.strings import compare as string_compare
from tqp.operators.strings import match as string_match
from tqp.operators.strings import scan as string_scan
from tqp.operators.strings import words as string_words
from tqp.operators.strings.layout import cut, from_list, is_ordered, ordered, take, to_list
from tqp.operators.strings.like import like
from tqp.operators.strings.words import any_ends_in_nul, leading, leading_words, words


def _slices(chance: random.Random, content: bytes, count: int) -> tuple[Strings, list[bytes]]:
    starts = [chance.randrange(len(content) + 1) for _ in range(count)]
    lengths = [chance.randrange(min(len(content) - start, 40) + 1) for start in starts]
    texts = [content[start : start + length] for start, length in zip(starts, lengths, strict=True)]
    data = torch.tensor(list(content), dtype=torch.uint8)
    return Strings(torch.tensor(starts), torch.tensor(lengths, dtype=torch.int32), data), texts


@pytest.mark.parametrize("size", [1, 7, 8, 15, 16, 17, 40, 200])
@pytest.mark.parametrize("offset", [0, 8, 16])
@pytest.mark.parametrize("count", [2, 3, 8])
def test_several_words(size: int, offset: int, count: int) -> None:
    chance = random.Random(size)
    strings, texts = _slices(chance, chance.randbytes(size), 60)
    expected = [text[offset : offset + 8 * count].ljust(8 * count, b"\0") for text in texts]
    found = words(strings, offset, count)
    assert [bytes(row.view(torch.uint8).tolist()) for row in found] == expected


@pytest.mark.parametrize("size", [1, 2, 5, 9, 200])
@pytest.mark.parametrize("count", range(1, 9))
def test_leading_bytes_and_lists_of_short_values(size: int, count: int) -> None:
    chance = random.Random(size)
    content = bytes(chance.choice(b"ab\0\xff") for _ in range(size))
    strings, texts = _slices(chance, content, 90)
    found = leading(strings, count)
    assert found.element_size() >= count
    kept = [
        bytes(row.reshape(1).view(torch.uint8).tolist())[: min(len(text), count)]
        for row, text in zip(found, texts, strict=True)
    ]
    assert kept == [text[:count] for text in texts]
    values = [text[:count] for text in chance.sample(texts, 10)]
    assert string_compare.in_list(strings, values).tolist() == [text in values for text in texts]


@pytest.mark.parametrize("size", [1, 16, 30, 300])
def test_equality_in_small_blocks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_compare, "_LONG_BLOCK", 7)
    chance = random.Random(size)
    content = bytes(chance.choice(b"ab\0") for _ in range(size)) * 2
    left, left_texts = _slices(chance, content, 50)
    right, right_texts = _slices(chance, content, 50)
    same = left_texts.index(max(left_texts, key=len))
    for row in range(0, 50, 3):  # some that are equal
        right.starts[row], right.lengths[row] = left.starts[same], left.lengths[same]
        left.starts[row], left.lengths[row] = left.starts[same], left.lengths[same]
        right_texts[row] = left_texts[row] = left_texts[same]
    expected = [a == b for a, b in zip(left_texts, right_texts, strict=True)]
    assert string_compare.equal(left, right).tolist() == expected


@pytest.mark.parametrize("seed", range(12))
def test_patterns_in_small_blocks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_match, "_LEAST_BYTES", 400)
    monkeypatch.setattr(string_match, "_PLACES", 5)
    monkeypatch.setattr(string_scan, "BLOCK", 64)
    monkeypatch.setattr(string_scan, "_STEP", 32)
    chance = random.Random(seed)
    pieces = [b"special", b"requests", b"ab", b"a", b" ", b"\xc3\xa9", b"request", b"aaaaaaaa"]
    content = b"".join(chance.choice(pieces) for _ in range(300))
    strings, texts = _slices(chance, content, 500)
    if seed % 2:
        order = sorted(range(500), key=lambda row: int(strings.starts[row]))
        strings, texts = (
            Strings(*(part[order] for part in strings[:2]), strings.data),
            [texts[i] for i in order],
        )
    for count in (1, 2, 3):
        words_of_pattern = [chance.choice(pieces).decode() for _ in range(count)]
        anchored = chance.choice([("%", "%"), ("", "%"), ("%", ""), ("", "")])
        pattern = anchored[0] + "%".join(words_of_pattern) + anchored[1]
        expression = re.compile(pattern.replace("%", ".*").encode(), re.DOTALL)
        assert like(strings, pattern).tolist() == [bool(expression.fullmatch(text)) for text in texts], (
            pattern
        )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("block", [16, 64, 1 << 23])
def test_words_that_are_followed_stay_in_their_row(
    seed: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(string_scan, "BLOCK", block)
    monkeypatch.setattr(string_match, "_can_follow", lambda *_: True)
    monkeypatch.setattr(string_match, "_MUCH_RARER", 1 << 40)  # the first word is never skipped
    chance = random.Random(seed)
    pieces = [b"special", b"requests", b"specials", b"ab", b"a", b" ", b"\xc3\xa9", b"request", b"aaaaaaaa"]
    content = b"".join(chance.choice(pieces) for _ in range(chance.choice([1, 3, 60])))
    edges = sorted(chance.choices(range(len(content) + 1), k=chance.choice([2, 20, 60])))
    kept = [row for row in range(len(edges) - 1) if chance.random() < 0.8] or [0]  # gaps between rows
    texts = [content[edges[row] : edges[row + 1]] for row in kept]
    strings = OrderedStrings(
        torch.tensor([edges[row] for row in kept]),
        torch.tensor(list(map(len, texts)), dtype=torch.int32),
        torch.tensor(list(content), dtype=torch.uint8),
    )
    for count in (2, 3, 4):
        for _ in range(5):
            of_pattern = [chance.choice(pieces) for _ in range(count)]
            expression = re.compile(b".*".join(of_pattern), re.DOTALL)
            found = string_match.has_words(strings, of_pattern)
            assert found.tolist() == [bool(expression.search(text)) for text in texts], of_pattern


def test_rows_in_any_order_are_copied_in_order() -> None:
    chance = random.Random(5)
    for size in (8, 9, 100):
        strings, texts = _slices(chance, chance.randbytes(size), 80)
        dense = ordered(strings)
        assert to_list(dense) == texts
        ends = (dense.starts + dense.lengths).tolist()
        assert all(end <= start for end, start in zip(ends, dense.starts[1:].tolist(), strict=False))


@pytest.mark.parametrize("longest", [0, 1, 7, 8, 9, 16, 17, 63, 64])
def test_whether_any_row_ends_in_nul(longest: int) -> None:
    texts = [b"\0" * (length - 1) + b"\xff" if length else b"" for length in range(longest + 1)]
    for length in range(longest + 1):
        others = [texts[0], texts[-1]]
        for text in (texts[length], texts[length][:-1] + b"\0" if length else b""):
            strings = from_list([*others, text, *others])
            found = any_ends_in_nul(leading_words(strings, longest), strings.lengths)
            assert found == text.endswith(b"\0"), (longest, text)


def test_columns_lie_in_order_and_words_do_not_leave_their_rows() -> None:
    chance = random.Random(6)
    texts = [
        chance.choice([None, "", "a", "special", "xspecialx", "x" * 300 + "special", "spe", "cial"])
        for _ in range(900)
    ]
    array = pa.array(texts, pa.large_string())
    hidden = pa.Array.from_buffers(  # NULLs with bytes under them
        pa.large_string(),
        900,
        [
            array.buffers()[0],
            *pa.array(["special" if text is None else text for text in texts], pa.large_string()).buffers()[
                1:
            ],
        ],
    )
    for chunks in ([array], [hidden], [hidden.slice(0, 100), array.slice(100)]):
        validity = np.array([text is not None for text in texts])
        strings = strings_of("texts", [chunk.cast(pa.large_binary()) for chunk in chunks], validity)
        part = cut(strings, 7, 893)
        assert isinstance(part, OrderedStrings) and is_ordered(Strings(*part))
        shuffled = torch.randperm(886, generator=torch.Generator().manual_seed(1))
        for pattern in ("%special%", "%spe%cial%", "%e%l%", "%x%l", "%special"):
            expression = re.compile(pattern.replace("%", ".*"))
            expected = [bool(expression.fullmatch(text or "")) for text in texts[7:893]]
            assert like(part, pattern).tolist() == expected
            assert like(take(part, shuffled), pattern).tolist() == [
                expected[row] for row in shuffled.tolist()
            ]


def test_long_strings_are_compared_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def counted(*arguments: Any) -> Tensor:
        nonlocal calls
        calls += 1
        return words(*arguments)

    monkeypatch.setattr(string_compare, "words", counted)
    monkeypatch.setattr(string_words, "words", counted)
    long = b"abc" * 100_000
    texts = [long, long + b"a", long[:-1], long[:-1] + b"z", b"", long[:200_000] + b"!" + long[200_000:]]
    for left in texts:
        for rights in (texts, [texts[1]]):
            lefts, compared = from_list([left] * len(rights)), from_list(rights)
            assert string_compare.equal(lefts, compared).tolist() == [left == right for right in rights]
            assert string_compare.less(lefts, compared).tolist() == [left < right for right in rights]
            if len(left) > 100:
                found = string_compare.equal(from_list([left]), from_list(texts))
                assert found.tolist() == [left == text for text in texts]
    assert calls < 2000
