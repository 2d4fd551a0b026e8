"""A trace of what a connection runs: a timeline for Chrome or Perfetto through torch.profiler, and times by operator.

In the timeline stand pipelines, breakers and kernels by their names, above the torch operations that they are made of,
for each worker. Nothing of this is there, and nothing of it costs time, unless a trace is running.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, fx
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, record_function

from tqp.core.errors import ExecutionError
from tqp.runtime.executor import Executor
from tqp.runtime.graph import function_name
from tqp.runtime.pipeline import Breaker, Pipeline, State


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

    def called(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function` under `name`."""

        def call(*arguments: Any, **keywords: Any) -> Any:
            with self.range(name) as results:
                result = function(*arguments, **keywords)
                results.append(result)
            return result

        return call

    def _traced(self, pipeline: Pipeline) -> _TracedPipeline:
        return _TracedPipeline(pipeline, self)


class _TracedPipeline:
    """A pipeline for the executor, its kernels and its breaker under their names."""

    def __init__(self, pipeline: Pipeline, trace: Trace) -> None:
        self.source_slot, self.row_limit = pipeline.source_slot, pipeline.row_limit
        self.num_rows = pipeline.num_rows
        self.row_bytes, self.cost = pipeline.row_bytes, replace(pipeline.cost)
        self.makes_text = pipeline.makes_text
        self.calls_modules = pipeline.calls_modules
        self.arguments = pipeline.arguments
        self.breaker = _TracedBreaker(pipeline.breaker, trace)
        module = pipeline.record.module()
        for node in module.graph.nodes:
            if node.op in ("call_function", "call_method"):
                _name_call(node, trace)
        module.recompile()
        self.function = trace.called(f"pipeline: {pipeline.title}", module.forward)


def _name_call(node: fx.Node, trace: Trace) -> None:
    target = node.target
    if isinstance(target, str):
        name, function = target, _method(target)
    else:
        name, function = function_name(target), target
    node.op, node.target = "call_function", trace.called(name, function)
    # What fx writes into the code that it makes.
    node.target.__name__ = node.target.__qualname__ = node.name
    node.target.__module__ = __name__


def _method(name: str) -> Callable[..., Any]:
    return lambda item, *arguments, **keywords: getattr(item, name)(*arguments, **keywords)


class _TracedBreaker:
    def __init__(self, breaker: Breaker, trace: Trace) -> None:
        self.ordered, self.describe = breaker.ordered, breaker.describe
        self.fixed_batches = breaker.fixed_batches
        self._breaker, self._trace, self._name = breaker, trace, type(breaker).__name__

    def initial(self, program_state: State) -> Any:
        return self._breaker.initial(program_state)

    def partial(self, outputs: Sequence[Any], state: Any) -> Any:
        with self._trace.range(f"{self._name}.partial") as results:
            results.append(outputs)
            return self._breaker.partial(outputs, state)

    def merge(self, states: list[Any]) -> Any:
        with self._trace.range(f"{self._name}.merge"):
            return self._breaker.merge(states)

    def finish(self, state: Any, program_state: State) -> State:
        with self._trace.range(f"{self._name}.finish") as results:
            made = self._breaker.finish(state, program_state)
            results.extend(made.values())
            return made


def _num_rows(item: Any) -> int:
    """Of a column, of a frame, or of a graph's outputs, which begin with it; 0 for what has none."""
    if isinstance(item, Tensor):
        return item.shape[0] if item.dim() else 0
    if isinstance(item, (tuple, list)) and item:
        return item[0] if type(item[0]) is int else _num_rows(item[0])
    number = getattr(item, "num_rows", 0)
    return number if isinstance(number, int) else 0
