"""The ways of an answer into files, for what has one: results and relations."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii
from tqp.data.column import Table
from tqp.data.sources.file_systems import located
from tqp.writing.targets import write_files

#: What DuckDB's methods, or pandas', call options of COPY.
_OPTIONS = {
    "na_rep": "null",
    "quotechar": "quote",
    "escapechar": "escape",
    "overwrite": "overwrite_or_ignore",
}


class WaysToFiles(ABC):
    """`options` are those of COPY in small letters, or DuckDB's names for them in Python, such as `na_rep`; None is as if it were
    not given.

    A file takes the place of another of its name when it is complete. Raises BindError and UnsupportedError that name the option,
    ExecutionError that names the file if it cannot be written.
    """

    @abstractmethod
    def _to_write(self) -> Table:
        """The rows that are written."""

    def write_parquet(self, file_name: str | os.PathLike[str], **options: Any) -> None:
        """Write a Parquet file, or with `partition_by` a directory of them.

        `compression`: "uncompressed", "snappy", "gzip", "brotli", "lz4" or "zstd". Raises UnsupportedError for a type that it
        cannot hold.
        """
        self._write(file_name, "parquet", options)

    def write_csv(self, file_name: str | os.PathLike[str], **options: Any) -> None:
        """Write a CSV file, or with `partition_by` a directory of them.

        `sep`: what stands between values; `header`: whether names stand above them; `na_rep`: the text of NULL; `compression`: "gzip",
        "zstd", "bz2" or "lz4", by default what the name ends in. Values are written as CAST to VARCHAR writes them.
        """
        quoting, encoding = options.pop("quoting", None), options.pop("encoding", None)
        if lower_ascii(str(encoding or "utf-8")) not in ("utf-8", "utf8"):
            raise BindError(f"encoding={encoding!r}: CSV files are written in utf-8")
        if quoting is not None:
            if quoting != 1 and lower_ascii(str(quoting)) not in ("all", "force"):
                raise BindError(f"quoting={quoting!r}: give 'all' or csv.QUOTE_ALL, or leave it out")
            options["force_quote"] = "*"
        self._write(file_name, "csv", options)

    def write_json(self, file_name: str | os.PathLike[str], **options: Any) -> None:
        """Write a file of JSON objects, one a line, or with `array` an array of them."""
        self._write(file_name, "json", options)

    def to_parquet(self, file_name: str | os.PathLike[str], **options: Any) -> None:
        """`write_parquet`."""
        self.write_parquet(file_name, **options)

    def to_csv(self, file_name: str | os.PathLike[str], **options: Any) -> None:
        """`write_csv`."""
        self.write_csv(file_name, **options)

    def _write(self, file_name: str | os.PathLike[str], form: str, options: dict[str, Any]) -> None:
        said = {_OPTIONS.get(name, name): value for name, value in options.items() if value is not None}
        rows = self._to_write()
        write_files(rows.names, [rows], located(file_name), said, form)
