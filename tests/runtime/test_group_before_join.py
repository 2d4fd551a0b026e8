"""The right side of a left join grouped before it: one left row a group, and several; answers are DuckDB's."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.runtime.split_aggregates import assert_split

_ORDERS = 3000
_EACH = "FROM days LEFT JOIN {0} o ON o.day = days.day"


def _tables() -> dict[str, pa.Table]:
    chance = random.Random(0)
    days = [*range(40), *range(10), None, None]  # some are there twice
    orders = {
        "day": pa.array([chance.choice([None, *range(5, 60)]) for _ in range(_ORDERS)], pa.int32()),
        "quantity": pa.array([chance.choice([None, *range(9)]) for _ in range(_ORDERS)], pa.int32()),
        "price": pa.array(
            [Decimal(chance.randrange(10_000)) / 100 for _ in range(_ORDERS)], pa.decimal128(9, 2)
        ),
        "weight": pa.array([chance.randrange(100) / 8 for _ in range(_ORDERS)]),
        "large": pa.array([chance.choice([2**63 - 1, None, -5]) for _ in range(_ORDERS)], pa.int64()),
        "is_new": pa.array([chance.choice([None, True, False]) for _ in range(_ORDERS)]),
        "name": [f"name {chance.randrange(50)}" for _ in range(_ORDERS)],
    }
    table = pa.table(orders)
    return {
        "days": pa.table({"day": pa.array(days, pa.int32()), "month": [row % 4 for row in range(len(days))]}),
        "months": pa.table({"month": list(range(70)), "name": [f"m{row % 5}" for row in range(70)]}),
        "t": table,
        "none": table.slice(0, 0),
    }


#: Aggregates in the plan.
SEVERAL_ROWS = {
    f"SELECT days.day AS d, count(o.quantity) {_EACH} GROUP BY d": 2,
    f"SELECT days.day AS d, count(*), count(o.day) {_EACH} GROUP BY d": 2,
    f"SELECT month, sum(quantity), min(o.name), max(price), sum(price), bool_or(is_new), count(*) {_EACH} GROUP BY month": 2,
    f"SELECT month % 2 AS m, avg(quantity), avg(price), avg(weight), sum(weight), sum(large) {_EACH} GROUP BY m": 2,
    f"SELECT days.day AS d {_EACH} GROUP BY d": 1,
    "SELECT days.day AS d, count(name) FROM {0} o RIGHT JOIN days ON o.day = days.day GROUP BY d": 2,
    # what a row without partners comes to is not told by its NULLs, or does not follow from parts
    f"SELECT days.day AS d, count(coalesce(quantity, 0)) {_EACH} GROUP BY d": 1,
    f"SELECT days.day AS d, count(month) {_EACH} GROUP BY d": 1,
    f"SELECT days.day AS d, count(DISTINCT quantity) {_EACH} GROUP BY d": 1,
    f"SELECT days.day AS d, median(quantity) {_EACH} GROUP BY d": 1,
    f"SELECT days.day AS d, sum(quantity) FILTER (WHERE month = 1) {_EACH} GROUP BY d": 1,
    f"SELECT days.day AS d, count(o.day) {_EACH} AND o.quantity > month GROUP BY d": 1,
    f"SELECT o.quantity AS q, count(o.day) {_EACH} GROUP BY q": 1,
}
ONE_ROW = {
    "SELECT m.month, count(*), count(quantity), sum(price) FROM months m LEFT JOIN {0} ON day = m.month GROUP BY m.month": 1,
    "SELECT m.month, median(quantity), count(DISTINCT quantity) FROM months m LEFT JOIN {0} ON day = m.month GROUP BY m.month": 1,
}
TABLES = _tables()


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("table", ["t", "none"])
def test_answers(backend: str, table: str) -> None:
    assert_split(TABLES, table, SEVERAL_ROWS | ONE_ROW, backend, " ORDER BY ALL")
