"""Columns that stand in the names of directories: `year=2024/month=5/file.parquet`, as Hive and Spark write them."""

from __future__ import annotations

import datetime
import os
import re
import urllib.parse
from collections.abc import Sequence

import pyarrow as pa

from tqp.core.keywords import lower_ascii
from tqp.core.read_options import ReadOptions

#: The directory of the rows in which the column is NULL.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INT64_LIMIT = 2**63


def partition_columns(files: Sequence[str], options: ReadOptions) -> dict[str, pa.Array]:
    """For each `name=value` in the paths of all files, by name: its value for each file, [len(files)].

    BIGINT or DATE where all values read as that without a change and the options do not say that it is text, else VARCHAR; none
    where the files' names differ.
    """
    if not options.hive:
        return {}
    parts = [_parts(file) for file in files]
    if not parts or any(part.keys() != parts[0].keys() for part in parts):
        return {}
    texts = options.text_partitions

    def column(name: str) -> pa.Array:
        values = [part[name] for part in parts]
        return (
            pa.array(values, pa.string()) if texts is None or lower_ascii(name) in texts else _typed(values)
        )

    return {name: column(name) for name in sorted(parts[0])}


def _parts(file: str) -> dict[str, str | None]:
    pairs = (part.partition("=") for part in os.path.dirname(file).split(os.sep) if "=" in part)
    return {name: None if value == _NULL else urllib.parse.unquote(value) for name, _, value in pairs if name}


def _typed(values: list[str | None]) -> pa.Array:
    texts = [value for value in values if value is not None]
    if texts and all(_INTEGER.fullmatch(text) for text in texts):
        numbers = [None if value is None else int(value) for value in values]
        if all(number is None or -_INT64_LIMIT <= number < _INT64_LIMIT for number in numbers):
            return pa.array(numbers, pa.int64())
    if texts and all(_DATE.fullmatch(text) for text in texts):
        try:
            return pa.array(
                [None if value is None else datetime.date.fromisoformat(value) for value in values]
            )
        except ValueError:
            pass  # such as the 30th of February: text
    return pa.array(values, pa.string())
