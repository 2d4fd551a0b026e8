"""Forms of kernels that autograd follows, for programs that carry gradients.

What has no such form has no gradient, or none that is of use: rounding, comparisons, keys, strings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tqp.operators.asked_gradients import asked_only
from tqp.operators.numbers.comparisons import float_less
from tqp.operators.rows.selection import take_padded

#: Values and their validity.
Pair = tuple[Tensor, Tensor | None]


def choose_rows(conditions: Sequence[Tensor], values: Sequence[Any], default: Any) -> Tensor:
    """Per row of [n, ...] the value of the first true condition, else the default."""
    result = default
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        shape = (-1, *(1 for _ in value.shape[1:]))
        result = torch.where(condition.view(shape), value, result)
    assert isinstance(result, Tensor)
    return result


def extreme(*pairs: Pair, is_greatest: bool) -> Pair:
    """The greatest, or least, of the values that are not NULL. The gradient goes to the value that is taken, to the first of equal ones."""
    values, validity = pairs[0]
    for candidates, other_validity in pairs[1:]:
        ordered = (values, candidates) if is_greatest else (candidates, values)
        is_better = float_less(*(each.detach() for each in ordered))
        if validity is not None:
            is_better = is_better | ~validity
        if other_validity is not None:
            is_better = is_better & other_validity
        values = torch.where(is_better, candidates, values)
        validity = None if validity is None or other_validity is None else validity | other_validity
    return values, validity


def of_pairs(measure: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """A measure of rows, [n, size] each, for matrices and row numbers as in `vectors`."""

    def with_rows(
        left: Tensor, right: Tensor, left_rows: Tensor | None = None, right_rows: Tensor | None = None
    ) -> Tensor:
        if left_rows is not None:
            left = take_padded(left, left_rows)
        if right_rows is not None:
            right = take_padded(right, right_rows)
        return asked_only(measure)(left, right)

    return with_rows


def dot(left: Tensor, right: Tensor) -> Tensor:
    """The inner product of each two rows."""
    return (left * right).sum(1)


def length(matrix: Tensor) -> Tensor:
    """Of each row."""
    result: Tensor = torch.linalg.vector_norm(matrix, dim=1)
    return result


def cosine(left: Tensor, right: Tensor) -> Tensor:
    """Of the angle of each two rows."""
    return dot(left, right) / (length(left) * length(right))
