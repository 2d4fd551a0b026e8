"""How far a query is: the stages that it is in, each within the one before.

What takes long and knows how much of it is done says so as a `Stage`. Nobody is told of each step: whoever shows how far a
query is asks its stages (`tqp.runtime.progress_bar`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType

from tqp.core.process.memory_budget import current_budget


class Stage(ABC):
    """A part of a query's work, which lasts as long as its `with` block."""

    def __init__(self, title: str = "") -> None:
        #: For people; empty: that of the stage around it says it.
        self.title = title

    @abstractmethod
    def fraction(self, inner: float) -> float:
        """How much of it is done, from 0 to 1, where the stage within it has done `inner`. Any thread may ask."""

    def __enter__(self) -> None:
        budget = current_budget()
        self._stages: list[Stage] = [] if budget is None else budget.stages
        self._stages.append(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stages.remove(self)


class Steps(Stage):
    """Steps one after the other, of sizes in a unit of their own, `total` together."""

    def __init__(self, title: str, total: int) -> None:
        super().__init__(title)
        #: More where a step turns out to be larger.
        self.total = total
        self._done, self._size = 0, 0

    def begin(self, size: int = 1) -> None:
        """The step before is done, and another begins."""
        self._done, self._size = self._done + self._size, size

    def fraction(self, inner: float) -> float:
        return min(1.0, (self._done + self._size * inner) / max(1, self.total))


def fraction_done(stages: Sequence[Stage]) -> float:
    """How much of the outermost stage is done, from 0 to 1.

    >>> halves, quarters = Steps("halves", 2), Steps("quarters", 4)
    >>> halves.begin()
    >>> halves.begin()
    >>> quarters.begin()
    >>> fraction_done([halves, quarters])
    0.5
    >>> quarters.begin()
    >>> fraction_done([halves, quarters])
    0.625
    """
    done = 0.0
    for stage in reversed(stages):
        done = stage.fraction(done)
    return done
