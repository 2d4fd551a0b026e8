"""How a run ends early: asked by a signal, it stops between two queries; its workers do too, and end when their parent is gone."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Whether this process was asked to stop."""

    def __init__(self) -> None:
        self.is_made = False

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """While this lasts, SIGINT and SIGTERM only ask; whoever works looks whether they did."""
        before = [signal.signal(number, self._make) for number in _SIGNALS]
        try:
            yield
        finally:
            for number, handler in zip(_SIGNALS, before, strict=True):
                signal.signal(number, handler)

    def _make(self, number: int, frame: FrameType | None) -> None:
        self.is_made = True


#: Of this process.
stop_request = StopRequest()


def begin_worker() -> None:
    """Called first in a worker: SIGTERM asks it to stop; a SIGINT of the terminal is for its parent, which asks then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, stop_request._make)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
