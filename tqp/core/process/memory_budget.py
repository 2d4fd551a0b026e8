"""The budget of the query that a thread works for: its memory, asked before what is large is allocated, its threads, and whether it goes on.

Whoever allocates much calls `reserve`, whoever works long `check`, and need to know nothing of connections. Threads that help with a
query's work take its budget over with `charged_to`. Beside it stands how much memory tables have given up.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tqp.core.process.progress import Stage

#: What is read of files may take no more than this share of the memory that queries may take, or it is read in pieces.
_SHARE_OF_FILES = 0.25


class Budget(Protocol):
    """What queries may take; see `tqp.runtime.memory_limit.MemoryBudget`."""

    @property
    def limit(self) -> int | None:
        """Bytes; None where nothing is known of a limit."""
        ...

    @property
    def threads(self) -> int:
        """How many threads share the query's work."""
        ...

    @property
    def shows_progress(self) -> bool:
        """Whether a bar shows how far the query is."""
        ...

    @property
    def stages(self) -> list[Stage]:
        """Those that the query is in, the outermost first."""
        ...

    def check(self) -> None:
        """Raise InterruptError if the query is to end."""
        ...

    def reserve(self, size: int) -> None:
        """Raise ResourceError if `size` more bytes would be too much; `check`."""
        ...

    def left(self) -> int | None:
        """Bytes that may still be taken, at least 0; None where nothing is known of a limit or of what is held."""
        ...


class _Charge:
    """That one block of a thread is charged to a budget: lives as long as the block, however that ends.

    An interrupt may come while a block is left, and what a `with` statement leaves half done is finished when its exception is
    forgotten, after the blocks around it. So a thread knows its charge by a weak reference: what an interrupt left behind
    counts for nothing.
    """

    def __init__(self, budget: Budget | None) -> None:
        self.budget = budget


_charge: ContextVar[weakref.ref[_Charge] | None] = ContextVar("charge", default=None)


def reserve(size: int = 0) -> None:
    """Raise ResourceError if `size` bytes beyond what the process holds now are over the limit of this thread's query.

    With 0, whether the limit is passed already. Raises InterruptError if somebody interrupted it. Does nothing in a thread that works for no query.
    """
    budget = current_budget()
    if budget is not None:
        budget.reserve(size)


def check() -> None:
    """Raise InterruptError if somebody interrupted this thread's query."""
    budget = current_budget()
    if budget is not None:
        budget.check()


def bytes_left() -> int | None:
    """How many more bytes this thread's query may take; None where that is not known, or in a thread that works for none."""
    budget = current_budget()
    return None if budget is None else budget.left()


def most_of_a_file() -> int | None:
    """Bytes of a table from which on this thread's query reads it in pieces, None where it never does."""
    budget = current_budget()
    return None if budget is None or budget.limit is None else int(_SHARE_OF_FILES * budget.limit)


def current_budget() -> Budget | None:
    """The budget that the calling thread's allocations are charged to."""
    reference = _charge.get()
    charge = reference and reference()
    return charge.budget if charge else None


@contextmanager
def charged_to(budget: Budget | None) -> Iterator[None]:
    """In the block, what the calling thread allocates is charged to `budget`."""
    charge = _Charge(budget)
    token = _charge.set(weakref.ref(charge))
    try:
        yield
    finally:
        _charge.reset(token)


# The sizes that were noted. A list, not a sum: a finalizer may run between reading a sum and writing it.
_freed: list[int] = []


def note_freed(size: int) -> None:
    """Count `size` bytes of a table that nobody refers to any more. May be called in a finalizer."""
    _freed.append(size)


def was_freed(least: int) -> bool:
    """Whether tables of at least `least` bytes were freed since this was last true."""
    freed = sum(_freed)
    _freed[:] = [] if freed >= least else [freed]
    return freed >= least
