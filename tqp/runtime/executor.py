"""Runs pipelines: cuts sources into batches that worker threads pull, each with one intra-op thread.

Results do not depend on the number of threads: states are merged in batch order wherever order matters.

A batch has 3 million rows at most, fewer where what the pipeline computes of them would take more than 8 MB and so leave the
caches (`live_bytes` in `tqp.runtime.graph`; not where LIKE searches text before rows are grouped, which drives the groups'
accumulators out of the caches once a batch), and of a table that is streamed no rows of two of its parts. On CUDA and other
devices the source is one batch. How many workers share a pipeline follows from the processor time that its rows and the merge
of its states took in its last run (`Cost` in `tqp.runtime.pipeline`); where sums of floats depend on where batches end, from
the number of rows alone.

A pipeline that feeds a LIMIT without a sort goes batch by batch in order and stops when it has enough rows; one with a
nested-loop join takes batches so small that a batch forms at most about two million pairs, or fewer where little memory is
left. Each worker runs torch with one intra-op thread; the caller's own setting is left as it was. Several queries may run at
once on one connection; they share the workers. A forked child has none of its parent's threads: whatever has locks or
threads makes them anew there (`tqp.core.process.forks`).
"""

from __future__ import annotations

import contextlib
import operator
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import torch

from tqp.core.backends import Backend
from tqp.core.errors import ExecutionError, ResourceError
from tqp.core.process.forks import renew_after_fork
from tqp.core.process.memory_budget import charged_to, reserve
from tqp.core.process.progress import Stage
from tqp.data.backend import use_backend
from tqp.data.sharing import Handout, map_in_pool, processors, work_together
from tqp.operators.joins.pairs import TooManyPairs
from tqp.runtime.cut_spans import cut_spans
from tqp.runtime.frame import MAX_ROWS
from tqp.runtime.graph_function import ARRAY_INPUTS, GraphFunction
from tqp.runtime.memory_limit import MemoryBudget, RunningQuery, keep_freed_memory
from tqp.runtime.pipeline import Pipeline, State

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Rows of a batch on the CPU at most. Every call of a batch is a meeting of the workers at the interpreter lock: the fewer
#: and longer they are, the less they wait (see docs/performance.md).
CPU_BATCH_ROWS = 3 << 20
#: What the values of a batch may take while they are computed, in bytes: beyond, they come from memory, not from the caches ...
_BATCH_BYTES = 8 << 20
#: ... but no batch has fewer rows than these on that account: workers would meet at the interpreter lock too often.
_SHORTEST_BATCH = 196_608
#: Rows of a batch where text is made of all of them: some hundred bytes a row in several steps, each much longer than its call.
#: With a quarter as many a step meets at the interpreter lock too often, with four times as many all comes from memory.
_TEXT_BATCH = 131_072
#: Seconds of work of a batch at least where text is made, by the pipeline's last run: of rows of which a filter leaves few there
#: are more in a batch, or its calls would cost more than its text.
_TEXT_SECONDS = 0.005
#: Bytes that a row of text may take in all steps of a batch, those of several workers together: so that batches fit a small limit
#: of memory.
_TEXT_BYTES = 4096
#: Rows of a batch at least where the number of workers must not matter.
_FEW_ROWS = 131_072
#: Seconds of work for which another worker is woken: it starts late and with cold caches.
_WORTH_A_WORKER = 0.0008
#: Rows of a worker's share at least: with fewer, workers meet at the interpreter lock too often (see docs/performance.md) ...
_SHARE_ROWS = 131_072
#: ... unless it is so many seconds of work, of calls that take long.
_SHARE_SECONDS = 0.0015
#: Where a batch ends must not depend on what runs here: as if by so many workers, each with half of `_FEW_ROWS` at least.
_FIXED_WORKERS = 4
#: Rows of a source for which a pipeline is compiled before its first batch: of so many, arrays and blocks save more than that takes.
_WORTH_COMPILING = 262_144
_OUT_OF_MEMORY = (
    "the query needs more memory than {} has; select fewer columns or rows, "
    "or set tqp.connect(memory_limit=...) to stop such queries earlier"
)
_CLOSED = "the connection is closed; open a new one with tqp.connect()"
_TOO_MANY_MATCHES = (
    "a single row of a table has more join partners than fit into memory at once; "
    "add a join condition, or aggregate one side before joining"
)


