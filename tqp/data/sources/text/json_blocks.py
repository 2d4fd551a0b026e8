"""JSON files in blocks of rows, where each object is on a line of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.json as pa_json

from tqp.data.sources.file_identity import reading
from tqp.data.sources.file_systems import Identity, content_stream
from tqp.data.sources.text.blocks import FileInBlocks
from tqp.data.sources.text.csv_text import BYTE_ORDER_MARK
from tqp.data.sources.text.csv_types import Convert, conversions
from tqp.data.sources.text.json_files import parsed


class JsonInBlocks(FileInBlocks):
    """A file of newline-delimited objects. A first pass finds its types; texts that are all times are read as text."""

    def __init__(self, path: str, identity: Identity, block_bytes: int) -> None:
        """Raises ExecutionError for a file that only `read_json` reads, or nothing."""
        super().__init__(path, identity)
        self._block_bytes = block_bytes
        with reading(path, identity):
            found = self._survey()
        self._times = frozenset(place for place, each in enumerate(found) if pa.types.is_timestamp(each.type))
        self.schema = pa.schema(
            [
                pa.field(each.name, pa.string()) if place in self._times else each
                for place, each in enumerate(found)
            ]
        )

    def conversions(self, position: int) -> Sequence[Convert]:
        return conversions(self.schema.names[position]) if position in self._times else ()

    def _survey(self) -> pa.Schema:
        """The types that hold of all rows; counts these."""
        fields: dict[str, pa.DataType] = {}
        num_bytes: dict[str, int] = {}
        num_rows = 0
        for content in self._contents():
            table = parsed(content, pa_json.ParseOptions(newlines_in_values=True))
            num_rows += table.num_rows
            for field, column in zip(table.schema, table.columns, strict=True):
                fields[field.name] = _common(fields.get(field.name, pa.null()), field.type)
                num_bytes[field.name] = num_bytes.get(field.name, 0) + column.nbytes
        if not fields:
            raise ValueError("it holds no objects")
        self.num_rows, self.num_bytes = num_rows, dict(enumerate(num_bytes.values()))
        return pa.schema(list(fields.items()))

    def _blocks(self, positions: Sequence[int]) -> Iterator[pa.Table]:
        asked = pa.schema([self.schema.field(position) for position in positions])
        parsing = pa_json.ParseOptions(
            explicit_schema=asked, newlines_in_values=True, unexpected_field_behavior="ignore"
        )
        for content in self._contents():
            yield parsed(content, parsing)

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


def _common(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type that Arrow finds for values of which some are of one type, and some of another. Raises ValueError if there is none."""
    if pa.types.is_null(left) or left == right:
        return right
    if pa.types.is_null(right):
        return left
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        fields = {field.name: field.type for field in left}
        for field in right:
            fields[field.name] = _common(fields.get(field.name, pa.null()), field.type)
        return pa.struct(list(fields.items()))
    if pa.types.is_list(left) and pa.types.is_list(right):
        return pa.list_(_common(left.value_type, right.value_type))
    for wider, narrower in ((pa.float64(), pa.int64()), (pa.string(), pa.timestamp("s"))):
        if {left, right} == {wider, narrower}:
            return wider
    raise ValueError(f"a key has values of the types {left} and {right}")
