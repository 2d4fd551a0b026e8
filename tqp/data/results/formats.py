"""Results as text: SQL's way to write each value, and whole tables as csv, json, Arrow IPC or a drawn table."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

import numpy as np
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tqp.core.datatypes import TypeKind
from tqp.data.results.value_text import blob_text, date_text, interval_text, time_text, timestamp_text

#: What `write_table` can write.
FORMATS = ("table", "csv", "json", "arrow")


def column_texts(column: pa.ChunkedArray) -> list[str | None]:
    """Every value as SQL would write it in a cast to VARCHAR; None for NULL.

    >>> column_texts(pa.chunked_array([[True, None, False]]))
    ['true', None, 'false']
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    write = _writer(column.type)
    if pa.types.is_date32(column.type) or pa.types.is_time(column.type) or pa.types.is_timestamp(column.type):
        # As integers: Python's own dates and times lack year 0, year 10000 and nanoseconds.
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return [None if value is None else write(value) for value in column.to_pylist()]


def write_table(table: pa.Table, form: str, out: TextIO) -> None:
    """Writes `table` to `out` in one of `FORMATS`; arrow is bytes and goes to `out.buffer`."""
    if form == "arrow":
        with pa.ipc.new_stream(out.buffer, table.schema) as stream:
            stream.write_table(table)
    elif form == "csv":
        _write_csv(table, out)
    elif form == "json":
        _write_json(table, out)
    else:
        _draw(table, out)


def _write_csv(table: pa.Table, out: TextIO) -> None:
    """NULL is an empty field, an empty string is `""`."""
    csv.writer(out, lineterminator="\n").writerow(table.schema.names)
    lines = (",".join("" if text is None else _csv_field(text) for text in row) for row in _rows(table))
    out.writelines(line + "\n" for line in lines)


def _csv_field(text: str) -> str:
    if text == "":
        return '""'
    field = io.StringIO()
    csv.writer(field, lineterminator="").writerow([text])
    return field.getvalue()


def _write_json(table: pa.Table, out: TextIO) -> None:
    """An array with one object a row. Numbers keep all their digits; NaN and infinities, which JSON lacks, are strings."""
    names = [json.dumps(name, ensure_ascii=False) for name in table.schema.names]
    bare = [_is_number(field.type) or pa.types.is_boolean(field.type) for field in table.schema]
    lines = []
    for row in _rows(table):
        values = (_json_value(text, is_bare) for text, is_bare in zip(row, bare, strict=True))
        lines.append(
            "{" + ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True)) + "}"
        )
    out.write("[" + ",\n ".join(lines) + "]\n")


def _json_value(text: str | None, is_bare: bool) -> str:
    if text is None:
        return "null"
    if is_bare and text not in ("nan", "inf", "-inf"):
        return text
    return json.dumps(text, ensure_ascii=False)


def _draw(table: pa.Table, out: TextIO) -> None:
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for field in table.schema:
        drawn.add_column(field.name, justify="right" if _is_number(field.type) else "left", no_wrap=True)
    for row in _rows(table):
        drawn.add_row(*(_cell(text) for text in row))
    # Where output is no terminal, columns are as wide as they need to be.
    width = None if out is sys.stdout and out.isatty() else 100_000
    console = Console(file=out, width=width, highlight=False)
    console.print(drawn)
    console.print(f"{table.num_rows:,} row{'' if table.num_rows == 1 else 's'}")


def _cell(text: str | None) -> Text:
    """On one line, and not read as rich's markup."""
    return Text("NULL", style="dim") if text is None else Text(text.replace("\n", "\\n"))


def _rows(table: pa.Table) -> Iterator[Sequence[str | None]]:
    return zip(*(column_texts(column) for column in table.columns), strict=True)


def _is_number(data_type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type))


def _writer(data_type: pa.DataType) -> Callable[[Any], str]:
    """How a value of this type, as `to_pylist` gives it, is written; dates and times are integers."""
    types = pa.types
    if types.is_boolean(data_type):
        return lambda value: "true" if value else "false"
    if types.is_float32(data_type):
        return lambda value: str(np.float32(value))
    if types.is_decimal(data_type):
        return lambda value: f"{value:f}"
    if types.is_date32(data_type):
        return date_text
    if types.is_time(data_type):
        return lambda value: time_text(value, _TICKS[data_type.unit])
    if types.is_timestamp(data_type):
        kind = TypeKind.TIMESTAMP_TZ if data_type.tz is not None else _TIMESTAMP_KINDS[data_type.unit]
        return lambda value: timestamp_text(value, kind)
    if types.is_interval(data_type):
        return lambda value: interval_text(value.months, value.days, value.nanoseconds // 1000)
    if types.is_binary(data_type) or types.is_large_binary(data_type) or types.is_binary_view(data_type):
        return blob_text
    return str


_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TIMESTAMP_KINDS = {
    "s": TypeKind.TIMESTAMP_S,
    "ms": TypeKind.TIMESTAMP_MS,
    "us": TypeKind.TIMESTAMP,
    "ns": TypeKind.TIMESTAMP_NS,
}
