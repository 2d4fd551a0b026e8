"""Work shared among threads: in order, once each, and with what goes wrong in it."""

from __future__ import annotations

import threading
import time

import pytest

from tqp.data.sharing import share


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
