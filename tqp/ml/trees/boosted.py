"""LightGBM and XGBoost: trees, objectives and categories from the text that the libraries themselves save models as.

The text says all that prediction depends on. (Treelite's form of the trees does not: it has no zero_as_missing, and was off by
1.3 there.) Neither library is imported; the models' own `model_to_string` and `save_raw` are called.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tqp.core.errors import UnsupportedError
from tqp.ml.conversion import Inputs, of_booster
from tqp.ml.layers import Apply, Largest, Probabilities, link
from tqp.ml.model import Converted, Feature
from tqp.ml.trees.ensemble import ALMOST_ZERO, Bools, Floats, Tree, ensemble_of
from tqp.ml.trees.outputs import category_codes, tree_predictor


def _links(objectives: Mapping[str, str]) -> dict[str, str]:
    """Of each objective, how raw sums become predictions; `objectives`: by what they become."""
    return {each: name for name, several in objectives.items() for each in several.split()}


_LIGHTGBM_LINKS = _links(
    {
        "sigmoid": "binary cross_entropy xentropy multiclassova",
        "softmax": "multiclass softmax",
        "exp": "poisson gamma tweedie",
        "softplus": "cross_entropy_lambda xentlambda",
    }
)
#: Of a link by which zero is not a half, the raw sum that is.
_HALF = {"softplus": math.log(math.expm1(0.5))}

_XGBOOST_LINKS = _links(
    {
        "sigmoid": "binary:logistic reg:logistic",
        "positive": "binary:hinge",
        "softmax": "multi:softprob multi:softmax",
        "exp": "count:poisson reg:gamma reg:tweedie survival:cox survival:aft",
        "identity": "binary:logitraw reg:squarederror reg:linear reg:squaredlogerror reg:pseudohubererror "
        "reg:absoluteerror reg:quantileerror reg:expectileerror rank:ndcg rank:pairwise rank:map",
    }
)
#: How `base_score` becomes a raw sum, where it is no raw sum itself.
_OF_BASE: dict[str, Callable[[Floats], Floats]] = {
    "sigmoid": lambda base: -np.log(1.0 / base - 1.0),
    "exp": np.log,
}


def lightgbm_model(model: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """Every objective, missing values, categories (numbers or strings), boosting of every kind, but not linear trees."""
    booster = getattr(model, "booster_", model)
    text: str = booster.model_to_string()
    # What follows the trees has lines `name=count` of features, whatever their names.
    head, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    facts = _facts(head)
    sets: list[Bools] = []
    zeros: set[int] = set()
    trees = [_lightgbm_tree(_facts(block), sets, zeros) for block in blocks]
    outputs = int(facts["num_tree_per_iteration"])
    objective, *parameters = (facts.get("objective") or "custom").split()
    averaged = "average_output" in head.split()
    ensemble = ensemble_of(
        trees,
        [place % outputs for place in range(len(trees))],
        np.zeros(outputs),
        sets=sets,
        scale=outputs / len(trees) if averaged else 1.0,
        zero_is_missing=frozenset(zeros),
    )
    options = dict(each.split(":", 1) for each in parameters if ":" in each)
    name, factor = _LIGHTGBM_LINKS.get(objective, "identity"), float(options.get("sigmoid", 1.0))
    if "sqrt" in parameters:
        name, factor = "signed square", 1.0
    prepared = _lightgbm_categories(text, facts, features, inputs)
    heads: dict[str, nn.Module]
    if not hasattr(model, "classes_"):
        heads = {"value": link(name, factor)} | ({} if averaged else {"score": nn.Identity()})
        return tree_predictor(ensemble, features, inputs, heads, (), prepared)
    if objective not in _LIGHTGBM_LINKS:
        raise UnsupportedError(
            f"a classifier with the objective {objective!r} has no probabilities; register its booster_ instead"
        )
    classes = list(model.classes_)
    heads = {
        "label": Largest(_HALF.get(_LIGHTGBM_LINKS[objective], 0.0)),
        "proba": Probabilities(name, factor),
    }
    if not averaged:  # raw sums are not averaged by the library
        heads["score"] = nn.Identity()
    return tree_predictor(ensemble, features, inputs, heads, classes, prepared)


def _facts(text: str) -> dict[str, str]:
    """The lines `key=value` of a section."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _lightgbm_tree(facts: Mapping[str, str], sets: list[Bools], zeros: set[int]) -> Tree:
    """A section `Tree=`: splits first, then leaves, whose numbers are written as -1, -2, ... there."""
    if facts.get("is_linear", "0") != "0":
        raise UnsupportedError("LightGBM's linear trees are not supported; train with linear_tree=False")
    leaves = int(facts["num_leaves"])
    inner = leaves - 1

    def numbers(name: str, dtype: Any, count: int = inner) -> Any:
        return np.array(facts[name].split() if count else [], dtype=dtype)

    feature, kind = numbers("split_feature", np.int64), numbers("decision_type", np.int64)
    threshold = _zero_rounded(numbers("threshold", np.float64))
    is_categorical, missing = kind & 1 > 0, kind >> 2 & 3
    # Missing is nothing (0: NaN counts as zero), zero and NaN (1), or NaN (2).
    missing_left = np.where(missing == 0, threshold >= 0, kind & 2 > 0) & ~is_categorical
    zeros.update(feature[(missing == 1) & ~is_categorical].tolist())
    category_set = np.full(inner, -1)
    for node in np.flatnonzero(is_categorical).tolist():
        edges = facts["cat_boundaries"].split()
        first, last = (int(edges[int(threshold[node]) + more]) for more in (0, 1))
        words = np.array(facts["cat_threshold"].split()[first:last], dtype="<u4")
        category_set[node] = len(sets)
        left = np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_)
        sets.append(np.append(left, False))

    def children(name: str) -> Any:
        child = numbers(name, np.int64)
        return np.append(np.where(child < 0, inner + ~child, child), np.zeros(leaves, np.int64))

    return Tree(
        np.append(feature, np.full(leaves, -1)),
        np.append(threshold, np.zeros(leaves)),
        np.append(missing_left, np.zeros(leaves, np.bool_)),
        children("left_child"),
        children("right_child"),
        np.append(np.zeros(inner), numbers("leaf_value", np.float64, leaves)),
        np.append(category_set, np.full(leaves, -1)),
    )