class _Starting:
    """A lock held while workers start: a thread that first asks torch for its number of threads meanwhile would be told theirs."""

    def __init__(self) -> None:
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self.lock = threading.Lock()


_starting = _Starting()


class Cancelled(Exception):
    """The caller stopped waiting."""


class Executor:
    """A connection's worker threads and limits. Several queries may run at once; they share the workers."""

    def __init__(
        self,
        device: torch.device,
        threads: int | None,
        batch_rows: int | None,
        memory_limit: int | None,
        backend: Backend = Backend.HOST,
    ) -> None:
        self.device, self.backend = device, backend
        if device.type == "cpu":
            keep_freed_memory()
        self.batch_rows = batch_rows or (CPU_BATCH_ROWS if device.type == "cpu" else MAX_ROWS)
        self.memory = MemoryBudget(memory_limit, device, threads or processors())
        #: What puts another pipeline in a pipeline's place, while somebody traces what runs here.
        self.instrument: Callable[[Pipeline], Any] | None = None
        self._name = object()  # by which a worker knows whose it is
        self._closed = False
        self._pool: ThreadPoolExecutor | None = self._start_workers()
        renew_after_fork(self)

    @property
    def cuts_batches(self) -> bool:
        """Whether sources are read in batches, and not at once."""
        return self.device.type == "cpu"

    @property
    def threads(self) -> int:
        """How many workers run a query. One drives the stream of a device other than the CPU, for which others encode columns."""
        return self.memory.threads if self.cuts_batches else 1

    def set_threads(self, threads: int | None) -> None:
        """Let so many workers run the queries that begin from now on; None: as many as there are processors.

        The workers that there were end when they have done what they had begun.
        """
        before, self.memory.threads = self.threads, threads or processors()
        if self.threads != before and self._pool is not None and not self._closed:
            self._pool = self._start_workers()

    def _start_workers(self) -> ThreadPoolExecutor:
        threads = self.threads
        pool = ThreadPoolExecutor(
            threads,
            thread_name_prefix="tqp",
            initializer=_set_up_worker,
            initargs=(self._name, self.backend),
        )
        with _starting.lock:
            caller_threads = torch.get_num_threads()
            # start every worker now, then say the caller's own setting again: set_num_threads also leaves a process-wide trace
            barrier = threading.Barrier(threads + 1)
            for _ in range(threads):
                pool.submit(barrier.wait)
            barrier.wait()
            torch.set_num_threads(caller_threads)
        return pool

    def after_fork(self) -> None:
        """A child has none of its parent's threads: it starts its own when it first needs them."""
        self._pool = None

    def _workers(self) -> ThreadPoolExecutor:
        if self._closed:
            raise ExecutionError(_CLOSED)
        pool = self._pool
        if pool is None:  # in a forked child
            if self.device.type == "cuda":
                raise ExecutionError(
                    "this connection is of the parent process, and CUDA does not survive a fork: "
                    'open a connection in the child, started with multiprocessing\'s "spawn" method'
                )
            pool = self._pool = self._start_workers()
        return pool

    def call(self, function: Callable[[Workers], Result]) -> Result:
        """Run `function(workers)` on a worker and wait; an interrupt stops the workers soon and is passed on.

        A worker's own call, from a model that queries the connection that it is part of, runs where it is: waiting for another
        worker, all might wait for each other.
        """
        cancelled = threading.Event()
        workers = Workers(self, cancelled)
        with self.memory.query() as query:
            if _worker.of is self._name:
                return function(workers)
            return self._wait_for(lambda: function(workers), query, cancelled)

    def _wait_for(
        self, function: Callable[[], Result], query: RunningQuery, cancelled: threading.Event
    ) -> Result:
        try:
            return query.wait_for(self._begin(function, query))
        except (MemoryError, torch.OutOfMemoryError) as error:
            raise ResourceError(_OUT_OF_MEMORY.format(self.device)) from error
        except RuntimeError as error:
            if "can't allocate memory" in str(error):  # what torch's CPU allocator says
                raise ResourceError(_OUT_OF_MEMORY.format(self.device)) from error
            raise
        except BaseException:
            cancelled.set()
            raise

    def _begin(self, function: Callable[[], Result], query: RunningQuery) -> Future[Result]:
        """Let a worker call it. The outcome is not the pool's own: an interrupt may settle it first."""

        def work(outcome: Future[Result] | None) -> None:
            assert outcome is not None
            try:
                with charged_to(query):
                    result = function()
                with contextlib.suppress(InvalidStateError):
                    outcome.set_result(result)
            except BaseException as error:  # noqa: BLE001  (raised by the thread that waits)
                with contextlib.suppress(InvalidStateError):
                    outcome.set_exception(error)
                outcome = None  # the error knows this frame, and would know itself

        outcome: Future[Result] = Future()
        try:
            self._workers().submit(work, outcome)
        except RuntimeError as error:  # closed meanwhile
            raise ExecutionError(_CLOSED) from error
        return outcome

    def run(self, pipeline: Pipeline, state: State, workers: Workers) -> State:
        """Run one pipeline on the calling worker, with help from idle ones; what it adds to the program's state."""
        if self.instrument is not None:
            pipeline = self.instrument(pipeline)
        with _operations(pipeline):
            return self._run(pipeline, state, workers)

    def _run(self, pipeline: Pipeline, state: State, workers: Workers) -> State:
        spans, breaker = pipeline.spans(state), pipeline.breaker
        num_rows = sum(stop - start for start, stop in spans)
        state["workers"] = workers
        if num_rows >= _WORTH_COMPILING and isinstance(pipeline.function, GraphFunction):
            pipeline.function.compiled()
        job = _Job(pipeline, state, workers)
        with job:
            if pipeline.row_limit is not None:
                states = job.until(pipeline.row_limit, spans, self.batch_rows)
            else:
                batches = cut_spans(spans, self._step(pipeline, num_rows), pipeline.ends(state))
                num_batches = job.cut(batches, state)
                num_helpers = 0 if pipeline.in_order else min(self.threads, num_batches) - 1
                states = work_together(job.help, self._workers(), num_helpers, job.batches)
                states.sort(key=operator.itemgetter(0))
                num_rows = sum(job.num_rows)
                if num_rows:
                    pipeline.cost.row_seconds = sum(job.seconds) / num_rows
        partials = [partial for _, partial in states]
        del states
        workers.check()
        if len(partials) > 1:
            begin = time.thread_time()
            merged = breaker.merge(partials)
            pipeline.cost.merge_seconds = time.thread_time() - begin
            workers.check()
        else:
            merged = breaker.merge(partials)
        del partials
        return breaker.finish(merged, state)

    def _step(self, pipeline: Pipeline, num_rows: int) -> int:
        """Rows of each batch of a pipeline's source."""
        seconds = None if pipeline.breaker.fixed_batches else pipeline.cost.worth_sharing(num_rows)
        if num_rows <= min(_FEW_ROWS, self.batch_rows) and (seconds is None or seconds < 2 * _SHARE_SECONDS):
            return max(1, num_rows)
        most = self._most_rows(pipeline.row_bytes)
        if pipeline.makes_text and self.device.type == "cpu":
            rows = _TEXT_BATCH
            if seconds is not None:
                batches = max(1.0, num_rows * pipeline.cost.row_seconds / _TEXT_SECONDS)
                rows = max(rows, int(num_rows / batches))
            most = min(most, rows)
            if self.memory.limit is not None:
                most = min(most, max(1, self.memory.limit // _TEXT_BYTES))
        return self._even_batch(num_rows, seconds, most)

    def _most_rows(self, row_bytes: int) -> int:
        """Rows of a batch at most: fewer than `batch_rows` where the caches would not hold what is computed of so many."""
        if self.device.type != "cpu" or self.batch_rows * row_bytes <= _BATCH_BYTES:
            return self.batch_rows
        return min(self.batch_rows, max(_SHORTEST_BATCH, _BATCH_BYTES // row_bytes))

    def _even_batch(self, num_rows: int, seconds: float | None, most: int) -> int:
        """Rows of each batch of a source: `most` at most, and every worker has as many batches as the others.

        `seconds`: of work, to tell how many workers the source is worth; None: by the number of rows alone, the same for any
        number of workers.
        """
        if seconds is None:
            shares = min(
                _FIXED_WORKERS, 2 * (num_rows // _FEW_ROWS)
            )  # an even number: two workers end together
        else:
            shares = max(num_rows // _SHARE_ROWS, int(seconds / _SHARE_SECONDS))
            shares = min(self.threads, shares, num_rows, int(seconds / _WORTH_A_WORKER))
        shares = max(1, shares)
        rounds = max(1, -(-num_rows // (most * shares)))
        return max(1, -(-num_rows // (rounds * shares)))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """function(item) of each item, in order, computed by the calling thread and idle workers."""
        return map_in_pool(function, items, self._workers(), self.threads)

    def close(self) -> None:
        """End the workers, after what they are running."""
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


class Workers:
    """The workers of one run of a program: what its breakers share work among, until it is interrupted."""

    def __init__(self, executor: Executor, cancelled: threading.Event) -> None:
        self._executor, self._cancelled = executor, cancelled
        self.threads = executor.threads

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """function(item) of each item, in order, computed by the calling worker and idle ones."""

        def call(item: Item) -> Result:
            self.check()
            with _without_autograd():
                return function(item)

        return self._executor.map(call, items)

    def run(self, pipeline: Pipeline, state: State) -> State:
        """Run a pipeline that a breaker repeats, on the calling worker and idle ones; what it adds to the program's state."""
        return self._executor.run(pipeline, state, self)

    def check(self) -> None:
        """Raise Cancelled or InterruptError if the run was interrupted, ResourceError if it has taken too much memory."""
        if self._cancelled.is_set():
            raise Cancelled
        reserve()


class _Worker(threading.local):
    """The calling thread as a worker: of which executor. Not the executor itself, which would live as long as its threads."""

    of: object = None


_worker = _Worker()


def _set_up_worker(executor_name: object, backend: Backend) -> None:
    """Run torch operations on the calling thread alone, record nothing for derivatives, and take floats as IEEE has them."""
    _worker.of = executor_name
    use_backend(backend)
    torch.set_grad_enabled(False)
    np.seterr(all="ignore")
    one_torch_thread()


def one_torch_thread() -> None:
    """Let the calling thread run each torch operation by itself."""
    # A thread's first operation, or question, sets its number from the process's: ask first, or 1 would be overwritten.
    torch.get_num_threads()
    torch.set_num_threads(1)


#: torch's operations without what records them for derivatives. That copies handles of tensors, and each copy takes the
#: interpreter lock: a subtraction takes it twice, not four times (torch 2.13).
_without_autograd: Callable[[], contextlib.AbstractContextManager[Any]] = getattr(
    torch._C, "_AutoDispatchBelowAutograd", contextlib.nullcontext
)


def run_at_once(pipeline: Pipeline, state: State, workers: Workers) -> State:
    """Run a pipeline on the calling thread, all rows of its source in one batch: what it adds to the program's state."""
    state["workers"] = workers
    job = _Job(pipeline, state, workers)
    job.cut([(0, pipeline.num_rows(state))], state)
    merged = pipeline.breaker.merge([partial for _, partial in job.work()])
    return pipeline.breaker.finish(merged, state)


def _operations(pipeline: Pipeline) -> contextlib.AbstractContextManager[Any]:
    """How a pipeline's operations run. Modules that users wrote may derive something in their own steps."""
    return contextlib.nullcontext() if pipeline.calls_modules else _without_autograd()


class _Job(Stage):
    """One run of one pipeline: the batches that are left, and what a worker does with them."""

    def __init__(self, pipeline: Pipeline, state: State, workers: Workers) -> None:
        super().__init__()
        self._pipeline, self._function, self._breaker = pipeline, pipeline.function, pipeline.breaker
        self._arguments = pipeline.arguments(state, getattr(pipeline.function, ARRAY_INPUTS, ()))
        self._initial = self._breaker.initial(state)
        self._workers = workers
        self.batches: Handout[tuple[int, int]] = Handout(())
        self._num_batches = 0
        self._best: dict[tuple[int, int], int] = {}  # value of each batch, where the best come first
        self.seconds: list[float] = []  # of processor time, of each worker
        self.num_rows: list[int] = []  # of the source, of each worker

    def cut(self, batches: Sequence[tuple[int, int]], state: State) -> int:
        """Rows [start, stop) of each batch for `work`; how many batches."""
        order = self._pipeline.zone_order
        if order is not None and not self._pipeline.in_order:
            self._best = dict(order.best_first(batches, state[order.zones]))
            batches = list(self._best)
        self.batches = Handout(batches)
        self._num_batches = len(batches)
        return self._num_batches

    def _comes_too_late(self, batch: tuple[int, int]) -> bool:
        """Whether all rows of the batch come after those that a top-k has by now."""
        order, best = self._pipeline.zone_order, self._best.get(batch)
        return order is not None and best is not None and order.comes_after(best, self._initial.value)

    def fraction(self, inner: float) -> float:
        """Of the batches those that are done at least: each worker may be at one."""
        done = self.batches.handed_out - self._workers.threads
        return max(0, done) / self._num_batches if self._num_batches else 0.0

    def help(self) -> list[tuple[int, Any]]:
        """`work`, on whatever worker: how operations run is said for each thread by itself."""
        with _operations(self._pipeline):
            return self.work()

    def work(self) -> list[tuple[int, Any]]:
        """Take batches while there are any; the states that come of them, each with its first row."""
        states: list[tuple[int, Any]] = []
        initial, partial, ordered = self._initial, self._breaker.partial, self._breaker.ordered
        folded: Any = None if ordered else initial
        begin, num_rows = time.thread_time(), 0
        for start, stop in self.batches:
            if self._comes_too_late((start, stop)):
                continue
            num_rows += stop - start
            for row, outputs in self._run(start, stop):
                if ordered:
                    states.append((row, partial(outputs, initial)))
                else:
                    folded = partial(outputs, folded)
        if folded is not None:
            states.append((0, folded))
        self.seconds.append(time.thread_time() - begin)
        self.num_rows.append(num_rows)
        return states

    def until(self, wanted: int, spans: Sequence[tuple[int, int]], batch_rows: int) -> list[tuple[int, Any]]:
        """Batch by batch, until the pipeline has put out as many rows as anybody wants."""
        states, rows = [], 0
        for start, stop in cut_spans(spans, min(batch_rows, max(2048, wanted))):
            for row, outputs in self._run(start, stop):
                states.append((row, self._breaker.partial(outputs, self._initial)))
                rows += outputs[0]
            if rows >= wanted:
                break
        return states

    def _run(self, start: int, stop: int) -> Iterable[tuple[int, Any]]:
        """The outputs for rows [start, stop) of the source, in more than one piece if a join needs it."""
        self._workers.check()
        try:
            return ((start, self._function(*self._arguments(start, stop))),)
        except TooManyPairs as error:
            if stop - start <= 1:
                raise ResourceError(_TOO_MANY_MATCHES) from None
            return self._run_pieces(start, stop, max(1, (stop - start) // error.pieces))

    def _run_pieces(self, start: int, stop: int, step: int) -> Iterator[tuple[int, Any]]:
        for at in range(start, stop, step):
            yield from self._run(at, min(at + step, stop))
