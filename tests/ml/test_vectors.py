"""Arrays of floats: similarities against DuckDB's, searches, arrays as parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp
from tests.oracle import duckdb_database
from tqp.core.names import ObjectName
from tqp.operators import vectors

SIZE = 24
ROWS = 300
MEASURES = ["array_cosine_similarity", "array_inner_product", "array_distance"]


def arrays(values: np.ndarray[Any, Any], null: np.ndarray[Any, Any] | None = None) -> pa.Array:
    flat = pa.array(np.ascontiguousarray(values, np.float32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(
        flat, values.shape[1], mask=None if null is None else pa.array(null)
    )


def tables() -> dict[str, pa.Table]:
    random = np.random.default_rng(0)
    items = random.normal(size=(ROWS, SIZE)).astype(np.float32)
    items[3] = 0  # no direction
    items[4] = items[5] + np.float32(1e-5)  # so close that products cancel
    items[6] *= 1e25  # squares out of range
    items[7] *= 1e-25
    items[8, 0] = np.nan
    items[9, 0] = np.inf
    queries = np.stack([items[5], items[20] * 2, random.normal(size=SIZE), np.ones(SIZE)])
    return {
        "items": pa.table(
            {
                "id": np.arange(ROWS),
                "e": arrays(items),
                "other": arrays(np.roll(items, 1, 0)),
                "gaps": arrays(items, random.random(ROWS) < 0.2),
                "k": random.integers(0, 5, ROWS),
            }
        ),
        "queries": pa.table({"k": np.arange(4), "v": arrays(queries)}),
        "none": pa.table({"k": pa.array([], pa.int64()), "v": arrays(np.zeros((0, SIZE)))}),
    }


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb_database() as connection:
        for name, table in tables().items():
            connection.register("arrow", table)  # a table of its own: outer joins of Arrow arrays fail there
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
        yield connection


@pytest.fixture(scope="module", params=[7, None], ids="batch_rows={}".format)
def con(request: pytest.FixtureRequest) -> Iterator[tqp.Connection]:
    with tqp.connect(threads=2, batch_rows=request.param) as connection:
        for name, table in tables().items():
            connection.register(name, table)
        yield connection


def same(ours: list[Any], theirs: list[Any]) -> None:
    """Rows are equal, floats up to rounding in 32 bits."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        for mine, wanted in zip(one, other, strict=True):
            if isinstance(wanted, float) and isinstance(mine, float):
                assert math.isclose(mine, wanted, rel_tol=1e-5, abs_tol=1e-5) or (
                    math.isnan(mine) and math.isnan(wanted)
                ), (one, other)
            else:
                assert mine == wanted, (one, other)


