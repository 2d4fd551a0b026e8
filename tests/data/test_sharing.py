"""Work shared among threads: in order, once each, and with what goes wrong in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp
from tests.settings import sharing_threads
from tqp.data.encoding import integers as encode_integers
from tqp.data.sharing import Handout, map_in_pool, share
from tqp.data.sources.make_source import make_source


def test_results_are_in_order() -> None:
    assert share(lambda item: item * item, list(range(100))) == [item * item for item in range(100)]
    assert share(str, []) == []


def test_work_that_shares_work_ends() -> None:
    def outer(item: int) -> int:
        return sum(share(lambda inner: inner * item, list(range(50))))

    assert share(outer, list(range(50))) == [sum(range(50)) * item for item in range(50)]


@pytest.mark.parametrize("failing", [0, 7, 19])
def test_what_a_call_raises_comes_after_all_that_began_have_ended(failing: int) -> None:
    running, lock = [0], threading.Lock()

    def work(item: int) -> None:
        with lock:
            running[0] += 1
        try:
            time.sleep(0.001)
            if item == failing:
                raise ValueError(item)
        finally:
            with lock:
                running[0] -= 1

    with pytest.raises(ValueError, match=str(failing)):
        share(work, list(range(20)))
    assert running == [0]


def at_once(work: Callable[[], object], threads: int = 8) -> list[Any]:
    """What `work()` gives in each of some threads that begin together."""
    barrier = threading.Barrier(threads)

    def begin() -> object:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(threads) as pool:
        return [future.result() for future in [pool.submit(begin) for _ in range(threads)]]


def test_a_handout_gives_each_item_once() -> None:
    """Python's own iterators fail here, but only where there is no interpreter lock."""
    handout = Handout(enumerate(range(50_000)))
    taken = at_once(lambda: list(handout))
    assert sorted(item for items in taken for item in items) == [(i, i) for i in range(50_000)]


def test_a_handout_that_is_ended_gives_nothing_more() -> None:
    handout = Handout(range(3))
    assert next(handout) == 0
    handout.end()
    assert list(handout) == []


def test_each_item_is_worked_on_once_by_as_many_threads_as_like() -> None:
    """Two of a kind, where items are handed out twice, happen on free-threaded Python only."""
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert map_in_pool(lambda item: item, range(20_000), pool, 8) == list(range(20_000))


def test_tables_made_at_once_have_versions_of_their_own() -> None:
    columns = {"a": np.arange(1)}
    made = at_once(lambda: [make_source("t", columns, torch.device("cpu")).version for _ in range(500)])
    assert len({version for versions in made for version in versions}) == 8 * 500


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_work_is_shared_by_as_many_threads_as_are_asked_for(threads: int) -> None:
    running: set[int] = set()
    most, lock = [0], threading.Lock()

    def inner(item: int) -> None:
        thread = threading.get_ident()
        with lock:
            running.add(thread)
            most[0] = max(most[0], len(running))
        time.sleep(0.0005)
        with lock:
            running.discard(thread)

    with sharing_threads(threads):
        share(lambda item: share(inner, range(8)), range(8))
    assert 1 <= most[0] <= threads


def test_who_waits_for_a_helper_helps_with_what_it_shares() -> None:
    caller, began = threading.get_ident(), threading.Event()
    workers: set[int] = set()

    def inner(_: int) -> None:
        workers.add(threading.get_ident())
        time.sleep(0.002)

    def outer(_: int) -> None:
        if threading.get_ident() == caller:
            assert began.wait(10)  # the other item is the helper's
        else:
            began.set()
            share(inner, range(50))

    with sharing_threads(2):
        share(outer, range(2))
    assert len(workers) == 2 and caller in workers


def test_what_fails_in_work_that_a_waiting_thread_joined_is_raised() -> None:
    caller, began = threading.get_ident(), threading.Event()

    def inner(item: int) -> None:
        time.sleep(0.002)
        if threading.get_ident() == caller:
            raise ValueError(item)

    def outer(_: int) -> None:
        if threading.get_ident() == caller:
            assert began.wait(10)
        else:
            began.set()
            share(inner, range(50))

    with sharing_threads(2), pytest.raises(ValueError):
        share(outer, range(2))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_connection_encodes_with_its_number_of_threads(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[int] = set()
    all_came = threading.Event()
    narrow = encode_integers.narrow

    def noting(*arguments: Any) -> Any:
        seen.add(threading.get_ident())
        if len(seen) >= threads:
            all_came.set()
        all_came.wait(10)  # on a busy machine one might else do it all before the others start
        return narrow(*arguments)

    monkeypatch.setattr(encode_integers, "narrow", noting)
    table = pa.table({name: np.arange(300_000) * 7 % 1000 for name in "abc"})
    with tqp.connect(threads=threads) as connection:
        connection.register("t", table)
        assert connection.sql("SELECT max(a), max(b), max(c) FROM t").fetchall() == [(999, 999, 999)]
    assert len(seen) == threads
