"""Which delimiter and quotes a CSV file is written with, and where its rows begin, as its first lines tell."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from tqp.core.read_options import ReadOptions

_DELIMITERS = ",|;\t"
#: The first bytes of a file, whose lines tell how it is written.
SAMPLE_BYTES = 65_536


class Dialect(NamedTuple):
    """`quote`: empty where nothing is in quotes."""

    delimiter: str
    quote: str

    def reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """The fields of rows, of text that is cut anywhere."""
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote or None, quoting=quoting)

    def rows(self, lines: Sequence[str]) -> list[list[str]]:
        """The fields of the rows of whole lines."""
        return list(self.reader(line + "\n" for line in lines))


def first_lines(content: bytes) -> list[str]:
    """The whole lines of the sample."""
    sample = content[:SAMPLE_BYTES]
    # Not `str.splitlines`, which also splits at control characters inside values.
    lines = re.split("\r\n|\n|\r", sample.decode(errors="replace"))
    if len(content) > len(sample) and len(lines) > 1 or not lines[-1]:
        lines.pop()
    return lines


def find_dialect(lines: Sequence[str], options: ReadOptions) -> tuple[Dialect, int]:
    """The dialect, and how many lines stand before the first row.

    Of what is not said it is the candidate that splits most lines into as many fields as there are types, or as the first row
    has, then the one with most fields.
    """
    return max(
        ((dialect, *_agreeing_rows(lines, dialect, options)) for dialect in _candidates(lines, options)),
        key=lambda found: found[2],
    )[:2]


def _candidates(lines: Sequence[str], options: ReadOptions) -> Sequence[Dialect]:
    if options.delimiter is not None:
        return [Dialect(options.delimiter, '"' if options.quote is None else options.quote)]
    if options.quote is not None:
        return [Dialect(delimiter, options.quote) for delimiter in _DELIMITERS]
    candidates = [Dialect(delimiter, '"') for delimiter in _DELIMITERS]
    quoted = re.compile(rf"(^|[{re.escape(_DELIMITERS)}])'[^']*'([{re.escape(_DELIMITERS)}]|$)")
    if any(quoted.search(line) for line in lines) and not any('"' in line for line in lines):
        # Single quotes, where they are what makes fields of some rows.
        candidates = [Dialect(delimiter, "'") for delimiter in _DELIMITERS] + candidates
    return candidates


def _agreeing_rows(
    lines: Sequence[str], dialect: Dialect, options: ReadOptions
) -> tuple[int, tuple[int, int, int]]:
    """How many lines stand before the first row, and how well rows agree: those with as many fields as there are types, those
    with as many as the first row, and how many these are."""
    reader = dialect.reader(line + "\n" for line in lines)
    rows, ends = [], [0]
    for row in reader:
        rows.append(row)
        ends.append(reader.line_num)  # type: ignore[attr-defined]  # which a reader has
    begin = _rows_before_table([len(row) for row in rows], options)
    rows = [row for row in rows[begin:] if row]
    fitting = sum(_fits(row, options) for row in rows) if options.types else 0
    if not rows or len(rows[0]) == 1:
        return 0, (fitting, 0, 0)
    width = len(rows[0])
    return ends[begin], (fitting, sum(len(row) == width for row in rows), width)


def _rows_before_table(widths: Sequence[int], options: ReadOptions) -> int:
    """How many rows at the start are a title and the like, by the number of fields of each row: all have fewer than every row
    below them, and there are no more of them than of these.

    No two of them in turn have as many fields, which would be rows of a table themselves (DuckDB leaves these out, too).
    """
    is_said = options.types or options.skip or options.null_padding or options.ignore_errors
    if is_said or not widths:
        return 0
    begin = widths.index(max(widths))
    before = [width for width in widths[:begin] if width]
    below = [width for width in widths[begin:] if width]
    # What the sample ends with may be a part of a row, of which two whole ones say more than one.
    whole = below[:-1] if len(below) > 2 else below
    is_table = len(below) > max(len(before), 1) and min(whole) == max(below)
    has_rows = any(one == other > 1 for one, other in itertools.pairwise(before))
    return begin if is_table and not has_rows else 0


def _fits(row: Sequence[str], options: ReadOptions) -> bool:
    """Whether the row has as many fields as there are types; each row may end with a delimiter."""
    return len(row) == len(options.types) or (len(row) == len(options.types) + 1 and not row[-1])


def has_escaped_quotes(lines: Sequence[str], dialect: Dialect) -> bool:
    """Whether quotes inside of values are written with a backslash: one that does not end the field."""
    if not dialect.quote:
        return False
    inside = re.compile(rf"\\{dialect.quote}(?![{re.escape(dialect.delimiter + dialect.quote)}]|$)")
    return any(dialect.quote in line and inside.search(line) for line in lines)
