"""Compositions of scikit-learn: pipelines, column transformers, unions, and regressors of a transformed target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from tqp.core.errors import UnsupportedError
from tqp.ml.conversion import (
    Feature,
    Inputs,
    Predictor,
    Transformed,
    entry_of,
    predictor,
    transform,
    transformed,
)
from tqp.ml.folding import composed
from tqp.ml.layers import Multiply, Select
from tqp.ml.sklearn.encoders import side_by_side
from tqp.ml.sklearn.scalers import inverse
from tqp.ml.trees.layers import TreeSum


def pipeline(estimator: Any, features: list[Feature], inputs: Inputs) -> Predictor:
    """Pipeline: its transformers, then what its last step predicts or gives."""
    steps = [step for _, step in estimator.steps]
    if _is_nothing(steps[-1]) or _only_transforms(steps[-1]):
        return transformed(estimator, features, inputs)
    modules, features = _chain(steps[:-1], features, inputs)
    last = predictor(steps[-1], features, inputs)
    return replace(last, body=composed([*modules, last.body]))


def pipeline_of_transformers(estimator: Any, features: list[Feature], inputs: Inputs) -> Transformed:
    """Pipeline whose last step transforms too."""
    modules, features = _chain([step for _, step in estimator.steps], features, inputs)
    return composed(modules), features


def _is_nothing(step: Any) -> bool:
    return step is None or _is(step, "passthrough")


def _only_transforms(estimator: Any) -> bool:
    entry = entry_of(estimator)
    if entry.converter is pipeline:
        last = estimator.steps[-1][1]
        return _is_nothing(last) or _only_transforms(last)
    return entry.is_transformer


def _chain(
    steps: list[Any], features: list[Feature], inputs: Inputs
) -> tuple[list[nn.Module], list[Feature]]:
    modules = []
    for step in steps:
        if _is_nothing(step):
            continue
        module, features = transform(step, features, inputs)
        modules.append(module)
    return modules, features


def column_transformer(estimator: Any, features: list[Feature], inputs: Inputs) -> Transformed:
    """ColumnTransformer: each transformer on its columns, the results in the order of the transformers."""
    places_of = estimator._transformer_to_input_indices
    parts = [
        (name, each, [int(place) for place in places_of[name]])
        for name, each, _ in estimator.transformers_
        if not _is(each, "drop") and len(places_of[name])
    ]
    return _parts(parts, features, inputs, estimator.transformer_weights)


def feature_union(estimator: Any, features: list[Feature], inputs: Inputs) -> Transformed:
    """FeatureUnion: each transformer on all columns."""
    every = list(range(len(features)))
    parts = [(name, each, every) for name, each in estimator.transformer_list if not _is(each, "drop")]
    return _parts(parts, features, inputs, estimator.transformer_weights)


def _parts(
    parts: list[tuple[str, Any, list[int]]],
    features: list[Feature],
    inputs: Inputs,
    weights: dict[str, float] | None,
) -> Transformed:
    modules, given = [], []
    for name, transformer, places in parts:
        module: nn.Module = nn.Identity()
        chosen = [features[place] for place in places]
        if not _is(transformer, "passthrough"):
            module, chosen = transform(transformer, chosen, inputs)
        if not chosen:
            continue
        modules.append(composed([Select(places), module, *_weighting(weights, name, len(chosen))]))
        given += chosen
    return side_by_side(modules), given


def _is(transformer: Any, word: str) -> bool:
    return isinstance(transformer, str) and transformer == word


def _weighting(weights: dict[str, float] | None, name: str, width: int) -> list[nn.Module]:
    if weights is None or name not in weights:
        return []
    weight = torch.full((width,), float(weights[name]), dtype=torch.float64)
    return [Multiply(weight)]


def target_regressor(estimator: Any, features: list[Feature], inputs: Inputs) -> Predictor:
    """TransformedTargetRegressor: what its regressor predicts, transformed back."""
    found = predictor(estimator.regressor_, features, inputs)
    back = inverse(estimator.transformer_)
    value = found.outputs["value"]
    if not isinstance(value, nn.Identity) or any(isinstance(each, TreeSum) for each in found.body.modules()):
        inputs.needs_doubles = True  # as what is transformed back then are
    if isinstance(value, nn.Identity):
        return replace(found, body=composed([found.body, back]))
    return replace(found, outputs={"value": composed([value, back])})


def search(estimator: Any, features: list[Feature], inputs: Inputs) -> Predictor:
    """GridSearchCV and its kin: the best estimator, fitted again."""
    if not hasattr(estimator, "best_estimator_"):
        raise UnsupportedError(
            f"{type(estimator).__qualname__} without a best_estimator_ (refit=False) predicts nothing"
        )
    return predictor(estimator.best_estimator_, features, inputs)
