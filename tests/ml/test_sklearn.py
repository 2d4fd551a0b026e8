"""Every supported class of scikit-learn that is not a tree, called in SQL, against the original."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn import (
    compose,
    impute,
    linear_model,
    model_selection,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
)

import tqp
from tests.ml.sklearn_cases import CASES, HOLES, ROWS, STRINGS, TARGETS, TEST, TRAIN, Case

TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def whole() -> Iterator[tqp.Connection]:
    with tqp.connect(threads=2) as connection:
        yield connection


@pytest.fixture(scope="module")
def small() -> Iterator[tqp.Connection]:
    with tqp.connect(threads=2, batch_rows=7) as connection:
        yield connection


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_as_the_original(case: Case, whole: tqp.Connection, small: tqp.Connection) -> None:
    train = TRAIN if case.columns != case.scored else TRAIN.loc[:, case.columns]
    model = case.model.fit(train[case.columns], None if case.target is None else TARGETS[case.target])
    test = TEST[case.scored].set_axis(case.columns, axis=1)
    if case.columns == ["a"]:
        test = TRAIN[["a"]]  # categories that are not whole numbers
    wanted = dict(originals(model, test))
    assert wanted
    for connection in (whole, small):
        connection.register("t", test)
    for kind, values in wanted.items():
        whole.register_model("m", model, output=kind)
        compare(whole, case.columns, values)
    small.register_model("m", model)
    compare(small, case.columns, next(iter(wanted.values())))


def originals(model: Any, test: pd.DataFrame) -> list[tuple[str, Any]]:
    """What each kind of output should be, the default one first."""
    found = []
    if hasattr(model, "classes_"):
        found.append(("label", model.predict(test)))
        if hasattr(model, "predict_proba"):
            proba = model.predict_proba(test)
            found.append(("proba", proba[:, 1] if proba.shape[1] == 2 else proba))
        elif hasattr(model, "decision_function"):
            found.append(("score", model.decision_function(test)))
    elif hasattr(model, "cluster_centers_"):
        found += [("label", model.predict(test)), ("value", model.transform(test))]
    elif hasattr(model, "predict"):
        found.append(("value", model.predict(test)))
    else:
        found.append(("value", model.transform(test)))
    return [
        (kind, values.toarray() if hasattr(values, "toarray") else np.asarray(values))
        for kind, values in found
    ]


def compare(connection: tqp.Connection, columns: list[str], wanted: Any) -> None:
    result = connection.sql(f"SELECT m({', '.join(columns)}) AS p FROM t").to_arrow()["p"].to_pylist()
    if isinstance(wanted[0], str | bool | np.bool_):
        assert result == wanted.tolist()
        return
    ours: NDArray[np.float64] = np.array(result, dtype=np.float64).reshape(np.shape(wanted))
    theirs = np.asarray(wanted, dtype=np.float64)
    scale = np.maximum(1.0, np.abs(theirs))
    np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0, atol=TOLERANCE)


def fitted(model: Any, columns: list[str], target: str | None = None) -> Any:
    return model.fit(TRAIN[columns], None if target is None else TARGETS[target])


def registered(connection: tqp.Connection) -> Any:
    return next(model for model in connection.models() if model.name == "m")


def test_an_unseen_category_raises_where_the_encoder_refuses_it(whole: tqp.Connection) -> None:
    whole.register("t", TEST)
    whole.register_model("m", fitted(preprocessing.OneHotEncoder(), STRINGS))
    whole.sql("SELECT m(city, plan) FROM t").fetchall()
    with pytest.raises(tqp.ExecutionError, match='the input "city" has a category'):
        whole.sql("SELECT m(city_new, plan) FROM t").fetchall()
    # Nor does it where rows with it are left out, whichever way.
    whole.register("known", {"city": ["Oslo"] * 9})
    for query in (
        "SELECT count(m(city_new, plan)) FROM t WHERE city_new <> 'Hammerfest'",
        "SELECT count(m(city_new, plan)) FROM t WHERE array_inner_product(m(city_new, plan), m(city_new, plan)) > 0 AND city_new <> 'Hammerfest'",
        "SELECT count(m(city_new, plan)) FROM t JOIN known ON city_new = known.city",
    ):
        assert whole.sql(query).fetchall()[0][0] > 0


def test_missing_values_where_a_step_refuses_them(whole: tqp.Connection) -> None:
    whole.register("t", TEST)
    numbers, word = preprocessing.StandardScaler(), preprocessing.OneHotEncoder()
    whole.register_model("scaled", fitted(numbers, HOLES))
    whole.sql("SELECT scaled(a_holes, b_holes) FROM t").fetchall()
    steps = compose.make_column_transformer((numbers, ["a"]), (word, ["city"]), ("drop", ["b_holes"]))
    model = fitted(pipeline.make_pipeline(steps, linear_model.Ridge()), ["a", "city", "b_holes"], "number")
    whole.register_model("m", model)
    whole.sql("SELECT m(a, city, b_holes) FROM t").fetchall()
    whole.register_model("checked", fitted(preprocessing.FunctionTransformer(np.abs, validate=True), ["a"]))
    for call in ("m(a_holes, city, b)", "m(a, city_holes, b)", "checked(a_holes)"):
        with pytest.raises(tqp.BindError, match="may be NULL"):
            whole.sql(f"SELECT {call} FROM t")


def test_which_inputs_are_read(whole: tqp.Connection) -> None:
    columns = ["a", "b", "city", "plan", "large"]
    steps = compose.make_column_transformer(
        (preprocessing.StandardScaler(), ["a", "b"]), (preprocessing.OneHotEncoder(), ["city", "plan"])
    )
    model = fitted(pipeline.make_pipeline(steps, linear_model.Ridge()), columns, "number")
    model[-1].coef_[1] = 0  # of b
    model[-1].coef_[2:6] = 3.0  # the same for all cities
    whole.register_model("m", model)
    read = [item.is_read for item in registered(whole).converted.inputs]
    assert read == [True, False, False, True, False]


def test_columns_of_arrays_and_names_of_ones_own(whole: tqp.Connection) -> None:
    """Without a data frame the inputs are positions; they may be given names."""
    columns = ["a_holes", "city_holes", "plan"]
    steps = compose.make_column_transformer(
        (impute.SimpleImputer(), [0]),
        (preprocessing.OneHotEncoder(), [False, True, False]),
        (preprocessing.OrdinalEncoder(), slice(2, None)),
    )
    model = pipeline.make_pipeline(steps, linear_model.Ridge())
    model.fit(TRAIN[columns].to_numpy(dtype=object), TARGETS["number"])
    whole.register("t", TEST)
    for names in (None, ["first", "second", "third"]):
        whole.register_model("m", model, inputs=names)
        assert [item.name for item in registered(whole).inputs] == (names or ["x0", "x1", "x2"])
        compare(whole, columns, model.predict(TEST[columns].to_numpy(dtype=object)))
    by_name = fitted(linear_model.Ridge(), ["a", "b"], "number")
    whole.register_model("m", by_name, inputs=["u", "v"])
    compare(whole, ["a", "b"], by_name.predict(TEST[["a", "b"]]))


@pytest.mark.parametrize("dtype", ["category", "str", object])
def test_strings_of_every_dtype_of_pandas(dtype: Any, whole: tqp.Connection) -> None:
    train, test = (data[["city_holes"]].astype(dtype) for data in (TRAIN, TEST))
    for model in (preprocessing.OneHotEncoder(), preprocessing.OrdinalEncoder()):
        model.fit(train)
        whole.register("t", test)
        whole.register_model("m", model)
        wanted = model.transform(test)
        compare(whole, ["city_holes"], wanted.toarray() if hasattr(wanted, "toarray") else wanted)


def samples() -> list[Any]:
    data = TEST[["a", "city_holes"]]
    columns = {
        "a": data["a"].to_numpy(),
        "city_holes": data["city_holes"].tolist(),
        "other": data["a"].tolist(),
    }
    return [
        data,
        polars.from_pandas(data),
        pa.Table.from_pandas(data),
        columns,
        np.stack([data["a"].astype(object), data["city_holes"]], axis=1),
    ]


@pytest.mark.parametrize("sample", samples(), ids=["pandas", "polars", "arrow", "dict", "numpy"])
def test_proof_on_a_sample(sample: Any, whole: tqp.Connection) -> None:
    steps = compose.make_column_transformer(
        (preprocessing.StandardScaler(), ["a"]), (preprocessing.OneHotEncoder(), ["city_holes"])
    )
    model = fitted(pipeline.make_pipeline(steps, linear_model.Ridge()), ["a", "city_holes"], "number")
    whole.register_model("m", model, sample=sample)
    proof = registered(whole).proof
    assert proof is not None and proof.rows == ROWS and proof.difference < TOLERANCE


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"b": [1.0]}, "no column a"),
        (np.zeros((3, 2)), r"array \(3, 2\)"),
        ({"a": ["x"]}, "no numbers"),
        ({"a": []}, "no rows"),
        ({"a": [np.inf]}, "Ridge itself raises on the sample"),
    ],
)
def test_samples_that_do_not_fit(sample: Any, message: str, whole: tqp.Connection) -> None:
    with pytest.raises(tqp.BindError, match=message):
        whole.register_model("m", fitted(linear_model.Ridge(), ["a"], "number"), sample=sample)


def test_a_sample_must_tell_something_and_may_have_holes(whole: tqp.Connection) -> None:
    model = fitted(preprocessing.StandardScaler(), HOLES)
    with pytest.raises(tqp.BindError, match="gives only missing values for 2 rows"):
        whole.register_model("m", model, sample={name: [np.nan, np.nan] for name in HOLES})
    with pytest.raises(tqp.BindError, match="different lengths"):
        whole.register_model("m", model, sample={"a_holes": [1.0], "b_holes": [1.0, 2.0]})
    whole.register_model("m", model, sample={name: pd.array([1, None, 3], dtype="Int64") for name in HOLES})
    assert registered(whole).proof.rows == 3


def test_predictions_of_another_shape_are_refused(whole: tqp.Connection) -> None:
    class Half(linear_model.LogisticRegression):  # type: ignore[misc]
        def predict_proba(self, X: Any) -> Any:
            return super().predict_proba(X)[:, :1]

    with pytest.raises(tqp.BindError, match="proba inf"):
        whole.register_model("m", fitted(Half(), ["a", "b"], "binary"))


def test_a_model_changed_after_training_is_refused(whole: tqp.Connection) -> None:
    class Other(linear_model.Ridge):  # type: ignore[misc]
        def predict(self, X: Any) -> Any:
            return super().predict(X) + 1

    with pytest.raises(tqp.BindError, match="differs from the original by up to"):
        whole.register_model("m", fitted(Other(), ["a", "b"], "number"))


@pytest.mark.parametrize(
    ("model", "columns", "target", "message"),
    [
        (neighbors.KNeighborsRegressor(metric="manhattan"), ["a"], "number", "metric='manhattan'"),
        (neighbors.KNeighborsRegressor(p=1), ["a"], "number", "metric='manhattan'"),
        (neighbors.KNeighborsRegressor(weights=lambda d: d + 1), ["a"], "number", "weights="),
        (neighbors.KNeighborsClassifier(), ["a"], "labels", "several labels"),
        (neural_network.MLPClassifier(2, max_iter=1), ["a"], "labels", "several labels"),
        (linear_model.RidgeClassifier(), ["a"], "labels", "several labels"),
        (preprocessing.FunctionTransformer(lambda x: x + 1), ["a"], None, "FunctionTransformer func="),
        (preprocessing.FunctionTransformer(np.abs, kw_args={"dtype": float}), ["a"], None, "kw_args="),
        (svm.SVC(break_ties=True), ["a"], "classes", "break_ties=True"),
        (svm.SVC(kernel=lambda x, y: x @ y.T), ["a"], "binary", "kernel="),
        (preprocessing.PowerTransformer(), ["a"], None, "PowerTransformer has no converter"),
        (
            compose.TransformedTargetRegressor(transformer=preprocessing.QuantileTransformer(n_quantiles=5)),
            ["a"],
            "number",
            "transformer=QuantileTransformer",
        ),
        (impute.SimpleImputer(strategy="most_frequent"), STRINGS, None, "strings of .* are a result"),
        (preprocessing.OneHotEncoder(), ["date"], None, "neither strings nor numbers"),
        (preprocessing.OneHotEncoder(), ["two_missing"], None, "both None and NaN"),
        (
            model_selection.GridSearchCV(linear_model.Ridge(), {"alpha": [1]}, refit=False),
            ["a"],
            "number",
            "refit=False",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.filterwarnings("ignore")
def test_refused_with_a_reason(
    model: Any, columns: list[str], target: str | None, message: str, whole: tqp.Connection
) -> None:
    train = TRAIN.assign(
        date=pd.Series([datetime.date(2020, 1, 1 + i % 20) for i in range(300)], dtype=object),
        two_missing=pd.Series(["x", None, np.nan] * 100, dtype=object),
    )
    labels = np.stack([TARGETS["bools"], TRAIN["a"] > 0], axis=1).astype(int)
    model.fit(train[columns], None if target is None else labels if target == "labels" else TARGETS[target])
    with pytest.raises(tqp.UnsupportedError, match=message):
        whole.register_model("m", model, inputs=columns)


def test_the_best_model_of_a_search(whole: tqp.Connection) -> None:
    search = model_selection.GridSearchCV(linear_model.Ridge(), {"alpha": [0.1, 10]})
    model = fitted(search, ["a", "b"], "number")
    whole.register("t", TEST)
    whole.register_model("m", model)
    compare(whole, ["a", "b"], model.predict(TEST[["a", "b"]]))


def scored(model: object, rows: pd.DataFrame, **options: object) -> np.ndarray:
    with tqp.connect(threads=1) as con:
        con.register("t", rows).register_model("m", model, inputs=list(rows), **options)  # type: ignore[arg-type]
        return np.array([row[0] for row in con.sql(f"SELECT m({', '.join(rows)}) FROM t").fetchall()])


def test_large_inputs_of_linear_models_may_cancel() -> None:
    random = np.random.default_rng(0)
    begin = 1.7e9 + random.uniform(0, 1e6, 500)
    rows = pd.DataFrame({"a": begin, "b": begin + random.uniform(0, 1e3, 500), "c": random.normal(size=500)})
    target = (rows.b - rows.a) / 100 + rows.c
    for model in (linear_model.LinearRegression(), linear_model.Ridge(1e-9)):
        model.fit(rows, target)
        np.testing.assert_allclose(scored(model, rows), model.predict(rows), rtol=1e-5, atol=1e-5)
    classifier = linear_model.LogisticRegression(max_iter=1).fit(rows, target > 5)
    classifier.coef_, classifier.intercept_ = np.array([[-0.01, 0.01, 1.0]]), np.array([-5.0])
    wanted = classifier.predict_proba(rows)[:, 1]
    np.testing.assert_allclose(scored(classifier, rows, output="proba"), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_rows_are_divided_by_their_norm_however_large_they_are(norm: str) -> None:
    random = np.random.default_rng(0)
    model = pipeline.make_pipeline(preprocessing.Normalizer(norm), linear_model.LinearRegression())
    model.fit(random.normal(size=(50, 2)), random.normal(size=50))
    rows = pd.DataFrame(
        {"a": [1e-25, 1e25, 1e-15, -3e-14, 0.0, 5.0], "b": [2e-25, -4e25, 0.0, 2e-14, 0.0, 12.0]}
    )
    np.testing.assert_allclose(scored(model, rows), model.predict(rows.to_numpy()), rtol=1e-5)


def test_a_score_of_zero_is_the_second_class_of_a_support_vector_machine() -> None:
    model = svm.SVC(kernel="linear", C=1e3).fit([[0.0], [1.0]], [3, 7])
    rows = pd.DataFrame({"a": [0.0, 0.5, 1.0]})
    assert model.decision_function([[0.5]]) == 0
    assert scored(model, rows).tolist() == model.predict(rows.to_numpy()).tolist() == [3, 7, 7]
