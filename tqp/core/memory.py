"""The memory budget of the query that a thread works for: asked before what is large is allocated.

Whoever allocates much calls `reserve` and needs to know nothing of connections and their limits. Threads that help with a
query's work take its budget over with `charged_to`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Budget(Protocol):
    """How much memory queries may take; see `tqp.runtime.memory.MemoryBudget`."""

    def reserve(self, size: int) -> None:
        """Raise ResourceError if `size` more bytes would be too much."""
        ...


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


def reserve(size: int = 0) -> None:
    """Raise ResourceError if `size` bytes beyond what the process holds now are over the limit of this thread's query.

    With 0, whether the limit is passed already. Does nothing in a thread that works for no query.
    """
    budget = _budget.get()
    if budget is not None:
        budget.reserve(size)


def current_budget() -> Budget | None:
    """The budget that the calling thread's allocations are charged to."""
    return _budget.get()


@contextmanager
def charged_to(budget: Budget | None) -> Iterator[None]:
    """In the block, what the calling thread allocates is charged to `budget`."""
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)
