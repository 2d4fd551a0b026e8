"""Runs pipelines: cuts sources into batches that worker threads pull, each with one intra-op thread.

Results do not depend on the number of threads: states are merged in batch order wherever order matters.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import torch

from tqp.core.errors import ExecutionError, ResourceError
from tqp.runtime.frame import object_bytes
from tqp.runtime.pipeline import Pipeline, State

Result = TypeVar("Result")

#: Rows of a batch on the CPU: several columns of it stay in a core's cache (see docs/performance.md).
CPU_BATCH_ROWS = 131_072
#: Pairs that a nested-loop join may form at once.
_MAX_PAIRS = 1 << 21


class Cancelled(Exception):
    """The caller stopped waiting."""


class Executor:
    """A connection's worker threads and limits. Several queries may run at once; they share the workers."""

    def __init__(
        self, device: torch.device, threads: int | None, batch_rows: int | None, memory_limit: int | None
    ) -> None:
        self.device = device
        if device.type != "cpu":
            threads = 1  # one thread drives the stream
        self.threads = threads or default_threads()
        self.batch_rows = batch_rows or (CPU_BATCH_ROWS if device.type == "cpu" else 1 << 62)
        self.memory_limit = memory_limit
        caller_threads = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(
            self.threads, thread_name_prefix="tqp", initializer=lambda: torch.set_num_threads(1)
        )
        # start every worker now, then say the caller's own setting again: set_num_threads also leaves a process-wide trace
        barrier = threading.Barrier(self.threads + 1)
        for _ in range(self.threads):
            self._pool.submit(barrier.wait)
        barrier.wait()
        torch.set_num_threads(caller_threads)

    def call(self, function: Callable[[threading.Event], Result]) -> Result:
        """Run `function(cancelled)` on a worker and wait; an interrupt sets `cancelled` and is passed on."""
        cancelled = threading.Event()
        try:
            future = self._pool.submit(function, cancelled)
        except RuntimeError as error:
            raise ExecutionError("the connection is closed; open a new one with tqp.connect()") from error
        try:
            return future.result()
        except BaseException:
            cancelled.set()
            raise

    def run(self, pipeline: Pipeline, state: State, cancelled: threading.Event) -> None:
        """Run one pipeline on the calling worker, with help from idle ones, and put its results into `state`."""
        num_rows = state[pipeline.source_slot].num_rows
        batch_rows = self._batch_rows(pipeline, state)
        arguments = pipeline.arguments(state)
        breaker, graph = pipeline.breaker, pipeline.graph
        num_batches = max(1, -(-num_rows // batch_rows))
        numbers = iter(range(num_batches))
        account = _Account(self.memory_limit)

        def work() -> list[tuple[int, Any]]:
            states: list[tuple[int, Any]] = []
            folded: Any = None
            with torch.no_grad():
                for (
                    number
                ) in numbers:  # a range iterator is one step under the GIL: no batch is given out twice
                    if cancelled.is_set():
                        raise Cancelled
                    start = number * batch_rows
                    outputs = graph(*arguments(start, min(start + batch_rows, num_rows)))
                    if breaker.ordered:
                        partial = breaker.partial(outputs, None)
                        account.add(partial)
                        states.append((number, partial))
                    else:
                        folded = breaker.partial(outputs, folded)
            if not breaker.ordered and folded is not None:
                states.append((0, folded))
            return states

        if pipeline.row_limit is not None:
            states = self._until(pipeline, arguments, num_rows, batch_rows, cancelled)
        else:
            helpers = [self._pool.submit(work) for _ in range(min(self.threads, num_batches) - 1)]
            states = _gather(work, helpers, numbers)
        states.sort(key=lambda pair: pair[0])
        with torch.no_grad():
            merged = breaker.merge([partial for _, partial in states])
            state.update(breaker.finish(merged, state))

    def _until(
        self,
        pipeline: Pipeline,
        arguments: Callable[[int, int], list[Any]],
        num_rows: int,
        batch_rows: int,
        cancelled: threading.Event,
    ) -> list[tuple[int, Any]]:
        """Batch by batch, until the pipeline has put out as many rows as anybody wants."""
        states: list[tuple[int, Any]] = []
        wanted, rows = pipeline.row_limit or 0, 0
        batch_rows = min(batch_rows, max(2048, wanted))
        with torch.no_grad():
            for number in range(max(1, -(-num_rows // batch_rows))):
                if cancelled.is_set():
                    raise Cancelled
                start = number * batch_rows
                outputs = pipeline.graph(*arguments(start, min(start + batch_rows, num_rows)))
                states.append((number, pipeline.breaker.partial(outputs, None)))
                rows += outputs[0]
                if rows >= wanted:
                    break
        return states

    def _batch_rows(self, pipeline: Pipeline, state: State) -> int:
        rows = self.batch_rows
        for slot in pipeline.pairs_with:
            rows = min(rows, max(1, _MAX_PAIRS // max(1, state[slot].num_rows)))
        return rows

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _gather(
    work: Callable[[], list[tuple[int, Any]]], helpers: list[Future[list[tuple[int, Any]]]], numbers: Any
) -> list[tuple[int, Any]]:
    """The states of this worker and of its helpers. Helpers that have not started when the batches run out never do."""
    try:
        states = work()
    except BaseException:
        for _ in numbers:  # leave nothing for the others to start on
            pass
        for helper in helpers:
            helper.cancel()
        wait([helper for helper in helpers if not helper.cancelled()])
        raise
    running = [helper for helper in helpers if not helper.cancel()]
    wait(running)
    return list(itertools.chain(states, *(helper.result() for helper in running)))


class _Account:
    """Adds up what a pipeline's batches leave behind and holds it against the limit."""

    def __init__(self, limit: int | None) -> None:
        self._limit, self._used, self._lock = limit, 0, threading.Lock()

    def add(self, partial: Any) -> None:
        if self._limit is None:
            return
        size = object_bytes(partial)
        with self._lock:
            self._used += size
            used = self._used
        check_memory(used, self._limit)


def check_memory(used: int, limit: int | None) -> None:
    """Raises ResourceError if `used` bytes are over the limit."""
    if limit is not None and used > limit:
        raise ResourceError(
            f"the query needs more than {used / 2**20:.0f} MiB for intermediate results and the limit is "
            f"{limit / 2**20:.0f} MiB; raise it with tqp.connect(memory_limit=...)"
        )


def default_threads() -> int:
    """The processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1
