"""Parts of the line that a plan node is in EXPLAIN: lists of columns, of conditions, of sort keys."""

from __future__ import annotations

from collections.abc import Iterable

from tqp.core.schema import Field
from tqp.planner.algebra.expression_text import (
    Names,
    format_expression,
    format_operand,
    sort_keys_text,
)
from tqp.planner.algebra.expressions import AggregateCall, Expression, SortKey
from tqp.planner.algebra.window_calls import (
    BoundKind,
    Exclusion,
    FrameBound,
    FrameMode,
    WindowCall,
    WindowFrame,
)
from tqp.planner.functions.registry import WINDOWS


def conjunction_text(parts: Iterable[Expression], names: Names) -> str:
    """a AND b"""
    return " AND ".join(format_operand(part, names, 3) for part in parts)


def list_text(expressions: Iterable[Expression], names: Names) -> str:
    """a, b"""
    return ", ".join(format_expression(expression, names) for expression in expressions)


def fields_text(fields: Iterable[Field], names: Names) -> str:
    """(a, b)"""
    return "(" + ", ".join(names.get(field.id, field.name) for field in fields) + ")"


def outputs_text(fields: Iterable[Field], outputs: Iterable[Expression], names: Names) -> str:
    """a, x + 1 AS b"""
    shown: list[str] = []
    for field, output in zip(fields, outputs, strict=True):
        text, name = format_expression(output, names), names.get(field.id, field.name)
        shown.append(text if text == name else f"{text} AS {name}")
    return ", ".join(shown)


def grouping_text(
    keys: Iterable[Expression], fields: Iterable[Field], aggregates: Iterable[AggregateCall], names: Names
) -> str:
    """by a, b: sum(x) AS s"""
    grouped, measures = list_text(keys, names), outputs_text(fields, aggregates, names)
    return (f" by {grouped}" if grouped else "") + (f": {measures}" if measures else "")


def window_text(
    partition: Iterable[Expression],
    order: Iterable[SortKey],
    fields: Iterable[Field],
    calls: Iterable[WindowCall],
    names: Names,
) -> str:
    """by a, b order by c DESC: rank() AS r, sum(x) ROWS UNBOUNDED PRECEDING AS s"""
    keys, sorting = list_text(partition, names), sort_keys_text(order, names)
    shown = (
        f"{_call_text(call, names)} AS {names.get(field.id, field.name)}"
        for field, call in zip(fields, calls, strict=True)
    )
    return (
        (f" by {keys}" if keys else "")
        + (f" order by {sorting}" if sorting else "")
        + f": {', '.join(shown)}"
    )


def _call_text(call: WindowCall, names: Names) -> str:
    text = format_expression(call.aggregate, names)
    if call.ignore_nulls:
        text = f"{text[:-1]} IGNORE NULLS)"
    function = WINDOWS.get(call.function)
    if call.frame.is_partition or not (function is None or function.takes_frame):
        return text
    return f"{text} {_frame_text(call.frame, names)}"


def _frame_text(frame: WindowFrame, names: Names) -> str:
    start, end = (_bound_text(bound, frame.mode, names) for bound in (frame.start, frame.end))
    bounds = start if frame.end.kind is BoundKind.CURRENT_ROW else f"BETWEEN {start} AND {end}"
    excluded = "" if frame.exclusion is Exclusion.NO_OTHERS else f" EXCLUDE {frame.exclusion.value}"
    return f"{frame.mode.value} {bounds}{excluded}"


def _bound_text(bound: FrameBound, mode: FrameMode, names: Names) -> str:
    if bound.value is None:
        return bound.kind.value
    value = format_expression(bound.value, names)
    return f"AT {value}" if mode is FrameMode.RANGE else f"{value} {bound.kind.value}"


def limit_text(limit: int | None, offset: int) -> str:
    """10 offset 5"""
    return (f" {limit}" if limit is not None else "") + (f" offset {offset}" if offset else "")


def count_text(rows: float) -> str:
    """A number of rows in few characters.

    >>> count_text(6_001_215), count_text(42.4)
    ('6.00M', '42')
    """
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if rows >= size:
            scaled = rows / (1e3 if unit == "k" else size)
            return f"{scaled:.2f}{unit}" if scaled < 10 else f"{scaled:.3g}{unit}"
    return f"{rows:.0f}"
