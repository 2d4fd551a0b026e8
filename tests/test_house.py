"""Rules of the house that no other tool checks."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import tqp
from tests.aggregate_calls import aggregate_arguments
from tqp.operators.scalar_kernels import SCALAR_FUNCTIONS
from tqp.planner.functions.conditions import COMPARISONS
from tqp.planner.functions.registry import SCALARS, aggregate_names, window_names

ROOT = Path(__file__).parent.parent
SOURCE_FOLDERS = ("tqp", "operators", "planner", "tpch")

#: Where `.item()` may be called, and why: on a column it makes the host wait for the device.
CALLS_ITEM = {
    "planner/binder/expressions/literals.py": "on query parameters, which are not on a device",
    "tqp/core/constants.py": "on values that become SQL text",
}

#: Where the kind of device may be asked for, and why; everything else asks for the backend (`tqp/data/backend.py`).
ASKS_FOR_DEVICE = {
    "operators/joins/pairs.py": "how many pairs fit into its memory",
    "operators/memory/allocation.py": "whose memory it is",
    "tqp/data/backend.py": "which backend it has",
    "tqp/data/encoding/value_dictionary.py": "where the column is",
    "tqp/data/sources/objects/tensors.py": "where its columns are",
    "tqp/ml/layers.py": "what its caches hold",
    "tqp/ml/scorer.py": "what its caches hold",
    "tqp/runtime/executor.py": "threads and batches",
    "tqp/runtime/fuse.py": "what a tensor knows of its memory",
    "tqp/runtime/memory_limit.py": "whose memory it is",
    "tqp/runtime/trace.py": "what the profiler records",
}

#: Functions that lowering writes as torch operations, without a kernel.
LOWERED = {
    *COMPARISONS,
    "is_distinct_from",
    "is_not_distinct_from",
    "is_null",
    "null_after",
    "and",
    "or",
    "not",
    "coalesce",
} | {*("add", "subtract", "multiply", "negate")}

#: Of a file, without blank lines at its end.
MAX_LINES = 500


def _files(*folders: str) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if not any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(ROOT))
    )


SOURCES = _files(*SOURCE_FOLDERS)


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _module(path: Path) -> ast.Module:
    return ast.parse(_text(path))


def of_each(paths: list[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """A test of what holds of each of the files: one test for all, as a test costs more than a look at a file."""

    def made(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            failures = []
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    failures.append(f"{path.relative_to(ROOT)}: {error}")
            assert not failures, "\n".join(failures)

        return test

    return made


@of_each([*SOURCES, *_files("tests")])
def test_files_are_short_and_say_what_they_are_for(path: Path) -> None:
    text = _text(path)
    assert len(text.splitlines()) <= MAX_LINES
    module = _module(path)
    assert ast.get_docstring(module) or not module.body


@of_each(_files("tqp/runtime", "operators"))
def test_code_generation_reads_no_estimates(path: Path) -> None:
    assert ".estimates" not in _text(path)


@of_each(SOURCES)
def test_backends_are_told_apart_in_one_place(path: Path) -> None:
    text = _text(path)
    asks = ".is_cpu" in text or "device.type" in text
    assert asks == (str(path.relative_to(ROOT)) in ASKS_FOR_DEVICE)


def _is_overload(function: ast.FunctionDef) -> bool:
    """Is it only types of a function that follows?"""
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in function.decorator_list)


@of_each(SOURCES)
def test_public_functions_have_docstrings(path: Path) -> None:
    module = _module(path)
    without = [
        node.name
        for node in module.body
        if isinstance(node, ast.FunctionDef)
        and not (node.name.startswith("_") or ast.get_docstring(node) or _is_overload(node))
    ]
    assert not without


@of_each(SOURCES)
def test_the_host_waits_for_the_device_in_few_places(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    calls = [
        node.lineno
        for node in ast.walk(_module(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"
    ]
    assert not calls or name in CALLS_ITEM, f"{name}: .item() in lines {calls}"


@of_each(_files("planner", "tqp/catalog", "tqp/statements"))
def test_names_are_compared_without_the_case_of_ascii_letters_only(path: Path) -> None:
    lines = [
        node.lineno
        for node in ast.walk(_module(path))
        if isinstance(node, ast.Attribute) and node.attr in ("lower", "casefold")
        if not (isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "str")
    ]
    assert not lines, f"{path}: tqp.core.keywords.lower_ascii in lines {lines}"


def test_every_function_that_the_planner_knows_has_a_kernel_and_no_kernel_is_unknown() -> None:
    assert set(SCALARS) - LOWERED == SCALAR_FUNCTIONS


def test_every_aggregate_that_the_planner_knows_is_lowered() -> None:
    with tqp.connect() as connection:
        connection.register("t", {"x": np.array([1, 2]), "b": np.array([True, False])})
        for name in aggregate_names():
            arguments = aggregate_arguments(name, "x", "b")
            assert len(connection.sql(f"SELECT {name}({arguments}) FROM t").fetchall()) == 1


def test_every_window_function_and_aggregate_is_lowered_over_partitions() -> None:
    with tqp.connect() as connection:
        connection.register("t", {"x": np.array([1, 2]), "b": np.array([True, False])})
        others = dict.fromkeys(("row_number", "percent_rank", "cume_dist"), "")
        others |= {"nth_value": "x, 1", "fill": "x ORDER BY x"}
        calls = {name: others.get(name, "" if "rank" in name else "x") for name in window_names()}
        calls |= {name: aggregate_arguments(name, "x", "b") for name in aggregate_names()}
        for name, arguments in calls.items():
            query = f"SELECT {name}({arguments}) OVER (PARTITION BY b) FROM t"
            assert len(connection.sql(query).fetchall()) == 2
