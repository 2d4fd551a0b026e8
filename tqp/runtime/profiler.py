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
from tqp.runtime.frame import object_bytes
from tqp.runtime.graph import Node
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

    def watched(self, pipeline: Pipeline, state: State) -> Pipeline:
        """The pipeline for the executor, with every call timed."""
        marks: dict[Node | None, list[int]] = defaultdict(list)
        for operator, marked in pipeline.marks:
            marks[marked].append(operator)

        def note_rows(node: Node | None, rows: Any) -> None:
            for operator in marks.get(node, ()):
                if not isinstance(rows, int):
                    rows = int(rows.sum()) if rows.dtype is torch.bool else rows.shape[0]
                self.add_rows(operator, rows)

        note_rows(None, state[pipeline.source_slot].num_rows)

        def measure(what: Node | Pipeline | str, run: Callable[..., Any], *arguments: Any) -> Any:
            begin = time.perf_counter()
            result = run(*arguments)
            seconds = time.perf_counter() - begin
            if isinstance(what, Node):
                self.add(what.operator, seconds, object_bytes(result))
                note_rows(what, result)
            elif isinstance(what, Pipeline):
                for node, value in zip(what.record.inputs, arguments, strict=True):
                    note_rows(node, value)
            else:
                size = sum(map(object_bytes, result.values())) if what == "finish" else 0
                self.add(pipeline.operator, seconds, size)
            return result

        return pipeline.watched(measure)


def profile(program: TensorProgram, executor: Executor) -> tuple[Table, ProgramProfile]:
    """Run the program once on the executor's workers and measure it."""

    def run(workers: Workers) -> tuple[Table, ProgramProfile]:
        recorder = _Recorder()
        begin = time.perf_counter()
        table = program.run(workers, recorder.watched)
        return table, ProgramProfile(dict(recorder.operators), time.perf_counter() - begin)

    return executor.call(run)


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
