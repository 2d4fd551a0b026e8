"""Runs a recursive function again on a thread with a large stack where the interpreter's recursion limit ended it.

Parsing, binding and rewriting recurse with the nesting of the query. Nearly every query fits into the limit that the
caller has; only one that does not pays for a thread and is planned twice.
"""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from tqp.core.errors import UnsupportedError

T = TypeVar("T")

#: Calls within calls on the large stack. Some 500 parentheses take 15,000; a call through C takes at most 2 KiB of stack.
_RECURSION_LIMIT = 120_000

_STACK_BYTES = 512 << 20  # of address space: a page counts when it is first touched

_state = threading.local()  # `is_outermost_known`: a call further out tries again, or did
_one_at_a_time = threading.Lock()  # the recursion limit is the process's, not the thread's
_starting = threading.Lock()


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
    _state.is_outermost_known = True
    try:
        return function()
    except RecursionError:
        pass  # the traceback, and with it all that the first attempt made, is dropped before the second
    finally:
        _state.is_outermost_known = False
    return _on_large_stack(function)


def _on_large_stack(function: Callable[[], T]) -> T:
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        _state.is_outermost_known = True
        try:
            with _one_at_a_time:
                before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
                try:
                    results.append(function())
                finally:
                    sys.setrecursionlimit(before)
        except RecursionError:
            errors.append(_too_deep())
        except BaseException as error:  # noqa: BLE001  raised in the thread that waits
            errors.append(error)

    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(work,), name="tqp-deep-recursion", daemon=True
    )
    try:
        with _starting:
            usual = threading.stack_size(_STACK_BYTES)
            try:
                thread.start()
            finally:
                threading.stack_size(usual)
    except (RuntimeError, MemoryError):  # no thread, or no address space for its stack
        raise _too_deep() from None
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _too_deep() -> UnsupportedError:
    return UnsupportedError(
        "the query is nested too deeply; flatten it: split it into CTEs, or tables, that build on each other"
    )


def _after_fork() -> None:
    """A forked child has neither the thread that held a lock nor its deep stack."""
    global _one_at_a_time, _starting
    _one_at_a_time, _starting = threading.Lock(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
