"""Rules about predictions: how many rows a model sees, and that answers do not depend on the rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor

import tqp

ROWS = 1_000


class Counting:
    """A model, as a function of features, that counts the rows that it scores."""

    def __init__(self) -> None:
        self.calls: list[int] = []  # workers append, as adding up is not atomic

    def __call__(self, features: Tensor) -> Tensor:
        self.calls.append(len(features))
        return features[:, 0] + 2 * features[:, 1]


def tables() -> dict[str, pa.Table]:
    random = np.random.default_rng(0)
    ids = np.arange(ROWS)
    return {
        "t": pa.table(
            {
                "id": ids,
                "a": random.integers(0, 400, ROWS) / 4,
                "b": ids % 100,
                "c": random.permutation(ROWS),
                "n": pa.array([None if i % 10 else i for i in range(ROWS)]),
                "s": pa.array([("x", "y", None)[i % 3] for i in range(ROWS)]),
            }
        ),
        "few": pa.table({"id": ids[: ROWS // 10], "k": ids[: ROWS // 10] % 7}),
        "many": pa.table({"t_id": random.integers(0, ROWS, 5 * ROWS), "v": random.integers(0, 9, 5 * ROWS)}),
    }


class Engine:
    """Connections with each of some rules off, and one with all rules on; and the model that counts."""

    def __init__(self, batch_rows: int, rules: tuple[str, ...]) -> None:
        self.model = Counting()
        self.connections: dict[str, tqp.Connection] = {}
        for rule in ("", *rules):
            connection = tqp.connect(threads=2, batch_rows=batch_rows, disabled_rules=[rule] if rule else [])
            for name, table in tables().items():
                connection.register(name, table)
            connection.register_model("m", self.model.__call__, inputs=["a", "b"])
            self.connections[rule] = connection

    def rows(self, query: str, without: str = "") -> tuple[list[tuple[Any, ...]], int]:
        """The answer, sorted, and how many rows were scored for it."""
        self.model.calls.clear()
        found = self.connections[without].sql(query).fetchall()
        return sorted(found, key=str), sum(self.model.calls)

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()


RULES = ("evaluate_predictions_once", "predict_after_limit", "predict_before_join")


@pytest.fixture(scope="module", params=[7, 1_000_000], ids="batch_rows={}".format)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    made = Engine(request.param, RULES)
    yield made
    made.close()


def check(engine: Engine, query: str, rows: int, rule: str, rows_without: int | None = None) -> None:
    """The number of rows scored, with the rule and without; and answers as those of plain arithmetic."""
    wanted, _ = engine.rows(query.replace("m(a, b)", "(a + 2 * b)").replace("m(a, n)", "(a + 2 * n)"))
    found, seen = engine.rows(query)
    assert found == wanted
    assert seen == rows
    if rule:
        found, seen = engine.rows(query, rule)
        assert found == wanted
        assert rows_without is None or seen == rows_without


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT m(a, b) FROM t WHERE b < 10", 100),
        ("SELECT sum(m(a, b)) FROM t WHERE b < 90", 900),
        ("SELECT count(*) FROM t WHERE b < 10 AND m(a, b) > 20", 100),
        ("SELECT count(*) FROM t WHERE m(a, b) > 20 AND b < 10", 100),
        ("SELECT sum(CASE WHEN b >= 90 THEN m(a, b) END) FROM t", 100),
        ("SELECT sum(CASE WHEN b < 90 THEN b ELSE m(a, b) END) FROM t", 100),
        ("SELECT count(*) FROM t WHERE b < 50 OR m(a, b) > 200", 500),
        ("SELECT sum(coalesce(n, CAST(m(a, b) AS BIGINT))) FROM t", 900),
        ("SELECT sum(m(a, n)) FROM t WHERE n IS NOT NULL", 100),
        ("SELECT count(*) FROM t WHERE n IS NOT NULL AND m(a, n) > 100", 100),
        ("SELECT sum(CASE WHEN n > 500 THEN m(a, n) END) FROM t", 49),
        ("SELECT sum(m(a, b)) FROM t WHERE id IN (SELECT id FROM few WHERE k = 3)", 14),
        ("SELECT sum(m(a, b)) FROM t JOIN few USING (id) WHERE k = 3", 14),
        ("SELECT sum(m(a, b)) FROM t WHERE b < 0", 0),
    ],
)
def test_predictions_of_rows_that_are_left(engine: Engine, query: str, rows: int) -> None:
    check(engine, query, rows, "")


def test_predictions_under_a_limit() -> None:
    engine = Engine(1_000_000, ())
    assert engine.rows("SELECT m(a, b) FROM t LIMIT 5")[1] == 5
    assert engine.rows("SELECT id, m(a, b) FROM t ORDER BY m(a, b) LIMIT 5")[1] == ROWS
    engine.close()


@pytest.mark.parametrize(
    ("query", "rows", "rows_without"),
    [
        ("SELECT m(a, b) AS p FROM t WHERE p > 20 AND b < 10", 100, None),
        ("SELECT m(a, b) AS p FROM t WHERE p > 20 AND b < 10 ORDER BY m(a, b) + 1", 100, None),
        ("SELECT count(*) FROM t WHERE m(a, b) BETWEEN 50 AND 100 AND b < 50", 500, None),
        ("SELECT CASE WHEN m(a, b) > 150 THEN 'h' WHEN m(a, b) > 50 THEN 'm' END, count(*) FROM t GROUP BY 1", ROWS, None),
        ("SELECT sum(CASE WHEN b > 50 THEN m(a, b) END), sum(m(a, b)) FROM t", ROWS, 1490),
        ("SELECT sum(m(a, b)) FROM t WHERE b < 50 OR m(a, b) > 200", ROWS, None),
        ("SELECT b % 3, sum(m(a, b)) FROM t WHERE m(a, b) > 100 GROUP BY 1", ROWS, None),
        ("SELECT sum(p + q) FROM (SELECT m(a, b) AS p, m(a, b) + 1 AS q FROM t) WHERE p > 100", ROWS, None),
        ("SELECT id FROM (SELECT id, m(a, b) AS p FROM t ORDER BY p LIMIT 10) WHERE p > 1", ROWS, ROWS + 10),
        ("SELECT sum(m(a, b)) FROM t JOIN few USING (id) WHERE m(a, b) > 50", 100, None),
        ("SELECT sum(m(a, b)), count(k) FROM t LEFT JOIN few USING (id) WHERE m(a, b) > 50", ROWS, None),
        ("SELECT sum(m(a, b)) FROM t JOIN few ON few.id = CAST(m(a, b) AS BIGINT)", ROWS, None),
        ("SELECT count(*) FROM t WHERE m(a, b) > 50 AND EXISTS (SELECT 1 FROM few WHERE few.id = t.id AND k > m(a, b) / 10)", 100, None),
        ("SELECT m(a, b) FROM t WHERE m(a, b) > 50 UNION ALL SELECT m(a, b) FROM t WHERE m(a, b) < 50", 2 * ROWS, None),
        ("WITH p AS (SELECT id, m(a, b) AS v FROM t WHERE m(a, b) > 50) SELECT max(v), count(*) FROM p WHERE v < 200", ROWS, None),
    ],
)  # fmt: skip
def test_evaluate_predictions_once(engine: Engine, query: str, rows: int, rows_without: int | None) -> None:
    check(engine, query, rows, "evaluate_predictions_once", rows_without)


@pytest.mark.parametrize(
    ("query", "rows", "rows_without"),
    [
        ("SELECT id, m(a, b) FROM t ORDER BY c LIMIT 5", 5, ROWS),
        ("SELECT m(a, b) + id FROM t WHERE b < 50 ORDER BY c DESC, id LIMIT 5 OFFSET 2", 5, 500),
        ("SELECT * FROM (SELECT c, m(a, b) AS p FROM t ORDER BY c LIMIT 5) WHERE p > 100", 5, 5),
        ("SELECT id, m(a, b), a FROM t WHERE m(a, b) > 50 ORDER BY c LIMIT 5", ROWS, None),
        ("SELECT id, m(a, b) FROM t ORDER BY c + m(a, b) LIMIT 5", ROWS, ROWS),
    ],
)
def test_predict_after_limit(engine: Engine, query: str, rows: int, rows_without: int | None) -> None:
    check(engine, query, rows, "predict_after_limit", rows_without)


@pytest.mark.parametrize(
    ("query", "rows", "rows_without"),
    [
        ("SELECT sum(m(a, b) * v) FROM t JOIN many ON id = t_id", ROWS, 5 * ROWS),
        ("SELECT b, sum(m(a, b)), max(v) FROM many JOIN t ON id = t_id GROUP BY b", ROWS, 5 * ROWS),
        ("SELECT sum(m(a, b) * v) FROM t JOIN many ON id = t_id WHERE v = 3 AND t_id < 100", None, None),
        ("SELECT sum(m(a, b) * v) FROM t LEFT JOIN many ON id = t_id", ROWS, None),
        ("SELECT sum(m(a, b)) FROM t JOIN few USING (id) JOIN many ON id = t_id", 100, None),
        ("SELECT t.id, v FROM t JOIN many ON id = t_id AND m(a, b) / 10 < v", ROWS, 5 * ROWS),
        ("SELECT count(*) FROM t JOIN many ON id = t_id WHERE m(a, b) + v > 50 AND m(a, b) + v < 100", ROWS, None),
        ("SELECT max(m(a, v)) FROM t JOIN many ON id = t_id", 5 * ROWS, 5 * ROWS),
        ("SELECT v, m(a, b) FROM t JOIN many ON id = t_id ORDER BY v, m(a, b) LIMIT 10", ROWS, 5 * ROWS),
        ("SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM many WHERE id = t_id AND m(a, b) < 10 * v)", ROWS, None),
        ("SELECT count(p) FROM many LEFT JOIN (SELECT id, m(a, b) AS p FROM t) ON id = t_id", ROWS, None),
        ("SELECT sum(p) FROM (SELECT id, b, m(a, b) AS p FROM t) q JOIN many ON id = t_id JOIN few USING (id)", 100, None),
    ],
)  # fmt: skip
def test_predict_before_join(engine: Engine, query: str, rows: int | None, rows_without: int | None) -> None:
    plain = query.replace("m(a, b)", "(a + 2 * b)").replace("m(a, v)", "(a + 2 * v)")
    wanted, _ = engine.rows(plain)
    found, seen = engine.rows(query)
    assert found == wanted
    assert rows is None or seen == rows
    found, seen = engine.rows(query, "predict_before_join")
    assert found == wanted
    assert rows_without is None or seen == rows_without


def test_two_models_in_a_filter_are_scored_one_after_the_other() -> None:
    engine = Engine(1_000_000, ("evaluate_predictions_once",))
    for connection in engine.connections.values():
        connection.register_model("other", engine.model.__call__, inputs=["a", "b"])
    query = "SELECT m(a, b), other(a, b) FROM t WHERE m(a, b) > 50 AND other(a, b) > 51 AND b < 50"
    found, seen = engine.rows(query)
    assert seen == 500 + engine.rows("SELECT id FROM t WHERE a + 2 * b > 50 AND b < 50")[0].__len__()
    without, more = engine.rows(query, "evaluate_predictions_once")
    assert without == found and more > seen
    engine.close()


def test_outputs_of_one_model_share_its_scores() -> None:
    from sklearn.linear_model import LogisticRegression

    features = np.random.default_rng(0).normal(size=(200, 2))
    counts = [0]

    def count(module: torch.nn.Module, arguments: tuple[Tensor]) -> None:
        counts[0] += len(arguments[0])

    with tqp.connect(threads=1) as con:
        con.register("t", tables()["t"])
        model = LogisticRegression().fit(features * 100, features.sum(1) > 0)
        con.register_model("is_large", model, inputs=["a", "b"])
        con.models()[0].scorer.body.register_forward_pre_hook(count)
        query = "SELECT is_large(a, b), ML_PREDICT_PROBA('is_large', a, b) FROM t WHERE ML_PREDICT_PROBA('is_large', a, b) > 0.5"
        rows = con.sql(query).fetchall()
        assert counts == [ROWS] and all(label for label, _ in rows)
        assert "Project" in con.explain(query) and "is_large_proba" in con.explain(query)
