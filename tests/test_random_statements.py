"""Random scripts of statements against DuckDB; `python -m tests.random.statements` runs as many as one likes."""

from __future__ import annotations

import pytest

from tests.random import statements


def test_scripts_of_statements_leave_the_same_tables() -> None:
    found = [statements.first_difference(5, number) for number in range(25)]
    assert not [each for each in found if each is not None]


def test_a_script_that_differs_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "_answer", lambda execute, statement: [repr(execute)])
    difference = statements.first_difference(5, 0)
    assert difference is not None and "-- DuckDB:" in str(difference)
