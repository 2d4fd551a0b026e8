"""What is computed from moments, sums and numbers of values: variances, deviations, correlations, regressions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.operators.numbers import elementwise
from tqp.operators.numbers.logic import any_true

# ---- results of squared differences from the mean (float64 [n]) and numbers of values (int64 [n]) ----


def of_population(sums: Tensor, counts: Tensor) -> Tensor:
    """float64 [n]: the variance or the covariance of a population, or a mean; of no values anything."""
    return sums / counts.clamp(min=1)


def of_sample(sums: Tensor, counts: Tensor) -> Tensor:
    """float64 [n]: the variance or the covariance of a sample; of less than two values anything."""
    return sums / (counts - 1).clamp(min=1)


def deviation(m2: Tensor, counts: Tensor) -> Tensor:
    """The standard deviation of a population, float64 [n]."""
    return elementwise.square_root(of_population(m2, counts))


def sample_deviation(m2: Tensor, counts: Tensor) -> Tensor:
    """The standard deviation of a sample, float64 [n]."""
    return elementwise.square_root(of_sample(m2, counts))


def standard_error(m2: Tensor, sums: Tensor, counts: Tensor) -> Tensor:
    """Of the mean, float64 [n]; NaN of a single value that is not finite."""
    found = deviation(m2, counts) / elementwise.square_root(counts.clamp(min=1).to(torch.float64))
    return torch.where(counts == 1, sums * 0.0, found).abs()


# ---- results of sums of powers of differences from the mean (float64 [n]): values and where there are any ----


def skewness(m3: Tensor, m2: Tensor, sums: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Of a sample; NULL for less than three values, and where all are equal. Raises ExecutionError where it is not finite."""
    n = counts.to(torch.float64)
    second = m2 / n
    ratio = _ratio(m3 / n, second * elementwise.square_root(second))
    found = elementwise.square_root(n * (n - 1)) / (n - 2) * ratio
    return _finite(found, counts > 2, m2, sums / n, "skewness")


def kurtosis(
    m4: Tensor, m2: Tensor, sums: Tensor, counts: Tensor, *, is_sample: bool
) -> tuple[Tensor, Tensor]:
    """Excess kurtosis of a population or a sample; NULL for too few values, and where all are equal; errors as of skewness."""
    n = counts.to(torch.float64)
    ratio = _ratio(m4 / n, (m2 / n).square())
    found = (n - 1) * ((n + 1) * ratio - 3 * (n - 1)) / ((n - 2) * (n - 3)) if is_sample else ratio - 3
    enough = counts > (3 if is_sample else 1)
    return _finite(found, enough, m2, sums / n, "kurtosis")


def _ratio(moments: Tensor, divisor: Tensor) -> Tensor:
    """0 where the divisor is too small for a float."""
    return torch.where(divisor == 0, 0.0, moments / divisor)


def _finite(values: Tensor, enough: Tensor, m2: Tensor, means: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """The values where there are enough rows that differ. DuckDB squares the first row even where all are equal."""
    validity = enough & (m2 != 0)
    if any_true((validity & ~values.isfinite()) | (enough & ~means.square().isfinite())):
        raise ExecutionError(f"The {name} is out of range: a value is infinite, or powers of it are")
    return values, validity


# ---- results of moments of pairs (y, x): sums of squared differences, of products of differences, of values ----


def correlation(sxy: Tensor, sxx: Tensor, syy: Tensor, counts: Tensor) -> Tensor:
    """float64 [n]; NaN where the values of a side are all equal."""
    both = deviation(sxx, counts) * deviation(syy, counts)
    return torch.where(both == 0, torch.nan, of_population(sxy, counts) / both)


def slope(sxy: Tensor, sxx: Tensor, counts: Tensor) -> Tensor:
    """Of the regression line, float64 [n]; NaN where the xs are all equal."""
    return of_population(sxy, counts) / of_population(sxx, counts)


def intercept(sxy: Tensor, sxx: Tensor, ys: Tensor, xs: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Of the regression line; NULL where the xs are all equal, or the slope is NaN."""
    n, steepness = counts.clamp(min=1), slope(sxy, sxx, counts)
    return ys / n - steepness * (xs / n), ~steepness.isnan()


def determination(sxy: Tensor, sxx: Tensor, syy: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The square of the correlation: NULL where the xs are all equal, 1 where the ys are."""
    squared = correlation(sxy, sxx, syy, counts).square()
    return torch.where(syy == 0, 1.0, squared), sxx != 0


class Formula(NamedTuple):
    """An aggregate that is computed from reductions: which ones, of which arguments, and what makes the result of them.

    `compute` takes what each came to, then the number of values (or pairs), and gives values, or values and validity.
    """

    reductions: tuple[tuple[str, tuple[int, ...]], ...]
    compute: Callable[..., Tensor | tuple[Tensor, Tensor]]


# The highest moment first: those of frames find the lower ones on the way to it.
_M2, _M3, _M4 = ((f"{which}_moment", (0,)) for which in ("second", "third", "fourth"))
_SXY, _SXX, _SYY = ("co_moment", (0, 1)), ("second_moment", (1,)), ("second_moment", (0,))
_Y, _X = ("sum_float", (0,)), ("sum_float", (1,))
FORMULAS: dict[str, Formula] = {
    "var_pop": Formula((_M2,), of_population),
    "var_samp": Formula((_M2,), of_sample),
    "stddev_pop": Formula((_M2,), deviation),
    "stddev_samp": Formula((_M2,), sample_deviation),
    "sem": Formula((_M2, _Y), standard_error),
    "skewness": Formula((_M3, _M2, _Y), skewness),
    "kurtosis": Formula((_M4, _M2, _Y), partial(kurtosis, is_sample=True)),
    "kurtosis_pop": Formula((_M4, _M2, _Y), partial(kurtosis, is_sample=False)),
    "covar_pop": Formula((_SXY,), of_population),
    "covar_samp": Formula((_SXY,), of_sample),
    "corr": Formula((_SXY, _SXX, _SYY), correlation),
    "regr_slope": Formula((_SXY, _SXX), slope),
    "regr_intercept": Formula((_SXY, _SXX, _Y, _X), intercept),
    "regr_r2": Formula((_SXY, _SXX, _SYY), determination),
    "regr_sxy": Formula((_SXY,), lambda sxy, counts: sxy),
    "regr_sxx": Formula((_SXX,), lambda sxx, counts: sxx),
    "regr_syy": Formula((_SYY,), lambda syy, counts: syy),
    "regr_avgy": Formula((_Y,), of_population),
    "regr_avgx": Formula((_X,), of_population),
}
