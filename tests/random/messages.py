"""Errors of DuckDB, and of tqp, that docs/semantics.md explains: what the other engine answers is intended."""

from __future__ import annotations

import re

from tests.random.templates import INEXACT_AGGREGATES
from tests.random.tokens import tokens_of

#: Sums, whose last digits come of the order of rows where they are of DOUBLEs.
SUMS = INEXACT_AGGREGATES.union(
    "sum avg mean variance var_pop var_samp stddev stddev_pop stddev_samp".split()
)
#: What DuckDB says, and the words of which the query has to have one, if any.
_OF_DUCKDB: tuple[tuple[str, frozenset[str]], ...] = (
    ("Overflow in HUGEINT addition", SUMS),  # what the sum is before all is added need not fit
    # the microseconds between two instants need not fit
    ("Overflow in subtraction of INT64", frozenset("date_diff datediff date_sub datesub".split())),
    ("Substring (offset|length) outside of supported range", frozenset()),
    # what equals a key, and is written in another way
    ("GROUPING child .* must be a grouping column", frozenset(("grouping", "grouping_id"))),
    # the month that a bucket begins with, from which DuckDB takes the time of day
    (r"Date out of range: -\d{8,}-", frozenset(("time_bucket",))),
)
#: What DuckDB computes on the way to a field of the first DATE and of the last instants lies beyond the type.
_BEYOND_ON_THE_WAY = "Date out of range: -5877641-1-1|Could not convert Timestamp to higher precision|Unable to get calendar time"
#: A query that names this type may ask for what is beyond it.
_ASKED_FOR = "timestamp_ns"
_OF_TQP = (
    r'^histogram(_exact)?\(\) does not take \("NULL"',  # which DuckDB takes as long as there are no rows
    r"^histogram(_values)?\(\) (takes a|has no) technique",  # which DuckDB reads with the first row
    "^cannot cast a list of",  # the number of its elements is part of the query
    "is not a part of a date or time",  # of a constant that is NULL, DuckDB asks for no part
    "an interval is too long for Arrow",  # DuckDB wraps around
    "Overflow in subtraction of UINT128",  # DuckDB misses those of numbers whose upper 64 bits are all ones
    "a UHUGEINT beyond 127 bits, which Arrow",  # of which DuckDB makes negative numbers
    "gives a time before the first TIMESTAMP",  # so it does
)


def is_refused_by_duckdb_alone(message: str, sql: str) -> bool:
    """Whether it is known that DuckDB raises this, and tqp does not."""
    words = {token.lower() for token in tokens_of(sql)}
    if re.search(_BEYOND_ON_THE_WAY, message) and _ASKED_FOR not in words:
        return True
    return any(
        re.search(said, message) and not (asked and asked.isdisjoint(words)) for said, asked in _OF_DUCKDB
    )


def is_refused_by_tqp_alone(message: str) -> bool:
    """Whether it is known that tqp raises this, and DuckDB does not."""
    return any(re.search(said, message) for said in _OF_TQP)
