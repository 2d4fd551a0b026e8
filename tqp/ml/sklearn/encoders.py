"""Encoders of scikit-learn: imputer, one-hot and ordinal encoder, and the discretizer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tqp.core.errors import UnsupportedError
from tqp.ml import layers
from tqp.ml.arrays import doubles, plain
from tqp.ml.conversion import Feature, Inputs, Transformed
from tqp.ml.folding import composed
from tqp.ml.layers import Apply, Fill, Select, SideBySide
from tqp.ml.lookup import Category, Codes, Intervals, Lookup, OneHot, by_position, finder_of_numbers

#: From here on, numbers that are not whole numbers of float32 may be rounded to one.
_LARGEST_EXACT = 1 << 24


def is_missing(value: Any) -> bool:
    """Whether it stands for a missing value: None, NaN, pandas.NA."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType")
    )


def side_by_side(parts: Sequence[nn.Module]) -> nn.Module:
    """The parts' columns; raises UnsupportedError if there are no parts."""
    if not parts:
        raise UnsupportedError("a transformer that leaves no columns is not supported")
    return parts[0] if len(parts) == 1 else SideBySide(parts)


# imputer


def simple_imputer(estimator: Any, features: list[Feature], inputs: Inputs) -> Transformed:
    """SimpleImputer: every strategy, numbers and strings; `missing_values` NaN, None, a number or a string; indicators."""
    statistics = plain(estimator.statistics_)
    marker = estimator.missing_values
    means_null = is_missing(marker)
    if not means_null:
        inputs.refuse_null(features)
    if marker is None:
        inputs.missing_is_none |= {feature.raw for feature in features if feature.raw is not None}
    missing = None if means_null else _number(marker, features, inputs)
    kept = [
        place
        for place, value in enumerate(statistics)
        if estimator.keep_empty_features or not is_missing(value)
    ]
    chosen = [features[place] for place in kept]
    fills = [_number(statistics[place], [features[place]], inputs) for place in kept]
    parts = [composed([Select(kept), Fill(doubles(fills), missing)])] if kept else []
    given = [Feature(feature.raw, frozenset()) for feature in chosen]
    if estimator.add_indicator:
        places = [int(place) for place in estimator.indicator_.features_]
        if places:
            indicator = Apply(lambda numbers: layers.is_missing(numbers, missing).to(numbers.dtype))
            parts.append(composed([Select(places), indicator]))
            given += [Feature(None, frozenset())] * len(places)
    if missing is not None:
        for feature in features:
            inputs.try_values(feature, [missing])
    return side_by_side(parts), given


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
    if absent and values[absent[0]] is None and feature.raw is not None:
        inputs.missing_is_none.add(feature.raw)
    present = [place for place in range(len(values)) if place not in absent]
    missing = absent[0] if absent else None
    kept = [values[place] for place in present]
    if kept and all(isinstance(value, str) for value in kept):
        codes = [inputs.code(feature, word) for word in kept]
        return Known(Codes(0, max(codes) + 1, False), max(codes) + 1, codes, present, missing)
    if feature.raw in inputs.words or not all(isinstance(value, int | float) for value in kept):
        raise UnsupportedError(f"categories that are neither strings nor numbers throughout, as {kept[:5]}")
    if any(not float(value).is_integer() or abs(value) >= _LARGEST_EXACT for value in kept):
        inputs.compare_exactly()
    inputs.try_values(feature, kept)
    finder, rows, count = finder_of_numbers([float(value) for value in kept])
    return Known(finder, count, rows, present, missing)


def one_hot_encoder(estimator: Any, features: list[Feature], inputs: Inputs) -> Transformed:
    """OneHotEncoder: strings and numbers, drop, infrequent categories, missing ones, every handle_unknown; one that is
    "error" is an error when a query meets an unseen category."""
    parts = []
    for place, feature in enumerate(features):
        part = _one_hot(estimator, place, feature, inputs)
        if part.width:
            parts.append(part)
    width = sum(part.width for part in parts)
    return side_by_side(parts), [Feature(None, frozenset())] * width


