"""Builds one torch.fx graph: value numbering, readable names, and the SQL fragment each node comes from."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx

from tqp.core.errors import Error

Node = fx.Node


class NamedKernel:
    """A kernel under the name it has in SQL, bound to the place in the SQL that an error of its should point at."""

    def __init__(self, function: Callable[..., Any], name: str, span: tuple[int, int] | None) -> None:
        self.function, self.span = function, span
        self.__name__ = self.__qualname__ = name
        self.__module__ = "tqp.operators"

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        try:
            return self.function(*arguments, **keywords)
        except Error as error:
            if error.span is None:
                error.span = self.span
            raise

    def __eq__(self, other: object) -> bool:
        """Calls of one function at two places in the SQL are the same computation, if the function objects are."""
        return isinstance(other, NamedKernel) and (self.function, self.__name__) == (
            other.function,
            other.__name__,
        )

    def __hash__(self) -> int:
        return hash((self.function, self.__name__))


class GraphBuilder:
    """Equal calls give the same node, so common subexpressions are computed once."""

    def __init__(self) -> None:
        self.graph = fx.Graph()
        self.inputs: dict[str, Node] = {}
        self._numbered: dict[Any, Node] = {}
        self._fragment: str | None = None
        self.operator: int | None = None  # id of the physical node that new nodes belong to

    def input(self, name: str) -> Node:
        """The placeholder called `name`, made on first use."""
        node = self.inputs.get(name)
        if node is None:
            last = next(reversed(self.inputs.values()), None)
            with self.graph.inserting_after(last) if last is not None else self.graph.inserting_before():
                node = self.graph.placeholder(identifier(name))
            # Where fx has renamed the node, a parameter under the old name could shadow another node.
            node.target = node.name
            self.inputs[name] = node
        return node

    def call(
        self, target: Callable[..., Any], *arguments: Any, name: str | None = None, **keywords: Any
    ) -> Node:
        key = ("function", target, _freeze(arguments), _freeze(keywords))
        return self._number(key, lambda: self.graph.call_function(target, arguments, keywords), name)

    def method(self, method: str, *arguments: Any, name: str | None = None) -> Node:
        key = ("method", method, _freeze(arguments))
        return self._number(key, lambda: self.graph.call_method(method, arguments), name)

    @contextmanager
    def fragment(self, text: str) -> Iterator[None]:
        """Nodes made inside carry `text` as the comment of the program's code."""
        outer, self._fragment = self._fragment, text
        try:
            yield
        finally:
            self._fragment = outer

    def output(self, nodes: tuple[Any, ...]) -> None:
        self.graph.output(nodes)
        self.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))

    def module(self) -> fx.GraphModule:
        return fx.GraphModule(torch.nn.Module(), self.graph)

    def _number(self, key: Any, make: Callable[[], Node], name: str | None) -> Node:
        node = self._numbered.get(key)
        if node is None:
            node = make()
            if name is not None:
                node._rename(identifier(name))
            node.meta["fragment"], node.meta["operator"] = self._fragment, self.operator
            self._numbered[key] = node
        return node


def identifier(text: str) -> str:
    """A Python identifier that looks like `text`."""
    cleaned = re.sub(r"\W+", "_", text).strip("_") or "value"
    if cleaned[0].isdigit() or keyword.iskeyword(cleaned):
        cleaned = f"_{cleaned}"
    return cleaned


def _freeze(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return (type(value), *(_freeze(item) for item in value))
    if isinstance(value, dict):
        return tuple((key, _freeze(item)) for key, item in value.items())
    if isinstance(value, (bool, int, float)):
        return (type(value), repr(value))  # 1, 1.0 and True are equal but not the same; so are 0.0 and -0.0
    return value
