"""Distances to known points of scikit-learn: k-means and k nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tqp.core.errors import UnsupportedError
from tqp.ml.arrays import doubles
from tqp.ml.conversion import Inputs
from tqp.ml.layers import Apply, Largest
from tqp.ml.model import Converted, Feature

#: Numbers of a matrix of distances that are made at a time.
_DISTANCES = 1 << 21


class SquaredDistances(nn.Module):
    """Minus the squared Euclidean distance to each point: [n, f] to [n, k]. By a matrix product."""

    def __init__(self, points: Tensor) -> None:
        """[k, f]."""
        super().__init__()
        # About their middle, so that less cancels.
        center = points.mean(0)
        self.points = nn.Buffer(points - center)
        self.center = nn.Buffer(center)

    def forward(self, features: Tensor) -> Tensor:
        by_column = (features - self.center).T
        products = self.points @ by_column
        squares = self.points.square().sum(1)
        return (2 * products - squares[:, None] - by_column.square().sum(0)).clamp_(max=0).T


def k_means(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """KMeans and MiniBatchKMeans: the label of the nearest center, or as value the distances to all."""
    inputs.refuse_null(features)
    points = doubles(estimator.cluster_centers_)
    inputs.try_points(features, points)
    body = SquaredDistances(points)
    centers = body.points.shape[0]
    distances = Apply(lambda squares: squares.neg().sqrt())
    cost = float(body.points.numel())
    return Converted(
        body,
        {"label": Largest(), "value": distances},
        list(range(centers)),
        cost,
        cancels=True,
        given=[Feature()] * centers,
    )


class Neighbours(nn.Module):
    """What the nearest of known points say, averaged: [n, f] to [n, k].

    Candidates by squared distances from a matrix product, a block of rows at a time; the weights by their exact distances.
    """

    def __init__(self, points: Tensor, values: Tensor, count: int, by_distance: bool) -> None:
        """`points` [m, f], `values` [m, k], `count`: of neighbours."""
        super().__init__()
        self.count, self.by_distance = count, by_distance
        centered = points - points.mean(0)
        self.points = nn.Buffer(points)
        self.center = nn.Buffer(points.mean(0))
        self.centered = nn.Buffer(torch.cat([centered, -0.5 * centered.square().sum(1, keepdim=True)], 1))
        self.values = nn.Buffer(values)

    def forward(self, features: Tensor) -> Tensor:
        features = features.contiguous()
        step = max(1, _DISTANCES // self.points.shape[0])
        blocks = [self._averages(block) for block in features.split(step)]  # type: ignore[no-untyped-call]
        return torch.cat(blocks)

    def _averages(self, features: Tensor) -> Tensor:
        # The nearest has the largest product less half its own square; that comes as one more column.
        ones = features.new_ones((features.shape[0], 1))
        closeness = torch.cat([features - self.center, ones], 1) @ self.centered.T
        nearest = closeness.topk(self.count, 1).indices
        values = self.values[nearest]
        if not self.by_distance:
            return values.mean(1)
        distances = (features[:, None, :] - self.points[nearest]).square().sum(2).sqrt()
        at_point = (distances == 0).any(1, keepdim=True)
        weights = torch.where(at_point, (distances == 0).to(distances.dtype), 1 / distances)
        return (values * weights[:, :, None]).sum(1) / weights.sum(1, keepdim=True)


def neighbours_regressor(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """KNeighborsRegressor: Euclidean distances, weights uniform or by distance, several targets."""
    values = doubles(estimator._y)
    values = values[:, None] if values.dim() == 1 else values
    body = _neighbours(estimator, features, inputs, values)
    return Converted(body, {"value": nn.Identity()}, cost=_cost(body))


def neighbours_classifier(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """KNeighborsClassifier: Euclidean distances, weights uniform or by distance, one label a row."""
    if estimator.outputs_2d_:
        raise UnsupportedError("a KNeighborsClassifier of several labels a row is not supported")
    classes = list(estimator.classes_)
    ones = torch.eye(len(classes), dtype=torch.float64)[
        torch.from_numpy(np.array(estimator._y, dtype=np.int64))
    ]
    body = _neighbours(estimator, features, inputs, ones)
    outputs = {"label": Largest(np.inf), "proba": nn.Identity()}
    return Converted(body, outputs, classes, _cost(body))


def _neighbours(estimator: Any, features: list[Feature], inputs: Inputs, values: Tensor) -> Neighbours:
    metric = estimator.effective_metric_
    power = (estimator.effective_metric_params_ or {}).get("p", 2)
    if metric != "euclidean" and not (metric == "minkowski" and power == 2):
        raise UnsupportedError(
            f"{type(estimator).__qualname__} metric={metric!r}: only Euclidean distances are supported"
        )
    if estimator.weights not in ("uniform", "distance", None):
        raise UnsupportedError(f"{type(estimator).__qualname__} weights= of your own are not supported")
    inputs.refuse_null(features)
    inputs.needs_doubles = True
    points = doubles(estimator._fit_X)
    inputs.try_points(features, points[:64])
    return Neighbours(points, values, int(estimator.n_neighbors), estimator.weights == "distance")


def _cost(body: Neighbours) -> float:
    """Nanoseconds for a row: distances, and the selection of the nearest."""
    return body.points.shape[0] * (2.0 + 0.2 * body.points.shape[1])
