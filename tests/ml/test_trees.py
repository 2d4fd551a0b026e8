"""Every kind of tree model, called in SQL, against the library that trained it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
import xgboost
from numpy.typing import NDArray
from sklearn import ensemble, tree
from threadpoolctl import threadpool_limits

import tqp
from tests.ml.tree_cases import BINARY, CASES, CLEAN, FRAME, HOLES, SCORE, TEST, TRAIN, frame
from tqp.ml.trees.boosted import original_of
from tqp.ml.trees.layers import TreeSum

pytestmark = pytest.mark.filterwarnings("ignore")
TOLERANCE = 1e-5


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The libraries' own threads would wait for one another, actively."""
    with threadpool_limits(1):
        yield


def column(table: Any, name: str) -> NDArray[Any]:
    return np.array(table.column(name).to_pylist())


@pytest.mark.parametrize("name", list(CASES))
def test_answers_are_those_of_the_library(name: str) -> None:
    _, kind, fit = CASES[name]
    data = frame(TEST, kind)
    model = fit(frame(TRAIN, kind))
    original = original_of(model)
    with tqp.connect(threads=1) as con:
        con.register("t", data.astype({"city": object, "size": float}) if kind == FRAME else data)
        con.register_model("m", model, inputs=list(data))
        registered = con.models()[0]
        inputs = ", ".join(data)
        for output in registered.converted.outputs:
            con.register_model("m", model, inputs=list(data), output=output)
            got = column(con.sql(f"SELECT m({inputs}) AS p FROM t").to_arrow(), "p")
            if output in ("label", "value"):
                wanted = np.asarray(original.predict(data))
            elif output == "proba":
                wanted = np.asarray(original.predict_proba(data))
                wanted = wanted[:, 1] if wanted.shape[1] == 2 else wanted
            else:
                wanted = np.asarray(original.decision_function(data))
            if output == "label":
                assert (got == wanted).all()
            else:
                difference = np.abs(got - wanted.reshape(got.shape)) / np.maximum(
                    1, np.abs(wanted.reshape(got.shape))
                )
                assert difference.max() <= TOLERANCE, output


def test_categories_that_were_not_seen() -> None:
    """scikit-learn and LightGBM take them as missing."""
    data = frame(TEST, FRAME).head(50)
    train = frame(TRAIN, FRAME)
    train["city"] = train["city"].cat.rename_categories({"Bodo": "Bodø"})
    unseen = data.assign(city="Nowhere", size=15.0)
    missing = data.assign(
        city=pd.Categorical([None] * 50, categories=train["city"].cat.categories),
        size=pd.Categorical([None] * 50, categories=train["size"].cat.categories),
    )
    for model in (
        ensemble.HistGradientBoostingRegressor(max_iter=6).fit(train, SCORE),
        lightgbm.LGBMRegressor(n_estimators=6, verbose=-1, n_jobs=1).fit(train, SCORE),
    ):
        with tqp.connect(threads=1) as con:
            con.register("t", unseen)
            con.register_model("m", model)
            got = column(con.sql(f"SELECT m({', '.join(unseen)}) AS p FROM t").to_arrow(), "p")
            np.testing.assert_allclose(got, model.predict(missing), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lightgbm.LGBMRegressor(n_estimators=2, linear_tree=True, verbose=-1, n_jobs=1), "linear trees"),
        (xgboost.XGBRegressor(n_estimators=2, booster="gblinear"), "gblinear"),
        (
            ensemble.GradientBoostingRegressor(n_estimators=2, init=tree.DecisionTreeRegressor()),
            "init=Decision",
        ),
    ],
)
def test_what_has_no_converter_is_refused(model: Any, message: str) -> None:
    fitted = model.fit(frame(TRAIN, CLEAN), SCORE)
    with tqp.connect() as con, pytest.raises(tqp.UnsupportedError, match=message):
        con.register_model("m", fitted)


def test_categories_that_xgboost_damages_are_refused() -> None:
    data = pd.DataFrame({"city": pd.Categorical(["Bodø", "Oslo"] * 10)})
    fitted = xgboost.XGBRegressor(n_estimators=1, enable_categorical=True).fit(data, np.arange(20))
    with tqp.connect() as con, pytest.raises(tqp.UnsupportedError, match="ASCII"):
        con.register_model("m", fitted)


def test_categories_that_are_booleans_are_refused() -> None:
    data = pd.DataFrame({"member": pd.Categorical([True, False] * 100)})
    fitted = lightgbm.LGBMRegressor(n_estimators=1, verbose=-1, n_jobs=1).fit(data, np.arange(200) % 2)
    with tqp.connect() as con, pytest.raises(tqp.UnsupportedError, match="booleans"):
        con.register_model("m", fitted)


@pytest.mark.parametrize(
    "model", [ensemble.RandomForestClassifier(), lightgbm.LGBMClassifier(), xgboost.XGBRegressor()]
)
def test_what_is_not_fitted_is_refused(model: Any) -> None:
    with tqp.connect() as con, pytest.raises(tqp.BindError, match="not fitted"):
        con.register_model("m", model, inputs=["a"])


def test_several_labels_a_row_are_refused() -> None:
    labels = np.stack([BINARY, SCORE > 1], axis=1)
    fitted = ensemble.RandomForestClassifier(2).fit(frame(TRAIN, CLEAN), labels)
    with tqp.connect() as con, pytest.raises(tqp.UnsupportedError, match="several labels"):
        con.register_model("m", fitted)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_few_rows(rows: int) -> None:
    data = frame(TEST, HOLES).head(rows)
    model = lightgbm.LGBMRegressor(n_estimators=6, num_leaves=100, min_child_samples=2, verbose=-1, n_jobs=1)
    model.fit(frame(TRAIN, HOLES), SCORE)
    with tqp.connect(threads=1) as con:
        con.register("t", data)
        con.register_model("m", model)
        got = column(con.sql(f"SELECT m({', '.join(data)}) AS p FROM t").to_arrow(), "p")
        np.testing.assert_allclose(got, model.predict(data) if rows else [], rtol=0, atol=TOLERANCE)


