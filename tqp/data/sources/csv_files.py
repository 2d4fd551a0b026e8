"""CSV files as Arrow tables of text, with delimiter, quotes and header found much as DuckDB finds them."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as pa_csv

from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.sources.csv_types import text_column_type

_DELIMITERS = ",|;\t"
_SAMPLE_BYTES = 65_536
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class _Dialect:
    delimiter: str
    quote: str


def read_csv_text(file: str, options: ReadOptions = NO_OPTIONS) -> pa.Table:
    """The whole file, decompressed if its name says so, each column as text; `csv_types.typed` finds the types.

    Without a header the columns are column0, column1, ...; so is a column whose name is empty. Empty fields are NULL.
    Raises ValueError for a file that is empty or not UTF-8, ArrowInvalid for rows that differ in length.
    """
    with pa.input_stream(file, compression="detect") as stream:
        content = stream.read()
    content = _checked_text(content).removeprefix(_BYTE_ORDER_MARK)
    content = _without_lines(content, options.skip).lstrip(b"\r\n")
    if not content:
        raise ValueError("the file is empty, so it has no columns")
    if content[-1:] not in b"\r\n":
        content += b"\n"  # without which Arrow finds no end of names alone
    lines = _first_lines(content)
    dialect = _find_dialect(lines, options)
    if _has_escaped_quotes(lines, dialect):
        content = _with_doubled_quotes(content, dialect.quote)
        lines = _first_lines(content)
    rows = _split(lines, dialect)
    names, has_header = _find_names(rows, options.header)
    if len(options.names) > len(names):
        raise ValueError(f"{len(options.names)} names are given, and the file has {len(names)} columns")
    names[: len(options.names)] = options.names
    columns = [str(number) for number in range(len(names))]
    table = pa_csv.read_csv(
        pa.BufferReader(content),
        read_options=pa_csv.ReadOptions(column_names=columns, skip_rows_after_names=int(has_header)),
        parse_options=pa_csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote,
            newlines_in_values=dialect.quote.encode() in content,  # slower to read
            # In a file of one column an empty line is a row whose value is NULL.
            ignore_empty_lines=len(names) > 1,
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            strings_can_be_null=True,
            null_values=list(options.nulls),
        ),
    )
    return table.rename_columns(names)


def _checked_text(content: bytes) -> bytes:
    """The content, if it is UTF-8."""
    if content.isascii():
        return content
    if content.startswith(_UTF16_MARKS):
        raise ValueError("the file is UTF-16; save it as UTF-8")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"line {line} is not UTF-8 (byte 0x{content[error.start]:02x}); save the file as UTF-8"
        ) from None
    return content


def _first_lines(content: bytes) -> list[str]:
    sample = content[:_SAMPLE_BYTES]
    # Not `str.splitlines`, which also splits at control characters inside values.
    lines = re.split("\r\n|\n|\r", sample.decode(errors="replace"))
    if len(content) > len(sample) and len(lines) > 1 or not lines[-1]:
        lines.pop()
    return lines


def _split(lines: Sequence[str], dialect: _Dialect) -> list[list[str]]:
    return list(
        csv.reader((line + "\n" for line in lines), delimiter=dialect.delimiter, quotechar=dialect.quote)
    )


def _without_lines(content: bytes, count: int) -> bytes:
    """What stands behind so many lines."""
    for _ in range(count):
        content = content.partition(b"\n")[2]
    return content


def _find_dialect(lines: Sequence[str], options: ReadOptions) -> _Dialect:
    """Of what is not said the candidate that splits most lines into as many fields as the first, then the one with most fields."""

    def agreeing_lines(dialect: _Dialect) -> tuple[int, int]:
        widths = [len(row) for row in _split(lines, dialect) if row]
        if not widths or widths[0] == 1:
            return 0, 0
        return sum(width == widths[0] for width in widths), widths[0]

    if options.delimiter is not None:
        return _Dialect(options.delimiter, options.quote or '"')
    if options.quote is not None:
        return max((_Dialect(delimiter, options.quote) for delimiter in _DELIMITERS), key=agreeing_lines)
    candidates = [_Dialect(delimiter, '"') for delimiter in _DELIMITERS]
    quoted = re.compile(rf"(^|[{re.escape(_DELIMITERS)}])'[^']*'([{re.escape(_DELIMITERS)}]|$)")
    if any(quoted.search(line) for line in lines) and not any('"' in line for line in lines):
        # Single quotes, where they are what makes fields of some rows.
        candidates = [_Dialect(delimiter, "'") for delimiter in _DELIMITERS] + candidates
    return max(candidates, key=agreeing_lines)


def _has_escaped_quotes(lines: Sequence[str], dialect: _Dialect) -> bool:
    """Whether quotes inside of values are written with a backslash: one that does not end the field."""
    inside = re.compile(rf"\\{dialect.quote}(?![{re.escape(dialect.delimiter + dialect.quote)}]|$)")
    return any(dialect.quote in line and inside.search(line) for line in lines)


def _with_doubled_quotes(content: bytes, quote: str) -> bytes:
    r"""The text with `""` for `\"`, and `\` for `\\`, inside of quoted values; other backslashes stay."""
    mark = re.escape(quote.encode())
    quoted = re.compile(rb"%b(?:[^%b\\]|\\.|%b%b)*%b" % (mark, mark, mark, mark, mark), re.DOTALL)
    escaped = re.compile(rb"\\([\\%b])" % mark)
    doubled = {b"\\": b"\\", quote.encode(): quote.encode() * 2}
    return quoted.sub(lambda value: escaped.sub(lambda match: doubled[match[1]], value[0]), content)


def _find_names(rows: list[list[str]], said: bool | None = None) -> tuple[list[str], bool]:
    """The names of the columns, and whether they are the first row, unless that is said.

    That is a header if it does not read as the types of the rows below it, or if all of it is text, and so is all else.
    """
    first, *others = rows
    below = [
        text_column_type([row[place] for row in others if len(row) > place] or [""])
        for place in range(len(first))
    ]
    own = [text_column_type([cell]) for cell in first]
    is_text = [pa.types.is_string(found) for found in own]
    if all(map(pa.types.is_string, below)):
        has_header = all(is_text)
    else:
        has_header = any(
            bool(cell) and text and not pa.types.is_string(found)
            for cell, text, found in zip(first, is_text, below, strict=True)
        )
    if said is not None:
        has_header = said
    cells = first if has_header else [""] * len(first)
    return [cell.strip() or f"column{place}" for place, cell in enumerate(cells)], has_header
