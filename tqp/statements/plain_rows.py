"""INSERT of rows of plain constants: read as text and cast column by column, instead of parsed value by value."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tqp.core.datatypes import COMPOSED, DataType, TypeKind
from tqp.core.keywords import in_quotes, lower_ascii
from tqp.data.sources.make_source import make_source
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.syntax.parts import Part
from tqp.planner.syntax.tokens import Tokens
from tqp.planner.syntax.words import NUMBER, TEXT
from tqp.result import Result
from tqp.statements.execution import Execution

#: Fewer rows are as quick as an ordinary query.
_WORTH = 8
_NAME = "%rows"


def plain_rows(
    execution: Execution, table: StoredTable, places: Sequence[int], rows: Sequence[Sequence[Part]]
) -> Result | None:
    """The rows in the types of the table; None where there are few, or one has anything but constants of such kinds as
    their texts say in full: texts, NULL, truth values, and numbers for columns of numbers.

    `places`: of the columns that are given; each row has as many values.
    """
    columns = table.definition.columns
    if len(rows) < _WORTH:
        return None
    tokens = execution.command.tokens
    texts: dict[int, list[str | None]] = {place: [] for place in places}
    try:
        for row in rows:
            for place, part in zip(places, row, strict=True):
                texts[place].append(_constant(tokens, part, columns[place].data_type))
    except _OtherError:
        return None
    arrays = {f"c{place}": pa.array(values, pa.large_string()) for place, values in texts.items()}
    source = make_source(_NAME, arrays, execution.session.device)
    items = [
        f"CAST({in_quotes(f'c{place}') if place in texts else '(' + (column.default or 'NULL') + ')'} AS {column.data_type})"
        for place, column in enumerate(columns)
    ]
    query = execution.command.query(f"SELECT {', '.join(items)} FROM {in_quotes(_NAME)}")
    return execution.rows(query, execution.state.with_table(source))


class _OtherError(Exception):
    """This is no such constant."""


def _constant(tokens: Tokens, part: Part, data_type: DataType) -> str | None:
    """The text of a constant; None of NULL."""
    start, count, sign = part.start, part.stop - part.start, ""
    if count == 2 and tokens.kinds[start] == "-":
        sign, start, count = "-", start + 1, 1
    kind, source = tokens.kinds[start], tokens.source(start)
    if count != 1:
        raise _OtherError
    if kind == NUMBER and data_type.is_numeric and _says_all(source, data_type):
        return sign + source
    if sign:
        raise _OtherError
    if kind == "NULL":
        return None
    if kind == TEXT and source[0] == "'" and "\n" not in source and data_type.kind not in COMPOSED:
        return source[1:-1].replace("''", "'")
    if kind in ("TRUE", "FALSE") and data_type.kind is TypeKind.BOOLEAN:
        return lower_ascii(kind)
    raise _OtherError


def _says_all(source: str, data_type: DataType) -> bool:
    """Whether a number is written as its text is read: whole, or with digits on both sides of the point."""
    if source.isdigit():
        return True
    whole, point, fraction = source.partition(".")
    return bool(point) and whole.isdigit() and fraction.isdigit() and not data_type.is_integer
