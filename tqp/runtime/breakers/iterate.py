"""WITH RECURSIVE: pipelines that run again and again, each time on the rows that they gave before, until they give none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tqp.runtime.frame import Frame, concatenate_frames
from tqp.runtime.pipeline import Maker, Pipeline, State


@dataclass(eq=False)
class Iterate(Maker):
    """The frame `first`, and those that `body` leaves in `step`, one after the other.

    Before each iteration the last rows are in `working`, and all so far in `so_far` (None: nobody reads them). What depends on
    neither is computed in the first iteration only: which slots do, shows then. Interrupts and memory are checked where
    pipelines run.
    """

    slot: str
    first: str
    step: str
    working: str
    so_far: str | None
    body: Sequence[Pipeline]

    @property
    def reads(self) -> Sequence[str]:
        return [self.first, *{slot for pipeline in self.body for slot in pipeline.reads}]

    def finish(self, state: Any, program_state: State) -> State:
        workers = program_state["workers"]
        frames: list[Frame] = [program_state[self.first]]
        domains = {
            pipeline.source_slot: source
            for pipeline in self.body
            if not isinstance(source := program_state.get(pipeline.source_slot), Frame | None)
        }
        changing: set[str] = {self.working} if self.so_far is None else {self.working, self.so_far}
        pipelines: Sequence[Pipeline] = self.body
        is_first = True
        while True:
            program_state[self.working] = frames[-1]
            if self.so_far is not None:
                frames = [concatenate_frames(frames, workers.map)]
                program_state[self.so_far] = frames[0]
            repeated: list[Pipeline] = []
            for pipeline in pipelines:
                domain = domains.get(pipeline.source_slot)
                if domain is not None:  # a dictionary, perhaps of this iteration
                    program_state[pipeline.source_slot] = domain.frame(program_state, program_state["device"])
                made = workers.run(pipeline, program_state)
                program_state.update(made)
                if is_first and self._changes(pipeline, domain, changing):
                    changing.update(made)
                    repeated.append(pipeline)
            pipelines = repeated if is_first else pipelines
            is_first = False
            found: Frame = program_state[self.step]
            if found.num_rows == 0 or self.step not in changing:
                break
            frames.append(found)
        return {self.slot: concatenate_frames(frames, workers.map)}

    def _changes(self, pipeline: Pipeline, domain: Any, changing: Collection[str]) -> bool:
        pool = None if domain is None else domain.domain.pool
        reads = pipeline.reads if pool is None else {*pipeline.reads, pool.slot}
        return not reads.isdisjoint(changing)

    def describe(self) -> str:
        return f"repeat with {self.step} as {self.working} until it has no rows; all of them into {self.slot}"
