"""Predictions of columns with few combinations of values: scored once for each, whatever the types; NULLs; labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from torch import Tensor

import tqp

ROWS = 4_000
CALLS: list[int] = []


def weighted(features: Tensor) -> Tensor:
    CALLS.append(len(features))
    return features[:, 0] + 10 * features[:, 1]


@pytest.fixture(scope="module", params=[97, 1_000_000], ids="batch_rows={}".format)
def engines(request: pytest.FixtureRequest) -> Iterator[list[tqp.Connection]]:
    random = np.random.default_rng(0)
    words = np.array(["p", "q", "r"])
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "g": random.integers(3, 8, ROWS),
            "h": random.integers(-4, 4, ROWS),
            "c": random.random(ROWS) < 0.5,
            "n": pa.array([None if i % 9 == 0 else i % 5 for i in range(ROWS)]),
            "w": pa.array([None if i % 11 == 0 else str(words[i % 3]) for i in range(ROWS)]),
            "x": random.random(ROWS),
        }
    )
    codes = pa.array([None if i % 7 == 0 else i % 3 for i in range(ROWS)])
    table = table.append_column("e", pa.DictionaryArray.from_arrays(codes, ["r", "p", "q"], ordered=True))
    frame = table.drop_columns("e").to_pandas().dropna()
    encoder = ColumnTransformer(
        [("w", OneHotEncoder(handle_unknown="ignore"), ["w"])], remainder="passthrough"
    )
    labels = np.where(frame.w == "q", "yes", np.where(frame.g > 5, "no", "maybe"))
    model = make_pipeline(encoder, LogisticRegression(max_iter=500)).fit(frame[["w", "g"]], labels)
    made = []
    for disabled in ((), ("predict_distinct",)):
        connection = tqp.connect(threads=1, batch_rows=request.param, disabled_rules=disabled)
        connection.register("t", table)
        connection.register("empty", table.slice(0, 0))
        connection.register_model("m", weighted, inputs=["a", "b"])
        connection.register_model("words", model)
        connection.models()[1].converted.cost = 1_000.0
        made.append(connection)
    yield made
    for connection in made:
        connection.close()


@pytest.mark.parametrize(
    ("query", "scored"),
    [
        ("SELECT id, m(g, h) FROM t", 40),
        ("SELECT m(g, h), count(*) FROM t GROUP BY 1", 40),
        ("SELECT sum(m(g, c)) FROM t WHERE m(h, g) > 30", 50),
        ("SELECT sum(m(g, 2)), sum(m(g + 0.0, 1)) FROM t", None),
        ("SELECT sum(m(g, n)) FROM t WHERE n IS NOT NULL", 25),
        ("SELECT sum(CASE WHEN n > 2 THEN m(g, n) END) FROM t", 25),
        ("SELECT sum(m(g, x)) FROM t", None),
        ("SELECT sum(m(g, h)) FROM empty", None),
        ("SELECT sum(m(g, h)) FROM t WHERE id < 10", None),
        ("SELECT id, words(coalesce(w, 'p'), g) FROM t", None),
        ("SELECT words(w, g), count(*) FROM t WHERE w IS NOT NULL GROUP BY 1", None),
        ("SELECT ML_PREDICT_PROBA('words', w, g) FROM t WHERE w IS NOT NULL AND id < 2000", None),
        ("SELECT count(*) FROM t WHERE words(w, g) = 'yes' AND w IS NOT NULL", None),
        ("SELECT words(e, g), count(*) FROM t WHERE e IS NOT NULL GROUP BY 1", None),
    ],
)
def test_answers_do_not_depend_on_the_rule(
    engines: list[tqp.Connection], query: str, scored: int | None
) -> None:
    CALLS.clear()
    found = engines[0].sql(query).fetchall()
    if scored is not None:
        assert sum(CALLS) == scored
    wanted = engines[1].sql(query).fetchall()
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_plans_show_it(engines: list[tqp.Connection]) -> None:
    assert "m(g, h) [of 40 combinations]" in engines[0].explain("SELECT m(g, h) FROM t")
    assert "combinations" not in engines[1].explain("SELECT m(g, h) FROM t")
    for query in ("SELECT m(g, x) FROM t", "SELECT m(g, h) FROM t LIMIT 30"):
        assert "combinations" not in engines[0].explain(query)
    for words in ("w", "e"):
        assert "combinations" in engines[0].explain(f"SELECT words({words}, g) FROM t")
