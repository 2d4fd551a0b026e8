"""Conversion of trained models to torch modules: what a converter works with, and which one takes which class.

A converter reads the attributes that training left in an estimator; nothing of the estimator's own library is imported
for it, called or copied. Features are followed from the inputs through all steps: which are still an input as it is
(only such ones may be strings), and which inputs' missing values may be in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.models import ModelInput
from tqp.ml.arrays import plain
from tqp.ml.folding import composed, inputs_read
from tqp.ml.model import Converted, Trial


@dataclass(frozen=True)
class Feature:
    """One column of the matrix between two steps. `raw`: the input that it still is, perhaps with its missing values
    filled; `missing`: the inputs whose NULLs would be in it."""

    raw: int | None
    missing: frozenset[int]


@dataclass
class Inputs:
    """The inputs of the whole model, and what steps have found out about them.

    A step that cannot deal with missing values, or with categories that it has not seen, says so for the inputs they come
    from, whether or not the last step gives them a weight: the original raises for them too.
    """

    names: Sequence[str]
    words: dict[int, dict[str, int]] = field(default_factory=dict)  # of inputs that are strings: their codes
    refuses_null: set[int] = field(default_factory=set)
    refuses_unseen: set[int] = field(default_factory=set)
    tried: dict[int, list[float]] = field(default_factory=dict)
    needs_doubles: bool = False
    missing_is_none: set[int] = field(default_factory=set)
    is_category: set[int] = field(default_factory=set)

    def features(self) -> list[Feature]:
        return [Feature(i, frozenset((i,))) for i in range(len(self.names))]

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
        if feature.raw is None:
            return "of a step"
        self.refuses_unseen.add(feature.raw)
        return self.names[feature.raw]

    def try_values(self, feature: Feature, values: Iterable[float]) -> None:
        """Numbers of this feature that matter to a step; the proof tries them and their neighbours."""
        if feature.raw is not None:
            self.tried.setdefault(feature.raw, []).extend(float(value) for value in values)

    def compare_exactly(self) -> None:
        """A step compares numbers with thresholds: rounded to float32 they may come to lie on its other side."""
        self.needs_doubles = True

    def trials(self) -> tuple[Trial, ...]:
        return tuple(
            Trial(
                tuple(self.tried.get(i, ())),
                i not in self.refuses_unseen,
                i in self.missing_is_none,
                i in self.is_category,
            )
            for i in range(len(self.names))
        )

    def described(self, read: set[int] | None) -> tuple[ModelInput, ...]:
        """`read`: the inputs on which the results depend; None: all."""
        return tuple(
            ModelInput(
                name,
                tuple(self.words[i]) if i in self.words else None,
                takes_null=i not in self.refuses_null,
                is_read=read is None or i in read,
                refuses_unseen=i in self.refuses_unseen and (read is None or i in read),
            )
            for i, name in enumerate(self.names)
        )


@dataclass
class Predictor:
    """A converted last step: see `Converted` for the meaning of the parts."""

    body: nn.Module
    outputs: dict[str, nn.Module]
    classes: Sequence[Any] = ()
    cost: float = 100.0
    margin: nn.Module | None = None
    cancels: bool = False


#: A step as a module, and the features it gives.
Transformed = tuple[nn.Module, list[Feature]]
TransformConverter = Callable[[Any, list[Feature], Inputs], Transformed]
PredictConverter = Callable[[Any, list[Feature], Inputs], Predictor]


@dataclass(frozen=True)
class Entry:
    """A line of the table of supported classes.

    `converter` makes a Predictor of the estimator or, of a transformer, a module; `transformer` is for the classes that may
    do both.
    """

    converter: Callable[..., Any]
    is_transformer: bool
    transformer: TransformConverter | None = None


def qualified_names(model: object) -> list[str]:
    """`library.Class` of the model's class and those it is derived from."""
    return [f"{each.__module__.split('.')[0]}.{each.__qualname__}" for each in type(model).__mro__]


def entry_of(model: object) -> Entry:
    """The table's line for a model. Raises UnsupportedError, naming the class."""
    from tqp.ml.supported import SUPPORTED

    for name in qualified_names(model):
        if name in SUPPORTED:
            return SUPPORTED[name]
    raise UnsupportedError(
        f"{type(model).__module__}.{type(model).__qualname__} has no converter; "
        "wrap it in a torch.nn.Module or a function on tensors, or register its ONNX form"
    )


def transform(estimator: Any, features: list[Feature], inputs: Inputs) -> Transformed:
    """A fitted transformer."""
    entry = entry_of(estimator)
    converter: TransformConverter | None = entry.converter if entry.is_transformer else entry.transformer
    if converter is None:
        raise UnsupportedError(f"{type(estimator).__qualname__} is no transformer that tqp knows")
    return converter(estimator, features, inputs)


def predictor(estimator: Any, features: list[Feature], inputs: Inputs) -> Predictor:
    """A fitted estimator that predicts, as modules."""
    entry = entry_of(estimator)
    if entry.is_transformer:
        return transformed(estimator, features, inputs)
    converter: PredictConverter = entry.converter
    return converter(estimator, features, inputs)


def transformed(estimator: Any, features: list[Feature], inputs: Inputs) -> Predictor:
    """A fitted transformer whose features are the values that a call gives."""
    module, given = transform(estimator, features, inputs)
    for feature in given:
        if feature.raw in inputs.words:
            raise UnsupportedError(
                f'the strings of "{inputs.names[feature.raw]}" are a result of the model: encode them in its last step'
            )
    return Predictor(module, {"value": nn.Identity()})


def convert(estimator: Any, names: Sequence[str] | None) -> Converted:
    """A fitted estimator or pipeline as torch modules. `names`: of its inputs; None: those it was fitted with.

    Raises UnsupportedError for what has no converter, BindError for one that is not fitted or other names than features.
    """
    entry_of(estimator)  # says that there is no converter before anything else
    inputs = Inputs(_input_names(estimator, names))
    try:
        found = predictor(estimator, inputs.features(), inputs)
    except AttributeError as error:
        if hasattr(estimator, "n_features_in_"):
            raise
        raise BindError(f"{type(estimator).__qualname__} is not fitted: {error}") from error
    body = composed([found.body])
    read = inputs_read(body)
    with torch.no_grad():
        raw = body(torch.empty((0, len(inputs.names)), dtype=torch.float64))
        columns = {kind: head(raw).shape[1] for kind, head in found.outputs.items() if kind != "label"}
    return Converted(
        body,
        inputs.described(None if read is None else {*read}),
        found.outputs,
        columns,
        tuple(plain(found.classes)),
        cost=found.cost,
        dtypes=(torch.float64,) if inputs.needs_doubles else (torch.float32, torch.float64),
        trials=inputs.trials(),
        margin=found.margin,
        cancels=found.cancels,
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
    _check_order(list(names), [str(name) for name in fitted] if fitted is not None else [])
    return list(names)


def _check_order(names: Sequence[str], fitted: Sequence[str]) -> None:
    """New names are given by place. Raises BindError for one that the model knows from another place."""
    for given, known in zip(names, fitted):
        if given != known and given in fitted:
            raise BindError(
                f'inputs= names "{given}" where the model was fitted with "{known}": inputs are in the order of the fit, '
                f"which is {', '.join(fitted)}"
            )


def of_booster(model: Any) -> tuple[int | None, Sequence[str] | None]:
    """How many features a booster of LightGBM or XGBoost has, and their names where it knows them."""
    if hasattr(model, "num_feature"):
        return model.num_feature(), model.feature_name()
    if hasattr(model, "num_features"):
        return model.num_features(), model.feature_names
    return None, None
