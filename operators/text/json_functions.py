"""Parts of JSON by paths, and what documents hold. Each distinct text is parsed once, in Python; parts by constant paths are found without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.errors import ExecutionError
from tqp.core.json.paths import MISSING, Path, index_path, parse_path, parts_of
from tqp.core.json.structure import structure_of
from tqp.core.json.values import LongNumber, parse_json, type_name, write_json, write_scalar, write_string
from tqp.core.text.numbers import ParseFailure
from tqp.core.text.parsers import parser_of_documents
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.strings.json_documents import Documents
from tqp.operators.text import json_changes, json_parts
from tqp.operators.text.distinct_values import (
    column_of,
    distinct,
    of_several,
    read_by,
    rows_that_count,
    spread,
    spread_values,
)
from tqp.operators.text.json_casts import json_as
from tqp.operators.text.json_parts import Known, are_json, read_parts, steps_of
from tqp.operators.text.json_rows import json_rows
from tqp.operators.text.json_writing import quoted_strings

#: What a function makes of a value: a Python storage value, None for NULL.
Reading = Callable[[Any], Any]


# ---- what is read of a value -----------------------------------------------------------------------------------------


def _text(value: Any) -> str | None:
    """A text without its quotes, anything else as JSON; null is NULL."""
    return value if value is None or isinstance(value, str) else write_json(value)


def _keys(value: Any) -> tuple[str, ...]:
    return tuple(key for key, _ in value) if isinstance(value, tuple) else ()


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


# ---- whole documents -------------------------------------------------------------------------------------------------


def _contains(haystack: Any, needle: Any) -> bool:
    """Whether something like the needle stands anywhere in the haystack."""
    if _is_like(haystack, needle):
        return True
    return any(_contains(part, needle) for part in parts_of(haystack))


def _is_like(value: Any, needle: Any) -> bool:
    """Equal, but that arrays may have further elements, in any order, and objects further keys."""
    if isinstance(value, list) and isinstance(needle, list):
        return all(any(_is_like(part, each) for part in value) for each in needle)
    if isinstance(value, tuple) and isinstance(needle, tuple):
        fields = dict(reversed(value))
        if write_json(value) == write_json(needle):  # a key may stand in both several times
            return True
        return all(key in fields and _is_like(fields[key], each) for key, each in needle)
    return write_json(value) == write_json(needle)


def _pretty(value: Any, indent: str = "\n") -> str:
    """Each part on a line of its own, and inside of arrays long numbers at its beginning, as in DuckDB."""
    inner = indent + "    "
    if isinstance(value, list) and value:
        lines = (("\n" if isinstance(each, LongNumber) else inner) + _pretty(each, inner) for each in value)
        return "[" + ",".join(lines) + indent + "]"
    if isinstance(value, tuple) and value:
        pairs = (f"{inner}{write_string(key)}: {_pretty(each, inner)}" for key, each in value)
        return "{" + ",".join(pairs) + indent + "}"
    return write_json(value)


# ---- columns ---------------------------------------------------------------------------------------------------------


def _path(given: str | int) -> Path:
    """The path of a row."""
    path = index_path(given) if isinstance(given, int) else parse_path(given)
    if path.has_wildcards:
        raise ExecutionError(f"a JSON path that is no constant must not have wildcards, as '{given}' has")
    return path


def _steps(path: Any) -> tuple[bytes | int, ...] | None:
    """See `steps_of`; of a constant, which may be a list of paths."""
    if isinstance(path, tuple):
        return None
    return steps_of(index_path(path) if isinstance(path, int) else read_by(parse_path, path))


# ---- kernels ---------------------------------------------------------------------------------------------------------


def _by_path(
    reading: Reading, missing: Any = None, returns_validity: bool = True, known: Known | None = None
) -> Overload:
    """A function of a document, or of its parts by a path: a constant, several of them, or one for each row.

    `known`: what is known of parts without reading them (see `read_parts`).
    """

    def at(document: Any, path: Path) -> Any:
        value = path.value(document)
        return missing if value is MISSING else reading(value)

    def reader(path: Any) -> Reading:
        """Of a constant: NULL of none."""
        if isinstance(path, tuple):
            several = [parse_path(each) for each in path]
            return lambda document: tuple(at(document, each) for each in several)
        one = index_path(path) if isinstance(path, int) else parse_path(path)
        if one.has_wildcards:
            return lambda document: tuple(map(reading, one.values(document)))
        return lambda document: at(document, one)

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
        parse = parser_of_documents(argument_types[0])

        def part_reader(path: str | int) -> Callable[..., Any]:
            of_document = reader(path)
            return lambda text, is_whole: of_document(parse(text)) if is_whole else reading(parse_json(text))

        def call(documents: Documents, path: Any = "", *, validity: Tensor | None = None) -> Any:
            strings, varies = documents.strings, isinstance(path, Strings | Tensor)
            num_rows, rows, columns = rows_that_count([strings, path] if varies else [strings], validity)
            if varies:
                codes, items = of_several(at, columns, (parse, _path))
            elif (steps := _steps(path)) is not None and (steps or known is not None):
                read_some = partial(
                    read_parts,
                    steps=steps,
                    read=part_reader(path),
                    missing=missing,
                    known=known,
                    data_type=result_type,
                )
                if rows is None or documents.is_worth_all(rows):
                    values, valid = read_some(documents, rows)
                else:
                    values, valid = spread_values(*read_some(Documents(columns[0]), None), rows, num_rows)
                return (values, valid) if returns_validity else values
            else:
                codes, texts = distinct(columns[0])
                read = read_by(reader, path)
                items = [read(read_by(parse, text)) for text in texts]
            values, valid = column_of(*spread(items, codes, rows, num_rows), result_type)
            return (values, valid) if returns_validity else values

        paths = argument_types[1:]
        return Kernel(
            call,
            prepare=Documents,
            constant_arguments=frozenset(range(1, len(argument_types))),
            constants_may_vary=True,
            returns_validity=returns_validity,
            checks=not (argument_types[0].is_json and all(each.is_integer for each in paths)),
        )

    return resolve


def _json_valid(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    return Kernel(partial(are_json, is_json=_is_json), prepare=Documents)


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except ParseFailure:
        return False
    return True


def _of_documents(
    function: Callable[..., Any], path: Reading | None = None, returns_validity: bool = False
) -> Overload:
    """A function of documents; of one, a path if there is a reader of such, and further documents."""

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
        readers = [parser_of_documents(each) for each in argument_types]
        if path is not None:
            readers[1] = path

        def call(*arguments: Strings, validity: Tensor | None = None) -> Any:
            num_rows, rows, columns = rows_that_count(arguments, validity)
            codes, items = of_several(function, columns, readers)
            values, valid = column_of(*spread(items, codes, rows, num_rows), result_type)
            return (values, valid) if returns_validity else values

        return Kernel(
            call,
            returns_validity=returns_validity,
            checks=path is not None or not all(each.is_json for each in argument_types),
        )

    return resolve


def _path_of_change(text: str) -> Path:
    path = parse_path(text)
    if path.has_wildcards:
        raise ExecutionError(f"a JSON path to what is changed must not have wildcards, as '{text}' has")
    return path


def _change(adds: bool, replaces: bool) -> Overload:
    """A function that puts a value at a path of a document."""
    return _of_documents(
        lambda document, path, value: write_json(
            json_changes.with_value(document, path, value, adds=adds, replaces=replaces)
        ),
        _path_of_change,
    )


def _removed(document: Any, path: Path) -> str | None:
    left = json_changes.without(document, path)
    return None if left is MISSING else write_json(left)


def _written(function: Callable[..., Any]) -> Callable[..., str]:
    """What a function makes of documents, as JSON."""
    return lambda *documents: write_json(function(*documents))


JSON_KERNELS: dict[str, Overload] = {
    "json_extract": _by_path(write_json, known=json_parts.as_json),
    "json_extract_string": _by_path(_text, known=json_parts.as_text),
    "json_value": _by_path(write_scalar, known=json_parts.as_json),
    "json_exists": _by_path(
        lambda value: True, missing=False, returns_validity=False, known=json_parts.existence
    ),
    "json_type": _by_path(type_name, known=json_parts.type_names),
    "json_keys": _by_path(_keys, known=json_parts.keys_of_objects),
    "json_array_length": _by_path(_length, known=json_parts.lengths_of_arrays),
    "json_structure": _by_path(structure_of, returns_validity=False),
    "json": _by_path(write_json, returns_validity=False, known=json_parts.as_json),
    "json_pretty": _by_path(_pretty, returns_validity=False),
    "json_quote": lambda argument_types, result_type: Kernel(quoted_strings),
    "json_as": json_as,
    "json_valid": _json_valid,
    "json_contains": _of_documents(_contains),
    "json_merge_patch": _of_documents(_written(json_changes.patched)),
    "json_deep_merge": _of_documents(_written(json_changes.deeply_merged)),
    "json_merge_patch_diff": _of_documents(_written(json_changes.patch_between)),
    "json_set": _change(adds=True, replaces=True),
    "json_insert": _change(adds=True, replaces=False),
    "json_replace": _change(adds=False, replaces=True),
    "json_remove": _of_documents(_removed, _path_of_change, returns_validity=True),
    "json_strip_nulls": _by_path(_written(json_changes.without_nulls), returns_validity=False),
    "json_normalize": _by_path(_written(json_changes.normalized), returns_validity=False),
    "json_each": json_rows(is_deep=False),
    "json_tree": json_rows(is_deep=True),
}
