"""Rows for the proof: a sample that the user gives, or rows made up to be awkward, for both forms of a model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.core.errors import BindError
from tqp.core.models import ModelInput
from tqp.ml.model import Converted, Trial
from tqp.ml.sklearn.encoders import is_missing

_ROWS = 512
_EXTREME = 1e100
_UNSEEN = "\x7fnever seen"

#: Which method of an estimator gives what an output does.
_METHODS = {"proba": "predict_proba", "score": "decision_function", "label": "predict", "value": "predict"}

#: Kinds of values that are left out, in this order, until the original no longer raises.
_LEFT_OUT = (
    (),
    ("unseen",),
    ("missing",),
    ("unseen", "missing"),
    ("unseen", "missing", "extreme"),
    ("unseen", "missing", "extreme", "other"),
)


class Rows:
    """Rows of inputs, in the form that the converted model takes and in the one that the original takes."""

    def __init__(self, converted: Converted, values: Sequence[Any]) -> None:
        """`values`: for each input a float64 array, or an object array of strings and None."""
        self.inputs, self.trials, self.values = converted.inputs, converted.trials, values
        self.count = len(values[0])

    @classmethod
    def of_sample(cls, sample: Any, converted: Converted) -> Rows:
        """`sample`: a data frame, an Arrow table or a mapping with the inputs as columns, or an array [n, inputs].

        Raises BindError if an input is not in it.
        """
        values = [
            _strings(column) if item.categories is not None else _numbers(column, item.name)
            for item, column in zip(converted.inputs, _sample_columns(sample, converted.inputs), strict=True)
        ]
        counts = {len(each) for each in values}
        if counts == {0}:
            raise BindError("sample= has no rows")
        if len(counts) > 1:
            raise BindError(f"sample= has columns of different lengths: {sorted(counts)}")
        return cls(converted, values)

    @classmethod
    def made_up(cls, converted: Converted, left_out: Sequence[str] = ()) -> Rows:
        """Ordinary, constant, extreme, missing and unseen values, and those that matter to the model, in every column."""
        random = np.random.default_rng(0)
        both = zip(converted.inputs, converted.trials, strict=True)
        return cls(converted, [_made_up(item, trial, random, left_out) for item, trial in both])

    def columns(self) -> list[tuple[Tensor, Tensor | None]]:
        """Values and validity, as a query gives them to the model."""
        made: list[tuple[Tensor, Tensor | None]] = []
        for item, values in zip(self.inputs, self.values, strict=True):
            if item.categories is None:
                made.append((torch.from_numpy(values), None))
                continue
            codes = {word: code for code, word in enumerate(item.categories)}
            numbers = np.array([codes.get(value, -1) for value in values], dtype=np.int64)
            validity = np.array([value is not None for value in values])
            made.append((torch.from_numpy(numbers), torch.from_numpy(validity)))
        return made

    def original(self, model: Any, kind: str) -> Any:
        """What the original gives; None if it has no such method."""
        method = getattr(model, _METHODS[kind], None)
        if kind == "value" and (method is None or hasattr(_last_step(model), "cluster_centers_")):
            method = getattr(model, "transform", None)
        if method is None:
            return None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            made = method(self._table(model))
        return made.toarray() if hasattr(made, "toarray") else made

    def is_extreme(self) -> Any:
        """For each row, whether a number of it is so large that its square, or its cube, is beyond float64: bool [n]."""
        numbers = [values for item, values in zip(self.inputs, self.values) if item.categories is None]
        return np.any([np.abs(np.nan_to_num(each)) >= _EXTREME for each in numbers] or [[False]], axis=0)

    def _table(self, model: Any) -> Any:
        columns = [
            _with_missing(values, item, trial)
            for item, trial, values in zip(self.inputs, self.trials, self.values, strict=True)
        ]
        names = getattr(model, "feature_names_in_", None)
        if names is not None:
            import pandas as pd

            return pd.DataFrame(
                {
                    name: pd.Series(_category(each) if trial.is_category else each)
                    for name, trial, each in zip(names, self.trials, columns, strict=True)
                }
            )
        if all(each.dtype == np.float64 for each in columns):
            return np.stack(columns, axis=1)
        return np.stack([each.astype(object) for each in columns], axis=1)


def _last_step(model: Any) -> Any:
    """What of a pipeline, or of a search for parameters, makes its predictions."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(getattr(model, "steps", None), list):
            model = model.steps[-1][1]
        else:
            return model


