"""TIME WITH TIME ZONE on its way in and out: Python, frames, Arrow, Parquet, text, tables."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tqp.core.zoned_times import LAST_OFFSET, clock_of_stored, offset_of_stored, stored_of_time, stored_time

TEXTS = ("12:00:00+01", "11:00:00.5+00", "24:00:00-15:59:59", "00:00:00+15:59:59", "13:30:00+02:00:05")
_VALUES = ", ".join(f"(TIMETZ '{text}', {place})" for place, text in enumerate(TEXTS))
ROWS = f"(VALUES {_VALUES}, (NULL, 9)) t(v, n)"


def _time(hour: int, offset: datetime.timedelta | None = None) -> datetime.time:
    return datetime.time(hour, 2, 3, 4, tzinfo=None if offset is None else datetime.timezone(offset))


EAST = datetime.timedelta(hours=2, seconds=5)
TIMES = [_time(1, datetime.timedelta()), _time(23, EAST), _time(5, -EAST)]


def _duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def test_stored_integers_keep_clock_and_offset_and_sort_as_duckdb_sorts() -> None:
    pairs = [(clock, offset) for clock in (0, 1, 86_400 * 10**6) for offset in (-LAST_OFFSET, 0, LAST_OFFSET)]
    for clock, offset in pairs:
        stored = stored_time(clock, offset)
        assert (clock_of_stored(stored), offset_of_stored(stored)) == (clock, offset)
    texts = ", ".join(f"(TIMETZ '{text}')" for text in TEXTS)
    expected = _duckdb().sql(f"SELECT timetz_byte_comparable(v) FROM (VALUES {texts}) t(v)").fetchall()
    assert tqp.sql(f"SELECT timetz_byte_comparable(v) FROM (VALUES {texts}) t(v)").fetchall() == expected


def test_python_objects() -> None:
    query = f"SELECT v, [v] AS l, {{'v': v}} AS s, MAP {{n: v}} AS m FROM {ROWS} ORDER BY n"
    assert repr(tqp.sql(query).fetchall()) == repr(_duckdb().sql(query).fetchall())


def test_parameters() -> None:
    query = "SELECT $1, typeof($1), $1::VARCHAR, $1 < TIMETZ '01:02:03.000004+00'"
    texts = ("01:02:03.000004+00", "23:02:03.000004+02:00:05", "05:02:03.000004-02:00:05")
    with tqp.connect() as connection:
        for time, text in zip(TIMES, texts, strict=True):
            assert connection.sql(query, [time]).fetchall() == [(time, "TIME WITH TIME ZONE", text, False)]
        for time in (
            _time(1, datetime.timedelta(hours=16)),
            datetime.time(1, tzinfo=ZoneInfo("Europe/Berlin")),
        ):
            assert stored_of_time(time) is None
            with pytest.raises(tqp.BindError, match="no known offset from UTC"):
                connection.sql(query, [time])


def test_frames() -> None:
    frame = pandas.DataFrame({"v": [TIMES[0], None, *TIMES[1:]]})
    east = frame[:3]
    query = "SELECT v, typeof(v) FROM east"
    assert tqp.sql(query, {"east": east}).fetchall() == _duckdb().sql(query).fetchall()
    result = tqp.sql("SELECT v FROM frame", {"frame": frame})
    assert result.to_pandas()["v"].tolist() == [TIMES[0], None, *TIMES[1:]]
    assert result.fetchnumpy()["v"].tolist() == [TIMES[0], None, *TIMES[1:]]
    mixed = tqp.sql("SELECT v::VARCHAR FROM frame", {"frame": pandas.DataFrame({"v": [TIMES[1], _time(4)]})})
    assert mixed.fetchall() == [("23:02:03.000004+02:00:05",), ("04:02:03.000004+00",)]
    with pytest.raises(tqp.BindError, match="no known offset"):
        wrong = {"v": [_time(1, datetime.timedelta(hours=-16))]}
        tqp.sql("FROM frame", {"frame": pandas.DataFrame(wrong)})
    with pytest.raises(tqp.ExecutionError, match="cast it to TIME"):
        result.to_torch()
    assert "01:02:03.000004+00" in str(result)


def test_arrow_has_what_the_clocks_show() -> None:
    query = f"SELECT v, [v] AS l, {{'v': v}} AS s FROM {ROWS} ORDER BY n"
    expected, actual = _duckdb().sql(query).to_arrow_table(), tqp.sql(query).to_arrow()
    assert actual.schema.types == expected.schema.types
    assert actual.column("v").cast(pa.int64()).equals(expected.column("v").cast(pa.int64()))
    for place in (0, 1):
        assert actual.slice(place, 1).to_pylist() == expected.slice(place, 1).to_pylist()


def test_parquet_has_the_times_in_utc(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    query = f"SELECT v, n, [v] AS l, {{'v': v, 'n': n}} AS s, MAP {{n: v}} AS m FROM {ROWS}"
    tqp.sql(query).write_parquet(str(ours))
    _duckdb().sql(query).write_parquet(str(theirs))
    for file in (ours, theirs):
        read = f"SELECT v, l, s, m FROM '{file}' ORDER BY n"
        result, expected = tqp.sql(read), _duckdb().sql(read)
        assert list(map(str, result.types)) == list(map(str, expected.types))
        assert repr(result.fetchall()) == repr(expected.fetchall())
    read = "SELECT n FROM '{}' WHERE v > '11:00:00+00' ORDER BY n"
    assert tqp.sql(read.format(ours)).fetchall() == _duckdb().sql(read.format(theirs)).fetchall()
    assert tqp.sql(f"SELECT n FROM '{tmp_path}/*.parquet' WHERE v = '11:00:00'").fetchall() == [(0,), (0,)]


def test_parquet_of_times_without_a_zone(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    tqp.sql("SELECT TIME '12:00:00' AS t").write_parquet(str(file))
    assert list(tqp.sql(f"FROM '{file}'").types) == ["TIME"]
    for unit in ("ms", "ns"):
        table = pa.table(
            {"t": pa.array([TIMES[0].replace(tzinfo=None)], pa.time64("us")).cast(_unit(unit), safe=False)}
        )
        pq.write_table(table, file, write_time_adjusted_to_utc=True)
        query = f"SELECT t, typeof(t) FROM '{file}'"
        assert tqp.sql(query).fetchall() == _duckdb().sql(query).fetchall()
    with pytest.raises(tqp.UnsupportedError, match="beside TIME WITH TIME ZONE"):
        tqp.sql("SELECT TIME '12:00' AS a, [TIMETZ '12:00'] AS b").write_parquet(str(file))


def test_parquet_files_of_both_kinds_of_times(tmp_path: Path) -> None:
    tqp.sql("SELECT TIME '12:00:00' AS t").write_parquet(str(tmp_path / "a.parquet"))
    tqp.sql("SELECT TIMETZ '12:00:00' AS t").write_parquet(str(tmp_path / "b.parquet"))
    with pytest.raises(
        tqp.ExecutionError, match=r'"t" is time64\[us\] in UTC, but time64\[us\] in .*a.parquet'
    ):
        tqp.sql(f"FROM '{tmp_path}/*.parquet'").fetchall()


def _unit(unit: str) -> Any:
    return pa.time32(unit) if unit == "ms" else pa.time64(unit)


def test_files_of_text(tmp_path: Path) -> None:
    with tqp.connect() as connection:
        for end in ("csv", "json"):
            mine, other = tmp_path / f"mine.{end}", tmp_path / f"other.{end}"
            query = f"(SELECT v, n FROM {ROWS} WHERE v IS NOT NULL ORDER BY n)"
            connection.execute(f"COPY {query} TO '{mine}'")
            _duckdb().execute(f"COPY {query} TO '{other}'")
            assert mine.read_text() == other.read_text()
        read = f"SELECT * FROM read_csv('{tmp_path}/other.csv', types = {{'v': 'TIMETZ'}})"
        assert repr(connection.sql(read).fetchall()) == repr(_duckdb().sql(read).fetchall())
        connection.execute("CREATE TABLE kept (v TIMETZ, n INTEGER)")
        connection.execute(f"COPY kept FROM '{tmp_path}/other.csv'")
        assert connection.sql("SELECT v::VARCHAR FROM kept ORDER BY n").fetchall() == [
            (each,) for each in TEXTS
        ]


def test_tables_that_statements_change() -> None:
    with tqp.connect() as connection:
        connection.execute("CREATE TABLE t (v TIMETZ UNIQUE DEFAULT '12:00:00+01', l TIMETZ[], n INTEGER)")
        connection.execute("INSERT INTO t (n) VALUES (1)")
        connection.execute("INSERT INTO t SELECT v + to_hours(1), [v, NULL], 2 FROM t")
        connection.execute("UPDATE t SET l = [v, '01:00:00-08'] WHERE n = 1")
        rows = connection.sql("SELECT v::VARCHAR, l::VARCHAR FROM t ORDER BY n").fetchall()
        assert rows == [
            ("12:00:00+01", "['12:00:00+01', '01:00:00-08']"),
            ("13:00:00+01", "['12:00:00+01', NULL]"),
        ]
        with pytest.raises(tqp.Error, match="UNIQUE|unique"):
            connection.execute("INSERT INTO t (v) VALUES ('12:00:00+01')")
        connection.execute("INSERT INTO t (v) VALUES ('11:00:00+00')")  # the same instant, and another value
