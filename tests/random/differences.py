"""What is wrong with an answer, if SQL determines it: types, the number of rows, values, or their order."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import repeat
from typing import Any

from tests.random.engines import Rows
from tests.random.messages import SUMS
from tests.random.tokens import order_of, tokens_of

#: DOUBLEs that differ by no more are taken for equal.
_ABSOLUTE_TOLERANCE = 1e-9
_EXTREMES = frozenset("min max least greatest".split())
_UNDETERMINED = frozenset(("LIMIT", "OFFSET", "ANY_VALUE", "ARBITRARY", "FIRST", "LAST"))
#: Of a DOUBLE that is long DuckDB's print other digits than it has.
_PRINTED = frozenset(("format", "printf"))
#: What DESCRIBE without a name tells of each table; where it is depends on how it was made.
_OF_TABLES = ("database", "schema", "name", "column_names", "column_types", "temporary")
_WHERE = frozenset(("database", "temporary"))
#: By these DESCRIBE and SUMMARIZE tell the columns of a query: an expression without an alias is called by its text.
_OF_COLUMNS = frozenset(("column_name",))


def difference(sql: str, expected: Rows, actual: Rows, is_mutated: bool) -> tuple[str, str] | None:
    """Signature and description of what is wrong with `actual`."""
    if actual.types != expected.types:
        if len(actual.types) != len(expected.types):
            return "number of columns", f"{len(actual.types)} columns, not {len(expected.types)}"
        pairs = zip(actual.types, expected.types, strict=True)
        first = next((mine, theirs) for mine, theirs in pairs if mine != theirs)
        return f"type {first[0]} for {first[1]}", f"type {first[0]}, not {first[1]}"
    if len(actual.rows) != len(expected.rows):
        return "number of rows", f"{len(actual.rows)} rows, not {len(expected.rows)}"
    if is_mutated and not _UNDETERMINED.isdisjoint(token.upper() for token in tokens_of(sql)):
        return None
    if expected.names == _OF_TABLES:
        actual, expected = _without(_WHERE, actual), _without(_WHERE, expected)
    names = {token.lower() for token in tokens_of(sql)}
    if not SUMS.isdisjoint(names) or not _PRINTED.isdisjoint(names):
        actual, expected = _with_short_fractions(actual), _with_short_fractions(expected)
    if not _EXTREMES.isdisjoint(names):
        actual, expected = _with_positive_zeros(actual), _with_positive_zeros(expected)
    if actual.rows == expected.rows:
        return None
    missing = _missing(actual, expected, _tolerance(sql))
    if missing is not None:
        return "values", f"{missing} is not among the expected rows"
    for position in _order_positions(sql, expected):
        for mine, theirs in zip(actual.rows, expected.rows, strict=True):
            if not _equal(mine[position], theirs[position], expected.types[position]):
                return "order", f"{mine} stands where {theirs} belongs"
        pairs = zip(actual.rows, expected.rows, strict=True)
        if any(mine[position] != theirs[position] for mine, theirs in pairs):
            break  # by floats that are nearly equal: which of them tie is not determined
    return None


def without_names_of_columns(answer: Rows) -> Rows:
    """A description of columns without what they are called, which in a variant of a query may be another text."""
    return _without(_OF_COLUMNS, answer)


def _without(names: frozenset[str], answer: Rows) -> Rows:
    kept = [place for place, name in enumerate(answer.names) if name not in names]
    return Rows(
        tuple(answer.names[place] for place in kept),
        tuple(answer.types[place] for place in kept),
        [tuple(row[place] for place in kept) for row in answer.rows],
    )


def _with_short_fractions(answer: Rows) -> Rows:
    """Texts whose numbers with a point have twelve digits: a DOUBLE that is written out has others that may differ."""

    def cut(number: re.Match[str]) -> str:
        whole, fraction = number[1], number[2]
        num_digits = len(whole.lstrip("0"))
        return f"{whole[:12].ljust(len(whole), '0')}.{fraction[: max(12 - num_digits, 0)]}"

    def shortened(value: Any) -> Any:
        return re.sub(r"(\d+)\.(\d+)", cut, value) if isinstance(value, str) else value

    return replace(answer, rows=[tuple(map(shortened, row)) for row in answer.rows])


def _with_positive_zeros(answer: Rows) -> Rows:
    """Texts without the sign of 0.0: which of two equal zeros is the least one is not determined."""

    def positive(value: Any) -> Any:
        return re.sub(r"-(0\.0(?!\d))", r"\1", value) if isinstance(value, str) else value

    return replace(answer, rows=[tuple(map(positive, row)) for row in answer.rows])


def _tolerance(sql: str) -> float:
    """How far DOUBLEs may be apart: they may be FLOATs, as similarities are."""
    return 1e-5 if any(token.lower().startswith("array_") for token in tokens_of(sql)) else 1e-9


def _missing(actual: Rows, expected: Rows, tolerance: float) -> tuple[Any, ...] | None:
    """A row that is not among the expected ones, each of which serves once."""
    is_float = [each in ("FLOAT", "DOUBLE") or each.startswith("FLOAT[") for each in expected.types]
    exact = [index for index, each in enumerate(is_float) if not each]
    if not any(is_float):
        surplus = Counter(actual.rows) - Counter(expected.rows)
        return next(iter(surplus), None)
    remaining: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in _without_those_of(expected.rows, actual.rows):
        remaining.setdefault(tuple(row[index] for index in exact), []).append(row)
    for row in _without_those_of(actual.rows, expected.rows):
        candidates = remaining.get(tuple(row[index] for index in exact), [])
        for index, other in enumerate(candidates):
            if all(map(_equal, row, other, expected.types, repeat(tolerance))):
                candidates[index] = candidates[-1]
                candidates.pop()
                break
        else:
            return row
    return None


def _without_those_of(
    rows: Iterable[tuple[Any, ...]], others: Iterable[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """The rows but for those that are exactly one of the others, each of which serves once."""
    exactly = Counter(map(repr, others))
    left = []
    for row in rows:
        exactly[repr(row)] -= 1
        if exactly[repr(row)] < 0:
            left.append(row)
    return left


def _equal(left: Any, right: Any, sql_type: str, tolerance: float = 1e-9) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return all(_equal(one, other, "FLOAT") for one, other in zip(left, right, strict=True))
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(
            left,
            right,
            rel_tol=1e-5 if sql_type.startswith("FLOAT") else tolerance,
            abs_tol=_ABSOLUTE_TOLERANCE,
        )
    return bool(left == right)


def _order_positions(sql: str, rows: Rows) -> list[int]:
    keys = order_of(sql)
    if keys is None:
        return []
    if keys[:1] and keys[0].upper() == "ALL":
        return list(range(len(rows.names)))
    positions = []
    for key in keys:
        if key in rows.names and rows.names.count(key) == 1:
            positions.append(rows.names.index(key))
        else:
            break
    return positions
