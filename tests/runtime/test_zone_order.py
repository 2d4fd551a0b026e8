"""The first rows of an order, for which a table's best zones are read first, and few of the others: answers are those of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.oracle import assert_same_rows
from tqp.data.encoding import zones as zone_maps
from tqp.data.encoding.zones import Zones
from tqp.runtime import executor, zone_order
from tqp.runtime.breakers import collect
from tqp.runtime.lowering import zones as lowered_zones
from tqp.runtime.zone_order import Batch, ZoneOrder

_ROWS = 6000
_random = np.random.default_rng(5)
_at = np.sort(_random.integers(0, 3000, _ROWS))
_TABLES = {
    "events": pa.table(
        {
            "id": list(range(_ROWS)),
            "moment": _at,
            "back": pa.array(_at[::-1].copy(), mask=_random.random(_ROWS) < 0.1),
            "around": pa.array(np.roll(_at, 2500) + _random.integers(-9, 9, _ROWS)).cast(pa.timestamp("s")),
            "gone": pa.array(_at, mask=np.arange(_ROWS) // 500 % 3 == 1),
            "price": pa.array(_at, pa.int32()).cast(pa.decimal128(12, 2)),
            "kind": _random.integers(0, 40, _ROWS),
            "text": [f"text {value % 77}" for value in range(_ROWS)],
        }
    ),
    "kinds": pa.table({"kind": [3, 4, 4, 39, None], "name": list("abcde")}),
}
_QUERIES = [
    "SELECT * FROM events ORDER BY moment, id LIMIT 7",
    "SELECT id FROM events WHERE kind = 3 ORDER BY moment DESC, id LIMIT 5 OFFSET 3",
    "SELECT id, back FROM events WHERE kind < 30 ORDER BY back, id DESC LIMIT 20",
    "SELECT id FROM events ORDER BY back DESC NULLS LAST, id LIMIT 20",
    "SELECT id, back FROM events ORDER BY back NULLS FIRST, id LIMIT 20",
    "SELECT id FROM events WHERE around < TIMESTAMP '1970-01-01 00:20:00' ORDER BY around DESC, id LIMIT 10",
    "SELECT id, gone FROM events WHERE kind <> 7 ORDER BY gone, id LIMIT 30",
    "SELECT id, gone FROM events WHERE gone IS NULL ORDER BY gone, id LIMIT 30",
    "SELECT text, price FROM events WHERE text LIKE '%7%' ORDER BY price DESC, text, id LIMIT 12",
    "SELECT id FROM events WHERE kind = 99 ORDER BY moment LIMIT 3",
    "SELECT id FROM events ORDER BY moment LIMIT 0",
    "SELECT id FROM events ORDER BY moment, id LIMIT 5900 OFFSET 50",
    "SELECT e.id, name FROM events e JOIN kinds k ON e.kind = k.kind ORDER BY e.moment DESC, id, name LIMIT 9",
    "SELECT e.id, name FROM events e LEFT JOIN kinds k ON e.kind = k.kind ORDER BY e.moment DESC, id, name LIMIT 9",
    "SELECT id, moment + kind AS sum FROM events WHERE kind > 20 ORDER BY moment DESC, sum, id LIMIT 4",
    "SELECT id FROM events ORDER BY -moment, id LIMIT 4",
    "SELECT kind, count(*) FROM (SELECT kind FROM events ORDER BY moment DESC, id LIMIT 500) GROUP BY kind ORDER BY ALL",
    "SELECT id FROM events WHERE id IN (SELECT kind FROM kinds) ORDER BY moment DESC LIMIT 1",
]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(zone_maps, "ZONE_ROWS", 64)
    monkeypatch.setattr(zone_order, "_ROWS", 300)
    monkeypatch.setattr(zone_order, "_FIRST_ROWS", 50)
    monkeypatch.setattr(collect, "_FEW_ROWS", 8)
    monkeypatch.setattr(lowered_zones, "FEWEST_ZONED_ROWS", 100)
    yield


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("options", [{}, {"batch_rows": 130}, {"backend": "torch"}], ids=str)
def test_answers_are_those_of_duckdb(query: str, options: dict[str, object]) -> None:
    assert_same_rows(_TABLES, query, **options)


def _rows_read(query: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many rows of its table a query reads."""
    found: list[int] = []
    ours = executor._Job._run

    def recorded(job: executor._Job, start: int, stop: int) -> object:
        found.append(stop - start)
        return ours(job, start, stop)

    monkeypatch.setattr(executor._Job, "_run", recorded)
    with tqp.connect(backend="host", threads=1) as connection:
        connection.register("events", _TABLES["events"])
        program = connection.compile(query)
        program()
    return sum(found)


@pytest.mark.parametrize(
    ("query", "most"),
    [
        ("SELECT id FROM events ORDER BY moment LIMIT 5", 200),
        ("SELECT id FROM events ORDER BY moment DESC LIMIT 5", 200),
        ("SELECT id FROM events WHERE kind < 4 ORDER BY back LIMIT 5", 400),
        (
            "SELECT id FROM events WHERE kind = 8 ORDER BY moment DESC LIMIT 5",
            900,
        ),  # one or two in each batch
        ("SELECT text FROM events WHERE text <> 'text 3' ORDER BY around LIMIT 5", 700),
    ],
)
def test_few_rows_are_read(query: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < _rows_read(query, monkeypatch) <= most


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM events ORDER BY kind LIMIT 5",  # in no order
        "SELECT id FROM events ORDER BY back NULLS FIRST LIMIT 5",
        "SELECT id FROM events ORDER BY -moment LIMIT 5",
        "SELECT id FROM events WHERE substr(text, 6)::INTEGER >= 0 ORDER BY moment LIMIT 5",
        "SELECT id FROM events ORDER BY moment, substr(text, 6)::INTEGER LIMIT 5",
    ],
)
def test_all_rows_are_read_where_zones_do_not_tell(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _rows_read(query, monkeypatch) >= _ROWS


def test_an_error_behind_the_first_rows_is_raised() -> None:
    with tqp.connect() as connection:
        connection.register("events", _TABLES["events"])
        with pytest.raises(tqp.Error, match="Overflow in addition"):
            connection.sql(
                "SELECT id FROM events WHERE (9223372036854775807 - 2000 + moment)::BIGINT > 0 ORDER BY moment LIMIT 5"
            ).fetchall()


@pytest.mark.parametrize("descending", [False, True])
def test_batches_hold_all_rows_once_the_best_first(descending: bool) -> None:
    least = np.array([5, 0, 9, 9, 3, 1, 7], np.int16)
    zones = Zones(100, least, least + 1)
    whole: list[Batch] = [(0, 250), (300, 680)]
    found = ZoneOrder("", descending).best_first(whole, zones)
    rows = [row for (start, stop), _ in found for row in range(start, stop)]
    assert sorted(rows) == [*range(250), *range(300, 680)]
    values = [value for _, value in found]
    assert values == sorted(values, reverse=descending)


def test_batches_without_rows() -> None:
    zones = Zones(100, np.array([1], np.int8), np.array([1], np.int8))
    assert ZoneOrder("", False).best_first([(0, 0)], zones) == [((0, 0), 0)]