def rows_for(model: Any, converted: Converted, sample: Any) -> tuple[Rows, dict[str, Any], tuple[str, ...]]:
    """Rows, what the original gives for them by kind of output, and the kinds of values that none of them holds.

    A kind of made-up value that the original raises for is left out; extremes and values that matter exactly, where it
    cancels. Raises BindError if it raises for all, or for a sample.
    """
    always: tuple[str, ...] = ("extreme", "exact") if converted.cancels else ()
    failure: Exception | None = None
    for left_out in [(*kinds, *always) for kinds in _LEFT_OUT] if sample is None else [()]:
        rows = Rows.made_up(converted, left_out) if sample is None else Rows.of_sample(sample, converted)
        try:
            return rows, {kind: rows.original(model, kind) for kind in converted.outputs}, left_out
        except (ValueError, TypeError, IndexError, ArithmeticError) as error:
            failure = failure or error
    made_up_rows = "rows made up to compare with it; give some of yours as sample="
    what = made_up_rows if sample is None else "the sample"
    raise BindError(f"{type(model).__qualname__} itself raises on {what}: {failure}") from failure


def _category(values: Any) -> Any:
    """A column of dtype category; of whole numbers as integers."""
    import pandas as pd

    column = pd.Categorical(values)
    known = column.categories
    if known.dtype == np.float64 and (known == np.trunc(known)).all():
        return column.rename_categories(known.astype(np.int64))
    return column


def _with_missing(values: Any, item: ModelInput, trial: Trial) -> Any:
    """The values with the missing ones as the original knows them."""
    if item.categories is not None:
        missing = None if trial.missing_is_none else np.nan
        return np.array([missing if value is None else value for value in values], dtype=object)
    if trial.missing_is_none and np.isnan(values).any():
        return np.array([None if np.isnan(value) else value for value in values], dtype=object)
    return values


def _sample_columns(sample: Any, inputs: Sequence[ModelInput]) -> list[Any]:
    names = getattr(sample, "column_names", None)  # of Arrow tables, whose `columns` are the data
    if names is None and isinstance(sample, Mapping):
        names = list(sample)
    if names is None and hasattr(sample, "columns"):
        names = list(sample.columns)
    if names is not None:
        absent = [item.name for item in inputs if item.name not in names]
        if absent:
            raise BindError(
                f"sample= has no column {', '.join(absent)}; the model's inputs are its columns, by name"
            )
        columns = [sample[item.name] for item in inputs]
        return [
            np.asarray(each, dtype=object if isinstance(each, list | tuple) else None) for each in columns
        ]
    matrix = np.asarray(sample)
    if matrix.ndim != 2 or matrix.shape[1] != len(inputs):
        raise BindError(f"sample= is an array {matrix.shape}; the model has {len(inputs)} inputs")
    return list(matrix.T)


def _strings(column: Any) -> Any:
    return np.array([value if isinstance(value, str) else None for value in column], dtype=object)


def _numbers(column: Any, name: str) -> Any:
    if column.dtype == object:
        column = np.array([np.nan if is_missing(value) else value for value in column], dtype=object)
    try:
        return np.array(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BindError(f'sample=: the column "{name}" has values that are no numbers: {error}') from error


def _made_up(item: ModelInput, trial: Trial, random: np.random.Generator, left_out: Sequence[str]) -> Any:
    """One column. Its last eighth is constant; where one is missing or extreme, the others are as they come."""
    takes_null = item.takes_null and "missing" not in left_out
    constant = slice(_ROWS - _ROWS // 8, _ROWS)
    if item.categories is not None:
        words: list[Any] = list(item.categories)
        if trial.takes_unseen and "unseen" not in left_out or not words:
            words.append(_UNSEEN)
        if takes_null:
            words.append(None)
        column = np.array([words[i] for i in random.integers(0, len(words), _ROWS)], dtype=object)
        column[constant] = words[0]
        return column
    tried = np.array([value for value in trial.values if np.isfinite(value)])
    values = random.normal(size=_ROWS) * 10.0 ** random.integers(-2, 4, _ROWS)
    values[random.random(_ROWS) < 0.1] = 0.0
    values[random.random(_ROWS) < 0.2] = random.integers(-3, 4)
    if tried.size:
        chosen = random.choice(tried, _ROWS)
        if trial.takes_unseen and "unseen" not in left_out:
            values = np.where(
                random.random(_ROWS) < 0.7, _near(chosen, random, "exact" not in left_out), values
            )
        else:
            values = chosen
    if "extreme" not in left_out and trial.takes_unseen:
        values[random.random(_ROWS) < 0.01] = 1e6 * random.choice((-1, 1))
    values[constant] = tried[0] if tried.size and "extreme" not in left_out else values[0]
    if "other" in left_out and not tried.size:
        values = np.abs(np.trunc(values)) % 2
    if takes_null:
        values[random.random(_ROWS) < 0.1] = np.nan
    return values


def _near(values: Any, random: np.random.Generator, with_exact: bool) -> Any:
    """Numbers around the values, and with them the values and their neighbours among the float64 numbers."""
    choice = random.integers(0, 4, values.shape)
    around = values + random.normal(size=values.shape) * np.maximum(1.0, 0.1 * np.abs(values))
    if not with_exact:
        return around
    return np.select(
        [choice == 0, choice == 1, choice == 2],
        [values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)],
        around,
    )
