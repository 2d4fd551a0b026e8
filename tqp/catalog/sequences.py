"""Sequences: counters that queries draw numbers from. No transaction takes back what was drawn."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence as SequenceOf

import numpy as np
import torch

from tqp.core.datatypes import BIGINT, BOOLEAN, DataType
from tqp.core.definitions import SequenceDefinition
from tqp.core.errors import ExecutionError
from tqp.core.process.forks import renew_after_fork
from tqp.data.column import Column
from tqp.data.nested import Vector

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


class Sequence:
    """A counter under a name. Safe to use from several threads. Implements `tqp.planner.catalog_protocol.NumberSequence`."""

    def __init__(self, definition: SequenceDefinition) -> None:
        self.definition = definition
        #: The number that was drawn last; None before the first.
        self.last: int | None = None
        #: The one that is drawn next, unless it lies behind the bounds.
        self.next = definition.start
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Called in a forked child, where no other thread can hold the lock."""
        self._lock = threading.Lock()

    def values(self) -> SequenceValues:
        """The numbers of one call of nextval() in a query."""
        return SequenceValues(self)

    def setter(self) -> SequenceSetter:
        """One call of setval() in a query."""
        return SequenceSetter(self)

    def set(self, number: int, is_called: bool) -> None:
        """As if the number had been drawn last, or else so that it is drawn next. Raises ExecutionError where it cannot be."""
        definition, (low, high) = self.definition, BIGINT.bounds
        if not definition.minimum <= number <= definition.maximum:
            raise ExecutionError(
                f'setval: {number} is out of the bounds of the sequence "{definition.name}",'
                f" {definition.minimum} to {definition.maximum}"
            )
        following = number + definition.increment if is_called else number
        if definition.cycles and not definition.minimum <= following <= definition.maximum:
            following = definition.minimum if definition.increment > 0 else definition.maximum
        if not low <= following <= high:
            raise ExecutionError(f'setval: the sequence "{definition.name}" has no number behind {number}')
        with self._lock:
            self.next = following
            if is_called:
                self.last = number

    def draw(self, count: int) -> Numbers:
        """The next numbers, int64 [count]. Raises ExecutionError where there are less; these count as drawn."""
        with self._lock:
            numbers = self._cycle(count) if self.definition.cycles else self._to_bound(count)
            if len(numbers):
                self.last = int(numbers[-1])
        if len(numbers) < count:
            kind = "highest" if self.definition.increment > 0 else "lowest"
            raise ExecutionError(
                f'nextval: the sequence "{self.definition.name}" has reached its {kind} number;'
                " with CYCLE it would begin anew"
            )
        return numbers

    def _to_bound(self, count: int) -> Numbers:
        step = self.definition.increment
        low, high = BIGINT.bounds
        # as in DuckDB, a number is not drawn if the one behind it is no BIGINT
        bound = min(self._bound, high - step) if step > 0 else max(self._bound, low - step)
        drawn = min(count, max(0, (bound - self.next) // step + 1))
        numbers = _progression(self.next, step, drawn)
        self.next += step * drawn
        return numbers

    def _cycle(self, count: int) -> Numbers:
        definition, step = self.definition, self.definition.increment
        restart = definition.minimum if step > 0 else definition.maximum
        drawn = min(count, (self._bound - self.next) // step + 1)
        length = min(count, (self._bound - restart) // step + 1)  # of all numbers there may be 2**63
        again = np.resize(_progression(restart, step, length), count - drawn)
        numbers = np.concatenate([_progression(self.next, step, drawn), again])
        if count:
            following = int(numbers[-1]) + step
            self.next = following if definition.minimum <= following <= definition.maximum else restart
        return numbers

    @property
    def _bound(self) -> int:
        """The number behind which there are no others."""
        definition = self.definition
        return definition.maximum if definition.increment > 0 else definition.minimum


def _progression(first: int, step: int, count: int) -> Numbers:
    """Numbers that are all BIGINTs, though `step * count` need not be one."""
    if not count:
        return np.empty(0, np.int64)
    return np.int64(first) + np.int64(step) * np.arange(count)


class _SequenceFunction(ABC):
    """One call of a function of a sequence in one run of a query. Implements `tqp.core.models.FunctionSignature`."""

    name: str
    parameters: SequenceOf[DataType | None]
    result = BIGINT
    takes_null = False
    gives_null = False
    has_side_effects = True
    cost = 5.0

    def __init__(self, sequence: Sequence) -> None:
        self._sequence, self._lock = sequence, threading.Lock()

    @abstractmethod
    def call(self, columns: SequenceOf[Column], num_rows: int, device: torch.device) -> Vector:
        """The numbers of the rows, on the device. `columns`: first the number of each row in the query."""

    def nulls(self, num_rows: int, device: torch.device) -> Vector:
        """NULL for every row."""
        zeros = torch.zeros(num_rows, dtype=torch.int64, device=device)
        return Vector(zeros, torch.zeros(num_rows, dtype=torch.bool, device=device))


class SequenceSetter(_SequenceFunction):
    """What setval() gives: the number that a row sets. The last row counts, whichever is computed last."""

    name = "setval"
    parameters = (BIGINT, BIGINT, BOOLEAN)

    def __init__(self, sequence: Sequence) -> None:
        super().__init__(sequence)
        self._last_row = -1

    def call(self, columns: SequenceOf[Column], num_rows: int, device: torch.device) -> Vector:
        rows, values, are_called = (_numbers_of(column) for column in columns)
        if num_rows:
            with self._lock:
                for row in np.argsort(rows, kind="stable"):
                    if rows[row] > self._last_row:
                        self._sequence.set(int(values[row]), bool(are_called[row]))
                        self._last_row = int(rows[row])
        return Vector(torch.from_numpy(values).to(device), None)


class SequenceValues(_SequenceFunction):
    """What one call of nextval() gives in one run of a query: for each row, by its number, a number of its own.

    Rows are given theirs when they are first asked for; asked for again, they keep it, so that it does not matter whether an
    expression is computed once or in several places.
    """

    name = "nextval"
    parameters = (BIGINT,)
    takes_null = True

    def __init__(self, sequence: Sequence) -> None:
        super().__init__(sequence)
        self._rows = self._numbers = np.empty(0, np.int64)  # in the order of the rows

    def call(self, columns: SequenceOf[Column], num_rows: int, device: torch.device) -> Vector:
        (rows,) = map(_numbers_of, columns)
        with self._lock:
            new = np.setdiff1d(rows, self._rows)
            if len(new):
                drawn = self._sequence.draw(len(new))
                known, numbers = np.concatenate([self._rows, new]), np.concatenate([self._numbers, drawn])
                order = np.argsort(known, kind="stable")
                self._rows, self._numbers = known[order], numbers[order]
            found = self._numbers[np.searchsorted(self._rows, rows)]
        return Vector(torch.from_numpy(found).to(device), None)


def _numbers_of(column: Column) -> Numbers:
    assert isinstance(column.values, torch.Tensor)
    return column.values.cpu().numpy().astype(np.int64)
