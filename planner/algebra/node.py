"""What logical and physical plan nodes have in common: inputs, expressions, listed fields, and how plans are walked and rebuilt.

A node class is a frozen dataclass that says which of its attributes hold inputs, expressions and fields. Nothing else is
needed to walk, rewrite, renumber or compare plans, so none of that code knows the kinds of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import chain
from operator import is_
from typing import Any, ClassVar, Generic, Self, TypeVar

from tqp.core.schema import Field
from tqp.planner.algebra.derived import Answer, derived
from tqp.planner.algebra.expressions import Expression, collect_values, map_values, walk
from tqp.planner.algebra.subquery_expressions import SUBQUERIES, Subquery

Plan = TypeVar("Plan", bound="Node[Any]")
Kind = TypeVar("Kind", bound="Node[Any]")


class derived_of_own(derived[Answer]):
    """Derived of what a node holds besides its inputs: a node that differs from another in its inputs only has it already."""

    names: ClassVar[list[str]] = []

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        self.names.append(name)


class Node(Generic[Plan]):
    """Base of the nodes whose inputs are of the kind `Plan`. Immutable, so what is derived from a node stays true.

    An attribute named in INPUTS, EXPRESSIONS or FIELDS holds one of them, None, or a tuple; among expressions also tuples of
    tuples, and objects with `expressions` and `map_expressions` of their own, such as sort keys.
    """

    #: What a node class has to define itself. A class that sets this is a base, not a node.
    REQUIRED: ClassVar[frozenset[str]] = frozenset(("INPUTS", "EXPRESSIONS", "FIELDS"))

    INPUTS: ClassVar[tuple[str, ...]]
    EXPRESSIONS: ClassVar[tuple[str, ...]]
    FIELDS: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        missing = () if "REQUIRED" in cls.__dict__ else sorted(cls.REQUIRED - cls.__dict__.keys())
        if missing:
            raise TypeError(f"the plan node {cls.__name__} does not define {', '.join(missing)}")

    @derived
    def inputs(self) -> tuple[Plan, ...]:
        """The plans whose rows the node reads."""
        return _listed(self, self.INPUTS)

    @derived
    def kinds(self) -> frozenset[type]:
        """The classes of the node and of everything below it, without the plans of subqueries."""
        return frozenset((type(self),)).union(*[child.kinds for child in self.inputs])

    @derived
    def below(self) -> tuple[Plan, ...]:
        """Every node below, as `walk_plan` has them."""
        return _nodes_below(self, into_subqueries=False)

    @derived
    def below_and_inside(self) -> tuple[Plan, ...]:
        """Those of the plans of subqueries, too."""
        return _nodes_below(self, into_subqueries=True)

    @derived_of_own
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression the node evaluates over its inputs."""
        found: list[Expression] = []
        for name in self.EXPRESSIONS:
            collect_values(self.__dict__[name], found)
        return tuple(found)

    @derived_of_own
    def parts(self) -> list[Expression]:
        """The node's expressions and everything below them, parents first; nothing of the plans of subqueries."""
        return [*chain.from_iterable(map(walk, self.expressions))]

    @derived_of_own
    def kinds_of_parts(self) -> frozenset[type]:
        """The classes of the expressions in `parts`."""
        return frozenset(map(type, self.parts))

    @derived_of_own
    def subqueries(self) -> tuple[Plan, ...]:
        """The plans of the subqueries in the node's expressions, not those inside them."""
        if self.kinds_of_parts.isdisjoint(SUBQUERIES):
            return ()
        return tuple([part.plan for part in self.parts if isinstance(part, Subquery)])  # type: ignore[misc]

    @derived_of_own
    def created_fields(self) -> tuple[Field, ...]:
        """The fields that the node itself lists; some may be those of an input, passed on."""
        return _listed(self, self.FIELDS)

    def shape(self, describe: Callable[[Expression], Hashable]) -> Hashable:
        """What the node is but for its inputs and fields, with `describe` of each expression in its place."""
        described = _mapped(self, self.EXPRESSIONS, describe)
        others = {*self.INPUTS, *self.FIELDS}
        values = (described.__dict__[name] for name in _attributes(self) if name not in others)
        return type(self), *values

    def map_inputs(self, function: Callable[[Plan], Plan]) -> Self:
        """The node over `function` of each input; the same object if nothing changes."""
        inputs = self.inputs
        return self.with_inputs([function(child) for child in inputs]) if inputs else self

    def map_expressions(self, function: Callable[[Expression], Expression]) -> Self:
        """The node with `function` applied to each of its expressions; the same object if nothing changes."""
        return _mapped(self, self.EXPRESSIONS, function)

    def map_fields(self, function: Callable[[Field], Field]) -> Self:
        """The node with `function` applied to each field that it lists; the same object if nothing changes."""
        return _mapped(self, self.FIELDS, function)

    def changed(self, values: Mapping[str, object]) -> Self:
        """The node with other values of some attributes."""
        copy = object.__new__(type(self))
        copy.__dict__.update({name: self.__dict__[name] for name in _attributes(self)}, **values)
        return copy

    def with_inputs(self, inputs: Iterable[Plan]) -> Self:
        """The node over other inputs, in the order of `inputs`; the same object if nothing changes."""
        replacements = tuple(inputs)
        if all(map(is_, replacements, self.inputs)):
            return self
        following = iter(replacements)
        copy = _mapped(self, self.INPUTS, lambda _: next(following))
        own = self.__dict__
        copy.__dict__.update({name: own[name] for name in derived_of_own.names if name in own})
        return copy


