"""Files of any kind as rows: their names, what they hold, their size and when they changed last."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import torch

from tqp.core.datatypes import DataType
from tqp.core.errors import ExecutionError
from tqp.data.arrow_types import field_type
from tqp.data.column import Column
from tqp.data.encoding.columns import encode_chunks
from tqp.data.sharing import share
from tqp.data.sources.base import Source
from tqp.data.sources.file_identity import FileSet, reading
from tqp.data.sources.file_systems import bytes_of, is_remote
from tqp.data.sources.hive_partitions import partition_columns

_SECOND = 1_000_000_000


class WholeFilesSource(Source):
    """What glob(), read_text() and read_blob() give. The files are read when their content is first touched."""

    def __init__(self, name: str, files: FileSet, device: torch.device) -> None:
        self.num_rows = len(files.files)
        #: By name, the type and what makes the values.
        self._made: dict[str, tuple[pa.DataType, Callable[[], pa.Array]]]
        if files.kind == "names":
            self._made = {"file": (pa.string(), self._names)}
        else:
            holds = pa.large_string() if files.kind == "text" else pa.large_binary()
            self._made = {
                "filename": (pa.string(), self._names),
                "content": (holds, lambda: pa.array(share(self._content, files.files), holds)),
                "size": (pa.int64(), self._sizes),
                "last_modified": (pa.timestamp("us", "UTC"), self._times),
            }
            for column, values in partition_columns(files.files, files.options).items():
                self._made[column] = (values.type, lambda values=values: values)  # type: ignore[misc]
        super().__init__(name, list(self._made), device)
        self.files: FileSet = files

    def _names(self) -> pa.Array:
        try:
            return pa.array(self.files.files, pa.string())
        except UnicodeEncodeError as error:
            raise ExecutionError(f"the name of the file {error.object!r} is not text in UTF-8") from None

    def _content(self, file: str) -> str | bytes:
        with reading(file, self.files.identities[file]):
            content = bytes_of(file)
        if self.files.kind == "blob":
            return content
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise ExecutionError(
                f"{file} does not hold text in UTF-8; read_blob() reads whatever there is"
            ) from None

    def _sizes(self) -> pa.Array:
        return pa.array([self.files.identities[file][2] for file in self.files.files], pa.int64())

    def _times(self) -> pa.Array:
        """When each file changed last, of local ones in whole seconds; NULL where their file system does not tell."""
        times = []
        for file in self.files.files:
            changed = self.files.identities[file][3]
            times.append((changed or None) if is_remote(file) else changed // _SECOND * 1_000_000)
        return pa.array(times, pa.timestamp("us", "UTC"))

    def _type_at(self, position: int) -> DataType:
        name = self.column_names[position]
        return field_type(pa.field(name, list(self._made.values())[position][0]), name)

    def _encode(self, position: int) -> Column:
        _, values = list(self._made.values())[position]
        return encode_chunks(self.column_names[position], [values()], self._type_at(position), self.device)
