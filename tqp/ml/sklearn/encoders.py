"""Encoders of scikit-learn: imputer, one-hot and ordinal encoder, and the discretizer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tqp.core.errors import UnsupportedError
from tqp.ml import layers
from tqp.ml.arrays import doubles, plain
from tqp.ml.conversion import Inputs, transformed
from tqp.ml.folding import composed
from tqp.ml.layers import Apply, Fill, Select, SideBySide
from tqp.ml.lookup import (
    MISSING,
    ByCategory,
    Category,
    Codes,
    Intervals,
    Lookup,
    OneHot,
    T,
    by_position,
    finder_of_numbers,
)
from tqp.ml.model import Converted, Feature

#: From here on, numbers that are not whole numbers of float32 may be rounded to one.
_LARGEST_EXACT = 1 << 24


def is_missing(value: Any) -> bool:
    """Whether it stands for a missing value: None, NaN, pandas.NA."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType")
    )


def side_by_side(parts: Sequence[nn.Module], widths: Sequence[int]) -> nn.Module:
    """The parts' columns, of each as many as `widths` says; raises UnsupportedError if there are no parts."""
    if not parts:
        raise UnsupportedError("a transformer that leaves no columns is not supported")
    return parts[0] if len(parts) == 1 else SideBySide(parts, widths)


# imputer


