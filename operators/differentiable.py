"""Kernels that autograd follows: for a program that carries gradients, in place of those that work on memory.

What is not named here has no gradient, or none that is of use: rounding, comparisons, keys, strings.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tqp.operators.groups import aggregates
from tqp.operators.numbers import elementwise, logic
from tqp.operators.numbers.comparisons import float_less
from tqp.operators.rows import batches
from tqp.operators.rows import selection as rows
from tqp.operators.rows.domain_tables import look_up

#: Values and their validity.
Pair = tuple[Tensor, Tensor | None]


def asked_only(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function row by row, with a gradient of zero in rows whose value nobody asks for.

    A row that CASE or a NULL leaves out is computed like the others. If its derivative is infinite or NaN, as that of x / 0,
    its share in the gradient would be 0 times that, which is NaN.
    """

    @functools.wraps(function)
    def guarded(*arguments: Any, **keywords: Any) -> Tensor:
        tensors = [each for each in arguments if isinstance(each, Tensor)]
        if not torch.is_grad_enabled() or not any(each.requires_grad for each in tensors):
            return function(*arguments, **keywords)
        shape = torch.broadcast_shapes(*(each.shape for each in tensors))  # type: ignore[no-untyped-call]
        asked: list[Tensor] = []

        def note(gradient: Tensor | None) -> None:
            if gradient is not None:
                asked[:] = [gradient != 0]

        def leave_out(gradient: Tensor | None) -> Tensor | None:
            if gradient is None:  # nothing depends on any row
                return None
            mask = asked[0].view(*asked[0].shape, *(1 for _ in gradient.shape[asked[0].dim() :]))
            return torch.where(mask, gradient, 0.0)

        given = [*arguments]
        for place, each in enumerate(arguments):
            if isinstance(each, Tensor) and each.requires_grad:
                given[place] = each.expand(shape)  # a row of its own for each, before rows are summed up
                given[place].register_hook(leave_out)
        result = function(*given, **keywords)
        result.register_hook(note)  # type: ignore[no-untyped-call]
        return result

    return guarded


def choose(condition: Tensor, value: Any, otherwise: Any, dtype: torch.dtype) -> Tensor:
    """Per row `value` where the condition (bool [n]) is true, else `otherwise`: tensors or Python numbers."""
    value, otherwise = (
        each if isinstance(each, Tensor) else torch.tensor(each, dtype=dtype, device=condition.device)
        for each in (value, otherwise)
    )
    return torch.where(condition, value, otherwise)


def put_where(others: Tensor | None, condition: Tensor, value: Any, dtype: torch.dtype) -> Tensor:
    """`value` where the condition is true, elsewhere `others` (None: 0)."""
    return choose(condition, value, 0 if others is None else others, dtype)


def choose_rows(conditions: Sequence[Tensor], values: Sequence[Any], default: Any) -> Tensor:
    """Per row of [n, ...] the value of the first true condition, else the default."""
    result = default
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        shape = (-1, *(1 for _ in value.shape[1:]))
        result = torch.where(condition.view(shape), value, result)
    assert isinstance(result, Tensor)
    return result


def _extreme(*pairs: Pair, is_greatest: bool) -> Pair:
    """The gradient goes to the value that is taken, to the first of equal ones."""
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


def greatest(*pairs: Pair) -> Pair:
    """The greatest of the values that are not NULL."""
    return _extreme(*pairs, is_greatest=True)


def least(*pairs: Pair) -> Pair:
    """The least of the values that are not NULL."""
    return _extreme(*pairs, is_greatest=False)


def _of_pairs(measure: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """A measure of rows, [n, size] each, for matrices and row numbers as in `vectors`."""

    def of_pairs(
        left: Tensor, right: Tensor, left_rows: Tensor | None = None, right_rows: Tensor | None = None
    ) -> Tensor:
        if left_rows is not None:
            left = rows.take_padded(left, left_rows)
        if right_rows is not None:
            right = rows.take_padded(right, right_rows)
        return asked_only(measure)(left, right)

    return of_pairs


def _dot(left: Tensor, right: Tensor) -> Tensor:
    return (left * right).sum(1)


def _length(matrix: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(matrix, dim=1)
    return length


def _cosine(left: Tensor, right: Tensor) -> Tensor:
    return _dot(left, right) / (_length(left) * _length(right))


def sum_by_group(values: Tensor, ids: Tensor, count: int, validity: Tensor | None) -> Tensor:
    """The sums of the valid values of each group, in the dtype of the values: [count]."""
    if validity is not None:
        values = torch.where(validity, values, 0.0)
    return values.new_zeros(count).index_add(0, ids.to(torch.int64), values)


def extreme_by_group(
    values: Tensor, ids: Tensor, count: int, validity: Tensor | None, *, is_greatest: bool
) -> Tensor:
    """The least or greatest valid value of each group [count]; the gradient goes to the first row that has it."""
    reduce = aggregates.max_by_group if is_greatest else aggregates.min_by_group
    fixed = values.detach()
    best = reduce(fixed, ids, count, validity).index_select(0, ids)
    is_best = (fixed == best) | (fixed.isnan() & best.isnan())
    if validity is not None:
        is_best &= validity
    return rows.take_padded(values, aggregates.first_by_group(ids, count, is_best))


#: Functions through which gradients pass as they are.
NATIVE: frozenset[Any] = frozenset(
    (
        operator.add,
        operator.sub,
        operator.neg,
        operator.getitem,
        torch.index_select,
        rows.take,
        rows.take_padded,
        rows.take_selected,
        batches.repeat,
        look_up,
    )
)
#: Functions that others take the place of.
REPLACED: dict[Any, Callable[..., Any]] = {
    operator.mul: asked_only(operator.mul),
    operator.truediv: asked_only(operator.truediv),
    elementwise.square_root: asked_only(torch.sqrt),
    elementwise.choose: choose,
    elementwise.put_where: put_where,
    logic.choose: choose_rows,
}
#: Functions of SQL that are differentiable as they are computed, where they are.
NATIVE_FUNCTIONS: frozenset[str] = frozenset(
    "divide abs log power sin cos tan asin acos atan atan2 sinh cosh tanh degrees radians array_value".split()
)
#: Functions of SQL that others take the place of.
REPLACED_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": asked_only(torch.sqrt),
    "exp": asked_only(torch.exp),
    "ln": asked_only(torch.log),
    "log10": asked_only(torch.log10),
    "log2": asked_only(torch.log2),
    "round_to_float": lambda values, validity=None: values.to(torch.float32),
    "greatest": greatest,
    "least": least,
    "array_inner_product": _of_pairs(_dot),
    "array_negative_inner_product": _of_pairs(lambda left, right: -_dot(left, right)),
    "array_cosine_similarity": _of_pairs(_cosine),
    "array_cosine_distance": _of_pairs(lambda left, right: 1 - _cosine(left, right)),
    "array_distance": _of_pairs(lambda left, right: _length(left - right)),
}
