"""Everything runs on a device that is not the CPU, and asks no more of it than it did; see `tests/pretend_device.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import TPCH_SCALE_FACTOR
from tqp.measuring.compare import DuckDBRun
from tqp.measuring.verify import difference
from tqp.tpch.query import QUERY_NUMBERS, load_query

#: By query of TPC-H, launches and reads that the host waits for. Fewer are better: write them here when there are.
MOST: dict[int, tuple[int, int]] = {
    1: (86, 11), 2: (321, 28), 3: (93, 9), 4: (45, 7),
    5: (136, 12), 6: (23, 2), 7: (207, 14), 8: (181, 12),
    9: (228, 15), 10: (102, 8), 11: (74, 6), 12: (75, 6),
    13: (182, 20), 14: (46, 3), 15: (96, 7), 16: (229, 16),
    17: (154, 5), 18: (114, 7), 19: (132, 4), 20: (129, 11),
    21: (211, 18), 22: (236, 20),
}  # fmt: skip


def _run(what: str, *arguments: str) -> Any:
    command = [sys.executable, "-m", "tests.pretend_device", what, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_slt_files() -> None:
    assert _run("slt") == {}


def test_tpch(tpch_data: Path, tpch_answers: DuckDBRun, tmp_path: Path) -> None:
    asked = _run("tpch", str(tpch_data), str(tmp_path))
    for number in QUERY_NUMBERS:
        query = load_query(number, TPCH_SCALE_FACTOR)
        answer = pq.read_table(tmp_path / f"{number}.parquet")
        assert difference(answer, tpch_answers.answer(number), query.order_by, query.limit) is None, number
    more = {
        number: each
        for number, each in asked.items()
        if each["launches"] > MOST[int(number)][0] or each["reads"] > MOST[int(number)][1]
    }
    assert not more, "launches, or reads that the host waits for, have become more"


def test_columns_that_are_tensors_of_the_device_stay_there() -> None:
    """What the host reads of them are numbers: bounds, how many differ."""
    assert _run("registered")["longest copy"] <= 8


def test_python_functions() -> None:
    assert _run("functions") == [[None, None, None, None], [2.0, 1, "W4", [4, 2]]]


def test_quotients_by_numbers_are_rounded_once() -> None:
    there, here = _run("quotients")
    assert there == here
