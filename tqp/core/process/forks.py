"""What a forked child has to make anew: locks that a thread of its parent held, and threads, which it does not have."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something with locks or threads."""

    def after_fork(self) -> None:
        """Make them anew; called in the child, by its only thread."""
        ...


_forkable: weakref.WeakSet[Forkable] = weakref.WeakSet()


def renew_after_fork(item: Forkable) -> None:
    """Have `item.after_fork()` called in every child that is forked while `item` lives."""
    _forkable.add(item)


def _renew() -> None:
    for item in list(_forkable):
        item.after_fork()


if hasattr(os, "register_at_fork"):  # not on every platform
    os.register_at_fork(after_in_child=_renew)
