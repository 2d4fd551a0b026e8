"""Files as tables: those that hold one, and what there is to say of files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from tqp.core.errors import BindError, Error, UnsupportedError
from tqp.core.file_kinds import ENDINGS, PARQUET_ENDINGS, WHOLE_FILES, FileKind, kind_of_name
from tqp.core.keywords import lower_ascii
from tqp.core.process.memory_budget import check
from tqp.core.process.progress import Steps
from tqp.core.process.waiting import interruptible
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.sources.base import Source
from tqp.data.sources.file_columns import FileColumns
from tqp.data.sources.file_identity import FileSet, read_again_if_changed, reading
from tqp.data.sources.file_patterns import Found, matching_paths
from tqp.data.sources.file_systems import is_remote, located, opened, remote_files
from tqp.data.sources.objects.arrow_tables import ArrowSource
from tqp.data.sources.parquet.descriptions import DESCRIPTIONS, described
from tqp.data.sources.parquet.files import ParquetSource
from tqp.data.sources.schemas import concatenated, with_all_columns
from tqp.data.sources.text.csv_files import read_csv_text
from tqp.data.sources.text.csv_layouts import csv_layout
from tqp.data.sources.text.csv_types import typed
from tqp.data.sources.text.json_files import as_tables, read_json
from tqp.data.sources.text.json_texts import with_typed_texts
from tqp.data.sources.text.json_values import read_json_values
from tqp.data.sources.text.text_files import text_files_source
from tqp.data.sources.whole_files import WholeFilesSource

#: Bytes of files from which on reading them may take long.
_LONG = 4 << 20


def file_source(
    name: str,
    paths: Any,
    device: torch.device,
    kind: FileKind | None = None,
    options: ReadOptions = NO_OPTIONS,
) -> Source:
    """The source for a path, a list of paths, a glob pattern or a directory of Parquet files.

    `kind`: of the files; by default what their names, or their first bytes, tell. Raises BindError if there is no such file or its kind is not known, ExecutionError if a file cannot be read.
    """
    return read_again_if_changed(lambda: _read(name, paths, device, kind, options))


def up_to_date(source: Source) -> Source:
    """The source itself, or one read anew where files it was read from have changed since.

    Where they cannot be read any more, one whose columns raise the error that says so.
    """
    files = source.files
    if files is None or files.are_unchanged():
        return source
    try:
        anew = file_source(source.name, files.registered, source.device, files.kind, files.options)
    except Error as error:
        anew = _unreadable(source, files, error)
    return anew


def _unreadable(source: Source, files: FileSet, error: Error) -> Source:
    """In the place of a table whose files are gone or damaged: queries that do not read it go on."""
    empty = ArrowSource(source.name, pa.table({}), source.device)
    empty.files = FileSet(
        files.registered, (), {os.devnull: (0, 0, 0, 0, 0)}, {}, files.kind, files.options
    )  # never unchanged
    empty.error = error
    return empty


def _read(name: str, paths: Any, device: torch.device, kind: FileKind | None, options: ReadOptions) -> Source:
    files = _expand(name, paths, kind, options)
    if kind in WHOLE_FILES:
        return WholeFilesSource(name, files, device)
    kinds = {kind or _kind(file) for file in files.files}
    if len(kinds) > 1:
        raise BindError(f'table "{name}": the files are of different kinds ({", ".join(sorted(kinds))})')
    kind = kinds.pop()
    if kind == "CSV layout" and len(files.files) > 1:
        raise UnsupportedError(f"sniff_csv() tells of one file, and {len(files.files)} match")
    if kind == "parquet" and not options.by_name:
        return ParquetSource(name, files, device)
    if kind in ("csv", "json"):
        large = text_files_source(name, files, kind, device)
        if large is not None:
            return large
    if sum(size for _, _, size, *_ in files.identities.values()) < _LONG:
        return _read_whole(name, files, kind, device)
    return interruptible(lambda: _read_whole(name, files, kind, device), check)


def _read_whole(name: str, files: FileSet, kind: FileKind, device: torch.device) -> Source:
    """All of the files at once."""
    options = files.options
    readers: dict[FileKind, Callable[[str], Any]] = {
        "csv": lambda file: read_csv_text(file, options),
        "json": lambda file: read_json(file, options),
        "parquet": _read_parquet,
        "Arrow IPC": _read_ipc,
        "JSON values": lambda file: read_json_values(file, options.json_form),
        "JSON lines": lambda file: read_json_values(file, "newline_delimited"),
        "CSV layout": lambda file: csv_layout(file, options),
        **{each: partial(described, each) for each in DESCRIPTIONS},
    }
    tables, progress = [], Steps(f"reading {name}", len(files.files))
    for file in files.files:
        progress.begin()
        with progress, reading(file, files.identities[file]):
            tables.append(readers[kind](file))
    is_parquet = kind == "parquet"  # the others are text, whose types are found in all files together
    if kind == "json":
        tables = as_tables(tables, options)
    elif options.by_name:
        tables = with_all_columns(files.files, tables, casts=is_parquet)
    table = concatenated(files.files, tables, casts=is_parquet)
    if kind == "csv":
        table = typed(table, options)
    elif kind == "json":
        table = with_typed_texts(table, options)
    num_hidden = 0
    if kind not in DESCRIPTIONS and kind != "CSV layout":
        columns = FileColumns.of(files, table.column_names, counts_rows=is_parquet)
        sizes = [part.num_rows for part in tables]
        table, num_hidden = _with_columns(table, columns, sizes), len(columns.hidden)
    source = ArrowSource(name, table, device, num_hidden=num_hidden)
    source.files = files
    return source


def _with_columns(table: pa.Table, columns: FileColumns, sizes: Sequence[int]) -> pa.Table:
    """The table with columns that files do not hold; `sizes`: how many rows each file has."""
    replaced = set(map(lower_ascii, columns.partitions))
    table = table.select(
        [at for at, name in enumerate(table.column_names) if lower_ascii(name) not in replaced]
    )
    spans = [(number, 0, num_rows) for number, num_rows in enumerate(sizes)]
    for name in columns.values:
        table = table.append_column(name, columns.column(name, spans))
    return table


def _expand(name: str, paths: Any, kind: FileKind | None, options: ReadOptions) -> FileSet:
    """The files that a path, pattern, directory or list of these stands for, in a fixed order."""
    files: list[str] = []
    searched: set[str] = set()
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        text = located(path)
        found = _search(text, kind)
        if not found.paths and kind not in WHOLE_FILES:
            what = "no Parquet file in the directory" if os.path.isdir(text) else "no file matches"
            raise BindError(f'table "{name}": {what} {text}')
        searched |= found.directories
        files += found.paths
    return FileSet.of(paths, files, searched, kind, options)


def _search(text: str, kind: FileKind | None) -> Found:
    """What a path, an address, a pattern or, but for files of any kind, a directory of Parquet files stands for."""
    if is_remote(text):
        with reading(text):
            return Found(remote_files(text, directories=kind not in WHOLE_FILES), {text})
    if os.path.isdir(text) and kind not in WHOLE_FILES:
        return _parquet_files(text)
    if os.path.exists(text) and not os.path.isdir(text):
        return Found([text])
    found = matching_paths(text)
    return found if kind == "names" else Found(list(filter(os.path.isfile, found.paths)), found.directories)


def _parquet_files(directory: str) -> Found:
    """Those in a directory and the directories in it, but for hidden ones."""
    found = Found()
    for parent, directories, names in os.walk(directory):
        directories[:] = [each for each in directories if not each.startswith(".")]
        found.directories.add(parent)
        found.paths += [
            os.path.join(parent, each)
            for each in names
            if each.lower().endswith(PARQUET_ENDINGS) and not each.startswith(".")
        ]
    found.paths.sort()
    return found


def _kind(file: str) -> FileKind:
    kind = kind_of_name(file)
    if kind is not None:
        return kind
    with reading(file), opened(file) as place, _stream(place) as stream:
        if stream.read(4) == b"PAR1":
            return "parquet"
    raise BindError(
        f"cannot tell what kind of file {file} is; its name should end in one of"
        f" {', '.join(itertools.chain(*ENDINGS.values()))}"
    )


def _read_parquet(file: str) -> pa.Table:
    with opened(file) as source, pq.ParquetFile(source) as parquet:
        return parquet.read()


def _stream(place: Any) -> pa.NativeFile:
    """What a path or an open remote file holds."""
    return pa.OSFile(place) if isinstance(place, str) else pa.PythonFile(place, mode="r")


def _read_ipc(file: str) -> pa.Table:
    """All of the file in memory: a memory map would show what is written to the file later."""
    with opened(file) as place, _stream(place) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()