def _one_hot(estimator: Any, place: int, feature: Feature, inputs: Inputs) -> OneHot:
    known = known_categories(feature, estimator.categories_[place], inputs)
    grouped = _groups(estimator, place)
    total = len(known.present) + (known.missing is not None)
    columns = list(range(total)) if grouped is None else [int(each) for each in grouped]
    dropped = None if estimator.drop_idx_ is None else estimator._drop_idx_after_grouping[place]
    width = max(columns) + 1 - (dropped is not None)

    def column(group: int | None) -> int:
        """Of a group that is left, else the one of none."""
        if group is None or group == dropped:
            return width
        return group - 1 if dropped is not None and group > dropped else group

    unseen, refuses = column(None), None
    if estimator.handle_unknown == "error":
        refuses = inputs.refuse_unseen(feature)
        unseen = column(columns[0])  # never used; a weight that all categories share is a constant
    elif estimator.handle_unknown in ("infrequent_if_exist", "warn") and grouped is not None:
        unseen = column(columns[int(estimator._infrequent_indices[place][0])])
    missing = unseen
    if known.missing is not None:
        missing = column(columns[known.missing])
    elif refuses is not None:
        inputs.refuse_null([feature])
    table = by_position(
        [column(columns[each]) for each in known.present], known.rows, known.count, missing, unseen
    )
    return OneHot(known.category(place, refuses), torch.tensor(table), width)


def _groups(estimator: Any, place: int) -> Any:
    """For each category its group, where infrequent ones are put together; None where there are none."""
    if not getattr(estimator, "_infrequent_enabled", False):
        return None
    return estimator._default_to_infrequent_mappings[place]


def ordinal_encoder(estimator: Any, features: list[Feature], inputs: Inputs) -> Transformed:
    """OrdinalEncoder: strings and numbers, unknown and missing values as configured, infrequent categories;
    handle_unknown="error" is an error when a query meets an unseen category."""
    parts, given = [], []
    for place, feature in enumerate(features):
        known = known_categories(feature, estimator.categories_[place], inputs)
        grouped = _groups(estimator, place)
        missing_is_nan = known.missing is not None and estimator.categories_[place][known.missing] is not None

        def ordinal(each: int, grouped: Any = grouped) -> float:
            return float(each if grouped is None else grouped[each])

        refuses, unseen = None, 0.0
        if estimator.handle_unknown == "error":
            refuses = inputs.refuse_unseen(feature)
        else:
            unseen = float(estimator.unknown_value)
        missing = unseen
        if missing_is_nan:
            missing = float(estimator.encoded_missing_value)
        elif known.missing is not None:
            missing = ordinal(known.missing)
        elif refuses is not None:
            inputs.refuse_null([feature])
        table = by_position(
            [ordinal(each) for each in known.present], known.rows, known.count, missing, unseen
        )
        parts.append(Lookup(known.category(place, refuses), doubles(table)[:, None]))
        given.append(Feature(None, feature.missing if math.isnan(missing) else frozenset()))
    return side_by_side(parts), given


# discretizer


def bins_discretizer(estimator: Any, features: list[Feature], inputs: Inputs) -> Transformed:
    """KBinsDiscretizer: every strategy and encoding; missing values are refused."""
    inputs.refuse_null(features)
    inputs.compare_exactly()
    parts: list[nn.Module] = []
    width = 0
    for place, feature in enumerate(features):
        edges = doubles(estimator.bin_edges_[place])
        inputs.try_values(feature, edges.tolist())
        count = int(estimator.n_bins_[place])
        category = Category(place, Intervals(edges[1:-1].contiguous()), count)
        if estimator.encode == "ordinal":
            ordinals = by_position([float(each) for each in range(count)], range(count), count, 0.0, 0.0)
            parts.append(Lookup(category, doubles(ordinals)[:, None]))
            width += 1
        else:
            columns = by_position(list(range(count)), range(count), count, count, count)
            parts.append(OneHot(category, torch.tensor(columns), count))
            width += count
    return side_by_side(parts), [Feature(None, frozenset())] * width
