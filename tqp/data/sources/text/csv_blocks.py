"""CSV files in blocks of rows, each column as text."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.csv as pa_csv

from tqp.core.read_options import ReadOptions
from tqp.data.sources.file_identity import reading
from tqp.data.sources.file_systems import Identity, content_stream
from tqp.data.sources.text.blocks import FileInBlocks
from tqp.data.sources.text.csv_dialects import SAMPLE_BYTES
from tqp.data.sources.text.csv_files import arrow_options, find_layout
from tqp.data.sources.text.csv_text import BYTE_ORDER_MARK, with_whole_line_ends, without_lines
from tqp.data.sources.text.csv_types import conversions
from tqp.data.sources.text.date_forms import Convert

#: Of the start of a file, which may begin with lines that are left out.
_HEAD_BYTES = 4 * SAMPLE_BYTES


class CsvInBlocks(FileInBlocks):
    """A CSV file that is written as its first lines tell, UTF-8, without comments and without backslashes before quotes."""

    def __init__(self, path: str, identity: Identity, options: ReadOptions, block_bytes: int) -> None:
        """Raises ExecutionError for a file that only `read_csv_text` reads."""
        super().__init__(path, identity)
        self._options, self._block_bytes = options, block_bytes
        with reading(path, identity):
            with content_stream(path) as stream:
                head = bytes(stream.read(_HEAD_BYTES))
            codecs.getincrementaldecoder("utf-8")().decode(head)  # Arrow looks at no names
            is_recoded = options.encoding not in (None, "utf-8")
            has_long_delimiter = options.delimiter is not None and len(options.delimiter.encode()) != 1
            if options.comment or is_recoded or has_long_delimiter or options.null_padding:
                raise ValueError("its text is changed before it is read")
            rows = without_lines(head.removeprefix(BYTE_ORDER_MARK), options.skip).lstrip(b"\r\n")
            content, self._layout = find_layout(rows, options, is_whole=False)
            if self._layout.is_changed:
                raise ValueError("its text is changed before it is read")
            if options.types and len(self._layout.names) > len(options.types):
                raise ValueError("its rows end with a delimiter")
            if len(content) <= SAMPLE_BYTES:
                raise ValueError("its first rows are not at its start")
        self._start = len(head) - len(content)
        self.schema = pa.schema([(name, pa.string()) for name in self._layout.names])

    def conversions(self, position: int) -> Sequence[Convert]:
        return conversions(self.schema.names[position], self._options)

    def _blocks(self, positions: Sequence[int]) -> Iterator[pa.Table]:
        given = arrow_options(self._layout, self._options, has_quotes=True, fault=self._fault)
        given["read_options"].block_size = self._block_bytes
        given["convert_options"].include_columns = [str(position) for position in positions]
        with content_stream(self.path) as stream:
            stream.read(self._start)
            with pa_csv.open_csv(with_whole_line_ends(stream), **given) as batches:
                for batch in batches:
                    yield pa.Table.from_batches([batch])

    def _fault(self, row: pa_csv.InvalidRow) -> str:
        is_comment = self._layout.has_comments and row.text.startswith("#")
        return "skip" if is_comment or self._options.ignore_errors else "error"
