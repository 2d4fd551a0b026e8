"""Where rows are written to: a file, or a folder of files, for each combination of partition values or in one place."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tqp.core.arguments import parse_size
from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.data.column import Table
from tqp.data.sources.file_systems import holds_files, is_remote, make_directory
from tqp.writing.formats import FileWriter, ending_of, file_writer, format_of
from tqp.writing.options import Options
from tqp.writing.parquet_writer import ROW_GROUP_ROWS
from tqp.writing.partitions import Partition, folder_of, partitions_of
from tqp.writing.replaced_files import writing

#: Options that say which files there are, of any format.
TARGET_OPTIONS = (
    "partition_by", "write_partition_columns", "per_thread_output", "file_size_bytes", "overwrite", "overwrite_or_ignore", "append",
    "filename_pattern", "file_extension", "hive_file_pattern", "write_empty_file", "use_tmp_file", "return_files", "return_stats",
)  # fmt: skip
#: Rows by which the size of a file is estimated, and which each has: a vector of DuckDB's.
_SAMPLE_ROWS = 2048
_MODES = ("overwrite_or_ignore", "overwrite", "append")
_UUIDS = ("{uuid}", "{uuidv4}", "{uuidv7}")


@dataclass(frozen=True, slots=True)
class Written:
    """How many rows were written, and to which files; of each, where rows are partitioned, the values of its partition as texts."""

    num_rows: int
    files: tuple[str, ...]
    partitions: tuple[Partition | None, ...]


@dataclass(frozen=True, slots=True)
class _Target:
    """`places`: of the columns that rows are partitioned by. `mode`: what is done with a folder that is not empty, one of _MODES.
    `pattern`: of the names of files in folders. `has_folders`: whether each partition has one of its own.
    `rows_of_file`, `bytes_of_file`: where the next file begins; 0 where all rows go to one."""

    path: str
    write_file: FileWriter
    places: tuple[int, ...] = ()
    keeps_columns: bool = False
    is_folder: bool = False
    mode: str = ""
    pattern: str = "data_{i}"
    ending: str = ""
    has_folders: bool = True
    writes_empty: bool = True
    rows_of_file: int = 0
    bytes_of_file: int = 0


def write_files(
    names: Sequence[str], tables: Iterable[Table], path: str, options: dict[str, Any], form: str = ""
) -> Written:
    """Writes the rows of tables, at least one, with columns of these names; `form`: of files, where the options do not say it.

    Raises BindError and UnsupportedError that name the option, ExecutionError that names the file.
    """
    said = Options({"format": form, **options} if form else options)
    return _write(_target(names, path, said), iter(tables))


def _target(names: Sequence[str], path: str, options: Options) -> _Target:
    form = format_of(path, options, TARGET_OPTIONS)
    modes = [mode for mode in _MODES if mode in options]
    if len(modes) > 1:
        raise BindError(f"{' and '.join(map(str.upper, modes))} exclude each other")
    mode = next((mode for mode in modes if options.flag(mode)), "")
    if options.flag("return_stats") and form != "parquet":
        raise UnsupportedError(f"RETURN_STATS is of Parquet files, and not of {form}")
    options.flag("return_files")
    places = tuple(options.columns("partition_by", names))
    keeps_columns = options.flag("write_partition_columns")
    in_files = [name for place, name in enumerate(names) if keeps_columns or place not in places]
    if not in_files:
        raise BindError("PARTITION_BY names all columns: nothing would be left for the files")
    per_thread = options.flag("per_thread_output")
    file_bytes = options.take("file_size_bytes")
    groups = options.number("row_groups_per_file", 0)
    rows_of_file = groups * (options.number("row_group_size", 0, kept=True) or ROW_GROUP_ROWS)
    writes_empty = options.flag("write_empty_file", True)
    for option, is_given in (
        ("USE_TMP_FILE", options.flag("use_tmp_file")),
        ("WRITE_EMPTY_FILE false", not writes_empty),
    ):
        if is_given and (places or per_thread):
            raise BindError(f"{option} does not go with {'PARTITION_BY' if places else 'PER_THREAD_OUTPUT'}")
    if places and per_thread:
        raise BindError("PER_THREAD_OUTPUT does not go with PARTITION_BY")
    ending = options.text("file_extension", ending_of(form, options))
    return _Target(
        path,
        file_writer(form, options, in_files),
        places,
        keeps_columns,
        bool(places) or per_thread or bool(groups) or file_bytes is not None,
        mode,
        _pattern(options, mode),
        ending,
        options.flag("hive_file_pattern", True),
        writes_empty,
        rows_of_file,
        parse_size(file_bytes or None, "FILE_SIZE_BYTES") or 0,
    )


def _pattern(options: Options, mode: str) -> str:
    """The names of files in a folder, in which {i} is a number and {uuid} one that no other file has."""
    is_given = "filename_pattern" in options
    pattern = options.text("filename_pattern", "{uuid}" if mode == "append" else "data_{i}")
    has_uuid = any(each in pattern for each in _UUIDS)
    if is_given and mode == "append" and not has_uuid:
        raise BindError("a FILENAME_PATTERN beside APPEND has {uuid} in it")
    return pattern if not pattern or has_uuid or "{i}" in pattern else pattern + "{i}"


def _write(target: _Target, tables: Iterator[Table]) -> Written:
    if not target.is_folder:
        return _write_one(target, tables)
    first = next(tables)  # before anything is removed that the rows may come from
    _prepare(target)
    return _write_folder(target, itertools.chain([first], tables))


def _write_one(target: _Target, tables: Iterator[Table]) -> Written:
    if not target.writes_empty:
        first = next((table for table in tables if table.num_rows), None)
        if first is None:
            return Written(0, (), ())
        tables = itertools.chain([first], tables)
    return Written(target.write_file(tables, target.path), (target.path,), (None,))


def _write_folder(target: _Target, tables: Iterator[Table]) -> Written:
    """The files of each partition are numbered; where a query runs in pieces, each piece writes one."""
    if not target.places and not target.rows_of_file and not target.bytes_of_file:
        path = os.path.join(target.path, _name(target, 0))
        return Written(target.write_file(tables, path), (path,), (None,))
    counts: dict[str, int] = {}
    files, partitions, num_rows = list[str](), list[Partition | None](), 0
    for table in tables:
        for folder, partition, rows in _partitions(target, table):
            with writing(folder):
                make_directory(folder)
            for part in _parts(target, rows):
                number = counts.get(folder, 0)
                counts[folder] = number + 1
                path = os.path.join(folder, _name(target, number))
                num_rows += target.write_file([part], path)
                files.append(path)
                partitions.append(partition)
    return Written(num_rows, tuple(files), tuple(partitions))


def _partitions(target: _Target, table: Table) -> Iterator[tuple[str, Partition | None, Table]]:
    if not target.places:
        yield target.path, None, table
        return
    for partition, rows in partitions_of(table, target.places, target.keeps_columns):
        is_apart = target.has_folders
        yield os.path.join(target.path, folder_of(partition)) if is_apart else target.path, partition, rows


def _parts(target: _Target, rows: Table) -> Iterator[Table]:
    """The rows of each file: as many as a sample of them says that it holds."""
    size = target.rows_of_file or max(rows.num_rows, 1)
    if target.bytes_of_file and rows.num_rows > _SAMPLE_ROWS:
        with tempfile.TemporaryDirectory(prefix="tqp-") as folder:
            path = os.path.join(folder, "sample")
            target.write_file([rows.cut(0, _SAMPLE_ROWS)], path)
            fitting = target.bytes_of_file * _SAMPLE_ROWS // os.path.getsize(path)
        size = min(size, max(fitting, _SAMPLE_ROWS))
    for start in range(0, max(rows.num_rows, 1), size):
        yield rows.cut(start, min(start + size, rows.num_rows))


def _name(target: _Target, number: int) -> str:
    name = target.pattern.replace("{i}", str(number))
    for each in _UUIDS:
        name = name.replace(each, str(uuid.uuid4()))
    return f"{name}.{target.ending}"


def _prepare(target: _Target) -> None:
    """Make the folder, and empty it for OVERWRITE. Raises ExecutionError where it is a file or not empty, and nothing says that
    this is all right."""
    path = target.path
    is_local = not is_remote(path)
    with writing(path):
        if is_local and os.path.isfile(path):
            if target.mode != "overwrite":
                raise ExecutionError(
                    f"cannot write {path}: it is a file, and no directory; OVERWRITE removes it"
                )
            os.remove(path)
        make_directory(path)
        if target.mode == "overwrite":
            if not is_local:
                raise UnsupportedError("OVERWRITE of the files of another file system is not supported")
            for entry in os.scandir(path):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.remove(entry.path)
        elif not target.mode and holds_files(path):
            raise ExecutionError(
                f"cannot write {path}: the directory is not empty; OVERWRITE_OR_IGNORE and APPEND write to it all the same,"
                " OVERWRITE removes what is there"
            )
