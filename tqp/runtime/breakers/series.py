"""The rows of range() and generate_series(), made when the program runs."""

from __future__ import annotations

from typing import Any

import torch

from tqp.core.memory import reserve
from tqp.runtime.frame import Frame, FrameColumn
from tqp.runtime.pipeline import Maker, State


class MakeSeries(Maker):
    """`rows` integers from `start` by `step`, as `dtype`."""

    def __init__(self, slot: str, start: int, step: int, rows: int, dtype: torch.dtype) -> None:
        self.slot = slot
        self.start, self.step, self.rows = start, step, rows
        self.dtype = dtype

    def finish(self, state: Any, program_state: State) -> State:
        reserve(2 * 8 * self.rows)
        offsets = torch.arange(self.rows, device=program_state["device"])
        values = (
            offsets.mul_(self.step).add_(self.start).to(self.dtype)
        )  # a product may wrap; the sum then does back
        return {self.slot: Frame(self.rows, (FrameColumn(values, None),))}

    def describe(self) -> str:
        return f"make {self.rows} integers from {self.start} by {self.step} into {self.slot}"
