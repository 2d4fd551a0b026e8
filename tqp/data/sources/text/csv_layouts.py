"""What is found of how a CSV file is written, as a table: sniff_csv()."""

from __future__ import annotations

import re

import pyarrow as pa

from tqp.core.keywords import quoted_text
from tqp.core.read_options import ReadOptions
from tqp.data.arrow_types import field_type
from tqp.data.sources.text.csv_dialects import SAMPLE_BYTES
from tqp.data.sources.text.csv_files import find_layout, read_csv_text, text_of
from tqp.data.sources.text.csv_types import typed

_EMPTY = "(empty)"
_COLUMNS = pa.list_(pa.struct([("name", pa.string()), ("type", pa.string())]))


def csv_layout(file: str, options: ReadOptions) -> pa.Table:
    """One row: the dialect, the columns with their types, and a query that reads the file so without looking at it again.

    Raises ValueError where the file cannot be read.
    """
    table = typed(read_csv_text(file, options), options)
    said = options.delimiter
    content, options = text_of(file, options)
    begun = content.lstrip(b"\r\n")
    rest, layout = find_layout(begun, options)
    skipped = options.skip + content.count(b"\n") - rest.count(b"\n")
    delimiter = layout.dialect.delimiter if said is None else said
    sample = begun[:SAMPLE_BYTES].decode(errors="replace")
    quote = layout.dialect.quote
    if not re.search(rf"(^|[{re.escape(layout.dialect.delimiter)}\r\n]){quote}", sample):
        quote = ""
    escape = ""
    if quote:
        inside = re.search(rf"[^{re.escape(layout.dialect.delimiter)}\r\n]{quote}{quote}", sample)
        escape = "\\" if layout.has_escaped_quotes else quote if inside else ""
    newline = (re.findall("\r\n|\n|\r", sample[:SAMPLE_BYTES]) or ["\n"])[0]
    columns = [
        {
            "name": field.name,
            "type": str(field_type(field, field.name)) if options.text_columns is not None else "VARCHAR",
        }
        for field in table.schema
    ]
    dates = [table.column(place) for place, field in enumerate(table.schema) if pa.types.is_date(field.type)]
    date_format = options.date_format if dates and options.date_format else "%Y-%m-%d" if dates else None
    times = any(pa.types.is_timestamp(field.type) for field in table.schema)
    timestamp_format = options.timestamp_format if times else None
    found = {
        "delim": quoted_text(delimiter),
        "quote": quoted_text(quote),
        "escape": quoted_text(escape),
        "new_line": quoted_text(_written(newline)),
        "skip": str(skipped),
        "comment": quoted_text(options.comment or ""),
        "header": str(layout.has_header).lower(),
        "columns": "{"
        + ", ".join(f"{quoted_text(each['name'])}: {quoted_text(each['type'])}" for each in columns)
        + "}",
    }
    for name, form in (("dateformat", date_format), ("timestampformat", timestamp_format)):
        if form is not None:
            found[name] = quoted_text(form)
    given = dict(options.written)
    arguments_said = [
        f"{name}={value}" for name, value in found.items() if name not in map(_plain_name, given)
    ]
    arguments_said += [f"{name}={value}" for name, value in given.items()]
    query = f"FROM read_csv({quoted_text(file)}, {', '.join(['auto_detect=false', *arguments_said])});"
    arguments = ", ".join(f"{name}={value}" for name, value in given.items()) or None
    values = {
        "Delimiter": pa.array([delimiter]),
        "Quote": pa.array([quote or _EMPTY]),
        "Escape": pa.array([escape or _EMPTY]),
        "NewLineDelimiter": pa.array([_written(newline)]),
        "Comment": pa.array([options.comment or _EMPTY]),
        "SkipRows": pa.array([skipped], pa.uint32()),
        "HasHeader": pa.array([layout.has_header]),
        "Columns": pa.array([columns], _COLUMNS),
        "DateFormat": pa.array([date_format], pa.string()),
        "TimestampFormat": pa.array([timestamp_format], pa.string()),
        "UserArguments": pa.array([arguments], pa.string()),
        "Prompt": pa.array([query]),
    }
    return pa.table(values)


def _plain_name(name: str) -> str:
    return "delim" if name in ("sep", "delimiter") else name


def _written(newline: str) -> str:
    return newline.replace("\r", "\\r").replace("\n", "\\n")
