"""Three-valued logic and CASE, over every combination of values."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

from tqp.operators.numbers import logic

THREE = (True, False, None)


def kleene(a: bool | None, b: bool | None, winner: bool) -> bool | None:
    if a is winner or b is winner:
        return winner
    return None if a is None or b is None else not winner


@pytest.mark.parametrize(("kernel", "winner"), [(logic.kleene_and, False), (logic.kleene_or, True)])
@pytest.mark.parametrize("a_domain", [THREE, (True, False)])
@pytest.mark.parametrize("b_domain", [THREE, (True, False)])
@pytest.mark.parametrize("garbage", [True, False])
def test_connectives(kernel: Callable, winner: bool, a_domain: tuple, b_domain: tuple, garbage: bool) -> None:  # type: ignore[type-arg]
    rows = list(itertools.product(a_domain, b_domain))
    columns = [[a for a, _ in rows], [b for _, b in rows]]
    arguments = []
    for column, domain in zip(columns, (a_domain, b_domain)):
        arguments.append(torch.tensor([garbage if value is None else value for value in column]))
        arguments.append(torch.tensor([value is not None for value in column]) if None in domain else None)
    values, validity = kernel(*arguments)
    assert (validity is None) == (None not in a_domain and None not in b_domain)
    valid = [True] * len(rows) if validity is None else validity.tolist()
    result = [value if counts else None for value, counts in zip(values.tolist(), valid)]
    assert result == [kleene(a, b, winner) for a, b in rows]


def test_combine_validity() -> None:
    a, b = torch.tensor([True, False, True]), torch.tensor([True, True, False])
    assert logic.combine_validity(None, None) is None
    assert logic.combine_validity(a, None, a) is a
    assert logic.combine_validity(a, b, None).tolist() == [True, False, False]  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.float64, torch.bool], ids=str)
@pytest.mark.parametrize("width", [None, 2, 3])
def test_choose_takes_the_first_true_condition(dtype: torch.dtype, width: int | None) -> None:
    generator = torch.Generator().manual_seed(2)
    shape = (64,) if width is None else (64, width)
    limits = (0, 2) if dtype == torch.bool else (-128, 128) if dtype == torch.int8 else (-(2**62), 2**62)
    values = [torch.randint(*limits, shape, generator=generator).to(dtype) for _ in range(3)]
    if dtype == torch.int64:
        values[0].fill_(2**63 - 1)  # the difference to a negative value wraps
    first, second = (torch.randint(0, 2, (64,), generator=generator).bool() for _ in range(2))
    result = logic.choose([first, second], values[:2], values[2])
    for row in range(64):
        source = values[0] if first[row] else values[1] if second[row] else values[2]
        assert torch.equal(result[row], source[row])
    assert result.dtype == dtype


def test_choose_with_scalars_and_infinities() -> None:
    condition = torch.tensor([True, False])
    column = torch.tensor([5, 6])
    assert logic.choose([condition], [column], 0).tolist() == [5, 0]
    assert logic.choose([condition], [1], column).tolist() == [1, 6]
    assert logic.choose([condition], [1], 0).tolist() == [1, 0]
    assert logic.choose([condition], [True], torch.tensor([False, True])).tolist() == [True, True]
    assert logic.choose([condition], [torch.tensor([1.0, float("nan")])], 0.0).tolist() == [1.0, 0.0]
    assert logic.choose(
        [condition], [torch.tensor([[1, 2, 3]])], torch.zeros(2, 3, dtype=torch.int64)
    ).tolist() == [[1, 2, 3], [0, 0, 0]]


def test_any_true() -> None:
    assert logic.any_true(torch.tensor([False, True]))
    assert not logic.any_true(torch.tensor([False]))
    assert not logic.any_true(torch.zeros(0, dtype=torch.bool))
    assert logic.any_true(torch.tensor(True))


def test_all_true() -> None:
    assert logic.all_true(torch.tensor([True, True]))
    assert not logic.all_true(torch.tensor([True, False]))
    assert logic.all_true(torch.zeros(0, dtype=torch.bool))
    assert not logic.all_true(torch.tensor(False))
