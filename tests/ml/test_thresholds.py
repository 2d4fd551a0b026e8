"""Comparisons of probabilities as comparisons of scores: the same rows pass, for every comparison and precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, SGDClassifier

import tqp

ROWS = 5_000
BOUNDS = (0.9, 0.5, 0.1, 1e-9, 0.999999, 0.0, 1.0, 1.5, -1.0, 0.30000001192092896)


def models() -> dict[str, object]:
    random = np.random.default_rng(0)
    features = random.normal(size=(400, 2))
    labels = features.sum(1) + random.normal(size=400) > 0
    return {
        "logistic": LogisticRegression().fit(features, labels),
        "named": LogisticRegression().fit(features, np.where(labels, "yes", "no")),
        "log_loss": SGDClassifier(loss="log_loss", random_state=0).fit(features, labels),
        "huber": SGDClassifier(loss="modified_huber", random_state=0).fit(features, labels),
        "several": LogisticRegression().fit(features, np.digitize(features[:, 0], [-1, 1])),
    }


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_same_rows_pass(name: str, dtype: torch.dtype) -> None:
    random = np.random.default_rng(1)
    scale = 10.0 ** random.integers(-3, 3, (ROWS, 1))
    features = random.normal(size=(ROWS, 2)) * scale
    answers = []
    for disabled in ((), ("compare_scores",)):
        with tqp.connect(threads=1, disabled_rules=disabled) as con:
            con.register("t", {"id": np.arange(ROWS), "a": features[:, 0], "b": features[:, 1]})
            con.register_model(
                "m", models()[name], inputs=["a", "b"], output=("proba", 1) if name == "several" else "proba"
            )
            con.models()[0].scorer.to(dtype).dtype = dtype
            found = []
            for comparison in (">", ">=", "<", "<=", "=", "<>"):
                for bound in BOUNDS:
                    query = f"SELECT count(*), sum(id) FROM t WHERE m(a, b) {comparison} {bound!r}"
                    found.append(con.sql(query).fetchall())
                sums = (f"sum(CASE WHEN {bound!r} {comparison} m(a, b) THEN id END)" for bound in BOUNDS)
                found.append(con.sql(f"SELECT {', '.join(sums)} FROM t").fetchall())
            answers.append(found)
            plan = con.explain("SELECT id FROM t WHERE m(a, b) > 0.9")
            assert ("0.9" not in plan) == (name != "several" and not disabled)
    assert answers[0] == answers[1]


def test_scores_just_around_the_bound() -> None:
    with tqp.connect(threads=1) as con:
        con.register_model("m", models()["logistic"], inputs=["a", "b"], output="proba")
        model = con.models()[0]
        for dtype, integer in ((torch.float32, torch.int32), (torch.float64, torch.int64)):
            model.scorer.dtype = dtype
            model._thresholds.clear()
            for value in (0.9, 0.123, 0.5, 0.99999):
                found = model.threshold(model.default_output, "greater", value)
                assert found is not None
                bound = torch.tensor([found[2]], dtype=dtype)
                steps = bound.view(integer) + torch.arange(-1000, 1000, dtype=integer)
                scores = steps.view(dtype)
                assert torch.equal(model.head(model.default_output)(scores[:, None]) > value, scores >= bound)


def test_a_probability_that_is_needed_anyway_is_compared_itself() -> None:
    with tqp.connect(threads=1) as con:
        con.register("t", {"a": np.arange(3.0), "b": np.arange(3.0)})
        con.register_model("m", models()["logistic"], inputs=["a", "b"], output="proba")
        assert "0.9" in con.explain("SELECT m(a, b) FROM t WHERE m(a, b) > 0.9")
        assert "0.9" not in con.explain("SELECT a FROM t WHERE m(a, b) > 0.9 AND m(a, b) < 0.99")
