"""From the raw sums of tree ensembles to what their libraries call predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from tqp.core.errors import UnsupportedError
from tqp.ml.arrays import doubles
from tqp.ml.conversion import Inputs
from tqp.ml.lookup import Lookup, by_position
from tqp.ml.model import Converted, Feature, Label
from tqp.ml.sklearn.encoders import known_categories
from tqp.ml.trees.ensemble import Ensemble
from tqp.ml.trees.layers import TreeSum

#: Of a feature's thresholds, about as many are given to the proof.
_TRIED = 64


def tree_predictor(
    ensemble: Ensemble,
    features: list[Feature],
    inputs: Inputs,
    outputs: Mapping[str, nn.Module],
    classes: Sequence[Label] = (),
    prepared: Mapping[int, nn.Module] | None = None,
) -> Converted:
    """The predictor of an ensemble; `prepared` as for `TreeSum`.

    Features are computed as float64 unless they are the inputs as they are and the ensemble compares float32: rounding
    in another place could move a value over a threshold.
    """
    body = TreeSum(ensemble, prepared or {})
    if not ensemble.single or any(each.raw is None for each in features):
        inputs.needs_doubles = True
    for place in body.features:
        if ensemble.category_set[ensemble.feature == place][0] < 0:
            limits = np.unique(ensemble.threshold[ensemble.feature == place])
            inputs.try_values(features[place], limits[:: 1 + len(limits) // _TRIED])
    return Converted(body, dict(outputs), classes, body.cost + 2.0 * len(features))


def category_codes(
    known: Mapping[int, Sequence[Any]], features: list[Feature], inputs: Inputs, *, in_frames: bool = False
) -> dict[int, nn.Module]:
    """Modules for features whose values are categories, in the order of their codes. `in_frames`: the original takes them
    as columns of dtype category.

    Strings need none: the query gives their codes. Raises UnsupportedError if another step codes them differently.
    """
    modules: dict[int, nn.Module] = {}
    for place, values in known.items():
        inputs.trial(features[place]).is_category = in_frames
        found = known_categories(features[place], values, inputs)
        positions = list(range(len(values)))
        if features[place].raw not in inputs.words:
            codes = by_position(list(map(float, positions)), found.rows, found.count, math.nan, math.nan)
            modules[place] = Lookup(found.category(0, None), doubles(codes)[:, None])
        elif found.rows != positions:
            raise UnsupportedError("two steps code the strings of one input differently")
    return modules
