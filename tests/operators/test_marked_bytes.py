"""Parts of short rows, found by bits of the bytes of their buffer, against Python's split."""

from __future__ import annotations

import random

import pytest
import torch

from tqp.data.strings import Strings
from tqp.operators.strings.build import split_part
from tqp.operators.strings.layout import from_list, to_list
from tqp.operators.strings.marked_bytes import CERTAIN_BITS


def _rows(longest: int, separator: str, count: int) -> tuple[Strings, list[str]]:
    """Texts of separators and parts of them, with bytes of others before, between and behind them."""
    chance = random.Random(longest)
    texts = []
    for _ in range(count):
        text = "".join(
            chance.choices([separator, separator[:1], "x", "é", "yz"], k=chance.randint(0, longest))
        )
        while len(text.encode()) > longest:
            text = text[:-1]
        texts.append(text)
    texts[-1] = separator * (longest // len(separator.encode()))
    between = from_list([part for text in texts for part in (separator[:1], text)])
    own = slice(1, None, 2)
    return Strings(between.starts[own], between.lengths[own], between.data), texts


@pytest.mark.parametrize("separator", [",", ", ", "é", "abc"])
@pytest.mark.parametrize("longest", [3, 8, 57, 58])
def test_parts_of_rows(longest: int, separator: str) -> None:
    strings, texts = _rows(longest, separator, 300)
    assert (int(strings.lengths.max()) <= CERTAIN_BITS) == (longest < 58) or separator != ","
    for number in (1, 2, 3, 9, 16, 17, -1, -2):
        parts = to_list(split_part(strings, separator, torch.tensor(number)))
        place = number if number < 0 else number - 1
        split = [text.split(separator) for text in texts]
        expected = [s[place] if -len(s) <= place < len(s) else "" for s in split]
        assert [part.decode() for part in parts] == expected


def test_many_rows_are_split_block_by_block() -> None:
    strings = from_list([f"{row}/{row * 7}" for row in range(70_000)])
    parts = to_list(split_part(strings, "/", torch.tensor(2)))
    assert parts == [b"%d" % (row * 7) for row in range(70_000)]
