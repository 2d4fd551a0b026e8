"""The rule `group_by_units`: the same rows with it and without, and days or numbers of hours to group by where it applies."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

import tqp

START = datetime.datetime(1969, 12, 20, 13, 30)
TABLE = pa.table(
    {
        "x": [None if i % 13 == 4 else START + datetime.timedelta(hours=7 * i) for i in range(300)],
        "i": range(300),
    }
)
ENDLESS = pa.table({"x": pa.array([2**63 - 1, 0, None, -(2**63) + 1], pa.timestamp("us"))})


@pytest.mark.parametrize("part", ["day", "week", "month", "quarter", "year", "hour"])
def test_rows_with_the_rule_and_without(part: str) -> None:
    query = (
        f"SELECT date_trunc('{part}', x) AS k, i % 2 AS j, count(*) AS n FROM t GROUP BY k, j ORDER BY ALL"
    )
    tables = []
    for disabled in ((), ("group_by_units",)):
        con = tqp.connect(batch_rows=37, disabled_rules=disabled)
        con.register("t", TABLE)
        tables.append(con.sql(query).to_arrow())
        text = con.explain(query)
        has_one_length = part in ("day", "hour")
        assert ("AS DATE" in text) == (not disabled and not has_one_length)
        assert ("number_of_unit" in text) == (not disabled and has_one_length)
    assert tables[0] == tables[1]


def test_infinite_timestamps_begin_no_day() -> None:
    con = tqp.connect()
    con.register("t", ENDLESS)
    query = "SELECT date_trunc('month', x) AS k, count(*) AS n FROM t GROUP BY k"
    assert "AS DATE" not in con.explain(query)
    assert "number_of_unit" not in con.explain(query.replace("month", "hour"))
    assert con.sql(query).to_arrow().num_rows >= 3


def test_buckets_that_do_not_begin_at_multiples_of_their_width() -> None:
    con = tqp.connect()
    con.register("t", TABLE)
    query = "SELECT time_bucket(INTERVAL '{}', x) AS k, count(*) AS n FROM t GROUP BY k"
    assert "number_of_unit" in con.explain(query.format("6 hours"))
    assert "number_of_unit" not in con.explain(query.format("7 days"))
    assert "number_of_unit" not in con.explain(query.format("1 month"))
