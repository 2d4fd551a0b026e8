"""A graph as a function: node by node when it is called for the first time, as compiled Python from then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tqp.operators.call_operations import operation_of
from tqp.operators.memory import arrays
from tqp.runtime import row_blocks
from tqp.runtime.graph import (
    GLOBALS,
    Graph,
    Node,
    call_text,
    function_name,
    last_uses,
    nodes_in,
    replaced,
    unique_name,
)
from tqp.runtime.lowering.graph_builder import NamedKernel

#: The attribute of a compiled function that says which inputs may be arrays.
ARRAY_INPUTS = "array_inputs"


class GraphFunction:
    """A graph as a function of its inputs; a value is let go of after its last use.

    The first call goes through the graph node by node: most queries run once, most pipelines on one batch, and compiling
    takes ten times as long as that. Later calls run compiled Python. `on_arrays`, `array_outputs`: see `compile_graph`.
    """

    def __init__(self, graph: Graph, *, on_arrays: bool = False, array_outputs: bool = False) -> None:
        self._graph, self._on_arrays, self._array_outputs = graph, on_arrays, array_outputs
        self._called = False
        self._compiled: Callable[..., Any] | None = None

    @property
    def array_inputs(self) -> Sequence[int]:
        """Which inputs may as well be arrays, and better are."""
        return () if self._compiled is None else getattr(self._compiled, ARRAY_INPUTS)

    def __call__(self, *arguments: Any) -> Any:
        if self._compiled is not None:
            return self._compiled(*arguments)
        if not self._called:
            self._called = True
            return interpret(self._graph, arguments)
        return self.compiled()(*arguments)

    def compiled(self) -> Callable[..., Any]:
        """The compiled function, which a pipeline of many rows calls at once; two workers at a time make the same."""
        if self._compiled is None:
            self._compiled = compile_graph(
                self._graph, on_arrays=self._on_arrays, array_outputs=self._array_outputs
            )
        return self._compiled


def lowered_for_torch(graph: Graph) -> Graph:
    """The same graph, every call in the form of it that runs on any device."""
    for node in graph.nodes:
        form = operation_of(node.target).device
        if isinstance(node.target, NamedKernel) and callable(form):
            node.target = node.target.on_device(form)
        elif form is not None:
            node.target = form
    return graph


def interpret(
    graph: Graph, arguments: Sequence[Any], watch: Callable[[Node, Callable[[], Any]], Any] | None = None
) -> Any:
    """The graph's outputs for these inputs. `watch(node, run)`, if given, is to give what `run()` does, the node's call."""
    values = dict(zip(graph.inputs, arguments, strict=True))
    last = last_uses(graph)
    for node in graph.nodes:
        function, given = node.target, list(replaced(node.arguments, values))
        assert function is not None
        if isinstance(function, str):
            function = getattr(given.pop(0), function)
        keywords = {name: replaced(item, values) for name, item in node.keywords.items()}
        values[node] = (
            watch(node, partial(function, *given, **keywords)) if watch else function(*given, **keywords)
        )
        del given, keywords, function  # the last references to what is let go of
        for done in last.get(node, ()):
            del values[done]
    return replaced(graph.outputs, values)


def compile_graph(
    graph: Graph, *, on_arrays: bool = False, array_outputs: bool = False
) -> Callable[..., Any]:
    """The graph as a Python function, its inputs as parameters; a value is let go of after its last use.

    `on_arrays`: tensors are on the CPU and none has a gradient; calls that have an array form (`operators/operation.py`)
    pass numpy arrays on to each other, as every tensor made in between takes time and the interpreter lock four times.
    Tensors that are read by such calls only may be given as arrays; the function's attribute `array_inputs` tells which.
    `array_outputs`: what was computed as an array comes out as one.
    """
    writer = _Writer(graph, on_arrays)
    blocks = row_blocks.conditions(graph) if on_arrays else {}
    inside = {node for calls in blocks.values() for node in calls}
    outside = [node for node in graph.nodes if node in blocks or node not in inside]
    last = last_uses(graph, [call for node in outside for call in blocks.get(node, (node,))])
    for node in outside:
        if node in blocks:
            writer.block(blocks[node], last)
        else:
            writer.call(node, last.get(node, ()))
            writer.let_go(last.get(node, ()))
    return writer.function(graph, array_outputs)


class _Writer:
    """The lines of a function. Each value stands under its own name as a tensor, under another one as an array, or both."""

    def __init__(self, graph: Graph, on_arrays: bool) -> None:
        self._on_arrays = on_arrays
        self._parameters = graph.parameters()
        self._names = dict(GLOBALS)
        self._functions: dict[int, str] = {}
        self._taken = {*self._parameters, *(node.name for node in graph.nodes), *GLOBALS}
        self._tensors = set(graph.inputs)
        self._arrays: dict[Node, str] = {}
        self._prefers_array = set(graph.inputs)  # and what is made as an array
        self._read_as_tensors: set[Node] = set()
        self._functions_of_blocks: list[str] = []
        self._readers: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            for used in node.uses():
                self._readers.setdefault(used, []).append(node)
        self._lines = [f"def pipeline({', '.join(self._parameters)}):"]

    def _array_form(self, node: Node) -> Callable[..., Any] | None:
        """What computes the node from arrays and gives one, if it pays."""
        if not self._on_arrays:
            return None
        operation = operation_of(node.target)
        if operation.only_of_arrays and not any(used in self._prefers_array for used in node.uses()):
            return None
        return operation.host

    def call(self, node: Node, last: Sequence[Node] = ()) -> None:
        """Compute the node, from arrays by its array form if there is one; nobody reads the values `last` after it."""
        form = self._array_form(node)
        for used in node.uses():
            self._have(used, as_array=form is not None)
        if form is None:
            self._tensors.add(node)
            self._lines.append(f" {node.name} = {call_text(node, self._function_name)}")
            return
        name = self._arrays[node] = unique_name(f"{node.name}_array", self._taken)
        self._prefers_array.add(node)
        keywords = node.keywords
        own = [used for used in last if self._is_own(used)]
        if own and operation_of(node.target).takes_out:
            # A third array beside two would take twice as long, as the second cache holds no three.
            keywords = {**keywords, "out": own[-1]}
        on_arrays = Node(form, node.arguments, keywords, name)
        self._lines.append(f" {name} = {call_text(on_arrays, self._function_name, self._arrays)}")

    def _is_own(self, node: Node) -> bool:
        """Is the value an array that shares its memory with no other value?"""
        return (
            node in self._arrays
            and node not in self._tensors
            and operation_of(node.target).owns_result
            and all(operation_of(reader.target).owns_result for reader in self._readers[node])
        )

    def block(self, calls: list[Node], last: Mapping[Node, Sequence[Node]]) -> None:
        """Compute the last of the calls in blocks of rows, by a function of what the others read."""
        values = list(dict.fromkeys(used for node in calls for used in node.uses() if used not in calls))
        for used in values:
            self._have(used, as_array=True)
        self._prefers_array.update(values)
        names = [self._arrays[used] for used in values]
        before, self._lines = self._lines, []
        done: list[Node] = []
        for node in calls:
            self.call(node)
            self.let_go([used for used in last.get(node, ()) if used in calls])
            done += [used for used in last.get(node, ()) if used not in calls]
        result = self._arrays[calls[-1]]
        function = unique_name(f"{calls[-1].name}_of_block", self._taken)
        self._functions_of_blocks += [
            f"def {function}({', '.join(names)}):",
            *self._lines,
            f" return {result}",
        ]
        self._lines = before
        arguments = f"{function}, ({', '.join(names)},)"
        self._lines.append(f" {result} = {self._function_name(row_blocks.in_blocks)}({arguments})")
        self.let_go(done)

    def let_go(self, nodes: Sequence[Node]) -> None:
        names = [node.name for node in nodes if node in self._tensors]
        names += [self._arrays[node] for node in nodes if node in self._arrays]
        if names:
            self._lines[-1] += f"; {' = '.join(names)} = None"

    def function(self, graph: Graph, array_outputs: bool) -> Callable[..., Any]:
        arrays_put_out = self._arrays if array_outputs else {}
        for node in nodes_in(graph.outputs):
            if node not in arrays_put_out:
                self._have(node, as_array=False)
        lines = [*self._functions_of_blocks, *self._lines, f" {graph.result(arrays_put_out)}"]
        exec(compile("\n".join(lines), "<tensor program>", "exec"), self._names)  # noqa: S102 - names and literals of ours
        function: Callable[..., Any] = self._names["pipeline"]
        array_inputs = [
            position for position, node in enumerate(graph.inputs) if node not in self._read_as_tensors
        ]
        setattr(function, ARRAY_INPUTS, tuple(array_inputs))
        return function

    def _have(self, node: Node, *, as_array: bool) -> None:
        """Make the other form of a value, once, if it is not there."""
        if not as_array:
            self._read_as_tensors.add(node)
        if as_array and node not in self._arrays:
            self._arrays[node] = unique_name(f"{node.name}_array", self._taken)
            self._convert(arrays.as_array, node.name, self._arrays[node])
        elif not as_array and node not in self._tensors:
            self._tensors.add(node)
            self._convert(arrays.as_tensor, self._arrays[node], node.name)

    def _convert(self, function: Callable[[Any], Any], value: str, name: str) -> None:
        self._lines.append(f" {name} = {self._function_name(function)}({value})")

    def _function_name(self, function: Any) -> str:
        name = self._functions.get(id(function))
        if name is None:
            name = function_name(function)
            if "." not in name:
                name = unique_name(name, self._taken)
                self._names[name] = function
            self._functions[id(function)] = name
        return name
