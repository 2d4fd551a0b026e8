"""The 22 TPC-H queries with their validation parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from importlib.resources import files

from tqp.measuring.errors import UsageError
from tqp.measuring.query import Query

#: The numbers of all queries.
QUERY_NUMBERS = tuple(range(1, 23))


@cache
def load_query(number: int, scale_factor: float = 1) -> Query:
    """Query `number` as it is put at `scale_factor` (which only query 11 depends on).

    >>> load_query(3).order_by, load_query(3).limit
    (('revenue', 'o_orderdate'), 10)
    """
    file = files("tqp.tpch") / "queries" / f"q{number:02}.sql"
    text = file.read_text(encoding="utf-8").strip().split("\n", 1)[1]
    if number == 11:
        fraction = Decimal("0.0001") / Decimal(repr(scale_factor))
        text = text.replace("0.0001", f"{fraction:f}")
    return Query(number, f"{number}", text)


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
