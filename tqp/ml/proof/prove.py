"""Proof at registration: the converted model against the original, on a sample or on rows made up to be awkward."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.core.errors import BindError
from tqp.ml.model import Converted, Proof
from tqp.ml.proof.rows import rows_for
from tqp.ml.scorer import Scorer
from tqp.ml.threshold import RAW

#: Differences up to this are rounding: absolute for numbers up to one, else relative.
TOLERANCE = 1e-5


def prove(
    name: str, model: Any, converted: Converted, sample: Any, *, bf16: bool = False
) -> tuple[torch.dtype, Proof]:
    """The first precision in which the converted model agrees with the original, and by how much.

    `sample`: rows of the user, else some are made up: see `rows_for`. `bf16`: matrix products are to be made in bfloat16;
    the conversion must be right without that, but the difference is the one with it. Raises BindError with the figures
    where no precision is enough.
    """
    rows, given, left_out = rows_for(model, converted, sample)
    wanted = {kind: values for kind, values in given.items() if values is not None}
    if all(kind != "label" and _is_all_missing(values) for kind, values in wanted.items()):
        raise BindError(
            f'model "{name}" cannot be compared with the original, which gives only missing values for {rows.count} rows; '
            "give some of yours as sample="
        )

    overflows = _overflows(wanted, rows.is_extreme())

    def compare(dtype: torch.dtype, bf16: bool = False) -> Proof:
        body = copy.deepcopy(converted.body).to(dtype)
        scorer = Scorer(body, [1] * len(converted.inputs), dtype, converted.columns[RAW], bf16=bf16)
        with torch.no_grad():
            raw = scorer(rows.columns(), rows.count)
            by_output = {
                kind: _difference(converted, kind, raw, values, ~overflows) for kind, values in wanted.items()
            }
        return Proof(rows.count, max(by_output.values()), by_output, _named(left_out, overflows))

    proof = Proof(0, 0.0)
    for dtype in converted.dtypes:
        proof = compare(dtype)
        # A few rows do not show the largest rounding of all: the lower precision must be better than the tolerance.
        if proof.difference <= (TOLERANCE if dtype is converted.dtypes[-1] else TOLERANCE / 4):
            if bf16 and torch.float32 in converted.dtypes:
                return torch.float32, compare(torch.float32, bf16=True)
            return dtype, proof
    figures = ", ".join(f"{kind} {value:.3g}" for kind, value in proof.by_output.items())
    raise BindError(
        f'model "{name}" is refused: its converted form differs from the original by up to '
        f"{proof.difference:.3g} on {rows.count} rows ({figures}); the tolerance is {TOLERANCE:g}"
    )


def _named(left_out: Sequence[str], overflows: Any) -> tuple[str, ...]:
    """What the comparison did without, for people."""
    named = [_LEFT_OUT[each] for each in left_out if each in _LEFT_OUT]
    return (*named, *(["extremes for which the original overflows"] if overflows.any() else []))


_LEFT_OUT = {
    "unseen": "values that the model was not fitted with",
    "missing": "missing values",
    "extreme": "extremes",
    "other": "numbers other than 0 and 1",
}


def _overflows(wanted: Mapping[str, Any], is_extreme: Any) -> Any:
    """For each row, whether it is an extreme that the original cannot score: bool [n]."""
    scored = np.ones(is_extreme.shape[0], np.bool_)
    for kind, values in wanted.items():
        numbers = None if kind == "label" else np.asarray(values, dtype=np.float64)
        if numbers is not None and numbers.shape[:1] == scored.shape:
            scored &= np.isfinite(numbers).reshape(scored.shape[0], -1).all(axis=1)
    return is_extreme & ~scored


def _is_all_missing(values: Any) -> bool:
    return bool(np.isnan(np.asarray(values, dtype=np.float64)).all())


def _difference(converted: Converted, kind: str, raw: Tensor, wanted: Any, counts: Any) -> float:
    """The largest difference of an output; for labels the share of rows that differ without a tie.

    `counts`: bool [n], the rows to compare.
    """
    if kind == "label":
        return _label_difference(converted, raw, wanted, counts)
    ours = converted.outputs[kind](raw).double().numpy()
    theirs = np.asarray(wanted, dtype=np.float64)
    if theirs.size != ours.size:
        return np.inf
    theirs = theirs.reshape(ours.shape)
    scale = np.maximum(1.0, np.abs(theirs))
    with np.errstate(invalid="ignore"):
        difference = np.abs(ours - theirs) / scale
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    difference[same] = 0.0
    difference.reshape(counts.shape[0], -1)[~counts] = 0.0
    return float(np.nan_to_num(difference, nan=np.inf).max(initial=0.0))


def _label_difference(converted: Converted, raw: Tensor, wanted: Any, counts: Any) -> float:
    ours = np.asarray(list(converted.classes))[converted.outputs["label"](raw).numpy()]
    differs = (ours != np.asarray(wanted)) & counts
    if not differs.any():
        return 0.0
    # Where two classes are equally likely, rounding decides.
    is_tie = _margin(converted, raw) <= TOLERANCE
    return float((torch.from_numpy(differs) & ~is_tie).double().mean())


def _margin(converted: Converted, raw: Tensor) -> Tensor:
    """How far each row's label is from another one [n]."""
    if converted.margin is not None:
        margin: Tensor = converted.margin(raw)
        return margin
    scores: Tensor = converted.outputs.get("proba", torch.nn.Identity())(raw).double()
    if scores.shape[1] == 1:
        return scores[:, 0].abs()
    best: Tensor = scores.topk(2, 1).values
    return best[:, 0] - best[:, 1]
