"""Grapheme clusters as DuckDB has them: every code point next to others, and random texts of those that join."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

import tqp
from tqp.operators.strings.graphemes import graphemes

_LETTERS = [
    "a", "é", "e\u0301", "\u0301", "\u200d", "\u200c", "👍", "🏽", "👩", "❤", "\ufe0f", "🇳", "🇴", "\r", "\n", "\u0600", "\u0903",
    "ᄀ", "ᅡ", "ᆨ", "가", "각", "क", "ख", "\u094d", "\u093c", "\u093f", "ক", "\u09cd", "\u0e33", "ก", "\u102b", "က", "\U000e0041", "\u00ad",
]  # fmt: skip


def _reversed_by_duckdb(texts: list[str]) -> list[str]:
    rows = pa.table({"i": range(len(texts)), "s": texts})  # noqa: F841 (DuckDB finds it by its name)
    return [text for (text,) in duckdb.sql("SELECT reverse(s) FROM rows ORDER BY i").fetchall()]


@pytest.mark.parametrize(
    "before, after",
    [
        ("a", ""),
        ("👍", "\u200d👍"),
        *[
            pytest.param(*pair, marks=pytest.mark.slow)
            for pair in [("", "b"), ("ᄀ", "ᅡ"), ("각", "ᆨ"), ("क", "\u094d")]
        ],
    ],
)
def test_every_code_point(before: str, after: str) -> None:
    codes = [*range(0x80, 0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE0200)]
    texts = [before + chr(code) + after for code in codes]
    found = ["".join(reversed(graphemes(text))) for text in texts]
    different = [
        f"{code:x}"
        for code, mine, other in zip(codes, found, _reversed_by_duckdb(texts), strict=True)
        if mine != other
    ]
    assert different == []


def test_random_texts() -> None:
    chance = random.Random(1)
    texts = ["".join(chance.choices(_LETTERS, k=chance.randint(1, 8))) for _ in range(4000)]
    table = pa.table({"i": range(len(texts)), "s": texts})
    with tqp.connect() as connection:
        connection.register("t", table)
        found = [text for (text,) in connection.sql("SELECT reverse(s) FROM t ORDER BY i").fetchall()]
    expected = _reversed_by_duckdb(texts)
    assert [pair for pair in zip(texts, found, expected, strict=True) if pair[1] != pair[2]] == []
