"""The names of a CSV file's columns, and whether they are its first row, much as DuckDB finds them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pyarrow as pa

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.keywords import KEYWORDS
from tqp.core.read_options import ReadOptions
from tqp.core.text.nested import parts_of_text
from tqp.core.text.numbers import ParseFailure
from tqp.core.text.parsers import parser_of
from tqp.data.sources.text.csv_types import conversions, text_column_type, typed_column

_OF_PARTS = (TypeKind.LIST, TypeKind.ARRAY, TypeKind.STRUCT, TypeKind.MAP)


def find_names(rows: Sequence[Sequence[str]], options: ReadOptions) -> tuple[list[str], bool]:
    """The names of the columns, and whether they are the first row, unless that is said."""
    first, *others = rows or [[""]]
    if options.header is not None:
        has_header = options.header
    elif options.types:
        has_header = _is_header_of_types(first, options)
    else:
        has_header = _is_header(first, others)
    cells = first if has_header else [""] * len(first)
    names = [cell.strip() or f"column{place}" for place, cell in enumerate(cells)]
    if options.normalize_names:
        names = _normalized(names)
    if len(options.names) > len(names):
        raise ValueError(f"{len(options.names)} names are given, and the file has {len(names)} columns")
    names[: len(options.names)] = options.names
    return names, has_header


def _is_header(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """A header does not read as the types of the rows below it, or all of it is text, and so is all else."""
    below = [
        text_column_type([row[place] for row in others if len(row) > place] or [""])
        for place in range(len(first))
    ]
    is_text = [
        pa.types.is_string(own)
        or (pa.types.is_boolean(own) and own != found)  # such as t, which is a name then
        for own, found in zip((text_column_type([cell]) for cell in first), below, strict=True)
    ]
    if all(map(pa.types.is_string, below)):
        return all(is_text)
    return any(
        bool(cell) and text and not pa.types.is_string(found)
        for cell, text, found in zip(first, is_text, below, strict=True)
    )


def _is_header_of_types(first: Sequence[str], options: ReadOptions) -> bool:
    """Of columns whose types are given a header is one that does not read as these; of texts alone it is the first row, unless
    that lacks a value where one row of the given names would have it."""
    cells = [None if cell in options.nulls else cell for cell in first]
    columns = list(zip(cells, options.names, options.types, strict=False))
    if all(data_type.kind is TypeKind.VARCHAR and not data_type.is_json for _, _, data_type in columns):
        other = next((cell for cell, name, _ in columns if cell is None or cell.strip() != name), "")
        return other is not None
    if all(cell is not None and cell.strip() == name for cell, name, _ in columns):
        return True
    return not all(cell is None or _reads(cell, data_type, options) for cell, _, data_type in columns)


def _reads(text: str, data_type: DataType, options: ReadOptions) -> bool:
    """Whether a text is a value of a type; of a list, a struct or a map, whether it is one of texts."""
    if data_type.kind is TypeKind.UNION:
        return any(_reads(text, each, options) for each in data_type.children[1:])
    if data_type.kind in _OF_PARTS:
        try:
            return parts_of_text(text, data_type, str(data_type), False) is not None
        except ExecutionError:
            return False
    if (data_type.kind is TypeKind.DATE and options.date_format) or (
        data_type.kind is TypeKind.TIMESTAMP and options.timestamp_format
    ):
        column = pa.chunked_array([[text]], pa.string())
        return not pa.types.is_string(typed_column(column, conversions("", options)).type)
    if data_type.is_numeric:
        text = text.replace(options.thousands or "", "").replace(options.decimal_separator, ".")
    parse = parser_of(data_type)
    try:
        if parse is not None:
            parse(text, data_type)
    except (ParseFailure, ExecutionError):
        return False
    return True


def _normalized(names: Sequence[str]) -> list[str]:
    """The names in lower case, of letters without accents, digits and underscores, none a keyword."""
    normal: list[str] = []
    for name in names:
        letters = unicodedata.normalize("NFD", name.strip().lower().replace(" ", "_"))
        plain = "".join(each for each in letters if each.isascii() and (each.isalnum() or each == "_"))
        if not plain or plain[0].isdigit() or plain.upper() in KEYWORDS:
            plain = f"_{plain}"
        made, number = plain, 0
        while made in normal:
            number += 1
            made = f"{plain}_{number}"
        normal.append(made)
    return normal
