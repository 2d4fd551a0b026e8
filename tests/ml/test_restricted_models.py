"""Trees pruned by what a query says of their inputs: fewer branches, equal answers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tqp
from tqp.core.models import InputRange
from tqp.planner.rules.models import restrict_models

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


LINEAR_QUERIES = {
    "SELECT m(a, plan, c) FROM t WHERE plan = 'free'": {"plan"},
    "SELECT m(a, 'basic', c) FROM t": {"plan"},
    "SELECT m(1.5, plan, c) FROM t": {"a"},
    "SELECT m(0.5, 'free', 3) FROM t": {"a", "plan", "c"},
    "SELECT m(a, plan, c) FROM t WHERE a = 0.25 AND plan IN ('free')": {"a", "plan"},
    "SELECT m(a, 'nobody has it', c) FROM t": set(),
    "SELECT m(a, plan, c) FROM t WHERE plan IN ('free', 'basic')": set(),
    "SELECT m(a, plan, c) FROM t": set(),
}


@pytest.mark.parametrize("dtype", ["str", "category"])
@pytest.mark.parametrize("kind", ["logistic", "forest"])
@pytest.mark.parametrize(("query", "constant"), LINEAR_QUERIES.items())
def test_constants_become_part_of_the_bias_of_linear_models(
    query: str, constant: set[str], kind: str, dtype: str
) -> None:
    random = np.random.default_rng(2)
    plans = np.array(["basic", "free", "premium"])[random.integers(0, 3, ROWS)]
    rows = pd.DataFrame(
        {"a": np.round(random.normal(size=ROWS), 2), "plan": plans, "c": random.integers(0, 9, ROWS)}
    )
    prepare = make_column_transformer(
        (StandardScaler(), ["a", "c"]), (OneHotEncoder(handle_unknown="ignore"), ["plan"])
    )
    last = (
        LogisticRegression() if kind == "logistic" else RandomForestClassifier(5, max_depth=3, random_state=0)
    )
    model = make_pipeline(prepare, last).fit(rows, rows.a + (rows.plan == "free") + 0.1 * rows.c > 1)
    found = []
    for disabled in ((), ("restrict_models",)):
        with tqp.connect(threads=1, disabled_rules=disabled) as con:
            con.register("t", rows.astype({"plan": dtype})).register_model("m", model, output="proba")
            found.append(np.sort([row[0] for row in con.sql(query).fetchall()]))
            is_smaller = "m_pruned" in con.explain(query)
            assert is_smaller == (bool(constant) and not disabled and kind == "logistic")
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)


def test_a_category_that_the_model_refuses_is_an_error_only_of_rows_that_are_scored() -> None:
    rows = pd.DataFrame({"size": np.arange(60) % 3, "a": np.arange(60) / 10})
    prepare = make_column_transformer((OneHotEncoder(), ["size"]), (StandardScaler(), ["a"]))
    model = make_pipeline(prepare, LogisticRegression()).fit(rows, rows.a + rows["size"] > 3)
    with tqp.connect(threads=1) as con:
        con.register("t", rows).register_model("m", model)
        assert con.sql("SELECT m(7, a) FROM t WHERE a > 100").fetchall() == []
        with pytest.raises(tqp.ExecutionError, match='the input "size" has a category'):
            con.sql("SELECT m(7, a) FROM t").fetchall()


@pytest.mark.parametrize("disabled", [(), ("restrict_models",)])
def test_errors_name_the_model_as_the_query_does(disabled: tuple[str, ...]) -> None:
    random = np.random.default_rng(3)
    rows = pd.DataFrame({"a": random.normal(size=ROWS), "b": random.normal(size=ROWS)})
    model = LogisticRegression().fit(rows, rows.a > rows.b)
    rows.loc[7, "b"] = None
    with tqp.connect(threads=1, disabled_rules=disabled) as con:
        con.register("t", rows).register_model("m", model)
        with pytest.raises(tqp.BindError, match=r'm\(\): the input "b" may be NULL'):
            con.sql("SELECT m(0.5, b) FROM t")


def test_threads_that_ask_at_once_get_the_same_smaller_model() -> None:
    random = np.random.default_rng(3)
    model = LogisticRegression().fit(random.normal(size=(100, 3)), np.arange(100) % 2)
    with tqp.connect(threads=1) as con, ThreadPoolExecutor(8) as pool:
        [m] = con.register_model("m", model, inputs=["a", "b", "c"]).models()
        for low in range(20):
            ranges = {0: InputRange(low, low, False)}
            assert len(set(pool.map(lambda _, ranges=ranges: m.restricted(ranges), range(8)))) == 1
        assert len(set(pool.map(lambda _: m.head(m.default_output), range(8)))) == 1
