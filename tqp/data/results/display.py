"""A table as text for a terminal and as HTML for a notebook: the first and last rows, types under the names."""

from __future__ import annotations

import html
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rich.cells import cell_len, set_cell_size

from tqp.core.datatypes import TICKS_PER_SECOND, TypeKind
from tqp.core.text.numbers import format_bytes
from tqp.data.column import Column, Table, elements_in_order, entries_in_order, fields_of
from tqp.data.nested import Structs
from tqp.data.results.to_python import member_values, python_values, split, storage_values, where_valid
from tqp.data.results.value_text import (
    date_text,
    inner_text,
    interval_text,
    quoted_text,
    time_text,
    time_with_zone_text,
    timestamp_text,
)

MAX_ROWS = 20
_MAX_CELL = 60
_MAX_HTML_CELL = 200
_MAX_HTML_COLUMNS = 50
_GAP = "·"
_MORE = "…"


def cell_texts(column: Column) -> list[str | None]:
    """Every value of a column as DuckDB prints it; None for NULL."""
    kind = column.data_type.kind
    if column.nested is not None:
        return where_valid(column, _nested_texts(column))
    if kind in _TIMES:
        assert column.values is not None
        items = where_valid(column, storage_values(column.values))
    else:
        items = python_values(column)
    write = _WRITERS.get(kind, str)
    return [None if item is None else write(item) for item in items]


def _nested_texts(column: Column) -> list[str]:
    data_type = column.data_type
    if data_type.is_union:
        texts = member_values(column, lambda _, member: cell_texts(member))
        return ["NULL" if text is None else text for text in texts]
    if isinstance(column.nested, Structs):
        fields = list(map(_inner_texts, fields_of(column)))
        if data_type.is_tuple:
            end = ",)" if len(fields) == 1 else ")"
            return [f"({', '.join(row)}{end}" for row in zip(*fields, strict=True)]
        keys = [quoted_text(name) for name in data_type.names]
        rows = (zip(keys, row, strict=True) for row in zip(*fields, strict=True))
        return ["{" + ", ".join(f"{key}: {text}" for key, text in row) + "}" for row in rows]
    if data_type.kind is TypeKind.MAP:
        of_keys, of_values, lengths = entries_in_order(column)
        entries = list(map("{}={}".format, _inner_texts(of_keys), _inner_texts(of_values)))
        return ["{" + ", ".join(texts) + "}" for texts in split(entries, lengths.tolist())]
    elements, lengths = elements_in_order(column)
    return [f"[{', '.join(texts)}]" for texts in split(_inner_texts(elements), lengths.tolist())]


def _inner_texts(column: Column) -> list[str]:
    """Values as they stand inside of nested ones."""
    plain = column.nested is not None or column.data_type.is_vector
    return [text if plain and text is not None else inner_text(text) for text in cell_texts(column)]


def text_table(
    table: Table,
    width: int | None = None,
    max_rows: int = MAX_ROWS,
    max_cell: int | None = None,
    null: str | None = None,
) -> str:
    """A box of at most `max_rows` rows, and of as many columns as the terminal (or `width`) has room for.

    `max_cell`: characters of a value, `null`: the text of NULL.
    """
    if not table.names:
        return f"({_count(table.num_rows, 'row')}, no columns)"
    width = max(20, width or shutil.get_terminal_size((100, 24)).columns)
    types = [column.data_type for column in table.columns]
    cells, cut = _shown_cells(table, max_rows=max_rows, null=null)
    headers = [(_one_line(name), str(data_type)) for name, data_type in zip(table.names, types, strict=True)]
    widths = [
        min(max_cell or _MAX_CELL, max(map(cell_len, (*header, *column))))
        for header, column in zip(headers, cells, strict=True)
    ]
    left, right = _fitting_columns(widths, width)
    shown = [*range(left), *range(len(widths) - right, len(widths))]
    if left + right < len(widths):
        headers.append((_MORE, ""))
        cells.append([_MORE] * len(cells[0]))
        widths.append(1)
        shown.insert(left, len(widths) - 1)
    numeric = [*(data_type.is_numeric for data_type in types), False]

    def line(texts: Sequence[str], centred: bool = False) -> str:
        parts = [
            _pad(text, widths[index], "centre" if centred else "right" if numeric[index] else "left")
            for index, text in zip(shown, texts, strict=True)
        ]
        return "│ " + " │ ".join(parts) + " │"

    def rule(ends: str) -> str:
        return ends[0] + ends[1].join("─" * (widths[index] + 2) for index in shown) + ends[2]

    lines = [
        rule("┌┬┐"),
        *(line([headers[index][row] for index in shown], centred=True) for row in (0, 1)),
        rule("├┼┤"),
    ]
    rows = [line([cells[index][row] for index in shown]) for row in range(len(cells[0]))]
    if cut >= 0:
        rows[cut:cut] = [line([_GAP for _ in shown])] * 3
    lines += rows
    lines.append(rule("└┴┘"))
    return "\n".join([*lines, _footer(table, len(cells[0]), left + right)])


