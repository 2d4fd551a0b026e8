"""Fields by id, with what has been derived from them of expressions: of each node once, however often it is asked.

A question about an expression asks the same of its parts. Whoever then asks about the parts, too, would walk the whole
expression again for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import Expression

Fields = dict[int, Field]
FieldsById = Mapping[int, Field]
Part = TypeVar("Part", bound=Expression)
Answer = TypeVar("Answer")


class Answers:
    """Answers to questions about expressions, by node; the nodes are kept alive, so that their ids stay their own."""

    def __init__(self) -> None:
        self._answers: dict[tuple[Callable[..., Any], int], tuple[Expression, Any]] = {}

    def derived(self, question: Callable[[Part, Self], Answer], expression: Part) -> Answer:
        """`question(expression, self)`, asked once for each node."""
        key = (question, id(expression))
        known = self._answers.get(key)
        if known is None:
            known = self._answers[key] = (expression, question(expression, self))
        answer: Answer = known[1]
        return answer

    def forget(self) -> None:
        """Called where what the answers rest on has changed."""
        self._answers.clear()


class KnownFields(dict[int, Field], Answers):
    """Fields by id, and what follows from them. Where a field is replaced, all that has been derived is forgotten."""

    def __init__(self, fields: FieldsById | None = None) -> None:
        dict.__init__(self, fields or {})
        Answers.__init__(self)

    def __setitem__(self, id: int, field: Field) -> None:
        super().__setitem__(id, field)
        self.forget()

    def put(self, fields: Iterable[Field]) -> None:
        """Add these, in place of those of the same ids."""
        super().update([(field.id, field) for field in fields])
        self.forget()


def known_fields(fields: FieldsById) -> KnownFields:
    """The fields as `KnownFields`: those themselves, or a copy."""
    return fields if isinstance(fields, KnownFields) else KnownFields(fields)
