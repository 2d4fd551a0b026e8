"""UNION ALL: frames that earlier pipelines left, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tqp.runtime.frame import joined_frames
from tqp.runtime.pipeline import Maker, State


class Concatenate(Maker):
    """Joins the frames in `sources`, which have the same columns in the same form."""

    def __init__(self, slot: str, sources: Sequence[str]) -> None:
        self.slot, self.sources = slot, tuple(sources)
        self.reads = self.sources
        self.in_parts = False  # may the frames stay as they are?

    def finish(self, state: Any, program_state: State) -> State:
        frames = [program_state[source] for source in self.sources]
        return {self.slot: joined_frames(frames, program_state["workers"].map, self.in_parts)}

    def describe(self) -> str:
        how = ", in parts" if self.in_parts else ""
        return f"concatenate {', '.join(self.sources)} into {self.slot}{how}"
