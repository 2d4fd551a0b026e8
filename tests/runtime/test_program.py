"""Compiled programs: their code, their buffers, and that they are never stale."""

from __future__ import annotations

import datetime
import gc

import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp
from tqp.result import Result
from tqp.runtime import frame
from tqp.runtime.program import TensorProgram


@pytest.fixture
def connection() -> tqp.Connection:
    connection = tqp.connect(threads=1)
    connection.register(
        "t", pa.table({"x": [1, 2, None, 4], "s": ["a", "b", "a", None], "d": [1.5, 2.5, float("nan"), -0.0]})
    )
    return connection


def test_a_program_is_a_module_that_runs(connection: tqp.Connection) -> None:
    program = connection.compile("SELECT sum(x) AS total, max(s) AS last FROM t WHERE s IN ('a', 'b')")
    assert isinstance(program, TensorProgram) and isinstance(program, torch.nn.Module)
    table = program()
    assert table.names == ("total", "last") and table.num_rows == 1
    assert connection.sql(
        "SELECT sum(x) AS total, max(s) AS last FROM t WHERE s IN ('a', 'b')"
    ).fetchall() == [(3, "b")]


def test_code_shows_the_sql_beside_the_tensor_calls(connection: tqp.Connection) -> None:
    code = connection.compile("SELECT s, sum(x + 1) AS total FROM t WHERE x < 4 GROUP BY s").code
    assert "# WHERE x < 4" in code and "select_most(" in code and "take_selected(" in code
    assert "# sum(x + 1)" in code and "tqp_" not in code
    compile(code, "program", "exec")  # it is Python


def test_equal_subexpressions_are_computed_once(connection: tqp.Connection) -> None:
    code = connection.compile("SELECT x * 2 + 1 AS a, (x * 2 + 1) * (x * 2 + 1) AS b FROM t").code
    assert code.count("multiply(x, 2)") == 1


def test_constants_are_buffers(connection: tqp.Connection) -> None:
    program = connection.compile("SELECT coalesce(x, 7) AS y, s || 'suffix' AS z FROM t")
    assert dict(program.named_buffers())
    moved = program.to("cpu")
    assert moved is program and program().num_rows == 4


def test_a_compiled_query_is_kept_but_never_its_result(connection: tqp.Connection) -> None:
    query = "SELECT count(*) FROM u"
    values = np.zeros(3, dtype=np.int64)
    connection.register("u", {"x": values})
    program = connection.compile(query)
    assert connection.compile(query) is program
    connection.register("u", {"x": np.zeros(5, dtype=np.int64)})
    assert connection.compile(query) is not program
    assert connection.sql(query).fetchall() == [(5,)]


def test_parameters_of_one_text_are_different_programs(connection: tqp.Connection) -> None:
    query = "SELECT ? + 1 AS y"
    assert [connection.sql(query, [value]).fetchall() for value in (1, 2, 1.5, None)] == [
        [(2,)],
        [(3,)],
        [(2.5,)],
        [(None,)],
    ]


def test_explain_analyze_says_rows_time_and_bytes(connection: tqp.Connection) -> None:
    text = connection.explain("SELECT s, count(*) FROM t WHERE x > 1 GROUP BY s", analyze=True)
    line = next(line for line in text.splitlines() if "Filter" in line and "rows," in line)
    assert "2 rows" in line and " ms" in line and "B" in line
    assert "Total" in text
    answer = connection.sql("EXPLAIN SELECT x FROM t").fetchall()
    assert "TableScan t" in answer[0][1]
    with pytest.raises(tqp.BindError, match="EXPLAIN"):
        connection.compile("EXPLAIN SELECT x FROM t")


def test_sql_finds_frames_in_the_callers_variables() -> None:
    sales = pa.table({"amount": [1, 2, 3]})
    assert tqp.sql("SELECT sum(amount) FROM sales").fetchall() == [(6,)]
    assert len(sales) == 3
    with pytest.raises(tqp.BindError, match="sails"):
        tqp.sql("SELECT sum(amount) FROM sails")


def test_tensors_come_back_without_a_copy() -> None:
    values = torch.arange(10, dtype=torch.int32)
    result = tqp.sql("SELECT x FROM t", {"t": {"x": values}}).to_torch()
    assert torch.equal(result["x"], values)


def test_garbage_collection_is_left_as_it_was() -> None:
    with tqp.connect() as connection:
        for switch in (gc.disable, gc.enable):
            switch()
            expected = gc.isenabled()
            connection.sql(f"SELECT {int(expected)}")
            assert gc.isenabled() == expected
            with pytest.raises(tqp.Error):
                connection.sql("SELECT nothing")
            assert gc.isenabled() == expected


def test_tables_over_a_domain_are_as_narrow_as_their_values() -> None:
    days = [datetime.date(2015 + i % 9, 1 + i % 12, 1) for i in range(5_000)]
    with tqp.connect() as connection:
        connection.register("t", pa.table({"d": days}))
        query = "SELECT year(d) AS y, count(*) FROM t GROUP BY y ORDER BY y"
        table = connection.compile(query).steps()[0]
        assert any(torch.int16 in node.arguments for node in table.record.nodes)
        assert connection.sql(query).fetchall()[0] == (2015, 556)


def test_a_program_says_why_it_cannot_be_moved() -> None:
    with tqp.connect() as connection:
        connection.register("t", {"x": [1, 2]})
        program = connection.compile("SELECT x + 1 AS y FROM t WHERE x > 1")
        assert program.to("cpu") is program
        with pytest.raises(tqp.UnsupportedError, match='moved to meta: the columns of "t" .* stay on cpu'):
            program.to("meta")
        with pytest.raises(tqp.UnsupportedError, match="moved to torch.float16"):
            program.half()
        assert Result(program.names, program.types, program()).fetchall() == [(3,)]


def test_rows_that_cannot_be_numbered_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "MAX_ROWS", 100)
    with tqp.connect(batch_rows=10) as connection:
        connection.register("t", {"x": list(range(101))})
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(101,)]
        for query in (
            "SELECT x FROM t",
            "SELECT x FROM t ORDER BY x",
            "SELECT count(*) FROM t a JOIN (SELECT x + 0.5 AS y FROM t) b ON a.x < b.y",
        ):
            with pytest.raises(tqp.ResourceError, match="makes .* rows, more than the 100"):
                connection.sql(query)
