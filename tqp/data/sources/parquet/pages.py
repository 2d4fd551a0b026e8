"""Column chunks compressed by Snappy, decompressed page by page before Arrow decodes them.

Arrow's own Snappy takes twice the time of the one that cramjam packs. What Arrow gets to read is a file in memory of nothing
but some chunks of one column, whose pages say that they are not compressed. Without cramjam, of which not every Python has a
build, Arrow decompresses.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from tqp.data.sources.parquet.footer import MAGIC, Stored, footer_of_column
from tqp.data.sources.parquet.thrift import (
    CompactReader,
    Field,
    flag_field,
    integer_value,
    struct_bytes,
    struct_field,
)

try:
    import cramjam
except ImportError:
    cramjam = None  # type: ignore[assignment]

#: Bytes that compression saves in a column chunk, at least, for it to be worth it: to find the pages of one takes 0.15 ms, and
#: of a megabyte that is half as long compressed this Snappy spares 0.6 ms.
_SAVED = 200_000
#: Fields of PageHeader in parquet.thrift, and of DataPageHeaderV2; and values of the enumeration PageType.
_TYPE, _UNCOMPRESSED_SIZE, _COMPRESSED_SIZE, _CHECKSUM, _VERSION_2 = 1, 2, 3, 4, 8
_BYTES_OF_LEVELS, _IS_COMPRESSED = (5, 6), 7
_DICTIONARY_PAGE = 2


def pays(chunk: pq.ColumnChunkMetaData) -> bool:
    """Whether a chunk is compressed by Snappy, and by enough."""
    saved: int = chunk.total_uncompressed_size - chunk.total_compressed_size
    return cramjam is not None and saved > _SAVED and chunk.compression == "SNAPPY"


def decompressed(
    stream: pa.NativeFile,
    chunks: Sequence[pq.ColumnChunkMetaData],
    nums_rows: Sequence[int],
    element: bytes,
    field: pa.Field | None,
) -> pa.Buffer | None:
    """A Parquet file of some chunks of one column, not compressed; None where pages are not as expected: Arrow's reader says why.

    `nums_rows`: of the row group of each chunk; `element`, `field`: what the schema of the file and that of Arrow say of the
    column, as `footer_of_column` has it.
    """
    stored: list[Stored] = []
    written: list[tuple[_Page, int]] = []
    end = len(MAGIC)
    try:
        for chunk, num_rows in zip(chunks, nums_rows, strict=True):
            pages = list(_pages(_stored_bytes(stream, chunk)))
            starts = list(itertools.accumulate((page.length for page in pages), initial=end))
            size = starts[-1] - end
            if size > 2 * chunk.total_uncompressed_size:
                return None
            dictionary = starts[0] if pages[0].is_dictionary else None
            data = starts[[page.is_dictionary for page in pages].index(False)]
            stored.append(Stored(chunk.num_values, num_rows, dictionary, data, size))
            written += zip(pages, starts[:-1], strict=True)
            end = starts[-1]
        footer = footer_of_column(element, field, chunks[0].path_in_schema, stored)
        file = pa.allocate_buffer(end + len(footer))
        content = memoryview(file).cast("B")
        content[: len(MAGIC)], content[end:] = MAGIC, footer
        for page, start in written:
            page.put(content[start:])
    except (ValueError, LookupError, RecursionError, cramjam.DecompressionError):
        return None
    return file


def _stored_bytes(stream: pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> bytes:
    """A column chunk as the file has it."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    stream.seek(start)
    content: bytes = stream.read(chunk.total_compressed_size)
    return content


@dataclass(frozen=True, slots=True)
class _Page:
    is_dictionary: bool
    #: A PageHeader that says that the page is not compressed.
    header: bytes
    #: What is not compressed in the file, before what is.
    plain: memoryview
    compressed: memoryview
    #: Of both, in bytes, once all is decompressed.
    size: int

    @property
    def length(self) -> int:
        """Of all that is written."""
        return len(self.header) + self.size

    def put(self, content: memoryview) -> None:
        """Write the page at the beginning of `content`. Raises ValueError or DecompressionError if it is not as long as it says."""
        start = len(self.header)
        content[:start] = self.header
        content[start : start + len(self.plain)] = self.plain
        into = content[start + len(self.plain) : start + self.size]
        if into and cramjam.snappy.decompress_raw_into(self.compressed, into) != len(into):
            raise ValueError("a page is shorter than its header says")


def _pages(content: bytes) -> Iterator[_Page]:
    """The pages of a column chunk. Raises ValueError or IndexError where they do not end with it."""
    reader, view = CompactReader(content), memoryview(content)
    while reader.at < len(content):
        fields = reader.fields()
        values = {number: value for number, _, value in fields}
        size, compressed_size = (
            integer_value(values[each]) for each in (_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE)
        )
        body = view[reader.at : reader.at + compressed_size]
        if size < 0 or len(body) != compressed_size:
            raise ValueError("a page ends behind its column chunk")
        reader.at += compressed_size
        num_plain = 0
        if _VERSION_2 in values:
            said = CompactReader(values[_VERSION_2]).struct()
            is_plain = said.get(_IS_COMPRESSED) is False
            num_plain = compressed_size if is_plain else sum(said[each] for each in _BYTES_OF_LEVELS)
            if not 0 <= num_plain <= min(size, compressed_size):
                raise ValueError("the levels of a page end behind it")
        yield _Page(
            integer_value(values[_TYPE]) == _DICTIONARY_PAGE,
            struct_bytes(_uncompressed(fields, values[_UNCOMPRESSED_SIZE])),
            body[:num_plain],
            body[num_plain:],
            size,
        )


def _uncompressed(fields: Sequence[Field], size: bytes) -> Iterator[Field]:
    """The fields of a PageHeader that says that its page is not compressed."""
    for number, kind, value in fields:
        if number == _COMPRESSED_SIZE:
            yield number, kind, size
        elif number == _VERSION_2:
            kept = [each for each in CompactReader(value).fields() if each[0] < _IS_COMPRESSED]
            yield struct_field(number, [*kept, flag_field(_IS_COMPRESSED, False)])
        elif number != _CHECKSUM:
            yield number, kind, value
