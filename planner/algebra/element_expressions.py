"""Expressions over the elements of lists, as they are bound: what a lambda computes of each."""

from __future__ import annotations

from dataclasses import field, replace

from tqp.core.datatypes import DataType
from tqp.core.frozen import dataclass
from tqp.planner.algebra.expressions import Expression, Literal


@dataclass(frozen=True, slots=True)
class ElementRef(Expression):
    """The element, or its place, that an `OverElements` around it is at. Not a column: no plan puts it out."""

    id: int
    data_type: DataType = field(hash=False)
    name: str = field(default="", compare=False)  # display only


@dataclass(frozen=True, slots=True)
class OverElements(Expression):
    """What is computed of each element of a list, and what becomes of the outcomes.

    `function`: list_transform makes a list of them; list_filter keeps the elements where `body` is true; list_any says whether it
    is for one of them, list_first_place where it is first (counted from 1; NULL where it never is). Any other name is that of
    an aggregate, of the outcomes of one list. NULL where the list is. `index`: the place of the element, if `body` reads it.
    """

    function: str
    input: Expression
    body: Expression
    element: ElementRef
    index: ElementRef | None
    data_type: DataType = field(hash=False)
    extra: tuple[Literal, ...] = ()  # further arguments of an aggregate
    span: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return (self.input, self.body)

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        return replace(self, input=inputs[0], body=inputs[1])


@dataclass(frozen=True, slots=True)
class ReduceElements(Expression):
    """What the elements of a list come to, each combined with what those before it have come to, which is `reduced`.

    `initial`: what they start from, which is `from_first` the first element, so that a list without elements is an error. NULL
    where the list is. `index`: the place of the element, if `body` reads it.
    """

    input: Expression
    initial: Expression
    body: Expression
    reduced: ElementRef
    element: ElementRef
    index: ElementRef | None
    from_first: bool
    span: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def data_type(self) -> DataType:
        return self.reduced.data_type

    @property
    def parameters(self) -> tuple[ElementRef, ...]:
        """What `body` calls its own, in this order."""
        return (self.reduced, self.element, *([self.index] if self.index else []))

    @property
    def inputs(self) -> tuple[Expression, ...]:
        return (self.input, self.initial, self.body)

    def with_inputs(self, inputs: tuple[Expression, ...]) -> Expression:
        return replace(self, input=inputs[0], initial=inputs[1], body=inputs[2])
