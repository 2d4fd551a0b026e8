"""What conditions are said to be of NULLs, against trying all values of all columns."""

import random
from dataclasses import replace
from itertools import product

import pytest

from tests.reference_plan import evaluate
from tqp.core.datatypes import BIGINT, BOOLEAN
from tqp.core.schema import ColumnFacts, Field
from tqp.planner.algebra.expressions import Call, Case, Cast, ColumnRef, Expression, InList, Literal
from tqp.planner.algebra.outcomes import (
    FALSE,
    NULL,
    TRUE,
    null_if_padded,
    null_rejected_columns,
    nullable,
    outcomes,
    rejects_null,
    strict_columns,
)

#: Conditions by id, the last two of the padded side, and one number of each side.
_CONDITIONS = [ColumnRef(id, BOOLEAN, f"c{id}") for id in range(4)]
_PADDED = frozenset((2, 3, 5))
_NUMBERS = [ColumnRef(id, BIGINT, f"n{id}") for id in (4, 5)]
#: What is known where one condition and one number are never NULL.
_PRESENT = frozenset((1, 4))
_FIELDS = {
    column.id: Field(column.id, column.name, column.data_type, column.id not in _PRESENT)
    for column in _CONDITIONS + _NUMBERS
}
_PADDED_FIELDS = {id: replace(_FIELDS[id], facts=ColumnFacts(is_null=True)) for id in _PADDED}

_BIT = {None: NULL, False: FALSE, True: TRUE}


class _Predicates:
    """Random conditions, of every kind that is looked into."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def draw(self, depth: int) -> Expression:
        if depth == 0 or self.random.random() < 0.1:
            literals = [Literal(value, BOOLEAN) for value in (True, False, None)]
            return self.random.choice([*_CONDITIONS, *_CONDITIONS, *literals])
        makers = (self._connective, self._connective, self._connective, self._coalesce, self._case)
        return self.random.choice((*makers, self._test, self._compared))(depth - 1)

    def _several(self, depth: int) -> tuple[Expression, ...]:
        return tuple(self.draw(depth) for _ in range(self.random.randint(2, 3)))

    def _connective(self, depth: int) -> Expression:
        function = self.random.choice(("and", "or", "not"))
        return Call(function, (self.draw(depth),) if function == "not" else self._several(depth), BOOLEAN)

    def _coalesce(self, depth: int) -> Expression:
        function = self.random.choice(("coalesce", "coalesce", "greatest", "least"))
        return Call(function, self._several(depth), BOOLEAN)

    def _case(self, depth: int) -> Expression:
        branches = tuple((self.draw(depth), self.draw(depth)) for _ in range(self.random.randint(1, 2)))
        return Case(branches, self.draw(depth), BOOLEAN)

    def _test(self, depth: int) -> Expression:
        function = self.random.choice(("is_null", "is_distinct_from", "is_not_distinct_from", "equal"))
        count = 1 if function == "is_null" else 2
        return Call(function, tuple(self.draw(depth) for _ in range(count)), BOOLEAN)

    def _compared(self, depth: int) -> Expression:
        number = self._number(depth)
        if self.random.random() < 0.4:
            return InList(number, (Literal(0, BIGINT), Literal(2, BIGINT)))
        return Call(
            self.random.choice(("less", "equal", "greater_equal")), (number, self._number(0)), BOOLEAN
        )

    def _number(self, depth: int) -> Expression:
        number = self.random.choice((*_NUMBERS, Literal(1, BIGINT)))
        if depth == 0 or self.random.random() < 0.4:
            return number
        inner = self._number(depth - 1)
        return self.random.choice(
            (
                Call("add", (number, inner), BIGINT),
                Call("coalesce", (number, inner), BIGINT),
                Case(((self.draw(depth - 1), number),), inner, BIGINT),
                Cast(inner, BIGINT),
            )
        )


def _rows(columns: list[ColumnRef], padded: frozenset[int]) -> list[dict[int, object]]:
    choices = [
        (None,) if column.id in padded else (True, False, None) if column.data_type == BOOLEAN else (1, None)
        for column in columns
    ]
    return [dict(zip([column.id for column in columns], values)) for values in product(*choices)]


_PADDED_ROWS = _rows(_CONDITIONS + _NUMBERS, _PADDED)
_ALL_ROWS = _rows(_CONDITIONS + _NUMBERS, frozenset())


@pytest.mark.parametrize("seed", range(4))
def test_outcomes_are_all_that_can_happen(seed: int) -> None:
    generator = _Predicates(seed)
    rejected = padded = 0
    for _ in range(400):
        predicate = generator.draw(3)
        happens = {evaluate(predicate, row) for row in _PADDED_ROWS}
        said = outcomes(predicate, _PADDED_FIELDS)
        assert all(said & _BIT[value] for value in happens), predicate
        assert not rejects_null(predicate, _PADDED) or True not in happens
        assert not null_if_padded(predicate, _PADDED) or happens == {None}
        rejected += rejects_null(predicate, _PADDED)
        padded += null_if_padded(predicate, _PADDED)
    assert rejected > 20 and padded > 5  # it is not careful to a fault


@pytest.mark.parametrize("seed", range(2))
def test_columns_that_outcomes_reject(seed: int) -> None:
    generator = _Predicates(100 + seed)
    for _ in range(60):
        predicate = generator.draw(3)
        found = [(row, evaluate(predicate, row)) for row in _ALL_ROWS]
        for outcome in (True, False):
            present = null_rejected_columns(predicate if outcome else Call("not", (predicate,), BOOLEAN))
            assert all(row[id] is not None for row, value in found if value is outcome for id in present), (
                predicate
            )
        present = strict_columns(predicate)
        assert all(row[id] is not None for row, value in found if value is not None for id in present)
        known = [value for row, value in found if all(row[id] is not None for id in _PRESENT)]
        said = outcomes(predicate, _FIELDS)
        assert all(said & _BIT[value] for value in known), predicate
        assert nullable(predicate, _FIELDS) == bool(said & NULL)


@pytest.mark.parametrize("function", ["and", "or"])
@pytest.mark.parametrize("padded", [(), (0,), (1,), (0, 1)])
def test_connectives_are_exact(function: str, padded: tuple[int, ...]) -> None:
    call = Call(function, (_CONDITIONS[0], _CONDITIONS[1]), BOOLEAN)
    happens = {evaluate(call, row) for row in _rows(_CONDITIONS[:2], frozenset(padded))}
    fields = {id: replace(_FIELDS[id], nullable=True, facts=ColumnFacts(is_null=True)) for id in padded}
    assert outcomes(call, fields) == sum(_BIT[value] for value in happens)  # type: ignore[index]
