"""Comparisons of a cast column with a constant, as comparisons of the column itself."""

from __future__ import annotations

import pytest

from tqp.core.datatypes import BOOLEAN, DataType, TypeKind
from tqp.planner.algebra.expressions import Call, Cast, ColumnRef, Literal
from tqp.planner.rules.cast_comparisons import without_cast

SECONDS, MILLISECONDS, MICROSECONDS, NANOSECONDS, WITH_ZONE = map(
    DataType,
    (
        TypeKind.TIMESTAMP_S,
        TypeKind.TIMESTAMP_MS,
        TypeKind.TIMESTAMP,
        TypeKind.TIMESTAMP_NS,
        TypeKind.TIMESTAMP_TZ,
    ),
)
INFINITE = 2**63 - 1


def uncast(
    source: DataType, target: DataType, function: str, constant: int, known: tuple[int, int] | None
) -> object:
    """Function and constant of what becomes of `CAST(x AS target) function constant`; None where it stays."""
    column = ColumnRef(1, source)
    call = Call(function, (Cast(column, target), Literal(constant, target)), BOOLEAN)
    changed = without_cast(call, lambda _: known)
    if changed is call:
        return None
    left, right = changed.arguments
    assert left == column and isinstance(right, Literal) and right.data_type == source
    return changed.function, right.value


@pytest.mark.parametrize("function, constant, expected", [
    ("less", 1_500_000, ("less", 2)),
    ("less", 2_000_000, ("less", 2)),
    ("greater_equal", 1_000_001, ("greater_equal", 2)),
    ("less_equal", 1_500_000, ("less_equal", 1)),
    ("greater", -1_500_000, ("greater", -2)),
    ("equal", 3_000_000, ("equal", 3)),
    ("equal", 3_000_001, None),
    ("not_equal", INFINITE, None),
    ("less", INFINITE, ("less", -(-INFINITE // 1_000_000))),
])  # fmt: skip
def test_finer_constants_are_rounded(function: str, constant: int, expected: object) -> None:
    assert uncast(SECONDS, MICROSECONDS, function, constant, (-100, 100)) == expected


@pytest.mark.parametrize("source, target, known", [
    (MILLISECONDS, MICROSECONDS, None),  # nothing is known
    (MILLISECONDS, MICROSECONDS, (0, 2**63 // 1_000)),  # too far away for microseconds
    (MILLISECONDS, MICROSECONDS, (0, INFINITE)),
    (MICROSECONDS, NANOSECONDS, (0, 10**17)),  # too far away for nanoseconds
    (MICROSECONDS, MILLISECONDS, (0, 1)),  # rounds
    (MILLISECONDS, WITH_ZONE, (0, 1)),
])  # fmt: skip
def test_casts_that_may_fail_stay(source: DataType, target: DataType, known: tuple[int, int] | None) -> None:
    assert uncast(source, target, "less", 5, known) is None


def test_casts_to_nanoseconds() -> None:
    assert uncast(MICROSECONDS, NANOSECONDS, "less", 5_001, (0, 9 * 10**15)) == ("less", 6)
