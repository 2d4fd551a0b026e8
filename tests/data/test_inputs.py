"""Every object of `inputs.py` through tqp and DuckDB: what comes in, and every way out.

`inputs.txt` says of each what tqp makes of it and where DuckDB differs; `TQP_UPDATE_DOCS=1` writes it anew.
"""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import tqp
from tests.data.inputs import all_inputs
from tests.oracle import duckdb_database
from tqp.core.datatypes import TypeKind, holds_kind
from tqp.data.results.display import cell_texts
from tqp.result import Result

INPUTS = all_inputs()
EXPECTED = Path(__file__).parent / "inputs.txt"


@pytest.fixture(scope="module")
def connections() -> Any:
    with tqp.connect(threads=1) as ours, duckdb_database() as theirs:
        yield ours, theirs


def read(connections: Any, name: str) -> tuple[Result | tqp.Error, Any]:
    """What the two engines make of an object: a result each, or our error and None."""
    ours, theirs = connections
    result: Result | tqp.Error
    try:
        ours.register("t", INPUTS[name])
        result = ours.sql("SELECT * FROM t")
    except tqp.Error as error:
        result = error
    try:
        theirs.register("t", INPUTS[name])
        relation = theirs.sql("SELECT * FROM t")
        rows_of(relation)
    except (duckdb.Error, RuntimeError, TypeError):
        relation = None
    return result, relation


def types_of(result: Any) -> list[str]:
    return [str(data_type).strip('"') for data_type in result.types]


def rows_of(result: Any) -> list[tuple[Any, ...]]:
    """As `fetchall`; DuckDB's needs pytz for instants."""
    if isinstance(result, Result) or not any(
        "TIMESTAMP" in name and "Z" in name for name in types_of(result)
    ):
        return result.fetchall()
    return [tuple(row.values()) for row in result.to_arrow_table().to_pylist()]


def text(rows: list[tuple[Any, ...]]) -> str:
    shown = ", ".join(repr(row[0]) if len(row) == 1 else repr(row) for row in rows)
    shown = shown.replace("datetime.", "").replace("zoneinfo.ZoneInfo(key='Etc/UTC')", "timezone.utc")
    return re.sub("0x[0-9a-f]{6,}", "0x...", shown).replace("None", "NULL")


def described(result: Any) -> str:
    names = "" if list(result.columns) == ["x"] else f"({', '.join(result.columns)}) "
    return f"{names}{', '.join(types_of(result))}: {text(rows_of(result))}"


def test_what_comes_in(connections: Any) -> None:
    lines = []
    for name in INPUTS:
        ours, theirs = read(connections, name)
        if isinstance(ours, tqp.Error):
            mine = f"{type(ours).__name__}: {ours.message.partition(': cannot read a ')[0].partition('; tqp reads')[0]}"
        else:
            mine = described(ours)
        other = "refuses" if theirs is None else described(theirs)
        lines += [name, f"    {mine}"] + ([f"    DuckDB {other}"] if mine != other else [])
    found = "\n".join(lines) + "\n"
    if os.environ.get("TQP_UPDATE_DOCS"):
        EXPECTED.write_text(found, encoding="utf-8")
    assert found.splitlines() == EXPECTED.read_text(encoding="utf-8").splitlines()
    assert len(INPUTS) >= 200


@pytest.mark.parametrize("name", INPUTS)
def test_every_way_out(connections: Any, name: str) -> None:
    ours, theirs = read(connections, name)
    if isinstance(ours, tqp.Error):
        return
    rows = ours.fetchall()
    check_ways_out(ours, rows)
    if theirs is None or types_of(ours) != types_of(theirs):
        return
    arrow = theirs.to_arrow_table()
    assert list(ours.columns) == theirs.columns and text(rows) == text(rows_of(theirs))
    for mine, other in zip(ours.to_arrow().columns, arrow.columns, strict=True):
        other = (
            other.cast(pa.timestamp("us", "UTC"))
            if pa.types.is_timestamp(other.type) and other.type.tz
            else other
        )
        if pa.types.is_dictionary(mine.type):  # of an ENUM, whose order DuckDB does not declare
            assert mine.type == pa.dictionary(other.type.index_type, other.type.value_type, ordered=True)
        else:
            assert mine.type == other.type
        assert text([(value,) for value in mine.to_pylist()]) == text(
            [(value,) for value in other.to_pylist()]
        )
    if "INTERVAL" not in types_of(ours) and not any(holds_kind(each, TypeKind.UNION) for each in ours.types):
        assert repr(ours.to_polars().rows()) == repr(pl.DataFrame(ours.to_arrow()).rows())
    if "TIME WITH TIME ZONE" not in types_of(ours):  # of which DuckDB makes no frames
        check_pandas(ours.to_pandas(), theirs.df())
    casts = theirs.project(", ".join(f'"{column}"::VARCHAR' for column in theirs.columns)).fetchall()
    cells = zip(*(cell_texts(column) for column in ours._table.columns), strict=True)
    assert casts == list(cells)


def check_ways_out(result: Result, rows: list[tuple[Any, ...]]) -> None:
    """All ways out of one result hold the same rows."""
    has_unions = any(
        holds_kind(each, TypeKind.UNION) for each in result.types
    )  # which Polars and tensors lack, and Arrow has no NULLs of
    for index, column in enumerate(result.columns):
        values = [row[index] for row in rows]
        nulls = [value is None for value in values]
        frame, arrow = result.to_pandas(), result.to_arrow()
        assert len(frame) == arrow.num_rows == len(result) == len(rows)
        if not has_unions:
            polars = result.to_polars()
            assert polars.height == len(rows)
            assert arrow.column(index).is_null().to_pylist() == nulls
            assert polars.to_series(index).is_null().to_list() == nulls
        if not result.types[index].is_float:  # where pandas has NaN for NULL
            assert frame.iloc[:, index].isna().tolist() == nulls
        tensors = result.to_torch(strings="codes") if fits_tensors(values) and not has_unions else {}
        if str(result.types[index]) in ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "FLOAT") and tensors:
            tensor = tensors[list(frame.columns)[index]]
            expected = [0 if value is None else value for value in values]
            got = torch.where(torch.tensor(nulls, dtype=torch.bool), torch.zeros_like(tensor), tensor)
            np.testing.assert_array_equal(got.double().numpy(), np.array(expected, np.float64))
        assert column in repr(result)


def fits_tensors(values: list[Any]) -> bool:
    return not any(
        isinstance(value, list | dict)
        or (isinstance(value, datetime.time) and value.tzinfo is not None)
        or (isinstance(value, int) and not -(2**63) <= value < 2**63)
        for value in values
    )


def check_pandas(mine: pd.DataFrame, other: pd.DataFrame) -> None:
    """The same dtypes and values, but for what docs/data.md lists."""
    assert list(mine.columns) == list(other.columns)
    for column in mine.columns:
        left, right = mine[column], other[column]
        if str(right.dtype).startswith("datetime64[us, "):
            right = right.dt.tz_convert("UTC")
        if right.dtype == object:  # bytes and None, where DuckDB has bytearrays and NA; text without a row
            plain = {bytearray: bytes, type(pd.NA): lambda _: None}
            right = pd.Series(
                [plain.get(type(value), lambda same: same)(value) for value in right], dtype=object
            )
            left = left.astype(object)
        pd.testing.assert_series_equal(left, right, check_names=False)
