"""What every part of the grammar stands on: the token at hand, the next ones, and the error where they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import NoReturn

from tqp.core.errors import ParseError, UnsupportedError
from tqp.planner.syntax.tokens import Tokens
from tqp.planner.syntax.words import END, LABELS, TEXT


class Reader:
    """Moves over tokens from left to right, once.

    A method of a grammar that is named after a construct (`expression`, `query`) moves behind it, or raises ParseError
    at the first token that cannot belong to it.
    """

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.kinds = tokens.kinds
        self.index = 0
        self.kind = tokens.kinds[0]

    def advance(self, count: int = 1) -> None:
        """Move over `count` tokens."""
        self.index += count
        self.kind = self.kinds[self.index]

    def next_kind(self, count: int = 1) -> str:
        """The kind of the token `count` behind the one at hand."""
        return self.kinds[self.index + count]

    def next_is(self, *kinds: str) -> bool:
        """Whether the tokens behind the one at hand are these."""
        return self.kinds[self.index + 1 : self.index + 1 + len(kinds)] == list(kinds)

    def skip(self, *kinds: str) -> bool:
        """Move over these tokens if they are all there."""
        if self.kind != kinds[0] or len(kinds) > 1 and not self.next_is(*kinds[1:]):
            return False
        self.advance(len(kinds))
        return True

    def skip_any(self, kinds: Container[str]) -> bool:
        """Move over one token of these kinds if it is there."""
        if self.kind not in kinds:
            return False
        self.advance()
        return True

    def expect(self, *kinds: str) -> None:
        """Move over these tokens, or refuse the first that is not there."""
        for kind in kinds:
            if self.kind != kind:
                self.refuse(kind if kind.isalpha() else f'"{kind}"')
            self.advance()

    def expect_any(self, kinds: Container[str], what: str) -> None:
        """Move over one token of these kinds, or refuse it."""
        if self.kind not in kinds:
            self.refuse(what)
        self.advance()

    def skip_name(self, kinds: Container[str]) -> bool:
        """Move over one token of these kinds, a name, if it is there."""
        if self.kind not in kinds:
            return False
        self.name_ahead()
        return True

    def expect_name(self, kinds: Container[str], what: str) -> None:
        """Move over one token of these kinds, a name, or refuse it."""
        if not self.skip_name(kinds):
            self.refuse(what)

    def name_ahead(self) -> None:
        """Move over a token that is a name, be it a keyword elsewhere."""
        if self.kind != TEXT:
            self.tokens.names.add(self.index)
        self.advance()

    def word_is(self, word: str) -> bool:
        """Whether the token at hand is this word, which is none of the keywords."""
        return self.tokens.source(self.index).upper() == word

    def dotted(self) -> bool:
        """`.b.c` behind a name, if it is there; whether it was."""
        start = self.index
        while self.skip("."):
            self.expect_name(LABELS, "a name")
        return self.index > start

    def items(self, item: Callable[[], None], starts: Callable[[], bool]) -> int:
        """item, item, item, and how many; a comma behind the last is allowed, as DuckDB allows it."""
        item()
        count = 1
        while self.skip(",") and starts():
            item()
            count += 1
        return count

    def clause(self, item: Callable[[], None], starts: Callable[[], bool]) -> None:
        """The items of a clause. A comma behind them says nothing, where one before `)` elsewhere may make a row."""
        self.items(item, starts)
        if self.kinds[self.index - 1] == ",":
            self.tokens.last_commas.add(self.index - 1)

    def refuse(self, expected: str) -> NoReturn:
        """Raise ParseError at the token at hand."""
        raise ParseError(f"syntax error {self._place()}: expected {expected}", self._span())

    def complain(self, reason: str) -> NoReturn:
        """Raise ParseError at the token at hand for a reason of its own."""
        raise ParseError(f"syntax error {self._place()}: {reason}", self._span())

    def lacks(self, feature: str) -> NoReturn:
        """Raise UnsupportedError at the token at hand: what begins here DuckDB has, and nothing of it is read."""
        raise UnsupportedError(f"{feature} is not supported", self._span())

    def _place(self) -> str:
        if self.kind == END:
            return "at the end of the text"
        return f'at or near "{self.tokens.source(self.index)}"'

    def _span(self) -> tuple[int, int]:
        index = self.index
        if self.kind == END and index > 0:
            stop = self.tokens.stops[index - 1]
            return stop, stop + 1
        return self.tokens.starts[index], self.tokens.stops[index]