def body_of(model: Any) -> TreeSum:
    with tqp.connect(threads=1) as con:
        con.register_model("m", model)
        body = con.models()[0].scorer.body
    assert isinstance(body, TreeSum)
    return body


@pytest.mark.parametrize("name", ["forest two 7", "lightgbm many leaves frame", "forest numbers None"])
def test_many_rows_at_once_give_the_same(name: str) -> None:
    """As on devices other than CPUs."""
    _, kind, fit = CASES[name]
    model = fit(frame(TRAIN, kind))
    body = body_of(model)
    values = torch.from_numpy(frame(TEST, HOLES).to_numpy(dtype=np.float64)).repeat(20, 1)
    features = torch.cat([values, values[:, :2].nan_to_num().trunc()], 1)
    wanted = body(features)
    got = torch.zeros_like(wanted)
    bins = {
        feature: module(body._column(features, feature)) for feature, module in zip(body.features, body.bins)
    }
    for part in body.parts:
        part.add_to(got, bins, 1 << 26, False)
    torch.testing.assert_close(got * body.ensemble.scale + body.base_bits.view(torch.float64), wanted)


def test_unused_features_are_known() -> None:
    model = tree.DecisionTreeRegressor(max_depth=3).fit(TRAIN[["a", "constant"]], SCORE)
    assert body_of(model).inputs_read() == {0}


@pytest.mark.parametrize(
    "name", ["forest two 7", "lightgbm plain holes", "lightgbm zeros holes", "xgboost three"]
)
@pytest.mark.parametrize("missing", [False, True])
def test_a_restricted_ensemble_is_smaller_and_gives_the_same(name: str, missing: bool) -> None:
    _, kind, fit = CASES[name]
    body = body_of(fit(frame(TRAIN, kind)))
    ranges = {0: (-0.5, 0.25), 2: (3.0, 3.0), 1: (0.1, np.inf)}
    smaller = body.restricted(ranges, () if missing else (1,))
    values = frame(TEST, kind).to_numpy(dtype=np.float64)
    values[:, 0] = np.clip(np.nan_to_num(values[:, 0]), -0.5, 0.25)
    values[:, 2] = 3.0
    values[:, 1] = np.where(np.isnan(values[:, 1]), np.nan if missing else 0.1, np.fmax(values[:, 1], 0.1))
    features = torch.from_numpy(values)
    torch.testing.assert_close(smaller(features), body(features), rtol=0, atol=1e-12)
    assert len(smaller.ensemble.feature) < len(body.ensemble.feature) * 0.7
    assert smaller.cost <= body.cost


def test_constants_leave_nothing_to_compare() -> None:
    model = tree.DecisionTreeRegressor(max_depth=4).fit(TRAIN[["a", "c"]], SCORE)
    body = body_of(model)
    smaller = body.restricted({0: (1.0, 1.0), 1: (2.0, 2.0)})
    assert smaller.inputs_read() == set()
    assert (
        smaller(torch.zeros(3, 2))[:, 0].tolist()
        == [model.predict(pd.DataFrame({"a": [1.0], "c": [2.0]}))[0]] * 3
    )


def test_numbers_that_lightgbm_takes_as_zero_are_missing_in_a_range_of_them_too() -> None:
    body = body_of(CASES["lightgbm zeros clean"][2](frame(TRAIN, CLEAN)))
    features = torch.from_numpy(frame(TEST, CLEAN).to_numpy(dtype=np.float64))
    for tiny in (1e-36, -1e-36):
        features[:, 1] = tiny
        torch.testing.assert_close(body.restricted({1: (tiny, tiny)})(features), body(features))


def test_categories_restrict_too() -> None:
    model = xgboost.XGBRegressor(n_estimators=4, enable_categorical=True).fit(
        frame(TRAIN, FRAME)[["a", "city"]], SCORE
    )
    body = body_of(model)
    features = torch.tensor([[x, 1.0] for x in np.linspace(-2, 2, 50)])
    smaller = body.restricted({1: (1.0, 1.0)})
    torch.testing.assert_close(smaller(features), body(features))
    assert 1 not in smaller.inputs_read()


def test_thresholds_of_every_size() -> None:
    """Infinite, tiny and huge ones, close together and far apart: bins are found by a table over their range."""
    random = np.random.default_rng(0)
    wide = np.concatenate([random.normal(size=200) * 10.0 ** random.integers(-300, 300, 200), [0.0] * 20])
    target = random.normal(size=len(wide))
    for values in (wide, np.sort(wide), wide * 1e-320, np.exp(random.normal(size=len(wide)) * 20)):
        model = lightgbm.LGBMRegressor(
            n_estimators=3, num_leaves=100, min_child_samples=1, verbose=-1, n_jobs=1
        )
        model.fit(values[:, None], target)
        body = body_of(model)
        limits = body.ensemble.threshold[body.ensemble.feature >= 0]
        tried = np.concatenate([values, limits, np.nextafter(limits, np.inf), [np.nan, 1e308, -1e308]])
        got = body(torch.from_numpy(tried[:, None]))[:, 0].numpy()
        np.testing.assert_allclose(got, model.predict(tried[:, None]), rtol=0, atol=1e-12)