def simple_imputer(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """SimpleImputer: every strategy, numbers and strings; `missing_values` NaN, None, a number or a string; indicators."""
    statistics = plain(estimator.statistics_)
    marker = estimator.missing_values
    means_null = is_missing(marker)
    if not means_null:
        inputs.refuse_null(features)
    if marker is None:
        for feature in features:
            inputs.trial(feature).missing_is_none = True
    missing = None if means_null else _number(marker, features, inputs)
    kept = [
        place
        for place, value in enumerate(statistics)
        if estimator.keep_empty_features or not is_missing(value)
    ]
    chosen = [features[place] for place in kept]
    fills = [_number(statistics[place], [features[place]], inputs) for place in kept]
    parts = [composed([Select(kept), Fill(doubles(fills), missing)])] if kept else []
    widths = [len(kept)] if kept else []
    given = [Feature(feature.raw, frozenset()) for feature in chosen]
    if estimator.add_indicator:
        places = [int(place) for place in estimator.indicator_.features_]
        if places:
            indicator = Apply(lambda numbers: layers.is_missing(numbers, missing).to(numbers.dtype))
            parts.append(composed([Select(places), indicator]))
            widths.append(len(places))
            given += [Feature()] * len(places)
    if missing is not None:
        for feature in features:
            inputs.try_values(feature, [missing])
    return transformed(side_by_side(parts, widths), given)


def _number(value: Any, features: Sequence[Feature], inputs: Inputs) -> float:
    """A value of all these features as the number that the body sees."""
    if isinstance(value, str):
        codes = {inputs.code(feature, value) for feature in features}
        if len(codes) > 1:
            raise UnsupportedError(
                "SimpleImputer missing_values= of several columns of strings is not supported"
            )
        return float(codes.pop())
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UnsupportedError(
            f"SimpleImputer fills with {value!r}: only numbers and strings are supported"
        ) from None


# categories


@dataclass(frozen=True)
class Known:
    """The categories of a feature: the finder, how many it knows, the row of each, and which one is the missing value."""

    finder: nn.Module
    count: int
    rows: list[int]
    present: list[int]  # positions in the encoder's list of categories, without the missing one
    missing: int | None

    def category(self, place: int, refuses: str | None) -> Category:
        return Category(place, self.finder, self.count, refuses)


def known_categories(feature: Feature, categories: Any, inputs: Inputs) -> Known:
    """How the categories of a feature are found. Raises UnsupportedError for what is neither string nor number."""
    values = plain(categories)
    absent = [place for place, value in enumerate(values) if is_missing(value)]
    if len(absent) > 1:
        raise UnsupportedError("categories with both None and NaN: SQL has one NULL for them")
    if absent and values[absent[0]] is None:
        inputs.trial(feature).missing_is_none = True
    present = [place for place in range(len(values)) if place not in absent]
    missing = absent[0] if absent else None
    kept = [values[place] for place in present]
    if kept and all(isinstance(value, str) for value in kept):
        codes = [inputs.code(feature, word) for word in kept]
        return Known(Codes(0, max(codes) + 1, False), max(codes) + 1, codes, present, missing)
    if feature.raw in inputs.words or not all(isinstance(value, int | float) for value in kept):
        raise UnsupportedError(f"categories that are neither strings nor numbers throughout, as {kept[:5]}")
    if any(not float(value).is_integer() or abs(value) >= _LARGEST_EXACT for value in kept):
        inputs.needs_doubles = True
    inputs.try_values(feature, kept)
    finder, rows, count = finder_of_numbers([float(value) for value in kept])
    return Known(finder, count, rows, present, missing)


def _coded(
    estimator: Any, place: int, feature: Feature, inputs: Inputs, value: Callable[[int], T], unseen: T
) -> tuple[Category, list[T]]:
    """A feature's category, and what each position has: `value` of a category by its number, else `unseen`.

    Missing values count as unseen ones, unless they are a category.
    """
    known = known_categories(feature, estimator.categories_[place], inputs)
    refuses = inputs.refuse_unseen(feature) if estimator.handle_unknown == "error" else None
    if refuses is not None and known.missing is None:
        inputs.refuse_null([feature])
    missing = unseen if known.missing is None else value(known.missing)
    values = [value(each) for each in known.present]
    table = by_position(values, known.rows, known.count, missing, unseen)
    return known.category(place, refuses), table


def one_hot_encoder(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """OneHotEncoder: strings and numbers, drop, infrequent categories, missing ones, every handle_unknown; one that is
    "error" is an error when a query meets an unseen category."""
    every = [_one_hot(estimator, place, feature, inputs) for place, feature in enumerate(features)]
    parts = [part for part in every if part.width]
    widths = [part.width for part in parts]
    return transformed(side_by_side(parts, widths), [Feature()] * sum(widths))


def _one_hot(estimator: Any, place: int, feature: Feature, inputs: Inputs) -> OneHot:
    groups = _groups(estimator, place)
    dropped = None if estimator.drop_idx_ is None else estimator._drop_idx_after_grouping[place]
    width = max(groups) + 1 - (dropped is not None)

    def column(category: int) -> int:
        """That of its group or, if this is dropped, the one of none."""
        group = groups[category]
        if group == dropped:
            return width
        return group - 1 if dropped is not None and group > dropped else group

    unseen = width
    if estimator.handle_unknown == "error":
        unseen = column(0)  # never used; a weight that all categories share is a constant
    elif estimator.handle_unknown in ("infrequent_if_exist", "warn") and _has_groups(estimator, place):
        unseen = column(int(estimator._infrequent_indices[place][0]))
    category, table = _coded(estimator, place, feature, inputs, column, unseen)
    return OneHot(category, torch.tensor(table), width)


def _has_groups(estimator: Any, place: int) -> bool:
    """Whether infrequent categories are put together."""
    enabled = getattr(estimator, "_infrequent_enabled", False)
    return enabled and estimator._default_to_infrequent_mappings[place] is not None


def _groups(estimator: Any, place: int) -> list[int]:
    """For each category its group: its own number, unless infrequent ones are put together."""
    if not _has_groups(estimator, place):
        return list(range(len(estimator.categories_[place])))
    return [int(each) for each in estimator._default_to_infrequent_mappings[place]]


def ordinal_encoder(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """OrdinalEncoder: strings and numbers, unknown and missing values as configured, infrequent categories;
    handle_unknown="error" is an error when a query meets an unseen category."""
    parts, given = [], []
    for place, feature in enumerate(features):
        values, groups = plain(estimator.categories_[place]), _groups(estimator, place)

        def ordinal(each: int, values: list[Any] = values, groups: list[int] = groups) -> float:
            is_nan = values[each] is not None and is_missing(values[each])  # None is as other categories are
            return float(estimator.encoded_missing_value if is_nan else groups[each])

        unseen = 0.0 if estimator.handle_unknown == "error" else float(estimator.unknown_value)
        category, table = _coded(estimator, place, feature, inputs, ordinal, unseen)
        parts.append(Lookup(category, doubles(table)[:, None]))
        given.append(Feature(None, feature.missing if math.isnan(table[MISSING]) else frozenset()))
    return transformed(side_by_side(parts, [1] * len(parts)), given)


# discretizer


def bins_discretizer(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """KBinsDiscretizer: every strategy and encoding; missing values are refused."""
    inputs.refuse_null(features)
    inputs.needs_doubles = True
    parts: list[ByCategory] = []
    for place, feature in enumerate(features):
        edges = doubles(estimator.bin_edges_[place])
        inputs.try_values(feature, edges.tolist())
        count = int(estimator.n_bins_[place])
        category = Category(place, Intervals(edges[1:-1].contiguous()), count)
        if estimator.encode == "ordinal":
            ordinals = by_position([float(each) for each in range(count)], range(count), count, 0.0, 0.0)
            parts.append(Lookup(category, doubles(ordinals)[:, None]))
        else:
            columns = by_position(list(range(count)), range(count), count, count, count)
            parts.append(OneHot(category, torch.tensor(columns), count))
    widths = [part.width for part in parts]
    return transformed(side_by_side(parts, widths), [Feature()] * sum(widths))
