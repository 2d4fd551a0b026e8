"""Text as DuckDB reads lists, structs and maps of it: [a, 'b c'], {a: 1, b: NULL} or (1, NULL), {a=1}.

The parts stay text, None for NULL. A part ends at the next comma or closing bracket outside of quotes and of brackets of
its own; white space around it does not count. Quotes are taken away, unless they stand in brackets of a part: these are
read when the part is. Inside quotes a backslash makes the next character plain, outside it does so for a quote alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError

#: The text of a part.
Part = str | None

_SPACE = " \t\n\v\f\r"
_QUOTES = ("'", '"')
_CLOSING = {"[": "]", "{": "}", "(": ")"}
_QUOTED = re.compile(r""""[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'""", re.DOTALL)
#: A quote behind a backslash opens nothing.
_SPECIAL = re.compile(r"""\\["']|["'\[\](){},=]""")
#: The character that a backslash makes plain may stand behind what ends its part.
_CARRIED = re.compile(r"\\,*[,=]\Z")
#: In the name of a field brackets are plain, and a backslash makes any character plain but a colon.
_SPECIAL_IN_NAMES = re.compile(r"""\\[^:]|["':]""", re.DOTALL)
_NOT_PLAIN = re.compile(r"""["'\\\[\](){}]""")


def parts_of_text(text: str, parts: DataType, target: str, is_try: bool) -> Any:
    """The storage value of a list, struct or map of VARCHAR that is cast to `target`.

    Raises ExecutionError for text that is none, or a map with a key twice; None if `is_try`.
    """
    value: Sequence[Any] | None
    if parts.kind is TypeKind.MAP:
        value = split_map(text)
        if value is not None and len({key for key, _ in value}) < len(value):
            if is_try:
                return None
            raise ExecutionError("Map keys must be unique; use TRY_CAST for NULL instead")
    else:
        value = split_struct(text, parts.names) if parts.kind is TypeKind.STRUCT else split_list(text)
    if value is None and not is_try:
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        raise ExecutionError(f"Could not convert string '{shown}' to {target}; use TRY_CAST for NULL instead")
    return None if value is None else tuple(value)


def split_list(text: str) -> list[Part] | None:
    """The elements of a list; None for text that is none."""
    inner = text.strip(_SPACE)
    if not inner.startswith("["):
        return None
    if inner.endswith("]") and not _NOT_PLAIN.search(inner, 1, len(inner) - 1):
        plain = inner[1:-1].strip(_SPACE)
        return [_part(each) for each in plain.split(",")] if plain else []
    return _split(inner, "]")


def split_map(text: str) -> list[tuple[str, Part]] | None:
    """The entries of a map; None for text that is none, or where a key is NULL."""
    inner = text.strip(_SPACE)
    if not inner.startswith("{"):
        return None
    if inner[1:].lstrip(_SPACE).startswith("}"):
        return [] if inner[1:].strip(_SPACE) == "}" else None
    entries: list[tuple[str, Part]] = []
    end = 0
    while True:
        start, end = end + 1, _end(inner, end + 1, "=")
        key = _part(inner[start:end]) if end > 0 else None
        if key is None:
            return None
        start, end = end + 1, _end(inner, end + 1, ",}")
        if end < 0:
            return None
        entries.append((key, _part(inner[start:end])))
        if inner[end] == "}":
            return entries if end == len(inner) - 1 else None


