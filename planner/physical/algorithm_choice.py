"""A choice of an algorithm by rules: a tuple of them in order of preference, of which the first one that applies counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tqp.core.backends import Backend
from tqp.core.schema import TableSource

Situation = TypeVar("Situation")
Algorithm = TypeVar("Algorithm")


@dataclass(frozen=True, slots=True)
class PhysicalOptions:
    """What a plan is for; `disabled_rules` from `PHYSICAL_RULES`.

    Planning reads no values. It notes in `wanted` the columns (table, name) of which it lacked a dictionary that is worth
    being made: a plan made with it is better.
    """

    backend: Backend = Backend.HOST
    disabled_rules: frozenset[str] = frozenset()
    wanted: list[tuple[TableSource, str]] = field(default_factory=list, compare=False)

    def is_on(self, rule: str) -> bool:
        """May the choice be made?"""
        return rule not in self.disabled_rules

    @property
    def runs_are_known(self) -> bool:
        """Can the rows of a sorted column be found by its runs?"""
        return self.is_on("filter_by_runs") and self.backend is Backend.HOST


@dataclass(frozen=True, slots=True)
class Choice(Generic[Situation, Algorithm]):
    """An algorithm and where it is to be taken. `rule` is the name by which it can be switched off; None: it cannot."""

    algorithm: Algorithm
    rule: str | None
    applies: Callable[[Situation], bool]


def choose(
    choices: Iterable[Choice[Situation, Algorithm]], situation: Situation, disabled_rules: frozenset[str]
) -> Choice[Situation, Algorithm]:
    """The first that is on and applies; the last of the choices always does."""
    return next(
        choice for choice in choices if choice.rule not in disabled_rules and choice.applies(situation)
    )


def rules_of(choices: Iterable[Choice[Any, Any]]) -> tuple[str, ...]:
    """The names by which they can be switched off."""
    return tuple(choice.rule for choice in choices if choice.rule is not None)
