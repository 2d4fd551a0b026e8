"""UHUGEINT on its way in and out: Python, Arrow, frames, tensors, files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pandas
import pytest

import tqp

NUMBERS = [0, 5, 2**64 - 1, 2**64, 2**127 - 1, 2**127, 2**128 - 1]
_VALUES = ", ".join(f"('{number}'::UHUGEINT, {place})" for place, number in enumerate(NUMBERS))
ROWS = f"(VALUES {_VALUES}, (NULL, 9)) t(v, n)"
QUERY = f"SELECT v, [v] AS l, {{'v': v}} AS s FROM {ROWS} ORDER BY n"


def test_python_objects() -> None:
    assert tqp.sql(QUERY).fetchall() == duckdb.sql(QUERY).fetchall()
    assert str(NUMBERS[-1]) in str(tqp.sql(QUERY))


def test_parameters() -> None:
    query = "SELECT $1, typeof($1), $1::VARCHAR, $1 > 5"
    with tqp.connect() as connection:
        for number in (2**127, 2**128 - 1):
            assert connection.sql(query, [number]).fetchall() == duckdb.execute(query, [number]).fetchall()
        for number in (2**128, -(2**127) - 1):
            with pytest.raises(tqp.BindError, match="does not fit a HUGEINT or UHUGEINT"):
                connection.sql(query, [number])
        places = f"SELECT n FROM {ROWS} WHERE v IN $l ORDER BY n"
        assert connection.sql(places, {"l": [5, 2**128 - 1]}).fetchall() == [(1,), (6,)]


def test_arrow_has_those_of_127_bits() -> None:
    query = f"SELECT v, [v] AS l FROM {ROWS} WHERE v < 2::UHUGEINT << 125 OR v IS NULL ORDER BY n"
    expected, actual = duckdb.sql(query).to_arrow_table(), tqp.sql(query).to_arrow()
    assert actual.schema.types == expected.schema.types
    assert actual.to_pylist() == expected.to_pylist()
    with pytest.raises(tqp.ExecutionError, match="beyond 127 bits.* cast it to VARCHAR"):
        tqp.sql(QUERY).to_arrow()


def test_frames_and_tensors() -> None:
    result = tqp.sql(f"SELECT v FROM {ROWS} ORDER BY n")
    floats = [float(number) for number in NUMBERS]
    frame = result.to_pandas()["v"]
    assert frame.dtype == np.float64 and frame.tolist()[:-1] == floats and np.isnan(frame.iloc[-1])
    numbers = result.fetchnumpy()["v"]
    assert numbers.dtype == np.float64 and numbers.tolist() == [*floats, None]
    for number in (2**63, *NUMBERS[2:]):
        with pytest.raises(tqp.ExecutionError, match="beyond 64 bits"):
            tqp.sql(f"SELECT '{number}'::UHUGEINT AS v").to_torch()
    assert tqp.sql("SELECT 5::UHUGEINT AS v").to_torch()["v"].tolist() == [5]
    with pytest.raises(tqp.Error, match="128 bits"):  # whole numbers of frames are HUGEINT at most
        tqp.sql("FROM frame", {"frame": pandas.DataFrame({"v": [2**128 - 1]})})


def test_files(tmp_path: Path) -> None:
    with tqp.connect() as connection:
        for end in ("csv", "json"):
            mine, other = tmp_path / f"mine.{end}", tmp_path / f"other.{end}"
            query = f"(SELECT v, n FROM {ROWS} WHERE v IS NOT NULL ORDER BY n)"
            connection.execute(f"COPY {query} TO '{mine}'")
            duckdb.execute(f"COPY {query} TO '{other}'")
            assert mine.read_text() == other.read_text()
        read = f"SELECT * FROM read_csv('{tmp_path}/other.csv', types = {{'v': 'UHUGEINT'}})"
        assert connection.sql(read).fetchall() == duckdb.sql(read).fetchall()
        file = tmp_path / "t.parquet"
        connection.execute(f"COPY (SELECT v FROM {ROWS} WHERE n < 4) TO '{file}'")
        assert connection.sql(f"FROM '{file}'").fetchall() == [(number,) for number in NUMBERS[:4]]
        with pytest.raises(tqp.ExecutionError, match="beyond 127 bits"):
            connection.execute(f"COPY (SELECT v FROM {ROWS}) TO '{file}'")
