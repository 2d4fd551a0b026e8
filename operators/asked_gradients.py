"""Gradients of the rows that somebody asks for, and of no others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


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
