"""Runs pipelines: cuts sources into batches that worker threads pull, each with one intra-op thread.

Results do not depend on the number of threads: states are merged in batch order wherever order matters.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import torch

from tqp.core.errors import ExecutionError, ResourceError
from tqp.operators.join_pairs import TooManyPairs
from tqp.runtime.allocator import keep_freed_memory
from tqp.runtime.frame import object_bytes
from tqp.runtime.pipeline import Pipeline, State

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Rows of a batch on the CPU: few enough to share among workers, enough to hide Python (see docs/performance.md).
CPU_BATCH_ROWS = 262_144
_OUT_OF_MEMORY = (
    "the query needs more memory than {} has; select fewer columns or rows, "
    "or set tqp.connect(memory_limit=...) to stop such queries earlier"
)
_TOO_MANY_MATCHES = (
    "a single row of a table has more join partners than fit into memory at once; "
    "add a join condition, or aggregate one side before joining"
)


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
        else:
            keep_freed_memory()
        self.threads = threads or default_threads()
        self.batch_rows = batch_rows or (CPU_BATCH_ROWS if device.type == "cpu" else 1 << 62)
        self.memory_limit = memory_limit or default_memory_limit(device)
        #: What puts another pipeline in a pipeline's place, while somebody traces what runs here.
        self.instrument: Callable[[Pipeline], Any] | None = None
        caller_threads = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="tqp", initializer=one_torch_thread)
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
        except (MemoryError, torch.OutOfMemoryError) as error:
            raise ResourceError(_OUT_OF_MEMORY.format(self.device)) from error
        except RuntimeError as error:
            if "can't allocate memory" in str(error):  # what torch's CPU allocator says
                raise ResourceError(_OUT_OF_MEMORY.format(self.device)) from error
            raise
        except BaseException:
            cancelled.set()
            raise

    def run(self, pipeline: Pipeline, state: State, cancelled: threading.Event) -> None:
        """Run one pipeline on the calling worker, with help from idle ones, and put its results into `state`."""
        if self.instrument is not None:
            pipeline = self.instrument(pipeline)
        num_rows = state[pipeline.source_slot].num_rows
        batch_rows = self.batch_rows
        arguments = pipeline.arguments(state)
        breaker, function = pipeline.breaker, pipeline.function
        starts = iter(range(0, max(1, num_rows), batch_rows))
        account = _Account(self.memory_limit)
        state["workers"] = self
        initial = breaker.initial(state)

        def run_rows(start: int, stop: int) -> Iterator[tuple[int, Any]]:
            """The graph's outputs for rows [start, stop) of the source, in more than one piece if a join needs it."""
            # a stack and not a recursion: a function that refers to itself would keep the inputs until the next garbage collection
            pending = [(start, stop)]
            while pending:
                if cancelled.is_set():
                    raise Cancelled
                start, stop = pending.pop()
                try:
                    outputs = function(*arguments(start, stop))
                except TooManyPairs as error:
                    if stop - start <= 1:
                        raise ResourceError(_TOO_MANY_MATCHES) from None
                    step = max(1, (stop - start) // error.pieces)
                    pending += [(at, min(at + step, stop)) for at in reversed(range(start, stop, step))]
                else:
                    yield start, outputs

        def work() -> list[tuple[int, Any]]:
            states: list[tuple[int, Any]] = []
            folded: Any = initial
            with torch.no_grad():
                for (
                    start
                ) in starts:  # a range iterator is one step under the GIL: no batch is given out twice
                    for row, outputs in run_rows(start, min(start + batch_rows, num_rows)):
                        if breaker.ordered:
                            partial = breaker.partial(outputs, None)
                            account.add(partial)
                            states.append((row, partial))
                        else:
                            folded = breaker.partial(outputs, folded)
            if folded is not None:
                states.append((0, folded))
            return states

        def until(wanted: int) -> list[tuple[int, Any]]:
            """Batch by batch, until the pipeline has put out as many rows as anybody wants."""
            states, rows = [], 0
            step = min(batch_rows, max(2048, wanted))
            with torch.no_grad():
                for start in range(0, max(1, num_rows), step):
                    for row, outputs in run_rows(start, min(start + step, num_rows)):
                        states.append((row, breaker.partial(outputs, None)))
                        rows += outputs[0]
                    if rows >= wanted:
                        break
            return states

        if pipeline.row_limit is not None:
            states = until(pipeline.row_limit)
        else:
            num_helpers = min(self.threads, -(-num_rows // batch_rows)) - 1
            states = _gather(work, [self._pool.submit(work) for _ in range(num_helpers)], starts)
        states.sort(key=lambda pair: pair[0])
        with torch.no_grad():
            merged = breaker.merge([partial for _, partial in states])
            state.update(breaker.finish(merged, state))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """function(item) of each item, in order, computed by the calling worker and idle ones; for breakers."""
        numbered = iter(enumerate(items))

        def work() -> list[tuple[int, Any]]:
            with torch.no_grad():
                return [(number, function(item)) for number, item in numbered]

        helpers = [self._pool.submit(work) for _ in range(min(self.threads, len(items)) - 1)]
        results = _gather(work, helpers, numbered)
        return [result for _, result in sorted(results, key=lambda pair: pair[0])]

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def one_torch_thread() -> None:
    """Let the calling thread run each torch operation by itself."""
    # A thread's first operation, or question, sets its number from the process's: ask first, or 1 would be overwritten.
    torch.get_num_threads()
    torch.set_num_threads(1)


def _gather(
    work: Callable[[], list[tuple[int, Any]]], helpers: list[Future[list[tuple[int, Any]]]], starts: Any
) -> list[tuple[int, Any]]:
    """The states of this worker and of its helpers. Helpers that have not started when the batches run out never do."""
    try:
        states = work()
    except BaseException:
        for _ in starts:  # leave nothing for the others to start on
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


def default_memory_limit(device: torch.device) -> int | None:
    """Four fifths of the memory that the device has; None where it does not say."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory) * 4 // 5
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 4 // 5
    except (AttributeError, ValueError, OSError):  # not on every platform
        return None


def default_threads() -> int:
    """The processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1
