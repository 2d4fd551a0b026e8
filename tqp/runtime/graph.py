"""The graph of one pipeline: calls on named values, recorded once, as Python to run or to read and as torch.fx.

Recording a node here takes a fifth of the time that `torch.fx` takes. The text is what `program.code` shows, and
`graph_function` makes of it what the executor runs; `Graph.module` gives the graph to whoever wants torch.fx: compilers,
profilers, exporters.
"""

from __future__ import annotations

import functools
import keyword
import math
import operator
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx

_INFIX: dict[Any, str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}
_PREFIX: dict[Any, str] = {operator.invert: "~", operator.neg: "-"}
#: What generated code may use without being told, besides what its calls refer to.
GLOBALS: dict[str, Any] = {"torch": torch, "inf": math.inf, "nan": math.nan}
_naming = threading.Lock()


class Node:
    """One value: an input (`target` is None), a call of `target` or, where that is a string, of a method.

    `fragment`: the SQL it comes from; `operator`: the id of the physical node that it belongs to; `row_bytes`: what it
    takes a row, 0 where that is not known (masks, row numbers); `scans`: the call reads all the text of its rows;
    `makes_text`: it makes bytes of text for each row, or values of them; `counts_rows`: it minds which rows came before.
    """

    __slots__ = (
        "_fragment",
        "_uses",
        "arguments",
        "counts_rows",
        "keywords",
        "makes_text",
        "name",
        "operator",
        "row_bytes",
        "scans",
        "target",
    )

    def __init__(
        self,
        target: Callable[..., Any] | str | None,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        name: str,
        fragment: object = None,
        operator: int | None = None,
    ) -> None:
        self.target, self.arguments, self.keywords, self.name = target, arguments, keywords, name
        self._fragment, self.operator = fragment, operator
        self._uses: list[Node] | None = None  # found when somebody asks
        self.row_bytes = 0
        self.scans = False
        self.makes_text = False
        self.counts_rows = False

    def __repr__(self) -> str:
        return self.name

    @property
    def fragment(self) -> str | None:
        """The SQL it comes from."""
        return None if self._fragment is None else str(self._fragment)

    def uses(self) -> list[Node]:
        """The nodes among the arguments, as often as they occur."""
        if self._uses is None:
            self._uses = nodes_in(self.arguments)
            if self.keywords:
                self._uses += nodes_in(self.keywords.values())
        return self._uses

    def add_argument(self, argument: Any) -> None:
        """Have the call take one argument more, before a graph is made of it."""
        self.arguments, self._uses = (*self.arguments, argument), None


class Graph:
    """`nodes` in the order of their calls, without those that `outputs` does not need; `inputs` are in any order.

    Each output is computed wholly before the next one is begun, and an argument right before the call that reads it: values
    live for a short time, so that the caches hold them.
    """

    def __init__(self, inputs: Sequence[Node], outputs: tuple[Any, ...]) -> None:
        given = set(inputs)
        order: dict[Node, None] = {}
        waiting = nodes_in(outputs)[::-1]
        begun: set[Node] = set()  # whose arguments are called before they are met again
        while waiting:
            node = waiting[-1]
            if node in begun or node in given or not (used := node.uses()):
                order[node] = None
                del waiting[-1]
            else:
                begun.add(node)
                waiting += used[::-1]
        self.inputs = [node for node in inputs if node in order]
        self.nodes = [node for node in order if node not in given]
        self.outputs = outputs
        self._named = False

    def _name(self) -> None:
        """Make the names unique; not before somebody reads them, as most programs run once, uncompiled."""
        with _naming:
            if self._named:
                return
            taken = set(GLOBALS)
            taken.update(function_name(node.target) for node in self.nodes if not has_syntax(node.target))
            for node in (*self.inputs, *self.nodes):
                node.name = unique_name(identifier(node.name), taken)
            self._named = True

    def parameters(self) -> list[str]:
        """The names of the inputs."""
        self._name()
        return [node.name for node in self.inputs]

    def lines(self, function_names: Callable[[Any], str]) -> Iterator[tuple[Node, str]]:
        """Each node's assignment."""
        self._name()
        for node in self.nodes:
            yield node, f"{node.name} = {call_text(node, function_names)}"

    def result(self, value_names: Mapping[Node, str] | None = None) -> str:
        """The return statement. `value_names`: of the values that stand under another name than their own."""
        self._name()
        return f"return {_literal(self.outputs, function_name, value_names or {})}"

    def module(self) -> fx.GraphModule:
        """The same as torch.fx; `meta` has each node's `fragment`, `operator` and `node`, the one here."""
        self._name()
        graph = fx.Graph()
        made: dict[Node, fx.Node] = {}

        for node in self.inputs:
            made[node] = graph.placeholder(node.name)
            made[node].target = made[node].name  # where fx renames, the parameter could shadow another node
        for node in self.nodes:
            arguments = replaced(node.arguments, made)
            keywords = {name: replaced(item, made) for name, item in node.keywords.items()}
            kind = "call_method" if isinstance(node.target, str) else "call_function"
            assert node.target is not None
            made[node] = graph.create_node(kind, node.target, arguments, keywords, name=node.name)
        for node, copy in made.items():
            copy.meta.update(fragment=node.fragment, operator=node.operator, node=node)
        graph.output(replaced(self.outputs, made))
        return fx.GraphModule(torch.nn.Module(), graph)


