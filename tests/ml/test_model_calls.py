"""Models called in SQL: where they may stand, what they take, and what is said of a call that does not fit."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from torch import Tensor, nn

import tqp

ROWS = 1_000


def weighted(features: Tensor) -> Tensor:
    """One output, from three features."""
    return features[:, 0] + 10 * features[:, 1] + 100 * features[:, 2]


@pytest.fixture(params=[1, 7, 1_000_000], ids="batch_rows={}".format)
def con(request: pytest.FixtureRequest) -> Iterator[tqp.Connection]:
    random = np.random.default_rng(0)
    with tqp.connect(threads=2, batch_rows=request.param) as connection:
        rows = 20 if request.param == 1 else ROWS
        connection.register(
            "t",
            {
                "id": np.arange(rows),
                "a": (random.integers(-80, 80, rows) / 8).astype(np.float32),  # sums are exact
                "b": random.integers(0, 100, rows),
                "c": random.random(rows) < 0.5,
            },
        )
        connection.register_model("weighted", weighted, inputs=["a", "b", "c"])
        yield connection


def test_a_call_is_an_expression_like_any_other(con: tqp.Connection) -> None:
    wanted = "CAST(a AS DOUBLE) + 10 * b + 100 * CAST(c AS INTEGER)"
    for query in (
        "SELECT id, round({}, 2) FROM t ORDER BY id",
        "SELECT id FROM t WHERE {} > 500 AND b < 50 ORDER BY id",
        "SELECT b % 3, round(sum({}), 0) FROM t GROUP BY 1 ORDER BY 1",
        "SELECT count(*) FROM t x JOIN t y ON x.b = y.b WHERE x.id < 10 AND y.id < 10",
        "SELECT id FROM t ORDER BY {} DESC, id LIMIT 5",
        "SELECT CASE WHEN b > 50 THEN round({}, 2) END FROM t ORDER BY id",
        "SELECT max(p) > 0 FROM (SELECT {} AS p FROM t WHERE id < 0)",
    ):
        assert (
            con.sql(query.format("weighted(a, b, c)")).fetchall() == con.sql(query.format(wanted)).fetchall()
        )


def test_an_alias_of_a_prediction_filters_and_sorts(con: tqp.Connection) -> None:
    rows = con.sql("SELECT id, weighted(a, b, c) AS p FROM t WHERE p > 300 ORDER BY p LIMIT 3").fetchall()
    assert [p for _, p in rows] == sorted(p for _, p in rows) and all(p > 300 for _, p in rows)


def test_generic_functions_take_the_name_of_the_model(con: tqp.Connection) -> None:
    assert con.sql("SELECT sum(ML_PREDICT('Weighted', a, b, c) - WEIGHTED(a, b, c)) FROM t").fetchall() == [
        (0.0,)
    ]


def test_several_outputs_are_an_array(con: tqp.Connection) -> None:
    con.register_model("twice", lambda x: torch.cat([x, 2 * x], 1), inputs=["a"])
    (pair,) = con.sql("SELECT twice(b) FROM t WHERE id = 3").fetchall()[0]
    ((b,),) = con.sql("SELECT b FROM t WHERE id = 3").fetchall()
    assert list(pair) == [b, 2 * b]


def test_modules_belong_to_the_program(con: tqp.Connection) -> None:
    net = nn.Linear(3, 1)
    con.register_model("net", net, inputs=["a", "b", "c"])
    program = con.compile("SELECT net(a, b, c) FROM t")
    assert any(module is net for module in program.modules())
    assert "net(" in program.code


def test_a_model_registered_again_is_the_one_that_runs(con: tqp.Connection) -> None:
    con.register_model("m", lambda x: x[:, 0], inputs=["b"])
    before = con.sql("SELECT sum(m(b)) FROM t").fetchall()
    con.register_model("m", lambda x: 2 * x[:, 0], inputs=["b"])
    assert con.sql("SELECT sum(m(b)) FROM t").fetchall() == [(2 * before[0][0],)]
    con.unregister_model("M")
    with pytest.raises(tqp.BindError, match='no function "m"'):
        con.sql("SELECT m(b) FROM t")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT weighted(a, b) FROM t", r"takes 3 inputs \(a, b, c\), and 2 are given"),
        ("SELECT weighted(a, b, 'x') FROM t", 'the input "c" is a number'),
        ("SELECT weigthed(a, b, c) FROM t", 'did you mean "weighted"'),
        ("SELECT ML_PREDICT('weigthed', a, b, c) FROM t", 'did you mean "weighted"'),
        ("SELECT ML_PREDICT(a, b, c) FROM t", "takes the name of a model"),
        ("SELECT ML_PREDICT() FROM t", "takes the name of a model"),
        ("SELECT ML_PREDICT_PROBA('weighted', a, b, c) FROM t", "has no probabilities"),
        ("SELECT weighted(a, nullif(b, 3), c) FROM t", 'the input "b" may be NULL'),
    ],
)
def test_a_call_that_does_not_fit(con: tqp.Connection, query: str, message: str) -> None:
    with pytest.raises(tqp.BindError, match=message):
        con.sql(query)


def test_missing_values_are_refused_only_where_there_may_be_some(con: tqp.Connection) -> None:
    con.sql("SELECT weighted(a, coalesce(nullif(b, 3), 0), c) FROM t").fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(CASE WHEN word <> 'new' THEN {} END) FROM w",
        "SELECT sum({}) FILTER (WHERE word <> 'new') FROM w",
        "SELECT sum({}) FROM w WHERE {} > 0 AND word <> 'new'",
        "SELECT sum(CASE WHEN word <> 'new' THEN {} END) FROM w WHERE word = 'new' OR {} > 0",
        "SELECT sum({}) FROM w WHERE id < 0 OR (word <> 'new' AND {} > 0)",
        "SELECT sum({}) FROM w JOIN v ON w.id = v.id AND {} > v.id - 99",
    ],
)
@pytest.mark.parametrize("disabled", [[], ["place_predictions"]])
def test_categories_that_the_query_leaves_out_are_not_refused(query: str, disabled: list[str]) -> None:
    words = ["a", "b", "c"] * 10
    model = make_pipeline(OneHotEncoder(handle_unknown="error"), LinearRegression())
    model.fit(pd.DataFrame({"word": words}), [1.0, 2.0, 3.0] * 10)
    with tqp.connect(threads=1, disabled_rules=disabled) as con:
        con.register("w", pd.DataFrame({"id": range(40), "word": words + ["new"] * 10}))
        con.register("v", {"id": np.arange(30)})
        con.register_model("m", model)
        assert con.sql(query.format("m(word)", "m(word)")).fetchall() == [(pytest.approx(60.0),)]
        with pytest.raises(tqp.ExecutionError, match="was not fitted with"):
            con.sql("SELECT sum(m(word)) FROM w").fetchall()


@pytest.mark.parametrize(
    ("model", "keywords", "message"),
    [
        (weighted, {}, "give inputs="),
        (weighted, {"inputs": []}, "give inputs="),
        (lambda x: x[:1], {"inputs": ["a"]}, "from features"),
        (lambda x: "text", {"inputs": ["a"]}, "gave str"),
        (weighted, {"inputs": ["a", "b", "c"], "output": "proba?"}, "proba"),
        (object(), {}, "has no converter"),
        (nn.Linear, {"inputs": ["a"]}, "has no converter"),
        (weighted, {"inputs": "abc"}, "give a list of names"),
        (weighted, {"inputs": ["a", "b", "b"]}, "names b more than once"),
        (weighted, {"inputs": ["a", "b", "c"], "output": ("proba",)}, "of a pair the first is"),
        (weighted, {"inputs": ["a", "b", "c"], "output": ("value", 1)}, "of a pair the first is"),
    ],
)
def test_a_model_that_cannot_be_registered(
    con: tqp.Connection, model: object, keywords: dict[str, object], message: str
) -> None:
    with pytest.raises(tqp.Error, match=message):
        con.register_model("m", model, **keywords)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["length", "SUM", "coalesce", "substr", "ml_predict"])
def test_a_name_that_sql_uses_is_refused(con: tqp.Connection, name: str) -> None:
    with pytest.raises(tqp.BindError, match="a function of SQL"):
        con.register_model(name, weighted, inputs=["a", "b", "c"])


class Twice:
    """Called like a function."""

    def __call__(self, features: Tensor) -> Tensor:
        return features[:, 0] * 2


@pytest.mark.parametrize("model", [Twice(), functools.partial(torch.mul, other=2), torch.neg])
def test_whatever_can_be_called_on_features_is_a_model(con: tqp.Connection, model: object) -> None:
    con.register_model("m", model, inputs=["b"])
    factor = -1 if model is torch.neg else 2
    assert con.sql(f"SELECT count(*) FROM t WHERE m(b) <> {factor} * b").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        (lambda x: (x[:, :1] * 2).squeeze(), "2 * b"),
        (lambda x: x.view(x.shape[0], -1)[:, 0], "b"),
        (lambda x: x[:, 0] > 50, "CAST(b > 50 AS INTEGER)"),
        (lambda x: torch.cat([50 - x, x - 50], 1).argmax(1), "CAST(b > 50 AS INTEGER)"),
    ],
)
def test_of_one_row_and_of_none_and_whole_numbers(con: tqp.Connection, model: object, wanted: str) -> None:
    con.register_model("m", model, inputs=["b"])  # type: ignore[arg-type]
    for condition in ("true", "id = 3", "id < 0"):
        query = f"SELECT {{}} FROM t WHERE {condition} ORDER BY id"
        found = con.sql(query.format("m(b)")).fetchall()
        assert found == con.sql(query.format(f"CAST({wanted} AS DOUBLE)")).fetchall()


def test_several_outputs_of_one_row_that_are_squeezed(con: tqp.Connection) -> None:
    con.register_model("pair", lambda x: torch.cat([x, 2 * x], 1).squeeze(), inputs=["id"])
    assert [list(pair) for (pair,) in con.sql("SELECT pair(id) FROM t WHERE id = 3").fetchall()] == [[3, 6]]


def test_one_query_with_tables_and_models() -> None:
    rows = {"a": [1.0, 2.0], "b": [3, 4], "c": [True, False]}
    tables = {"t": {name: np.array(values) for name, values in rows.items()}}
    models = {"weighted": (weighted, {"inputs": ["a", "b", "c"]})}
    assert tqp.sql("SELECT weighted(a, b, c) AS p FROM t ORDER BY p", tables, models=models).fetchall() == [
        (42.0,),
        (131.0,),
    ]


def test_products_in_bfloat16_are_near_and_the_difference_is_told() -> None:
    random = np.random.default_rng(0)
    features, target = random.normal(size=(200, 8)), random.normal(size=200)
    names = [f"x{i}" for i in range(8)]
    model = MLPRegressor(hidden_layer_sizes=(16,), max_iter=30, random_state=0).fit(features, target)
    found = {}
    for precision in ("float32", "bf16"):
        with tqp.connect(ml_precision=precision) as con:
            con.register("t", dict(zip(names, features.T, strict=True)))
            con.register_model("m", model)
            (registered,) = con.models()
            assert registered.proof is not None
            found[precision] = registered.proof.difference
            made = np.array(con.sql(f"SELECT m({', '.join(names)}) FROM t").fetchall())[:, 0]
            assert np.abs(made - model.predict(features)).max() < (1e-5 if precision == "float32" else 0.1)
            assert ("bfloat16" in repr(registered)) == (precision == "bf16")
    assert found["float32"] <= 1e-5 < found["bf16"]
    with pytest.raises(tqp.BindError, match="ml_precision"):
        tqp.connect(ml_precision="float8")


def test_a_model_may_derive_something_in_its_own_steps() -> None:
    def slope(features: Tensor) -> Tensor:
        with torch.enable_grad():
            followed = features.detach().requires_grad_()
            return torch.autograd.grad((followed**3).sum(), followed)[0][:, 0]

    con = tqp.connect(threads=2)
    con.register("t", {"a": torch.arange(4.0)})
    con.register_model("slope", slope, inputs=["a"])
    assert con.sql("SELECT slope(a) FROM t WHERE a > 0").fetchall() == [(3.0,), (12.0,), (27.0,)]
