"""Trees of scikit-learn: decision trees, forests, gradient boosting by both algorithms, isolation forests."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from tqp.core.errors import UnsupportedError
from tqp.ml.conversion import Inputs
from tqp.ml.layers import Apply, Largest, Probabilities, link
from tqp.ml.model import Converted, Feature
from tqp.ml.sklearn.encoders import is_missing
from tqp.ml.trees.ensemble import Ensemble, Floats, Tree, ensemble_of
from tqp.ml.trees.outputs import category_codes, tree_predictor


def forest_classifier(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """The mean of the trees' shares of classes."""
    if estimator.n_outputs_ > 1:
        raise UnsupportedError("a classifier with several labels a row is not supported")
    _missing_values(estimator, features, inputs)
    classes = list(estimator.classes_)
    is_pair = len(classes) == 2
    trees = []
    for each in _trees_of(estimator):
        shares = each.tree_.value[:, 0, :]
        shares = shares / np.maximum(shares.sum(1, keepdims=True), np.finfo(np.float64).tiny)
        trees.append(_tree(each.tree_, shares[:, 1:] if is_pair else shares))
    ensemble = _mean(trees, 1 if is_pair else len(classes))
    outputs: dict[str, nn.Module] = {
        "label": Largest(0.5 if is_pair else np.inf),
        "proba": Probabilities("identity") if is_pair else nn.Identity(),
    }
    return tree_predictor(ensemble, features, inputs, outputs, classes)