LITERAL = "[" + ", ".join(str(i / 4 - 2) for i in range(SIZE)) + f"]::FLOAT[{SIZE}]"


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, {}(e, other) FROM items ORDER BY id",
        "SELECT id, {}(e, e) FROM items ORDER BY id",
        f"SELECT id, {{}}(e, {LITERAL}), {{}}({LITERAL}, other) FROM items ORDER BY id",
        "SELECT id, {}(gaps, other) FROM items ORDER BY id",
        f"SELECT id, {{}}(gaps, {LITERAL}) FROM items ORDER BY id",
        f"SELECT id, {{}}(gaps, NULL), {{}}(NULL::FLOAT[{SIZE}], e) FROM items ORDER BY id",
        "SELECT id, {}(e, (SELECT e FROM items WHERE id = 5)) FROM items ORDER BY id",
        "SELECT id, {}(e, (SELECT e FROM items WHERE id = -5)) FROM items ORDER BY id",
        "SELECT id, q.k, {}(e, v) FROM items, queries q ORDER BY id, q.k",
        "SELECT id, q.k, {}(v, e) FROM items JOIN queries q USING (k) ORDER BY id, q.k",
        "SELECT id, {}(v, e) FROM items, none",
        f"SELECT id, {{}}(e, {LITERAL}) FROM items WHERE id % 50 = 1 ORDER BY id",
        "SELECT a.id, b.id, {}(a.e, b.e) FROM items a JOIN items b ON a.k = b.k AND a.id = b.id + 7 ORDER BY 1, 2",
        "SELECT id, {}([id, k, 1]::FLOAT[3], [k, 2.5, id]::FLOAT[3]) FROM items ORDER BY id",
        "SELECT {}([1, 2]::FLOAT[2], [-0.1, 1e3]::FLOAT[2]), {}(array_value(1::FLOAT), [3]::FLOAT[1])",
        "SELECT array_dot_product(e, other), array_negative_dot_product(e, other), e <-> other, {}(other, e) FROM items",
        "SELECT array_negative_inner_product(gaps, e), array_cosine_distance(gaps, other), {}(e, gaps) FROM items",
        f"SELECT count(*) FROM items WHERE {{}}(e, {LITERAL}) > 0.125",
        f"SELECT k, max({{}}(e, {LITERAL})) FROM items WHERE id > 9 GROUP BY k ORDER BY k",
    ],
)
def test_measures_are_duckdbs(
    con: tqp.Connection, duck: duckdb.DuckDBPyConnection, query: str, measure: str
) -> None:
    sql = query.replace("{}", measure)
    same(con.sql(sql).fetchall(), duck.execute(sql).fetchall())


@pytest.mark.parametrize("measure", MEASURES)
def test_rows_without_a_partner_have_no_measure(
    con: tqp.Connection, duck: duckdb.DuckDBPyConnection, measure: str
) -> None:
    """DuckDB 2.0 fails to read the arrays that an outer join pads; so without one there."""
    found = f"SELECT id, q.k, {measure}(v, e) FROM items LEFT JOIN queries q USING (k) ORDER BY id"
    wanted = f"""
        SELECT id, q.k, {measure}(v, e) FROM items JOIN queries q USING (k)
        UNION ALL SELECT id, NULL, NULL FROM items WHERE k NOT IN (SELECT k FROM queries) ORDER BY id"""
    same(con.sql(found).fetchall(), duck.execute(wanted).fetchall())
    assert con.sql(f"SELECT count({measure}(v, e)) FROM items LEFT JOIN none USING (k)").fetchall() == [(0,)]


@pytest.mark.parametrize("disabled", [[], ["topk"], ["reorder_joins", "swap_join_sides"]])
def test_a_search_gives_the_nearest(disabled: list[str], duck: duckdb.DuckDBPyConnection) -> None:
    wanted = "SELECT id FROM items WHERE id > 9 ORDER BY array_distance(e, (SELECT e FROM items WHERE id = 20)) LIMIT 9"
    vector = tables()["items"]["e"][20].as_py()
    with tqp.connect(threads=2, batch_rows=50, disabled_rules=disabled) as con:
        con.register("items", tables()["items"])
        found = "SELECT id FROM items WHERE id > 9 ORDER BY array_distance(e, $q) LIMIT 9"
        rows = duck.execute(wanted).fetchall()
        assert con.sql(wanted).fetchall() == rows
        for given in (vector, np.array(vector), np.array(vector, np.float32), torch.tensor(vector)):
            assert con.sql(found, params={"q": given}).fetchall() == rows
        assert con.sql(found.replace("$q", f"$q::FLOAT[{SIZE}]"), params={"q": vector}).fetchall() == rows
        assert (
            con.sql(found.replace("array_distance(e, $q)", "e <-> $q"), params={"q": vector}).fetchall()
            == rows
        )


def test_a_search_keeps_keys_only_and_gathers_no_array(con: tqp.Connection) -> None:
    code = con.compile(
        "SELECT id FROM items WHERE k > 2 ORDER BY array_cosine_similarity(e, $q) DESC LIMIT 5",
        params={"q": [1.0] * SIZE},
    ).code
    assert "array_cosine_similarity(e, constant, rows" in code
    assert "index_select(e" not in code and "keep the first 5 rows" in code


