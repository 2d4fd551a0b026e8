"""Three-valued logic and CASE: pure functions on (values, validity) pairs.

A validity is bool [n], True = valid, or None for no NULLs; values under NULL are arbitrary. On bool tensors `a > b` is
`a AND NOT b` and `a >= b` is `a OR NOT b`, each in one pass instead of two.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tqp.operators.numbers import elementwise


def combine_validity(*validities: Tensor | None) -> Tensor | None:
    """The rows valid in all; None if all are None. A validity given twice counts once."""
    result: Tensor | None = None
    seen: list[Tensor] = []
    for validity in validities:
        if validity is None or any(validity is other for other in seen):
            continue
        seen.append(validity)
        result = validity if result is None else result & validity
    return result


def kleene_and(
    a: Tensor, a_validity: Tensor | None, b: Tensor, b_validity: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """a AND b, bool [n]: FALSE wins over NULL."""
    values = a & b
    if a_validity is None and b_validity is None:
        return values, None
    if a_validity is None:
        assert b_validity is not None
        return values, b_validity >= a
    if b_validity is None:
        return values, a_validity >= b
    return values, (a_validity & b_validity) | (a_validity > a) | (b_validity > b)


def kleene_or(
    a: Tensor, a_validity: Tensor | None, b: Tensor, b_validity: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """a OR b, bool [n]: TRUE wins over NULL."""
    values = a | b
    if a_validity is None and b_validity is None:
        return values, None
    if a_validity is None:
        assert b_validity is not None
        return values, b_validity | a
    if b_validity is None:
        return values, a_validity | b
    return values, (a_validity & b_validity) | (a_validity & a) | (b_validity & b)


Choice = Tensor | int | float | bool


def choose(conditions: Sequence[Tensor], values: Sequence[Choice], default: Choice) -> Tensor:
    """CASE: per row the value of the first true condition, else the default.

    `conditions`: bool [n], NULL already counted as false. `values` and `default` share a dtype: tensors [n], [n, 2],
    [n, 3] (or with one row, or 0-d), or Python scalars. Result [n], or [n, k].
    """
    result = default
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        result = _choose(condition, value, result)
    if not isinstance(result, Tensor):
        raise TypeError("choose needs at least one condition")
    return result


def any_true(condition: Tensor) -> bool:
    """Whether any element of a bool tensor of any shape is true; reads one value back from the device."""
    # A maximum over bytes runs at memory speed on the CPU; `any` is 20 times slower.
    return condition.numel() > 0 and bool(condition.view(torch.uint8).max())


def all_true(condition: Tensor) -> bool:
    """Whether all elements of a bool tensor of any shape are true; reads one value back from the device."""
    return condition.numel() == 0 or bool(condition.view(torch.uint8).min())  # as `any_true`


def spread(mask: Tensor, rows: Tensor, num_rows: int) -> Tensor:
    """bool [num_rows]: at `rows` (int64 [m]) what the mask [m] says, else false."""
    result = torch.zeros(num_rows, dtype=torch.bool, device=rows.device)
    return result.index_copy_(0, rows, mask.expand(rows.shape[0]))


def _choose(condition: Tensor, value: Choice, otherwise: Choice) -> Tensor:
    if max(_dimensions(value), _dimensions(otherwise)) > condition.dim():
        condition = condition.unsqueeze(1)
    if not isinstance(value, Tensor) and not isinstance(otherwise, Tensor):
        return torch.where(condition, value, otherwise)
    dtype = value.dtype if isinstance(value, Tensor) else otherwise.dtype  # type: ignore[union-attr]
    if dtype == torch.bool:
        return (condition & value) | (condition < otherwise)
    if condition.dim() == 1:
        return elementwise.choose(condition, value, otherwise, dtype)
    return torch.where(condition, value, otherwise)


def _dimensions(choice: Choice) -> int:
    return choice.dim() if isinstance(choice, Tensor) else 0
