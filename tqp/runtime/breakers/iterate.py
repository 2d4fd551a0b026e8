"""WITH RECURSIVE: pipelines that run again and again, each time on the rows that they gave before, until they give none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tqp.runtime.breakers.seen_rows import SeenRows
from tqp.runtime.frame import Frame, concatenate_frames, take_frame
from tqp.runtime.pipeline import Maker, Pipeline, State


@dataclass(eq=False)
class Iterate(Maker):
    """The first `num_columns` columns of the frame `first`, and of those that `body` leaves in `step`, one after the other.

    Before each iteration the last rows are in `working`. What does not depend on them is computed in the first iteration only:
    which slots do, shows then. With `keys`, columns of the frames, rows that equal earlier ones in all of them are left out.
    Interrupts and memory are checked where pipelines run.
    """

    slot: str
    first: str
    step: str
    working: str
    num_columns: int
    keys: Sequence[int] | None
    body: Sequence[Pipeline]

    @property
    def reads(self) -> Sequence[str]:
        return [self.first, *{slot for pipeline in self.body for slot in pipeline.reads}]

    def finish(self, state: Any, program_state: State) -> State:
        workers = program_state["workers"]
        seen = None if self.keys is None else SeenRows(program_state["device"])
        frames = [self._new_rows(program_state[self.first], seen)]
        domains = {
            pipeline.source_slot: source
            for pipeline in self.body
            if not isinstance(source := program_state.get(pipeline.source_slot), Frame | None)
        }
        changing = {self.working}
        pipelines: Sequence[Pipeline] = self.body
        is_first = True
        while True:
            program_state[self.working] = frames[-1]
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
            if self.step not in changing and seen is None:
                break
            found = self._new_rows(program_state[self.step], seen)
            if found.num_rows == 0:
                break
            frames.append(found)
        return {self.slot: concatenate_frames(frames, workers.map)}

    def _new_rows(self, frame: Frame, seen: SeenRows | None) -> Frame:
        columns = Frame(frame.num_rows, frame.columns[: self.num_columns])
        if seen is None or self.keys is None or not frame.num_rows:
            return columns
        new = seen.add([frame.columns[key] for key in self.keys])
        return columns if new.shape[0] == frame.num_rows else take_frame(columns, new)

    def _changes(self, pipeline: Pipeline, domain: Any, changing: Collection[str]) -> bool:
        pool = None if domain is None else domain.domain.pool
        reads = pipeline.reads if pool is None else {*pipeline.reads, pool.slot}
        return not reads.isdisjoint(changing)

    def describe(self) -> str:
        return f"repeat with {self.step} as {self.working} until it has no rows; all of them into {self.slot}"
