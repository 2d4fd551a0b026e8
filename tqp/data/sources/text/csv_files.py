"""CSV files as Arrow tables of text, with delimiter, quotes and header found much as DuckDB finds them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as pa_csv

from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.sources.file_systems import content_of
from tqp.data.sources.text.csv_headers import find_names
from tqp.data.sources.text.csv_text import (
    has_blanks_around_quotes,
    in_utf8,
    with_doubled_quotes,
    with_whole_line_ends,
    without_blanks_around_quotes,
    without_comments,
    without_first_comments,
    without_lines,
)

_DELIMITERS = ",|;\t"
#: The first bytes of a file, whose lines tell how it is written.
SAMPLE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class _Dialect:
    """`quote`: empty where nothing is in quotes."""

    delimiter: str
    quote: str

    def rows(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """The fields of lines, or of parts of them."""
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote or None, quoting=quoting)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is written, as its first lines tell. `has_comments`: at its start; others are to be left out, too.
    `has_escaped_quotes`: by backslashes. `has_blanks`: around quotes."""

    dialect: _Dialect
    names: Sequence[str]
    has_header: bool
    has_comments: bool
    has_escaped_quotes: bool
    has_blanks: bool


def read_csv_text(file: str, options: ReadOptions = NO_OPTIONS) -> pa.Table:
    """The whole file, decompressed if its name says so, each column as text; `csv_types.typed` finds the types.

    Without a header the columns are column0, column1, ...; so is a column whose name is empty. Empty fields are NULL.
    Raises ValueError for a file that is empty, not of its encoding, or has rows that differ in length.
    """
    content = without_lines(in_utf8(content_of(file), options.encoding), options.skip)
    if options.comment:
        content = without_comments(content, options.comment, options.quote or '"', options.delimiter)
    content = content.lstrip(b"\r\n")
    if not content and options.names:
        return pa.table({name: pa.array([], pa.string()) for name in options.names})
    if not content:
        raise ValueError("the file is empty, so it has no columns")
    if content[-1:] not in b"\r\n":
        content += b"\n"  # without which Arrow finds no end of names alone
    content, layout = find_layout(content, options)
    table = _read(content, layout, options)
    if options.types and any(each.null_count < len(each) for each in table.columns[len(options.types) :]):
        raise ValueError(f"{len(options.types)} columns are given, and some rows have {table.num_columns}")
    table = table.rename_columns(layout.names)
    return table.select(range(len(options.types))) if options.types else table


def find_layout(content: bytes, options: ReadOptions = NO_OPTIONS) -> tuple[bytes, Layout]:
    """How content is written, and what is to be read of it: without comments at its start and backslashes before quotes."""
    lines = _first_lines(content)
    dialect = _find_dialect(lines, options)
    has_comments = options.comment is None and _begins_with_comments(lines, options)
    if has_comments:
        content = without_first_comments(content)
        lines = _first_lines(content)
        dialect = _find_dialect(lines, options)
    has_escaped_quotes = (options.escape == "\\" and bool(dialect.quote)) or (
        options.escape is None and _has_escaped_quotes(lines, dialect)
    )
    if has_escaped_quotes:
        content = with_doubled_quotes(content, dialect.quote)
        lines = _first_lines(content)
    sample = "\n".join(lines).encode()
    has_blanks = bool(dialect.quote) and has_blanks_around_quotes(sample, dialect.delimiter, dialect.quote)
    if has_blanks:
        content = without_blanks_around_quotes(content, dialect.delimiter, dialect.quote)
        lines = _first_lines(content)
        dialect = _find_dialect(lines, options)
    rows = _split(lines, dialect)
    if options.null_padding:
        width = max(map(len, rows))
        rows = [row + [""] * (width - len(row)) for row in rows]
    names, has_header = find_names(rows, options)
    if options.types and len(names) > len(options.types) + 1:
        raise ValueError(f"{len(options.types)} columns are given, and the file has {len(names)}")
    return content, Layout(dialect, names, has_header, has_comments, has_escaped_quotes, has_blanks)


def arrow_options(
    layout: Layout,
    options: ReadOptions,
    has_quotes: bool,
    fault: Callable[[pa_csv.InvalidRow], str],
) -> dict[str, Any]:
    """What Arrow's readers take to read columns of text, whose names are their numbers. `fault`: what is done with rows that
    are too short or too long, "skip" or "error"."""
    columns = [str(number) for number in range(len(layout.names))]
    return {
        "read_options": pa_csv.ReadOptions(
            column_names=columns, skip_rows_after_names=int(layout.has_header)
        ),
        "parse_options": pa_csv.ParseOptions(
            delimiter=layout.dialect.delimiter,
            quote_char=layout.dialect.quote or False,
            newlines_in_values=has_quotes,  # slower to read
            # In a file of one column an empty line is a row whose value is NULL.
            ignore_empty_lines=len(columns) > 1,
            invalid_row_handler=fault,
        ),
        "convert_options": pa_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=options.quoted_nulls,
            null_values=list(options.nulls),
        ),
    }


