"""json_each() and json_tree(): the parts of documents as rows, which are a list of structs for each document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.json.paths import Path, part_at, parts_of, path_of_rows, place_of
from tqp.core.json.values import type_name, write_json, write_scalar
from tqp.core.text.parsers import parser_of_documents
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.text.distinct_values import column_of, of_several, rows_that_count, spread


class _Row(NamedTuple):
    """A part of a document. Numbers count all keys and values of the document, in their order, from 0."""

    key: str | None
    value: Any
    number: int
    parent: int | None
    fullkey: str
    path: str


#: What a column has, of the place of a row among those of its document and the row.
_COLUMNS: dict[str, Callable[[int, _Row], Any]] = {
    "key": lambda place, row: row.key,
    "value": lambda place, row: write_json(row.value),
    "type": lambda place, row: type_name(row.value),
    "atom": lambda place, row: write_scalar(row.value),
    "id": lambda place, row: row.number,
    "parent": lambda place, row: row.parent,
    "fullkey": lambda place, row: row.fullkey,
    "path": lambda place, row: row.path,
    "rowid": lambda place, row: place,
}


def _each(document: Any, path: Path, shown: str) -> list[_Row]:
    """What stands at the path: its parts, or itself where it has none of a kind that could have any."""
    found = _found(document, path)
    if found is None:
        return []
    value, number = found
    if not isinstance(value, list | tuple):
        return [_Row(None, value, number, None, shown, shown)]
    rows = []
    for key, part, fullkey in _parts(value, shown):
        number += 1 + isinstance(value, tuple)
        rows.append(_Row(key, part, number, None, fullkey, shown))
        number += _size(part) - 1
    return rows


def _tree(document: Any, path: Path, shown: str) -> list[_Row]:
    """What stands at the path, and all that it holds, each part before its own parts."""
    found = _found(document, path)
    rows: list[_Row] = []
    if found is not None:
        _add_with_parts(rows, _Row(None, *found, None, shown, shown))
    return rows


def _add_with_parts(rows: list[_Row], row: _Row) -> int:
    """Add the row and those of its parts; the last of their numbers."""
    rows.append(row)
    _, value, number, _, shown, _ = row
    if isinstance(value, list | tuple):
        for key, part, fullkey in _parts(value, shown):
            number += 1 + isinstance(value, tuple)
            number = _add_with_parts(rows, _Row(key, part, number, row.number, fullkey, shown))
    return number


def _parts(value: Any, shown: str) -> Iterator[tuple[str, Any, str]]:
    """The key of each part, the part, and the path to it, of an array or object to which a path leads."""
    if isinstance(value, tuple):
        return ((key, part, f"{shown}.{_shown(key)}") for key, part in value)
    return ((str(place), part, f"{shown}[{place}]") for place, part in enumerate(value))


_PLAIN_KEY = re.compile("[A-Za-z][A-Za-z0-9_]*")


@lru_cache(maxsize=1024)
def _shown(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key):
        return key
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _size(value: Any) -> int:
    """How many keys and values there are, itself among them."""
    if isinstance(value, tuple):
        return 1 + len(value) + sum([_size(part) for _, part in value])
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1


def _found(document: Any, path: Path) -> tuple[Any, int] | None:
    """What a path leads to, and its number."""
    number = 0
    for step in path.steps:
        place = place_of(document, step)
        if place is None:
            return None
        is_object = isinstance(document, tuple)
        before = parts_of(document)[:place]
        number += 1 + sum(map(_size, before)) + is_object * (place + 1)
        document = part_at(document, place)
    return document, number


def json_rows(is_deep: bool) -> Overload:
    """The rows of a document, and perhaps of a path into it, as a list of structs of some of the columns."""
    walk = _tree if is_deep else _each

    @lru_cache(maxsize=64)  # calls for several columns are one call, whose function is the same
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
        readers = (parser_of_documents(argument_types[0]), path_of_rows)
        columns = [_COLUMNS[name] for name in result_type.element.names]

        def values(document: Any, path: tuple[Path, str] = path_of_rows("$")) -> tuple[Any, ...]:
            rows = walk(document, *path)
            return tuple([tuple([read(place, row) for read in columns]) for place, row in enumerate(rows)])

        def call(*arguments: Strings, validity: Tensor | None = None) -> Any:
            num_rows, rows, given = rows_that_count(arguments, validity)
            codes, items = of_several(values, given, readers[: len(given)])
            return column_of(*spread(items, codes, rows, num_rows), result_type)[0]

        return Kernel(call, checks=True)

    return resolve
