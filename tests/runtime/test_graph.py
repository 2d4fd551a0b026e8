"""Recorded graphs: the function that runs, the text that people read, and torch.fx, which must all be the same."""

from __future__ import annotations

import functools
import gc
import math
import operator
import random
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tqp.operators.groups import aggregates
from tqp.operators.numbers import elementwise
from tqp.operators.operation import Operation
from tqp.operators.rows import selection as row_kernels
from tqp.runtime.graph import Graph, Node, function_name
from tqp.runtime.graph_function import GraphFunction, compile_graph, interpret
from tqp.runtime.lowering.graph_builder import GraphBuilder, NamedKernel


def _scale(values: Tensor, factor: float) -> Tensor:
    return values * factor


def _build() -> tuple[Any, list[str]]:
    builder = GraphBuilder()
    x, unused = builder.input("x"), builder.input("unused")
    double = builder.call(operator.mul, x, 2, name="twice as much")
    assert builder.call(operator.mul, x, 2) is double
    assert builder.call(operator.mul, x, 2.0) is not double, "2 and 2.0 are not the same"
    builder.call(operator.add, x, unused)  # nobody reads it
    rows = builder.call(row_kernels.row_indices, builder.call(operator.gt, double, -3), name="class")
    taken = builder.call(torch.index_select, double, 0, rows, name="x")
    scaled = builder.call(NamedKernel(_scale, "scale", None), taken, math.inf)
    other = builder.call(NamedKernel(_scale, "scale", (1, 2)), taken, 0.5)
    narrow = builder.method("to", other, torch.float32)
    return builder.graph((rows, None, scaled, (narrow,)))


def test_function_text_and_fx_agree() -> None:
    graph, inputs = _build()
    assert inputs == ["x"], "what nobody reads is no input"
    lines = [line for _, line in graph.lines(function_name)]
    assert lines == [
        "twice_as_much = x * 2",
        "gt = twice_as_much > -3",
        "_class = row_indices(gt)",
        "x_1 = torch.index_select(twice_as_much, 0, _class)",
        "scale_1 = scale(x_1, inf)",
        "scale_2 = scale(x_1, 0.5)",
        "to = scale_2.to(torch.float32)",
    ]
    assert graph.result() == "return (_class, None, scale_1, (to,))"
    x = torch.tensor([-5, 1, 4])
    on_arrays = compile_graph(graph, on_arrays=True)
    for outputs in (compile_graph(graph)(x), on_arrays(x), interpret(graph, (x,)), graph.module()(x)):
        rows, nothing, scaled, (narrow,) = outputs
        assert rows.tolist() == [1, 2] and nothing is None
        assert scaled.tolist() == [math.inf, math.inf]
        assert narrow.tolist() == [1.0, 4.0] and narrow.dtype is torch.float32


def test_a_function_is_compiled_when_it_is_called_again() -> None:
    function = GraphFunction(_build()[0])
    x = torch.tensor([-5, 1, 4])
    first = function(x)
    assert function._compiled is None
    again = function(x)
    assert function._compiled is not None
    assert all(torch.equal(outputs[2], first[2]) for outputs in (again, function(x)))


def test_kernels_never_hide_behind_values_of_their_name() -> None:
    builder = GraphBuilder()
    value = builder.input("_scale")
    graph, _ = builder.graph((builder.call(_scale, builder.call(operator.add, value, 1), 3),))
    assert compile_graph(graph)(torch.tensor([1]))[0].tolist() == [6]


