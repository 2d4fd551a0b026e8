"""What the runtime needs to know of a scalar kernel in order to call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tqp.core.datatypes import DataType


class NullRule(Enum):
    PROPAGATE = "propagate"  # NULL in, NULL out: the kernel sees values only, the caller combines validities
    CUSTOM = "custom"  # the kernel sees (values, validity) pairs and returns such a pair


@dataclass(frozen=True, slots=True)
class Kernel:
    """One overload of a scalar function.

    `function(*arguments)`: an argument is a tensor [n] in the storage of its type (integer-like types in any integer
    width, or int64 [n, 2] when `accepts_wide`), or `Strings`; a literal argument comes as a 0-d tensor or a one-row
    `Strings` and broadcasts. Arguments at `constant_arguments` come as plain Python storage values instead, and must be
    literals; where `constants_may_vary` they may be anything, and come as tensors if they are no literals. Those of them at
    `varying_arguments` may be anything, too: the kernel is called for the rows of each value. With CUSTOM each non-constant argument is a pair (values, validity or None).
    Returns values: bool, int64 (integer-like), float32/float64, int64 [n, 3] (INTERVAL), `Strings`; a pair
    (values, validity or None) when `nulls` is CUSTOM or `returns_validity`.
    A kernel that may raise has `checks`: it takes the keyword `validity` (bool [n] or None, the rows that count) and
    must not raise for rows where that is False. With `any_width` integer-like values may be narrower than int64. One that
    `scans` reads all bytes of its first argument, in blocks of its own, and makes no strings. `prepare`: it takes what this makes
    of its first argument, once for all calls that share that argument.
    """

    function: Callable[..., Any]
    nulls: NullRule = NullRule.PROPAGATE
    constant_arguments: frozenset[int] = frozenset()
    constants_may_vary: bool = False
    varying_arguments: frozenset[int] = frozenset()
    returns_validity: bool = False
    checks: bool = False
    accepts_wide: bool = False
    any_width: bool = False
    scans: bool = False
    prepare: Callable[[Any], Any] | None = None


#: Finds the kernel of a function for argument types and a result type; None if there is no such overload.
Overload = Callable[[tuple[DataType, ...], DataType], Kernel | None]
