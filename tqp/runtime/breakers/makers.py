"""Frames that are made when the program runs, not of batches: UNION ALL, and the rows of range() and generate_series()."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tqp.core.process.memory_budget import reserve
from tqp.runtime.frame import Frame, FrameColumn, concatenate_frames
from tqp.runtime.pipeline import Maker, State


@dataclass(eq=False)
class Concatenate(Maker):
    """Joins the frames in `sources`, which have the same columns in the same form."""

    slot: str
    sources: Sequence[str]

    @property
    def reads(self) -> Sequence[str]:
        return self.sources

    def finish(self, state: Any, program_state: State) -> State:
        frames = [program_state[source] for source in self.sources]
        return {self.slot: concatenate_frames(frames, program_state["workers"].map)}

    def describe(self) -> str:
        return f"concatenate {', '.join(self.sources)} into {self.slot}"


@dataclass(eq=False)
class MakeSeries(Maker):
    """`rows` integers from `start` by `step`, as `dtype`."""

    slot: str
    start: int
    step: int
    rows: int
    dtype: torch.dtype

    def finish(self, state: Any, program_state: State) -> State:
        reserve(2 * 8 * self.rows)
        offsets = torch.arange(self.rows, device=program_state["device"])
        values = (
            offsets.mul_(self.step).add_(self.start).to(self.dtype)
        )  # a product may wrap; the sum then does back
        return {self.slot: Frame(self.rows, (FrameColumn(values, None),))}

    def describe(self) -> str:
        return f"make {self.rows} integers from {self.start} by {self.step} into {self.slot}"
