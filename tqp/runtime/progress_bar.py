"""A bar of how far a query is, once it has run for half a second: in a terminal or a notebook, and nowhere else.

One thread looks after all queries of the process whose connections want a bar. It ends soon after the last of them, so that
short queries in a row find it there, and a program that waits has no thread that wakes.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from tqp.core.process.forks import renew_after_fork
from tqp.core.process.progress import Stage, fraction_done

if TYPE_CHECKING:
    from rich.progress import Progress

#: Seconds that a query has run before it gets a bar.
DELAY = 0.5
#: Seconds between two looks.
_PAUSE = 0.1
#: Seconds without any query before the thread ends.
_IDLE = 0.5


class Watched(Protocol):
    """A running query; see `tqp.runtime.memory_limit.RunningQuery`."""

    @property
    def stages(self) -> list[Stage]:
        """Those that it is in, the outermost first."""
        ...


def is_interactive() -> bool:
    """Whether somebody types at Python: there a connection has a bar unless it is told otherwise, as DuckDB's has."""
    return not hasattr(sys.modules["__main__"], "__file__")


class ProgressBars:
    """The bar, which shows the query that has run longest."""

    def __init__(self) -> None:
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        # Weak, as an interrupt may end a query before it is discarded here.
        self._begun: WeakKeyDictionary[Watched, float] = WeakKeyDictionary()
        self._is_watching = False
        self._bar: Progress | None = None

    @contextmanager
    def shown(self, query: Watched) -> Iterator[None]:
        """In the block, the query has a bar where it takes long."""
        with self._lock:
            self._begun[query] = time.monotonic()
            if not self._is_watching:
                self._is_watching = True
                threading.Thread(target=self._watch, name="tqp-progress", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._begun.pop(query, None)
                if not self._begun:
                    self._erase()

    def _watch(self) -> None:
        last = time.monotonic()
        while True:
            time.sleep(_PAUSE)
            now = time.monotonic()
            with self._lock:
                long = [query for query, begun in self._begun.items() if now - begun >= DELAY]
                if self._begun:
                    last = now
                elif now - last > _IDLE:
                    self._is_watching = False
                    return
                with suppress(OSError, ValueError):  # of a terminal that is gone
                    if long:
                        self._draw(list(long[0].stages))
                    else:
                        self._erase()
                long.clear()

    def _draw(self, stages: list[Stage]) -> None:
        if self._bar is None:
            self._bar = _new_bar()
            if self._bar is None:
                return
            self._bar.start()
            self._bar.add_task("", total=None)
        [task] = self._bar.task_ids
        title = next((stage.title for stage in reversed(stages) if stage.title), "preparing")
        total = 1.0 if stages else None
        self._bar.update(task, description=title, total=total, completed=fraction_done(stages))
        self._bar.refresh()

    def _erase(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            with suppress(OSError, ValueError):
                bar.stop()


def _new_bar() -> Progress | None:
    """None where there is nobody to see it, or a notebook lacks what draws it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if console.is_jupyter:
        is_seen = importlib.util.find_spec("ipywidgets") is not None
    else:
        is_seen = sys.stderr is not None and sys.stderr.isatty()
    if not is_seen:
        return None
    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    # What a query prints is left alone: rich would stand in for sys.stdout, in another thread's hands.
    return Progress(
        *columns,
        console=console,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )


progress_bars = ProgressBars()
