"""Does an answer agree with the reference answer, as far as SQL determines it?

Column names, types, and every value are compared: integers, decimals, dates and strings exactly, floats to a relative
`tolerance` (two engines may add doubles in different orders, or round once more or less). Order is compared as
far as ORDER BY fixes it: rows that tie may stand in any order, and where LIMIT cuts through a tie, any of the tied rows
will do. The reference answer then holds all rows of that last tie. Keys that are no columns of the answer, and those behind
them, are not compared: rows that the others do not tell apart count as a tie.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from tqp.measuring.duckdb_process import key_positions

#: Largest relative difference between equal floats; and between those of queries that add up millions of doubles, each engine
#: in an order of its own (of 3 million discounts DuckDB's mean is off by 2.8e-12).
FLOAT_TOLERANCE, SUM_TOLERANCE = 1e-12, 1e-10

Row = tuple[Any, ...]


def difference(
    actual: pa.Table,
    expected: pa.Table,
    order_by: Sequence[str] = (),
    limit: int | None = None,
    tolerance: float = FLOAT_TOLERANCE,
) -> str | None:
    """What is wrong with `actual`, in one line, or None if it is a right answer."""
    equal = partial(_equal, tolerance=tolerance)
    if actual.schema.names != expected.schema.names:
        return f"columns are {actual.schema.names}, not {expected.schema.names}"
    for field, reference in zip(actual.schema, expected.schema, strict=True):
        if _plain_type(field.type) != _plain_type(reference.type):
            return f"column {field.name} has type {field.type}, not {reference.type}"
    num_rows = expected.num_rows if limit is None else min(limit, expected.num_rows)
    if actual.num_rows != num_rows:
        return f"{actual.num_rows} rows, not {num_rows}"
    if _same_values(actual, expected.slice(0, num_rows)):
        return None
    actual_rows, expected_rows = _rows(actual), _rows(expected)
    keys = key_positions(actual.schema.names, order_by)
    return _order_difference(actual_rows, expected_rows, keys, equal) or _row_difference(
        actual_rows, expected_rows, actual.schema, equal
    )


def _order_difference(
    actual: Sequence[Row], expected: Sequence[Row], keys: Sequence[int], equal: Callable[[Any, Any], bool]
) -> str | None:
    """Both are sorted by the same keys, so the keys must agree row by row whatever the order within a tie."""
    for index, row in enumerate(actual):
        for key in keys:
            if not equal(row[key], expected[index][key]):
                return f"row {index + 1} is {row}, but its place in the order is that of {expected[index]}"
    return None


def _row_difference(
    actual: Sequence[Row], expected: Sequence[Row], schema: pa.Schema, equal: Callable[[Any, Any], bool]
) -> str | None:
    """Every actual row must be found among the expected ones, each of which serves once."""
    floats = [index for index, field in enumerate(schema) if pa.types.is_floating(field.type)]
    exact = [index for index in range(len(schema)) if index not in floats]
    candidates: defaultdict[Row, list[Row]] = defaultdict(list)
    for row in expected:
        candidates[tuple(row[index] for index in exact)].append(tuple(row[index] for index in floats))
    for index, row in enumerate(actual):
        values = tuple(row[position] for position in floats)
        same_key = candidates[tuple(row[position] for position in exact)]
        match = next((other for other in same_key if all(map(equal, values, other))), None)
        if match is None:
            return f"row {index + 1} is {row}, which is not among the expected rows"
        same_key.remove(match)
    return None


def _same_values(actual: pa.Table, expected: pa.Table) -> bool:
    """Row by row and bit by bit: quick, and what large answers in a fixed order should be."""
    schema = pa.schema([(field.name, _plain_type(field.type)) for field in expected.schema])
    return bool(actual.cast(schema).equals(expected.cast(schema)))


def _equal(left: object, right: object, tolerance: float) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or math.isclose(left, right, rel_tol=tolerance)
    return left == right


def _rows(table: pa.Table) -> list[Row]:
    """Nested values as text, which can be looked up."""
    columns = [
        [*map(repr, column.to_pylist())] if pa.types.is_nested(column.type) else column.to_pylist()
        for column in table.columns
    ]
    return list(zip(*columns, strict=True))


def _plain_type(data_type: pa.DataType) -> pa.DataType:
    """The type with Arrow's several layouts of strings made one."""
    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    if pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return pa.string()
    return data_type
