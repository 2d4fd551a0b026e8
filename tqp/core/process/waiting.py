"""Waiting for other threads so that Ctrl-C ends it.

The main thread handles a signal between two steps of Python. One that comes just before it begins to wait for a lock is not
handled until it has the lock, however long that takes: so it waits a while only, and then goes on to wait.
"""

from __future__ import annotations

from concurrent.futures import Future
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


def join(thread: Thread) -> None:
    """Return when the thread has ended."""
    while thread.is_alive():
        thread.join(A_WHILE)
