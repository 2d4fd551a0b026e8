"""What a first query reads for the rows that it wants alone is what it reads of all rows, and nothing of it is kept."""

import datetime
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tests.data.test_row_groups import CONDITIONS, JOINS, ascending_table
from tqp import wanted_rows
from tqp.data.sources import base
from tqp.data.sources.chosen_rows import ChosenRows

KINDS = ["arrow", "chunks", "pandas", "parquet"]


@pytest.fixture(autouse=True)
def chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Rows are chosen of any table, however many they are; how many of each time."""
    monkeypatch.setattr(base, "WORTH_CHOOSING", 1)
    monkeypatch.setattr(wanted_rows, "_LARGEST_SHARE", 1.0)
    seen: list[int] = []

    class Recorded(ChosenRows):
        def __init__(self, table: Any, rows: Any) -> None:
            super().__init__(table, rows)
            seen.append(len(rows))

    monkeypatch.setattr(wanted_rows, "ChosenRows", Recorded)
    yield seen


def source(kind: str, table: pa.Table, folder: Path) -> Any:
    if kind == "chunks":
        return pa.concat_tables([table.slice(start, 7) for start in range(0, table.num_rows, 7)])
    if kind == "pandas":
        return table.to_pandas()
    if kind == "parquet":
        path = folder / "t.parquet"
        pq.write_table(table, path, row_group_size=13, store_decimal_as_integer=True)
        return path
    return table


def answers(data: Any, query: str, *, times: int = 1, **options: Any) -> list[list[tuple[Any, ...]]]:
    """The rows of a query that is sent so often to one connection, over a table that is new to tqp."""
    if isinstance(data, pa.Table):
        data = data.select(data.column_names)
    with tqp.connect(threads=1, **options) as connection:
        connection.register("t", data)
        return [connection.sql(query).fetchall() for _ in range(times)]


def check(data: Any, query: str, backends: Iterable[str] = ("host",)) -> None:
    [expected] = answers(data, query, disabled_rules=["choose_rows"])
    for backend in backends:
        for rows in answers(data, query, times=2, backend=backend):
            assert sorted(map(repr, rows)) == sorted(map(repr, expected)), query


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_answers_are_those_of_all_rows(kind: str, condition: str, tmp_path: Path) -> None:
    data = source(kind, ascending_table(), tmp_path)
    check(data, f"SELECT row, i, big, u, d, ts, tz, m, wide, f, s FROM t WHERE {condition}")
    check(data, f"SELECT count(*), sum(row), min(s), max(m) FROM t WHERE {condition}")


@pytest.mark.parametrize("query", [query for query, _ in JOINS])
def test_each_scan_has_its_rows(query: str, tmp_path: Path) -> None:
    if "LIMIT" not in query:
        check(source("chunks", ascending_table(), tmp_path), query)


def every_kind() -> pa.Table:
    """A column of each kind of type, with NULLs, and a number of each row."""
    rows = range(60)
    words = [None if row % 11 == 3 else ("ein sehr langes Wort " * (row % 3) + str(row % 5)) for row in rows]
    return pa.table(
        {
            "n": pa.array(rows, pa.int32()),
            "b": pa.array([None if row % 7 == 1 else row % 2 == 0 for row in rows]),
            "x": pa.array([float("nan") if row % 9 == 2 else row / 4 for row in rows], pa.float32()),
            "text": pa.array(words),
            "view": pa.array(words, pa.string_view()),
            "codes": pa.array(words).dictionary_encode(),
            "many": pa.array([f"{row:040}" for row in rows], pa.string_view()),
            "blob": pa.array([None if row == 5 else bytes([row, 0]) for row in rows]),
            "list": pa.array([None if row % 8 == 4 else [row] * (row % 4) for row in rows]),
            "struct": pa.array([None if row % 8 == 4 else {"a": row, "b": str(row)} for row in rows]),
            "wide": pa.array([Decimal(row * 10**25) for row in rows], pa.decimal128(38, 0)),
            "span": pa.array([datetime.timedelta(row) for row in rows], pa.duration("us")),
            "none": pa.nulls(len(rows)),
            "runs": pa.RunEndEncodedArray.from_arrays([10, 60], [1, 2]),
            "id": pa.ExtensionArray.from_storage(
                pa.uuid(), pa.array([bytes([row] * 16) for row in rows], pa.binary(16))
            ),
            "sorted": pa.array([row // 3 for row in rows]),
        }
    )


@pytest.mark.parametrize("kind", ["arrow", "chunks", "parquet"])
@pytest.mark.parametrize("condition", ["n > 50", "n < 0", "n IN (1, 4, 30)", "n BETWEEN 2 AND 40 AND x > 1"])
def test_every_type_is_read(kind: str, condition: str, tmp_path: Path, chosen: list[int]) -> None:
    table = every_kind()
    if kind == "parquet":
        table = table.drop_columns(["span", "runs"])
    data = source(kind, table, tmp_path)
    check(data, f"SELECT * FROM t WHERE {condition}", ("host", "torch"))
    assert chosen or condition == "n < 0"  # which no row satisfies by the column's range
    check(data, f"SELECT text, count(*), min(many), max(sorted) FROM t WHERE {condition} GROUP BY text")
    check(data, "SELECT a.n, b.n FROM t a, t b WHERE a.sorted = b.sorted AND a.n > 50 AND b.n > 53")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_chosen_once_and_not_kept(kind: str, tmp_path: Path, chosen: list[int]) -> None:
    table = ascending_table()
    with tqp.connect(threads=1) as connection:
        connection.register("t", source(kind, table, tmp_path))
        query = "SELECT sum(row), min(s) FROM t WHERE u > 2147483720"
        first = connection.sql(query).fetchall()
        assert len(chosen) == 1 and chosen[0] < table.num_rows
        kept = {row[1] for row in connection.memory().fetchall()}
        assert "u" in kept and "row" not in kept
        assert len(connection._queries.compiled.programs) == 0
        assert connection.sql(query).fetchall() == first
        assert len(chosen) == 1
        assert {"row", "s", "u"} <= {row[1] for row in connection.memory().fetchall()}
        assert connection.sql("SELECT count(m) FROM t WHERE u > 2147483715").fetchall()
        assert len(chosen) == 2
        assert connection.sql("SELECT count(m) FROM t WHERE u > 2147483716").fetchall()
        assert len(chosen) == 2


def test_a_compiled_program_reads_all_rows(chosen: list[int]) -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", ascending_table())
        connection.compile("SELECT sum(row) FROM t WHERE i > 70")
        connection.explain("SELECT sum(row) FROM t WHERE i > 70")
    assert not chosen


def test_few_rows_of_many_are_found_by_an_estimate(
    monkeypatch: pytest.MonkeyPatch, chosen: list[int]
) -> None:
    monkeypatch.setattr(wanted_rows, "_LARGEST_SHARE", 0.1)
    for low, expected in ((0, []), (76, [2])):
        chosen.clear()
        answers(ascending_table(), f"SELECT sum(row) FROM t WHERE i > {low}")
        assert chosen == expected


OUTER = [
    "SELECT a.row, b.row FROM t a LEFT JOIN (SELECT * FROM u WHERE i > 70) b ON a.row = b.row WHERE b.i > 70",
    "SELECT a.row, b.row FROM t a LEFT JOIN (SELECT * FROM u WHERE i > 70) b ON a.row = b.row WHERE b.i > 70 OR a.i < 5",
    "SELECT a.row, b.row FROM u a LEFT JOIN t b ON a.row = b.row AND b.i > 60 WHERE a.i > 50",
    "SELECT a.row, b.row FROM t a FULL JOIN u b ON a.row = b.row AND a.i > 70 AND b.i > 75",
    "SELECT row FROM t WHERE i > 70 AND row IN (SELECT row FROM u WHERE i > 75)",
    "SELECT row FROM t WHERE i > 70 AND row NOT IN (SELECT row FROM u WHERE i > 75)",
    "SELECT row FROM t WHERE i > 70 AND EXISTS (SELECT 1 FROM u WHERE u.row = t.row AND u.i > 75)",
    "SELECT row, (SELECT max(row) FROM u WHERE u.i > t.i) FROM t WHERE i > 70",
]
PARTNERS = [
    "SELECT a.row, b.row, b.s FROM t a, u b WHERE a.row = b.row AND a.s = '095'",
    "SELECT a.row, b.row FROM t a, u b WHERE a.i = b.i AND a.i > 70 AND b.d >= DATE '2020-03-15'",
    "SELECT a.row, b.row FROM t a JOIN u b ON a.row = b.row WHERE a.s LIKE '%5' AND (b.i > 70 OR b.i < 3)",
    "SELECT a.row, b.m FROM t a, u b WHERE (a.row = b.row AND a.s = '095') OR (a.row = b.row AND a.s = '010' AND b.i < 5)",
    "SELECT a.row, b.m FROM t a, u b WHERE a.m = b.m AND a.i > 70",
    "SELECT a.row, b.m FROM t a, u b WHERE a.big = b.big AND a.i > 70",
    "SELECT a.row, b.f FROM t a, u b WHERE a.f = b.f AND a.i > 70",
    "SELECT a.row, b.row, c.row FROM t a, u b, v c WHERE a.i > 74 AND a.row = b.row AND b.i = c.i",
    "SELECT a.row, b.row FROM t a, u b WHERE a.i > 70 AND a.row = b.row + 1",
    "SELECT a.row, b.row FROM t a, u b WHERE a.i > 70 AND a.i = b.row AND b.i = a.row",
    "SELECT a.row, count(b.row) FROM t a LEFT JOIN u b ON a.row = b.row WHERE a.i > 70 GROUP BY a.row",
    "SELECT a.row, b.row FROM t a, u b WHERE a.row = b.row AND a.i > 1000",
    "SELECT a.row FROM t a, u b WHERE a.row = b.row AND a.i > 70 AND b.i > (SELECT min(i) FROM v WHERE v.row = a.row)",
    "SELECT a.row, b.row, c.m FROM t a, u b, v c WHERE a.i > 30 AND a.row = b.row AND b.d < DATE '2020-03-10' AND b.row = c.row AND c.i > 35",
    "SELECT a.row, b.s, c.m FROM t a, u b, v c WHERE c.i > 40 AND c.i = b.i AND a.i = b.i AND a.d < DATE '2020-03-11'",
    "SELECT a.row, c.m FROM t a LEFT JOIN (u b JOIN v c ON b.row = c.row AND c.i > 40) ON a.row = b.row WHERE a.i > 35",
    "SELECT a.row, b.m FROM t a LEFT JOIN v b ON a.row = b.row AND b.i > 40 WHERE a.i > 30 AND b.i < 60",
]
SUBQUERIES = [
    "SELECT row, s FROM u WHERE row IN (SELECT row FROM t WHERE i > 74)",
    "SELECT row FROM t WHERE i > 70 AND row IN (SELECT row FROM u WHERE s LIKE '%5')",
    "SELECT row FROM t WHERE i > 70 AND NOT EXISTS (SELECT 1 FROM u WHERE u.row = t.row AND u.s LIKE '%5')",
    "SELECT row FROM t WHERE i > 70 AND m NOT IN (SELECT m FROM u WHERE u.i = t.i)",
    "SELECT row FROM t WHERE i > 70 AND EXISTS (SELECT 1 FROM u, v WHERE u.row = t.row AND v.i = u.i)",
    "SELECT row FROM t WHERE i > 70 AND 2 * row > (SELECT sum(row) FROM u WHERE u.i = t.i)",
    "SELECT row, (SELECT count(*) FROM u WHERE u.row = t.row AND u.i > 75) FROM t WHERE i > 70",
    "SELECT row, (SELECT s FROM u WHERE u.row = t.row) FROM t WHERE i > 70",
    "SELECT row FROM t WHERE i > 70 AND row <= ALL (SELECT row FROM u WHERE u.i = t.i)",
    "SELECT a.row, n FROM t a JOIN (SELECT row, count(*) AS n FROM u GROUP BY row) b ON a.row = b.row WHERE a.i > 70",
    "SELECT a.row, n FROM t a LEFT JOIN (SELECT i, count(*) AS n FROM u GROUP BY i) b ON a.row = b.i WHERE a.i > 70",
    "SELECT * FROM (SELECT i, count(*) AS n FROM t GROUP BY i) WHERE i > 70",
    "SELECT * FROM (SELECT i, count(*) AS n, max(row) AS row FROM t GROUP BY i) WHERE i > 70 OR row < 9",
    "SELECT * FROM (SELECT max(i) AS i, count(*) AS n FROM t) WHERE i > 70",
    "SELECT * FROM (SELECT i, row + 1 AS row FROM t) WHERE i > 70 AND row > 90",
    "SELECT * FROM (SELECT i, row FROM t ORDER BY row LIMIT 5) WHERE i > 3",
]


@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize("kind", ["chunks", "parquet"])
@pytest.mark.parametrize("query", [*OUTER, *PARTNERS, *SUBQUERIES])
def test_tables_that_are_joined(
    query: str, kind: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wanted_rows, "_LARGEST_SHARE", share)
    tables = {"t": ascending_table(), "u": ascending_table().slice(0, 98), "v": ascending_table().slice(10)}

    def asked(**options: Any) -> list[Any]:
        with tqp.connect(threads=1, **options) as connection:
            for name, table in tables.items():
                (tmp_path / name).mkdir(exist_ok=True)
                connection.register(name, source(kind, table, tmp_path / name))
            return [sorted(map(repr, connection.sql(query).fetchall())) for _ in range(2)]

    expected = asked(disabled_rules=["choose_rows"])
    assert asked() == expected
    assert asked(backend="torch") == expected


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT sum(x), count(y) FROM t, many WHERE row = k AND s = '045'", (4950, 10)),
        ("SELECT row FROM t WHERE s = '045' AND row IN (SELECT k FROM many WHERE x = y)", (45,)),
        ("SELECT row FROM t WHERE s = '045' AND EXISTS (SELECT 1 FROM many WHERE k = row AND x = y)", (45,)),
        ("SELECT (SELECT sum(x) FROM many WHERE k = row) FROM t WHERE s = '045'", (4950,)),
        ("SELECT row FROM t WHERE s = '045' AND 200 * i > (SELECT sum(x) FROM many WHERE k = row)", (45,)),
    ],
)
def test_rows_with_a_partner_among_few_are_few(
    query: str, answer: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, chosen: list[int]
) -> None:
    monkeypatch.setattr(wanted_rows, "_LARGEST_SHARE", 0.1)
    many = pa.table({"k": [row % 100 for row in range(1000)], "x": range(1000), "y": range(1000)})
    with tqp.connect(threads=1) as connection:
        connection.register("t", ascending_table())
        connection.register("many", many)
        assert connection.sql(query).fetchall() == [answer]
    assert chosen == [1, 10]


@pytest.mark.parametrize(
    ("condition", "num_chosen"),
    [
        ("many.day < 30 AND area.name = 'c'", [60]),  # neither leaves few
        ("many.day < 30 AND area.name IN ('b', 'c')", []),
        ("many.day < 30 AND area.id > 0", []),
        ("area.name = 'c' AND shops.kind = 1", [100]),
        ("area.name = 'c'", []),
        ("many.day < 5 AND area.name = 'c'", [50]),  # its own condition leaves few
    ],
)
def test_smaller_tables_tell_of_a_large_one_together(
    condition: str, num_chosen: list[int], monkeypatch: pytest.MonkeyPatch, chosen: list[int]
) -> None:
    monkeypatch.setattr(base, "WORTH_CHOOSING", 500)
    monkeypatch.setattr(wanted_rows, "_LARGEST_SHARE", 0.1)
    rows = range(1000)
    tables = {
        "area": pa.table({"id": range(5), "name": list("abcde")}),
        "shops": pa.table(
            {
                "id": range(50),
                "area": [row % 5 for row in range(50)],
                "kind": [row // 25 for row in range(50)],
            }
        ),
        "many": pa.table(
            {"shop": [row % 50 for row in rows], "day": [row // 10 for row in rows], "x": rows, "y": rows}
        ),
    }
    query = (
        "SELECT sum(x), count(y), min(kind) FROM area, shops, many"
        f" WHERE area.id = shops.area AND shop = shops.id AND {condition}"
    )

    def asked(**options: Any) -> list[Any]:
        with tqp.connect(threads=1, **options) as connection:
            for name, table in tables.items():
                connection.register(name, table.select(table.column_names))
            return [connection.sql(query).fetchall() for _ in range(2)]

    expected = asked(disabled_rules=["choose_rows"])
    assert asked() == expected
    assert chosen == num_chosen


def test_a_condition_that_may_raise_is_left_to_the_query(chosen: list[int]) -> None:
    check(ascending_table(), "SELECT count(row) FROM t WHERE i > 75 AND 10 / (i - 71) < 5")
    assert chosen
    chosen.clear()
    with pytest.raises(tqp.ExecutionError, match="out of range"):
        answers(ascending_table(), "SELECT count(row) FROM t WHERE CAST(big AS INTEGER) > 75")
    assert not chosen