def test_parameters_that_differ_are_different_queries(con: tqp.Connection) -> None:
    wide = np.zeros((2, 5000), np.float32)
    wide[1, 2500] = 1  # beyond what repr() shows
    with tqp.connect() as connection:
        connection.register("w", {"e": wide})
        query = "SELECT max(array_inner_product(e, $q)) FROM w"
        assert [connection.sql(query, params={"q": each}).fetchall() for each in wide] == [[(0.0,)], [(1.0,)]]


def test_matrices_that_nobody_can_write_to_are_registered_without_a_copy() -> None:
    matrix = np.random.default_rng(0).random((10, 4), np.float32)
    address = matrix.ctypes.data
    matrix.flags.writeable = False
    for data in (matrix, arrays(matrix)):
        with tqp.connect() as con:
            con.register("t", {"e": data})
            assert con._catalog.state.tables[ObjectName.of("t")].column("e").values.data_ptr() == address  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT array_distance(e, [1, 2]::FLOAT[2]) FROM items", "both of the same size"),
        ("SELECT array_distance(NULL, NULL)", "both of the same size"),
        ("SELECT array_distance(e, 1) FROM items", r"it takes \(FLOAT\[n\], FLOAT\[n\]\) -> FLOAT"),
        ("SELECT array_distance(e, [1, 2]) FROM items", "does not take"),
        ("SELECT [1, 2]::FLOAT[3]", r"a list of 2 values to FLOAT\[3\]"),
        ("SELECT [1, NULL]::FLOAT[2]", "NULL in it"),
        ("SELECT [nullif(id, 3), 1]::FLOAT[2] FROM items", "NULL in it"),
        ("SELECT [1e300]::FLOAT[1]", "out of range for FLOAT"),
        ("SELECT array_value()", "at least one"),
        ("SELECT NULL::FLOAT[0]", "a number from 1"),
    ],
)
def test_what_does_not_fit_is_refused(con: tqp.Connection, query: str, message: str) -> None:
    with pytest.raises(tqp.Error, match=message):
        con.sql(query).fetchall()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *(([], "does not take"), (["a"], "does not take"), ([True], "does not take")),
        *(([[1.0]], "does not take"), ([1.0], "both of the same size"), ([1.0, None], "does not take")),
        ([1e300] * SIZE, "out of range for the destination type FLOAT"),
        (np.zeros((2, 2)), r"the value of \$q"),
    ],
)
def test_a_parameter_that_is_no_array_is_refused(con: tqp.Connection, value: object, message: str) -> None:
    with pytest.raises(tqp.Error, match=message):
        con.sql("SELECT array_distance(e, $q) FROM items", params={"q": value}).fetchall()


@pytest.mark.parametrize("measure", vectors.SIMILARITIES)
@pytest.mark.parametrize(
    ("left_size", "right_size"), [(5000, 1), (5000, 3), (5000, 40), (7, 5000), (1, 1), (900, 900)]
)
def test_all_ways_to_pair_rows_agree(measure: str, left_size: int, right_size: int) -> None:
    random = torch.Generator().manual_seed(0)
    left = torch.randn(left_size, 64, generator=random)
    right = torch.randn(right_size, 64, generator=random)
    function = vectors.SIMILARITIES[measure]
    for count in (0, 3, 10_000):
        rows = torch.randint(-1, left_size, (count,), generator=random, dtype=torch.int32)
        others = torch.randint(-1, right_size, (count,), generator=random)
        found = function(left, right, rows, others)
        one, other = left[rows.clamp(min=0)].double(), right[others.clamp(min=0)].double()
        product = (one * other).sum(1)
        cosine = product / (one.norm(dim=1) * other.norm(dim=1))
        wanted = {
            "array_inner_product": product,
            "array_negative_inner_product": -product,
            "array_cosine_similarity": cosine,
            "array_cosine_distance": 1 - cosine,
            "array_distance": (one - other).norm(dim=1),
        }[measure]
        assert found.dtype is torch.float32 and found.shape == (count,)
        known = (rows >= 0) & (others >= 0)
        found, wanted = found[known], wanted[known]
        torch.testing.assert_close(
            found.double(), wanted, rtol=1e-6, atol=1e-6 if "cosine" in measure else 1e-4
        )