def split_struct(text: str, names: Sequence[str]) -> list[Part] | None:
    """The fields of a struct in the order of their names, NULL for those that are not there; None for text that is none.

    Values without names are those of the first fields.
    """
    inner = text.strip(_SPACE)
    if inner.startswith("("):
        parts = _split(inner, ")")
        if parts is None or len(parts) > len(names):
            return None
        return parts + [None] * (len(names) - len(parts))
    if not inner.startswith("{"):
        return None
    fields: list[Part] = [None] * len(names)
    if inner[1:].lstrip(_SPACE).startswith("}"):
        return fields if inner[1:].strip(_SPACE) == "}" else None
    end = 0
    while True:
        start, end = end + 1, _end_of_name(inner, end + 1)
        name = inner[start:end].strip(_SPACE) if end > 0 else ""
        if not name or _is_null(name) or (name := _unquoted(name, brackets=False)) not in names:
            return None
        start, end = end + 1, _end(inner, end + 1, ",}")
        if end < 0:
            return None
        fields[names.index(name)] = _part(inner[start:end])
        if inner[end] == "}":
            return fields if end == len(inner) - 1 else None


def _split(inner: str, closing: str) -> list[Part] | None:
    """The parts between a bracket and the one that closes it, which must be the last character.

    Nothing behind the last comma is a part of a list, and none of a struct.
    """
    parts: list[Part] = []
    end = 0
    while True:
        start, end = end + 1, _end(inner, end + 1, "," + closing)
        if end < 0:
            return None
        raw = inner[start:end].strip(_SPACE)
        is_last = inner[end] == closing
        if raw or not is_last or (parts and closing == "]"):
            parts.append(_part(raw))
        if is_last:
            return parts if end == len(inner) - 1 else None


def _part(raw: str) -> Part:
    raw = raw.strip(_SPACE)
    return None if _is_null(raw) else _unquoted(raw)


def _is_null(raw: str) -> bool:
    return len(raw) == 4 and raw.lower() == "null"


def _end(text: str, start: int, stops: str) -> int:
    """Where a part that begins at `start` is stopped; -1 where it is not."""
    position = start
    if text[start : start + 1] in _QUOTES and _CARRIED.search(text, 0, start):
        position += 1
    while (special := _SPECIAL.search(text, position)) is not None:
        position = special.end()
        character = special[0]
        if character in stops:
            return special.start()
        if character in _QUOTES:
            position = _end_of_quotes(text, special.start())
        elif character in _CLOSING:
            position = _end_of_brackets(text, special.start())
        if position < 0:
            return -1
    return -1


def _end_of_quotes(text: str, start: int) -> int:
    quoted = _QUOTED.match(text, start)
    return -1 if quoted is None else quoted.end()


def _end_of_brackets(text: str, start: int) -> int:
    """Behind the bracket that closes the one at `start`; a closing one of another kind is a plain character."""
    closing: list[str] = []
    position = start
    while (special := _SPECIAL.search(text, position)) is not None:
        position = special.end()
        character = special[0]
        if character in _QUOTES:
            position = _end_of_quotes(text, special.start())
            if position < 0:
                return -1
        elif character in _CLOSING:
            closing.append(_CLOSING[character])
        elif character == closing[-1]:
            closing.pop()
            if not closing:
                return position
    return -1


def _end_of_name(text: str, start: int) -> int:
    position = start
    while (special := _SPECIAL_IN_NAMES.search(text, position)) is not None:
        position = special.end()
        if special[0] == ":":
            return special.start()
        if special[0] in _QUOTES:
            position = _end_of_quotes(text, special.start())
            if position < 0:
                return -1
    return -1


def _unquoted(raw: str, brackets: bool = True) -> str:
    """Without the quotes and backslashes that are none of its own. `brackets`: what stands in them is left as it is."""
    if '"' not in raw and "'" not in raw:
        return raw
    made: list[str] = []
    closing: list[str] = []
    quote = ""
    position = 0
    while position < len(raw):
        character, following = raw[position], raw[position + 1 : position + 2]
        position += 1
        if character == "\\" and (quote or (not closing and following in _QUOTES)):
            made.append(character + following if closing else following)
            position += 1
            continue
        if character in _QUOTES and quote in ("", character):
            quote = "" if quote else character
            if not closing:
                continue
        elif not quote and closing and character == closing[-1]:
            closing.pop()
        elif not quote and brackets and character in _CLOSING:
            closing.append(_CLOSING[character])
        made.append(character)
    return "".join(made)
