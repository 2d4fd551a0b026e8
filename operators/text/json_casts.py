"""JSON as values of other types: what casts from it, json_transform() and json_transform_strict() make of documents."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from tqp.core.datatypes import JSON, VARCHAR, DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.json.values import LongNumber, parse_json, write_json
from tqp.core.process.garbage import collected_later
from tqp.core.text.numbers import ParseFailure
from tqp.core.text.parsers import parser_of, parser_of_documents
from tqp.data.nested import Values
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel
from tqp.operators.text.distinct_values import column_of_texts


class _Manner(NamedTuple):
    """How strict a function is."""

    raises: bool  # where a value does not fit, which is NULL otherwise
    is_exact: bool  # of objects that become structs: they have no other keys, none of them twice
    is_plain: bool  # a text is read as a cast from VARCHAR reads it


_MANNERS = {
    "cast": _Manner(raises=True, is_exact=True, is_plain=False),
    "try_cast": _Manner(raises=False, is_exact=False, is_plain=False),
    "json_transform": _Manner(raises=False, is_exact=False, is_plain=True),
    "json_transform_strict": _Manner(raises=True, is_exact=False, is_plain=False),
}
#: Texts that are integers: what follows 0x or 0b is left to the cast.
_INTEGER_TEXT = re.compile(r"\s*(?:(?:-[0-9]+|0|[1-9][0-9]*)\s*|0[xXbB][0-9a-fA-F_]+)")
#: Texts that a cast from VARCHAR takes for floats, and one from JSON does not.
_OTHER_FLOAT_TEXT = re.compile(r"\s$|^\s*\+|_|^\s*0[0-9]")
#: What is made of a value that is not null: a storage value, None for NULL.
Reader = Callable[[Any], Any]


def _reader(data_type: DataType, manner: _Manner) -> Reader:
    if data_type == JSON:
        return write_json
    if data_type == VARCHAR:
        return _plain_text
    if data_type.kind is TypeKind.BLOB:
        return lambda value: _plain_text(value).encode()
    if data_type.kind is TypeKind.NULL:
        return lambda value: None
    if data_type.is_tuple:
        return _row_reader(data_type, manner)
    return _COMPOUND.get(data_type.kind, _scalar_reader)(data_type, manner)


# ---- arrays and objects ----------------------------------------------------------------------------------------------


def _row_reader(data_type: DataType, manner: _Manner) -> Reader:
    """Of the type in a row of one."""
    inner = _reader(data_type.children[0], manner)
    return lambda value: (inner(value),)


def _list_reader(data_type: DataType, manner: _Manner) -> Reader:
    element = _reader(data_type.element, manner)

    def read(value: Any) -> Any:
        if not isinstance(value, list):
            return _refuse(manner, "a cast to {} takes an array of JSON, not {}", data_type, value)
        return tuple([None if each is None else element(each) for each in value])

    return read


def _struct_reader(data_type: DataType, manner: _Manner) -> Reader:
    parts = [
        (name, _reader(child, manner))
        for name, child in zip(data_type.names, data_type.children, strict=True)
    ]
    names = set(data_type.names)

    def read(value: Any) -> Any:
        if not isinstance(value, tuple):
            _refuse(manner, "a cast to a {} takes an object of JSON, not {}", data_type.kind.value, value)
            value = ()
        fields = dict(reversed(value))
        if manner.raises:
            _check_keys(value, names, manner)
        return tuple([None if fields.get(name) is None else part(fields[name]) for name, part in parts])

    return read


def _check_keys(value: Any, names: set[str], manner: _Manner) -> None:
    keys = [key for key, _ in value if manner.is_exact or key in names]
    distinct_keys = set(keys)
    for wrong, what in ((names - distinct_keys, "does not have"), (distinct_keys - names, "has besides")):
        if wrong:
            shown = write_json(value)[:80]
            raise ExecutionError(
                f'a cast to a STRUCT takes an object of its keys; {shown} {what} "{min(wrong)}"'
            )
    if len(distinct_keys) < len(keys):
        _refuse(manner, "a key stands twice in {1}, which is to be a {0}", "STRUCT", value)


def _map_reader(data_type: DataType, manner: _Manner) -> Reader:
    key_type, value_type = data_type.element.children
    key_of, part = _reader(key_type, manner), _reader(value_type, manner)  # keys are texts of JSON

    def read(value: Any) -> Any:
        if not isinstance(value, tuple):
            return _refuse(manner, "a cast to a {} takes an object of JSON, not {}", "MAP", value)
        entries = [(key_of(key), None if each is None else part(each)) for key, each in value]
        keys = {key for key, _ in entries}
        if len(keys) < len(entries):
            return _refuse(manner, "a key stands twice in {1}, which is to be a {0}", "MAP", value)
        return None if None in keys else tuple(entries)

    return read


def _union_reader(data_type: DataType, manner: _Manner) -> Reader:
    """Of an object of one key, the name of a member."""
    readers = {name: _reader(member, manner) for name, member in data_type.members.items()}
    places = {name: place for place, name in enumerate(readers)}

    def read(value: Any) -> Any:
        if not isinstance(value, tuple) or len(value) != 1 or value[0][0] not in readers:
            return _refuse(
                manner, "a cast to a {} takes an object of JSON whose key is a member, not {}", "UNION", value
            )
        ((name, member),) = value
        fields: list[Any] = [None] * (len(readers) + 1)
        fields[0] = places[name]
        made = None if member is None else readers[name](member)
        if made is None and member is not None:
            return None
        fields[places[name] + 1] = made
        return tuple(fields)

    return read


_COMPOUND: dict[TypeKind, Callable[[DataType, _Manner], Reader]] = {
    TypeKind.LIST: _list_reader,
    TypeKind.STRUCT: _struct_reader,
    TypeKind.MAP: _map_reader,
    TypeKind.UNION: _union_reader,
}


def _refuse(manner: _Manner, message: str, wanted: object, value: Any) -> None:
    """NULL, or an error."""
    if manner.raises:
        raise ExecutionError(message.format(wanted, write_json(value)[:80]))


# ---- values that hold no others --------------------------------------------------------------------------------------


def _plain_text(value: Any) -> str:
    """A text without its quotes, a number as a cast writes it, anything else as JSON."""
    if isinstance(value, float):
        return repr(value)
    return value if isinstance(value, str) else write_json(value)


def _text_reader(data_type: DataType, manner: _Manner) -> Reader:
    """Of texts, as a cast from VARCHAR reads them."""
    parser = parser_of(data_type)
    assert parser is not None, data_type

    def read(text: str) -> Any:
        try:
            return parser(text, data_type)
        except ParseFailure as failure:
            if manner.raises:
                raise ExecutionError(str(failure)) from None
            return None

    return read


def _scalar_reader(data_type: DataType, manner: _Manner) -> Reader:
    """By way of the text of a value, but for those that are of the type already."""
    of_text = _text_reader(data_type, manner)
    write = _writer(data_type)
    low, high = data_type.bounds if data_type.is_integer else (0, -1)
    is_double = data_type.kind is TypeKind.DOUBLE
    is_number = data_type.is_numeric or data_type.kind is TypeKind.BOOLEAN

    def read(value: Any) -> Any:
        if isinstance(value, LongNumber) and is_number:
            value = value.text  # as in DuckDB, which reads it as a text
        if type(value) is int and low <= value <= high or is_double and type(value) is float:
            return value
        return of_text(value if manner.is_plain and isinstance(value, str) else write(value))

    return read


def _writer(data_type: DataType) -> Callable[[Any], str]:
    """The text of which a cast from VARCHAR makes what DuckDB makes of JSON."""
    if data_type.is_whole:
        return _for_integer
    if data_type.is_decimal:
        return _for_decimal
    if data_type.is_float:
        return _for_real if data_type.kind is TypeKind.FLOAT else _for_float
    return _for_boolean if data_type.kind is TypeKind.BOOLEAN else _for_text


def _refused(value: Any) -> str:
    """A text that no cast from text takes, to name what is refused."""
    return write_json(value if isinstance(value, str | list | tuple) else write_json(value))


def _for_integer(value: Any) -> str:
    """A fraction is rounded to the nearest even number. A text has no needless zero before a number that is not negative."""
    if isinstance(value, float):
        return str(round(value))
    if isinstance(value, str):
        return value if _INTEGER_TEXT.fullmatch(value) else _refused(value)
    return _for_decimal(value)


def _for_decimal(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    return value if isinstance(value, str) else write_json(value)


def _for_float(value: Any) -> str:
    """A text has no white space at its end, and neither of plus signs, underscores and needless zeros."""
    is_other = isinstance(value, str) and _OTHER_FLOAT_TEXT.search(value)
    return _refused(value) if is_other else _for_decimal(value)


def _for_real(value: Any) -> str:
    """A DOUBLE that is too large for a FLOAT does not fit; a text that is becomes infinite."""
    is_too_large = isinstance(value, float) and math.isinf(ctypes.c_float(value).value)
    return _refused(value) if is_too_large else _for_float(value)


def _for_boolean(value: Any) -> str:
    """Numbers but zero are true."""
    if isinstance(value, int | float):
        return "true" if value else "false"
    if isinstance(value, str):
        return _refused(value) if value in ("0", "1") else value
    return write_json(value)


def _for_text(value: Any) -> str:
    return value if isinstance(value, str) else _refused(value)


# ---- columns ---------------------------------------------------------------------------------------------------------


def _has_decimals(data_type: DataType) -> bool:
    return data_type.is_decimal or any(map(_has_decimals, data_type.children))


def _parse_with_digits(text: str) -> Any:
    """A text of type JSON, which was checked."""
    try:
        return parse_json(text, keeps_digits=True)
    except ParseFailure:
        return None  # in a row that does not count


def json_as(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    """Values of a nested type, in the manner that the constant says; those of another type in a row of one. null is NULL.

    Where a DECIMAL is among them, all numbers keep their digits, as in DuckDB.
    """
    parse = _parse_with_digits if _has_decimals(result_type) else parser_of_documents(argument_types[0])

    @collected_later()
    def call(strings: Strings, manner: str, *, validity: Tensor | None = None) -> tuple[Values, Tensor]:
        read = _reader(result_type, _MANNERS[manner])

        def read_text(text: str) -> Any:
            value = parse(text)
            return None if value is None else read(value)

        return column_of_texts(strings, validity, read_text, result_type)

    return Kernel(call, constant_arguments=frozenset((1,)), returns_validity=True, checks=True)
