"""A comparison of a probability as one of the score behind it, on which it is true for the same rows."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tqp.core.datatypes import DOUBLE
from tqp.core.models import ModelOutput
from tqp.ml.layers import Probabilities

if TYPE_CHECKING:
    from tqp.ml.model import Model

#: The kind of output that a comparison of scores reads: what the body gives, as it is.
RAW = "raw"

_HOLDS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "greater": (operator.gt, "greater_equal"),
    "greater_equal": (operator.ge, "greater_equal"),
    "less": (operator.lt, "less"),
    "less_equal": (operator.le, "less"),
}
#: Scores on either side of the threshold on which the comparisons must agree: kernels may round a score in two ways.
_AROUND = 64


def score_threshold(
    model: Model, output: ModelOutput, comparison: str, value: float
) -> tuple[ModelOutput, str, float] | None:
    """The score, the comparison and the bound that stand for `output comparison value`; None if there is no such bound.

    `comparison`: less, less_equal, greater or greater_equal. The bound is found by bisection over all numbers that a
    score can be, with the model's own function from scores to probabilities; NaN compares as the largest number.
    """
    converted = model.converted
    transform = converted.outputs.get(output.kind)
    if not isinstance(transform, Probabilities) or output.column != 1 or comparison not in _HOLDS:
        return None
    if converted.columns[RAW] != 1 or np.isnan(value):
        return None
    compare, of_scores = _HOLDS[comparison]
    upward = of_scores == "greater_equal"  # true from the bound on; else up to it
    dtype = model.scorer.dtype
    head = model.head(output)
    device = next(iter(model.scorer.buffers()), torch.empty(0)).device

    def above(places: Tensor) -> Tensor:
        """Which scores lie at the bound or above it: places in the order of numbers."""
        with torch.no_grad():
            probabilities = head(_numbers(places, dtype).to(device)[:, None])
        held: Tensor = compare(probabilities, value).cpu()
        return held if upward else ~held

    first, last = low, high = _places(torch.tensor([-torch.inf, torch.inf], dtype=dtype)).tolist()
    ends = above(torch.tensor([low, high]))
    if bool(ends[0]) or not bool(ends[1]):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if bool(above(torch.tensor([middle]))[0]):
            high = middle
        else:
            low = middle
    near = torch.arange(high - _AROUND, high + _AROUND)
    near = near[(near >= first) & (near <= last)]
    wanted = near >= high
    one_by_one = torch.cat([above(place[None]) for place in near])
    if not (torch.equal(above(near), wanted) and torch.equal(one_by_one, wanted)):
        return None
    bound = float(_numbers(torch.tensor([high]), dtype).double())
    return ModelOutput(RAW, DOUBLE, 0), of_scores, bound


def _integer(dtype: torch.dtype) -> torch.dtype:
    return torch.int64 if dtype is torch.float64 else torch.int32


def _places(numbers: Tensor) -> Tensor:
    """Floats as integers in the same order: those of negative numbers count down from zero."""
    bits = numbers.view(_integer(numbers.dtype)).long()
    smallest = torch.iinfo(_integer(numbers.dtype)).min
    return torch.where(bits < 0, smallest - bits, bits)


def _numbers(places: Tensor, dtype: torch.dtype) -> Tensor:
    """The floats at places in their order."""
    smallest = torch.iinfo(_integer(dtype)).min
    return torch.where(places < 0, smallest - places, places).to(_integer(dtype)).view(dtype)
