"""Every record of `tests/slt`, as a readable specification of behaviour; see `tests/sqllogic.py` for the format."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tqp
from tests import sqllogic

FILES = sorted(sqllogic.DIRECTORY.glob("**/*.slt"))

#: The same records must hold however the work is cut up.
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "tiny": {"batch_rows": 3, "threads": 2},
    "torch": {"backend": "torch"},
}


@cache
def _records(path: Path) -> list[sqllogic.Record]:
    return sqllogic.parse(path.read_text(encoding="utf-8"))


@cache
def _connection(path: Path, setting: str) -> tqp.Connection:
    connection = tqp.connect(**SETTINGS[setting])
    with sqllogic.set_up(_records(path)) as oracle:
        for name, table in sqllogic.tables(oracle).items():
            connection.register(name, table)
    return connection


def _cases(*kinds: str) -> list[Any]:
    """The records of these kinds under each setting; seven of eight under "tiny" are for `make slow`."""
    cases = []
    for path in FILES:
        chosen = [index for index, record in enumerate(_records(path)) if record.kind in kinds]
        for number, index in enumerate(chosen):
            for setting in SETTINGS:
                marks = pytest.mark.slow if setting == "tiny" and number % 8 else ()
                label = f"{path.stem}:{_records(path)[index].line}-{setting}"
                cases.append(pytest.param(path, index, setting, id=label, marks=marks))
    return cases


@pytest.mark.parametrize(("path", "index", "setting"), _cases("query"))
def test_query(path: Path, index: int, setting: str) -> None:
    sqllogic.check(_records(path)[index], _connection(path, setting))


@pytest.mark.parametrize(("path", "index", "setting"), _cases("statement error", "statement unsupported"))
def test_error(path: Path, index: int, setting: str) -> None:
    sqllogic.check(_records(path)[index], _connection(path, setting))


def test_records_are_many_and_labels_agree() -> None:
    records = [record for path in FILES for record in _records(path)]
    assert sum(record.kind != "statement ok" for record in records) >= 300
    for path in FILES:
        by_label: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
        for record in _records(path):
            if record.label:
                by_label[record.label].add(tuple(record.expected))
        assert all(len(answers) == 1 for answers in by_label.values()), path
