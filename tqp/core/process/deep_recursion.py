"""Runs a recursive function again on a thread with a large stack where the interpreter's recursion limit ended it.

Parsing, binding and rewriting recurse with the nesting of the query. Nearly every query fits into the limit that the
caller has; only one that does not pays for a thread and is planned twice.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from tqp.core.errors import UnsupportedError
from tqp.core.process.forks import renew_after_fork
from tqp.core.process.waiting import join

T = TypeVar("T")

#: Calls within calls on the large stack. Some 500 parentheses take 15,000; a call through C takes at most 2 KiB of stack.
_RECURSION_LIMIT = 120_000

_STACK_BYTES = 512 << 20  # of address space: a page counts when it is first touched

_state = threading.local()  # `is_outermost_known`: a call further out tries again, or did


def call_deep(function: Callable[[], T]) -> T:
    """`function()`; called again on a large stack if it raises RecursionError here, so it must not mind a first attempt.

    The caller's recursion limit is what it was afterwards. Raises what the function raises, and UnsupportedError where
    the large stack does not suffice either.

    >>> def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
    >>> call_deep(lambda: depth(20_000))
    20000
    """
    if getattr(_state, "is_outermost_known", False):
        return function()
    if not _limit.keep():
        return _on_large_stack(function)
    _state.is_outermost_known = True
    try:
        return function()
    except RecursionError:
        pass  # the traceback, and with it all that the first attempt made, is dropped before the second
    finally:
        _state.is_outermost_known = False
        _limit.let_go()
    return _on_large_stack(function)


class _RecursionLimit:
    """The interpreter's recursion limit, which is one for all threads: raised while any of them runs on a large stack.

    A first attempt on a small stack relies on the limit to end it before the stack does. So the limit is raised only when
    no first attempt runs, and who comes meanwhile takes a large stack at once.
    """

    def __init__(self) -> None:
        self._before = 0  # the limit, while it is raised
        self.after_fork()

    def after_fork(self) -> None:
        """A forked child has none of the threads that counted here."""
        if self._before:
            sys.setrecursionlimit(self._before)
            self._before = 0
        self.starting = threading.Lock()  # held while the size of new threads' stacks is another
        self._changed = threading.Condition()
        self._first_attempts = 0
        self._deep = 0  # that run on a large stack, or wait for it

    def keep(self) -> bool:
        """Have the limit stay as it is until `let_go`; False where it is raised, or about to be."""
        with self._changed:
            if self._deep:
                return False
            self._first_attempts += 1
            return True

    def let_go(self) -> None:
        """The first attempt is over."""
        with self._changed:
            self._first_attempts -= 1
            self._changed.notify_all()

    @contextlib.contextmanager
    def raised(self) -> Iterator[None]:
        """In the block, calls may nest as deep as a large stack allows."""
        with self._changed:
            self._deep += 1
            self._changed.wait_for(lambda: self._first_attempts == 0)
            if not self._before:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, _RECURSION_LIMIT))
        try:
            yield
        finally:
            with self._changed:
                self._deep -= 1
                if not self._deep:
                    sys.setrecursionlimit(self._before)
                    self._before = 0


_limit = _RecursionLimit()
renew_after_fork(_limit)


def _on_large_stack(function: Callable[[], T]) -> T:
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        _state.is_outermost_known = True
        try:
            with _limit.raised():
                results.append(function())
        except RecursionError:
            errors.append(_too_deep())
        except BaseException as error:  # noqa: BLE001  raised in the thread that waits
            errors.append(error)

    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(work,), name="tqp-deep-recursion", daemon=True
    )
    try:
        with _limit.starting:
            usual = threading.stack_size(_STACK_BYTES)
            try:
                thread.start()
            finally:
                threading.stack_size(usual)
    except (RuntimeError, MemoryError):  # no thread, or no address space for its stack
        raise _too_deep() from None
    join(thread)
    if errors:
        raise errors[0]
    return results[0]


def _too_deep() -> UnsupportedError:
    return UnsupportedError(
        "the query is nested too deeply; flatten it: split it into CTEs, or tables, that build on each other"
    )
