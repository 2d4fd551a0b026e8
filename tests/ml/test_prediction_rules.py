"""Rules about predictions: how many rows a model sees, and that answers do not depend on the rules."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
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


RULES = ("place_predictions", "predict_after_limit")


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
        ("SELECT m(a, b) AS p, m(a, b) AS q FROM t WHERE m(a, b) > 50 ORDER BY m(a, b) DESC, id LIMIT 3", ROWS, None),
        ("SELECT * FROM (SELECT id, CASE WHEN b >= 90 THEN m(a, b) END AS p FROM t) WHERE p > 0", 200, 200),
        ("SELECT sum(m(a, b)) FILTER (WHERE b >= 90) FROM t WHERE b < 80 OR m(a, b) > 0", 300, 300),
    ],
)  # fmt: skip
def test_place_predictions_once(engine: Engine, query: str, rows: int, rows_without: int | None) -> None:
    check(engine, query, rows, "place_predictions", rows_without)


@pytest.mark.parametrize(
    ("query", "rows", "rows_without"),
    [
        ("SELECT id, m(a, b) FROM t ORDER BY c LIMIT 5", 5, ROWS),
        ("SELECT m(a, b) + id FROM t WHERE b < 50 ORDER BY c DESC, id LIMIT 5 OFFSET 2", 5, 500),
        ("SELECT * FROM (SELECT c, m(a, b) AS p FROM t ORDER BY c LIMIT 5) WHERE p > 100", 5, 5),
        ("SELECT id, m(a, b), a FROM t WHERE m(a, b) > 50 ORDER BY c LIMIT 5", ROWS, None),
        ("SELECT id, m(a, b) FROM t ORDER BY c + m(a, b) LIMIT 5", ROWS, ROWS),
        ("SELECT coalesce(b, 0) AS same, m(a, b) FROM t ORDER BY c LIMIT 5", 5, ROWS),
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
def test_place_predictions_before_a_join(
    engine: Engine, query: str, rows: int | None, rows_without: int | None
) -> None:
    plain = query.replace("m(a, b)", "(a + 2 * b)").replace("m(a, v)", "(a + 2 * v)")
    wanted, _ = engine.rows(plain)
    found, seen = engine.rows(query)
    assert found == wanted
    assert rows is None or seen == rows
    found, seen = engine.rows(query, "place_predictions")
    assert found == wanted
    assert rows_without is None or seen == rows_without


@pytest.mark.parametrize(
    "query",
    [
        "SELECT max(m(a, n) + v) FROM t JOIN many ON n = t_id",
        "SELECT max(m(a, n) + v) FROM t JOIN many ON n = t_id WHERE m(a, n) > 50",
        "SELECT max(m(a, coalesce(n, 0)) + v) FROM t JOIN many ON n = t_id WHERE m(a, coalesce(n, 0)) > 50",
        "SELECT max(m(a, coalesce(n, 0)) + v) FROM t JOIN many ON n = t_id AND m(a, coalesce(n, 0)) > v",
        "SELECT * FROM (SELECT id, CASE WHEN n > 500 THEN m(a, n) END AS p FROM t) WHERE p > 550",
    ],
)
def test_a_null_that_the_query_leaves_out_is_not_refused(engine: Engine, query: str) -> None:
    wanted, _ = engine.rows(query.replace("m(a, n)", "(a + 2 * n)").replace("m(a, c", "(a + 2 * c"))
    for rule in ("", *RULES):
        assert engine.rows(query, rule)[0] == wanted


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(imputed(a)), count(*) FROM many LEFT JOIN t ON id = t_id AND imputed(a) > v + 40",
        "SELECT sum(imputed(a)) FROM many LEFT JOIN (SELECT id, a, imputed(a) AS p FROM t WHERE imputed(a) > 50) ON id = t_id",
        "SELECT a, imputed(a), sum(imputed(a)) FROM t LEFT JOIN few USING (id) GROUP BY a HAVING imputed(a) > 20",
        "SELECT sum(imputed(a) + k) FROM (SELECT * FROM many JOIN few ON id = t_id ORDER BY v LIMIT 700) JOIN t ON t.id = t_id",
    ],
)  # fmt: skip
def test_a_column_of_one_side_is_not_the_prediction_of_padded_rows(query: str) -> None:
    """The model has a value for NULL, and the column of the side is NULL there."""
    answers = []
    for disabled in ((), ("place_predictions",)):
        with tqp.connect(threads=1, disabled_rules=disabled) as con:
            for name, table in tables().items():
                con.register(name, table)
            features = np.array([[0.0], [1.0], [2.0]])
            model = make_pipeline(SimpleImputer(strategy="constant", fill_value=7.0), LinearRegression())
            con.register_model("imputed", model.fit(features, [1.0, 3.0, 5.0]), inputs=["a"])
            answers.append(sorted(con.sql(query).fetchall()))
    assert np.allclose(answers[0], answers[1])


def test_two_models_in_a_filter_are_scored_one_after_the_other() -> None:
    engine = Engine(1_000_000, ("place_predictions",))
    for connection in engine.connections.values():
        connection.register_model("other", engine.model.__call__, inputs=["a", "b"])
    query = "SELECT m(a, b), other(a, b) FROM t WHERE m(a, b) > 50 AND other(a, b) > 51 AND b < 50"
    found, seen = engine.rows(query)
    assert seen == 500 + engine.rows("SELECT id FROM t WHERE a + 2 * b > 50 AND b < 50")[0].__len__()
    without, more = engine.rows(query, "place_predictions")
    assert without == found and more > seen
    engine.close()


def test_planning_is_linear_in_the_number_of_models() -> None:
    def calls(number: int) -> int:
        """How many functions run while a query with so many models is compiled."""
        count = 0

        def on_event(frame: object, event: str, argument: object) -> None:
            nonlocal count
            count += event == "call"

        with tqp.connect(threads=1) as connection:
            connection.register("t", tables()["t"])
            for i in range(number):
                connection.register_model(f"m{i}", Counting(), inputs=["a", "b"])
            query = f"SELECT {', '.join(f'm{i}(a, b)' for i in range(number))} FROM t"
            connection.compile(query)  # encodes the columns
            sys.setprofile(on_event)
            try:
                connection.compile(query + " ")
            finally:
                sys.setprofile(None)
        return count

    assert calls(40) < 2.2 * calls(20)


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


def test_inputs_that_are_not_read_need_no_column_and_no_join() -> None:
    from sklearn.linear_model import Lasso

    random = np.random.default_rng(0)
    features = random.normal(size=(300, 3))
    model = Lasso(alpha=0.5).fit(features, 9 * features[:, 0])
    assert list(model.coef_ != 0) == [True, False, False]
    random.shuffle(values := np.arange(ROWS))
    facts = {"key": values, "x": random.normal(size=ROWS), "y": np.where(values % 7, values, np.inf)}
    dimension = {"key": np.arange(ROWS), "z": random.normal(size=ROWS)}
    answers = []
    for disabled in ((), ("ignore_unread_inputs",), ("remove_joins",)):
        with tqp.connect(threads=1, disabled_rules=disabled) as con:
            con.register("facts", facts)
            con.register("dimension", pa.table(dimension | {"w": pa.array([None, "a"] * (ROWS // 2))}))
            con.register_model("m", model, inputs=["x", "y", "z"])
            for join in ("JOIN", "LEFT JOIN"):
                query = f"SELECT key, m(x, y, z) FROM facts {join} dimension USING (key) ORDER BY key"
                answers.append(con.sql(query).fetchall())
                plan = con.explain(query)
                assert ("dimension" in plan) == bool(disabled)
                scanned = plan.split("Scan facts (")[1].split(")")[0].split(", ")
                assert ("y" in scanned) == (disabled == ("ignore_unread_inputs",))
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize(
    ("query", "is_removed"),
    [
        ("SELECT a.v FROM a JOIN b ON a.k = b.k", True),
        ("SELECT a.v FROM b JOIN a ON a.k = b.k", True),
        ("SELECT a.v, a.k FROM a LEFT JOIN b ON a.k = b.k", True),
        ("SELECT a.v FROM a LEFT JOIN b ON a.k = b.k AND b.v > a.v", True),
        ("SELECT count(*) FROM a JOIN b ON a.k = b.k JOIN c ON c.k = a.k", False),
        ("SELECT max(a.v) FROM (SELECT a.*, b.v AS w FROM a JOIN b ON a.k = b.k) a JOIN c ON c.k = a.v", None),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k WHERE b.v > 1", False),
        ("SELECT a.v FROM a JOIN b ON a.n = b.k", False),  # NULL finds nothing
        ("SELECT a.v FROM a LEFT JOIN b ON a.n = b.k", True),
        ("SELECT a.v FROM a JOIN c ON a.k = c.k", False),  # repeats rows
        ("SELECT a.v FROM a LEFT JOIN c ON a.k = c.k", False),
        ("SELECT a.v FROM a JOIN gaps ON a.k = gaps.k", False),
        ("SELECT a.v FROM a JOIN b ON a.far = b.k", False),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k AND a.v < b.v", False),
        ("SELECT a.v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", False),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k UNION ALL SELECT a.k FROM a LEFT JOIN b ON a.k = b.k", True),
        ("SELECT a.v FROM a FULL JOIN b ON a.k = b.k", False),
    ],
)  # fmt: skip
def test_remove_joins(query: str, is_removed: bool | None) -> None:
    numbers = np.arange(100)
    tables = {
        "a": pa.table({"k": numbers % 50, "v": numbers, "n": [None, *range(99)], "far": numbers * 2}),
        "b": pa.table({"k": numbers[::-1].copy(), "v": numbers % 7}),
        "c": pa.table({"k": numbers % 60, "v": numbers}),
        "gaps": pa.table({"k": numbers[numbers != 7], "v": numbers[:99]}),
    }
    answers = []
    for disabled in ((), ("remove_joins",)):
        with tqp.connect(threads=1, disabled_rules=disabled) as con:
            for name, table in tables.items():
                con.register(name, table)
            answers.append(sorted(con.sql(query).fetchall(), key=str))
            if is_removed is not None:
                assert ("Join" not in con.explain(query)) == (is_removed and not disabled)
    assert answers[0] == answers[1]


def test_plans_do_not_depend_on_hashes() -> None:
    """Those of models are different for every one that is registered."""
    random = np.random.default_rng(0)
    model = LogisticRegression().fit(random.normal(size=(50, 2)), np.arange(50) % 2)
    query = "SELECT ml_predict('s', a, b), ml_predict_proba('s', a, b) FROM t WHERE s(a, b) > 0.1"
    plans, kept = set(), []
    with tqp.connect(threads=1) as con:
        con.register("t", tables()["t"])
        for _ in range(8):
            kept += con.register_model("s", model, inputs=["a", "b"], output="score").models()
            plans.add(con.explain(query) + con.compile(query).code)
    assert len(plans) == 1
