"""What kinds of files there are, what their names tell of it, and what else can be read of files."""

from __future__ import annotations

from typing import Literal

#: What holds a table; the names, texts or bytes of any files; what the footers of Parquet files say; the values of JSON files as
#: they stand there, of "JSON lines" on lines of their own; how a CSV file is written.
FileKind = Literal[
    "parquet",
    "csv",
    "json",
    "Arrow IPC",
    "names",
    "text",
    "blob",
    "Parquet schema",
    "Parquet column chunks",
    "Parquet footers",
    "Parquet key values",
    "JSON values",
    "JSON lines",
    "CSV layout",
]

#: A row for each file; where no file matches, there are none.
WHOLE_FILES: frozenset[FileKind] = frozenset(("names", "text", "blob"))

PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
#: By kind, how the names of such files end, in lower case.
ENDINGS: dict[FileKind, tuple[str, ...]] = {
    "parquet": PARQUET_ENDINGS,
    "csv": (".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".tsv", ".tsv.gz", ".tbl", ".txt"),
    "json": (".json", ".ndjson", ".jsonl", ".json.gz", ".ndjson.gz", ".jsonl.gz"),
    "Arrow IPC": (".arrow", ".feather", ".ipc"),
}


def kind_of_name(file: str) -> FileKind | None:
    """The kind that the name of a file, or a pattern of names, tells; None if it tells none.

    >>> kind_of_name("sales/*.Parquet"), kind_of_name("sales")
    ('parquet', None)
    """
    lower = file.lower()
    return next((kind for kind, endings in ENDINGS.items() if lower.endswith(endings)), None)
