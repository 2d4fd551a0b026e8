"""Every record of `tests/slt`, as a readable specification of behaviour; see `tests/sqllogic.py` for the format."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
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
#: How many records one test checks, as a test of its own costs as much as a short query; all that fail are named.
RECORDS = 20


@cache
def _records(path: Path) -> list[sqllogic.Record]:
    return sqllogic.parse(path.read_text(encoding="utf-8"))


@cache
def _connection(path: Path, setting: str) -> tqp.Connection:
    connection = tqp.connect(**SETTINGS[setting])
    sqllogic.register_tables(_records(path), connection)
    return connection


def _cases() -> Iterator[Any]:
    """Some records of a file that follow each other, under each setting; seven of eight under "tiny" are for `make slow`."""
    for path in FILES:
        records = [record for record in _records(path) if record.kind not in ("statement ok", "comment")]
        for setting in SETTINGS:
            rare = [record for number, record in enumerate(records) if setting == "tiny" and number % 8]
            often = records[::8] if rare else records
            for chosen, marks in ((often, ()), (rare, pytest.mark.slow)):
                for first in range(0, len(chosen), RECORDS):
                    part = chosen[first : first + RECORDS]
                    label = f"{path.stem}:{part[0].line}-{part[-1].line}-{setting}"
                    yield pytest.param(path, part, setting, id=label, marks=marks)


@pytest.mark.parametrize(("path", "records", "setting"), list(_cases()))
def test_records(path: Path, records: Sequence[sqllogic.Record], setting: str) -> None:
    errors = []
    for record in records:
        try:
            sqllogic.check(record, _connection(path, setting))
        except Exception as error:  # noqa: BLE001  (raised below, with those of other records)
            error.add_note(f"{path}:{record.line}")
            errors.append(error)
    if errors:
        raise ExceptionGroup(", ".join(note for error in errors for note in error.__notes__), errors)


def test_records_are_many_and_labels_agree() -> None:
    records = [record for path in FILES for record in _records(path)]
    assert sum(record.kind != "statement ok" for record in records) >= 300
    for path in FILES:
        by_label: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
        for record in _records(path):
            if record.label:
                by_label[record.label].add(tuple(record.expected))
        assert all(len(answers) == 1 for answers in by_label.values()), path
