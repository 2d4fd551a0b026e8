"""Python's search for cycles of garbage, put off while it would be in vain."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collected_later() -> Iterator[None]:
    """Pause Python's search for cycles of garbage, if it is on.

    Planning makes tens of thousands of objects that live until its end. They would start the search several times a query,
    in vain, and after some twenty queries the one through all objects of the process: 0.1 s where torch is loaded. What
    is garbage at the end is found by the first search afterwards, among the youngest objects.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
