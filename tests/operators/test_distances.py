"""Distances of strings against the textbook's tables, one pair after the other."""

from __future__ import annotations

from random import Random

import pytest
import torch

from tqp.core.datatypes import BIGINT, DOUBLE, VARCHAR, DataType
from tqp.core.errors import ExecutionError
from tqp.operators.scalar_kernels import resolve
from tqp.operators.strings import distances
from tqp.operators.strings.layout import from_list


def _edits(left: bytes, right: bytes, exchanges: bool) -> int:
    """Insertions, deletions, substitutions, and exchanges of neighbours with edits between them."""
    infinite = len(left) + len(right)
    costs = {(-1, place): infinite for place in range(-1, len(right) + 1)}
    costs |= {(place, -1): infinite for place in range(-1, len(left) + 1)}
    costs |= {(0, place): place for place in range(len(right) + 1)}
    costs |= {(place, 0): place for place in range(len(left) + 1)}
    last_row: dict[int, int] = {}
    for row, first in enumerate(left, 1):
        last_column = 0
        for column, second in enumerate(right, 1):
            before = (last_row.get(second, 0), last_column)
            skipped = (row - before[0] - 1) + (column - before[1] - 1)
            exchanged = costs[before[0] - 1, before[1] - 1] + 1 + skipped
            costs[row, column] = min(
                costs[row - 1, column - 1] + (first != second),
                costs[row - 1, column] + 1,
                costs[row, column - 1] + 1,
                exchanged if exchanges and min(before) > 0 else infinite,
            )
            if first == second:
                last_column = column
        last_row[first] = row
    return costs[len(left), len(right)]


def _jaro(left: bytes, right: bytes) -> float:
    reach = max(max(len(left), len(right)) // 2 - 1, 0)
    taken: list[int] = []
    matched = bytearray()
    for place, value in enumerate(right):
        inside = range(max(place - reach, 0), min(place + reach + 1, len(left)))
        found = next((other for other in inside if left[other] == value and other not in taken), None)
        if found is not None:
            taken.append(found)
            matched.append(value)
    if not taken:
        return 0.0
    exchanged = sum(left[place] != value for place, value in zip(sorted(taken), matched, strict=True)) // 2
    common = len(taken)
    return (common / len(left) + common / len(right) + (common - exchanged) / common) / 3


def _call(function: str, pairs: list[tuple[str, str]], result: DataType) -> list[float]:
    kernel = resolve(function, (VARCHAR, VARCHAR), result)
    left, right = (from_list([pair[side] for pair in pairs]) for side in (0, 1))
    found: torch.Tensor = kernel.function(left, right)
    return found.tolist()


def _pairs(count: int) -> list[tuple[str, str]]:
    random = Random(19)
    pairs = [("", ""), ("", "a"), ("a", ""), ("🦆", "é")]
    for _ in range(count):
        letters = random.choice(("ab", "abc", "aé🦆b"))
        first, second = (
            "".join(random.choices(letters, k=random.choice((0, 1, 2, 3, 7, 20)))) for _ in range(2)
        )
        if random.random() < 0.5:
            second = first[1:] + first[:1]
        pairs.append((first, second))
    return pairs


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_distances(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "_BLOCK", block)
    pairs = _pairs(150)
    encoded = [(left.encode(), right.encode()) for left, right in pairs]
    assert _call("levenshtein", pairs, BIGINT) == [_edits(*pair, exchanges=False) for pair in encoded]
    assert _call("damerau_levenshtein", pairs, BIGINT) == [_edits(*pair, exchanges=True) for pair in encoded]
    jaro = _call("jaro_similarity", pairs, DOUBLE)
    assert jaro == [_jaro(*pair) for pair in encoded]
    for pair, similarity, found in zip(
        encoded, jaro, _call("jaro_winkler_similarity", pairs, DOUBLE), strict=True
    ):
        prefix = next((place for place, (a, b) in enumerate(zip(*pair)) if a != b), min(map(len, pair)))
        more = min(prefix, 4) * 0.1 * (1 - similarity) if similarity > 0.7 else 0.0
        assert found == pytest.approx(similarity + more, rel=1e-15)


def test_bytes_in_place_and_sets() -> None:
    pairs = [(left, right) for left, right in _pairs(150) if left and right]
    jaccard = [len({*a} & {*b}) / len({*a} | {*b}) for a, b in ((x.encode(), y.encode()) for x, y in pairs)]
    assert _call("jaccard", pairs, DOUBLE) == jaccard
    as_long = [(left, left[::-1]) for left, _ in pairs]
    differing = [sum(a != b for a, b in zip(x.encode(), y.encode(), strict=True)) for x, y in as_long]
    assert _call("hamming", as_long, BIGINT) == differing


def test_rows_that_do_not_count_do_not_raise() -> None:
    left, right = from_list(["ab", "", "abc"]), from_list(["ba", "", "a"])
    hamming = resolve("hamming", (VARCHAR, VARCHAR), BIGINT)
    valid = torch.tensor([True, False, False])
    assert hamming.function(left, right, validity=valid)[0] == 2
    with pytest.raises(ExecutionError, match="equal length"):
        hamming.function(left, right, validity=~valid)


def test_no_rows() -> None:
    for function, result in (
        ("levenshtein", BIGINT),
        ("damerau_levenshtein", BIGINT),
        ("jaro_similarity", DOUBLE),
    ):
        assert _call(function, [], result) == []
