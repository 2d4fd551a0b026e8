"""A trace of what a connection runs: a timeline for Chrome or Perfetto through torch.profiler, and times by operator.

In the timeline stand pipelines, breakers and kernels by their names, above the torch operations that they are made of,
for each worker. Nothing of this is there, and nothing of it costs time, unless a trace is running.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, record_function

from tqp.core.errors import ExecutionError
from tqp.runtime.executor import Executor
from tqp.runtime.graph import Node, function_name
from tqp.runtime.pipeline import Pipeline


@dataclass(slots=True)
class OperatorTimes:
    """What one kernel, breaker or pipeline took, added up over workers; `rows` are those that came out of it.

    `self_seconds` is without what ran inside of it under a name of its own.
    """

    calls: int = 0
    rows: int = 0
    seconds: float = 0.0
    self_seconds: float = 0.0


class Trace:
    """Traces everything that runs on an executor inside a `with` block; see `Connection.trace`."""

    def __init__(self, executor: Executor) -> None:
        #: By name.
        self.operators: dict[str, OperatorTimes] = defaultdict(OperatorTimes)
        self._executor = executor
        self._lock = threading.Lock()
        self._stacks = threading.local()
        activities = [ProfilerActivity.CPU]
        if executor.device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        # The workers were there before the trace; without this only the calling thread would be seen.
        workers_too = _ExperimentalConfig(profile_all_threads=True)
        self._profiler = torch.profiler.profile(activities=activities, experimental_config=workers_too)

    def __enter__(self) -> Self:
        if self._executor.instrument is not None:
            raise ExecutionError("this connection is being traced already")
        self._profiler.start()
        self._executor.instrument = self._traced
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.instrument = None
        self._profiler.stop()

    def write(self, path: str | PathLike[str]) -> None:
        """The timeline as JSON, for ui.perfetto.dev or chrome://tracing; gzipped where the name ends in .gz."""
        self._profiler.export_chrome_trace(str(path))

    def __str__(self) -> str:
        """The operators, those that took the longest by themselves first."""
        lines = [f"{'self ms':>10} {'ms':>10} {'calls':>8} {'rows':>14}  operator"]
        for name, times in sorted(self.operators.items(), key=lambda item: -item[1].self_seconds):
            own, total = times.self_seconds * 1e3, times.seconds * 1e3
            lines.append(f"{own:10,.2f} {total:10,.2f} {times.calls:8,} {times.rows:14,}  {name}")
        return "\n".join(lines)

    @contextmanager
    def range(self, name: str) -> Iterator[list[Any]]:
        """What runs inside stands under `name`; the block puts what it computes into the list, to count its rows."""
        stack: list[float] = self._stacks.__dict__.setdefault("inside", [])
        stack.append(0.0)
        results: list[Any] = []
        begin = time.perf_counter()
        try:
            with record_function(name):
                yield results
        finally:
            seconds = time.perf_counter() - begin
            inside = stack.pop()
            if stack:
                stack[-1] += seconds
            with self._lock:
                times = self.operators[name]
                times.calls += 1
                times.rows += sum(map(_num_rows, results))
                times.seconds += seconds
                times.self_seconds += seconds - inside

    def _traced(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline for the executor, its kernels and its breaker under their names."""
        breaker = type(pipeline.breaker).__name__

        def measure(what: Node | Pipeline | str, run: Callable[..., Any], *arguments: Any) -> Any:
            if isinstance(what, Node):
                name = what.target if isinstance(what.target, str) else function_name(what.target)
            else:
                name = f"{breaker}.{what}" if isinstance(what, str) else f"pipeline: {what.title}"
            with self.range(name) as results:
                results += arguments[:1] if what == "partial" else ()
                made = run(*arguments)
                results += made.values() if what == "finish" else () if isinstance(what, str) else (made,)
            return made

        return pipeline.watched(measure)


def _num_rows(item: Any) -> int:
    """Of a column, of a frame, or of a graph's outputs, which begin with it; 0 for what has none."""
    if isinstance(item, Tensor):
        return item.shape[0] if item.dim() else 0
    if isinstance(item, (tuple, list)) and item:
        return item[0] if type(item[0]) is int else _num_rows(item[0])
    number = getattr(item, "num_rows", 0)
    return number if isinstance(number, int) else 0
