"""Where in a text of SQL something stands."""

from __future__ import annotations

from typing import NamedTuple

from tqp.core.keywords import in_quotes


class Part(NamedTuple):
    """The tokens of a query, an expression or the like: the first, and the one behind the last."""

    start: int
    stop: int


class Name(NamedTuple):
    """A name without its quotes, the characters of the text where it stands, and the names before it, with dots between: of a schema, perhaps of a database."""

    text: str
    span: tuple[int, int]
    qualifiers: tuple[str, ...] = ()

    @property
    def in_quotes(self) -> str:
        """With the names before it, as SQL text that means nothing else."""
        return ".".join(map(in_quotes, (*self.qualifiers, self.text)))

    @property
    def shown(self) -> str:
        """With the names before it."""
        return ".".join((*self.qualifiers, self.text))
