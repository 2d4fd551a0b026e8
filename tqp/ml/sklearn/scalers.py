"""Transformers of numbers of scikit-learn: scalers, normalizer, binarizer, polynomials, projections, and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tqp.core.errors import UnsupportedError
from tqp.ml.arrays import doubles
from tqp.ml.conversion import Inputs, transformed
from tqp.ml.folding import composed
from tqp.ml.layers import Affine, Apply, Scale, sign
from tqp.ml.model import Converted, Feature


def _same_missing(features: list[Feature]) -> list[Feature]:
    """Features that are no longer the inputs, and missing where those are."""
    return [Feature(None, feature.missing) for feature in features]


def _try_scales(features: list[Feature], inputs: Inputs, centers: Tensor, scales: Tensor) -> None:
    for feature, center, scale in zip(features, centers.tolist(), scales.tolist(), strict=True):
        inputs.try_values(feature, (center + scale * step for step in (-30, -3, -1, 0, 0.5, 2, 4)))


def scaler(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """Numbers shifted and scaled, clipped to the range if asked; missing values as they are."""
    shift, divisor, offset = _scaling(estimator)
    _try_scales(features, inputs, shift, divisor)
    module: nn.Module = Scale(shift, divisor, offset)
    if getattr(estimator, "clip", False):
        low, high = map(float, getattr(estimator, "feature_range", (-1.0, 1.0)))
        module = composed([module, Apply(lambda features: features.clamp(low, high))])
    return transformed(module, _same_missing(features))


def _scaling(estimator: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """What a scaler does, as for `Scale`."""
    if hasattr(estimator, "data_min_"):
        # From the smallest value on: less rounding than x * scale + min_ where values are large and close together.
        scale, low = doubles(estimator.scale_), doubles(estimator.data_min_)
        return low, 1 / scale, low * scale + doubles(estimator.min_)
    shift = torch.zeros(estimator.n_features_in_, dtype=torch.float64)
    if getattr(estimator, "with_centering", False):
        shift = doubles(estimator.center_)
    elif getattr(estimator, "with_mean", False):
        shift = doubles(estimator.mean_)
    return shift, torch.ones_like(shift) if estimator.scale_ is None else doubles(estimator.scale_), None


#: What scikit-learn takes a norm for zero below, of doubles.
_NEARLY_ZERO = 10 * float(np.finfo(np.float64).eps)


def _normalized(features: Tensor, norm: str) -> Tensor:
    """Rows divided by their norm: "l1", "l2" or "max"; rows with a norm of nearly zero stay."""
    sizes = features.abs()
    match norm:
        case "l1":
            norms = sizes.sum(1)
        case "l2" if features.dtype is torch.float32:
            # The original squares doubles: in float32, squares of much less are too large.
            largest = sizes.amax(1).clamp_(min=_NEARLY_ZERO)
            norms = largest * (sizes / largest[:, None]).square_().sum(1).sqrt()
        case "l2":
            norms = features.square().sum(1).sqrt()
        case _:
            norms = sizes.amax(1)
    return features / torch.where(norms < _NEARLY_ZERO, 1.0, norms)[:, None]


def normalizer(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """Normalizer: every norm; missing values are refused."""
    inputs.refuse_null(features)
    norm = estimator.norm
    module = Apply(lambda features: _normalized(features, norm), elementwise=False)
    return transformed(module, [Feature()] * len(features))


def above(threshold: float, features: list[Feature], inputs: Inputs) -> Apply:
    """The step that gives 1 for a number above the threshold, else 0."""
    if threshold != 0:  # rounding keeps signs
        inputs.needs_doubles = True
    for feature in features:
        inputs.try_values(feature, [threshold])
    return Apply(lambda numbers: (numbers > threshold).to(numbers.dtype))


def binarizer(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """Binarizer: 1 above the threshold, else 0; missing values are refused."""
    inputs.refuse_null(features)
    module = above(float(estimator.threshold), features, inputs)
    return transformed(module, [Feature()] * len(features))


class Polynomial(nn.Module):
    """Products of features: each is an earlier product times a feature, so that a degree takes one multiplication."""

    def __init__(self, powers: list[tuple[int, ...]]) -> None:
        """`powers`: for each column of the result the exponents of the features."""
        super().__init__()
        factors = [tuple(np.repeat(np.arange(len(row)), row).tolist()) for row in powers]
        degree = max(map(len, factors))
        needed: set[tuple[int, ...]] = {()}
        for each in factors:
            needed |= {each[:length] for length in range(len(each) + 1)}
        levels = [sorted(each for each in needed if len(each) == length) for length in range(degree + 1)]
        order = {each: place for place, each in enumerate(each for level in levels for each in level)}
        self.degree = degree
        self.width = len(powers)
        before: list[tuple[int, ...]] = [()]
        for length, level in enumerate(levels[1:], 1):
            place = {each: i for i, each in enumerate(before)}
            self.register_buffer(f"product{length}", torch.tensor([place[each[:-1]] for each in level]))
            self.register_buffer(f"feature{length}", torch.tensor([each[-1] for each in level]))
            before = level
        self.columns = nn.Buffer(torch.tensor([order[each] for each in factors]))

    def forward(self, features: Tensor) -> Tensor:
        by_column = features.T
        level = torch.ones_like(by_column[:1])
        levels = [level]
        for length in range(1, self.degree + 1):
            products = torch.index_select(level, 0, self.get_buffer(f"product{length}"))
            level = products * torch.index_select(by_column, 0, self.get_buffer(f"feature{length}"))
            levels.append(level)
        return torch.index_select(torch.cat(levels), 0, self.columns).T


def polynomial_features(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """PolynomialFeatures: every degree; missing values are refused."""
    inputs.refuse_null(features)
    powers = [tuple(row) for row in estimator.powers_.tolist()]
    return transformed(Polynomial(powers), [Feature()] * len(powers))


def projection(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """PCA and IncrementalPCA, whitened or not, and TruncatedSVD: one matrix product; missing values are refused."""
    inputs.refuse_null(features)
    weight = doubles(estimator.components_).T
    if getattr(estimator, "whiten", False):
        variance = doubles(estimator.explained_variance_)
        weight = weight / variance.sqrt().clamp(min=torch.finfo(torch.float64).eps)
    bias = torch.zeros(weight.shape[1], dtype=torch.float64)
    if getattr(estimator, "mean_", None) is not None:
        mean = doubles(estimator.mean_)
        bias = -mean @ weight
        _try_scales(features, inputs, mean, torch.ones_like(mean))
    return transformed(Affine(weight, bias), [Feature()] * weight.shape[1])


#: Functions of numpy that torch has too.
_UFUNCS = {
    **dict.fromkeys(("abs", "absolute", "fabs"), "abs"),
    **{
        name: name
        for name in "exp exp2 expm1 log log2 log10 log1p sqrt square sin cos tan tanh sinh cosh arctan arcsinh sign "
        "floor ceil reciprocal negative".split()
    },
}


def _function(function: Any, what: str) -> nn.Module:
    if function is None:
        return nn.Identity()
    name = _UFUNCS.get(getattr(function, "__name__", "")) if isinstance(function, np.ufunc) else None
    if name is None:
        raise UnsupportedError(
            f"{what}={getattr(function, '__qualname__', function)!r}: only functions of numpy on each number are supported "
            f"({', '.join(_UFUNCS)})"
        )
    return Apply(sign if name == "sign" else getattr(torch, name))


def function_transformer(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """FunctionTransformer: without a function, or with one of numpy that takes one number."""
    module = _function(estimator.func, "FunctionTransformer func")
    if estimator.validate:
        inputs.refuse_null(features)
    if isinstance(module, nn.Identity):
        return transformed(module, features)
    if estimator.kw_args:
        raise UnsupportedError("FunctionTransformer kw_args= is not supported")
    return transformed(module, _same_missing(features))


def inverse(transformer: Any) -> nn.Module:
    """What undoes a scaler or a function, for predictions of a transformed target. Raises UnsupportedError."""
    if hasattr(transformer, "inverse_func"):
        return _function(transformer.inverse_func, "FunctionTransformer inverse_func")
    name = type(transformer).__qualname__
    if name not in ("StandardScaler", "RobustScaler", "MinMaxScaler", "MaxAbsScaler"):
        raise UnsupportedError(f"TransformedTargetRegressor transformer={name} is not supported")
    shift, divisor, offset = _scaling(transformer)
    return Affine(torch.diag(divisor), shift if offset is None else shift - offset * divisor)
