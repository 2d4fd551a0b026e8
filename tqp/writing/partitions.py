"""Hive partitions: a directory for each combination of values, with the file of its rows."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from tqp.core.errors import BindError, ExecutionError
from tqp.core.keywords import lower_ascii
from tqp.data.column import Table
from tqp.data.sources.file_systems import holds_files, make_directory
from tqp.writing.replaced_files import writing
from tqp.writing.texts import text_array

#: What stands for NULL in the name of a directory.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_SAFE = " !\"#$&'()*+,-.:;<>@[]^_`{|}~"


def write_partitions(
    table: Table,
    directory: str,
    partition_by: Sequence[str],
    ending: str,
    write: Callable[[Iterable[Table], str], int],
    overwrite: bool = False,
    keeps_columns: bool = False,
) -> None:
    """Writes the rows of a table, which lie together where they have the same values of `partition_by`.

    `write` writes tables to a path; `keeps_columns`: the files have these columns, too. Raises BindError for columns that
    are not there, ExecutionError for a directory that is not empty unless it is to `overwrite` files of the same names.
    """
    lowered = [lower_ascii(name) for name in table.names]
    missing = next((name for name in partition_by if lower_ascii(name) not in lowered), None)
    if missing is not None:
        raise BindError(f'PARTITION_BY: there is no column "{missing}"')
    keys = [lowered.index(lower_ascii(name)) for name in partition_by]
    kept = [place for place in range(len(lowered)) if keeps_columns or place not in keys]
    if not kept:
        raise BindError("PARTITION_BY names all columns: nothing would be left for the files")
    with writing(directory):
        make_directory(directory)
        if not overwrite and holds_files(directory):
            raise ExecutionError(
                f"cannot write {directory}: the directory is not empty; OVERWRITE_OR_IGNORE writes to it all the same"
            )
    texts = [text_array(table.columns[place]) for place in keys]
    for start, stop in _runs(texts, table.num_rows):
        parts = [
            _part(table.names[place], text[start].as_py()) for place, text in zip(keys, texts, strict=True)
        ]
        folder = os.path.join(directory, *parts)
        with writing(folder):
            make_directory(folder)
        rows = Table(
            tuple(table.names[place] for place in kept),
            tuple(table.columns[place].cut(start, stop) for place in kept),
            stop - start,
        )
        write([rows], os.path.join(folder, f"data_0.{ending}"))


def _runs(texts: Sequence[pa.LargeStringArray], num_rows: int) -> list[tuple[int, int]]:
    """Where rows with the same texts begin and end."""
    if not num_rows:
        return []
    begins = np.zeros(num_rows, np.bool_)
    begins[0] = True
    for column in texts:
        codes = column.dictionary_encode(null_encoding="encode").indices.to_numpy()
        begins[1:] |= codes[1:] != codes[:-1]
    starts = np.flatnonzero(begins).tolist()
    return list(zip(starts, [*starts[1:], num_rows], strict=True))


def _part(name: str, value: str | None) -> str:
    """`name=value`, as other readers expect it."""
    text = _NULL if value is None else urllib.parse.quote(value, safe=_SAFE)
    return f"{urllib.parse.quote(name, safe=_SAFE)}={text}"
