"""A graph as a function: node by node when it is called for the first time, as compiled Python from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tqp.operators.array_forms import ARRAY_FORMS, OPERATORS
from tqp.runtime.graph import GLOBALS, Graph, Node, call_text, function_name, last_uses, nodes_in, unique_name


class GraphFunction:
    """A graph as a function of its inputs; a value is let go of after its last use.

    The first call goes through the graph node by node: most queries run once, most pipelines on one batch, and compiling
    takes ten times as long as that. Later calls run compiled Python. `on_arrays`: see `compile_graph`.
    """

    def __init__(self, graph: Graph, *, on_arrays: bool = False) -> None:
        self._graph, self._on_arrays = graph, on_arrays
        self._called = False
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if self._compiled is not None:
            return self._compiled(*arguments)
        if not self._called:
            self._called = True
            return interpret(self._graph, arguments)
        self._compiled = compile_graph(
            self._graph, on_arrays=self._on_arrays
        )  # two workers at once make the same
        return self._compiled(*arguments)


def interpret(graph: Graph, arguments: Sequence[Any]) -> Any:
    """The graph's outputs for these inputs."""
    values = dict(zip(graph.inputs, arguments, strict=True))
    last = last_uses(graph)

    def filled(item: Any) -> Any:
        if isinstance(item, Node):
            return values[item]
        if isinstance(item, (tuple, list)):
            return type(item)(map(filled, item))
        return item

    for node in graph.nodes:
        function, given = node.target, [filled(item) for item in node.arguments]
        assert function is not None
        if isinstance(function, str):
            function = getattr(given.pop(0), function)
        values[node] = function(*given, **{name: filled(item) for name, item in node.keywords.items()})
        del given, function  # the last references to what is let go of
        for done in last.get(node, ()):
            del values[done]
    return filled(graph.outputs)


def compile_graph(graph: Graph, *, on_arrays: bool = False) -> Callable[..., Any]:
    """The graph as a Python function, its inputs as parameters; a value is let go of after its last use.

    `on_arrays`: tensors are on the CPU and none has a gradient; calls that have an array form (`operators/array_forms.py`)
    pass numpy arrays on to each other, as every tensor made in between takes time and the interpreter lock twice.
    """
    writer = _Writer(graph)
    last = last_uses(graph)
    for node in graph.nodes:
        writer.call(node, writer.array_form(node) if on_arrays else None)
        writer.let_go(last.get(node, ()))
    return writer.function(graph)


class _Writer:
    """The lines of a function. Each value stands under its own name as a tensor, under another one as an array, or both."""

    def __init__(self, graph: Graph) -> None:
        self._parameters = graph.parameters()
        self._names = dict(GLOBALS)
        self._functions: dict[int, str] = {}
        self._taken = {*self._parameters, *(node.name for node in graph.nodes), *GLOBALS}
        self._tensors = set(graph.inputs)
        self._arrays: dict[Node, str] = {}
        self._made_as_arrays: set[Node] = set()
        self._lines = [f"def pipeline({', '.join(self._parameters)}):"]

    def array_form(self, node: Node) -> Callable[..., Any] | None:
        """What computes the node from arrays and gives one, if it pays."""
        form = ARRAY_FORMS.get(node.target) if not isinstance(node.target, str) else None
        if (
            form is None
            and node.target in OPERATORS
            and all(isinstance(item, Node) for item in node.arguments)
        ):
            # an operator is the same for both: it goes by what is there
            return node.target if any(used in self._made_as_arrays for used in node.uses()) else None
        return form

    def call(self, node: Node, array_form: Callable[..., Any] | None) -> None:
        """Compute the node, from arrays by its array form if there is one."""
        for used in node.uses():
            self._have(used, as_array=array_form is not None)
        if array_form is None:
            self._tensors.add(node)
            self._lines.append(f" {node.name} = {call_text(node, self._function_name)}")
            return
        name = self._arrays[node] = unique_name(f"{node.name}_array", self._taken)
        self._made_as_arrays.add(node)
        on_arrays = Node(array_form, node.arguments, node.keywords, name)
        self._lines.append(f" {name} = {call_text(on_arrays, self._function_name, self._arrays)}")

    def let_go(self, nodes: Sequence[Node]) -> None:
        names = [node.name for node in nodes if node in self._tensors]
        names += [self._arrays[node] for node in nodes if node in self._arrays]
        if names:
            self._lines[-1] += f"; {' = '.join(names)} = None"

    def function(self, graph: Graph) -> Callable[..., Any]:
        for node in nodes_in(graph.outputs):
            self._have(node, as_array=False)
        lines = [*self._lines, f" {graph.result()}"]
        exec(compile("\n".join(lines), "<tensor program>", "exec"), self._names)  # noqa: S102 - names and literals of ours
        function: Callable[..., Any] = self._names["pipeline"]
        return function

    def _have(self, node: Node, *, as_array: bool) -> None:
        """Make the other form of a value, once, if it is not there."""
        if as_array and node not in self._arrays:
            self._arrays[node] = unique_name(f"{node.name}_array", self._taken)
            self._lines.append(f" {self._arrays[node]} = {node.name}.numpy()")
        elif not as_array and node not in self._tensors:
            self._tensors.add(node)
            made = self._function_name(torch.from_numpy)
            self._lines.append(f" {node.name} = {made}({self._arrays[node]})")

    def _function_name(self, function: Any) -> str:
        name = self._functions.get(id(function))
        if name is None:
            name = function_name(function)
            if "." not in name:
                name = unique_name(name, self._taken)
                self._names[name] = function
            self._functions[id(function)] = name
        return name
