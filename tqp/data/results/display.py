"""A table as text for a terminal and as HTML for a notebook: the first and last rows, types under the names."""

from __future__ import annotations

import html
import shutil
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len, set_cell_size

from tqp.core.datatypes import TICKS_PER_SECOND, TypeKind
from tqp.data.column import Column, Table
from tqp.data.results.to_python import column_slice, python_values, storage_values
from tqp.data.results.value_text import blob_text, interval_text, time_text, timestamp_text

MAX_ROWS = 20
_MAX_CELL = 60
_MAX_HTML_CELL = 200
_MAX_HTML_COLUMNS = 50
_GAP = "·"
_MORE = "…"


def cell_texts(column: Column) -> list[str]:
    """Every value of a (short) column as DuckDB prints it, NULL as `NULL`."""
    kind = column.data_type.kind
    if kind in TICKS_PER_SECOND and column.values is not None:
        texts = [timestamp_text(ticks, kind) for ticks in storage_values(column.values)]
    elif kind is TypeKind.TIME and column.values is not None:
        texts = list(map(time_text, column.values.tolist()))
    elif kind is TypeKind.INTERVAL and column.values is not None:
        texts = [interval_text(*parts) for parts in column.values.tolist()]
    elif kind is TypeKind.FLOAT and column.values is not None:
        texts = [_float_text(value) for value in column.values.tolist()]
    elif kind is TypeKind.ARRAY and column.values is not None:
        texts = [f"[{', '.join(map(_float_text, row))}]" for row in column.values.tolist()]
    else:
        return [_text(value) for value in python_values(column)]
    if column.validity is None:
        return texts
    return [text if valid else "NULL" for text, valid in zip(texts, column.validity.tolist(), strict=True)]


def text_table(table: Table, width: int | None = None) -> str:
    """A box of at most 20 rows, and of as many columns as the terminal (or `width`) has room for."""
    if not table.names:
        return f"({_count(table.num_rows, 'row')}, no columns)"
    width = max(20, width or shutil.get_terminal_size((100, 24)).columns)
    types = [column.data_type for column in table.columns]
    cells, cut = _shown_cells(table)
    headers = [(_one_line(name), str(data_type)) for name, data_type in zip(table.names, types, strict=True)]
    widths = [
        min(_MAX_CELL, max(map(cell_len, (*header, *column))))
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
    for row in range(len(cells[0])):
        if row == cut:
            lines += [line([_GAP for _ in shown])] * 3
        lines.append(line([cells[index][row] for index in shown]))
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


def _shown_cells(table: Table, max_columns: int | None = None) -> tuple[list[list[str]], int]:
    """(texts per column, the position before which rows were left out or -1): the first and last rows of the table."""
    columns = table.columns[:max_columns]
    num_rows = table.num_rows
    if num_rows <= MAX_ROWS:
        return [list(map(_one_line, cell_texts(column))) for column in columns], -1
    half = MAX_ROWS // 2
    slices = ((0, half), (num_rows - half, num_rows))
    cells = [
        [_one_line(text) for start, stop in slices for text in cell_texts(column_slice(column, start, stop))]
        for column in columns
    ]
    return cells, half


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


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return blob_text(value)
    return format(value, "f") if hasattr(value, "as_tuple") else str(value)


def _float_text(value: float) -> str:
    """The shortest digits that give back the 32-bit float."""
    return str(np.float32(value))


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _cut(text: str, width: int) -> str:
    """The text, or its beginning and dots, in at most `width` terminal cells."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + _MORE


def _pad(text: str, width: int, align: str) -> str:
    text = _cut(text, width)
    spare = width - cell_len(text)
    before = {"left": 0, "right": spare, "centre": spare // 2}[align]
    return " " * before + text + " " * (spare - before)
