"""Trees pruned by what a query says of their inputs: fewer branches, equal answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier, RandomForestClassifier

import tqp
from tqp.planner.rules import restrict_models

ROWS = 3_000

QUERIES = [
    "SELECT m(a, b, c) FROM t WHERE a < 0.1",
    "SELECT m(a, b, c) FROM t WHERE a < 0.1 AND m(a, b, c) <> 0.5",
    "SELECT m(a, b, c) FROM t WHERE 0.1 > a AND a >= -0.2 AND c IN (1, 2)",
    "SELECT m(a, b, 3) FROM t WHERE a = 0.25",
    "SELECT m(0.5, -1.5, c) FROM t",
    "SELECT sum(m(a, b, c)), sum(CASE WHEN a < 0 THEN 0 ELSE 1 END) FROM t WHERE b > 1.0",
    "SELECT m(a, b, c) FROM (SELECT * FROM t WHERE b < -0.5 ORDER BY id LIMIT 100) WHERE a > 0.5",
    "SELECT t.id, m(t.a, u.b, t.c) FROM t JOIN t u ON t.id = u.id + 1 WHERE t.a < -0.3 AND u.b > 0.2",
    "SELECT t.id, m(u.a, t.b, t.c) FROM t LEFT JOIN (SELECT * FROM t WHERE a < 0 AND id < 100) u ON t.id = u.id WHERE u.a IS NOT NULL AND t.b < 0.5",
    "SELECT max(m(a, b, c)) FROM t WHERE a < -100",
    "SELECT m(a, b, c) FROM t WHERE a < 0.0 UNION ALL SELECT m(a, b, c) FROM t WHERE a > 0.0",
]  # fmt: skip


def models() -> dict[str, object]:
    random = np.random.default_rng(0)
    features = np.stack([random.normal(size=500), random.normal(size=500), random.integers(0, 9, 500)], 1)
    target = features[:, 0] * features[:, 1] + np.sin(features[:, 2])
    holes = features.copy()
    holes[::7, 1] = np.nan
    return {
        "forest": RandomForestClassifier(20, max_depth=6, random_state=0).fit(features, target > 0),
        "boosted": GradientBoostingRegressor(n_estimators=20, max_depth=4, random_state=0).fit(
            features, target
        ),
        "missing": HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(holes, target > 0),
    }


@pytest.fixture(scope="module", params=models())
def engines(request: pytest.FixtureRequest) -> Iterator[list[tqp.Connection]]:
    random = np.random.default_rng(1)
    b = random.normal(size=ROWS)
    if request.param == "missing":
        b[::5] = np.nan
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "a": np.round(random.normal(size=ROWS), 2),
            "b": b,
            "c": random.integers(0, 9, ROWS),
        }
    )
    made = []
    for disabled in ((), ("restrict_models",)):
        connection = tqp.connect(threads=1, disabled_rules=disabled)
        connection.register("t", table)
        connection.register_model("m", models()[request.param], inputs=["a", "b", "c"])
        made.append(connection)
    yield made
    for connection in made:
        connection.close()


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restrict_models, "_WORTH_PRUNING", 0.0)


@pytest.mark.parametrize("query", QUERIES)
def test_answers_do_not_depend_on_the_rule(engines: list[tqp.Connection], query: str) -> None:
    found, wanted = (sorted(con.sql(query).fetchall(), key=str) for con in engines)
    assert len(found) == len(wanted)
    for row, expected in zip(found, wanted, strict=True):  # sums of trees may be rounded in another order
        assert row == expected or row == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_smaller_models_show_in_plans(engines: list[tqp.Connection]) -> None:
    query = "SELECT m(a, b, 3) FROM t WHERE a < -0.5 AND b < -0.5"
    assert "m_pruned(" in engines[0].explain(query)
    assert "m_pruned" not in engines[1].explain(query)
    assert "m_pruned" not in engines[0].explain("SELECT m(a, b, c) FROM t")


def test_equal_calls_stay_equal(engines: list[tqp.Connection]) -> None:
    plan = engines[0].explain("SELECT m(a, b, 3) FROM t WHERE a < -0.5 AND b < -0.5 AND m(a, b, 3) <> 1")
    assert plan.split("Physical plan")[1].count("m_pruned(") == 1
