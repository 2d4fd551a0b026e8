"""`attempt_before_join`: conditions that may raise, asked below joins, too."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import torch

import tqp
from tqp.core.errors import ExecutionError
from tqp.data.nested import Vector
from tqp.operators.rows.attempts import attempted

#: Each is many rows of `marks` or none, and of three words one is no number.
_WORDS = pa.table({"id": range(300), "word": [None, "x", "7", "12", "0", "-1"] * 50})
_MARKS = pa.table({"id": [i % 30 * 10 + 5 for i in range(12_000)]})
_RAISES = "CAST(word AS INTEGER) > 3"


def _connection(**settings: Any) -> tqp.Connection:
    con = tqp.connect(**settings)
    con.register("words", _WORDS)
    con.register("marks", _MARKS)
    return con


@pytest.mark.parametrize(
    ("query", "is_attempted"),
    [
        (f"SELECT count(*) FROM words JOIN marks USING (id) WHERE {_RAISES}", True),
        (f"SELECT count(*) FROM words JOIN marks ON words.id = marks.id AND {_RAISES}", True),
        (f"SELECT count(*) FROM words, marks WHERE words.id < marks.id AND {_RAISES}", True),
        (f"SELECT count(*) FROM marks LEFT JOIN words ON words.id < marks.id AND {_RAISES}", True),
        # rows of the left side stay, whatever ON says of them
        (f"SELECT count(*) FROM words LEFT JOIN marks ON words.id < marks.id AND {_RAISES}", False),
        # as padded rows are asked, too
        (
            f"SELECT count(*) FROM marks LEFT JOIN words ON words.id < marks.id WHERE word IS NULL OR {_RAISES}",
            False,
        ),
        ("SELECT count(*) FROM words JOIN marks USING (id) WHERE word > '3'", False),  # never raises
        # of fewer rows than there are in words
        (
            f"SELECT count(*) FROM words JOIN (FROM marks LIMIT 100) USING (id) WHERE {_RAISES}",
            False,
        ),
    ],
)
def test_asked_below_joins(query: str, is_attempted: bool) -> None:
    answers = []
    for disabled in ((), ("attempt_before_join",)):
        for backend in ("host", "torch"):
            con = _connection(disabled_rules=disabled, backend=backend)
            assert ("TRY(" in con.explain(query)) == (is_attempted and not disabled)
            try:
                answers.append(con.sql(query).fetchall())
            except ExecutionError as error:
                answers.append([error.message])
    assert answers[1:] == answers[:1] * 3


@pytest.mark.parametrize("condition", ["word <> 'x' OR word IS NULL", "words.id % 6 <> 1"])
def test_rows_that_raise_are_dropped_above(condition: str) -> None:
    con = _connection()
    query = f"SELECT count(*) FROM words JOIN marks USING (id) WHERE {_RAISES} AND ({condition})"
    expected = con.sql("SELECT count(*) FROM words JOIN marks USING (id) WHERE word IN ('7', '12')")
    assert con.sql(query).fetchall() == expected.fetchall() != [(0,)]


def test_an_attempt_gives_up() -> None:
    asked = []

    def compute(rows: torch.Tensor) -> Vector:
        asked.append(rows.shape[0])
        if bool((rows % 2 == 1).any()):
            raise ExecutionError("odd")
        return Vector(rows * 10, None)

    rows = torch.arange(1000)
    found = attempted(compute, rows, 1000, [Vector(rows, None)], most_calls=30)
    assert found is not None and len(asked) == 30
    there = found.values[found.validity]
    assert 0 < len(there) < 500 and bool((there % 20 == 0).all())
