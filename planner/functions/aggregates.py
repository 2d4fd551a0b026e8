"""Aggregate functions."""

from __future__ import annotations

from tqp.core.datatypes import HUGEINT, TypeKind
from tqp.planner.algebra.expressions import AggregateCall
from tqp.planner.functions.declaration import aggregate
from tqp.planner.functions.ranges import Range, within


def _total(known: Range | None, rows: int) -> Range | None:
    return None if known is None else (min(known[0], known[0] * rows), max(known[1], known[1] * rows))


def _sum(call: AggregateCall, known: Range | None, rows: int) -> Range | None:
    same_scale = call.arguments[0].data_type.scale == call.data_type.scale
    return _total(known, rows) if call.data_type.is_integer_like and same_scale else None


def _sum_overflows(call: AggregateCall, known: Range | None, rows: int) -> bool:
    """A sum of integers or decimals; of an average it has 128 bits."""
    if not call.arguments[0].data_type.is_integer_like:
        return False
    return not within(_total(known, rows), HUGEINT if call.function == "avg" else call.data_type)


def _sum_of_sums(call: AggregateCall, known: Range | None, rows: int) -> Range | None:
    """A sum of sums of other rows each is one of these rows, as each of them is: the range of one is that of all."""
    return (
        None if known is None or not call.data_type.is_integer_like else (min(known[0], 0), max(known[1], 0))
    )


AGGREGATE_FUNCTIONS = (
    aggregate("count_star", of_nothing=0, counts=True),
    aggregate("count", "ANY -> BIGINT", of_nothing=0, counts=True),
    aggregate(
        "sum",
        *("INTEGERS -> HUGEINT", "BOOLEAN -> HUGEINT", "DOUBLE -> DOUBLE", "DECIMAL -> widened"),
        "count_if countif: BOOLEAN -> HUGEINT",
        range=_sum,
        raises=_sum_overflows,
    ),
    # of what sum and count make of parts of a group, no row of which is in two of them; SQL has no name for them
    aggregate("sum_of_sums", range=_sum_of_sums),
    aggregate("sum_of_counts", of_nothing=0, range=_sum_of_sums),
    aggregate(
        "avg mean",
        *("INTEGERS -> DOUBLE", "DOUBLE -> DOUBLE", "DECIMAL -> DOUBLE"),
        *("TIMESTAMP -> TIMESTAMP", "TIMESTAMP_TZ -> TIMESTAMP_TZ", "TIME -> TIME"),
        raises=_sum_overflows,
        unsupported=frozenset((TypeKind.INTERVAL,)),
    ),
    aggregate("min", "ANY -> same", picks_value=True, ignores_duplicates=True),
    aggregate("max", "ANY -> same", picks_value=True, ignores_duplicates=True),
    aggregate("any_value arbitrary", "ANY -> same", picks_value=True, ignores_duplicates=True),
    aggregate("bool_and", "BOOLEAN -> BOOLEAN", ignores_duplicates=True),
    aggregate("bool_or", "BOOLEAN -> BOOLEAN", ignores_duplicates=True),
    aggregate("product", "DOUBLE -> DOUBLE"),
    aggregate("stddev_samp stddev", "DOUBLE -> DOUBLE", fewest_values=2),
    aggregate("stddev_pop", "DOUBLE -> DOUBLE"),
    aggregate("var_samp variance", "DOUBLE -> DOUBLE", fewest_values=2),
    aggregate("var_pop", "DOUBLE -> DOUBLE"),
    aggregate(
        "median",
        "ANY -> middle",
        unsupported=frozenset((TypeKind.BLOB, TypeKind.ARRAY, TypeKind.LIST, TypeKind.STRUCT)),
    ),
)
