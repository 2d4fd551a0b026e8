"""How an average is rounded."""

from __future__ import annotations

from collections.abc import Collection

from tqp.planner.algebra.expressions import AggregateCall
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.outcomes import nullable


def divides_float_sum(
    call: AggregateCall, calls: Collection[AggregateCall], is_grouped: bool, fields: FieldsById
) -> bool:
    """Whether avg(x) is sum(x) / count(x) with the sum as a DOUBLE. `calls`: all of its aggregation, over rows with these fields.

    DuckDB makes that of it where it saves an accumulator: without GROUP BY, and where the sum or the count is asked for as well.
    It differs in the last digit only.
    """
    if call.distinct or call.filter is not None:
        return False
    counts_rows = not nullable(call.arguments[0], fields)
    return not is_grouped or any(
        (other.function in ("sum", "count") and other.arguments == call.arguments)
        or (other.function in ("count", "count_star") and counts_rows)
        for other in calls
        if not other.distinct and other.filter is None
    )
