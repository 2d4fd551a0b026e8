"""A query to measure, and what a checker must know of it: in which order its rows come, and where LIMIT cuts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

#: What a word, a bracket or a comma cannot be taken for: comments, strings and quoted names are one piece each.
_PIECE = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|[^\w\s]""",
    re.DOTALL,
)
_KEY = re.compile(r'(?P<key>\w+|"[^"]+")(?:\s+(?:ASC|DESC))?(?:\s+NULLS\s+(?:FIRST|LAST))?', re.IGNORECASE)


@dataclass(frozen=True)
class Query:
    """A query: its text without a semicolon at the end. `label` stands in reports."""

    number: int
    label: str
    text: str

    @property
    def order_by(self) -> tuple[str, ...]:
        """The leading keys of its ORDER BY that are columns of its output: names, or numbers of columns from 1 on.

        >>> Query(1, "1", "SELECT a, b AS c FROM t ORDER BY a DESC, 2, a + 1, c LIMIT 3").order_by
        ('a', '2')
        """
        keys = []
        for part in self._tail[0]:
            key = _KEY.fullmatch(part.strip())
            if key is None:
                break
            keys.append(key["key"].strip('"'))
        return tuple(keys)

    @property
    def limit(self) -> int | None:
        """The rows that it returns at most, where a LIMIT says so."""
        return self._tail[1]

    @property
    def text_without_limit(self) -> str:
        """The same query with every row it orders: what ties at the limit are checked against."""
        return self.text[: self._tail[2]]

    @cached_property
    def _tail(self) -> tuple[tuple[str, ...], int | None, int]:
        """The keys of ORDER BY, LIMIT, and where the text without it ends."""
        pieces = list(_outer_pieces(self.text))
        words = [piece[0].upper() for piece in pieces]
        end, limit = len(self.text), None
        if len(words) > 1 and words[-2] == "LIMIT" and words[-1].isdecimal():
            end, limit = len(self.text[: pieces[-2].start()].rstrip()), int(words[-1])
            del pieces[-2:], words[-2:]
        orders = [place for place, pair in enumerate(pairwise(words), 2) if pair == ("ORDER", "BY")]
        if not orders or "OFFSET" in words:
            return (), limit, end
        keys = [""]
        for piece in pieces[orders[-1] :]:
            if piece[0] == ",":
                keys.append("")
            else:
                keys[-1] += f" {piece[0]}"
        return tuple(keys), limit, end


def statements(text: str) -> list[str]:
    """The statements of a script, without the semicolons between them and without what is a comment only.

    >>> statements("-- two\\nSELECT ';' AS s; SELECT 1 -- one\\n;;")
    ["-- two\\nSELECT ';' AS s", 'SELECT 1 -- one']
    """
    found, start, is_empty = [], 0, True
    for piece in _outer_pieces(f"{text}\n;"):
        if piece[0] != ";":
            is_empty = False
            continue
        if not is_empty:
            found.append(text[start : piece.start()].strip())
        start, is_empty = piece.end(), True
    return found


def _outer_pieces(text: str) -> Iterator[re.Match[str]]:
    """Pieces of the text that stand in no bracket, and those that open one; comments are none."""
    depth = 0
    for piece in _PIECE.finditer(text):
        if piece[0] in ")]}":
            depth -= 1
        elif depth == 0 and not piece[0].startswith(("--", "/*")):
            yield piece
        if piece[0] in "([{":
            depth += 1
