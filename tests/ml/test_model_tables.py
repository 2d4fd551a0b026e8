"""ML_PREDICT in FROM: inputs matched by name, columns that pass through, and the names of what is predicted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import tqp

ROWS = 40


@cache
def _models() -> dict[str, Any]:
    """Fitted once."""
    features = np.random.default_rng(0).normal(size=(200, 2))
    classes = np.array(["high", "low", "middle"])[np.digitize(features.sum(1), [-1, 1])]
    return {
        "value": LinearRegression().fit(features, features.sum(1)),
        "binary": LogisticRegression().fit(features, features[:, 0] > 0),
        "several": LogisticRegression().fit(features, classes),
    }


@pytest.fixture(params=[1, 7, 1_000_000], ids="batch_rows={}".format)
def con(request: pytest.FixtureRequest) -> Iterator[tqp.Connection]:
    random, models = np.random.default_rng(1), _models()
    with tqp.connect(threads=2, batch_rows=request.param) as connection:
        table = {"id": np.arange(ROWS), "B": random.normal(size=ROWS), "a": random.normal(size=ROWS)}
        connection.register("t", {**table, "extra": np.arange(ROWS) % 3})
        connection.register("empty", {name: values[:0] for name, values in table.items()})
        connection.register_model("value", models["value"], inputs=["a", "b"])
        connection.register_model("binary", models["binary"], inputs=["a", "b"], target="Sign")
        connection.register_model("several", models["several"], inputs=["A", "b"], output="proba")
        connection.register_model("plain", lambda x: x[:, 0] - x[:, 1], inputs=["a", "b"], output="score")
        yield connection


@pytest.mark.parametrize(
    ("model", "outputs"),
    [
        ("value", {"predicted_value": "ML_PREDICT('value', a, b)"}),
        (
            "binary",
            {"predicted_Sign": "binary(a, b)", "predicted_Sign_probs": "ML_PREDICT_PROBA('binary', a, b)"},
        ),
        (
            "several",
            {"predicted_label": "ML_PREDICT('several', a, b)", "predicted_label_probs": "several(a, b)"},
        ),
        ("plain", {"predicted_value": "plain(a, b)"}),
    ],
)
def test_columns_pass_through_and_predictions_follow(
    con: tqp.Connection, model: str, outputs: dict[str, str]
) -> None:
    found = con.sql(f"SELECT * FROM ML_PREDICT('{model}', TABLE t)").to_arrow()
    assert found.column_names == ["id", "B", "a", "extra", *outputs]
    wanted = con.sql(f"SELECT *, {', '.join(outputs.values())} FROM t").fetchall()
    assert con.sql(f"SELECT * FROM ml_predict('{model.upper()}', (SELECT * FROM t))").fetchall() == wanted
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == [
        tuple(list(value) if isinstance(value, tuple) else value for value in row) for row in wanted
    ]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SELECT p.predicted_value FROM ML_PREDICT('value', TABLE t) AS p WHERE p.extra = 1", "value(a, b) FROM t WHERE extra = 1"),
        ("SELECT sum(v) FROM ML_PREDICT('value', TABLE t) p(i, b, a, e, v)", "sum(value(a, b)) FROM t"),
        ("SELECT u.id, predicted_Sign FROM t u JOIN ML_PREDICT('binary', (FROM t)) p ON p.id = u.id + 1", "id - 1, binary(a, b) FROM t WHERE id > 0"),
        ("SELECT t.id, p.id FROM t LEFT JOIN ML_PREDICT('binary', TABLE t) p ON p.id = t.id AND p.predicted_Sign", "id, CASE WHEN binary(a, b) THEN id END FROM t"),
        ("WITH c AS (SELECT a, b FROM t) SELECT predicted_value FROM ML_PREDICT('value', TABLE c)", "value(a, b) FROM t"),
        ("WITH c AS (FROM ML_PREDICT('value', TABLE t)) SELECT max(predicted_value) FROM c", "max(value(a, b)) FROM t"),
        ("SELECT count(*), predicted_label FROM ML_PREDICT('several', TABLE t) GROUP BY 2 HAVING count(*) > 1", "count(*), ML_PREDICT('several', a, b) FROM t GROUP BY 2 HAVING count(*) > 1"),
        ("SELECT predicted_value_1 FROM ML_PREDICT('value', (SELECT *, 1 AS predicted_value FROM t))", "value(a, b) FROM t"),
        ("SELECT p.predicted_value FROM t, ML_PREDICT('value', (SELECT t.a, 0 AS b)) p", "value(a, 0) FROM t"),
        ("SELECT predicted_value FROM (ML_PREDICT('value', TABLE t) p JOIN t u USING (id))", "value(a, b) FROM t"),
        ("SELECT count(*), max(predicted_value) FROM ML_PREDICT('value', TABLE empty)", "0, NULL"),
        ("SELECT predicted_value FROM ML_PREDICT('value', TABLE t), (SELECT 1)", "value(a, b) FROM t"),
        ("SELECT predicted_value FROM ML_PREDICT($1, TABLE t)", "ML_PREDICT($1, a, b) FROM t"),
    ],
)  # fmt: skip
def test_wherever_a_table_may_stand(con: tqp.Connection, query: str, wanted: str) -> None:
    params = ["value"] if "$1" in query else None
    assert sorted(con.sql(query, params).fetchall(), key=str) == sorted(
        con.sql(f"SELECT {wanted}", params).fetchall(), key=str
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("FROM ML_PREDICT('value', (SELECT id AS aa, B AS bb FROM t))", r'lack what the model value takes: "a" \(did you mean "aa"\?\), "b" \(did you mean "bb"\?\)'),
        ("FROM ML_PREDICT('value', (SELECT a FROM t))", r'takes: "b"; name columns so .*columns: a\)'),
        ("FROM ML_PREDICT('valve', TABLE t)", 'did you mean "value"'),
        ("FROM ML_PREDICT('value', t)", "TABLE name"),
        ("FROM ML_PREDICT('value')", "TABLE name"),
        ("FROM ML_PREDICT('value', TABLE u)", 'no table "u"'),
        ("FROM ML_PREDICT('value', (SELECT 'x' AS a, 1 AS b))", 'the input "a" is a number'),
        ("FROM read_xlsx('file')", "the table function read_xlsx"),
        ("SELECT ML_PREDICT('value', TABLE t)", "stands in FROM"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit(con: tqp.Connection, query: str, message: str) -> None:
    with pytest.raises(tqp.Error, match=message):
        con.sql(query)


def test_predictions_that_nobody_reads_are_not_made(con: tqp.Connection) -> None:
    con.register_model("fails", lambda x: x[:, 0] if len(x) == 2 and not x.any() else 1 / 0, inputs=["a"])
    assert con.sql("SELECT count(*), max(id) FROM ML_PREDICT('fails', TABLE t)").fetchall() == [
        (ROWS, ROWS - 1)
    ]
    assert "Scan t (id)" in con.explain("SELECT id FROM ML_PREDICT('value', TABLE t)")


@pytest.mark.parametrize(
    "query",
    [
        "WITH p AS (SELECT id, {} AS v FROM t) SELECT a.id FROM p a JOIN p b ON a.v < b.v AND a.id = b.id + 1 ORDER BY 1",
        "SELECT t.id, u.id FROM t JOIN t u ON round({}, 1) = round(u.a + 2 * u.b, 1) ORDER BY 1, 2",
        "SELECT extra, max({}), sum(CASE WHEN {} > 0 THEN 1 ELSE 0 END) FROM t GROUP BY extra ORDER BY 1",
        "SELECT {} > 0, count(*) FROM t GROUP BY {} > 0 ORDER BY 2",
        "SELECT extra FROM t GROUP BY extra HAVING min({}) < -3 ORDER BY avg({})",
        "SELECT id FROM t WHERE {} = (SELECT max({}) FROM t)",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.id = t.id + 1 AND u.a > {}) ORDER BY id",
        "SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE {} > 1) ORDER BY id",
        "SELECT DISTINCT {} > 0 FROM t ORDER BY 1",
        "SELECT id FROM t WHERE {} > 0 UNION ALL SELECT id FROM t WHERE {} <= 0 ORDER BY 1",
        "SELECT count(DISTINCT {}) FILTER (WHERE {} > 0) FROM t",
        "SELECT id FROM t ORDER BY abs({}) LIMIT 3 OFFSET 1",
    ],
)
def test_a_call_in_every_clause(con: tqp.Connection, query: str) -> None:
    con.register_model("exact", lambda x: (x[:, 0] + 2 * x[:, 1]).double(), inputs=["a", "b"])
    random = np.random.default_rng(3)
    con.register(
        "t",
        {
            "id": np.arange(ROWS),
            "b": random.integers(-9, 9, ROWS) / 4,
            "a": random.integers(-9, 9, ROWS) / 4,
            "extra": np.arange(ROWS) % 3,
        },
    )
    found = con.sql(query.replace("{}", "exact(t.a, t.b)")).fetchall()
    assert found == con.sql(query.replace("{}", "(t.a + 2 * t.b)")).fetchall()
    assert found == con.sql(query.replace("{}", "ML_PREDICT('exact', t.a, t.b)")).fetchall()
