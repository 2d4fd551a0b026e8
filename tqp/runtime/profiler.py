"""EXPLAIN ANALYZE: runs a program node by node and adds up time, rows and bytes for each operator of its plan."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from tqp.data.column import Table
from tqp.runtime.executor import Executor, Workers
from tqp.runtime.frame import Frame, object_bytes
from tqp.runtime.pipeline import Pipeline, State
from tqp.runtime.program import TensorProgram


@dataclass
class OperatorProfile:
    """What one operator of the physical plan did. Times add up over workers."""

    seconds: float = 0.0
    rows: int | None = None
    bytes: int = 0

    def __str__(self) -> str:
        rows = "" if self.rows is None else f"{self.rows:,} rows, "
        return f"{rows}{self.seconds * 1e3:.2f} ms, {_size(self.bytes)}"


@dataclass
class ProgramProfile:
    """`operators` by the id() of the physical node; `seconds` is the wall time of the whole run."""

    operators: dict[int, OperatorProfile]
    seconds: float


class _Interpreter(fx.Interpreter):
    """Runs one pipeline's graph on one batch, timing every node."""

    def __init__(self, graph: fx.GraphModule, profile: _Recorder, marks: dict[fx.Node, list[int]]) -> None:
        super().__init__(graph)
        self._profile, self._marks = profile, marks

    def run_node(self, node: fx.Node) -> Any:
        begin = time.perf_counter()
        result = super().run_node(node)
        self._profile.add(
            node.meta.get("operator"),
            time.perf_counter() - begin,
            object_bytes(result) if node.op != "placeholder" else 0,
        )
        for operator in self._marks.get(node, ()):
            rows = result
            if not isinstance(rows, int):
                rows = int(rows.sum()) if rows.dtype is torch.bool else rows.shape[0]
            self._profile.add_rows(operator, rows)
        return result


class _Recorder:
    def __init__(self) -> None:
        self.operators: dict[int, OperatorProfile] = defaultdict(OperatorProfile)
        self._lock = threading.Lock()

    def add(self, operator: int | None, seconds: float, size: int) -> None:
        if operator is not None:
            with self._lock:
                profile = self.operators[operator]
                profile.seconds += seconds
                profile.bytes += size

    def add_rows(self, operator: int, rows: int) -> None:
        with self._lock:
            profile = self.operators[operator]
            profile.rows = (profile.rows or 0) + rows


class _ProfiledPipeline:
    """A pipeline for the executor, with every call timed."""

    def __init__(self, pipeline: Pipeline, recorder: _Recorder) -> None:
        self._pipeline, self._recorder = pipeline, recorder
        self.source_slot, self.row_limit = pipeline.source_slot, pipeline.row_limit
        self.num_rows = pipeline.num_rows
        self.row_bytes, self.cost = pipeline.row_bytes, replace(pipeline.cost)
        self.makes_text = pipeline.makes_text
        self.calls_modules = pipeline.calls_modules
        self.arguments = pipeline.arguments
        self.breaker = _ProfiledBreaker(pipeline, recorder)
        nodes = {node.meta.get("node"): node for node in pipeline.graph.graph.nodes}
        self._marks: dict[fx.Node, list[int]] = defaultdict(list)
        self._whole_batch = []
        for operator, node in pipeline.marks:
            if node is None:
                self._whole_batch.append(operator)
            elif node in nodes:
                self._marks[nodes[node]].append(operator)

    def function(self, *arguments: Any) -> Any:
        outputs = _Interpreter(self._pipeline.graph, self._recorder, self._marks).run(*arguments)
        return outputs


class _ProfiledBreaker:
    def __init__(self, pipeline: Pipeline, recorder: _Recorder) -> None:
        self._breaker, self._operator, self._recorder = pipeline.breaker, pipeline.operator, recorder
        self.ordered = pipeline.breaker.ordered
        self.fixed_batches = pipeline.breaker.fixed_batches

    def initial(self, program_state: State) -> Any:
        return self._breaker.initial(program_state)

    def partial(self, outputs: Sequence[Any], state: Any) -> Any:
        begin = time.perf_counter()
        result = self._breaker.partial(outputs, state)
        self._recorder.add(self._operator, time.perf_counter() - begin, 0)
        return result

    def merge(self, states: list[Any]) -> Any:
        begin = time.perf_counter()
        result = self._breaker.merge(states)
        self._recorder.add(self._operator, time.perf_counter() - begin, 0)
        return result

    def finish(self, state: Any, program_state: State) -> State:
        begin = time.perf_counter()
        result = self._breaker.finish(state, program_state)
        self._recorder.add(
            self._operator, time.perf_counter() - begin, sum(object_bytes(item) for item in result.values())
        )
        return result


def profile(program: TensorProgram, executor: Executor) -> tuple[Table, ProgramProfile]:
    """Run the program once on the executor's workers and measure it."""

    def run(workers: Workers) -> tuple[Table, ProgramProfile]:
        recorder = _Recorder()
        begin = time.perf_counter()
        state = program.initial_state(executor.device)
        for pipeline in program.steps():
            program.prepare(pipeline, state, executor.device)
            source: Frame = state[pipeline.source_slot]
            profiled = _ProfiledPipeline(pipeline, recorder)
            for operator in profiled._whole_batch:
                recorder.add_rows(operator, source.num_rows)
            state.update(executor.run(profiled, state, workers))  # type: ignore[arg-type]
        table = program.result(state)
        return table, ProgramProfile(dict(recorder.operators), time.perf_counter() - begin)

    return executor.call(run)


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
