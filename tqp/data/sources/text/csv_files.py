"""CSV files as Arrow tables of text, with delimiter, quotes and header found much as DuckDB finds them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.sources.file_systems import content_of
from tqp.data.sources.text.csv_dialects import (
    SAMPLE_BYTES,
    Dialect,
    find_dialect,
    first_lines,
    has_escaped_quotes,
)
from tqp.data.sources.text.csv_headers import find_names
from tqp.data.sources.text.csv_quotes import (
    has_blanks_around_quotes,
    loose_quote,
    with_doubled_quotes,
    with_inner_quotes_doubled,
    without_blanks_around_quotes,
)
from tqp.data.sources.text.csv_text import (
    in_utf8,
    with_plain_delimiter,
    with_whole_line_ends,
    without_comments,
    without_first_comments,
    without_lines,
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is written, as its first lines tell. `has_comments`: at its start; others are to be left out, too.
    `has_escaped_quotes`: by backslashes. `is_changed`: what is read is not as it is written."""

    dialect: Dialect
    names: Sequence[str]
    has_header: bool
    has_comments: bool
    has_escaped_quotes: bool
    is_changed: bool


def read_csv_text(file: str, options: ReadOptions = NO_OPTIONS) -> pa.Table:
    """The whole file, decompressed if its name says so, each column as text; `csv_types.typed` finds the types.

    Without a header the columns are column0, column1, ...; so is a column whose name is empty. Empty fields are NULL.
    An empty file has a column without rows. Raises ValueError for a file that is not of its encoding, or has rows that differ in length.
    """
    content, options = text_of(file, options)
    if options.comment:
        content = without_comments(content, options.comment, options.quote or '"', options.delimiter)
    content = content.lstrip(b"\r\n")
    if not content:
        return pa.table({name: pa.array([], pa.string()) for name in options.names or ("column0",)})
    if content[-1:] not in b"\r\n":
        content += b"\n"  # without which Arrow finds no end of names alone
    content, layout = find_layout(content, options)
    table = _read(content, layout, options)
    if options.types and any(each.null_count < len(each) for each in table.columns[len(options.types) :]):
        raise ValueError(f"{len(options.types)} columns are given, and some rows have {table.num_columns}")
    table = table.rename_columns(layout.names)
    return table.select(range(len(options.types))) if options.types else table


def text_of(file: str, options: ReadOptions) -> tuple[bytes, ReadOptions]:
    """The content without the lines that are left out, with a delimiter of one byte where another is said, and how that is read."""
    content = without_lines(in_utf8(content_of(file), options.encoding), options.skip)
    if options.delimiter is not None and len(options.delimiter.encode()) != 1:
        quote = '"' if options.quote is None else options.quote
        content, delimiter = with_plain_delimiter(content, options.delimiter, quote)
        options = replace(options, delimiter=delimiter)
    return content, options


def find_layout(
    content: bytes, options: ReadOptions = NO_OPTIONS, *, is_whole: bool = True
) -> tuple[bytes, Layout]:
    """How content is written, and what is to be read of it: without what stands before the first row, and with quotes as they are
    read. `is_whole`: it is not only the beginning of a file."""
    given = content
    lines = first_lines(content)
    dialect, lines_before = find_dialect(lines, options)
    has_comments = options.comment is None and _begins_with_comments(lines, options)
    if has_comments:
        content = without_first_comments(content)
        dialect, lines_before = find_dialect(first_lines(content), options)
    content = without_lines(content, lines_before)
    unchanged = content
    lines = first_lines(content)
    is_escaped = (options.escape == "\\" and bool(dialect.quote)) or (
        options.escape is None and has_escaped_quotes(lines, dialect)
    )
    if is_escaped:
        content = with_doubled_quotes(content, dialect.quote)
        lines = first_lines(content)
    sample = "\n".join(lines).encode()
    if dialect.quote and has_blanks_around_quotes(sample, dialect.delimiter, dialect.quote):
        content = without_blanks_around_quotes(content, dialect.delimiter, dialect.quote)
        lines = first_lines(content)
        dialect, _ = find_dialect(lines, options)
    fault = loose_quote(content, *dialect, is_whole=is_whole) if dialect.quote else None
    if fault is not None and not options.strict:
        content = with_inner_quotes_doubled(content, *dialect)
        lines = first_lines(content)
        fault = loose_quote(content, *dialect, is_whole=is_whole)
    if fault is not None:
        if options.quote is None and fault < SAMPLE_BYTES:  # so they are no quotes
            return find_layout(given, replace(options, quote=""), is_whole=is_whole)
        line = content.count(b"\n", 0, fault) + given.count(b"\n") - content.count(b"\n") + 1
        raise ValueError(
            f"line {line} has a value in quotes that does not end with its field; in read_csv(), strict_mode = false takes quotes "
            "inside of values as they are, and quote = '' takes all for text"
        )
    rows = dialect.rows(lines)
    if options.null_padding:
        width = max(map(len, rows))
        rows = [row + [""] * (width - len(row)) for row in rows]
    names, has_header = find_names(rows, options)
    if options.types and len(names) > len(options.types) + 1:
        raise ValueError(f"{len(options.types)} columns are given, and the file has {len(names)}")
    return content, Layout(dialect, names, has_header, has_comments, is_escaped, content != unchanged)


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
        for row in dialect.reader(io.StringIO(content.decode(), newline=""))
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
    dialect, before = find_dialect(lines[begin:], options)
    [below] = dialect.rows(lines[begin + before :][:1])
    return all(len(row) != len(below) for row in dialect.rows(lines[:begin]))