def _array_graph() -> Graph:
    """Calls with and without an array form, whose values go from each kind to the other."""
    builder = GraphBuilder()
    x, y, valid = (builder.input(name) for name in ("x", "y", "valid"))
    low, high = builder.call(elementwise.less, x, 40), builder.call(elementwise.greater_equal, x, y)
    known = builder.call(operator.and_, high, valid)  # an operator, of an array and a tensor
    neither = builder.call(operator.invert, builder.call(elementwise.any_of, [low, known, high]))
    even = builder.call(torch.eq, builder.call(torch.remainder, y, 2), 0)
    both = builder.call(operator.gt, builder.call(elementwise.all_of, [low, valid]), even)
    case = builder.call(elementwise.put_where, None, low, x, torch.int16)
    case = builder.call(elementwise.put_where, case, builder.call(operator.gt, high, low), 7, torch.int16)
    rows = builder.call(row_kernels.row_indices, known)
    valid_rows = builder.call(row_kernels.row_indices, both, valid)
    taken = builder.call(torch.index_select, x, 0, rows)
    again = builder.call(elementwise.equal, taken, builder.call(torch.index_select, case, 0, rows))
    bits = builder.call(operator.and_, y, 1)  # of no array: stays a tensor's
    graph, _ = builder.graph((rows, valid_rows, neither, both, case, again, bits, valid))
    return graph


@pytest.mark.parametrize("num_rows", [0, 1, 1000, 40_000])
def test_calls_on_arrays_are_those_on_tensors(num_rows: int) -> None:
    generator = torch.Generator().manual_seed(num_rows)
    x, y = (torch.randint(0, 100, (num_rows,), generator=generator, dtype=torch.int16) for _ in range(2))
    values = {"x": x, "y": y, "valid": torch.rand(num_rows, generator=generator) < 0.7}
    graph = _array_graph()
    arguments = [values[name] for name in graph.parameters()]
    expected = interpret(graph, arguments)
    actual = compile_graph(graph, on_arrays=True)(*arguments)
    for one, other in zip(actual, expected, strict=True):
        assert isinstance(one, Tensor) and one.dtype is other.dtype and torch.equal(one, other)


def test_on_arrays_nothing_becomes_a_tensor_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    from_numpy = torch.from_numpy
    monkeypatch.setattr(torch, "from_numpy", lambda array: made.append(array) or from_numpy(array))
    builder = GraphBuilder()
    x = builder.input("x")
    low, high = builder.call(elementwise.less, x, 2), builder.call(elementwise.greater, x, 7)
    rows = builder.call(row_kernels.row_indices, builder.call(operator.or_, low, high))
    graph, _ = builder.graph((rows,))
    assert compile_graph(graph, on_arrays=True)(torch.arange(10))[0].tolist() == [0, 1, 8, 9]
    assert len(made) == 1
    # one whose reader takes arrays does not become a tensor at the end either
    rows_array = compile_graph(graph, on_arrays=True, array_outputs=True)(torch.arange(10))[0]
    assert isinstance(rows_array, np.ndarray) and rows_array.tolist() == [0, 1, 8, 9]
    assert len(made) == 1


_RUNS = [
    interpret,
    lambda graph, arguments: compile_graph(graph)(*arguments),
    lambda graph, arguments: compile_graph(graph, on_arrays=True)(*arguments),
]


def test_floats_are_written_to_an_operand_that_nobody_reads_any_more() -> None:
    written: list[Any] = []

    def add(a: Any, b: Any, out: Any = None) -> Any:
        written.append(None if out is None else out.tolist())
        return np.add(a, b, out=out)

    plus = Operation("plus", torch.add, add, takes_out=True)
    builder = GraphBuilder()
    x = builder.input("x")
    once = builder.call(plus, x, 1.0)
    twice = builder.call(plus, once, once)
    kept = builder.call(plus, x, 5.0)
    view = builder.call(row_kernels.take_selected, kept, None)
    graph, _ = builder.graph((builder.call(plus, twice, 3.0), builder.call(plus, kept, 2.0), view))
    found = compile_graph(graph, on_arrays=True)(torch.tensor([3.0, 5.0]))
    assert [values.tolist() for values in found] == [[11.0, 15.0], [10.0, 12.0], [8.0, 10.0]]
    # not the input, and not what another value may share its memory with
    assert written == [None, [4.0, 6.0], [8.0, 12.0], None, None]


