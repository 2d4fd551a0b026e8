"""How an average is rounded."""

from __future__ import annotations

from collections.abc import Collection

from tqp.core.datatypes import TypeKind
from tqp.planner.algebra.expressions import AggregateCall, ColumnRef, Literal
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.outcomes import nullable

#: What DuckDB's avg() takes as it is; it casts other numbers first, and does not know that a cast value is not NULL.
_UNCAST = frozenset(
    (
        TypeKind.SMALLINT,
        TypeKind.INTEGER,
        TypeKind.BIGINT,
        TypeKind.HUGEINT,
        TypeKind.DECIMAL,
        TypeKind.DOUBLE,
    )
)


def divides_float_sum(
    call: AggregateCall, calls: Collection[AggregateCall], is_grouped: bool, fields: FieldsById
) -> bool:
    """Whether avg(x) is sum(x) / count(x) with the sum as a DOUBLE. `calls`: all of its aggregation, over rows with these fields.

    DuckDB makes that of it where it saves an accumulator: without GROUP BY, and where another call has the same sum or count.
    It differs in the last digit only.
    """
    if call.distinct or call.filter is not None:
        return False
    counts_rows = _counts_rows(call, fields)
    same = ("sum", "count") if call.arguments[0].data_type.kind in _UNCAST else ("sum",)
    return not is_grouped or any(
        (other.function in same and other.arguments == call.arguments)
        or (counts_rows and other.arguments != call.arguments and _counts_rows(other, fields))
        for other in calls
        if not other.distinct and other.filter is None
    )


def _counts_rows(call: AggregateCall, fields: FieldsById) -> bool:
    """Whether the call counts all rows: that of an average is of a column, or a constant, that is never NULL."""
    if call.function == "count_star":
        return True
    if call.function not in ("avg", "count"):
        return False
    (value,) = call.arguments
    if call.function == "avg" and value.data_type.kind not in _UNCAST:
        return False
    return isinstance(value, ColumnRef | Literal) and not nullable(value, fields)
