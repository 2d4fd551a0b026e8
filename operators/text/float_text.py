"""Which digits DuckDB writes of a 32-bit float.

They are the shortest that read back as the same float, except where DuckDB's algorithm cannot tell which those are and
writes the exact value (up to 17 digits): halfway between two candidates, and where a candidate of as few digits, or a
shorter number, lies exactly halfway to the next float.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal

import numpy as np

#: Exact for every sum and difference of a float and a short number.
_EXACT = Context(prec=160)
#: From here on floats are integers with gaps, whose middles are short numbers.
_FIRST_WITH_GAPS = 2.0**24
_SIGNIFICANT_BITS = 24
#: What lies halfway between two candidates has at most ten digits, besides sign and point.
_CHARACTERS_OF_MIDDLE = 14


def float32_to_write(value: np.float32) -> float:
    """The double whose shortest text is what DuckDB writes of the value."""
    shortest, exact = float(str(value)), float(value)
    if shortest == exact or math.isnan(exact):
        return shortest
    can_be_unclear = abs(exact) >= _FIRST_WITH_GAPS or len(repr(exact)) <= _CHARACTERS_OF_MIDDLE
    return exact if can_be_unclear and _is_unclear(value) else shortest


def _is_unclear(value: np.float32) -> bool:
    shortest, exact = Decimal(str(value)).normalize(), Decimal(float(value))
    missed = abs(_EXACT.subtract(shortest, exact))
    if 2 * missed == Decimal(1).scaleb(_exponent(shortest)):
        return True
    half_gap = Decimal(math.ldexp(1.0, max(math.frexp(float(value))[1] - _SIGNIFICANT_BITS, -149) - 1))
    ends = (_EXACT.add(exact, half_gap), _EXACT.subtract(exact, half_gap))
    return any(end == shortest or _digits(end) < _digits(shortest) for end in ends)


def _exponent(number: Decimal) -> int:
    """The place of the last digit."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def _digits(number: Decimal) -> int:
    return len(number.normalize(_EXACT).as_tuple().digits)