def _zero_rounded(threshold: Floats) -> Floats:
    """Thresholds for numbers as they are, of which LightGBM takes the smallest (`ALMOST_ZERO`) as zero."""
    is_small = np.abs(threshold) <= ALMOST_ZERO
    beyond = np.where(threshold >= 0, ALMOST_ZERO, np.nextafter(-ALMOST_ZERO, -np.inf))
    return np.where(is_small, beyond, threshold)


def _lightgbm_categories(
    text: str, facts: Mapping[str, str], features: list[Feature], inputs: Inputs
) -> dict[int, nn.Module]:
    """Columns of pandas' dtype category: strings become inputs that are strings, other values are numbered here."""
    line = next((line for line in text.splitlines()[::-1] if line.startswith("pandas_categorical:")), "")
    known = json.loads(line.partition(":")[2] or "null") or []
    ranges = facts["feature_infos"].split()
    places = [place for place, each in enumerate(ranges) if each != "none" and not each.startswith("[")]
    if not known:
        return {}
    if len(known) != len(places):
        raise UnsupportedError(
            "the model does not tell which of its columns were pandas categories: train it without columns of dtype category "
            "that have one value, and without other categorical_feature"
        )
    if any(isinstance(each, bool) for values in known for each in values):
        raise UnsupportedError(
            "categories that are booleans are not supported: train with numbers or strings"
        )
    return category_codes(dict(zip(places, known, strict=True)), features, inputs, in_frames=True)


