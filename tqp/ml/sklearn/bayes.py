"""Naive Bayes classifiers of scikit-learn: joint log likelihoods as matrix products, and a softmax of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tqp.ml.arrays import doubles
from tqp.ml.conversion import Inputs
from tqp.ml.folding import composed
from tqp.ml.layers import Affine, Largest, Total, link
from tqp.ml.lookup import Category, Codes, Lookup, by_position
from tqp.ml.model import Converted, Feature
from tqp.ml.sklearn.scalers import above


def _predictor(estimator: Any, features: list[Feature], inputs: Inputs, body: nn.Module) -> Converted:
    """Of joint log likelihoods [n, classes]."""
    inputs.refuse_null(features)
    outputs = {"label": Largest(np.inf), "proba": link("softmax")}
    return Converted(body, outputs, list(estimator.classes_))


def multinomial(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """MultinomialNB."""
    body = Affine(doubles(estimator.feature_log_prob_).T, doubles(estimator.class_log_prior_))
    return _predictor(estimator, features, inputs, body)


def complement(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """ComplementNB: the prior counts only where there is one class."""
    prior = doubles(estimator.class_log_prior_) * (len(estimator.classes_) == 1)
    return _predictor(estimator, features, inputs, Affine(doubles(estimator.feature_log_prob_).T, prior))


def bernoulli(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """BernoulliNB."""
    present = doubles(estimator.feature_log_prob_)
    absent = torch.log(1 - torch.exp(present))
    body: nn.Module = Affine((present - absent).T, doubles(estimator.class_log_prior_) + absent.sum(1))
    if estimator.binarize is not None:
        body = composed([above(float(estimator.binarize), features, inputs), body])
    return _predictor(estimator, features, inputs, body)


class Gaussians(nn.Module):
    """Log densities of normal distributions without correlation, plus a constant each: [n, f] to [n, k]."""

    def __init__(self, means: Tensor, variances: Tensor, constants: Tensor) -> None:
        """`means` and `variances` [k, f], `constants` [k]."""
        super().__init__()
        self.means = nn.Buffer(means)
        self.precisions = nn.Buffer(0.5 / variances)
        self.constants = nn.Buffer(constants)

    def forward(self, features: Tensor) -> Tensor:
        # By difference, not by expanding the square: means far from zero would cancel.
        by_column = features.T
        return torch.stack(
            [
                constant - precision @ (by_column - mean[:, None]).square_()
                for mean, precision, constant in zip(self.means, self.precisions, self.constants, strict=True)
            ]
        ).T


def gaussian(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """GaussianNB."""
    means, variances = doubles(estimator.theta_), doubles(estimator.var_)
    inputs.try_points(features, torch.cat([means, means + 3 * variances.sqrt()]))
    constants = doubles(np.log(estimator.class_prior_)) - 0.5 * torch.log(2 * torch.pi * variances).sum(1)
    found = _predictor(estimator, features, inputs, Gaussians(means, variances, constants))
    return replace(found, cost=1.5 * means.numel(), cancels=True)


def categorical(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """CategoricalNB: whole numbers from 0; one that was not seen is an error when a query meets it."""
    terms: list[nn.Module] = []
    for place, (feature, table) in enumerate(zip(features, estimator.feature_log_prob_, strict=True)):
        rows = doubles(table).T  # [categories, classes]
        if place == 0:
            rows = rows + doubles(estimator.class_log_prior_)
        count = rows.shape[0]
        inputs.try_values(feature, range(count))
        category = Category(place, Codes(0, count, True), count, inputs.refuse_unseen(feature))
        table = torch.stack(by_position(list(rows), range(count), count, rows[0], rows[0]))
        terms.append(Lookup(category, table))
    return _predictor(estimator, features, inputs, terms[0] if len(terms) == 1 else Total(terms))
