"""Where the rows of a CSV file stand in it, and which of them are too short or too long: what tables of rejects tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tqp.core.read_options import ReadOptions
from tqp.data.sources.file_systems import content_of
from tqp.data.sources.text.csv_dialects import Dialect
from tqp.data.sources.text.csv_files import find_layout
from tqp.data.sources.text.csv_text import in_utf8, without_lines

Places = np.ndarray[tuple[int], np.dtype[np.int64]]


class Fault(NamedTuple):
    """What is wrong with a row. `column`: its number, from 1; `place`: that of a byte of the file."""

    row: int
    column: int
    place: int
    kind: str
    message: str


class CsvRows:
    """The rows of a file without its header. `is_whole`: of each, whether it has as many fields as there are columns."""

    def __init__(self, file: str, options: ReadOptions, names: Sequence[str]) -> None:
        """`names`: of the columns."""
        self._content = content = in_utf8(content_of(file), options.encoding)
        begun = without_lines(content, options.skip).lstrip(b"\r\n")
        rest, layout = find_layout(begun, options)
        lines_before = content.count(b"\n") - rest.count(b"\n")
        first = len(content) - len(without_lines(content, lines_before))
        self.names, self._dialect = names[: len(layout.names)], layout.dialect
        code = np.frombuffer(content, np.uint8)[first:]
        newline = ord("\n") if b"\n" in content else ord("\r")
        ends, delimiters = code == newline, code == ord(layout.dialect.delimiter)
        quote = layout.dialect.quote.encode()
        if quote and quote in content:
            quotes = code == ord(quote)
            if layout.has_escaped_quotes:
                quotes[1:] &= code[:-1] != ord("\\")
            outside = ~np.logical_xor.accumulate(quotes)
            ends, delimiters = ends & outside, delimiters & outside
        stops = np.flatnonzero(ends) + first
        if len(content) > (stops[-1] + 1 if len(stops) else first):
            stops = np.append(stops, len(content))
        self._delimiters = np.flatnonzero(delimiters) + first
        starts = np.append(first, stops[:-1] + 1)[: len(stops)]
        has_return = stops > starts
        has_return &= np.frombuffer(content, np.uint8)[np.maximum(stops - 1, 0)] == ord("\r")
        stops = stops - has_return
        lines = np.arange(len(stops)) + 1 + content.count(b"\n", 0, first)
        is_row = stops > starts if len(layout.names) > 1 else np.ones(len(stops), bool)
        if layout.has_comments:
            is_comment = np.frombuffer(content + b"\n", np.uint8)[starts] == ord("#")
            is_row &= ~(is_comment & (self._widths(starts, stops) != len(layout.names)))
        is_row[: np.argmax(is_row) + 1 if is_row.any() and layout.has_header else 0] = False
        self.starts, self._stops, self.lines = starts[is_row], stops[is_row], lines[is_row]
        widths = self._widths(self.starts, self._stops)
        width = len(layout.names)
        self.is_whole = (widths <= width) if options.null_padding else widths == width

    def _widths(self, starts: Places, stops: Places) -> Places:
        """How many fields rows have."""
        found = np.searchsorted(self._delimiters, stops) - np.searchsorted(self._delimiters, starts) + 1
        return found.astype(np.int64)

    def text(self, row: int) -> str:
        """The row as it is written."""
        return self._content[self.starts[row] : self._stops[row]].decode(errors="replace")

    def fields(self, row: int) -> list[str]:
        """What stands in the row, without quotes."""
        dialect = Dialect(self._dialect.delimiter, self._dialect.quote)
        return next(dialect.reader(self.text(row).splitlines(keepends=True)), [])

    def _field_places(self, row: int) -> list[int]:
        """Where its fields begin."""
        low, high = np.searchsorted(self._delimiters, [self.starts[row], self._stops[row]])
        return [int(self.starts[row]), *(int(place) + 1 for place in self._delimiters[low:high])]

    def faults_of_length(self, row: int) -> list[Fault]:
        """One for each field that a row lacks, or has too many."""
        width, places = len(self.names), self._field_places(row)
        expected = f"Expected Number of Columns: {width} Found: "
        missing = [
            Fault(row, column, int(self._stops[row]), "MISSING COLUMNS", f"{expected}{column}")
            for column in range(len(places), width)
        ]
        return missing + [
            Fault(row, column, places[column - 1] - 1, "TOO MANY COLUMNS", f"{expected}{column}")
            for column in range(width + 1, len(places) + 1)
        ]

    def fault_of_value(self, row: int, place: int, value: str, data_type: str) -> Fault:
        """That the value of the column at a place is not of its type."""
        message = (
            f'Error when converting column "{self.names[place]}". Could not convert string "{value}" to'
            f" '{data_type.partition('(')[0]}'"
        )
        return Fault(row, place + 1, self._field_places(row)[place], "CAST", message)