def grow(node: Node[Any], **values: object) -> None:
    """Give attributes of a node longer tuples: for the binder, which finds out only at the end what a query reads.

    Nothing but its schema and its inputs may have been derived from the node yet, and nobody else may hold it for finished.
    """
    for name in ("created_fields", "inputs"):
        node.__dict__.pop(name, None)
    assert len(node.__dict__) == len(_attributes(node)), "a node that something was derived from is finished"
    node.__dict__.update(values)


def walk_plan(plan: Plan, into_subqueries: bool = False) -> tuple[Plan, ...]:
    """The plan and everything below it, parents first; what stands in several places once.

    `into_subqueries`: the plans of subqueries in the expressions of logical nodes too.
    """
    return plan, *(plan.below_and_inside if into_subqueries else plan.below)


def _nodes_below(plan: Node[Any], into_subqueries: bool) -> tuple[Any, ...]:
    found: dict[int, Node[Any]] = {}
    stack: list[Node[Any]] = [plan]
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            stack += node.inputs[::-1]
            if into_subqueries:
                stack += node.subqueries
    return tuple(found.values())[1:]


def transform_plan(plan: Plan, function: Callable[[Plan], Plan]) -> Plan:
    """The plan with `function` applied to every node after its inputs; what stands in several places is rebuilt once."""
    done: dict[int, Plan] = {}

    def visit(node: Plan) -> Plan:
        known = done.get(id(node))
        if known is None:
            known = done[id(node)] = function(node.map_inputs(visit))
        return known

    return visit(plan)


def _attributes(node: object) -> tuple[str, ...]:
    names: tuple[str, ...] = type(node).__match_args__  # type: ignore[attr-defined]
    return names


def _listed(node: object, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The inputs or fields in attributes of a node, in order."""
    found: tuple[Any, ...] = ()
    for name in names:
        value = node.__dict__[name]
        found += value if isinstance(value, tuple) else () if value is None else (value,)
    return found


def _mapped(node: Kind, names: tuple[str, ...], function: Callable[[Any], Any]) -> Kind:
    """The node with `function` applied to the single values in some of its attributes."""
    changes = {}
    for name in names:
        old = node.__dict__[name]
        new = map_values(old, function)
        if new is not old:
            changes[name] = new
    if not changes:
        return node
    return node.changed(changes)
