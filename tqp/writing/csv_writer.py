"""CSV as DuckDB writes it: text is in quotes where it would be read as something else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from tqp.core.arguments import unique_names
from tqp.core.errors import BindError
from tqp.data.column import Table
from tqp.writing.replaced_files import stream_beside
from tqp.writing.texts import TimeFormats, beside, blocks, bytes_of, text_array

#: What the text of a number may hold.
_OF_NUMBERS = frozenset("0123456789+-.einfa")


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """`null`: the text of NULL. `quote`: empty where nothing is in quotes. `escape`: what stands before a quote inside quotes.
    `force_quote`: the places of columns whose values are always in quotes. `prefix` and `suffix` stand around all lines, the last
    of which has no end then."""

    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""
    force_quote: frozenset[int] = frozenset()
    new_line: str = "\n"
    prefix: str = ""
    suffix: str = ""
    formats: TimeFormats = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.delimiter or len(self.quote) > 1 or len(self.escape) > 1:
            raise BindError(
                "the delimiter of a CSV file is a text, its quote and what stands before one are a character each"
            )
        parts = (self.delimiter, *self.quote)
        if self.quote in (*self.delimiter,) or any(each in self.null for each in parts):
            raise BindError("the delimiter, the quote and the text of NULL in a CSV file must differ")


def write_csv(tables: Iterable[Table], path: str, form: CsvFormat, compression: str | None = None) -> int:
    """Writes the rows of tables with the same columns to a file, compressed if that is said ("gzip", "zstd") or its name ends so.

    Says how many they are. Raises ExecutionError that names the file if it cannot be written.
    """
    num_rows, end = 0, form.new_line.encode()
    with stream_beside(path, compression) as stream:
        stream.write(form.prefix.encode())
        pending = b""  # the end of the last line, which a suffix takes the place of
        for number, block in enumerate(blocks(tables)):
            parts = [_lines(block, form)]
            if form.header and not number:
                names = unique_names(block.names)
                parts.insert(0, _line([pa.array([name], pa.large_string()) for name in names], form, True))
            for part in parts:
                if part.size:
                    stream.write(pending)
                    stream.write(part[: part.size - len(end)])
                    pending = end
            num_rows += block.num_rows
        stream.write(form.suffix.encode() or pending)
    return num_rows


def _lines(block: Table, form: CsvFormat) -> pa.Buffer:
    fields = []
    for place, column in enumerate(block.columns):
        texts = text_array(column, form.formats)
        plain = column.data_type.is_numeric and not {*form.delimiter, *form.quote} & _OF_NUMBERS
        is_forced = place in form.force_quote
        fields.append(texts if plain and not is_forced and not form.null else _quoted(texts, form, is_forced))
    return _line([pc.fill_null(field, form.null) for field in fields], form, False)


def _line(fields: Sequence[pa.Array], form: CsvFormat, are_names: bool) -> pa.Buffer:
    """The lines of some rows, each with its end."""
    if are_names:
        fields = [_quoted(field, form, place in form.force_quote) for place, field in enumerate(fields)]
    if not fields:
        return pa.py_buffer(b"")
    return bytes_of(beside(beside(*fields, between=form.delimiter), form.new_line))


def _quoted(texts: pa.LargeStringArray, form: CsvFormat, is_forced: bool) -> pa.LargeStringArray:
    if not form.quote:
        return texts
    special = f"[{re.escape(form.quote)}\n\r#]|{re.escape(form.delimiter)}"
    needs = pc.or_(pc.match_substring_regex(texts, special), pc.equal(texts, form.null))
    if is_forced:
        needs = pc.is_valid(texts)
    if not pc.any(needs).as_py():
        return texts
    inside = texts
    for each in dict.fromkeys((form.escape, form.quote)):
        inside = pc.replace_substring(inside, each, form.escape + each)
    return pc.if_else(needs, beside(form.quote, inside, form.quote), texts)