def _read(content: bytes, layout: Layout, options: ReadOptions) -> pa.Table:
    """Columns of text, whose names are their numbers."""
    has_short_rows, width = False, len(layout.names)

    def without_fault(row: pa_csv.InvalidRow) -> str:
        nonlocal has_short_rows
        if layout.has_comments and row.text.startswith("#"):
            return "skip"
        if options.null_padding and row.actual_columns < width:
            has_short_rows = True
            return "skip"
        return "skip" if options.ignore_errors else "error"

    dialect = layout.dialect
    has_quotes = bool(dialect.quote) and dialect.quote.encode() in content
    stream = pa.BufferReader(content)
    try:
        table = pa_csv.read_csv(
            with_whole_line_ends(stream) if has_quotes and b"\r\n" in content else stream,
            **arrow_options(layout, options, has_quotes, without_fault),
        )
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"{error}; in read_csv(), null_padding = true fills rows that are too short with NULL, and ignore_errors = true "
            "leaves out what is too short or too long"
            if "Expected" in str(error)
            else str(error)
        ) from None
    if not has_short_rows:
        return table
    if not options.quoted_nulls:
        raise ValueError("rows that are too short cannot be filled where allow_quoted_nulls = false")
    rows = [
        row
        for row in dialect.rows(io.StringIO(content.decode(), newline=""))
        if row
        and len(row) <= width
        and not (layout.has_comments and len(row) < width and row[0].startswith("#"))
    ]
    return _padded(rows[int(layout.has_header) :], table.column_names, options)


def _padded(rows: Sequence[Sequence[str]], columns: Sequence[str], options: ReadOptions) -> pa.Table:
    """Rows of which some are too short, as columns of text."""

    def value(row: Sequence[str], place: int) -> str | None:
        return row[place] if place < len(row) and row[place] not in options.nulls else None

    arrays = [pa.array([value(row, place) for row in rows], pa.string()) for place in range(len(columns))]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _begins_with_comments(lines: Sequence[str], options: ReadOptions) -> bool:
    """Are the lines at the start that begin with `#` no rows, as they have other fields than the first row below them?"""
    begin = next((place for place, line in enumerate(lines) if not line.startswith("#")), 0)
    if not begin:
        return False
    dialect = _find_dialect(lines[begin:], options)
    [below] = _split(lines[begin : begin + 1], dialect)
    return all(len(row) != len(below) for row in _split(lines[:begin], dialect))


def _first_lines(content: bytes) -> list[str]:
    sample = content[:SAMPLE_BYTES]
    # Not `str.splitlines`, which also splits at control characters inside values.
    lines = re.split("\r\n|\n|\r", sample.decode(errors="replace"))
    if len(content) > len(sample) and len(lines) > 1 or not lines[-1]:
        lines.pop()
    return lines


def _split(lines: Sequence[str], dialect: _Dialect) -> list[list[str]]:
    return list(dialect.rows(line + "\n" for line in lines))


def _fits(row: Sequence[str], options: ReadOptions) -> bool:
    """Whether the row has as many fields as there are types; each row may end with a delimiter."""
    return len(row) == len(options.types) or (len(row) == len(options.types) + 1 and not row[-1])


def _find_dialect(lines: Sequence[str], options: ReadOptions) -> _Dialect:
    """Of what is not said the candidate that splits most lines into as many fields as there are types, or as the first has, then
    the one with most fields."""

    def agreeing_lines(dialect: _Dialect) -> tuple[int, int, int]:
        rows = [row for row in _split(lines, dialect) if row]
        fitting = sum(_fits(row, options) for row in rows) if options.types else 0
        widths = [len(row) for row in rows]
        if not widths or widths[0] == 1:
            return fitting, 0, 0
        return fitting, sum(width == widths[0] for width in widths), widths[0]

    if options.delimiter is not None:
        return _Dialect(options.delimiter, '"' if options.quote is None else options.quote)
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
    if not dialect.quote:
        return False
    inside = re.compile(rf"\\{dialect.quote}(?![{re.escape(dialect.delimiter + dialect.quote)}]|$)")
    return any(dialect.quote in line and inside.search(line) for line in lines)
