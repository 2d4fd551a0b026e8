"""Parts of JSON by paths, and what documents hold. Each distinct text is parsed once, in Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import VARCHAR, DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.json_paths import MISSING, Path, index_path, parse_path
from tqp.core.json_values import LongNumber, parse_json, type_name, write_json, write_string
from tqp.core.text_numbers import ParseFailure
from tqp.data.nested import Values
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.text.distinct_values import (
    column_of,
    column_of_texts,
    distinct,
    of_pairs,
    read_by,
    rows_that_count,
    spread,
)
from tqp.operators.text.json_writing import quoted_strings

#: What a function makes of a value: a Python storage value, None for NULL.
Reading = Callable[[Any], Any]


# ---- what is read of a value -----------------------------------------------------------------------------------------


def _text(value: Any) -> str | None:
    """A text without its quotes, anything else as JSON; null is NULL."""
    return value if value is None or isinstance(value, str) else write_json(value)


def _scalar(value: Any) -> str | None:
    """What is neither null nor holds other values, as JSON."""
    return None if value is None or isinstance(value, list | tuple) else write_json(value)


def _keys(value: Any) -> tuple[str, ...]:
    return tuple(key for key, _ in value) if isinstance(value, tuple) else ()


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


# ---- whole documents -------------------------------------------------------------------------------------------------


def _contains(haystack: Any, needle: Any) -> bool:
    """Whether something like the needle stands anywhere in the haystack."""
    if _is_like(haystack, needle):
        return True
    return any(_contains(part, needle) for part in _parts(haystack))


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, tuple):
        return [part for _, part in value]
    return value if isinstance(value, list) else ()


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


def _patched(document: Any, patch: Any) -> str:
    """The document as the patch changes it; what is no object gives way to the patch as it is."""
    are_objects = isinstance(document, tuple) and isinstance(patch, tuple)
    return write_json(_merged_patch(document, patch) if are_objects else patch)


def _merged_patch(document: Any, patch: Any) -> Any:
    """Fields that the patch has not, then those that it has: null takes one away, an object changes one that is an object."""
    if not isinstance(patch, tuple):
        return patch
    fields = document if isinstance(document, tuple) else ()
    known, changed = dict(reversed(fields)), dict(patch)
    kept = [(key, value) for key, value in fields if key not in changed]
    made = [(key, _merged_patch(known.get(key), value)) for key, value in patch if value is not None]
    return (*kept, *made)


def _structure(value: Any) -> Any:
    """The types of the parts of a document, as JSON: those of all elements of an array as one."""
    if isinstance(value, list):
        return [_merged([_structure(part) for part in value])]
    if isinstance(value, tuple):
        return tuple(
            {
                key: _merged([_structure(each) for other, each in value if other == key]) for key, _ in value
            }.items()
        )
    return type_name(value)


def _merged(structures: Sequence[Any]) -> Any:
    merged: Any = "NULL"
    for each in structures:
        merged = _common(merged, each)
    return merged


_WHOLE = {"UBIGINT", "BIGINT", "HUGEINT"}


def _common(left: Any, right: Any) -> Any:
    if left == right or right == "NULL":
        return left
    if left == "NULL":
        return right
    if isinstance(left, list) and isinstance(right, list):
        return [_common(left[0], right[0])]
    if isinstance(left, tuple) and isinstance(right, tuple):
        fields = dict(left)
        for key, each in right:
            fields[key] = _common(fields.get(key, "NULL"), each)
        return tuple(fields.items())
    if isinstance(left, str) and isinstance(right, str) and {left, right} <= _WHOLE | {"DOUBLE"}:
        return "DOUBLE" if "DOUBLE" in (left, right) else "HUGEINT"
    return "JSON"


def _json_structure(value: Any) -> str:
    return write_json(_named(_structure(value)))


def _named(structure: Any) -> Any:
    """Objects without keys may be anything."""
    if isinstance(structure, list):
        return [_named(structure[0])]
    if isinstance(structure, tuple):
        return tuple((key, _named(each)) for key, each in structure) or "JSON"
    return structure


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


def _document(text: str) -> Any:
    """A text of type JSON, which was checked: one that is malformed is in rows that do not count."""
    try:
        return parse_json(text)
    except ParseFailure:
        return None


def _parser(data_type: DataType) -> Reading:
    return _document if data_type.is_json else parse_json


def _path(given: str | int) -> Path:
    """The path of a row."""
    path = index_path(given) if isinstance(given, int) else parse_path(given)
    if path.has_wildcards:
        raise ExecutionError(f"a JSON path that is no constant must not have wildcards, as '{given}' has")
    return path


# ---- JSON as values of other types -----------------------------------------------------------------------------------


def _refused(value: Any) -> str:
    """A text that no cast from text takes, to name what is refused."""
    return write_json(value if isinstance(value, str | list | tuple) else write_json(value))


def _for_integer(value: Any) -> str:
    """A fraction is rounded to the nearest even number."""
    if isinstance(value, float):
        return str(round(value))
    if isinstance(value, str):
        return value if re.fullmatch(r"\s*-?[0-9]+\s*", value) else _refused(value)
    return _for_decimal(value)


def _for_decimal(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    return value if isinstance(value, str) else write_json(value)


def _for_float(value: Any) -> str:
    """A text has no white space at its ends, and no plus sign."""
    is_other = isinstance(value, str) and (value.strip() != value or value.startswith("+"))
    return _refused(value) if is_other else _for_decimal(value)


def _for_boolean(value: Any) -> str:
    """Numbers but zero are true."""
    if isinstance(value, int | float):
        return "true" if value else "false"
    if isinstance(value, str):
        return _refused(value) if value in ("0", "1") else value
    return write_json(value)


def _for_text(value: Any) -> str:
    return value if isinstance(value, str) else _refused(value)


_SCALARS: dict[str, Callable[[Any], str]] = {
    "integer": _for_integer,
    "decimal": _for_decimal,
    "float": _for_float,
    "boolean": _for_boolean,
    "text": _for_text,
}


def _json_scalar(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    """The text of which a cast makes what DuckDB makes of JSON, for a kind of type; null is NULL."""

    def call(strings: Strings, kind: str) -> tuple[Values, Tensor]:
        write = _SCALARS[kind]

        def read(text: str) -> str | None:
            value = _document(text)
            return None if value is None else write(value)

        return column_of_texts(strings, None, read, result_type)

    return Kernel(call, constant_arguments=frozenset((1,)), returns_validity=True)


def _json_elements(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    """The elements of arrays, as JSON or, where lists of VARCHAR are asked for, as texts; null is NULL.

    What is no array raises, or is NULL where the constant says that the cast is tried.
    """

    def call(strings: Strings, is_try: bool, *, validity: Tensor | None = None) -> tuple[Values, Tensor]:
        def read(text: str) -> tuple[str | None, ...] | None:
            value = _document(text)
            if isinstance(value, list):
                return tuple(_part(each, result_type.element) for each in value)
            if value is None or is_try:
                return None
            raise ExecutionError(
                f"a cast to {result_type} takes an array of JSON, not {write_json(value)[:80]}"
            )

        return column_of_texts(strings, validity, read, result_type)

    return Kernel(call, constant_arguments=frozenset((1,)), returns_validity=True, checks=True)


def _json_fields(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    """The fields of objects as a struct, or their entries as a map: as JSON, or as texts where VARCHAR is asked for.

    What is no object, or has other keys than the struct, raises. Where the constant says that the cast is tried, keys that are
    missing are NULL, the first of equal keys counts, and what is no object is a struct of NULLs, or no map.
    """
    read = _map_of if result_type.kind is TypeKind.MAP else _struct_of

    def call(strings: Strings, is_try: bool, *, validity: Tensor | None = None) -> tuple[Values, Tensor]:
        return column_of_texts(
            strings, validity, lambda text: read(_document(text), result_type, is_try), result_type
        )

    return Kernel(call, constant_arguments=frozenset((1,)), returns_validity=True, checks=True)


def _struct_of(value: Any, data_type: DataType, is_try: bool) -> tuple[str | None, ...] | None:
    if value is None:
        return None
    if not isinstance(value, tuple) and not is_try:
        raise _no_object(value, data_type)
    pairs = value if isinstance(value, tuple) else ()
    fields = dict(reversed(pairs))
    if not is_try:
        for wrong, what in (
            (set(data_type.names) - fields.keys(), "does not have"),
            (fields.keys() - set(data_type.names), "has besides"),
        ):
            if wrong:
                raise ExecutionError(
                    f'a cast to a STRUCT takes an object of its keys; {write_json(value)[:80]} {what} "{min(wrong)}"'
                )
        if len(fields) < len(pairs):
            raise ExecutionError(
                f"a key stands twice in {write_json(value)[:80]}, which is to be a {data_type.kind.value}"
            )
    return tuple(
        _part(fields.get(name), part) for name, part in zip(data_type.names, data_type.children, strict=True)
    )


def _map_of(value: Any, data_type: DataType, is_try: bool) -> tuple[tuple[str, str | None], ...] | None:
    if value is None or (is_try and not isinstance(value, tuple)):
        return None
    if not isinstance(value, tuple):
        raise _no_object(value, data_type)
    if len(dict(value)) < len(value):
        if is_try:
            return None
        raise ExecutionError(
            f"a key stands twice in {write_json(value)[:80]}, which is to be a {data_type.kind.value}"
        )
    return tuple((key, _part(each, data_type.element.children[1])) for key, each in value)


def _part(value: Any, data_type: DataType) -> str | None:
    return _text(value) if value is None or data_type == VARCHAR else write_json(value)


def _no_object(value: Any, data_type: DataType) -> ExecutionError:
    return ExecutionError(
        f"a cast to a {data_type.kind.value} takes an object of JSON, not {write_json(value)[:80]}"
    )


# ---- kernels ---------------------------------------------------------------------------------------------------------


def _by_path(reading: Reading, missing: Any = None, returns_validity: bool = True) -> Overload:
    """A function of a document, or of its parts by a path: a constant, several of them, or one for each row."""

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
        parse = _parser(argument_types[0])

        def call(strings: Strings, path: Any = "", *, validity: Tensor | None = None) -> Any:
            varies = isinstance(path, Strings | Tensor)
            num_rows, rows, columns = rows_that_count([strings, path] if varies else [strings], validity)
            if varies:
                codes, items = of_pairs(at, columns, (parse, _path))
            else:
                codes, texts = distinct(columns[0])
                read = read_by(reader, path)
                items = [read(read_by(parse, text)) for text in texts]
            values, valid = column_of(*spread(items, codes, rows, num_rows), result_type)
            return (values, valid) if returns_validity else values

        paths = argument_types[1:]
        return Kernel(
            call,
            constant_arguments=frozenset(range(1, len(argument_types))),
            constants_may_vary=True,
            returns_validity=returns_validity,
            checks=not (argument_types[0].is_json and all(each.is_integer for each in paths)),
        )

    return resolve


def _json_valid(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    def call(strings: Strings) -> Tensor:
        codes, texts = distinct(strings)
        valid = torch.tensor([_is_json(text) for text in texts], dtype=torch.bool, device=codes.device)
        return torch.index_select(valid, 0, codes)

    return Kernel(call)


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except ParseFailure:
        return False
    return True


def _of_two(function: Callable[[Any, Any], Any]) -> Overload:
    """A function of two documents."""

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
        parsers = [_parser(each) for each in argument_types]

        def call(*documents: Strings, validity: Tensor | None = None) -> Values:
            num_rows, rows, columns = rows_that_count(documents, validity)
            codes, items = of_pairs(function, columns, parsers)
            return column_of(*spread(items, codes, rows, num_rows), result_type)[0]

        return Kernel(call, checks=parse_json in parsers)

    return resolve


JSON_KERNELS: dict[str, Overload] = {
    "json_extract": _by_path(write_json),
    "json_extract_string": _by_path(_text),
    "json_value": _by_path(_scalar),
    "json_exists": _by_path(lambda value: True, missing=False, returns_validity=False),
    "json_type": _by_path(type_name),
    "json_keys": _by_path(_keys),
    "json_array_length": _by_path(_length),
    "json_structure": _by_path(_json_structure, returns_validity=False),
    "json": _by_path(write_json, returns_validity=False),
    "json_pretty": _by_path(_pretty, returns_validity=False),
    "json_quote": lambda argument_types, result_type: Kernel(quoted_strings),
    "json_scalar": _json_scalar,
    "json_elements": _json_elements,
    "json_fields": _json_fields,
    "json_valid": _json_valid,
    "json_contains": _of_two(_contains),
    "json_merge_patch": _of_two(_patched),
}
