"""How much of window functions is computed: conditions on ranks tell how many rows of each partition are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, Literal
from tqp.planner.functions.registry import WINDOWS, counts_rows_before
from tqp.planner.physical import plan as physical


def first_of_partitions(window: physical.Window, parts: Sequence[Expression]) -> physical.Window:
    """The node with only the first rows of each partition, if it ranks rows and a conjunct right above drops the others.

    Other functions may see rows that the condition drops.
    """
    functions = [None if call.order else WINDOWS.get(call.function) for call in window.calls]
    if not all(function is not None and function.looks_back for function in functions):
        return window
    limits = [
        limit
        for field, call in zip(window.call_fields, window.calls, strict=True)
        if counts_rows_before(call.function)
        for part in parts
        if (limit := _greatest(part, field.id)) is not None
    ]
    return replace(window, most=max(0, min(limits))) if limits else window


def _greatest(part: Expression, column: int) -> int | None:
    """The greatest value that the column may have where the conjunct is true, if it says so by a constant."""
    match part:
        case Call(function, (ColumnRef(id=id), Literal(int() as value))) if id == column:
            return {"less_equal": value, "equal": value, "less": value - 1}.get(function)
    return None
