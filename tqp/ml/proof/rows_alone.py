"""Whether a torch module scores each row by itself: queries cut rows into batches, and leave some out."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from tqp.core.errors import BindError

_ROWS = 6


def check_rows_alone(body: nn.Module, zeros: Tensor) -> None:
    """Raise BindError if what the module gives for a row depends on the other rows, or differs from call to call.

    `zeros`: rows [2, f] that the module takes. It is tried on a few others; those for which it raises tell nothing.
    """
    for features in _trials(zeros):
        given = _given(body, features)
        if given is None:
            continue
        together, again, alone = given
        if not _agree(together, again):
            raise BindError(
                "the model gives something else for the same rows each time: make it deterministic, for example with a fixed "
                "seed or without what is random"
            )
        if not _agree(together.reshape(_ROWS, -1), alone):
            raise BindError(
                "what the model gives for a row depends on the other rows (as with features - features.mean(0)), but queries "
                "score rows in batches; use constants found beforehand in place of what is computed over the rows"
            )


def _given(body: nn.Module, features: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    """What the module gives for the rows together, twice, and [_ROWS, k] for one by one; None if it raises for them."""
    try:
        with torch.no_grad():
            alone = [body(features[row : row + 1].clone()).reshape(1, -1) for row in range(_ROWS)]
            return body(features.clone()), body(features.clone()), torch.cat(alone)
    except Exception:  # noqa: BLE001 - whatever a user's code raises
        return None


def _trials(zeros: Tensor) -> Iterator[Tensor]:
    """Zeros and ones, which are positions of tables too; and ordinary numbers. Each [_ROWS, f], no two rows the same."""
    generator = torch.Generator().manual_seed(0)
    shape = (_ROWS, zeros.shape[1])
    bits = torch.arange(_ROWS)[:, None] >> torch.arange(shape[1]) % 3 & 1
    yield bits.to(zeros)
    yield (torch.randn(shape, generator=generator, dtype=torch.float64) * 3).to(zeros)


def _agree(first: Tensor, second: Tensor) -> bool:
    """Equal but for rounding, which may depend on the number of rows."""
    tolerance = 1e-2 if first.dtype in (torch.float16, torch.bfloat16) else 1e-4
    return first.shape == second.shape and torch.allclose(
        first.double(), second.double(), rtol=tolerance, atol=tolerance, equal_nan=True
    )
