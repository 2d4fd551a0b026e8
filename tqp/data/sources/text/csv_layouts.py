"""What is found of how a CSV file is written, as a table: sniff_csv()."""

from __future__ import annotations

import re
from typing import NamedTuple

import pyarrow as pa

from tqp.core.keywords import quoted_text
from tqp.core.read_options import ReadOptions
from tqp.data.arrow_types import field_type
from tqp.data.sources.text.csv_dialects import SAMPLE_BYTES
from tqp.data.sources.text.csv_files import find_layout, read_csv_text, text_of
from tqp.data.sources.text.csv_types import typed

#: How tables show what is not there.
EMPTY = "(empty)"
_COLUMNS = pa.list_(pa.struct([("name", pa.string()), ("type", pa.string())]))


class FoundLayout(NamedTuple):
    """How a file is written, where nothing is said as its first lines tell. Empty: the sample has none."""

    delimiter: str
    quote: str
    escape: str
    newline: str
    skipped: int
    has_header: bool


def found_layout(file: str, options: ReadOptions) -> FoundLayout:
    """How a file is written. Raises ValueError where it cannot be read."""
    said = options.delimiter
    content, options = text_of(file, options)
    begun = content.lstrip(b"\r\n")
    rest, layout = find_layout(begun, options)
    skipped = options.skip + content.count(b"\n") - rest.count(b"\n")
    sample = begun[:SAMPLE_BYTES].decode(errors="replace")
    quote = layout.dialect.quote
    if not re.search(rf"(^|[{re.escape(layout.dialect.delimiter)}\r\n]){quote}", sample):
        quote = ""
    escape = ""
    if quote:
        inside = re.search(rf"[^{re.escape(layout.dialect.delimiter)}\r\n]{quote}{quote}", sample)
        escape = "\\" if layout.has_escaped_quotes else quote if inside else ""
    newline = (re.findall("\r\n|\n|\r", sample[:SAMPLE_BYTES]) or ["\n"])[0]
    delimiter = layout.dialect.delimiter if said is None else said
    return FoundLayout(delimiter, quote, escape, written_newline(newline), skipped, layout.has_header)


def csv_layout(file: str, options: ReadOptions) -> pa.Table:
    """One row: the dialect, the columns with their types, and a query that reads the file so without looking at it again.

    Raises ValueError where the file cannot be read.
    """
    table = typed(read_csv_text(file, options), options)
    layout = found_layout(file, options)
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
        "delim": quoted_text(layout.delimiter),
        "quote": quoted_text(layout.quote),
        "escape": quoted_text(layout.escape),
        "new_line": quoted_text(layout.newline),
        "skip": str(layout.skipped),
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
        f"{name}={value}" for name, value in found.items() if name not in map(plain_name, given)
    ]
    arguments_said += [f"{name}={value}" for name, value in given.items()]
    query = f"FROM read_csv({quoted_text(file)}, {', '.join(['auto_detect=false', *arguments_said])});"
    arguments = ", ".join(f"{name}={value}" for name, value in given.items()) or None
    values = {
        "Delimiter": pa.array([layout.delimiter]),
        "Quote": pa.array([layout.quote or EMPTY]),
        "Escape": pa.array([layout.escape or EMPTY]),
        "NewLineDelimiter": pa.array([layout.newline]),
        "Comment": pa.array([options.comment or EMPTY]),
        "SkipRows": pa.array([layout.skipped], pa.uint32()),
        "HasHeader": pa.array([layout.has_header]),
        "Columns": pa.array([columns], _COLUMNS),
        "DateFormat": pa.array([date_format], pa.string()),
        "TimestampFormat": pa.array([timestamp_format], pa.string()),
        "UserArguments": pa.array([arguments], pa.string()),
        "Prompt": pa.array([query]),
    }
    return pa.table(values)


def plain_name(name: str) -> str:
    """The name of an option without its synonyms."""
    return "delim" if name in ("sep", "delimiter") else name


def written_newline(newline: str) -> str:
    """A line end as SQL has it in quotes."""
    return newline.replace("\r", "\\r").replace("\n", "\\n")
