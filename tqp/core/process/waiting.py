"""Waiting for other threads so that Ctrl-C ends it.

The main thread handles a signal between two steps of Python. One that comes just before it begins to wait for a lock is not
handled until it has the lock, however long that takes: so it waits a while only, and then goes on to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

Outcome = TypeVar("Outcome")

#: Seconds of one wait.
A_WHILE = 0.2


def result_of(future: Future[Outcome]) -> Outcome:
    """What the future holds, when it does."""
    while True:
        try:
            return future.result(A_WHILE)
        except TimeoutError:
            if future.done():  # then it may be its own
                return future.result()


def interruptible(function: Callable[[], Outcome], check: Callable[[], None]) -> Outcome:
    """`function()`, which may take long without a step of Python between: on a thread of its own, which is left to itself where
    waiting for it is interrupted, or `check()` raises.
    """
    outcome: Future[Outcome] = Future()
    context = copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(function))
        except BaseException as error:  # noqa: BLE001  (raised by the thread that waits)
            outcome.set_exception(error)

    Thread(target=work, name="tqp-read", daemon=True).start()
    while not outcome.done():
        check()
        wait([outcome], A_WHILE)
    return outcome.result()


def join(thread: Thread) -> None:
    """Return when the thread has ended."""
    while thread.is_alive():
        thread.join(A_WHILE)
