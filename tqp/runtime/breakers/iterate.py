"""WITH RECURSIVE: pipelines that run again and again, each time on the rows that they gave before, until they give none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tqp.runtime.breakers.kept_rows import Kept
from tqp.runtime.frame import Frame
from tqp.runtime.pipeline import Maker, Pipeline, State


@dataclass(eq=False)
class Iterate(Maker):
    """The rows of the frame `first`, and of those that `body` leaves in `step`, one after the other, as `kept` says.

    Before each iteration the last rows are in `working`, and all rows so far in `whole`, if something reads it. What does not
    depend on them is computed in the first iteration only: which slots do, shows then. Interrupts and memory are checked where
    pipelines run. It ends once there are `most_rows` rows, if that is a number: nobody asks for more.
    """

    slot: str
    first: str
    step: str
    working: str
    whole: str
    kept: Kept
    body: Sequence[Pipeline]
    most_rows: int | None = None

    @property
    def reads(self) -> Sequence[str]:
        return [self.first, *self._read_by_body]

    @property
    def _read_by_body(self) -> Collection[str]:
        return {slot for pipeline in self.body for slot in pipeline.reads}

    def finish(self, state: Any, program_state: State) -> State:
        workers = program_state["workers"]
        rows = self.kept.rows(program_state["device"], workers.map)
        working = rows.add(program_state[self.first])
        num_rows = working.num_rows
        reads_whole = self.whole in self._read_by_body
        domains = {
            pipeline.source_slot: source
            for pipeline in self.body
            if not isinstance(source := program_state.get(pipeline.source_slot), Frame | None)
        }
        changing = {self.working, self.whole}
        pipelines: Sequence[Pipeline] = self.body
        is_first = True
        while self.most_rows is None or num_rows < self.most_rows:
            program_state[self.working] = working
            if reads_whole:
                program_state[self.whole] = rows.whole()
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
            if self.step not in changing and not self.kept.distinct:
                break
            working = rows.add(program_state[self.step])
            num_rows += working.num_rows
            if working.num_rows == 0:
                break
        return {self.slot: rows.whole()}

    def _changes(self, pipeline: Pipeline, domain: Any, changing: Collection[str]) -> bool:
        pool = None if domain is None else domain.domain.pool
        reads = pipeline.reads if pool is None else {*pipeline.reads, pool.slot}
        return not reads.isdisjoint(changing)

    def describe(self) -> str:
        enough = "" if self.most_rows is None else f", or there are {self.most_rows}"
        return f"repeat with {self.step} as {self.working} until it has no rows{enough}; all of them into {self.slot}"
