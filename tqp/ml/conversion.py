"""Conversion of trained models to torch modules: what a converter works with, and which one takes which class.

A converter reads the attributes that training left in an estimator; nothing of the estimator's own library is imported
for it, called or copied. Features are followed from the inputs through all steps: which are still an input as it is
(only such ones may be strings), and which inputs' missing values may be in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.models import ModelInput
from tqp.ml.arrays import plain
from tqp.ml.folding import composed, inputs_read
from tqp.ml.model import Converted, Feature, Trial
from tqp.ml.threshold import RAW


class Inputs:
    """The inputs of the whole model, and what steps have found out about them.

    A step that cannot deal with missing values, or with categories that it has not seen, says so for the inputs they come
    from, whether or not the last step gives them a weight: the original raises for them too.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.words: dict[int, dict[str, int]] = {}  # of inputs that are strings: their codes
        self.refuses_null: set[int] = set()
        #: Whether a step compares numbers with thresholds: rounded to float32 they may come to lie on its other side.
        self.needs_doubles = False
        self.trials = [Trial() for _ in names]

    def code(self, feature: Feature, word: str) -> int:
        """The number that stands for a string in a feature that is still an input. Raises UnsupportedError otherwise."""
        if feature.raw is None:
            raise UnsupportedError("strings are supported as inputs of a model, not as results of its steps")
        known = self.words.setdefault(feature.raw, {})
        return known.setdefault(word, len(known))

    def refuse_null(self, features: Iterable[Feature]) -> None:
        """A step cannot deal with missing values in these."""
        for feature in features:
            self.refuses_null |= feature.missing

    def refuse_unseen(self, feature: Feature) -> str:
        """A step raises for categories of this feature that it does not know; returns the input's name for the error."""
        self.trial(feature).takes_unseen = False
        return "of a step" if feature.raw is None else self.names[feature.raw]

    def trial(self, feature: Feature) -> Trial:
        """Where to say what the proof tries for a feature; without effect if it is no input."""
        return Trial() if feature.raw is None else self.trials[feature.raw]

    def try_values(self, feature: Feature, values: Iterable[float]) -> None:
        """Numbers of this feature that matter to a step; the proof tries them and their neighbours."""
        self.trial(feature).values.extend(map(float, values))

    def try_points(self, features: Sequence[Feature], points: Tensor) -> None:
        """As `try_values`, of all features: [n, f]."""
        for feature, column in zip(features, points.T, strict=True):
            self.try_values(feature, column.tolist())

    def described(self, read: set[int] | None) -> tuple[ModelInput, ...]:
        """`read`: the inputs on which the results depend; None: all."""
        return tuple(
            ModelInput(
                name,
                tuple(self.words[i]) if i in self.words else None,
                takes_null=i not in self.refuses_null,
                is_read=read is None or i in read,
                refuses_unseen=not self.trials[i].takes_unseen and (read is None or i in read),
            )
            for i, name in enumerate(self.names)
        )


#: Makes a step of a fitted estimator, of the features that come to it and the inputs of the whole model.
Converter = Callable[[Any, list[Feature], Inputs], Converted]


def converter_of(model: object) -> Converter:
    """What the table has for a model or one it is derived from. Raises UnsupportedError, naming the class."""
    from tqp.ml.supported import SUPPORTED

    for each in type(model).__mro__:
        name = f"{each.__module__.split('.')[0]}.{each.__qualname__}"
        if name in SUPPORTED:
            return SUPPORTED[name]
    raise UnsupportedError(
        f"{type(model).__module__}.{type(model).__qualname__} has no converter; "
        "wrap it in a torch.nn.Module or a function on tensors, or register its ONNX form"
    )


def converted(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """A fitted estimator as modules."""
    return converter_of(estimator)(estimator, features, inputs)


def transformed(body: nn.Module, given: list[Feature]) -> Converted:
    """A step whose values are features of the next one."""
    return Converted(body, {"value": nn.Identity()}, given=given)


def transform(estimator: Any, features: list[Feature], inputs: Inputs) -> tuple[nn.Module, list[Feature]]:
    """A fitted transformer, and the features it gives."""
    found = converted(estimator, features, inputs)
    if found.given is None:
        raise UnsupportedError(f"{type(estimator).__qualname__} is no transformer that tqp knows")
    return composed([found.body, found.outputs["value"]]), found.given


def convert(estimator: Any, names: Sequence[str] | None) -> Converted:
    """A fitted estimator or pipeline as torch modules. `names`: of its inputs; None: those it was fitted with.

    Raises UnsupportedError for what has no converter, BindError for one that is not fitted or other names than features.
    """
    converter = converter_of(estimator)  # says that there is none before anything else
    inputs = Inputs(_input_names(estimator, names))
    try:
        found = converter(estimator, [Feature(i, frozenset((i,))) for i in range(len(inputs.names))], inputs)
    except AttributeError as error:
        if hasattr(estimator, "n_features_in_"):
            raise
        raise BindError(f"{type(estimator).__qualname__} is not fitted: {error}") from error
    for feature in found.given or ():
        if feature.raw in inputs.words:
            raise UnsupportedError(
                f'the strings of "{inputs.names[feature.raw]}" are a result of the model: encode them in its last step'
            )
    body = composed([found.body])
    read = inputs_read(body)
    with torch.no_grad():
        raw = body(torch.empty((0, len(inputs.names)), dtype=torch.float64))
        columns = {kind: head(raw).shape[1] for kind, head in found.outputs.items() if kind != "label"}
    return replace(
        found,
        body=body,
        inputs=inputs.described(None if read is None else {*read}),
        columns={RAW: raw.shape[1], **columns},
        classes=tuple(plain(found.classes)),
        dtypes=(torch.float64,) if inputs.needs_doubles else found.dtypes,
        trials=inputs.trials,
    )


def _input_names(estimator: Any, names: Sequence[str] | None) -> list[str]:
    count = getattr(estimator, "n_features_in_", None)
    fitted = getattr(estimator, "feature_names_in_", None)
    if count is None:
        count, fitted = of_booster(estimator)
    if names is None:
        if fitted is not None:
            return [str(name) for name in fitted]
        if count is None:
            raise BindError(
                f"{type(estimator).__qualname__} does not say how many inputs it has: fit it, or name them with inputs=[...]"
            )
        return [f"x{i}" for i in range(int(count))]
    if count is not None and len(names) != int(count):
        raise BindError(f"inputs= names {len(names)} inputs, and the model was fitted with {int(count)}")
    fitted = [str(name) for name in fitted] if fitted is not None else []
    for given, known in zip(names, fitted):
        if given != known and given in fitted:
            raise BindError(
                f'inputs= names "{given}" where the model was fitted with "{known}": inputs are in the order of the fit, '
                f"which is {', '.join(fitted)}"
            )
    return list(names)


def of_booster(model: Any) -> tuple[int | None, Sequence[str] | None]:
    """How many features a booster of LightGBM or XGBoost has, and their names where it knows them."""
    if hasattr(model, "num_feature"):
        return model.num_feature(), model.feature_name()
    if hasattr(model, "num_features"):
        return model.num_features(), model.feature_names
    return None, None
