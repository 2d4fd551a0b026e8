"""A sample of `python -m tests.function_matrix`: functions that have differed from DuckDB at the ends of their types."""

from __future__ import annotations

import pytest

from tests.function_cases import Case
from tests.function_matrix import every_case, run

_SAMPLE = (
    "lcm: lcm(BIGINT, BIGINT)",
    "greatest: greatest(UHUGEINT, UHUGEINT)",
    "cosh: cosh(DOUBLE)",
    "right: right(VARCHAR, BIGINT)",
    "<=: DATE <= TIMESTAMP",
    "date_sub: date_sub(VARCHAR, TIMESTAMP WITH TIME ZONE, TIMESTAMP WITH TIME ZONE)",
    "*: HUGEINT * DECIMAL(38,10)",
    "try_cast: TRY_CAST(VARCHAR AS FLOAT)",
    "not between: DECIMAL(4,1) NOT BETWEEN DECIMAL(38,0) AND DECIMAL(38,0)",
)


@pytest.mark.parametrize("case", [each for each in every_case() if str(each) in _SAMPLE], ids=str)
def test_edges_agree_with_duckdb(case: Case) -> None:
    report = run([case])
    assert report.tried and not report.differences
