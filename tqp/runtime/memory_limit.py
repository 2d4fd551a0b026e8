"""The limit on memory: what the process may grow by while queries of a connection run, and where its default comes from.

Memory is measured, not estimated: on the CPU the pages that the process holds, on CUDA what torch has allocated there. So
everything counts, temporaries of kernels and newly encoded columns too. It is measured before every batch, between the
stages of a query, and before large allocations (`tqp.core.process.memory_budget.reserve`).

The C library is told to keep freed memory for the next batch instead of giving it back, or to give it back now: the first
touch of a fresh page costs as much as computing thousands of values in it (see docs/performance.md), and every batch of every
query would pay it again.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, InvalidStateError
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import pyarrow as pa
import torch

from tqp.core.errors import InterruptError, ResourceError
from tqp.core.process.forks import renew_after_fork
from tqp.core.process.memory_budget import charged_to, current_budget, was_freed
from tqp.core.process.progress import Stage
from tqp.core.process.waiting import result_of
from tqp.operators.memory import allocation
from tqp.runtime.progress_bar import is_interactive, progress_bars

Outcome = TypeVar("Outcome")

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
# names and numbers as in glibc's malloc.h
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
#: The largest threshold that glibc takes; larger blocks go back when they are freed.
_LARGEST_BLOCK = 32 << 20
_PAD = 64 << 20
#: Bytes of tables that are freed before freed memory goes back, which takes about 1 ms, and some more where it is wanted
#: again; to encode a table of that size takes at least 20 ms.
_FREED_TABLES = 8 << 20
#: With less left than this, freed memory is given back before a batch is cut for want of it.
_WORTH_GIVING_BACK = 64 << 20
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class MemoryBudget:
    """What the queries of one connection may take together: `limit` bytes above what was held before the first of them.

    `limit` None: as much as `default_limit` says. `threads`: that share the work of each.
    """

    def __init__(self, limit: int | None, device: torch.device, threads: int) -> None:
        self.limit, self.threads = limit or default_limit(device), threads
        #: Whether a bar shows how far a query is that takes long.
        self.shows_progress = is_interactive()
        self._device = device
        self._before = 0  # bytes held when the first of the running queries began
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """A child runs none of its parent's queries."""
        self._lock = threading.Lock()
        # Weak, as an interrupt may end a query before it is discarded here.
        self._running: weakref.WeakSet[RunningQuery] = weakref.WeakSet()

    @contextlib.contextmanager
    def query(self) -> Iterator[RunningQuery]:
        """In the block a query runs: what the calling thread allocates counts. Blocks of several threads may overlap.

        Within such a block of the thread there is nothing more to do.
        """
        outer = current_budget()
        if isinstance(outer, RunningQuery) and outer.budget is self:
            yield outer
            return
        query = RunningQuery(self)
        with self._lock:
            if not self._running:
                self._before = held_bytes(self._device) or 0
            self._running.add(query)
        try:
            with (
                progress_bars.shown(query) if self.shows_progress else contextlib.nullcontext(),
                charged_to(query),
            ):
                yield query
        finally:
            with self._lock:
                self._running.discard(query)

    def interrupt(self) -> None:
        """End the queries that run now."""
        with self._lock:
            running = list(self._running)
        for query in running:
            query.interrupt()

    def reserve(self, size: int) -> None:
        """Raise ResourceError if `size` more bytes would be over the limit."""
        taken = self._taken(size)
        if self.limit is not None and taken is not None and taken + size > self.limit:
            raise ResourceError(
                f"the query needs more memory than its limit of {self.limit / 2**20:.0f} MiB; "
                "select fewer columns or rows, or raise the limit with tqp.connect(memory_limit=...)"
            )

    def left(self) -> int | None:
        """Bytes that may still be taken, at least 0; None where there is no limit, or nothing says what is held."""
        taken = self._taken(_WORTH_GIVING_BACK)
        return None if self.limit is None or taken is None else max(0, self.limit - taken)

    def _taken(self, wanted: int = 0) -> int | None:
        """Bytes by which the process has grown since the first of the running queries began.

        Where that and the bytes `wanted` are over the limit, freed memory that is kept for later does not count: it goes back.
        """
        held = held_bytes(self._device)
        if held is None:
            return None
        if (
            self.limit is not None
            and held - self._before + wanted > self.limit
            and self._device.type == "cpu"
        ):
            give_freed_memory_back()
            held = held_bytes(self._device) or 0
        return held - self._before


