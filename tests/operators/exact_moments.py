"""Sums of products of differences from means, exact: the reference of what computes them in floating point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def exact_moment(*factors: tuple[Sequence[float], int]) -> float:
    """The sum of the products, of each column of `factors` its values' differences from their mean to this power; rounded once.

    All are integers of one unit, the values a power of two's multiple: fractions take a hundred times as long.
    """
    rows = len(factors[0][0])
    products, unit = [1] * rows, Fraction(1)
    for column, power in factors:
        ratios = [value.as_integer_ratio() for value in column]
        denominator = math.lcm(*(each for _, each in ratios))
        whole = [numerator * (denominator // each) for numerator, each in ratios]
        total = sum(whole)
        products = [
            product * (each * rows - total) ** power for product, each in zip(products, whole, strict=True)
        ]
        unit /= (denominator * rows) ** power
    return float(sum(products) * unit)
