"""Work on columns shared among threads: whole columns, and the chunks of one column."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

#: Rows of a column from which encoding it takes longer than waking a thread.
WORTH_SHARING = 65_536

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def share(function: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
    """function(item) of each item, in order, computed by the calling thread and by idle ones.

    The calling thread does what no other has begun, so that functions may share work themselves. Raises what a call raises,
    after all that have begun are done.
    """
    numbered = iter(enumerate(items))

    def work() -> list[tuple[int, Any]]:
        return [(number, function(item)) for number, item in numbered]

    helpers: list[Future[list[tuple[int, Any]]]] = []
    if len(items) > 1:
        helpers = [_pool().submit(work) for _ in range(min(len(items), os.cpu_count() or 1) - 1)]
    try:
        results = work()
    except BaseException:
        for _ in numbered:  # leave nothing for the others to begin
            pass
        wait([helper for helper in helpers if not helper.cancel()])
        raise
    running = [helper for helper in helpers if not helper.cancel()]
    wait(running)
    for helper in running:
        results += helper.result()
    return [result for _, result in sorted(results, key=operator.itemgetter(0))]


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Threads for as long as the process lives; none is started before there is work for it."""
    return ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), "tqp-encode")
