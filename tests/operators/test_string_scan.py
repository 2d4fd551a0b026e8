"""Finding a word among bytes, against Python's own search: alignments, overlaps, words across rows, rare and common."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tqp.operators.strings import scan as string_scan

ALPHABETS = [b"ab", b"abcdefgh\0\xff", bytes(range(256))]


@pytest.mark.parametrize("alphabet", ALPHABETS, ids=["two", "ten", "all"])
@pytest.mark.parametrize("length", [1, 2, 3, 6, 7, 8, 9, 15, 16, 17])
def test_words_among_bytes(alphabet: bytes, length: int) -> None:
    chance = random.Random(length)
    for size in (0, 1, length, 40, 300, 3000):
        for shift in range(5):  # the first byte's place in memory
            content = bytes(chance.choice(alphabet) for _ in range(size + shift))
            span = np.frombuffer(bytearray(content), np.uint8)[shift:]
            text = content[shift:]
            start = chance.randrange(max(size - length, 1))
            word = text[start : start + length] if size >= length else content[:1] * length or b"x" * length
            places = [place for place in range(size - length + 1) if text.startswith(word, place)]
            assert string_scan.find_all(span, string_scan.search_for(word, span)).tolist() == places
            edges = sorted(chance.choices(range(size + 1), k=12))
            starts, ends = np.array(edges[:-1]), np.array(edges[1:])
            within = [word in text[low:high] for low, high in zip(starts, ends, strict=True)]
            assert string_scan.matches_within(span, starts, ends, word).tolist() == within
            apart = slice(None, None, 2)  # ranges with bytes between them that are in none
            found = string_scan.matches_within(span, starts[apart], ends[apart], word)
            assert found.tolist() == within[apart]
            if size:
                fits = starts + length <= ends
                stands = [
                    fit and text.startswith(word, start) for start, fit in zip(starts, fits, strict=True)
                ]
                for ascending in (False, True):
                    assert string_scan.stands_at(span, word, starts, fits, ascending).tolist() == stands


def test_periodic_words_and_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_scan, "BLOCK", 16)
    monkeypatch.setattr(string_scan, "_STEP", 8)
    text = b"aaaaaaaaaa" + b"abababab" * 5 + b"special" * 3 + b"b" * 20
    span = np.frombuffer(bytearray(text), np.uint8)
    for word in (b"aaaaaaa", b"abababa", b"special", b"specials", b"b", b"ab", b"bbbbbbbb"):
        places = [place for place in range(len(text)) if text.startswith(word, place)]
        assert string_scan.find_all(span, string_scan.search_for(word, span)).tolist() == places
        edges = np.arange(0, len(text), 9)
        within = [word in text[low : low + 9] for low in edges]
        ends = np.minimum(edges + 9, len(text))
        assert string_scan.matches_within(span, edges, ends, word).tolist() == within


def test_how_words_are_looked_for() -> None:
    rare, common = b"the cat and the dog " * 200, b"special" * 700
    assert string_scan._rare_chunks(b"quick", rare) == (2, 0)
    assert string_scan._rare_chunks(b"the quick", rare) == (2, 3)
    assert string_scan._rare_chunks(b"special", common) == (4, 0)
    assert string_scan._rare_chunks(b"pec", common) is None
    assert string_scan._rare_chunks(b"zzzzzzz", rare) is None
    assert string_scan._rare_bytes(b"cow", {99: 10, 111: 9, 119: 0}, 1000) == [2]
    assert string_scan._rare_bytes(b"abcd", dict.fromkeys(b"abcd", 500), 1000) == [0, 1, 2]


def test_what_is_common() -> None:
    span = np.frombuffer(b"the cat and the dog " * 1000, np.uint8)
    assert string_scan.search_for(b"the", span).is_common(20_000, 900)
    assert not string_scan.search_for(b"cow", span).is_common(20_000, 900)


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_places(seed: int) -> None:
    chance = np.random.default_rng(seed)
    lengths = chance.integers(0, [1, 3, 40, 2000][seed % 4], 2000) * chance.integers(0, 2, 2000)
    starts = np.cumsum(lengths) - lengths + seed
    for count in (1, 30, 500, 20_000):
        places = np.sort(chance.integers(starts[0], starts[-1] + 50, count))
        expected = np.searchsorted(starts, places, side="right") - 1
        assert string_scan.rows_of(starts, places).tolist() == expected.tolist()
