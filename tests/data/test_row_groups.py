"""Row groups of Parquet files that a query's conditions rule out are not read, and no answer shows it."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tqp.data.sources.parquet.one_file import ParquetFile

ROWS, GROUP = 100, 10
DAY = datetime.date(2020, 1, 1)
INSTANT = datetime.datetime(2020, 1, 1)


def ascending_table() -> pa.Table:
    """Every column ascends; of row group 3 all are NULL, of the others some."""
    numbers = [None if row // GROUP == 3 or row % 7 == 6 else row - 20 for row in range(ROWS)]

    def each(function: Any, arrow_type: pa.DataType) -> pa.Array:
        return pa.array([None if number is None else function(number) for number in numbers], arrow_type)

    return pa.table(
        {
            "row": pa.array(range(ROWS)),
            "i": each(int, pa.int32()),
            "big": each(lambda number: number * 10**15, pa.int64()),
            "u": each(lambda number: number + 2**31, pa.uint32()),
            "d": each(lambda number: DAY + datetime.timedelta(number), pa.date32()),
            "ts": each(lambda number: INSTANT + datetime.timedelta(number), pa.timestamp("ms")),
            "tz": each(lambda number: INSTANT + datetime.timedelta(number), pa.timestamp("us", "UTC")),
            "m": each(lambda number: Decimal(number).scaleb(-1), pa.decimal128(9, 2)),
            "wide": each(Decimal, pa.decimal128(30, 0)),
            "f": each(lambda number: float("nan") if number % 10 == 5 else number / 2, pa.float64()),
            "s": each(lambda number: f"{number + 20:03}", pa.string()),
        }
    )


@pytest.fixture
def groups_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[int]]:
    """The row groups of which anything is read."""
    seen: set[int] = set()
    read = ParquetFile.read

    def recorded(file: Any, position: int, groups: Any, way: Any) -> Any:
        seen.update(groups)
        return read(file, position, groups, way)

    monkeypatch.setattr(ParquetFile, "read", recorded)
    yield seen


@pytest.fixture(params=["statistics", "none", "floats"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    statistics = {"statistics": True, "none": False, "floats": ["f", "s"]}[request.param]
    pq.write_table(
        ascending_table(),
        path,
        row_group_size=GROUP,
        store_decimal_as_integer=True,
        write_statistics=statistics,
    )
    return path


def both(path: object, query: str) -> tuple[Any, Any]:
    answers = []
    for table in (path, ascending_table()):
        with tqp.connect(threads=1) as connection:
            answers.append(connection.register("t", table).sql(query).fetchall())
    return answers[0], answers[1]


CONDITIONS = [
    "i > 70",
    "i >= 70",
    "-15 > i",
    "i = 33",
    "i = 1000",
    "i BETWEEN 5 AND 12",
    "i IN (-20, 77)",
    "i NOT IN (5, 6)",
    "i < -15 OR i > 75",
    "i > 70 AND i < 0",
    "NOT i > -10",
    "i IS NULL",
    "i > 70 OR i IS NULL",
    "i > 70 IS NOT TRUE",
    "i > NULL",
    "i < 2.5",
    "i + 100 > 170",
    "big > 7e16",
    "big > 70000000000000000",
    "u > 2147483720",
    "u < 10",
    "d >= DATE '2020-03-01'",
    "d < DATE '2020-01-01' - INTERVAL 10 DAY",
    "d = '2020-02-02'",
    "ts > TIMESTAMP '2020-03-10 12:00:00'",
    "tz > TIMESTAMPTZ '2020-03-10 12:00:00+00'",
    "m > 7.55",
    "m > 7",
    "m IN (1.10, 7.90)",
    "wide > 70",
    "f > 36",
    "f > 36 OR f < -9",
    "s > '095'",
    "s = '001'",
    "i > 70 AND s LIKE '%1'",
    "i > 70 AND 10 / (i - 71) IS NULL",
    "true",
    "i > 9999999999",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_answers_are_those_of_all_rows(file: Path, condition: str) -> None:
    for query in (
        f"SELECT row, i, d, m, s FROM t WHERE {condition}",
        f"SELECT count(*), sum(row), min(s) FROM t WHERE {condition}",
        f"SELECT row FROM t WHERE {condition} ORDER BY s DESC LIMIT 3",
    ):
        read, expected = both(file, query)
        assert read == expected


JOINS = [
    ("SELECT a.row, b.row FROM t a, t b WHERE a.i = b.i AND a.i > 70 AND b.d >= DATE '2020-03-15'", 4),
    # Two scans that want different rows, one that wants all.
    ("SELECT a.row, b.row FROM t a, t b WHERE a.i > 77 AND b.i < -17", 2),
    ("SELECT a.row, b.row FROM t a, t b WHERE a.i > 77 AND b.row = a.row - 50", ROWS // GROUP),
    # Rows without a partner come out too.
    ("SELECT a.row, b.row FROM t a LEFT JOIN t b ON a.row = b.row AND b.i > 70", ROWS // GROUP),
    ("SELECT a.row, b.row FROM t a LEFT JOIN t b ON a.row = b.row AND a.i > 70", ROWS // GROUP),
    ("SELECT a.row, b.row FROM t a FULL JOIN t b ON a.row = b.row AND a.i > 70", ROWS // GROUP),
    ("SELECT row FROM t WHERE i > 75 AND row NOT IN (SELECT row FROM t WHERE i > 77)", 1),
    ("SELECT row FROM t WHERE i > 75 AND EXISTS (SELECT 1 FROM t u WHERE u.i = t.i - 95)", ROWS // GROUP),
    ("SELECT row FROM t WHERE i > (SELECT max(i) - 3 FROM t)", ROWS // GROUP),
    ("SELECT row FROM t WHERE i > 75 UNION ALL SELECT row FROM t WHERE i < -15", 2),
    ("SELECT row FROM t WHERE i > 75 UNION ALL SELECT row FROM t WHERE row < 5", 2),
    ("WITH c AS (SELECT * FROM t) SELECT a.row FROM c a, c b WHERE a.i > 77 AND b.i = 1", ROWS // GROUP),
    ("WITH c AS (SELECT * FROM t WHERE i > 70) SELECT a.row FROM c a, c b WHERE a.i = b.i", 1),
    ("SELECT row FROM (SELECT * FROM t LIMIT 50) WHERE i > 20", ROWS // GROUP),
    ("SELECT i, count(*) FROM t WHERE i > 70 GROUP BY i", 1),
    ("SELECT max(row) FROM t HAVING max(i) > 70", ROWS // GROUP),
]


@pytest.mark.parametrize(("query", "most"), JOINS)
def test_what_other_scans_want_is_read(query: str, most: int, tmp_path: Path, groups_read: set[int]) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(ascending_table(), path, row_group_size=GROUP)
    read, expected = both(path, query)
    assert sorted(read, key=str) == sorted(expected, key=str)
    assert len(groups_read) <= most


@pytest.mark.parametrize(
    ("condition", "groups"),
    [
        ("i > 70", {9}),
        ("i BETWEEN 5 AND 12", {2}),
        ("i IN (-20, 77)", {0, 9}),
        ("big > 70000000000000000", {9}),
        ("d >= DATE '2020-03-13' AND d < DATE '2020-03-13' + INTERVAL 1 MONTH", {9}),
        ("ts > TIMESTAMP '2020-03-13 12:00:00'", {9}),
        ("tz > TIMESTAMPTZ '2020-03-13 12:00:00+00'", {9}),
        ("m > 7.55", {9}),
        ("i = 1000", set()),
        ("i < -15 OR i > 75", {0, 9}),
        ("i IS NOT NULL AND i < -10", {0}),
        ("i + 100 > 170", {9}),
    ],
)
def test_row_groups_that_are_ruled_out_are_not_read(
    condition: str, groups: set[int], tmp_path: Path, groups_read: set[int]
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(ascending_table(), path, row_group_size=GROUP, store_decimal_as_integer=True)
    both(path, f"SELECT count(*), sum(row), min(s) FROM t WHERE {condition}")
    assert groups_read == groups


def test_files_whose_directory_is_ruled_out_are_not_read(tmp_path: Path, groups_read: set[int]) -> None:
    for year in range(2015, 2025):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"x": [year, year + 1]}), tmp_path / f"year={year}" / "t.parquet")
    (tmp_path / "year=2015" / "t.parquet").write_bytes((tmp_path / "year=2016" / "t.parquet").read_bytes())
    with tqp.connect(threads=1) as connection:
        connection.register("t", tmp_path)
        assert connection.sql("SELECT year, x FROM t WHERE year > 2023").fetchall() == [
            (2024, 2024),
            (2024, 2025),
        ]
        assert connection.sql("SELECT count(*) FROM t WHERE year < 2010").fetchall() == [(0,)]
        assert connection.sql("SELECT sum(x), count(*) FROM t").fetchall() == [(40402, 20)]


def test_later_queries_read_the_rest_and_memory_counts_all(tmp_path: Path, groups_read: set[int]) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(ascending_table(), path, row_group_size=GROUP)
    with tqp.connect(threads=1) as connection:
        connection.register("t", path)
        one = "SELECT sum(row), count(i) FROM t WHERE i > 70"
        answer = connection.sql(one).fetchall()
        assert groups_read == {9}
        kept = {row[:3]: row[3] for row in connection.memory().fetchall()}
        assert kept["t", "row", "values"] == GROUP
        groups_read.clear()
        assert connection.sql(one).fetchall() == answer
        assert not groups_read
        # Other constants, over and over: at some time the whole columns are read, and nothing after that.
        for low in range(70, -30, -10):
            query = f"SELECT count(*) FROM t WHERE i BETWEEN {low} AND {low + 5}"
            expected = both(path, query)[1]
            assert connection.sql(query).fetchall() == expected
        assert connection.sql("SELECT count(*), sum(row), count(i) FROM t").fetchall() == [
            (ROWS, sum(range(ROWS)), ascending_table()["i"].length() - ascending_table()["i"].null_count)
        ]
        groups_read.clear()
        assert connection.sql("SELECT sum(row), count(i) FROM t WHERE i > 71").fetchall()
        assert not groups_read
        assert connection.sql(one).fetchall() == answer


def test_constants_of_one_shape_each_have_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(ascending_table(), path, row_group_size=GROUP)
    with tqp.connect(threads=1) as connection:
        connection.register("t", path)
        for low in (70, -20, 30, 71, -19, 31, 70, 40, 50, 60, 0):
            for query in ("SELECT row FROM t WHERE i >= $low AND i < $low + 3",):
                rows = connection.sql(query, {"low": low}).fetchall()
                text = connection.sql(query.replace("$low", str(low))).fetchall()
                assert rows == text == both(ascending_table(), query.replace("$low", str(low)))[1]


def test_a_file_that_changes_is_read_again_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(ascending_table(), path, row_group_size=GROUP)
    with tqp.connect(threads=1) as connection:
        connection.register("t", path)
        assert connection.sql("SELECT count(*) FROM t WHERE i > 70").fetchall() == [(8,)]
        pq.write_table(ascending_table().slice(0, 95), path, row_group_size=GROUP)
        assert connection.sql("SELECT count(*) FROM t WHERE i > 70").fetchall() == [(4,)]
        path.write_bytes(b"PAR1 nothing of the kind PAR1")
        with pytest.raises(tqp.Error, match=r"t\.parquet"):
            connection.sql("SELECT count(*) FROM t WHERE i > 70")
