"""Support vector machines of scikit-learn with kernels: kernel values of the support vectors, then a matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tqp.core.errors import UnsupportedError
from tqp.ml.arrays import doubles
from tqp.ml.conversion import Inputs
from tqp.ml.folding import composed
from tqp.ml.layers import Affine, Apply, Largest, link
from tqp.ml.model import Converted, Feature
from tqp.ml.sklearn.neighbors import SquaredDistances


def _kernel(estimator: Any, features: list[Feature], inputs: Inputs) -> nn.Module:
    """Kernel values of all support vectors: [n, f] to [n, vectors]."""
    if estimator.kernel not in ("linear", "rbf", "poly", "sigmoid"):
        raise UnsupportedError(f"{type(estimator).__qualname__} kernel={estimator.kernel!r} is not supported")
    inputs.refuse_null(features)
    vectors = doubles(estimator.support_vectors_)
    inputs.try_points(features, vectors[:64])
    gamma = float(estimator._gamma)
    count = vectors.shape[0]
    if estimator.kernel == "linear":
        return Affine(vectors.T, torch.zeros(count, dtype=torch.float64))
    if estimator.kernel == "rbf":
        return nn.Sequential(SquaredDistances(vectors), link("exp", gamma))
    degree = int(estimator.degree)
    return nn.Sequential(
        Affine(gamma * vectors.T, torch.full((count,), float(estimator.coef0), dtype=torch.float64)),
        Apply(lambda products: products**degree) if estimator.kernel == "poly" else link("tanh"),
    )


def support_vector_regressor(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """SVR and NuSVR: kernels linear, rbf, poly and sigmoid."""
    weights = doubles(estimator.dual_coef_).T
    body = composed([_kernel(estimator, features, inputs), Affine(weights, doubles(estimator.intercept_))])
    return Converted(body, {"value": nn.Identity()}, cost=_cost(estimator))


def support_vector_classifier(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """SVC and NuSVC: kernels linear, rbf, poly and sigmoid; label and score, not the probabilities of probability=True."""
    classes = list(estimator.classes_)
    if len(classes) > 2 and estimator.break_ties:
        raise UnsupportedError("SVC break_ties=True is not supported")
    weights = Affine(_weights_of_pairs(estimator), doubles(estimator.intercept_))
    body = composed([_kernel(estimator, features, inputs), weights])
    if len(classes) == 2:
        outputs: dict[str, nn.Module] = {"label": Largest(reached=True), "score": nn.Identity()}
        return Converted(body, outputs, classes, _cost(estimator))
    rest = estimator.decision_function_shape == "ovr"
    outputs = {
        "label": nn.Sequential(Votes(len(classes)), Largest()),
        "score": Votes(len(classes), True) if rest else nn.Identity(),
    }
    # The smallest decision of any pair, without its sign.
    margin = Apply(lambda decisions: decisions.abs().amin(1), elementwise=False)
    return Converted(body, outputs, classes, _cost(estimator), margin)


def _weights_of_pairs(estimator: Any) -> Tensor:
    """[vectors, pairs] of libsvm's dual coefficients [classes - 1, vectors]: of the pair (i, j) those of class i in row
    j - 1, those of class j in row i."""
    coefficients = doubles(estimator.dual_coef_)
    stops = np.cumsum(estimator.n_support_)
    parts = [slice(stop - size, stop) for stop, size in zip(stops, estimator.n_support_, strict=True)]
    columns = []
    for i in range(len(parts)):
        for j in range(i + 1, len(parts)):
            column = torch.zeros_like(coefficients[0])
            column[parts[i]] = coefficients[j - 1, parts[i]]
            column[parts[j]] = coefficients[i, parts[j]]
            columns.append(column)
    return torch.stack(columns, 1)


class Votes(nn.Module):
    """How many pairs each class wins, of decisions that are positive for the first of a pair: [n, pairs] to [n, classes].

    With `confidences`, what breaks ties is added, less than a third (scikit-learn's one-against-the-rest scores).
    """

    def __init__(self, classes: int, confidences: bool = False) -> None:
        super().__init__()
        first, second = torch.eye(classes)[torch.triu_indices(classes, classes, 1)]
        self.signs, self.losses = nn.Buffer(first - second), nn.Buffer(second.sum(0))
        self.confidences = confidences

    def forward(self, decisions: Tensor) -> Tensor:
        signs = self.signs.to(decisions.dtype)
        wins = decisions >= 0 if self.confidences else decisions > 0
        votes = wins.to(decisions.dtype) @ signs + self.losses
        if not self.confidences:
            return votes
        sums = decisions @ signs
        return votes + sums / (3 * (sums.abs() + 1))


def _cost(estimator: Any) -> float:
    return 3.0 * float(np.size(estimator.support_vectors_))
