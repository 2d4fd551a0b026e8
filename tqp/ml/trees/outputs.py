"""From the raw sums of tree ensembles to what their libraries call predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tqp.core.errors import UnsupportedError
from tqp.ml.conversion import Feature, Inputs, Predictor
from tqp.ml.layers import Apply
from tqp.ml.trees.ensemble import Ensemble
from tqp.ml.trees.layers import TreeSum

#: Of a feature's thresholds, about as many are given to the proof.
_TRIED = 64


def both_of() -> Apply:
    """The probabilities of two classes from that of the second, [n, 1] to [n, 2]; those of several as they are."""
    return Apply(
        lambda shares: torch.cat([1 - shares, shares], 1) if shares.shape[1] == 1 else shares,
        elementwise=False,
    )


def tree_predictor(
    ensemble: Ensemble,
    features: list[Feature],
    inputs: Inputs,
    outputs: Mapping[str, nn.Module],
    classes: Sequence[object] = (),
    prepared: Mapping[int, nn.Module] | None = None,
) -> Predictor:
    """The predictor of an ensemble; `prepared` as for `TreeSum`.

    Features are computed as float64 unless they are the inputs as they are and the ensemble compares float32: rounding
    in another place could move a value over a threshold.
    """
    body = TreeSum(ensemble, prepared or {})
    if not ensemble.single or any(each.raw is None for each in features):
        inputs.compare_exactly()
    for place in body.features:
        if ensemble.category_set[ensemble.feature == place][0] < 0:
            limits = np.unique(ensemble.threshold[ensemble.feature == place])
            inputs.try_values(features[place], limits[:: 1 + len(limits) // _TRIED])
    return Predictor(body, dict(outputs), classes, body.cost + 2.0 * len(features))


class ValueCodes(nn.Module):
    """The position of a value among known ones, NaN for others: [n] to float64 [n]."""

    def __init__(self, known: Sequence[float]) -> None:
        super().__init__()
        values, positions = np.unique(np.array(known, dtype=np.float64), return_index=True)
        # As integers of the same bits, which no change of precision touches.
        self.known_bits = nn.Buffer(torch.from_numpy(values).view(torch.int64))
        self.positions = nn.Buffer(torch.from_numpy(positions))

    def forward(self, values: Tensor) -> Tensor:
        known = self.known_bits.view(torch.float64)
        values = values.to(torch.float64)
        place = torch.searchsorted(known, values.contiguous()).clamp_(max=known.shape[0] - 1)
        code = torch.index_select(self.positions, 0, place).to(torch.float64)
        return torch.where(torch.index_select(known, 0, place) == values, code, torch.nan)


def category_codes(
    known: Mapping[int, Sequence[Any]], features: list[Feature], inputs: Inputs
) -> dict[int, nn.Module]:
    """Modules for features whose values are categories, in the order of their codes.

    Strings need none: the query gives their codes. Raises UnsupportedError if another step codes them differently.
    """
    modules: dict[int, nn.Module] = {}
    for place, values in known.items():
        if any(isinstance(each, str) for each in values):
            for position, word in enumerate(values):
                if inputs.code(features[place], str(word)) != position:
                    raise UnsupportedError("two steps code the strings of one input differently")
        else:
            numbers = [float(each) for each in values]
            modules[place] = ValueCodes(numbers)
            inputs.try_values(features[place], numbers)
    return modules
