"""JSON files in blocks of rows, where each object is on a line of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.json as pa_json

from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.sources.file_identity import reading
from tqp.data.sources.file_systems import Identity, content_stream
from tqp.data.sources.text.blocks import FileInBlocks
from tqp.data.sources.text.csv_text import BYTE_ORDER_MARK
from tqp.data.sources.text.csv_types import values_or_none
from tqp.data.sources.text.date_forms import Convert
from tqp.data.sources.text.json_files import HUGE, common_schema, parsed, parsed_as_text
from tqp.data.sources.text.json_texts import Place, are_converted, conversions_of, with_texts


class JsonInBlocks(FileInBlocks):
    """A file of newline-delimited objects. A first pass finds its types."""

    def __init__(
        self, path: str, identity: Identity, block_bytes: int, options: ReadOptions = NO_OPTIONS
    ) -> None:
        """Raises ExecutionError for a file that only `read_json` reads, or nothing."""
        super().__init__(path, identity)
        self._block_bytes = block_bytes
        self._options = options
        #: What texts are converted to, by their place.
        self._conversions: dict[Place, Convert] = {}
        with reading(path, identity):
            self._as_read = self._survey()
            self.schema = self._converted(self._as_read.empty_table()).schema

    def _survey(self) -> pa.Schema:
        """The types that hold of all rows, and what all texts are; counts the rows."""
        schemas: list[pa.Schema] = []
        num_bytes: dict[str, int] = {}
        num_rows = 0
        #: The conversions that each text so far has, by its place.
        left: dict[Place, Sequence[Convert]] = {}

        def look(place: Place, texts: pa.ChunkedArray) -> pa.ChunkedArray:
            if texts.null_count < len(texts):
                tried = left.get(place, conversions_of(place[0], self._options))
                left[place] = [each for each in tried if are_converted(texts, each)]
            return texts

        for content in self._contents():
            table = parsed_as_text(content)
            num_rows += table.num_rows
            schemas = [common_schema([*schemas, table.schema])]
            if HUGE in table.schema.types:
                raise ValueError("it holds integers of more than 64 bits")
            for name, column in zip(table.column_names, table.columns, strict=True):
                num_bytes[name] = num_bytes.get(name, 0) + column.nbytes
            with_texts(table, look)
        if not schemas or not num_bytes:
            raise ValueError("it holds no objects")
        self._conversions = {place: tried[0] for place, tried in left.items() if tried}
        self.num_rows, self.num_bytes = num_rows, dict(enumerate(num_bytes.values()))
        return schemas[0]

    def _blocks(self, positions: Sequence[int]) -> Iterator[pa.Table]:
        asked = pa.schema([self._as_read.field(position) for position in positions])
        parsing = pa_json.ParseOptions(
            explicit_schema=asked, newlines_in_values=True, unexpected_field_behavior="ignore"
        )
        for content in self._contents():
            yield self._converted(parsed(content, parsing))

    def _converted(self, table: pa.Table) -> pa.Table:
        """The table with what its texts are."""

        def change(place: Place, texts: pa.ChunkedArray) -> pa.ChunkedArray:
            convert = self._conversions.get(place)
            found = None if convert is None else values_or_none(convert, texts)
            return texts if found is None else found

        return with_texts(table, change) if self._conversions else table

    def _contents(self) -> Iterator[bytes]:
        """The file in parts of whole lines."""
        with content_stream(self.path) as stream:
            rest = bytes(stream.read(self._block_bytes)).removeprefix(BYTE_ORDER_MARK).lstrip()
            if rest.startswith(b"["):
                raise ValueError("it is an array")
            while rest:
                content, end, rest = rest.rpartition(b"\n")
                if content.strip():
                    yield content + end
                more = bytes(stream.read(self._block_bytes))
                if not more:
                    if rest.strip():
                        yield rest
                    return
                rest += more
