"""Scoring: columns of a query in, what a model computes of each row out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import torch
from torch import Tensor, nn

from tqp.core.errors import Error, ExecutionError
from tqp.ml.layers import Affine

#: Bytes of features, or of the widest layer's outputs, that are made at a time on the CPU, so that they are still in the
#: cache when the next step reads them. 600,000 rows through layers of 64 and 32: 132 ms in blocks of 16 MB, 80 of 2 MB.
_BLOCK_BYTES = 2 << 20
#: Rows of a block at least and at most.
_FEWEST_ROWS, _MOST_ROWS = 1 << 10, 1 << 16

#: Values [n] or [n, size] and, where some are NULL, which are not.
InputColumn = tuple[Tensor, Tensor | None]


class Scorer(nn.Module):
    """A model's `body` on columns: features [n, f] of one float dtype to raw scores [n, k]."""

    def __init__(
        self,
        body: nn.Module,
        sizes: Sequence[int],
        dtype: torch.dtype,
        scores: int,
        *,
        bf16: bool = False,
    ) -> None:
        """`sizes`: how many features each column is: 1, or the length of its arrays. `scores`: how many a row gets. `bf16`:
        matrix products of float32 are made in bfloat16, which recent processors multiply several times as fast."""
        super().__init__()
        self.body = body
        self.scores = scores
        self.sizes = tuple(sizes)
        self.dtype = dtype
        self.bf16 = bf16
        #: By its inputs: true of modules and functions of a user, which may do anything when they are called.
        self.is_differentiable = False
        layers = [layer.weight for layer in body.modules() if isinstance(layer, (Affine, nn.Linear))]
        self._may_write = not all(map(_reads_only, body.modules()))
        self._width = max([sum(self.sizes), *(size for weight in layers for size in weight.shape)])

    def forward(self, columns: Sequence[InputColumn], num_rows: int) -> Tensor:
        """Raw scores [n, k]; NULL is NaN to the model."""
        device = columns[0][0].device
        step = self._rows_at_once(device)
        if num_rows == 0 and not torch.is_grad_enabled():
            return torch.empty(
                (0, self.scores), dtype=self.dtype, device=device
            )  # some bodies fail without rows
        if num_rows <= step:
            return self._score(columns)
        result: Tensor | None = None
        for start in range(0, num_rows, step):
            stop = min(start + step, num_rows)
            block = self._score([_cut(column, start, stop) for column in columns])
            if result is None:
                result = _for_all(block, num_rows)
            result[start:stop] = block
        assert result is not None
        return result

    def features(self, columns: Sequence[InputColumn]) -> Tensor:
        """The columns side by side: [n, f], each of them contiguous in memory, or each row where there are arrays."""
        first = columns[0][0]
        if len(columns) == 1 and first.dim() == 2 and first.dtype is self.dtype and columns[0][1] is None:
            return first
        shape = (sum(self.sizes), first.shape[0])
        if max(self.sizes) > 1:
            made = torch.empty(shape[::-1], dtype=self.dtype, device=first.device).T
        else:
            made = torch.empty(shape, dtype=self.dtype, device=first.device)
        place = 0
        for (values, validity), size in zip(columns, self.sizes, strict=True):
            into = made[place] if values.dim() == 1 else made[place : place + size].T
            into.copy_(values)
            if validity is not None:
                into[~validity] = torch.nan
            place += size
        return made.T

    def _score(self, columns: Sequence[InputColumn]) -> Tensor:
        features = self.features(columns)
        raw = self._called_with_care(features, columns) if self.is_differentiable else self._called(features)
        if not raw.is_floating_point():
            raw = raw.double()
        # Squeezed scores of one row have lost that dimension too.
        return raw if raw.dim() == 2 else raw.reshape(-1, self.scores)

    def _called(self, features: Tensor) -> Tensor:
        if not self.bf16:
            raw: Tensor = self.body(features)
            return raw
        with torch.autocast(features.device.type, torch.bfloat16):
            raw = self.body(features)
        return raw.to(self.dtype)

    def _called_with_care(self, features: Tensor, columns: Sequence[InputColumn]) -> Tensor:
        """As `_called`, of code that a user wrote: it may write into its input, raise, or give something else than at first."""
        if self._may_write and features is columns[0][0]:  # of the table, or of an earlier result
            features = features.clone()
        num_rows = features.shape[0]
        try:
            raw: object = self._called(features)
        except (Error, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise ExecutionError(
                f"the model raises for {num_rows} rows of {features.shape[1]} features: {type(error).__name__}: {error}"
            ) from error
        # One score a row, and the scores of one row, may come squeezed.
        expected: set[tuple[int, ...]] = {(num_rows, self.scores)}
        if self.scores == 1:
            expected.add((num_rows,))
        if num_rows == 1:
            expected.update({(self.scores,), ()} if self.scores == 1 else {(self.scores,)})
        if not is_dense(raw) or tuple(raw.shape) not in expected:
            raise ExecutionError(
                f"the model gives {kind_of_scores(raw)} for {num_rows} rows; when it was registered it gave {self.scores} for "
                "each row"
            )
        return raw

    def _rows_at_once(self, device: torch.device) -> int:
        # With gradients there is one step to go back, whatever the module does.
        if device.type != "cpu" or torch.is_grad_enabled():
            return 1 << 62
        return min(_MOST_ROWS, max(_FEWEST_ROWS, _BLOCK_BYTES // (self._width * self.dtype.itemsize)))


def is_dense(given: object) -> TypeGuard[Tensor]:
    """Whether what a user's model gave is a tensor whose values can be read as numbers; shapes are not looked at."""
    return (
        isinstance(given, Tensor)
        and given.layout is torch.strided
        and not (given.is_nested or given.is_meta or given.is_quantized or given.is_complex())
    )


def kind_of_scores(given: object) -> str:
    """What a user's model gave, for messages.

    >>> kind_of_scores(torch.zeros(2, 3)), kind_of_scores(torch.zeros(2).to_sparse()), kind_of_scores([1.0])
    ('a tensor (2, 3)', 'a tensor (2,) of torch.sparse_coo', 'list')
    """
    if not isinstance(given, Tensor):
        return type(given).__qualname__
    if given.is_nested:
        return "a nested tensor"
    text = f"a tensor {tuple(given.shape)}"
    if is_dense(given):
        return text
    if given.is_meta:
        return f"{text} on the device meta"
    return f"{text} of {given.dtype if given.layout is torch.strided else given.layout}"


def _reads_only(module: nn.Module) -> bool:
    """Whether a module is known to leave its input as it is: torch's own layers do, unless told to write there."""
    return type(module).__module__.startswith("torch.nn.") and not getattr(module, "inplace", False)


def _for_all(block: Tensor, num_rows: int) -> Tensor:
    """Room for the scores of all rows, laid out as a block's: by column or by row."""
    if block.stride(0) == 1:
        return block.new_empty((block.shape[1], num_rows)).T
    return block.new_empty((num_rows, block.shape[1]))


def _cut(column: InputColumn, start: int, stop: int) -> InputColumn:
    values, validity = column
    return values[start:stop], None if validity is None else validity[start:stop]
