"""The search for a word with torch's operations alone, against Python's `bytes.find`, wherever the bytes lie."""

from __future__ import annotations

from random import Random

import pytest
import torch

from tqp.core.backends import Backend
from tqp.data.backend import computing_with
from tqp.operators.strings import search


def _found(text: bytes, word: bytes) -> list[int]:
    return [at for at in range(len(text) - len(word) + 1) if text[at : at + len(word)] == word]


@pytest.mark.parametrize("seed", range(300))
def test_words_are_found_wherever_they_begin(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_FEW_BYTES", 0 if seed % 10 else 1 << 20)
    random = Random(seed)
    letters = random.choice([b"ab", b"abc", b"abcdefgh\xff"])
    text = bytes(random.choices(letters, k=random.randrange(70)))
    low = random.randrange(len(text) + 1)
    high = random.randrange(low, len(text) + 1)
    length = random.randrange(1, 12)
    begin = random.randrange(max(1, len(text) - length))
    word = text[begin : begin + length] or b"a"
    before = random.randrange(9)  # integers begin where the memory is aligned, not where the text is
    data = torch.tensor(list(b"x" * before + text), dtype=torch.uint8)[before:]
    with computing_with(Backend.TORCH):
        found = search._scan(data, low, high, word)
    assert found.tolist() == [low + at for at in _found(text[low:high], word)]


def test_long_texts_are_searched_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_BLOCK", 16)
    monkeypatch.setattr(search, "_FEW_BYTES", 0)
    text = b"some special text, and more of the special kind " * 7
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    with computing_with(Backend.TORCH):
        assert search._scan(data, 3, len(text), b"special").tolist() == _found(text, b"special")


@pytest.mark.parametrize("distance", [1, 3, 40, 1000])
def test_places_before_ends(distance: int) -> None:
    places = torch.arange(7, 50_000, distance)
    ends = torch.arange(-20, 50_100, 3)
    expected = torch.searchsorted(places, ends)
    assert torch.equal(search.number_before(places, ends), expected)
    assert torch.equal(search.number_before(places, ends.flip(0)), expected.flip(0))
    assert torch.equal(search.number_before(places[:1], ends), torch.searchsorted(places[:1], ends))
    assert torch.equal(search.number_before(places[:0], ends), torch.zeros_like(ends))
