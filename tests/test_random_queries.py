"""A bounded run of random queries against DuckDB; `make random` runs as many as one likes."""

from __future__ import annotations

import pytest

from tests.random_run import run


@pytest.mark.parametrize("seed", range(1, 7))
def test_random_queries(seed: int) -> None:
    outcome = run(seed, count=60)
    assert not outcome.mismatches, "\n\n".join(outcome.mismatches)
    assert outcome.outcomes["unsupported"] <= 0.03 * outcome.total, outcome.unsupported
    assert outcome.outcomes["equal"] >= 0.8 * outcome.total, outcome.outcomes
