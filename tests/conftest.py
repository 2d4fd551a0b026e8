"""Fixtures that several test files share."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from rich.console import Console

from tests import settings
from tqp.data.encoding import strings
from tqp.measuring.compare import DuckDBRun, run_duckdb
from tqp.tpch.data import DATA
from tqp.tpch.query import QUERY_NUMBERS, load_query

#: Large enough that every query has an answer, small enough to be generated in a second.
TPCH_SCALE_FACTOR = 0.01


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device", help="where connections are that name no device, for example cuda (default: cpu)"
    )


def pytest_configure(config: pytest.Config) -> None:
    # Tables of tests are small: the strings of those that are not tiny are to be stored as large tables' are.
    strings._SMALL_TABLE = 4_096
    if device := config.getoption("--device"):
        settings.compute_on(device)
    gc.disable()  # until all tests are collected: hardly anything is garbage before


def pytest_collection_finish() -> None:
    """Python's search for cycles leaves out the million objects that libraries and collected tests are: 0.5 s each time."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--device"):
        for item in items:
            if item.get_closest_marker("cpu"):
                item.add_marker(pytest.mark.skip(reason="of the CPU"))


@pytest.fixture(scope="session")
def tpch_data() -> Path:
    """The folder with TPC-H at scale factor 0.01, from the user's cache or generated into it."""
    return DATA.ensure(TPCH_SCALE_FACTOR, Console(stderr=True))


@pytest.fixture(scope="session")
def tpch_answers(tpch_data: Path, tmp_path_factory: pytest.TempPathFactory) -> DuckDBRun:
    """DuckDB's answers to all 22 queries."""
    return run_duckdb(
        DATA.paths(tpch_data),
        [load_query(number, TPCH_SCALE_FACTOR) for number in QUERY_NUMBERS],
        tmp_path_factory.mktemp("answers"),
        threads=1,
    )
