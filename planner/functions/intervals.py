"""Functions of intervals: made of a number of units, added, multiplied and divided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tqp.core.keywords import lower_ascii
from tqp.core.units import UNIT_NAMES
from tqp.planner.algebra.expressions import Call
from tqp.planner.functions.declaration import Fold, NullRule, ScalarFunction, scalar
from tqp.planner.functions.literal_casts import fitting_interval, interval_of


def _combine_intervals(sign: int) -> Callable[..., Any]:
    def evaluate(_: Call, left: tuple[int, int, int], right: tuple[int, int, int]) -> Any:
        return fitting_interval(*(a + sign * b for a, b in zip(left, right))) or NotImplemented

    return evaluate


def _to_interval(_: Call, unit: str, count: float) -> Any:
    name = UNIT_NAMES.get(lower_ascii(unit))
    return NotImplemented if name is None else interval_of(name, count) or NotImplemented


def _checked(name: str, *lines: str, fold: Fold | None = None) -> ScalarFunction:
    return scalar(name, *lines, raises=True, fold=fold)


#: Calls that make intervals, and of what numbers.
_UNITS = {
    **{f"to_{unit}s": (unit, "INTEGER BIGINT") for unit in "year quarter month week day decade".split()},
    "to_centuries": ("century", "INTEGER BIGINT"),
    "to_millennia": ("millennium", "INTEGER BIGINT"),
    **{f"to_{unit}s": (unit, "BIGINT") for unit in ("hour", "minute", "microsecond")},
    **{f"to_{unit}s": (unit, "DOUBLE") for unit in ("second", "millisecond")},
}

INTERVALS = (
    _checked("add_intervals", "add: INTERVAL INTERVAL -> INTERVAL", fold=_combine_intervals(1)),
    _checked("subtract_intervals", "subtract: INTERVAL INTERVAL -> INTERVAL", fold=_combine_intervals(-1)),
    _checked(
        "negate_interval",
        "-: INTERVAL -> INTERVAL",
        fold=lambda _, each: fitting_interval(*(-field for field in each)) or NotImplemented,
    ),
    _checked(
        "multiply_interval",
        *("multiply: INTERVAL BIGINT -> INTERVAL", "multiply: INTERVAL DOUBLE -> INTERVAL"),
        *("multiply: ~ BIGINT INTERVAL -> INTERVAL", "multiply: ~ DOUBLE INTERVAL -> INTERVAL"),
    ),
    scalar("divide_interval", "/: INTERVAL DOUBLE -> INTERVAL", null=NullRule.PROPAGATES, raises=True),
    _checked(
        "to_interval",
        *(
            f"{spelling}: [{unit}] {number} -> INTERVAL"
            for spelling, (unit, numbers) in _UNITS.items()
            for number in numbers.split()
        ),
        fold=_to_interval,
    ),
)
