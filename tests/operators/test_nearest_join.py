"""Nearest joins against a look at every build row: comparisons x keys x NULLs x duplicates x empty sides x extremes."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tqp.operators.joins import nearest_join, sorted_search
from tqp.operators.joins.nearest_join import build_nearest

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
SIDES = [(0, 0), (0, 5), (7, 0), (1, 1), (60, 1), (50, 40), (20, 200)]
LOWEST, HIGHEST = -(2**63), 2**63 - 1


def column(generator: random.Random, num_rows: int, span: int) -> Tensor:
    edges = [LOWEST, HIGHEST, LOWEST + 1, HIGHEST - 1] if span > 100 else [-3]
    return torch.tensor(
        [
            generator.choice(edges) if generator.random() < 0.1 else generator.randrange(span)
            for _ in range(num_rows)
        ],
        dtype=torch.int64,
    )


def validity(generator: random.Random, num_rows: int) -> Tensor | None:
    if generator.random() < 0.5:
        return None
    return torch.tensor([generator.random() < 0.7 for _ in range(num_rows)]).bool()


def nearest(
    comparison: str,
    probe: list[Tensor],
    build: list[Tensor],
    probe_valid: Tensor | None,
    build_valid: Tensor | None,
) -> list[int]:
    """The first of the build rows with the value that is nearest, for each probe row."""
    is_lower = comparison.startswith("less")
    build_keys, probe_keys = (list(zip(*(each.tolist() for each in side[:-1]))) for side in (build, probe))
    found = []
    for row, value in enumerate(probe[-1].tolist()):
        best = -1
        if probe_valid is None or probe_valid[row]:
            for other, other_value in enumerate(build[-1].tolist()):
                if build_valid is not None and not build_valid[other]:
                    continue
                if len(build) > 1 and build_keys[other] != probe_keys[row]:
                    continue
                if not COMPARISONS[comparison](other_value, value):
                    continue
                so_far = build[-1][best].item() if best >= 0 else None
                if so_far is None or (other_value > so_far if is_lower else other_value < so_far):
                    best = other
        found.append(best)
    return found


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize(
    "spans", [(10,), (10**6,), (4, 10), (4, 10**6), (10**6, 10), (10**6, 10**6)], ids=str
)
@pytest.mark.parametrize("many", [4096, 2], ids=["as they come", "in order"])
def test_the_nearest_row_is_found(
    comparison: str, spans: tuple[int, ...], many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (nearest_join, sorted_search):
        monkeypatch.setattr(module, "MANY_KEYS", many)
    generator = random.Random(f"{comparison} {spans}")
    for num_probe, num_build in SIDES:
        for in_order in (False, True):
            probe, build = (
                [column(generator, rows, span) for span in spans] for rows in (num_probe, num_build)
            )
            if in_order:
                build[-1] = build[-1].sort()[0]
            probe_valid, build_valid = validity(generator, num_probe), validity(generator, num_build)
            made = build_nearest(comparison, build, build_valid)
            wanted = nearest(comparison, probe, build, probe_valid, build_valid)
            found = made.first_match(probe, probe_valid)
            assert found.dtype is torch.int32
            assert found.tolist() == wanted


def test_words_of_any_distance_and_many_keys_fit() -> None:
    """Keys and values that are both far apart, and so many that neither leaves the other room."""
    generator = random.Random(5)
    keys, values = (
        torch.tensor(
            [generator.choice([LOWEST, HIGHEST, generator.randrange(LOWEST, HIGHEST)]) for _ in range(500)]
        )
        for _ in range(2)
    )
    for comparison in COMPARISONS:
        build = [keys[:300], values[:300]]
        found = build_nearest(comparison, build).first_match([keys, values])
        assert found.tolist() == nearest(comparison, [keys, values], build, None, None)


def test_narrow_integers_are_compared_by_value() -> None:
    made = build_nearest("less_equal", [torch.tensor([1, 1, 2], dtype=torch.int8), torch.tensor([5, 3, 9])])
    keys, values = torch.tensor([1, 1, 2, 3]), torch.tensor([4, 100, 9, 9], dtype=torch.int16)
    assert made.first_match([keys, values]).tolist() == [1, 0, 2, -1]
