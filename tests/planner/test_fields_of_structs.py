"""What is known of the fields of structs and of the elements of lists, and where fields are columns of their own."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tqp


@pytest.fixture(scope="module")
def con() -> tqp.Connection:
    con = tqp.connect(threads=1)
    points = [{"x": i % 5, "y": i / 2} if i % 7 else None for i in range(5000)]
    lists = [[i % 3, 1000] for i in range(5000)]
    con.register("t", pa.table({"k": [i % 4 for i in range(5000)], "p": points, "l": lists}))
    return con


@pytest.mark.parametrize(
    "query",
    [
        "SELECT p.x, count(*) FROM t GROUP BY p.x",
        "SELECT q.x, count(*) FROM (SELECT {'x': p.x, 'k': k} AS q FROM t) GROUP BY q",
        "SELECT q, count(*) FROM (SELECT {'x': p.x, 'k': k} AS q FROM t) GROUP BY q",
        "SELECT l[2], count(*) FROM t GROUP BY l[2]",
        "SELECT l[1:1][1] AS first, count(*) FROM t GROUP BY first",
        "SELECT x, count(*) FROM (SELECT unnest(l) AS x FROM t) GROUP BY x",
    ],
)
def test_groups_by_parts_of_nested_columns_are_found_by_their_range(con: tqp.Connection, query: str) -> None:
    assert "direct group-by" in con.explain(query)


def test_a_struct_that_only_its_fields_are_read_of_is_not_made(con: tqp.Connection) -> None:
    query = "SELECT q.x, count(*) FROM (SELECT {'x': p.x, 'k': k} AS q FROM t) WHERE q.k > 1 GROUP BY q ORDER BY q.k"
    assert "struct_pack" not in con.explain(query)
