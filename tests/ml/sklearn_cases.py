"""Models of scikit-learn that are no trees, and data with holes, unseen categories, constants and extremes for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn import (
    cluster,
    compose,
    decomposition,
    discriminant_analysis,
    ensemble,
    impute,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
)

ROWS = 200

#: What a model is fitted with: the columns of its data, and what it predicts.
NUMBERS = ["a", "b", "c", "constant", "large"]
HOLES = ["a_holes", "b_holes"]
STRINGS = ["city", "plan"]
STRING_HOLES = ["city_holes", "plan_holes"]


def make_data(seed: int, rows: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "a": random.normal(size=rows),
            "b": random.normal(3, 2, rows),
            "c": random.integers(0, 5, rows),
            "constant": np.full(rows, 7.0),
            "large": random.normal(1e5, 1e3, rows),
            "ones": random.integers(0, 2, rows),
            "count": random.integers(0, 4, rows),
            "city": random.choice(["Oslo", "Bergen", "Tromsø", "Bodø"], rows, p=[0.6, 0.2, 0.15, 0.05]),
            "flag": random.random(rows) < 0.5,
            "plan": random.choice(["free", "paid"], rows),
        }
    )
    for name in ("a", "b"):
        data[f"{name}_holes"] = data[name].where(random.random(rows) > 0.2)
    for name in ("city", "plan", "count"):
        data[f"{name}_holes"] = data[name].astype(object).where(random.random(rows) > 0.2, np.nan)
    data["count_holes"] = data["count_holes"].astype(float)
    return data


def make_targets(data: pd.DataFrame) -> dict[str, Any]:
    random = np.random.default_rng(1)
    score = data["a"] + 0.5 * data["b"] + (data["city"] == "Oslo") + 0.3 * random.normal(size=len(data))
    return {
        "number": score,
        "positive": np.exp(score / 3),
        "numbers": np.stack([score, 2 * data["a"] - 1], axis=1),
        "binary": np.where(score > 2.1, "yes", "no"),
        "bools": score > 2.1,
        "classes": np.digitize(score, [1, 2.2, 3]) * 10,
    }


TRAIN = make_data(0, 300)
TARGETS = make_targets(TRAIN)


def make_test_data() -> pd.DataFrame:
    """New rows, some of them extreme, and categories of which none was seen."""
    data = make_data(2, ROWS)
    data.loc[:4, ["a", "b", "large", "a_holes"]] = [[1e6, -1e3, 0, 30], [0, 0, 0, 0]] * 2 + [
        [-9, 1e4, 1, -1e4]
    ]
    data.loc[10:30, ["a", "b", "c"]] = [1.0, 2.0, 3]
    data["city_new"] = data["city"]
    data.loc[40:60, "city_new"] = "Hammerfest"
    data["count_new"] = data["count"]
    data.loc[50:70, "count_new"] = 17
    return data


TEST = make_test_data()


class Case:
    """A model to be fitted on some columns; `scored`: other columns that it then predicts from."""

    def __init__(
        self, model: Any, columns: list[str], target: str | None = None, scored: list[str] | None = None
    ) -> None:
        self.model, self.columns, self.target, self.scored = model, columns, target, scored or columns

    def __repr__(self) -> str:
        return f"{' '.join(str(self.model).split())[:100]}-{self.target}"


def regressors() -> list[Case]:
    both = ["number", "numbers"]
    linear = linear_model
    return [
        *(Case(linear.LinearRegression(), NUMBERS, target) for target in both),
        Case(linear.LinearRegression(fit_intercept=False), NUMBERS, "number"),
        *(Case(linear.Ridge(), NUMBERS, target) for target in both),
        Case(linear.RidgeCV(), NUMBERS, "number"),
        *(Case(linear.Lasso(alpha=0.01), NUMBERS, target) for target in both),
        Case(linear.LassoCV(), NUMBERS, "number"),
        *(Case(linear.ElasticNet(alpha=0.01), NUMBERS, target) for target in both),
        Case(linear.ElasticNetCV(), NUMBERS, "number"),
        Case(
            pipeline.make_pipeline(preprocessing.StandardScaler(), linear.SGDRegressor()), NUMBERS, "number"
        ),
        Case(svm.LinearSVR(), ["a", "b"], "number"),
        Case(
            compose.TransformedTargetRegressor(linear.Ridge(), transformer=preprocessing.StandardScaler()),
            NUMBERS,
            "number",
        ),
        Case(
            compose.TransformedTargetRegressor(linear.Ridge(), transformer=preprocessing.MinMaxScaler()),
            NUMBERS,
            "numbers",
        ),
        Case(
            compose.TransformedTargetRegressor(
                linear.PoissonRegressor(), transformer=preprocessing.MinMaxScaler()
            ),
            ["c", "count"],
            "positive",
        ),
        *(
            Case(
                compose.TransformedTargetRegressor(
                    linear.Ridge(), transformer=preprocessing.StandardScaler(with_mean=mean, with_std=False)
                ),
                ["a", "b"],
                "number",
            )
            for mean in (True, False)
        ),
        Case(
            compose.TransformedTargetRegressor(linear.Ridge(), func=np.log1p, inverse_func=np.expm1),
            ["b", "c"],
            "positive",
        ),
    ]


def more_regressors() -> list[Case]:
    linear = linear_model
    single = [
        *(
            linear.BayesianRidge(),
            linear.ARDRegression(),
            linear.HuberRegressor(),
            linear.QuantileRegressor(alpha=0),
        ),
        *(linear.Lars(), linear.LassoLars(0.01), linear.LassoLarsIC(), linear.OrthogonalMatchingPursuit()),
        linear.TheilSenRegressor(max_subpopulation=50, random_state=0),
    ]
    return [
        *(Case(model, ["a", "b", "c"], "number") for model in single),
        *(
            Case(model(alpha=0.01), ["a", "b"], "numbers")
            for model in (linear.MultiTaskLasso, linear.MultiTaskElasticNet)
        ),
        *(
            Case(model(), ["b", "c"], "positive")
            for model in (linear.PoissonRegressor, linear.GammaRegressor)
        ),
        *(Case(linear.TweedieRegressor(power=power), ["b", "c"], "positive") for power in (0, 1.5)),
    ]


def classifiers() -> list[Case]:
    linear = linear_model
    targets = ["binary", "classes"]
    scaled = lambda model: pipeline.make_pipeline(preprocessing.StandardScaler(), model)
    return [
        *(Case(scaled(linear.LogisticRegression()), NUMBERS, target) for target in [*targets, "bools"]),
        Case(linear.LogisticRegression(solver="liblinear"), ["a", "b"], "binary"),
        Case(linear.LogisticRegressionCV(Cs=2, cv=2), ["a", "b"], "binary"),
        *(
            Case(scaled(linear.SGDClassifier(loss=loss)), NUMBERS, target)
            for target in targets
            for loss in ("hinge", "log_loss", "modified_huber")
        ),
        *(Case(linear.RidgeClassifier(), NUMBERS, target) for target in targets),
        *(Case(linear.Perceptron(), ["a", "b"], target) for target in targets),
        *(Case(svm.LinearSVC(), ["a", "b"], target) for target in targets),
        *(Case(discriminant_analysis.LinearDiscriminantAnalysis(), ["a", "b"], target) for target in targets),
    ]


def networks() -> list[Case]:
    def small(kind: Any, activation: str) -> Any:
        net = kind(hidden_layer_sizes=(8, 5), activation=activation, max_iter=5, random_state=0)
        return pipeline.make_pipeline(preprocessing.StandardScaler(), net)

    classifier, regressor = neural_network.MLPClassifier, neural_network.MLPRegressor
    return [
        *(
            Case(small(classifier, name), NUMBERS, "binary")
            for name in ("relu", "tanh", "logistic", "identity")
        ),
        Case(small(classifier, "relu"), NUMBERS, "classes"),
        *(Case(small(regressor, "tanh"), NUMBERS, target) for target in ("number", "numbers")),
    ]


def others() -> list[Case]:
    bayes, knn, p = naive_bayes, neighbors, preprocessing
    numbers, counts = ["a", "b", "c"], ["c", "count"]
    targets = ["binary", "classes"]
    return [
        *(Case(model, NUMBERS, target) for model in (bayes.GaussianNB(),) for target in targets),
        *(Case(bayes.MultinomialNB(), counts, target) for target in targets),
        *(Case(bayes.ComplementNB(norm=norm), counts, "classes") for norm in (True, False)),
        *(Case(bayes.BernoulliNB(binarize=limit), ["a", "b"], "classes") for limit in (0.0, 0.3)),
        Case(bayes.BernoulliNB(binarize=None), ["ones"], "binary"),
        *(Case(bayes.CategoricalNB(), counts, target) for target in targets),
        *(
            Case(kind(3, random_state=0, n_init=1), NUMBERS)
            for kind in (cluster.KMeans, cluster.MiniBatchKMeans)
        ),
        Case(cluster.KMeans(1), ["a"]),
        Case(pipeline.make_pipeline(cluster.KMeans(3, n_init=1), linear_model.Ridge()), numbers, "number"),
        *(
            Case(pipeline.make_pipeline(p.StandardScaler(), kind(weights=weights)), ["a", "b"], target)
            for weights in ("uniform", "distance")
            for kind, target in (
                (knn.KNeighborsClassifier, "binary"),
                (knn.KNeighborsClassifier, "classes"),
                (knn.KNeighborsRegressor, "number"),
                (knn.KNeighborsRegressor, "numbers"),
            )
        ),
        *(
            Case(pipeline.make_pipeline(p.StandardScaler(), svm.SVC(kernel=kernel)), ["a", "b"], target)
            for kernel in ("linear", "rbf", "poly", "sigmoid")
            for target in targets
        ),
        Case(svm.SVC(decision_function_shape="ovo"), numbers, "classes"),
        Case(svm.NuSVC(nu=0.1), numbers, "binary"),
        *(Case(svm.SVR(kernel=kernel), numbers, "number") for kernel in ("linear", "rbf")),
        Case(svm.NuSVR(), numbers, "number"),
    ]


def scalers() -> list[Case]:
    p = preprocessing
    mixed = [*NUMBERS, *HOLES]
    return [
        *(
            Case(p.StandardScaler(with_mean=m, with_std=s), mixed)
            for m in (True, False)
            for s in (True, False)
        ),
        Case(p.RobustScaler(), mixed),
        Case(p.RobustScaler(with_centering=False, unit_variance=True), mixed),
        Case(p.RobustScaler(with_scaling=False), mixed),
        Case(p.MinMaxScaler(), mixed),
        Case(p.MinMaxScaler((-2, 3), clip=True), mixed),
        Case(p.MaxAbsScaler(), mixed),
        *(Case(p.Normalizer(norm), NUMBERS) for norm in ("l1", "l2", "max")),
        Case(p.Binarizer(), NUMBERS),
        Case(p.Binarizer(threshold=1.7), NUMBERS),
        Case(p.PolynomialFeatures(), ["a", "b", "c"]),
        Case(p.PolynomialFeatures((2, 4), include_bias=False), ["a", "b", "c"]),
        Case(p.PolynomialFeatures(3, interaction_only=True), ["a", "b", "c", "constant"]),
        Case(p.FunctionTransformer(), mixed),
        Case(p.FunctionTransformer(np.abs), mixed),
        Case(p.FunctionTransformer(np.sign), mixed),
        Case(decomposition.PCA(), NUMBERS),
        Case(decomposition.PCA(2, whiten=True), NUMBERS),
        Case(decomposition.TruncatedSVD(2), NUMBERS),
        *(
            Case(
                p.KBinsDiscretizer(
                    4, encode=encode, strategy=strategy, quantile_method="averaged_inverted_cdf"
                ),
                NUMBERS,
            )
            for encode in ("ordinal", "onehot", "onehot-dense")
            for strategy in ("uniform", "quantile")
        ),
    ]


def encoders() -> list[Case]:
    p, imputer = preprocessing, impute.SimpleImputer
    everything = [*STRINGS, "c", *STRING_HOLES, "count_holes"]
    known = ["city", "plan", "c", "count"]
    new = ["city_new", "plan", "c", "count_new"]
    return [
        *(
            Case(imputer(strategy=each), ["a", *HOLES, "count_holes"])
            for each in ("mean", "median", "most_frequent")
        ),
        Case(imputer(strategy="constant", fill_value=-1, add_indicator=True), ["a", *HOLES]),
        Case(imputer(missing_values=3, add_indicator=True), ["c", "count"]),
        Case(p.OneHotEncoder(), everything),
        Case(p.OneHotEncoder(sparse_output=False, drop="first"), everything),
        Case(p.OneHotEncoder(drop="if_binary"), everything),
        Case(p.OneHotEncoder(drop=["Oslo", "paid"]), STRINGS),
        *(
            Case(p.OneHotEncoder(handle_unknown=each, drop=drop), known, None, new)
            for each in ("ignore", "infrequent_if_exist", "warn")
            for drop in (None, "first", "if_binary")
        ),
        *(
            Case(p.OneHotEncoder(handle_unknown=each, min_frequency=50, drop=drop), known, None, new)
            for each in ("ignore", "infrequent_if_exist", "warn")
            for drop in (None, "first")
        ),
        Case(p.OneHotEncoder(max_categories=2, handle_unknown="ignore"), everything),
        Case(p.OneHotEncoder(categories=[["x", "Oslo"], ["paid", "free"]], handle_unknown="ignore"), STRINGS),
        Case(p.OrdinalEncoder(), everything),
        Case(p.OrdinalEncoder(encoded_missing_value=-5, min_frequency=60), everything),
        *(
            Case(p.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=value), known, None, new)
            for value in (-1, np.nan)
        ),
        Case(p.OrdinalEncoder(), ["a"], None, ["a"]),
        *(
            Case(pipeline.make_pipeline(imputer(strategy=each, **keywords), p.OneHotEncoder()), STRING_HOLES)
            for each, keywords in (("most_frequent", {}), ("constant", {"fill_value": "none"}))
        ),
        Case(
            pipeline.make_pipeline(
                imputer(missing_values="Oslo", strategy="most_frequent"), p.OneHotEncoder()
            ),
            ["city"],
        ),
    ]


def compositions() -> list[Case]:
    p = preprocessing
    columns, pipe, union = compose.ColumnTransformer, pipeline.make_pipeline, pipeline.make_union
    mixed = [*NUMBERS, *HOLES, *STRINGS, *STRING_HOLES]
    numbers = pipe(impute.SimpleImputer(), p.StandardScaler())
    ignoring = p.OneHotEncoder(handle_unknown="ignore")
    by_name = columns(
        [("number", numbers, [*NUMBERS, *HOLES]), ("word", ignoring, STRINGS)], remainder="drop"
    )
    by_place = columns(
        [("word", ignoring, slice(7, 9)), ("drop", "drop", [0]), ("pass", "passthrough", [3, 1])],
        transformer_weights={"word": 3.0},
    )
    by_mask = columns([("scale", p.MinMaxScaler(), [True, False, True])], remainder="passthrough")
    rest = columns(
        [("a", "passthrough", ["c"]), ("none", p.StandardScaler(), [])], remainder=p.StandardScaler()
    )
    logistic = linear_model.LogisticRegression()
    return [
        Case(pipe(by_name, logistic), mixed, "binary"),
        Case(pipe(by_name, logistic), mixed, "classes"),
        Case(pipe(by_name, linear_model.LinearRegression()), mixed, "numbers"),
        Case(pipe(by_name, p.MaxAbsScaler(), decomposition.PCA(3), linear_model.Ridge()), mixed, "number"),
        Case(pipe(by_name, neural_network.MLPClassifier(8, max_iter=3)), mixed, "classes"),
        Case(by_place, mixed),
        Case(by_mask, ["a", "b", "c"]),
        Case(rest, NUMBERS),
        Case(union(p.StandardScaler(), "passthrough", p.PolynomialFeatures()), ["a", "b"]),
        Case(
            pipe(union(p.StandardScaler(), p.Normalizer(), p.PolynomialFeatures()), logistic),
            ["a", "b"],
            "classes",
        ),
        Case(pipe(union(ignoring, p.OrdinalEncoder()), linear_model.Ridge()), STRINGS, "number"),
        Case(
            pipe(pipe(p.StandardScaler(), "passthrough"), pipe(p.PolynomialFeatures(), logistic)),
            ["a", "b"],
            "binary",
        ),
        Case(
            pipe(by_name, ensemble.RandomForestClassifier(5, max_depth=4, random_state=0)), mixed, "classes"
        ),
        Case(
            pipe(
                p.OrdinalEncoder(encoded_missing_value=-1), ensemble.RandomForestRegressor(3, random_state=0)
            ),
            STRING_HOLES,
            "number",
        ),
        Case(
            pipe(p.OrdinalEncoder(), ensemble.HistGradientBoostingRegressor(max_iter=4)),
            STRING_HOLES,
            "number",
        ),
        Case(
            pipe(p.StandardScaler(), ensemble.HistGradientBoostingClassifier(max_iter=4)),
            [*HOLES, "c"],
            "binary",
        ),
        Case(p.OneHotEncoder(), ["flag", "c"]),
        Case(pipe(p.OrdinalEncoder(), ignoring, linear_model.Lasso(alpha=0.01)), STRINGS, "number"),
        Case(
            pipe(p.KBinsDiscretizer(5, quantile_method="averaged_inverted_cdf"), logistic),
            ["a", "b"],
            "classes",
        ),
    ]


CASES = [
    *regressors(),
    *more_regressors(),
    *classifiers(),
    *networks(),
    *others(),
    *scalers(),
    *encoders(),
    *compositions(),
]
