"""How much of window functions is computed: conditions on row_number() tell how many rows of each partition are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, Literal
from tqp.planner.physical import plan as physical


def first_of_partitions(window: physical.Window, parts: Sequence[Expression]) -> physical.Window:
    """The node with only the first rows of each partition, if it numbers rows and a conjunct right above drops the others.

    Other functions may see rows that the condition drops.
    """
    if [call.function for call in window.calls] != ["row_number"]:
        return window
    (field,) = window.call_fields
    limits = [limit for part in parts if (limit := _greatest(part, field.id)) is not None]
    return replace(window, most=max(0, min(limits))) if limits else window


def _greatest(part: Expression, column: int) -> int | None:
    """The greatest value that the column may have where the conjunct is true, if it says so by a constant."""
    match part:
        case Call(function, (ColumnRef(id=id), Literal(int() as value))) if id == column:
            return {"less_equal": value, "equal": value, "less": value - 1}.get(function)
    return None
