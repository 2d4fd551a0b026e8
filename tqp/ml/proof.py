"""Proof at registration: the converted model against the original, on a sample or on rows made up to be awkward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.core.errors import BindError
from tqp.core.models import ModelInput
from tqp.ml.model import Converted, Proof, make_head, output_of
from tqp.ml.scorer import Scorer

#: Differences up to this are rounding: absolute for numbers up to one, else relative.
TOLERANCE = 1e-5
_ROWS = 512

#: Which method of an estimator gives what an output does.
_METHODS = {"proba": "predict_proba", "score": "decision_function", "label": "predict", "value": "predict"}


def prove(name: str, model: Any, converted: Converted, sample: Any) -> tuple[torch.dtype, Proof]:
    """The first precision in which the converted model agrees with the original, and by how much.

    Raises BindError with the figures if there is none.
    """
    rows = (
        Rows.of_sample(sample, converted.inputs)
        if sample is not None
        else Rows.made_up(converted.inputs, model)
    )
    wanted = {kind: rows.original(model, kind) for kind in converted.outputs}
    proof = Proof(0, 0.0)
    for dtype in converted.dtypes:
        scorer = Scorer(converted.body.to(dtype), [1] * len(converted.inputs), dtype)
        with torch.no_grad():
            raw = scorer(rows.columns(), rows.count)
            by_output = {
                kind: _difference(converted, kind, raw, values)
                for kind, values in wanted.items()
                if values is not None
            }
        proof = Proof(rows.count, max(by_output.values(), default=0.0), by_output)
        if proof.difference <= TOLERANCE:
            return dtype, proof
    figures = ", ".join(f"{kind} {value:.3g}" for kind, value in proof.by_output.items())
    raise BindError(
        f'model "{name}" is refused: the converted {type(model).__qualname__} differs from the original by up to '
        f"{proof.difference:.3g} on {rows.count} rows ({figures}); the tolerance is {TOLERANCE:g}"
    )


def _difference(converted: Converted, kind: str, raw: Tensor, wanted: Any) -> float:
    """The largest difference of an output; for labels the share of rows that differ without a tie."""
    if kind == "label":
        return _label_difference(converted, raw, wanted)
    output = output_of(converted, kind)
    assert output is not None
    ours = converted.outputs[kind](raw).double().numpy()
    theirs = np.asarray(wanted, dtype=np.float64).reshape(ours.shape)
    scale = np.maximum(1.0, np.abs(theirs))
    with np.errstate(invalid="ignore"):
        difference = np.abs(ours - theirs) / scale
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    difference[same] = 0.0
    return float(np.nan_to_num(difference, nan=np.inf).max(initial=0.0))


def _label_difference(converted: Converted, raw: Tensor, wanted: Any) -> float:
    output = output_of(converted, "label")
    assert output is not None
    found = make_head(converted, output)(raw).numpy()
    classes = np.asarray(list(converted.classes))
    ours = classes[found] if output.labels is not None else found
    differs = ours != np.asarray(wanted)
    if not differs.any():
        return 0.0
    # Where two classes are equally likely, rounding decides.
    scores = converted.outputs.get("proba", torch.nn.Identity())(raw).double()
    if scores.shape[1] == 1:
        margin = scores[:, 0].abs()
    else:
        best = scores.topk(2, 1).values
        margin = best[:, 0] - best[:, 1]
    return float((torch.from_numpy(differs) & (margin > TOLERANCE)).double().mean())


class Rows:
    """Rows of inputs, in the form that the converted model takes and in the one that the original takes."""

    def __init__(self, inputs: Sequence[ModelInput], values: Sequence[Any], as_frame: bool) -> None:
        """`values`: for each input a float64 array, or an object array of strings and None."""
        self.inputs, self.values, self.as_frame = inputs, values, as_frame
        self.count = len(values[0])

    @classmethod
    def of_sample(cls, sample: Any, inputs: Sequence[ModelInput]) -> Rows:
        """`sample`: a data frame with the inputs as columns, or an array [n, inputs]."""
        if hasattr(sample, "columns"):
            values = [np.asarray(sample[item.name]) for item in inputs]
        else:
            matrix = np.asarray(sample)
            if matrix.ndim != 2 or matrix.shape[1] != len(inputs):
                raise BindError(f"sample= is an array {matrix.shape}; the model has {len(inputs)} inputs")
            values = list(matrix.T)
        values = [
            each.astype(object) if item.categories is not None else each.astype(np.float64)
            for item, each in zip(inputs, values, strict=True)
        ]
        return cls(inputs, values, hasattr(sample, "columns"))

    @classmethod
    def made_up(cls, inputs: Sequence[ModelInput], model: Any) -> Rows:
        """Ordinary, constant, extreme, missing and unseen values, some of each in every column."""
        random = np.random.default_rng(0)
        values = [_made_up(item, random) for item in inputs]
        return cls(inputs, values, hasattr(model, "feature_names_in_"))

    def columns(self) -> list[tuple[Tensor, Tensor | None]]:
        made: list[tuple[Tensor, Tensor | None]] = []
        for item, values in zip(self.inputs, self.values, strict=True):
            if item.categories is None:
                made.append((torch.from_numpy(values), None))
                continue
            codes = {word: code for code, word in enumerate(item.categories)}
            is_null = np.array([not isinstance(value, str) for value in values])
            numbers = np.array([codes.get(value, -1) for value in values], dtype=np.int64)
            made.append((torch.from_numpy(numbers), torch.from_numpy(~is_null)))
        return made

    def original(self, model: Any, kind: str) -> Any:
        """What the original gives; None if it has no such method."""
        method = getattr(model, _METHODS[kind], None)
        if method is None and kind == "value":
            method = getattr(model, "transform", None)
        return None if method is None else method(self._table())

    def _table(self) -> Any:
        if self.as_frame:
            import pandas as pd

            return pd.DataFrame(
                {item.name: values for item, values in zip(self.inputs, self.values, strict=True)}
            )
        if any(item.categories is not None for item in self.inputs):
            return np.stack([values.astype(object) for values in self.values], axis=1)
        return np.stack(self.values, axis=1)


def _made_up(item: ModelInput, random: np.random.Generator) -> Any:
    if item.categories is not None:
        words: list[Any] = list(item.categories)
        if item.takes_null:
            words.append(None)
        return np.array([words[i] for i in random.integers(0, len(words), _ROWS)], dtype=object)
    values = random.normal(size=_ROWS) * 10.0 ** random.integers(-2, 4, _ROWS)
    values[random.random(_ROWS) < 0.1] = 0.0
    values[random.random(_ROWS) < 0.2] = random.integers(-3, 4)
    if item.takes_null:
        values[random.random(_ROWS) < 0.1] = np.nan
    return values