def test_what_is_written_to_has_the_results_dtype_and_shape() -> None:
    narrow, wide = np.ones(3, np.float32), np.ones(3)
    add = functools.partial(elementwise.calculate_floats, np.add, torch.add)
    assert add(narrow, 1.5, out=narrow) is narrow and narrow.tolist() == [2.5] * 3
    assert add(wide, np.ones(1), out=wide) is not wide and add(wide[:1], np.ones(3), out=wide[:1]).shape == (
        3,
    )
    assert add(narrow, np.float64(0.1), out=narrow).dtype == np.float64
    assert add(narrow, np.ones(3), out=narrow).dtype == np.float64 and narrow.tolist() == [2.5] * 3


@pytest.mark.parametrize("seed", range(30))
def test_arrays_that_nobody_reads_any_more_are_written_to(seed: int) -> None:
    """Random calls, some of which give views or keep what they are given: the same as without reuse, and no input changes."""
    random_ = random.Random(seed)
    builder = GraphBuilder()
    nodes: list[Any] = [builder.input("x"), builder.input("y"), builder.input("n")]
    for number in range(25):
        a, b = random_.choice(nodes), random_.choice([*nodes, 1.5, 2.0])
        match random_.randrange(8):
            case 0:
                node = builder.method(
                    "to", a, torch.float64, name=f"v{number}"
                )  # the same one where it has the dtype
            case 1:
                node = builder.call(row_kernels.take_selected, a, None, name=f"v{number}")
            case 2:
                node = builder.call(torch.clamp, a, 0.5, name=f"v{number}")
            case 3:
                mask = builder.call(elementwise.less, a, b, name=f"m{number}")
                node = builder.call(elementwise.keep_where, a, mask, name=f"v{number}")
            case _:
                kernel = random_.choice([operator.add, operator.sub, operator.mul, torch.true_divide])
                node = builder.call(kernel, a, b, name=f"v{number}")
        nodes.append(node)
    totals = [builder.call(aggregates.sum_all, node, None) for node in nodes[3::2]]
    graph, names = builder.graph((*totals, nodes[-1], nodes[-3]))
    generator = torch.Generator().manual_seed(seed)
    inputs = {
        "x": torch.randn(100, generator=generator, dtype=torch.float64),
        "y": torch.randn(100, generator=generator, dtype=torch.float64),
        "n": torch.randn(100, generator=generator).to(torch.float32),
    }
    given = [inputs[name] for name in names]
    before = [tensor.clone() for tensor in given]
    expected = interpret(graph, given)
    with np.errstate(all="ignore"):
        found = compile_graph(graph, on_arrays=True)(*given)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert all(map(torch.equal, before, given))


@pytest.mark.parametrize("run", _RUNS)
def test_values_are_let_go_of_after_their_last_use(run: Callable[[Graph, Any], Any]) -> None:
    seen: list[weakref.ref[Tensor]] = []

    def made(values: Tensor) -> Tensor:
        result = values + 1
        seen.append(weakref.ref(result))
        return result

    def gone(values: Tensor) -> Tensor:
        gc.collect()
        assert seen[0]() is None
        return values

    builder = GraphBuilder()
    second = builder.call(operator.add, builder.call(made, builder.input("x")), 1)
    graph, _ = builder.graph((builder.call(gone, second),))
    assert run(graph, (torch.tensor([1]),))[0].tolist() == [3]


def test_arguments_are_computed_right_before_they_are_read() -> None:
    x = Node(None, (), {}, "x")
    doubled, squared = Node(operator.mul, (x, 2), {}, "doubled"), Node(operator.mul, (x, x), {}, "squared")
    first, second = (
        Node(operator.neg, (doubled,), {}, "first"),
        Node(operator.add, (squared, doubled), {}, "second"),
    )
    graph = Graph([x], (first, second))
    assert [node.name for node in graph.nodes] == ["doubled", "first", "squared", "second"]
    unused = Node(None, (), {}, "unused")
    assert Graph([x, unused], (first,)).inputs == [x]
    assert Graph([x, unused], (unused,)).nodes == []
