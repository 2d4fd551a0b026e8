"""JSON files as columns of JSON: the text of each value, as it stands there."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from tqp.data.sources.file_systems import content_of
from tqp.data.sources.text.csv_text import BYTE_ORDER_MARK

_BLANKS = " \t\r\n"


def read_json_values(file: str, form: str | None = None) -> pa.Table:
    """The values of a file, decompressed if its name says so, in a column "json" of JSON.

    `form`: "array", of the elements of an array; "newline_delimited", of lines; "unstructured", of values one after the other;
    None: elements of an array, if that is all there is, or values. Raises ValueError where there is no JSON.
    """
    found = texts_of_values(content_of(file).removeprefix(BYTE_ORDER_MARK).decode(), form)
    values = pa.ExtensionArray.from_storage(pa.json_(), pa.array(found, pa.string()))
    return pa.table([values], ["json"])


def texts_of_values(text: str, form: str | None, ignore_errors: bool = False) -> list[str]:
    """The texts of the values; `form` as above. `ignore_errors`: lines that are no value are "null"."""
    if ignore_errors and not text.startswith("["):
        lines = filter(None, (line.strip(_BLANKS) for line in text.split("\n")))
        return [line if _is_value(line) else "null" for line in lines]
    try:
        return list(_READERS[form or "array"](text))
    except ValueError:
        if form is not None:
            raise
        return list(_values(text))


def _is_value(text: str) -> bool:
    try:
        return _end(text, 0) == len(text)
    except ValueError:
        return False


def _lines(text: str) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), 1):
        value = line.strip(_BLANKS)
        if value:
            if _end(value, 0) != len(value):
                raise ValueError(f"line {number} holds more than one value")
            yield value


def _values(text: str) -> Iterator[str]:
    place = _behind_blanks(text, 0)
    while place < len(text):
        end = _end(text, place)
        yield text[place:end]
        place = _behind_blanks(text, end)


def _elements(text: str) -> Iterator[str]:
    place = _behind_blanks(text, 0)
    if place == len(text):
        return
    if text[place] != "[":
        raise ValueError("it is no array")
    place = _behind_blanks(text, place + 1)
    while text[place : place + 1] != "]":
        end = _end(text, place)
        yield text[place:end]
        place = _behind_blanks(text, end)
        if text[place : place + 1] == ",":
            place = _behind_blanks(text, place + 1)
        elif text[place : place + 1] != "]":
            raise ValueError(f'"," or "]" is missing at character {place}')
    if _behind_blanks(text, place + 1) != len(text):
        raise ValueError("there is more behind the array")


_READERS = {"array": _elements, "newline_delimited": _lines, "unstructured": _values}


def _behind_blanks(text: str, place: int) -> int:
    while text[place : place + 1] and text[place] in _BLANKS:
        place += 1
    return place


def _end(text: str, place: int) -> int:
    """Where the value ends that begins at a place. Raises ValueError where none does."""
    return _DECODER.raw_decode(text, place)[1]


_DECODER = json.JSONDecoder()
