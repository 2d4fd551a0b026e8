"""Expressions over a dictionary: once for each entry, but not where fewer rows are left than it has entries."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tqp

ROWS, LABELS = 120_000, 8_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(7)
    labels = pa.array([f"label {number}" for number in range(LABELS)])
    return pa.table(
        {
            "label": labels.take(pa.array(random.integers(0, LABELS, ROWS))),
            "n": random.integers(0, 1000, ROWS),
        }
    )


@pytest.mark.parametrize(("condition", "over_domain"), [("n < 20", False), ("n < 800", True), ("true", True)])
def test_few_rows_are_computed_themselves(table: pa.Table, condition: str, over_domain: bool) -> None:
    text = f"SELECT reverse(upper(label)) AS made FROM t WHERE {condition}"
    with tqp.connect(threads=2) as connection:
        connection.register("t", table)
        code = connection.compile(text).code
        assert ("over domain" in code) is over_domain
        found = connection.sql(f"SELECT made, count(*) FROM ({text}) GROUP BY made ORDER BY made").fetchall()
    expected = duckdb.connect()
    expected.register("t", table)
    wanted = expected.execute(f"SELECT made, count(*) FROM ({text}) GROUP BY made ORDER BY made").fetchall()
    assert found == wanted


@pytest.mark.parametrize(("function", "over_domain"), [("upper", False), ("length", True)])
def test_text_is_made_of_entries_that_come_again_and_again(
    table: pa.Table, function: str, over_domain: bool
) -> None:
    """It becomes a dictionary, which takes as long as making it of each of half as many rows again."""
    text = f"SELECT {function}(label) AS made FROM t WHERE n < 100"
    with tqp.connect(threads=2) as connection:
        connection.register("t", table)
        assert ("over domain" in connection.compile(text).code) is over_domain
        found = connection.sql(f"SELECT made, count(*) FROM ({text}) GROUP BY made ORDER BY made").fetchall()
    expected = duckdb.connect()
    expected.register("t", table)
    query = f"SELECT made, count(*) FROM ({text}) GROUP BY made ORDER BY made"
    assert found == expected.execute(query).fetchall()


def test_few_rows_of_integers_are_computed_themselves() -> None:
    """A range of 20,000 scaled integers is no small domain for three rows."""
    query = "SELECT round(d) AS whole FROM t ORDER BY d"
    with tqp.connect() as connection:
        connection.register(
            "t", duckdb.sql("SELECT unnest([-0.9999, 0.4999, 0.5])::DECIMAL(4, 4) AS d").to_arrow_table()
        )
        assert "over domain" not in connection.compile(query).code
        assert [int(row[0]) for row in connection.sql(query).fetchall()] == [-1, 0, 1]


@pytest.mark.parametrize(("rows", "over_domain"), [(50_000, False), (2_000_000, True)])
def test_what_is_cheap_is_computed_for_each_row_unless_they_are_many(rows: int, over_domain: bool) -> None:
    """`month()` of a date costs little more than looking it up: a pipeline of its own has to pay for itself."""
    days = np.arange(rows) % 1_000
    query = "SELECT sum(month(day)) AS total FROM t"
    with tqp.connect(threads=2) as connection:
        connection.register("t", pa.table({"day": pa.array(days.astype("datetime64[D]"))}))
        assert ("over domain" in connection.compile(query).code) is over_domain
        expected = (days.astype("datetime64[D]").astype("datetime64[M]").astype(int) % 12 + 1).sum()
        assert connection.sql(query).fetchall() == [(int(expected),)]