class RunningQuery:
    """A running query, to which its threads' allocations are charged: lives as long as its block of `MemoryBudget.query`."""

    def __init__(self, budget: MemoryBudget) -> None:
        self.budget = budget
        self._is_interrupted = False
        self._awaited: Future[Any] | None = None
        self.stages: list[Stage] = []

    @property
    def limit(self) -> int | None:
        """See `tqp.core.process.memory_budget.Budget`."""
        return self.budget.limit

    @property
    def threads(self) -> int:
        """See `tqp.core.process.memory_budget.Budget`."""
        return self.budget.threads

    @property
    def shows_progress(self) -> bool:
        """See `tqp.core.process.memory_budget.Budget`."""
        return self.budget.shows_progress

    def check(self) -> None:
        """Raise InterruptError if the query is to end."""
        if self._is_interrupted:
            raise InterruptError("the query was interrupted")

    def reserve(self, size: int) -> None:
        """Raise ResourceError if `size` more bytes would be over the limit; `check`."""
        self.check()
        self.budget.reserve(size)

    def left(self) -> int | None:
        """See `MemoryBudget.left`."""
        return self.budget.left()

    def wait_for(self, outcome: Future[Outcome]) -> Outcome:
        """The outcome, or InterruptError as soon as the query is interrupted."""
        self._awaited = outcome
        try:
            self.check()
            return result_of(outcome)
        finally:
            self._awaited = None
            del outcome  # an error that is raised knows this frame, and would know itself

    def interrupt(self) -> None:
        """End it: whoever waits for it goes on at once, those who work for it end soon."""
        self._is_interrupted = True
        if self._awaited is not None:
            with contextlib.suppress(InvalidStateError):  # it is there already
                self._awaited.set_exception(InterruptError("the query was interrupted"))


def held_bytes(device: torch.device) -> int | None:
    """Memory that the process holds on the device; None where that is not known."""
    if device.type == "cuda":  # memory_allocated() makes a sorted flat dict of some 70 numbers of it first
        stats = torch.cuda.memory_stats_as_nested_dict(device)
        return int(stats["allocated_bytes"]["all"]["current"]) if stats else 0
    try:
        return int(os.pread(_open_statistics(os.getpid()), 128, 0).split()[1]) * _PAGE
    except (OSError, AttributeError):  # not on every platform
        return None


@functools.cache
def _open_statistics(process: int) -> int:
    """The kernel's page counts of a process as an open file: reading them anew takes 2 us, opening it 8 more.

    A forked child must not read those of its parent.
    """
    return os.open(f"/proc/{process}/statm", os.O_RDONLY | os.O_CLOEXEC)


def default_limit(device: torch.device) -> int | None:
    """Four fifths of the memory that the device, or the control group of the process, has; None where neither says."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory) * 4 // 5
    known = [size for size in (_physical_memory(), control_group_limit()) if size is not None]
    return min(known) * 4 // 5 if known else None


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * _PAGE
    except (AttributeError, ValueError, OSError):  # not on every platform
        return None


def control_group_limit(
    root: Path = _CONTROL_GROUPS, membership: Path = Path("/proc/self/cgroup")
) -> int | None:
    """The least memory limit of the process's control group (version 1 or 2) and of those above it; None without one."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    limits = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folder, file = root, "memory.max"
        elif "memory" in controllers.split(","):
            folder, file = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = PurePosixPath(path.lstrip("/"))
        for each in (group, *group.parents):
            with contextlib.suppress(OSError, ValueError):  # "max", or a group that is not visible from here
                limits.append(int((folder / each / file).read_text()))
    return min(limits, default=None)


@functools.cache
def keep_freed_memory() -> None:
    """Once a process: keep up to a sixteenth of the machine's memory when it is freed.

    Does nothing where the C library is not glibc. The thresholds are the process's: they also hold for the caller's own code.
    How many heaps its threads have is left to the C library.
    """
    mallopt = _c_function("mallopt")
    if mallopt is None:
        return
    kept = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 16
    mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK)
    mallopt(_TRIM_THRESHOLD, min(kept, 1 << 30))
    mallopt(_TOP_PAD, _PAD)


def give_freed_memory_back() -> None:
    """What nobody uses goes back to the operating system: kept blocks, Arrow's, and where the C library is glibc its free pages."""
    allocation.forget_kept_blocks()
    pa.default_memory_pool().release_unused()
    trim = _c_function("malloc_trim")
    if trim is not None:
        trim(0)


def give_back_memory_of_tables() -> None:
    """`give_freed_memory_back` if tables of some size were freed since: to be called where tables may have been.

    What was freed lies in pieces between what is still in use, and the next table's columns seldom fit into them: with one
    table after another under one name, more and more of the heap would be touched.
    """
    if was_freed(_FREED_TABLES):
        give_freed_memory_back()


def _c_function(name: str) -> Any:
    """A function of the C library, None where it has none of that name."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform.startswith("linux") else None
