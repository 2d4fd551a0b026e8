"""Records the graph of a pipeline: value numbering, readable names, and the SQL fragment each node comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from tqp.core.errors import Error
from tqp.operators.kernel import Kernel
from tqp.planner.algebra.expression_text import format_expression
from tqp.planner.algebra.expressions import Expression
from tqp.runtime.graph import Graph, Node

__all__ = ["GraphBuilder", "NamedKernel", "Node"]


class NamedKernel:
    """A kernel under the name it has in SQL, bound to the place in the SQL that an error of its should point at.

    `origin`: finds the kernel that the function, or with `of_device` the function's form for any device, is of.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        span: tuple[int, int] | None,
        origin: partial[Kernel] | None = None,
        *,
        of_device: bool = False,
    ) -> None:
        self.function, self.span, self.origin, self.of_device = function, span, origin, of_device
        self.__name__ = self.__qualname__ = name
        self.__module__ = "tqp.operators"

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        try:
            return self.function(*arguments, **keywords)
        except Error as error:
            if error.span is None:
                error.span = self.span
            raise

    def calling(self, function: Callable[..., Any]) -> NamedKernel:
        """Another function under the same name and for the same place."""
        return NamedKernel(function, self.__name__, self.span)

    def on_device(self, form: Callable[..., Any]) -> NamedKernel:
        """The form of the function that runs on any device."""
        return NamedKernel(form, self.__name__, self.span, self.origin, of_device=True)

    def __eq__(self, other: object) -> bool:
        """Calls of one function at two places in the SQL are the same computation, if the function objects are."""
        return isinstance(other, NamedKernel) and (self.function, self.__name__) == (
            other.function,
            other.__name__,
        )

    def __hash__(self) -> int:
        return hash((self.function, self.__name__))


class Fragment:
    """SQL in a comment of a program's code. Its text is made when somebody reads it: most programs are never printed."""

    __slots__ = ("_parts", "_text")

    def __init__(self, parts: tuple[str | Expression, ...]) -> None:
        self._parts = parts
        self._text: str | None = None

    def __str__(self) -> str:
        if self._text is None:
            texts = [part if isinstance(part, str) else format_expression(part) for part in self._parts]
            self._text, self._parts = "".join(texts), ()
        return self._text


def listed(expressions: Iterable[Expression], separator: str) -> list[str | Expression]:
    """The expressions as parts of a fragment, with the separator between them."""
    return [part for expression in expressions for part in (separator, expression)][1:]


class _Commented:
    """A block whose nodes carry a fragment; a generator would take three times as long, dozens of times a query."""

    __slots__ = ("_builder", "_other")

    def __init__(self, builder: GraphBuilder, fragment: Fragment) -> None:
        self._builder = builder
        self._other: Fragment | None = fragment

    def __enter__(self) -> None:
        self._builder.current, self._other = self._other, self._builder.current

    def __exit__(self, *error: object) -> None:
        self._builder.current = self._other


class GraphBuilder:
    """Equal calls give the same node, so common subexpressions are computed once."""

    def __init__(self) -> None:
        self._inputs: dict[Any, Node] = {}
        self._numbered: dict[Any, Node] = {}
        self.current: Fragment | None = None  # that new nodes carry
        self.operator: int | None = None  # id of the physical node that new nodes belong to

    def input(self, name: str, what: Any = None) -> Node:
        """The input that is `what`, or the one called `name`, made on first use."""
        what = name if what is None else what
        node = self._inputs.get(what)
        if node is None:
            node = self._inputs[what] = Node(None, (), {}, name)
        return node

    def call(
        self, target: Callable[..., Any], *arguments: Any, name: str | None = None, **keywords: Any
    ) -> Node:
        return self._number(target, arguments, keywords, name or target.__name__)

    def known(self, target: Callable[..., Any], *arguments: Any) -> Node | None:
        """The node of a call that has been made already."""
        return self._numbered.get((target, *map(_freeze, arguments)))

    def calls_of(self, target: Callable[..., Any]) -> Iterator[Node]:
        """The nodes of all its calls, in the order in which they were recorded."""
        return (node for node in self._numbered.values() if node.target is target)

    def method(self, method: str, *arguments: Any, name: str | None = None) -> Node:
        return self._number(method, arguments, {}, name or method)

    def fragment(self, *parts: str | Expression) -> _Commented:
        """Nodes made inside carry the parts' text as the comment of the program's code."""
        return _Commented(self, Fragment(parts))

    def graph(self, outputs: tuple[Any, ...]) -> tuple[Graph, list[Any]]:
        """The finished graph, and what the inputs are that it needs."""
        graph = Graph(list(self._inputs.values()), outputs)
        used = set(graph.inputs)
        return graph, [what for what, node in self._inputs.items() if node in used]

    def _number(self, target: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], name: str) -> Node:
        key = (target, *map(_freeze, arguments), *map(_freeze, keywords.items() if keywords else ()))
        node = self._numbered.get(key)
        if node is None:
            node = Node(target, arguments, keywords, name, self.current, self.operator)
            self._numbered[key] = node
        return node


def _freeze(value: Any) -> Any:
    kind = type(value)
    if kind is Node:
        return value
    if kind is int or kind is bool:
        return kind, value  # 1, 1.0 and True are equal but not the same; so are 0.0 and -0.0
    if isinstance(value, float):
        return kind, repr(value)
    if isinstance(value, (tuple, list)):
        return (kind, *map(_freeze, value))
    return value
