"""What `program.code` prints for torch runs by itself: pasted, it computes what the program computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tqp
from tests import sqllogic
from tests.conftest import TPCH_SCALE_FACTOR
from tqp.result import Result
from tqp.tpch.data import DATA
from tqp.tpch.query import QUERY_NUMBERS, load_query

#: Files whose queries call kernels of many families.
FILES = ("case_labels", "casts", "dates", "group_by_units", "joins", "strings")


def _assert_pasted_code_runs(connection: tqp.Connection, query: str, params: Any = None) -> None:
    program = connection.compile(query, params)
    expected = Result(program.names, program.types, program()).fetchall()
    pasted: dict[str, Any] = {}
    exec(compile(program.code, "pasted", "exec"), pasted)  # noqa: S102
    for number, pipeline in enumerate(program.steps(), 1):
        pipeline.function = pasted[f"pipeline_{number}"]
    found = Result(program.names, program.types, program()).fetchall()
    assert repr(found) == repr(expected), query  # NaN is not equal to itself


def test_tpch(tpch_data: Path) -> None:
    with tqp.connect(backend="torch", threads=1) as connection:
        for table, path in DATA.paths(tpch_data).items():
            connection.register(table, str(path))
        for number in QUERY_NUMBERS:
            _assert_pasted_code_runs(connection, load_query(number, TPCH_SCALE_FACTOR).text)


@pytest.mark.parametrize("file", FILES)
def test_slt_files(file: str) -> None:
    records = sqllogic.parse((sqllogic.DIRECTORY / f"{file}.slt").read_text(encoding="utf-8"))
    with tqp.connect(backend="torch", threads=1) as connection:
        sqllogic.register_tables(records, connection)
        for record in records:
            if record.kind == "query":
                _assert_pasted_code_runs(connection, record.sql, record.params)


def test_the_text_for_arrays_has_no_imports() -> None:
    """It is for readers: arrays and tensors go through the calls of such a program in turn."""
    with tqp.connect() as connection:
        connection.register("t", {"x": [1, 2]})
        assert "import" not in connection.compile("SELECT x + 1 FROM t").code
