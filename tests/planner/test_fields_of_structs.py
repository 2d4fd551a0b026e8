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
        "SELECT l[-1:-1] AS last, count(*) FROM t GROUP BY last",
        "SELECT DISTINCT [k, p.x] AS both FROM t",
    ],
)
def test_groups_by_parts_of_nested_columns_are_found_by_their_range(con: tqp.Connection, query: str) -> None:
    assert "direct group-by" in con.explain(query)


def test_a_struct_that_only_its_fields_are_read_of_is_not_made(con: tqp.Connection) -> None:
    query = "SELECT q.x, count(*) FROM (SELECT {'x': p.x, 'k': k} AS q FROM t) WHERE q.k > 1 GROUP BY q ORDER BY q.k"
    assert "struct_pack" not in con.explain(query)


def test_what_is_known_of_elements_is_of_the_values_that_are_there_now() -> None:
    con = tqp.connect(threads=1)
    con.execute("CREATE TABLE e AS SELECT i, [i, 3] AS l, {'a': i} AS s FROM range(100) t(i)")
    query = "SELECT sum(list_sum(l)), max(len(l)), max(s.a), count(DISTINCT s), sum(list_max(l)) FROM e"
    assert con.execute(query).fetchall() == [(5250, 2, 99, 100, 4956)]
    con.execute("UPDATE e SET l = [9223372036854775807, 5, 1], s = {'a': i + 1000} WHERE i > 97")
    con.execute("INSERT INTO e VALUES (7, [9223372036854775807], {'a': -5})")
    total = sum(i + 3 for i in range(98)) + 3 * (2**63 - 1) + 12
    greatest = sum(max(i, 3) for i in range(98)) + 3 * (2**63 - 1)
    assert con.execute(query).fetchall() == [(total, 3, 1099, 101, greatest)]
