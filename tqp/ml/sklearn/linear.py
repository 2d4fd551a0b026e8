"""Linear models of scikit-learn: a matrix product, and what makes labels and probabilities of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tqp.core.errors import UnsupportedError
from tqp.ml.arrays import dense, doubles
from tqp.ml.conversion import Feature, Inputs, Predictor
from tqp.ml.layers import Affine, Apply, BothClasses, Largest, activation, link, shares_of_sum


def _sums(estimator: Any, features: list[Feature], inputs: Inputs) -> Affine:
    """coef_ and intercept_ as a module. Sums of inputs that no step has scaled are made of doubles.

    Nothing tells how large such inputs are, so the proof cannot try it. Of large ones that nearly cancel, as two times of the
    same day or a year and the bias, float32 leaves the rounding.
    """
    inputs.refuse_null(features)
    if any(feature.raw is not None for feature in features):
        inputs.compare_exactly()
    weight = np.atleast_2d(np.asarray(dense(estimator.coef_), dtype=np.float64))
    bias = np.broadcast_to(
        np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64)), weight.shape[:1]
    )
    return Affine(doubles(weight.T), doubles(bias))


def linear_regressor(estimator: Any, features: list[Feature], inputs: Inputs) -> Predictor:
    """Ordinary least squares, ridge, lasso, elastic net, linear SVR, SGD and whatever else is linear in the inputs."""
    body = _sums(estimator, features, inputs)
    return Predictor(body, {"value": nn.Identity()}, cost=_cost(body))


def generalized_linear_regressor(estimator: Any, features: list[Feature], inputs: Inputs) -> Predictor:
    """PoissonRegressor, GammaRegressor and TweedieRegressor: links "log" and "identity"."""
    found = linear_regressor(estimator, features, inputs)
    link = getattr(estimator, "link", "log")
    if link == "auto":
        link = "identity" if estimator.power <= 0 else "log"
    return found if link == "identity" else replace(found, outputs={"value": Apply(torch.exp)})


def logistic(estimator: Any, features: list[Feature], inputs: Inputs) -> Predictor:
    """Logistic regression and linear discriminant analysis: two classes by a sigmoid, several by a softmax, or by one
    against the rest."""
    body = _sums(estimator, features, inputs)
    classes = list(estimator.classes_)
    scores = body.bias.shape[0]
    proba: nn.Module = BothClasses() if scores == 1 else link("softmax")
    solver, multi_class = (getattr(estimator, name, None) for name in ("solver", "multi_class"))
    if scores > 1 and (multi_class == "ovr" or solver == "liblinear"):
        proba = _one_against_the_rest()
    outputs = {"label": Largest(), "proba": proba, "score": nn.Identity()}
    return Predictor(body, outputs, classes, _cost(body))


def linear_classifier(estimator: Any, features: list[Feature], inputs: Inputs) -> Predictor:
    """Linear SVM, ridge classifier, perceptron and the SGD classifier, with probabilities where the loss gives them."""
    _refuse_several_labels(estimator)
    body = _sums(estimator, features, inputs)
    classes = list(estimator.classes_)
    outputs: dict[str, nn.Module] = {"label": Largest(), "score": nn.Identity()}
    loss = getattr(estimator, "loss", None)
    if loss == "log_loss":
        outputs["proba"] = BothClasses() if len(classes) == 2 else _one_against_the_rest()
    elif loss == "modified_huber":
        outputs["proba"] = ClippedShares()
    return Predictor(body, outputs, classes, _cost(body))


def _one_against_the_rest() -> Apply:
    return Apply(lambda scores: shares_of_sum(torch.sigmoid(scores)), elementwise=False)


class ClippedShares(nn.Module):
    """Probabilities under the modified Huber loss: (clip(score, -1, 1) + 1) / 2, shared out among several classes."""

    rises = True

    def forward(self, scores: Tensor) -> Tensor:
        shares = (scores.clamp(-1, 1) + 1) / 2
        if scores.shape[1] == 1:
            return torch.cat([1 - shares, shares], 1)
        return shares_of_sum(shares)


def multilayer_perceptron(estimator: Any, features: list[Feature], inputs: Inputs) -> Predictor:
    """MLPRegressor and MLPClassifier."""
    inputs.refuse_null(features)
    steps: list[nn.Module] = []
    weights, biases = estimator.coefs_, estimator.intercepts_
    for place, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        steps.append(Affine(doubles(weight), doubles(bias)))
        if place < len(weights) - 1:
            steps.append(activation(estimator.activation))
    body = nn.Sequential(*steps)
    cost = sum(float(np.size(weight)) for weight in weights) * 0.05
    last = estimator.out_activation_
    if not hasattr(estimator, "classes_"):
        return Predictor(body, {"value": activation(last)}, cost=cost)
    _refuse_several_labels(estimator)
    classes = list(estimator.classes_)
    proba = BothClasses() if last == "logistic" else activation(last)
    return Predictor(body, {"label": Largest(), "proba": proba}, classes, cost)


def _refuse_several_labels(estimator: Any) -> None:
    binarizer = getattr(estimator, "_label_binarizer", None)
    if binarizer is not None and binarizer.y_type_.startswith("multilabel"):
        raise UnsupportedError(f"a {type(estimator).__qualname__} of several labels a row is not supported")


def _cost(body: Affine) -> float:
    """Nanoseconds for a row: to make the features and to multiply."""
    return 1.0 * body.weight.shape[0] + 0.1 * body.weight.numel()
