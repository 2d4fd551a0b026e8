"""Linear models of scikit-learn: a matrix product, and what makes labels and probabilities of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from tqp.core.errors import UnsupportedError
from tqp.ml.arrays import doubles
from tqp.ml.conversion import Inputs
from tqp.ml.layers import Affine, Largest, Probabilities, link
from tqp.ml.model import Converted, Feature


def _sums(estimator: Any, features: list[Feature], inputs: Inputs) -> Affine:
    """coef_ and intercept_ as a module. Sums of inputs that no step has scaled are made of doubles.

    Nothing tells how large such inputs are, so the proof cannot try it. Of large ones that nearly cancel, as two times of the
    same day or a year and the bias, float32 leaves the rounding.
    """
    inputs.refuse_null(features)
    if any(feature.raw is not None for feature in features):
        inputs.needs_doubles = True
    weight = doubles(estimator.coef_)
    weight = weight.reshape(-1, weight.shape[-1])
    return Affine(weight.T.contiguous(), doubles(estimator.intercept_).expand(weight.shape[0]).clone())


def linear_regressor(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """Ordinary least squares, ridge, lasso, elastic net, linear SVR, SGD and whatever else is linear in the inputs."""
    body = _sums(estimator, features, inputs)
    return Converted(body, {"value": nn.Identity()}, cost=_cost(body))


def generalized_linear_regressor(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """PoissonRegressor, GammaRegressor and TweedieRegressor: links "log" and "identity"."""
    found = linear_regressor(estimator, features, inputs)
    name = getattr(estimator, "link", "log")
    if name == "auto":
        name = "identity" if estimator.power <= 0 else "log"
    return found if name == "identity" else replace(found, outputs={"value": link("exp")})


def logistic(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """Logistic regression and linear discriminant analysis: two classes by a sigmoid, several by a softmax, or by one
    against the rest."""
    body = _sums(estimator, features, inputs)
    solver, multi_class = (getattr(estimator, name, None) for name in ("solver", "multi_class"))
    by_one = multi_class == "ovr" or solver == "liblinear"
    proba = Probabilities("sigmoid" if by_one or body.bias.shape[0] == 1 else "softmax", shared=by_one)
    outputs = {"label": Largest(), "proba": proba, "score": nn.Identity()}
    return Converted(body, outputs, list(estimator.classes_), _cost(body))


def linear_classifier(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """Linear SVM, ridge classifier, perceptron and the SGD classifier, with probabilities where the loss gives them."""
    _refuse_several_labels(estimator)
    body = _sums(estimator, features, inputs)
    outputs: dict[str, nn.Module] = {"label": Largest(), "score": nn.Identity()}
    function = {"log_loss": "sigmoid", "modified_huber": "clipped"}.get(getattr(estimator, "loss", ""))
    if function is not None:
        outputs["proba"] = Probabilities(function, shared=True)
    return Converted(body, outputs, list(estimator.classes_), _cost(body))


def multilayer_perceptron(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """MLPRegressor and MLPClassifier."""
    inputs.refuse_null(features)
    steps: list[nn.Module] = []
    weights, biases = estimator.coefs_, estimator.intercepts_
    for place, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        steps.append(Affine(doubles(weight), doubles(bias)))
        if place < len(weights) - 1:
            steps.append(link(estimator.activation))
    body = nn.Sequential(*steps)
    cost = sum(float(np.size(weight)) for weight in weights) * 0.05
    last = estimator.out_activation_
    if not hasattr(estimator, "classes_"):
        return Converted(body, {"value": link(last)}, cost=cost)
    _refuse_several_labels(estimator)
    outputs = {"label": Largest(), "proba": Probabilities(last)}
    return Converted(body, outputs, list(estimator.classes_), cost)


def _refuse_several_labels(estimator: Any) -> None:
    binarizer = getattr(estimator, "_label_binarizer", None)
    if binarizer is not None and binarizer.y_type_.startswith("multilabel"):
        raise UnsupportedError(f"a {type(estimator).__qualname__} of several labels a row is not supported")


def _cost(body: Affine) -> float:
    """Nanoseconds for a row: to make the features and to multiply."""
    return 1.0 * body.weight.shape[0] + 0.1 * body.weight.numel()