class Scaled(torch.nn.Module):
    """The mean of an array times one number, plus another; it notes where its features lie."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, ...]] = []

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        self.seen.append((features.data_ptr(), *features.shape))
        mean = features[:, :SIZE].mean(1)
        return mean if features.shape[1] == SIZE else mean * features[:, SIZE] + features[:, SIZE + 1]


def test_an_array_is_the_features_of_a_model(con: tqp.Connection) -> None:
    con.register_model("scaled", Scaled(), inputs={"e": SIZE, "id": 1, "k": 1})
    values = tables()["items"]
    matrix = torch.tensor(values["e"].combine_chunks().flatten().to_numpy()).view(-1, SIZE)
    ids, ks = torch.tensor(values["id"].to_numpy()), torch.tensor(values["k"].to_numpy())
    rows = con.sql("SELECT scaled(e, id, k) FROM items WHERE id > 9 ORDER BY id").fetchall()
    wanted = matrix.mean(1) * ids + ks
    torch.testing.assert_close(torch.tensor(rows)[:, 0], wanted[10:])


def test_one_array_is_scored_where_it_lies_by_layers_that_write_nothing() -> None:
    """Layers of torch's own read the table's memory; other code, which might write, gets a copy."""
    for net, is_copied in ((torch.nn.Sequential(torch.nn.Linear(SIZE, 1)), False), (Scaled(), True)):
        seen: list[int] = []
        net.register_forward_pre_hook(lambda _, given, seen=seen: seen.append(given[0].data_ptr()))
        with tqp.connect() as con:
            con.register("t", {"e": torch.rand(100, SIZE)})
            con.register_model("net", net, inputs={"e": SIZE})
            con.sql("SELECT sum(net(e)) FROM t").fetchall()
            table = con._snapshot().lookup("t").column("e").values.data_ptr()
        assert (seen[-1] != table) == is_copied


def test_models_take_arrays_of_their_size(con: tqp.Connection) -> None:
    con.register_model("linear", torch.nn.Linear(SIZE, 2).double(), inputs={"e": SIZE})
    pair = con.sql("SELECT linear(e) FROM items WHERE id = 10").fetchall()[0][0]
    assert len(pair) == 2
    for query, message in (
        ("SELECT linear(id) FROM items", rf"an array FLOAT\[{SIZE}\]"),
        ("SELECT linear([id, 1]::FLOAT[2]) FROM items", rf"an array FLOAT\[{SIZE}\]"),
        ("SELECT linear(gaps) FROM items", "may be NULL"),
    ):
        with pytest.raises(tqp.BindError, match=message):
            con.sql(query)
    with pytest.raises(tqp.BindError, match=r'inputs=\{"name": size'):
        con.register_model("linear", torch.nn.Linear(SIZE, 1), inputs=["e"])
    with pytest.raises(tqp.BindError, match="at least one feature"):
        con.register_model("linear", torch.nn.Linear(SIZE, 1), inputs={"e": 0})


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 24, 63, 64, 100])
def test_products_of_rows_are_the_same_wherever_they_stand(size: int) -> None:
    random = np.random.default_rng(size)
    left, right = (random.random((500, size), np.float32) for _ in range(2))
    for others in (right, right[:1], right[0]):
        whole = vectors._row_products(left, others)
        for first, stop in ((1, 500), (7, 12), (499, 500)):
            some = others[first:stop] if others is right else others
            assert np.array_equal(vectors._row_products(left[first:stop], some), whole[first:stop])
        assert np.allclose(whole, (left.astype(np.float64) * others).sum(1), rtol=1e-5)
