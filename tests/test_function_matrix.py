"""A sample of `python -m tests.function_matrix`: functions that have differed from DuckDB at the ends of their types."""

from __future__ import annotations

import pytest

from tests.function_cases import Case, cases
from tests.function_matrix import run

_SAMPLE = (
    "lcm: lcm(BIGINT, BIGINT)",
    "cosh: cosh(DOUBLE)",
    "right: right(VARCHAR, BIGINT)",
    "<=: DATE <= TIMESTAMP",
)


@pytest.mark.parametrize("case", [each for each in cases() if str(each) in _SAMPLE], ids=str)
def test_edges_agree_with_duckdb(case: Case) -> None:
    report = run([case])
    assert report.tried and not report.differences
