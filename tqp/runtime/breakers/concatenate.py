"""UNION ALL: frames that earlier pipelines left, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tqp.runtime.frame import concatenate_frames
from tqp.runtime.pipeline import State


class Concatenate:
    """Joins the frames in `sources`, which have the same columns in the same form."""

    ordered = True
    fixed_batches = False

    def __init__(self, slot: str, sources: Sequence[str]) -> None:
        self.slot, self.sources = slot, tuple(sources)

    def initial(self, program_state: State) -> None:
        return None

    def partial(self, outputs: Sequence[Any], state: Any) -> Any:
        return None

    def merge(self, states: list[Any]) -> Any:
        return None

    def finish(self, state: Any, program_state: State) -> State:
        frames = [program_state[source] for source in self.sources]
        return {self.slot: concatenate_frames(frames, program_state["workers"].map)}

    def describe(self) -> str:
        return f"concatenate {', '.join(self.sources)} into {self.slot}"
