"""The cases of `tqp bench predict`: tables, trained models, and each query in SQL and in pandas.

Every query filters, joins, makes features, scores them and aggregates. Data and models come from fixed seeds: each engine's
process makes its own, and they are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

_PLANS = ("basic", "family", "free", "premium", "student")
_CHANNELS = ("app", "branch", "partner", "phone", "web")
_TRAINING_ROWS = 20_000

#: The columns of a joined row that are features as they are; `per_head` and `density` are made on the way.
_NUMBERS = ("age", "income", "balance", "tenure", "visits", "calls", "household")
NUMERIC_FEATURES = (*_NUMBERS, "per_head", "density")
TEXT_FEATURES = ("plan", "channel")

Threads = int


@dataclass(frozen=True, slots=True)
class Case:
    """A model and the query that scores with it. `features`: the model's inputs, in order."""

    name: str
    model: str
    features: tuple[str, ...]
    train: Callable[[Any, Any, Threads], Any]

    @property
    def sql(self) -> str:
        """The query; `{model}` is called on columns of both tables and on an expression."""
        inputs = ", ".join(_SQL.get(name, f"c.{name}") for name in self.features)
        return (
            f"SELECT r.name, count(*) AS n, avg({self.model}({inputs})) AS p\n"
            "FROM customers c JOIN regions r ON c.region = r.region\n"
            "WHERE c.active AND c.age >= 25\n"
            "GROUP BY r.name ORDER BY r.name"
        )


_SQL = {"per_head": "c.income / c.household", "density": "r.density"}


def tables(rows: int) -> dict[str, pa.Table]:
    """`customers` of `rows` rows and `regions` of 50."""
    random = np.random.default_rng(4)
    household = random.integers(1, 7, rows)
    customers = {
        "id": np.arange(rows),
        "region": random.integers(0, 50, rows),
        "active": random.random(rows) < 0.7,
        "age": random.integers(18, 90, rows),
        "income": np.round(random.lognormal(10, 0.6, rows), 2),
        "balance": np.round(random.normal(2_000, 4_000, rows), 2),
        "tenure": random.integers(0, 240, rows),
        "visits": random.poisson(3, rows),
        "calls": random.poisson(1, rows),
        "household": household,
        "plan": pa.DictionaryArray.from_arrays(
            pa.array(random.integers(0, len(_PLANS), rows), pa.int8()), pa.array(_PLANS)
        ).cast(pa.string()),
        "channel": pa.DictionaryArray.from_arrays(
            pa.array(random.integers(0, len(_CHANNELS), rows), pa.int8()), pa.array(_CHANNELS)
        ).cast(pa.string()),
    }
    regions = {
        "region": np.arange(50),
        "name": [f"region {number:02}" for number in range(50)],
        "density": np.round(random.lognormal(4, 1, 50), 1),
    }
    return {"customers": pa.table(customers), "regions": pa.table(regions)}


def joined(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What the query's FROM and WHERE give, in pandas, with the features that it makes."""
    customers = frames["customers"]
    kept = customers[customers["active"] & (customers["age"] >= 25)]
    rows = kept.merge(frames["regions"], on="region")
    rows["per_head"] = rows["income"] / rows["household"]
    return rows


def in_pandas(case: Case, model: Any, frames: Mapping[str, pd.DataFrame]) -> pa.Table:
    """The case's query by pandas and the original model."""
    rows = joined(frames)
    rows["p"] = model.predict_proba(rows[list(case.features)])[:, 1]
    answer = rows.groupby("name")["p"].agg(["count", "mean"]).reset_index()
    return pa.table({"name": answer["name"], "n": answer["count"], "p": answer["mean"]})


def train(case: Case, threads: Threads) -> Any:
    """The case's model, trained on rows like those of the tables."""
    frames = {name: table.to_pandas() for name, table in tables(_TRAINING_ROWS).items()}
    rows = joined(frames)
    score = (
        0.03 * (rows["age"] - 50)
        - 0.00002 * rows["per_head"]
        + 0.4 * rows["calls"]
        + 0.8 * (rows["plan"] == "free")
        - 0.01 * rows["tenure"]
    )
    target = (score + np.random.default_rng(5).logistic(size=len(rows)) > 0).astype(int)
    return case.train(rows[list(case.features)], target, threads)


def _logistic(features: Any, target: Any, threads: Threads) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    prepare = ColumnTransformer(
        [
            ("numbers", StandardScaler(), list(NUMERIC_FEATURES)),
            ("texts", OneHotEncoder(handle_unknown="ignore"), list(TEXT_FEATURES)),
        ]
    )
    return make_pipeline(prepare, LogisticRegression(max_iter=500)).fit(features, target)


def _perceptron(features: Any, target: Any, threads: Threads) -> Any:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPClassifier(hidden_layer_sizes=(64, 32), max_iter=20, random_state=0, early_stopping=True)
    return make_pipeline(StandardScaler(), network).fit(features, target)


def _forest(features: Any, target: Any, threads: Threads) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(100, max_depth=8, random_state=0, n_jobs=threads)
    return forest.fit(features, target)


def _boosting(features: Any, target: Any, threads: Threads) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=200, random_state=0, n_jobs=threads, deterministic=True, verbose=-1
    ).fit(features, target)


CASES = (
    Case("logistic pipeline", "churn_logistic", (*NUMERIC_FEATURES, *TEXT_FEATURES), _logistic),
    Case("MLP, 64 and 32", "churn_perceptron", NUMERIC_FEATURES, _perceptron),
    Case("random forest, 100 trees of depth 8", "churn_forest", NUMERIC_FEATURES, _forest),
    Case("LightGBM, 200 trees", "churn_boosting", NUMERIC_FEATURES, _boosting),
)
