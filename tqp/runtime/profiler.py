"""EXPLAIN ANALYZE: runs a program node by node and adds up time, rows and bytes for each operator of its plan."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tqp.data.column import Table
from tqp.runtime.executor import Executor, Workers
from tqp.runtime.frame import Frame, object_bytes
from tqp.runtime.graph import Node
from tqp.runtime.graph_function import interpret
from tqp.runtime.pipeline import Pipeline
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

    def watched(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline for the executor, with every call timed."""
        marks: dict[Node | None, list[int]] = defaultdict(list)
        for operator, marked in pipeline.marks:
            marks[marked].append(operator)

        def note_rows(node: Node | None, rows: Any) -> None:
            for operator in marks.get(node, ()):
                if not isinstance(rows, int):
                    rows = int(rows.sum()) if rows.dtype is torch.bool else rows.shape[0]
                self.add_rows(operator, rows)

        def call(node: Node, run: Callable[[], Any]) -> Any:
            begin = time.perf_counter()
            result = run()
            self.add(node.operator, time.perf_counter() - begin, object_bytes(result))
            note_rows(node, result)
            return result

        def function(*arguments: Any) -> Any:
            for node, value in zip(pipeline.record.inputs, arguments, strict=True):
                note_rows(node, value)
            return interpret(pipeline.record, arguments, call)

        def step(name: str, run: Callable[..., Any], *arguments: Any) -> Any:
            begin = time.perf_counter()
            result = run(*arguments)
            size = sum(map(object_bytes, result.values())) if name == "finish" else 0
            self.add(pipeline.operator, time.perf_counter() - begin, size)
            return result

        return pipeline.watched(function, step)


def profile(program: TensorProgram, executor: Executor) -> tuple[Table, ProgramProfile]:
    """Run the program once on the executor's workers and measure it."""

    def run(workers: Workers) -> tuple[Table, ProgramProfile]:
        recorder = _Recorder()
        begin = time.perf_counter()
        state = program.initial_state(executor.device)
        for pipeline in program.steps():
            program.prepare(pipeline, state, executor.device)
            source: Frame = state[pipeline.source_slot]
            for operator, node in pipeline.marks:
                if node is None:
                    recorder.add_rows(operator, source.num_rows)
            state.update(executor.run(recorder.watched(pipeline), state, workers))
        table = program.result(state)
        return table, ProgramProfile(dict(recorder.operators), time.perf_counter() - begin)

    return executor.call(run)


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
