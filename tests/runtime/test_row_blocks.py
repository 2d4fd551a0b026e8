"""Conditions in blocks of rows: as wholly, whatever they are made of and however long they are."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp
from tqp.operators.numbers import elementwise
from tqp.operators.rows import selection as row_kernels
from tqp.runtime import row_blocks
from tqp.runtime.graph import Graph
from tqp.runtime.graph_function import compile_graph, interpret
from tqp.runtime.lowering.graph_builder import GraphBuilder


def _graph() -> Graph:
    """A condition with constants, values, NULLs, a value of one row, and a mask that something else reads, too."""
    builder = GraphBuilder()
    x, y, valid, one = (builder.input(name) for name in ("x", "y", "valid", "one"))
    shared = builder.call(elementwise.less, x, y)
    between = builder.call(elementwise.greater_equal, builder.call(elementwise.subtract, y, x), 3)
    either = builder.call(elementwise.any_of, [builder.call(elementwise.equal, x, 2), between, shared])
    known = builder.call(
        operator.and_, valid, builder.call(operator.invert, builder.call(torch.logical_not, valid))
    )
    mask = builder.call(elementwise.all_of, [either, known, builder.call(elementwise.not_equal, y, one)])
    rows = builder.call(row_kernels.row_indices, mask)
    graph, _ = builder.graph((rows, mask, builder.call(row_kernels.row_indices, shared)))
    return graph


@pytest.mark.parametrize("num_rows", [0, 1, 7, 8, 9, 1000])
def test_blocks_give_the_same_masks(num_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "BLOCK_ROWS", 8)
    generator = torch.Generator().manual_seed(num_rows)
    x, y = (torch.randint(0, 10, (num_rows,), generator=generator, dtype=torch.int16) for _ in range(2))
    valid = torch.rand(num_rows, generator=generator) < 0.7
    values = {"x": x, "y": y, "valid": valid, "one": torch.tensor([5], dtype=torch.int16)}
    graph = _graph()
    assert [len(calls) for calls in row_blocks.conditions(graph).values()] == [8]
    arguments = [values[name] for name in graph.parameters()]
    function = compile_graph(graph, on_arrays=True)
    for _ in range(2):
        for actual, expected in zip(function(*arguments), interpret(graph, arguments), strict=True):
            assert actual.dtype is expected.dtype and torch.equal(actual, expected)


def test_what_is_read_elsewhere_is_computed_wholly() -> None:
    graph = _graph()
    (calls,) = row_blocks.conditions(graph).values()
    assert all(node.target is not elementwise.less for node in calls)


def test_values_live_until_their_block() -> None:
    """The block comes with its last call; what reads one of its values between its calls is not the last to do so."""
    builder = GraphBuilder()
    x = builder.call(operator.add, builder.input("x"), 1)
    low, high = builder.call(elementwise.less, x, 8), builder.call(elementwise.greater, x, 2)
    other = builder.call(torch.lt, builder.call(torch.remainder, x, 2), 1)
    graph, _ = builder.graph((builder.call(elementwise.all_of, [low, high, other]),))
    values = torch.arange(10)
    for _ in range(2):
        (mask,) = compile_graph(graph, on_arrays=True)(values)
        assert torch.equal(mask, interpret(graph, (values,))[0])


def test_few_calls_are_not_worth_it() -> None:
    builder = GraphBuilder()
    x = builder.input("x")
    graph, _ = builder.graph((builder.call(operator.invert, builder.call(elementwise.less, x, 1)),))
    assert row_blocks.conditions(graph) == {}


def test_blocks_are_of_the_rows_that_are_asked_for() -> None:
    seen: list[tuple[int, ...]] = []

    def condition(*values: Any) -> Any:
        seen.append(tuple(np.shape(value)[0] if np.ndim(value) else 0 for value in values))
        return values[0] < values[1]

    rows = row_blocks.BLOCK_ROWS + 1
    mask = row_blocks.in_blocks(condition, [np.arange(rows), np.array([5]), 3])
    assert mask.shape == (rows,) and mask.sum() == 5 and mask[:5].all()
    assert seen == [(rows - 1, 1, 0), (1, 1, 0)]


@pytest.mark.parametrize("block_rows", [1, 3, 1 << 20])
def test_filters_do_not_depend_on_blocks(block_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "BLOCK_ROWS", block_rows)
    table = {"a": [1, None, 3, 4, 5, None, 7], "b": [7.0, 2.0, float("nan"), 4.0, None, 1.0, 0.0]}
    query = "SELECT a FROM t WHERE (a > 1 OR b IS NULL) AND NOT (b < 3 AND a <> 3) AND a + 1 <= 8"
    with tqp.connect(threads=1) as connection:
        connection.register("t", table)
        for _ in range(3):  # compiled from the second time on
            assert connection.sql(query).fetchall() == [(3,), (4,)]


def test_conditions_of_rows_need_no_third_truth_value() -> None:
    with tqp.connect() as connection:
        connection.register("sales", pa.table({"day": [1, None, 500], "v": [None, 3, 4], "item": [1, 2, 3]}))
        query = "SELECT count(*) FROM sales WHERE day < 3 AND v > 0 OR day > 400 AND (v < 9 OR day = item)"
        assert "kleene" not in connection.compile(query).code
        assert connection.sql(query).fetchall() == [(1,)]
