"""`python -m tests.model_rules [--rows N]`: what the optimizer's rules for models save; prints the table of `docs/models.md`.

Each query runs with a rule off and on: medians of processor time on one thread, after a first run, answers compared. The
runs of both take turns, so that whatever else the machine does meets both.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Lasso, LogisticRegression
from torch import nn

import tqp

#: Float inputs of the models, x0 to x7.
INPUTS = [f"x{place}" for place in range(8)]
_ALL = ", ".join(INPUTS)
_RANDOM = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """`rules`: what is switched off together. `share`: of the rows of `t`, for what takes long (the text has those of 1 million)."""

    rules: tuple[str, ...]
    text: str
    sql: str
    share: float = 1.0


CASES = (
    Case(
        ("place_predictions",),
        "MLP, `sum(p) WHERE p > 0 AND b < 50`",
        f"SELECT sum(p) FROM (SELECT b, mlp({_ALL}) AS p FROM t) WHERE p > 0 AND b < 50",
    ),
    Case(
        ("place_predictions",),
        "MLP, 4 matches a row",
        f"SELECT sum(mlp({_ALL}) * weight) FROM t JOIN matches ON id = t_id",
    ),
    Case(
        ("predict_after_limit",),
        "MLP, `ORDER BY b, id LIMIT 100`",
        f"SELECT id, mlp({_ALL}) FROM t ORDER BY b, id LIMIT 100",
    ),
    Case(("predict_distinct",), "MLP on ranges of 5, 8 and 100", "SELECT sum(small(g, h, b)) FROM t"),
    Case(
        ("ignore_unread_inputs", "remove_joins"),
        "lasso, 2 of 8 weights, one input from a joined table",
        "SELECT sum(lasso(x0, x1, x2, x3, x4, x5, x6, z)) FROM t JOIN facts USING (key)",
    ),
    Case(
        ("compare_scores",),
        "logistic regression of 8 inputs, `p > 0.9`",
        f"SELECT count(*) FROM t WHERE logistic({_ALL}) > 0.9",
    ),
    Case(
        ("restrict_models",),
        "100 trees of depth 8, 3 of 8 inputs constant, 300,000 rows",
        "SELECT sum(forest(0.5, -1.0, 1.5, x3, x4, x5, x6, x7)) FROM t",
        share=0.3,
    ),
)


def tables(rows: int) -> dict[str, Mapping[str, Any]]:
    """`t`; `matches`, with four rows for each of its; and `facts`, with one row for each of its keys."""
    ids = np.arange(rows)
    floats = {name: _RANDOM.normal(size=rows).astype(np.float32) for name in INPUTS}
    groups = {"g": ids % 5, "h": ids // 5 % 8, "b": _RANDOM.integers(0, 100, rows)}
    return {
        "t": {"id": ids, "key": _RANDOM.permutation(rows), **groups, **floats},
        "matches": {"t_id": np.repeat(ids, 4), "weight": _RANDOM.random(4 * rows)},
        "facts": {"key": ids, "z": _RANDOM.normal(size=rows)},
    }


def models() -> dict[str, tuple[object, dict[str, Any]]]:
    """By name, each with what `register_model` is to be told."""
    torch.manual_seed(0)
    features = _RANDOM.normal(size=(5_000, len(INPUTS)))
    target = 9 * features[:, 0] - 5 * features[:, 1] + _RANDOM.normal(size=5_000)

    def network(inputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    logistic = LogisticRegression().fit(features, target + 5 * _RANDOM.normal(size=5_000) > 0)
    forest = RandomForestRegressor(100, max_depth=8, random_state=0).fit(features, np.sin(features).sum(1))
    return {
        "mlp": (network(len(INPUTS)), {"inputs": INPUTS}),
        "small": (network(3), {"inputs": ["g", "h", "b"]}),
        "lasso": (Lasso(alpha=0.5).fit(features, target), {"inputs": INPUTS}),
        "logistic": (logistic, {"inputs": INPUTS, "output": "proba"}),
        "forest": (forest, {"inputs": INPUTS}),
    }


def main() -> int:
    """Prints the table; exit status 1 if an answer depends on a rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the table (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="of each query (default: %(default)s)")
    parser.add_argument("--only", default="", help="rules whose name contains this")
    options = parser.parse_args()
    torch.set_num_threads(1)
    known, same = models(), True
    print("| rule | example | off | on |\n|---|---|---:|---:|")
    for case in CASES:
        if options.only not in " ".join(case.rules):
            continue
        made = tables(max(1, int(options.rows * case.share)))
        connections = [tqp.connect(threads=1, disabled_rules=disabled) for disabled in (case.rules, ())]
        for connection in connections:
            for name, table in made.items():
                connection.register(name, table)
            for name, (model, keywords) in known.items():
                if f"{name}(" in case.sql:
                    connection.register_model(name, model, **keywords)
        (off, without), (on, found) = _measured(connections, case.sql, options.runs)
        if not np.allclose(np.array(without, float), np.array(found, float), rtol=1e-4):
            same = False
            print(f"{case.rules}: {without} without, {found} with", file=sys.stderr)
        print(
            f"| {', '.join(f'`{rule}`' for rule in case.rules)} | {case.text} | {off:,.1f} ms | {on:,.1f} ms |",
            flush=True,
        )
        for connection in connections:
            connection.close()
    return 0 if same else 1


def _measured(
    connections: Sequence[tqp.Connection], sql: str, runs: int
) -> list[tuple[float, list[tuple[Any, ...]]]]:
    """The median milliseconds of each connection, and its answer."""
    answers = [connection.sql(sql).fetchall() for connection in connections]
    times: list[list[float]] = [[] for _ in connections]
    for _ in range(runs):
        for connection, measured in zip(connections, times, strict=True):
            start = time.process_time()
            connection.sql(sql).fetchall()
            measured.append((time.process_time() - start) * 1000)
    return [(statistics.median(measured), answer) for measured, answer in zip(times, answers, strict=True)]


if __name__ == "__main__":
    sys.exit(main())
