"""Hive partitions: the rows of each combination of values, and the names of their directories."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from tqp.data.column import Table
from tqp.writing.texts import text_array

#: What stands for NULL in the name of a directory.
_NULL = "__HIVE_DEFAULT_PARTITION__"


#: The values by the names of their columns, as texts.
Partition = Mapping[str, str | None]


def partitions_of(
    table: Table, places: Sequence[int], keeps_columns: bool
) -> Iterator[tuple[Partition, Table]]:
    """Each combination of values of the columns at `places`, and its rows in order.

    They are without these columns, unless `keeps_columns`.
    """
    if not table.num_rows:
        return
    kept = [place for place in range(len(table.names)) if keeps_columns or place not in places]
    columns = [text_array(table.columns[place]) for place in places]
    encoded = [column.dictionary_encode(null_encoding="encode") for column in columns]
    codes = [each.indices.to_numpy(zero_copy_only=False) for each in encoded]
    order = np.lexsort(codes[::-1])
    begins = np.zeros(table.num_rows, np.bool_)
    begins[0] = True
    for each in codes:
        sorted_codes = each[order]
        begins[1:] |= sorted_codes[1:] != sorted_codes[:-1]
    starts = np.flatnonzero(begins)
    others = Table(
        tuple(table.names[at] for at in kept), tuple(table.columns[at] for at in kept), table.num_rows
    )
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), table.num_rows], strict=True):
        rows = order[start:stop]
        values = {
            table.names[place]: column[int(rows[0])].as_py()
            for place, column in zip(places, columns, strict=True)
        }
        yield values, others.take(torch.from_numpy(rows))


def folder_of(partition: Partition) -> str:
    """A directory such as `year=2024/month=1`."""
    return os.path.join(*(_part(name, value) for name, value in partition.items()))


def _part(name: str, value: str | None) -> str:
    """`name=value`, in which all but letters, digits, `-`, `_`, `.` and `~` is escaped."""
    return f"{_escaped(name)}={_NULL if value is None else _escaped(value)}"


def _escaped(text: str) -> str:
    return urllib.parse.quote(text, safe="")
