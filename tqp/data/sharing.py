"""Work shared among threads: items that each of them pulls in turn, whole columns, and the pieces of one column."""

from __future__ import annotations

import itertools
import operator
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from tqp.core.process.forks import renew_after_fork
from tqp.core.process.memory_budget import charged_to, check, current_budget
from tqp.core.process.waiting import A_WHILE

#: Rows of a column from which encoding it takes longer than waking a thread.
WORTH_SHARING = 65_536

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Handout(Iterator[Item]):
    """The items of an iterable for several threads that pull from it at once: each item is handed out once.

    An iterator of Python's own is safe to pull from only as far as the interpreter lock makes a step of it one, and
    free-threaded Python has none.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._items, self._lock = iter(items), threading.Lock()
        self.handed_out = 0

    def __next__(self) -> Item:
        with self._lock:
            item = next(self._items)
            self.handed_out += 1
            return item

    def end(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._items = iter(())


def work_together(
    work: Callable[[], list[Outcome]], pool: ThreadPoolExecutor, num_helpers: int, left: Handout[Item]
) -> list[Outcome]:
    """What `work()` returns in the calling thread and in up to `num_helpers` of the pool's, which pull from `left`.

    Helpers that have not started when the calling thread is done never do, so that work may itself be shared in the same
    pool; while it waits for those that have, it helps with what they share. Raises what a call raises, after all that have
    begun are done; the others begin nothing more.
    """
    if num_helpers <= 0:
        return work()
    outer = _open_work.get()
    offers = _Offers() if outer is None else outer.offers
    offer = _Offer(work, left, offers, 0 if outer is None else outer.depth + 1)
    helpers = []
    with suppress(
        RuntimeError
    ):  # a pool that is closing takes no more work: the calling thread does it alone
        for _ in range(num_helpers):
            helpers.append(pool.submit(offer.join))
    offers.add(offer)
    try:
        outcomes = offer.run()
    finally:
        joined = offer.close()
        for helper in helpers:
            helper.cancel()
        offers.help_until_done(joined, offer.depth)
    return list(itertools.chain(outcomes, *(each.result() for each in joined)))


class _Offer(Generic[Outcome]):
    """Work that other threads may join, until the one that shares it is through with its part."""

    def __init__(
        self, work: Callable[[], list[Outcome]], left: Handout[Any], offers: _Offers, depth: int
    ) -> None:
        """`depth`: within how much other shared work."""
        self.offers, self.depth = offers, depth
        self._work, self._left, self._budget = work, left, current_budget()
        self._lock, self._is_open = threading.Lock(), True
        self._joined: list[Future[list[Outcome]]] = []

    def run(self) -> list[Outcome]:
        """The calling thread's part; where it fails, nothing more is begun."""
        token = _open_work.set(self)
        try:
            with charged_to(self._budget):
                return self._work()
        except BaseException:
            self._left.end()
            raise
        finally:
            _open_work.reset(token)

    def join(self) -> None:
        """Do a part on another thread, unless it is too late."""
        part: Future[list[Outcome]] = Future()
        with self._lock:
            if not self._is_open:
                return
            self._joined.append(part)
        try:
            part.set_result(self.run())
        except BaseException as error:  # noqa: BLE001  (raised by the thread that shares the work)
            part.set_exception(error)
        finally:
            self.offers.changed()

    def close(self) -> Sequence[Future[list[Outcome]]]:
        """Let nobody join any more; the parts of those who have."""
        with self._lock:
            self._is_open = False
        self.offers.remove(self)
        return self._joined


class _Offers:
    """What is shared just now within one piece of work, by all threads that take part in it."""

    def __init__(self) -> None:
        self._open: list[_Offer[Any]] = []
        self._condition = threading.Condition()

    def add(self, offer: _Offer[Any]) -> None:
        with self._condition:
            self._open.append(offer)
            self._condition.notify_all()

    def remove(self, offer: _Offer[Any]) -> None:
        with self._condition:
            self._open.remove(offer)

    def changed(self) -> None:
        """A part is done."""
        with self._condition:
            self._condition.notify_all()

    def help_until_done(self, parts: Sequence[Future[Any]], depth: int) -> None:
        """Return when the parts are done; until then, join what is shared at a greater depth, once each."""
        helped: set[_Offer[Any]] = set()
        while True:
            with self._condition:
                if all(part.done() for part in parts):
                    return
                found = next((each for each in self._open if each.depth > depth and each not in helped), None)
                if found is None:
                    self._condition.wait(A_WHILE)
                    continue
            helped.add(found)
            found.join()


#: The shared work that a thread takes part in.
_open_work: ContextVar[_Offer[Any] | None] = ContextVar("open work", default=None)


def map_in_pool(
    function: Callable[[Item], Outcome], items: Sequence[Item], pool: ThreadPoolExecutor, threads: int
) -> list[Outcome]:
    """function(item) of each item, in order, computed by `threads` threads at most, the calling one among them."""
    numbered = Handout(enumerate(items))

    def work() -> list[tuple[int, Outcome]]:
        outcomes = []
        for number, item in numbered:
            check()
            outcomes.append((number, function(item)))
        return outcomes

    outcomes = work_together(work, pool, min(threads, len(items)) - 1, numbered)
    return [outcome for _, outcome in sorted(outcomes, key=operator.itemgetter(0))]


def share(function: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
    """function(item) of each item, in order, computed by the calling thread and by idle ones; see `threads_at_work`.

    The calling thread does what no other has begun, so that functions may share work themselves. Raises what a call raises,
    after all that have begun are done.
    """
    threads = threads_at_work()
    if threads == 1:
        return list(map(function, items))
    return map_in_pool(function, items, _pools.of(threads), threads)


def threads_at_work() -> int:
    """How many threads share the work of the calling thread's query, itself among them; of no query's, as many as there are processors."""
    budget = current_budget()
    return processors() if budget is None else budget.threads


class _Pools:
    """Helpers for as long as the process lives; none is started before there is work for it.

    One pool for each number of threads: work that is shared within shared work is done by no more than that.
    """

    def __init__(self) -> None:
        self._made: dict[int, ThreadPoolExecutor] = {}
        renew_after_fork(self)

    def of(self, threads: int) -> ThreadPoolExecutor:
        """The pool with one helper less than that, as the calling thread works too."""
        pool = self._made.get(threads)
        if pool is None:  # of two pools that are made at once, one is forgotten, and its threads end
            pool = self._made[threads] = ThreadPoolExecutor(threads - 1, "tqp-encode")
        return pool

    def after_fork(self) -> None:
        self._made.clear()


_pools = _Pools()


def processors() -> int:
    """How many this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1
