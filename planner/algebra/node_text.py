"""Parts of the line that a plan node is in EXPLAIN: lists of columns, of conditions, of sort keys."""

from __future__ import annotations

from collections.abc import Iterable

from tqp.core.schema import Field
from tqp.planner.algebra.expression_text import Names, format_expression, format_operand
from tqp.planner.algebra.expressions import AggregateCall, Expression, SortKey


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


def sort_keys_text(keys: Iterable[SortKey], names: Names) -> str:
    """a DESC, b"""
    return ", ".join(
        format_expression(key.expression, names)
        + (" DESC" if key.descending else "")
        + (" NULLS FIRST" if key.nulls_first else "")
        for key in keys
    )


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
