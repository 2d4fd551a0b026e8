"""Compositions of scikit-learn: pipelines, column transformers, unions, and regressors of a transformed target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from tqp.core.errors import UnsupportedError
from tqp.ml.conversion import (
    Inputs,
    converted,
    transform,
    transformed,
)
from tqp.ml.folding import composed
from tqp.ml.layers import Select, link
from tqp.ml.model import Converted, Feature
from tqp.ml.sklearn.encoders import side_by_side
from tqp.ml.sklearn.scalers import inverse
from tqp.ml.trees.layers import TreeSum

#: Of steps, what does nothing.
_NOTHING = (None, "passthrough")


def pipeline(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """Pipeline: its transformers, then what its last step predicts or gives."""
    *before, last = [step for _, step in estimator.steps]
    modules = []
    for step in before:
        if step not in _NOTHING:
            module, features = transform(step, features, inputs)
            modules.append(module)
    nothing = transformed(nn.Identity(), features)
    found = nothing if last in _NOTHING else converted(last, features, inputs)
    return replace(found, body=composed([*modules, found.body]))


def column_transformer(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """ColumnTransformer: each transformer on its columns, the results in the order of the transformers."""
    places_of = estimator._transformer_to_input_indices
    parts = [
        (name, each, [int(place) for place in places_of[name]])
        for name, each, _ in estimator.transformers_
        if each != "drop" and len(places_of[name])
    ]
    return _parts(parts, features, inputs, estimator.transformer_weights)


def feature_union(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """FeatureUnion: each transformer on all columns."""
    every = list(range(len(features)))
    parts = [(name, each, every) for name, each in estimator.transformer_list if each != "drop"]
    return _parts(parts, features, inputs, estimator.transformer_weights)


def _parts(
    parts: list[tuple[str, Any, list[int]]],
    features: list[Feature],
    inputs: Inputs,
    weights: dict[str, float] | None,
) -> Converted:
    modules, widths, given = [], [], []
    for name, transformer, places in parts:
        module: nn.Module = nn.Identity()
        chosen = [features[place] for place in places]
        if transformer not in _NOTHING:
            module, chosen = transform(transformer, chosen, inputs)
        if not chosen:
            continue
        weight = float((weights or {}).get(name, 1.0))
        modules.append(composed([Select(places), module, link("identity", weight)]))
        widths.append(len(chosen))
        given += chosen
    return transformed(side_by_side(modules, widths), given)


def target_regressor(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """TransformedTargetRegressor: what its regressor predicts, transformed back."""
    found = converted(estimator.regressor_, features, inputs)
    back = inverse(estimator.transformer_)
    value = found.outputs["value"]
    if isinstance(value, nn.Identity) and not any(isinstance(each, TreeSum) for each in found.body.modules()):
        return replace(found, body=composed([found.body, back]))
    inputs.needs_doubles = True  # as what is transformed back then are
    return replace(found, outputs={"value": composed([value, back])})


def search(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """GridSearchCV and its kin: the best estimator, fitted again."""
    if not hasattr(estimator, "best_estimator_"):
        raise UnsupportedError(
            f"{type(estimator).__qualname__} without a best_estimator_ (refit=False) predicts nothing"
        )
    return converted(estimator.best_estimator_, features, inputs)
