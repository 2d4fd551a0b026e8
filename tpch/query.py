"""The 22 TPC-H queries with their validation parameters, and what a checker must know of their order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files

from tqp.tpch.errors import UsageError

#: The numbers of all queries.
QUERY_NUMBERS = tuple(range(1, 23))

_TAIL = re.compile(r"\nORDER BY\n(?P<keys>.*?)(?:\nLIMIT (?P<limit>\d+))?\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Query:
    """A query: its text, its ORDER BY columns (names of its output), and its LIMIT. `label` stands in reports."""

    number: int
    label: str
    title: str
    text: str
    order_by: tuple[str, ...]
    limit: int | None

    @property
    def text_without_limit(self) -> str:
        """The same query with every row it orders: what ties at the limit are checked against."""
        return self.text if self.limit is None else self.text[: self.text.rindex("\nLIMIT ")]


@cache
def load_query(number: int, scale_factor: float = 1) -> Query:
    """Query `number` as it is put at `scale_factor` (which only query 11 depends on).

    >>> load_query(3).order_by, load_query(3).limit
    (('revenue', 'o_orderdate'), 10)
    """
    file = files("tqp.tpch") / "queries" / f"q{number:02}.sql"
    title_line, text = file.read_text(encoding="utf-8").strip().split("\n", 1)
    if number == 11:
        fraction = Decimal("0.0001") / Decimal(repr(scale_factor))
        text = text.replace("0.0001", f"{fraction:f}")
    tail = _TAIL.search(text)
    keys = tail["keys"].split(",") if tail else []
    return Query(
        number=number,
        label=f"{number}",
        title=title_line.split(": ", 1)[1].split(";")[0],
        text=text,
        order_by=tuple(key.strip().removesuffix(" DESC") for key in keys),
        limit=int(tail["limit"]) if tail and tail["limit"] else None,
    )


def parse_numbers(text: str | None) -> Sequence[int]:
    """The query numbers that `text` lists, all for None.

    >>> parse_numbers("1,6,10-12")
    [1, 6, 10, 11, 12]
    """
    if text is None:
        return QUERY_NUMBERS
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*[qQ]?(\d+)\s*(?:-\s*[qQ]?(\d+)\s*)?", part)
        if match is None:
            raise UsageError(f'--queries: "{part}" is neither a number nor a range; write 1,6,10-12')
        first, last = int(match[1]), int(match[2] or match[1])
        unknown = [number for number in (first, last) if number not in QUERY_NUMBERS]
        if unknown:
            raise UsageError(f"--queries: there is no query {unknown[0]}; TPC-H has queries 1 to 22")
        if first > last:
            raise UsageError(f'--queries: the range "{part.strip()}" runs backwards')
        numbers.extend(number for number in range(first, last + 1) if number not in numbers)
    return numbers
