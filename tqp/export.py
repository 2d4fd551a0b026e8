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
import pyarrow.compute as pc
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

#: What `write_table` can write.
FORMATS = ("table", "csv", "json", "arrow")


def column_texts(column: pa.ChunkedArray) -> list[str | None]:
    """Every value as SQL would write it in a cast to VARCHAR; None for NULL.

    >>> column_texts(pa.chunked_array([[True, None, False]]))
    ['true', None, 'false']
    """
    data_type = column.type
    if pa.types.is_dictionary(data_type):
        column, data_type = column.cast(data_type.value_type), data_type.value_type
    if pa.types.is_temporal(data_type) and not pa.types.is_interval(data_type):
        # Arrow's own text reaches years and nanoseconds that Python's datetime does not.
        zone = ""
        if pa.types.is_timestamp(data_type) and data_type.tz is not None:
            column, zone = column.cast(pa.timestamp(data_type.unit)), "+00"
        texts = pc.cast(column, pa.string()).to_pylist()
        return [None if text is None else _trim_time(text) + zone for text in texts]
    write = _writer(data_type)
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
    types = pa.types
    if types.is_boolean(data_type):
        return lambda value: "true" if value else "false"
    if types.is_float32(data_type):
        return lambda value: str(np.float32(value))
    if types.is_decimal(data_type):
        return lambda value: f"{value:f}"
    if types.is_interval(data_type):
        return _interval_text
    if types.is_binary(data_type) or types.is_large_binary(data_type) or types.is_binary_view(data_type):
        return _blob_text
    return str


def _trim_time(text: str) -> str:
    """`12:00:00.500000` without the zeros that say nothing."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _interval_text(value: Any) -> str:
    """`1 year 2 months 3 days 04:05:06.7`, each part only where it is not zero."""
    years, months = divmod(abs(value.months), 12)
    sign = -1 if value.months < 0 else 1
    parts = [
        f"{count} {unit}{'' if abs(count) == 1 else 's'}"
        for count, unit in ((sign * years, "year"), (sign * months, "month"), (value.days, "day"))
        if count
    ]
    if value.nanoseconds or not parts:
        minutes, nanoseconds = divmod(abs(value.nanoseconds), 60_000_000_000)
        seconds = f"{nanoseconds // 10**9:02}.{nanoseconds % 10**9 // 1000:06}"
        minus = "-" if value.nanoseconds < 0 else ""
        parts.append(_trim_time(f"{minus}{minutes // 60:02}:{minutes % 60:02}:{seconds}"))
    return " ".join(parts)


def _blob_text(value: bytes) -> str:
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b"\\'\"" else f"\\x{byte:02X}" for byte in value
    )