def html_table(table: Table) -> str:
    """The same rows as an HTML table; every name and value is escaped."""
    cells, cut = _shown_cells(table, _MAX_HTML_COLUMNS)
    num_columns = len(cells)
    header = "".join(
        f"<th>{html.escape(name)}<br><small>{html.escape(str(column.data_type))}</small></th>"
        for name, column in zip(table.names[:num_columns], table.columns, strict=False)
    )
    rows = []
    num_shown = len(cells[0]) if cells else 0
    for row in range(num_shown):
        if row == cut:
            rows.append("<tr>" + "<td>&#8942;</td>" * num_columns + "</tr>")
        rows.append(
            "<tr>"
            + "".join(f"<td>{html.escape(_cut(column[row], _MAX_HTML_CELL))}</td>" for column in cells)
            + "</tr>"
        )
    return (
        f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f"<p>{html.escape(_footer(table, num_shown, num_columns).strip())}</p>"
    )


def _shown_cells(
    table: Table, max_columns: int | None = None, max_rows: int = MAX_ROWS, null: str | None = None
) -> tuple[list[list[str]], int]:
    """(texts per column, the position before which rows were left out or -1): the first and last rows of the table."""
    columns = table.columns[:max_columns]
    num_rows = table.num_rows
    if num_rows <= max_rows:
        return [[_one_line(text, null) for text in cell_texts(column)] for column in columns], -1
    last = max_rows // 2
    first = max_rows - last
    slices = ((0, first), (num_rows - last, num_rows))
    cells = [
        [_one_line(text, null) for start, stop in slices for text in cell_texts(column.cut(start, stop))]
        for column in columns
    ]
    return cells, first


def _fitting_columns(widths: Sequence[int], width: int) -> tuple[int, int]:
    """How many columns from the left and from the right fit; at least one."""
    if sum(widths) + 3 * len(widths) + 1 <= width:
        return len(widths), 0
    room = width - 1 - 4 - (widths[0] + 3)  # the first column and the one of dots are always there
    left, right = 1, 0
    while left + right < len(widths):
        take_right = right < left
        needed = widths[len(widths) - 1 - right if take_right else left] + 3
        if needed > room:
            break
        room -= needed
        left, right = (left, right + 1) if take_right else (left + 1, right)
    return left, right


def _footer(table: Table, rows_shown: int, columns_shown: int) -> str:
    rows = _count(table.num_rows, "row") + (f" ({rows_shown} shown)" if rows_shown < table.num_rows else "")
    num_columns = len(table.names)
    columns = _count(num_columns, "column") + (
        f" ({columns_shown} shown)" if columns_shown < num_columns else ""
    )
    return f"{rows}, {columns}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _float_text(value: float) -> str:
    """The shortest digits that give back the 32-bit float."""
    return str(np.float32(value))


#: Of stored numbers: Python's own dates and times lack year 0, year 10000 and nanoseconds.
_TIMES: dict[TypeKind, Callable[[Any], str]] = {
    TypeKind.DATE: date_text,
    TypeKind.TIME: time_text,
    TypeKind.TIME_TZ: time_with_zone_text,
    TypeKind.INTERVAL: lambda parts: interval_text(*parts),
    **{kind: partial(timestamp_text, kind=kind) for kind in TICKS_PER_SECOND},
}
#: How a value is written where `str` is not the way.
_WRITERS: dict[TypeKind, Callable[[Any], str]] = {
    **_TIMES,
    TypeKind.BOOLEAN: lambda value: "true" if value else "false",
    TypeKind.DECIMAL: "{:f}".format,
    TypeKind.FLOAT: _float_text,
    TypeKind.BLOB: lambda value: format_bytes(value).decode(),  # printable ASCII as it is, others as `\\xAA`
    TypeKind.ARRAY: lambda row: f"[{', '.join(map(_float_text, row))}]",
}


def _one_line(text: str | None, null: str | None = None) -> str:
    if text is None:
        return "NULL" if null is None else null
    text = text[: 2 * _MAX_HTML_CELL]  # no more is shown, however long it is
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _cut(text: str, width: int) -> str:
    """The text, or its beginning and dots, in at most `width` terminal cells."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + _MORE


def _pad(text: str, width: int, align: str) -> str:
    text = _cut(text, width)
    spare = width - cell_len(text)
    before = {"left": 0, "right": spare, "centre": spare // 2}[align]
    return " " * before + text + " " * (spare - before)
