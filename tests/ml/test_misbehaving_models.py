"""Models that are not what queries need, at registration and afterwards: each is a clear error, and no table changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

import tqp
from tqp.ml.conversion import convert
from tqp.ml.proof.prove import prove


class _Turncoat:
    """Behaves while it is registered; afterwards it does what it is told."""

    def __init__(self, change: Callable[[Tensor, Tensor], Any]) -> None:
        self.change: Callable[[Tensor, Tensor], Any] | None = None
        self.later = change

    def __call__(self, features: Tensor) -> Any:
        made = features.sum(1)
        return made if self.change is None else self.change(features, made)


def _raise(features: Tensor, _: Tensor) -> Any:
    raise KeyError("lost")


_CHANGES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "raises": _raise,
    "a row too few": lambda _, made: made[1:],
    "a list": lambda _, made: made.tolist(),
    "nothing": lambda *_: None,
    "three outputs": lambda _, made: torch.stack([made] * 3, 1),
    "one number": lambda _, made: made.sum(),
    "a sparse tensor": lambda _, made: made.to_sparse(),
    "a tensor without values": lambda _, made: made.to("meta"),
    "complex numbers": lambda _, made: torch.complex(made, made),
}


@pytest.mark.parametrize("change", _CHANGES)
def test_a_model_that_changes_its_mind_is_an_execution_error(change: str) -> None:
    model = _Turncoat(_CHANGES[change])
    with tqp.connect(threads=1) as connection:
        connection.register("t", {"x": np.arange(10.0)})
        connection.register_model("m", model, inputs=["x"])
        assert connection.sql("SELECT sum(m(x)) FROM t").fetchall() == [(45.0,)]
        model.change = model.later
        with pytest.raises(tqp.ExecutionError, match="the model (raises|gives)"):
            connection.sql("SELECT sum(m(x)) FROM t")


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (lambda features: features[:, 0].to_sparse(), "torch.sparse_coo"),
        (lambda features: features[:, 0].to("meta"), "the device meta"),
        (lambda features: features[:, 0].to(torch.complex64), "torch.complex64"),
        (lambda features: torch.nested.nested_tensor([features[0], features[1]]), "a nested tensor"),
    ],
)
def test_a_model_gives_dense_real_numbers(model: Callable[[Tensor], Tensor], kind: str) -> None:
    with tqp.connect(threads=1) as connection, pytest.raises(tqp.BindError, match=f"gave .*{kind}"):
        connection.register_model("m", model, inputs=["x"])


@pytest.mark.parametrize("arrays", [False, True])
def test_a_model_that_writes_into_its_input_changes_no_table(arrays: bool) -> None:
    def zero(features: Tensor) -> Tensor:
        result = features.sum(1)
        features.zero_()
        return result

    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    with tqp.connect(threads=1) as connection:
        connection.register("t", {"x": torch.from_numpy(values) if arrays else torch.arange(4.0)})
        connection.register_model("m", zero, inputs={"x": 3} if arrays else ["x"])
        first = connection.sql("SELECT x, m(x) FROM t").fetchall()
        assert connection.sql("SELECT x, m(x) FROM t").fetchall() == first
        assert sum(row[1] for row in first) == (66.0 if arrays else 6.0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_model_may_query_its_own_connection(threads: int) -> None:
    with tqp.connect(threads=threads) as connection:
        connection.register("weights", {"w": [2.0]}).register("t", {"x": np.arange(1000.0)})

        def weigh(features: Tensor) -> Tensor:
            ((weight,),) = connection.sql("SELECT w FROM weights").fetchall()
            return features[:, 0] * weight

        connection.register_model("m", weigh, inputs=["x"])
        assert connection.sql("SELECT sum(m(x)) FROM t").fetchall() == [(999_000.0,)]


@pytest.mark.parametrize(
    "model",
    [
        lambda features: features[:, 0] - features[:, 0].mean(),
        lambda features: features[:, 0].cumsum(0),
        lambda features: torch.softmax(features[:, 0], 0),
        lambda features: features[:, 0].flip(0),
        lambda features: features[:, 0] + torch.rand(features.shape[0]),
    ],
)
def test_models_that_look_at_other_rows_or_at_chance_are_refused(model: Callable[[Tensor], Tensor]) -> None:
    with tqp.connect(threads=1) as connection, pytest.raises(tqp.BindError, match=r"other rows|each time"):
        connection.register_model("m", model, inputs=["x"])


def test_modules_that_take_only_some_values_are_tried_with_those() -> None:
    table = torch.nn.Embedding(2, 3)
    with tqp.connect(threads=1) as connection:
        connection.register_model("m", lambda features: table(features[:, 0].long()).sum(1), inputs=["x"])
        connection.register("t", {"x": [0, 1, 0]})
        assert len(set(connection.sql("SELECT m(x) FROM t").fetchall())) == 2


def test_modules_of_torch_export() -> None:
    layer = torch.nn.Linear(2, 1)
    rows = torch.export.Dim("rows")
    exported = torch.export.export(layer, (torch.zeros(4, 2),), dynamic_shapes={"input": {0: rows}})
    with torch.no_grad():
        expected = float(layer(torch.tensor([[1.0, 2.0]])))
    with tqp.connect(threads=1) as connection:
        connection.register("t", {"a": [1.0], "b": [2.0]})
        connection.register_model("m", exported.module(), inputs=["a", "b"])
        assert connection.sql("SELECT m(a, b) FROM t").fetchall() == [(pytest.approx(expected),)]
        fixed = torch.export.export(layer, (torch.zeros(4, 2),))
        with pytest.raises(tqp.BindError, match="two rows"):
            connection.register_model("m", fixed.module(), inputs=["a", "b"])


def test_a_forward_of_several_tensors_says_what_to_do() -> None:
    class Two(torch.nn.Module):
        def forward(self, first: Tensor, second: Tensor) -> Tensor:
            return first + second

    with tqp.connect(threads=1) as connection:
        with pytest.raises(tqp.BindError, match="several tensors"):
            connection.register_model("m", Two(), inputs=["a", "b"])
        two = Two()
        connection.register_model("m", lambda f: two(f[:, :1], f[:, 1:]), inputs=["a", "b"])
        assert connection.sql("SELECT m(1, 2) AS m").fetchall() == [(3.0,)]


def _people() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame({"age": random.normal(40, 10, 300), "spend": random.normal(100, 50, 300)})


def test_names_in_another_order_than_fitted_are_refused() -> None:
    people = _people()
    model = LogisticRegression().fit(people, people.age > 40)
    with tqp.connect(threads=1) as connection:
        with pytest.raises(tqp.BindError, match="order of the fit, which is age, spend"):
            connection.register_model("m", model, inputs=["spend", "age"])
        connection.register_model("m", model, inputs=["years", "money"])
        connection.register_model("m", model, inputs=["age", "money"])


@pytest.mark.parametrize("pipeline", [False, True])
def test_clusters_alone_and_in_a_pipeline(pipeline: bool) -> None:
    people = _people()
    model: Any = KMeans(3, n_init=2, random_state=0)
    model = (make_pipeline(StandardScaler(), model) if pipeline else model).fit(people)
    with tqp.connect(threads=1) as connection:
        connection.register("people", people).register_model("m", model)
        rows = connection.sql("SELECT m(age, spend) FROM people").fetchall()
        assert [row[0] for row in rows] == model.predict(people).tolist()
        assert "(without extremes)" in repr(connection.models()[0])


def test_extremes_that_the_original_cannot_score_are_no_reason_to_refuse_it() -> None:
    people = _people()
    model = KMeans(3, n_init=2, random_state=0).fit(people)
    sample = pd.concat([people, pd.DataFrame({"age": [1e308, -1e200], "spend": [1e308, 0.0]})])
    _, proof = prove("m", model, convert(model, None), sample)
    assert proof.left_out == ("extremes for which the original overflows",)