def xgboost_model(model: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """Objectives of the library, missing values, categories (strings in ASCII), gbtree and dart, but not gblinear."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    learner = json.loads(bytes(booster.save_raw("json")).decode())["learner"]
    boosted = learner["gradient_booster"]
    if boosted["name"] == "gblinear":
        raise UnsupportedError("XGBoost's linear booster (gblinear) is not supported")
    saved = boosted.get("gbtree", boosted)["model"]
    objective = learner["objective"]["name"]
    if objective not in _XGBOOST_LINKS:
        raise UnsupportedError(f"XGBoost's objective {objective!r} is not supported")
    name, count = _XGBOOST_LINKS[objective], _best(model, learner, saved)
    sets: list[Bools] = []
    trees = [_xgboost_tree(each, sets) for each in saved["trees"][:count]]
    for tree, weight in zip(trees, boosted.get("weight_drop", ())):
        tree.values = tree.values * np.float64(weight)
    parameters = learner["learner_model_param"]
    outputs = max(int(parameters["num_class"]), int(parameters.get("num_target", "1")), 1)
    given = np.array(parameters["base_score"].strip("[]").split(","), dtype=np.float32).astype(np.float64)
    base = np.broadcast_to(_OF_BASE.get(name, np.asarray)(given), (outputs,)).copy()
    ensemble = ensemble_of(
        trees, saved["tree_info"][:count], base, sets=sets, single=True, whole_by_floor=True
    )
    prepared = _xgboost_categories(saved, features, inputs)
    missing = getattr(model, "missing", np.nan)
    if missing is not None and not np.isnan(missing):
        for place, feature in enumerate(features):
            prepared.setdefault(place, Apply(lambda values: values.masked_fill(values == missing, torch.nan)))
            inputs.try_values(feature, [missing])
    if not hasattr(model, "classes_"):
        value = Apply(_label_number, elementwise=False) if objective == "multi:softmax" else link(name)
        values: dict[str, nn.Module] = {"value": value, "score": nn.Identity()}
        return tree_predictor(ensemble, features, inputs, values, (), prepared)
    classes = list(model.classes_)
    if outputs > 1 and not objective.startswith("multi:"):
        raise UnsupportedError("a classifier with several labels a row is not supported")
    # Without a link, XGBClassifier compares the raw sum itself with a half.
    heads: dict[str, nn.Module] = {
        "label": Largest(0.5 if objective == "binary:logitraw" else 0.0),
        "score": nn.Identity(),
    }
    if objective != "binary:logitraw":
        heads["proba"] = Probabilities(name)
    return tree_predictor(ensemble, features, inputs, heads, classes, prepared)


def _label_number(raw: Tensor) -> Tensor:
    """The position of the largest of the raw sums as a number: [n, k] to [n, 1]."""
    return raw.argmax(1, keepdim=True).to(raw.dtype)


def _best(model: Any, learner: Mapping[str, Any], saved: Mapping[str, Any]) -> int:
    """How many trees count: after early stopping, scikit-learn's interface takes those up to the best iteration."""
    best = learner.get("attributes", {}).get("best_iteration")
    if best is None or not hasattr(model, "get_booster"):
        return len(saved["trees"])
    return int(saved["iteration_indptr"][int(best) + 1])


def _xgboost_tree(saved: Mapping[str, Any], sets: list[Bools]) -> Tree:
    left, right = np.array(saved["left_children"]), np.array(saved["right_children"])
    is_leaf = left < 0
    width = int(saved["tree_param"]["size_leaf_vector"])
    conditions = np.array(saved["split_conditions"], dtype=np.float32)
    if width <= 1:
        values = conditions.astype(np.float64)[:, None]
    elif "leaf_weights" in saved:
        # The right child of a leaf is its number among the leaves.
        leaves = np.array(saved["leaf_weights"], dtype=np.float64).reshape(-1, width)
        values = np.where(is_leaf[:, None], leaves[np.where(is_leaf, right, 0)], 0.0)
    else:
        values = np.array(saved["base_weights"], dtype=np.float64).reshape(-1, width)
    category_set = np.full(len(left), -1)
    # XGBoost's categories go right; what is none goes left.
    for node, first, size in zip(
        saved["categories_nodes"], saved["categories_segments"], saved["categories_sizes"], strict=True
    ):
        category_set[node] = len(sets)
        rightward = saved["categories"][first : first + size]
        goes_left = np.ones(max(rightward, default=0) + 2, dtype=np.bool_)
        goes_left[rightward] = False
        sets.append(goes_left)
    return Tree(
        np.where(is_leaf, -1, saved["split_indices"]),
        # x < limit is x <= the number before it.
        np.nextafter(conditions, np.float32(-np.inf)).astype(np.float64),
        np.array(saved["default_left"], dtype=np.bool_),
        left,
        right,
        values,
        category_set,
    )


def _xgboost_categories(
    saved: Mapping[str, Any], features: list[Feature], inputs: Inputs
) -> dict[int, nn.Module]:
    """The categories of data frames, which newer versions save; older ones have numbers for categories."""
    known: dict[int, list[Any]] = {}
    for place, each in enumerate(saved.get("cats", {}).get("enc", ())):
        if not each["values"]:
            continue
        if "offsets" in each:
            known[place] = _words(bytes(value % 256 for value in each["values"]), each["offsets"])
        else:
            known[place] = each["values"]
    for place in known:
        inputs.refuse_unseen(features[place])
    return category_codes(known, features, inputs, in_frames=True)


def _words(data: bytes, edges: Sequence[int]) -> list[str]:
    """Strings one after the other."""
    if not data.isascii():
        # Version 3.2 writes where strings end in characters instead of bytes, and cuts the last ones off.
        raise UnsupportedError(
            "XGBoost saves categories damaged unless they are ASCII; rename them (cat.rename_categories) and train again"
        )
    return [data[start:stop].decode() for start, stop in pairwise(edges)]


class Original:
    """A model of one of these libraries under the names that estimators of scikit-learn have, for the proof."""

    def __init__(self, model: Any) -> None:
        self.model = model
        names = getattr(model, "feature_names_in_", None) if hasattr(model, "fit") else of_booster(model)[1]
        if names is not None:
            self.feature_names_in_ = names
        if hasattr(model, "predict_proba"):
            self.predict_proba = model.predict_proba

    def predict(self, table: Any) -> Any:
        return self._result(table, {})

    def decision_function(self, table: Any) -> Any:
        """The raw sums."""
        if type(self.model).__module__.startswith("lightgbm"):
            return self._result(table, {"raw_score": True})
        if hasattr(self.model, "get_booster"):
            return self._result(table, {"output_margin": True})
        return self._result(table, {"predict_type": "margin"})

    def _result(self, table: Any, options: dict[str, Any]) -> Any:
        predict = getattr(self.model, "inplace_predict", self.model.predict)
        try:
            return predict(table, **options)
        except Exception as error:  # the libraries' own errors, whose classes are not imported here
            raise ValueError(str(error)) from error


def original_of(model: Any) -> Any:
    """What a converted model is compared with."""
    is_boosted = type(model).__module__.split(".")[0] in ("lightgbm", "xgboost")
    return Original(model) if is_boosted else model
