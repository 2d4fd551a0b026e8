"""What is derived of immutable objects, plan nodes and expressions: computed when it is first asked for, then kept with the object.

Without a lock: two threads may both compute it, and get the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, Self, TypeVar, overload

Subject = TypeVar("Subject")
Answer = TypeVar("Answer")


class derived(Generic[Answer]):
    """A property that is computed once. Without a lock, unlike `functools.cached_property`."""

    def __init__(self, function: Callable[[Any], Answer]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Answer: ...
    def __get__(self, instance: object, owner: type) -> Answer | Self:
        if instance is None:
            return self
        answer = instance.__dict__[self.name] = self.function(instance)
        return answer


def derived_once(function: Callable[[Subject], Answer]) -> Callable[[Subject], Answer]:
    """A function of one such object that is asked again and again: its answer, never None, is computed once.

    It must not hold the object itself, which would live until garbage is searched for then, with the tables that it reads.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def answer(subject: Subject) -> Answer:
        known: Answer | None = subject.__dict__.get(name)
        if known is None:
            known = subject.__dict__[name] = function(subject)
        return known

    return answer