def nodes_in(items: Any) -> list[Node]:
    """The nodes in nested tuples and lists."""
    found: list[Node] = []
    for item in items:
        kind = type(item)
        if kind is Node:
            found.append(item)
        elif kind is tuple or kind is list or isinstance(item, tuple):
            found += nodes_in(item)
    return found


def replaced(item: Any, values: Mapping[Node, Any]) -> Any:
    """The item with values in place of the nodes in nested tuples and lists."""
    if isinstance(item, Node):
        return values[item]
    if isinstance(item, (tuple, list)):
        return type(item)(replaced(part, values) for part in item)
    return item


def identifier(text: str) -> str:
    """A Python identifier that looks like `text`."""
    if text.isidentifier() and not keyword.iskeyword(text):
        return text
    cleaned = re.sub(r"\W+", "_", text).strip("_") or "value"
    if cleaned[0].isdigit() or keyword.iskeyword(cleaned):
        cleaned = f"_{cleaned}"
    return cleaned


def live_bytes(graph: Graph, *, handed_on: bool = True) -> int:
    """The most that a row's values take at once, if each lives from its call to its last use, inputs and outputs throughout.

    Without inputs that no call reads, unless what is just `handed_on` counts.
    """
    last = last_uses(graph)
    read = {used for node in graph.nodes for used in node.uses()}
    live = most = sum(node.row_bytes for node in graph.inputs if handed_on or node in read)
    for node in graph.nodes:
        live += node.row_bytes
        most = max(most, live)
        live -= sum(used.row_bytes for used in last.get(node, ()))
    return most


def last_uses(graph: Graph, order: Sequence[Node] | None = None) -> dict[Node, list[Node]]:
    """The values that nobody reads after a node, where the nodes are called in that order."""
    seen = set(nodes_in(graph.outputs)).union(graph.inputs)
    last: dict[Node, list[Node]] = {}
    for node in reversed(graph.nodes if order is None else order):
        for used in node.uses():
            if used not in seen:
                seen.add(used)
                last.setdefault(node, []).append(used)
    return last


def unique_name(name: str, taken: set[str]) -> str:
    """`name`, with a number behind it if it is taken; it is then."""
    unique, number = name, 0
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    taken.add(unique)
    return unique


@functools.lru_cache(maxsize=1024)
def _torch_name(name: str, function: Any) -> str:
    return f"torch.{name}" if getattr(torch, name, None) is function else name


def function_name(function: Any) -> str:
    """What a call of it says: `torch.where`, or the bare name of a kernel of ours."""
    name = getattr(function, "__name__", None) or type(function).__name__
    module = getattr(function, "__module__", None)
    if module is None or module.startswith("torch"):
        return _torch_name(name, function)
    return name if name.isidentifier() else identifier(name)


def has_syntax(target: Any) -> bool:
    """Is it written without a name, as an operator or a method is?"""
    return isinstance(target, str) or target in _INFIX or target in _PREFIX or target is operator.getitem


def call_text(
    node: Node, function_names: Callable[[Any], str], value_names: Mapping[Node, str] | None = None
) -> str:
    """The node's call as Python. `value_names`: of the values that stand under another name than their own."""

    def text(item: Any) -> str:
        return _literal(item, function_names, value_names or {})

    target, arguments = node.target, node.arguments
    if len(arguments) == 2 and target in _INFIX:
        return f"{text(arguments[0])} {_INFIX[target]} {text(arguments[1])}"
    if len(arguments) == 1 and target in _PREFIX:
        return f"{_PREFIX[target]}{text(arguments[0])}"
    if target is operator.getitem:
        return f"{text(arguments[0])}[{text(arguments[1])}]"
    parts = [text(item) for item in arguments]
    parts += [f"{name}={text(item)}" for name, item in node.keywords.items()]
    if isinstance(target, str):
        return f"{parts[0]}.{target}({', '.join(parts[1:])})"
    return f"{function_names(target)}({', '.join(parts)})"


def _literal(item: Any, function_names: Callable[[Any], str], value_names: Mapping[Node, str]) -> str:
    """An argument as Python."""
    if isinstance(item, Node):
        return value_names.get(item, item.name)
    if isinstance(item, (tuple, list)):
        inside = ", ".join(_literal(part, function_names, value_names) for part in item)
        if isinstance(item, list):
            return f"[{inside}]"
        return f"({inside},)" if len(item) == 1 else f"({inside})"
    if item is None or isinstance(item, (bool, int, float, str, bytes, torch.dtype)):
        return repr(item)
    return function_names(item)  # any other object, by a name of its own
