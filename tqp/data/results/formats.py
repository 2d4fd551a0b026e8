"""Results as text: SQL's way to write each value, and whole tables as csv, json, Arrow IPC or a drawn table."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Literal, TextIO

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table as DrawnTable
from rich.text import Text

from tqp.core.datatypes import BOOLEAN, TypeKind
from tqp.data.column import Column, Table, elements_in_order, entries_in_order, fields_of
from tqp.data.nested import Structs
from tqp.data.results.display import cell_texts
from tqp.data.results.to_arrow import table_to_arrow
from tqp.data.results.to_python import member_values, split, where_valid

#: What `write_table` can write.
FORMATS = ("table", "csv", "json", "arrow")


def write_table(table: Table, form: str, out: TextIO) -> None:
    """Writes `table` to `out` in one of `FORMATS`; arrow is bytes and goes to `out.buffer`."""
    if form == "arrow":
        answer = table_to_arrow(table)
        with pa.ipc.new_stream(out.buffer, answer.schema) as stream:
            stream.write_table(answer)
    elif form == "csv":
        _write_csv(table, out)
    elif form == "json":
        _write_json(table, out)
    else:
        _draw(table, out)


def _write_csv(table: Table, out: TextIO) -> None:
    """NULL is an empty field, an empty string is `""`."""
    csv.writer(out, lineterminator="\n").writerow(table.names)
    lines = (",".join("" if text is None else _csv_field(text) for text in row) for row in _rows(table))
    out.writelines(line + "\n" for line in lines)


def _csv_field(text: str) -> str:
    if text == "":
        return '""'
    field = io.StringIO()
    csv.writer(field, lineterminator="").writerow([text])
    return field.getvalue()


def _write_json(table: Table, out: TextIO) -> None:
    """An array with one object a row. Numbers keep all their digits; NaN and infinities, which JSON lacks, are strings."""
    columns = [
        [f"{json.dumps(name, ensure_ascii=False)}: {text}" for text in _json_texts(column)]
        for name, column in zip(table.names, table.columns, strict=True)
    ]
    out.write("[" + ",\n ".join(f"{{{', '.join(row)}}}" for row in zip(*columns, strict=True)) + "]\n")


def _json_texts(column: Column) -> list[str]:
    """Every value of a column in JSON: a LIST is an array, a STRUCT an object, an array where its fields have no names,
    a MAP an object of which the keys are texts, a UNION one of the name of its member."""
    data_type = column.data_type
    if column.nested is None:
        is_bare = data_type.is_numeric or data_type == BOOLEAN
        return [_json_value(text, is_bare) for text in cell_texts(column)]
    if data_type.is_union:
        texts = member_values(column, _member_texts)
    elif isinstance(column.nested, Structs):
        fields = list(map(_json_texts, fields_of(column)))
        keys = [
            "" if data_type.is_tuple else json.dumps(name, ensure_ascii=False) + ": "
            for name in data_type.names
        ]
        form = "[{}]" if data_type.is_tuple else "{{{}}}"
        rows = zip(*fields, strict=True)
        texts = [form.format(", ".join(map("".join, zip(keys, row, strict=True)))) for row in rows]
    elif data_type.kind is TypeKind.MAP:
        of_keys, of_values, lengths = entries_in_order(column)
        names = (json.dumps(text, ensure_ascii=False) for text in cell_texts(of_keys))
        entries = list(map("{}: {}".format, names, _json_texts(of_values)))
        texts = [f"{{{', '.join(items)}}}" for items in split(entries, lengths.tolist())]
    else:
        elements, lengths = elements_in_order(column)
        texts = [f"[{', '.join(items)}]" for items in split(_json_texts(elements), lengths.tolist())]
    return [text or "null" for text in where_valid(column, texts)]


def _member_texts(name: str, member: Column) -> list[str]:
    return [f"{{{json.dumps(name, ensure_ascii=False)}: {text}}}" for text in _json_texts(member)]


def _json_value(text: str | None, is_bare: bool) -> str:
    if text is None:
        return "null"
    if is_bare and text not in ("nan", "inf", "-inf"):
        return text
    return json.dumps(text, ensure_ascii=False)


def _draw(table: Table, out: TextIO) -> None:
    drawn = DrawnTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, column in zip(table.names, table.columns, strict=True):
        justify: Literal["left", "right"] = "right" if column.data_type.is_numeric else "left"
        drawn.add_column(name, justify=justify, no_wrap=True)
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


def _rows(table: Table) -> Iterator[Sequence[str | None]]:
    return zip(*(cell_texts(column) for column in table.columns), strict=True)
