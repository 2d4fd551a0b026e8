"""Zones of tables that pipelines do not read, as no row of theirs finds a partner: answers are those of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp
from tests.oracle import assert_same_rows, duckdb_database
from tqp.data.encoding import zones as zone_maps
from tqp.data.encoding.zones import Zones, zones_of_column, zones_of_parts
from tqp.operators.joins.hash_join import build_hash
from tqp.operators.joins.offset_array_join import build_offset_array
from tqp.operators.joins.perfect_hash_join import build_membership, build_perfect_hash
from tqp.operators.joins.zone_rows import spans_of_zones, zones_in_build
from tqp.runtime import zone_filters
from tqp.runtime.lowering import zones as lowered_zones

_ROWS = 5000
_random = np.random.default_rng(11)
_days = np.sort(_random.integers(0, 500, _ROWS))
_TABLES = {
    "sales": pa.table(
        {
            # in order but for NULLs; in order but for some days; in no order
            "day": pa.array(_days, mask=_random.random(_ROWS) < 0.05),
            "shipped": pa.array(_days + _random.integers(-20, 20, _ROWS), mask=np.arange(_ROWS) // 700 == 3),
            "item": _random.integers(0, 50, _ROWS),
            "v": pa.array(_random.integers(-99, 99, _ROWS), mask=_random.random(_ROWS) < 0.1),
            "x": _random.random(_ROWS),
            "text": [str(value) for value in range(_ROWS - 1)] + ["none"],
        }
    ),
    "days": pa.table({"day": list(range(-30, 600)), "month": [day // 30 for day in range(-30, 600)]}),
    "items": pa.table({"item": list(range(50)), "kind": [item % 7 for item in range(50)]}),
    "events": pa.table({"day": [3, 3, 250, 250, 251, None], "e": list(range(6))}),
}
_QUERIES = [
    "SELECT count(*), sum(v), min(s.day), max(s.day) FROM sales s JOIN days d ON s.day = d.day WHERE month = 3",
    "SELECT s.day, count(*), sum(v) FROM sales s JOIN days d ON s.day = d.day WHERE month IN (1, 12) GROUP BY s.day",
    "SELECT s.* FROM sales s JOIN days d ON s.day = d.day WHERE month = 9 AND v > 50",
    "SELECT s.* FROM sales s JOIN days d ON s.shipped = d.day WHERE month = 0",
    "SELECT count(*) FROM sales s JOIN days d ON s.day = d.day WHERE month = 99",
    "SELECT s.item, e FROM sales s JOIN events e ON s.day = e.day",
    "SELECT count(*), sum(item) FROM sales WHERE day IN (SELECT day FROM events)",
    "SELECT count(*), sum(item) FROM sales WHERE day NOT IN (SELECT day FROM events WHERE day IS NOT NULL)",
    "SELECT kind, sum(v) FROM sales s JOIN items i ON s.item = i.item JOIN days d ON s.day = d.day"
    + " JOIN days t ON s.shipped = t.day WHERE d.month = 5 AND t.month = 5 AND kind < 3 GROUP BY kind",
    "SELECT s.v, e FROM sales s JOIN events e ON s.day = e.day AND s.item = e.e",
    "SELECT s.v, d.month FROM sales s JOIN days d ON s.shipped = d.day AND s.item = d.month + 9 WHERE month IN (1, 2)",
    "SELECT s.day, d.month FROM sales s LEFT JOIN (FROM days WHERE month = 4) d ON s.day = d.day",
    "SELECT s.day, d.month FROM sales s RIGHT JOIN (FROM days WHERE month = 4) d ON s.day = d.day",
    "SELECT s.day, d.month FROM sales s FULL JOIN (FROM days WHERE month = 4) d ON s.day = d.day",
    "SELECT day FROM sales INTERSECT SELECT day FROM events",
    "SELECT s.day, s.v FROM sales s SEMI JOIN events e ON s.day IS NOT DISTINCT FROM e.day",
    "SELECT s.text FROM sales s JOIN days d ON s.day = d.day WHERE month = 2 ORDER BY v DESC, s.text LIMIT 7",
    "SELECT count(*), sum(v), min(shipped), max(shipped) FROM sales WHERE shipped BETWEEN 100 AND 120",
    "SELECT * FROM sales WHERE day > 490 AND v < 0",
    "SELECT * FROM sales WHERE 10 > day AND item IN (3, 4)",
    "SELECT item, count(*) FROM sales WHERE day IN (3, 4, 250, 499) GROUP BY item",
    "SELECT text FROM sales WHERE day >= 700 OR day = 4",
    "SELECT count(*), sum(item) FROM sales WHERE day < -9223372036854775807",
    "SELECT count(*), sum(item) FROM sales WHERE day = 3 AND shipped >= 9223372036854775807",
    "SELECT count(*), sum(item) FROM sales WHERE day IS NULL OR day = 7",
    "SELECT s.v, d.month FROM sales s LEFT JOIN days d ON s.day = d.day WHERE s.day BETWEEN 77 AND 80",
    "SELECT s.v, d.month FROM days d LEFT JOIN sales s ON s.day = d.day AND s.day <= 12",
    "SELECT sum(v) OVER (ORDER BY text), v FROM sales WHERE day = 444",
    "SELECT n, s.item FROM (SELECT *, row_number() OVER (ORDER BY text) AS n FROM sales) s"
    + " JOIN days d ON s.day = d.day WHERE month = 2",
]


@pytest.fixture(autouse=True)
def _small_zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(zone_maps, "ZONE_ROWS", 64)
    monkeypatch.setattr(zone_filters, "_SMALLEST_GAP", 64)
    monkeypatch.setattr(lowered_zones, "FEWEST_ZONED_ROWS", 100)
    yield


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("batch_rows", [None, 50])
@pytest.mark.parametrize("rule", ["", "perfect_hash_join", "index_join"])
def test_answers_are_those_of_duckdb(query: str, batch_rows: int | None, rule: str) -> None:
    order = "" if "ORDER BY v" in query else " ORDER BY ALL"
    assert_same_rows(_TABLES, query + order, batch_rows=batch_rows, disabled_rules=[rule] if rule else [])


def _rows_read(query: str) -> list[int]:
    """Of each batch of sales that was read, its rows."""
    found: list[int] = []
    with tqp.connect(backend="host") as connection:
        for name, table in _TABLES.items():
            connection.register(name, table)
        program = connection.compile(query)
        for step in program.steps():
            if step.source_slot != "table_sales":
                continue
            function = step.function

            def watched(*arguments: object, function: object = function) -> object:
                sizes = [len(each) for each in arguments if isinstance(each, torch.Tensor) and each.dim()]
                found.append(max(sizes, default=0))
                return function(*arguments)  # type: ignore[operator]

            step.function = watched
        program()
    return found


def test_only_zones_with_a_partner_are_read() -> None:
    query = "SELECT sum(v) FROM sales s JOIN days d ON s.{} = d.day WHERE month {}"
    assert 250 < sum(_rows_read(query.format("day", "= 3"))) < 600
    assert 250 < sum(_rows_read(query.format("shipped", "= 3"))) < 1500
    two = _rows_read(query.format("day", "IN (1, 12)"))
    assert len(two) == 2 and sum(two) < 1100
    assert sum(_rows_read(query.format("item", "= 3"))) == _ROWS


def test_only_zones_with_values_in_range_are_read() -> None:
    few = ["day BETWEEN 100 AND 120", "day = 7", "shipped > 470", "490 < day AND v > 0", "day IN (3, 4, 9)"]
    for condition in few:
        rows = _rows_read(f"SELECT sum(v) FROM sales WHERE {condition}")
        assert 0 < sum(rows) < 700, condition
    two = _rows_read("SELECT sum(v) FROM sales WHERE day IN (3, 444)")
    assert len(two) == 2 and sum(two) < 400
    for condition in ("item = 3", "day <> 7", "day < 490", "day = 3 OR v = 3"):
        assert sum(_rows_read(f"SELECT sum(v) FROM sales WHERE {condition}")) > 4500, condition


def test_other_constants_read_other_zones() -> None:
    query = "SELECT count(*), sum(v) FROM sales WHERE day BETWEEN {} AND {} AND item IN ({}, 3)"
    with tqp.connect(backend="host") as connection, duckdb_database() as oracle:
        for name, table in _TABLES.items():
            connection.register(name, table)
            oracle.register(name, table)
        for constants in [(3, 9, 1), (460, 490, 3), (0, 499, 7), (9, 3, 4), (-5, 2, 0), (499, 10**15, 2)]:
            text = query.format(*constants)
            assert connection.sql(text).fetchall() == oracle.sql(text).fetchall(), text


@pytest.mark.parametrize("data_type", [pa.int64(), pa.uint64()])
def test_the_ends_of_types(data_type: pa.DataType) -> None:
    """Each of the greatest and least values lies in a zone of its own."""
    low, high = (0, 2**64 - 1) if data_type == pa.uint64() else (-(2**63), 2**63 - 1)
    values = [value for value in (low, low + 1, (low + high) // 2, high - 1, high) for _ in range(640)]
    table = pa.table({"v": pa.array(values, data_type)})
    queries = [
        f"SELECT count(*) FROM t WHERE v {operator} {constant}"
        for operator in ("=", "<", "<=", ">", ">=", "<>")
        for constant in (low, low + 1, 0, high - 1, high, low - 1, high + 1)
    ]
    with tqp.connect(backend="host") as connection, duckdb_database() as oracle:
        connection.register("t", table)
        oracle.register("t", table)
        for query in [*queries, f"SELECT count(*) FROM t WHERE v IN ({low}, {high}, 7)"]:
            assert connection.sql(query).fetchall() == oracle.sql(query).fetchall(), query


def test_what_raises_is_not_skipped() -> None:
    query = "SELECT count(*) FROM (SELECT * FROM sales WHERE CAST(text AS INTEGER) >= 0) s "
    off = ["attempt_before_join", "push_down_predicates"]
    with tqp.connect(disabled_rules=off) as connection:
        for name, table in _TABLES.items():
            connection.register(name, table)
        for rest in ("JOIN days d ON s.day = d.day WHERE month = 3", "WHERE day = 3"):
            with pytest.raises(tqp.Error, match="none"):
                connection.sql(query + rest)


# ---- zones and spans by themselves ----


def _zones(values: list[int | None]) -> Zones:
    with tqp.connect(backend="host") as connection:
        connection.register("t", pa.table({"v": pa.array(values, pa.int64())}))
        connection.sql("SELECT sum(v) FROM t")
        source = connection.compile("SELECT v FROM t").tables["table_t"].source
        return source.derived("v", Zones, zones_of_column)


def test_zones_are_the_extremes_of_valid_values() -> None:
    values: list[int | None] = [None if row % 9 == 0 else row // 3 for row in range(3000)]
    values[640:704] = [None] * 64
    zones = _zones(values)
    assert len(zones.least) == -(-3000 // 64)
    for number, (low, high) in enumerate(zip(zones.least.tolist(), zones.greatest.tolist(), strict=True)):
        valid = [value for value in values[number * 64 : number * 64 + 64] if value is not None]
        assert (low, high) == (min(valid), max(valid)) if valid else low > high


def test_columns_in_no_order_have_no_zones() -> None:
    assert len(_zones(_random.integers(0, 1000, 3000).tolist()).least) == 0
    assert len(_zones([7] * 3000).least) == 0
    assert len(_zones([None] * 3000).least) == 0
    assert len(_zones(list(range(100))).least) == 0


@pytest.mark.parametrize(
    "keys", [[], [5], [5, 6, 900], list(range(300, 330)), list(range(0, 1000, 2)), [999, 0]]
)
def test_zones_that_may_have_a_key(keys: list[int]) -> None:
    values: list[int | None] = [row // 3 - 10 for row in range(3000)]
    values[640:704] = [None] * 64
    zones, minimum, size = _zones(values), -10, 1010
    built = torch.tensor(keys, dtype=torch.int64)
    expected = [
        any(value is not None and value + 10 in keys for value in values[first : first + 64])
        for first in range(0, 3000, 64)
    ]
    builds = [build_membership(built, size), build_perfect_hash(built, size)]
    builds += [build_offset_array(built, size), build_offset_array(torch.cat([built, built]), size)]
    for build in builds:
        found = zones_in_build(zones, minimum, 1, build)
        assert found is not None
        if len(keys) <= len(found):
            assert found.tolist() == expected
        else:
            assert (found | ~np.array(expected)).all()


def test_zones_of_parts_hold_what_their_parts_may() -> None:
    zones = zones_of_parts([70, 10, 50, 40], [(5, 9), (3, 4), None, (100, 120)])
    assert list(zip(zones.least.tolist(), zones.greatest.tolist(), strict=True)) == [
        (5, 9),
        (3, 9),  # rows 64 to 127: of the first three parts
        (100, 120),
    ]
    assert len(zones_of_parts([100, 100], [(0, 99), (1, 100)]).least) == 0
    assert len(zones_of_parts([], []).least) == 0
    assert len(zones_of_parts([100], [None]).least) == 0


@pytest.mark.parametrize("keys", [[7], [5, 900], [300, 301, 302]])
def test_zones_by_the_first_of_several_columns(keys: list[int]) -> None:
    values: list[int | None] = [row // 3 - 10 for row in range(3000)]
    zones = _zones(values)
    packed = torch.tensor([key * 20 + key % 20 for key in keys])
    dense = zones_in_build(zones, -10, 20, build_membership(packed, 1010 * 20))
    hashed = zones_in_build(zones, -10, 20, build_hash(packed))
    assert dense is not None and hashed is not None
    for number, first in enumerate(range(0, 3000, 64)):
        held = [value + 10 for value in values[first : first + 64] if value is not None]
        assert dense[number] == any(key in keys for key in held)
        assert hashed[number] == (held[-1] >= keys[0] and held[0] <= keys[-1])


def test_spans_cover_the_wanted_zones_and_gaps_that_are_not_worth_it() -> None:
    wanted = np.zeros(20, np.bool_)
    assert spans_of_zones(wanted, 10, 195, smallest_gap=30) == []
    wanted[[0, 3, 7, 8, 19]] = True
    assert spans_of_zones(wanted, 10, 195, smallest_gap=30) == [(0, 40), (70, 90), (190, 195)]
    assert spans_of_zones(wanted, 10, 195, smallest_gap=1000) == [(0, 195)]