def forest_regressor(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """The mean of the trees' values, one or several."""
    _missing_values(estimator, features, inputs)
    trees = [_tree(each.tree_, each.tree_.value[:, :, 0]) for each in _trees_of(estimator)]
    ensemble = _mean(trees, int(estimator.n_outputs_))
    return tree_predictor(ensemble, features, inputs, {"value": nn.Identity()})


def gradient_boosting(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """GradientBoostingClassifier and GradientBoostingRegressor, every loss; `init` as it is by default, or "zero"."""
    inputs.refuse_null(features)
    stages = estimator.estimators_
    outputs = stages.shape[1]
    ensemble = ensemble_of(
        [_tree(each.tree_, each.tree_.value[:, 0, 0]) for each in stages.reshape(-1)],
        list(range(outputs)) * len(stages),
        _start(estimator, outputs),
        scale=float(estimator.learning_rate),
        single=True,
    )
    if not hasattr(estimator, "classes_"):
        return tree_predictor(ensemble, features, inputs, {"value": nn.Identity()})
    classes = list(estimator.classes_)
    factor = 2.0 if estimator.loss == "exponential" else 1.0
    proba = Probabilities("sigmoid" if outputs == 1 else "softmax", factor)
    heads = {"label": Largest(reached=True), "proba": proba, "score": nn.Identity()}
    return tree_predictor(ensemble, features, inputs, heads, classes)


def _start(estimator: Any, outputs: int) -> Floats:
    """The raw sums that gradient boosting starts with."""
    start = estimator.init_
    if isinstance(start, str):
        return np.zeros(outputs)
    if type(start).__name__ == "DummyRegressor":
        return np.asarray(start.constant_, dtype=np.float64).reshape(-1)
    if type(start).__name__ != "DummyClassifier" or start.strategy != "prior":
        raise UnsupportedError(f"gradient boosting with init={type(start).__name__} is not supported")
    epsilon = np.finfo(np.float64).eps
    shares = np.clip(np.asarray(start.class_prior_, dtype=np.float64), epsilon, 1 - epsilon)
    if outputs == 1:
        score = np.log(shares[1] / (1 - shares[1]))
        return np.array([score / 2 if estimator.loss == "exponential" else score])
    logarithms = np.log(shares)
    return np.asarray(logarithms - logarithms.mean())


def isolation_forest(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """The mean depth at which a row stands alone, as decision_function and as 1 (inlier) or -1."""
    trees = []
    for each, chosen, lengths, rest in zip(
        estimator.estimators_,
        estimator.estimators_features_,
        estimator._decision_path_lengths,
        estimator._average_path_length_per_tree,
        strict=True,
    ):
        tree = _tree(each.tree_, np.asarray(lengths) + np.asarray(rest) - 1.0)
        tree.feature = np.where(tree.feature >= 0, np.asarray(chosen)[np.maximum(tree.feature, 0)], -1)
        trees.append(tree)
    samples = float(estimator._max_samples)
    usual = 0.0 if samples <= 1 else 1.0
    if samples > 2:
        usual = 2.0 * (np.log(samples - 1.0) + np.euler_gamma) - 2.0 * (samples - 1.0) / samples
    if usual == 0.0:
        raise UnsupportedError("an isolation forest of trees on one sample tells nothing apart")
    ensemble = ensemble_of(trees, [0] * len(trees), [0.0], scale=1.0 / (len(trees) * usual), single=True)
    offset = float(estimator.offset_)
    score = nn.Sequential(link("power of two"), Apply(lambda values: values - offset))
    # Scores at the offset are inliers, in whatever order depths were added.
    heads = {"label": nn.Sequential(score, Largest(-1e-12)), "score": score}
    return tree_predictor(ensemble, features, inputs, heads, [-1, 1])


def hist_gradient_boosting(estimator: Any, features: list[Feature], inputs: Inputs) -> Converted:
    """HistGradientBoostingClassifier and -Regressor: every loss, missing values, categories (numbers or strings)."""
    order, categories, prepared = _histogram_features(estimator, features, inputs)
    trees: list[Tree] = []
    sets: list[Any] = []
    for stage in estimator._predictors:
        for each in stage:
            trees.append(_histogram_tree(each, order, categories, sets))
    outputs = len(estimator._predictors[0])
    base = np.asarray(estimator._baseline_prediction, dtype=np.float64).reshape(-1)
    ensemble = ensemble_of(trees, list(range(outputs)) * len(estimator._predictors), base, sets=sets)
    if not hasattr(estimator, "classes_"):
        known = dict.fromkeys(("squared_error", "absolute_error", "quantile"), "identity")
        known |= {"poisson": "exp", "gamma": "exp"}
        if estimator.loss not in known:
            raise UnsupportedError(f"the loss {estimator.loss!r} is not supported")
        value = link(known[estimator.loss])
        return tree_predictor(ensemble, features, inputs, {"value": value}, prepared=prepared)
    proba = Probabilities("sigmoid" if outputs == 1 else "softmax")
    heads: dict[str, nn.Module] = {"label": Largest(), "proba": proba, "score": nn.Identity()}
    return tree_predictor(ensemble, features, inputs, heads, list(estimator.classes_), prepared)


def _histogram_features(
    estimator: Any, features: list[Feature], inputs: Inputs
) -> tuple[list[int], dict[int, int], dict[int, nn.Module]]:
    """Which feature each of the trees' features is, how many categories features have, and the modules that code them."""
    if getattr(estimator, "_preprocessor", None) is None:
        return list(range(len(features))), {}, {}
    is_categorical = np.asarray(estimator.is_categorical_)
    chosen = np.flatnonzero(is_categorical).tolist()
    encoder = estimator._preprocessor.named_transformers_["encoder"]
    known = {
        place: [each for each in values.tolist() if not is_missing(each)]
        for place, values in zip(chosen, encoder.categories_, strict=True)
    }
    counts = {place: len(values) for place, values in known.items()}
    order = chosen + np.flatnonzero(~is_categorical).tolist()
    return order, counts, category_codes(known, features, inputs)


def _histogram_tree(predictor: Any, order: list[int], categories: dict[int, int], sets: list[Any]) -> Tree:
    """A TreePredictor's nodes; its sets of categories are added to `sets`."""
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"].astype(bool)
    feature = np.where(is_leaf, -1, np.asarray(order)[np.where(is_leaf, 0, nodes["feature_idx"])])
    category_set = np.full(len(nodes), -1)
    for place in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~is_leaf).tolist():
        words = np.asarray(predictor.raw_left_cat_bitsets)[int(nodes["bitset_idx"][place])]
        goes_left = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little").astype(bool)
        category_set[place] = len(sets)
        # Other numbers are treated as missing.
        sets.append(
            np.append(goes_left[: categories[int(feature[place])]], bool(nodes["missing_go_to_left"][place]))
        )
    return Tree(
        feature,
        nodes["num_threshold"],
        nodes["missing_go_to_left"].astype(bool),
        nodes["left"].astype(np.int64),
        nodes["right"].astype(np.int64),
        nodes["value"],
        category_set,
    )


def _trees_of(estimator: Any) -> list[Any]:
    return list(estimator.estimators_) if hasattr(estimator, "estimators_") else [estimator]


def _tree(tree: Any, values: Any) -> Tree:
    """A `tree_`; `values` of its nodes."""
    nodes = tree.__getstate__()["nodes"]
    missing_left = nodes["missing_go_to_left"].astype(bool)
    feature, left, right = nodes["feature"], nodes["left_child"], nodes["right_child"]
    return Tree(feature, nodes["threshold"], missing_left, left, right, values)


def _mean(trees: list[Tree], outputs: int) -> Ensemble:
    return ensemble_of(trees, [0] * len(trees), np.zeros(outputs), scale=1.0 / len(trees), single=True)


def _missing_values(estimator: Any, features: list[Feature], inputs: Inputs) -> None:
    """Whether trees take missing values depends on their criterion; the estimator says it."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    if tags is None or not tags().input_tags.allow_nan:
        inputs.refuse_null(features)
