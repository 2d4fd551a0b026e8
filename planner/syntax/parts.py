"""Where in a text of SQL something stands."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """The tokens of a query, an expression or the like: the first, and the one behind the last."""

    start: int
    stop: int


class Name(NamedTuple):
    """A name without its quotes, and the characters of the text where it stands."""

    text: str
    span: tuple[int, int]
