"""Texts in JSON files, at any depth, as the dates, times, timestamps and UUIDs that all texts of a key are, in the forms that DuckDB looks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tqp.core.keywords import lower_ascii
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.sources.text.csv_types import converted, formats_of
from tqp.data.sources.text.date_forms import (
    CLOCK,
    DAY,
    LONG_YEAR,
    MONTH,
    Convert,
    times,
    timestamps,
    written_dates,
    written_timestamps,
)

#: What leads to a text: the names of a column and of fields in it; an element of a list has the place of the list.
Place = tuple[str, ...]
#: What becomes of the texts in a place.
Change = Callable[[Place, pa.ChunkedArray], pa.ChunkedArray]

_DAY = rf"\s*{LONG_YEAR}-{MONTH}-{DAY}"
_TIMESTAMP, _WITH_T = rf"{_DAY}\s+{CLOCK}\s*", rf"{_DAY}T{CLOCK}\s*"
_WITH_FRACTION = rf"{_DAY}\s+{CLOCK}\.(?P<f>[0-9]{{1,6}})\s*"
_WITH_ZONE = rf"{_DAY}(?:T|\s+){CLOCK}(?:\.(?P<f>[0-9]{{1,6}}))?(?P<z>Z|[-+][0-9]{{2}}(?::?[0-9]{{2}})?)\s*"
_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def with_typed_texts(table: pa.Table, options: ReadOptions = NO_OPTIONS) -> pa.Table:
    """The table with each column and field of text in the type that all of its values have; see `conversions_of`."""

    def change(place: Place, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        if texts.null_count == len(texts):
            return texts
        return converted(texts, conversions_of(place[0], options))[1]

    return with_texts(table, change)


def conversions_of(name: str, options: ReadOptions = NO_OPTIONS) -> Sequence[Convert]:
    """What texts in a column of this name may be, in the order in which that is tried: first the formats that are said."""
    if options.text_columns is None or lower_ascii(name) in options.text_columns:
        return ()
    of_dates = _OF_DATES if options.date_format is None else ()
    of_timestamps = _OF_TIMESTAMPS if options.timestamp_format is None else ()
    return (*formats_of(options), *of_dates, times, *of_timestamps, _uuids)


def are_converted(texts: pa.ChunkedArray, convert: Convert) -> bool:
    """Whether all of these texts have the conversion."""
    return converted(texts, [convert])[0] == 0


def with_texts(table: pa.Table, change: Change) -> pa.Table:
    """The table with `change(place, texts)` for the texts in it."""
    for number, field in enumerate(table.schema):
        if _holds_text(field.type):
            column = _with_texts(table.column(number).combine_chunks(), (field.name,), change)
            table = table.set_column(number, field.name, column)
    return table


def _holds_text(arrow_type: pa.DataType) -> bool:
    if pa.types.is_list(arrow_type):
        return _holds_text(arrow_type.value_type)
    if pa.types.is_struct(arrow_type):
        return any(_holds_text(field.type) for field in arrow_type)
    return bool(pa.types.is_string(arrow_type))


def _with_texts(array: pa.Array, place: Place, change: Change) -> pa.Array:
    if pa.types.is_string(array.type):
        return change(place, pa.chunked_array([array])).combine_chunks()
    missing = array.is_null() if array.null_count else None
    if pa.types.is_list(array.type):
        values = _with_texts(array.values, (*place, ""), change)
        return pa.ListArray.from_arrays(array.offsets, values, mask=missing)
    if not pa.types.is_struct(array.type) or not _holds_text(array.type):
        return array
    names = [field.name for field in array.type]
    fields = [_with_texts(array.field(at), (*place, name), change) for at, name in enumerate(names)]
    return pa.StructArray.from_arrays(fields, names, mask=missing)


def _plain_dates(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return texts.cast(pa.date32())


def _uuids(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    if pc.all(pc.match_substring_regex(texts, _UUID)).as_py() is False:
        return None
    array = texts.combine_chunks()
    digits = pc.fill_null(pc.replace_substring(array, "-", ""), "0" * 32)
    content = np.frombuffer(bytes.fromhex("".join(digits.to_pylist())), np.uint8)
    storage = pa.Array.from_buffers(pa.binary(16), len(array), [None, pa.py_buffer(content)])
    if array.null_count:
        storage = pc.if_else(array.is_valid(), storage, pa.scalar(None, pa.binary(16)))
    return pa.chunked_array([pa.ExtensionArray.from_storage(pa.uuid(), storage)])


_OF_DATES: tuple[Convert, ...] = (
    _plain_dates,
    *written_dates("-"),
)
_OF_TIMESTAMPS: tuple[Convert, ...] = (
    timestamps(_TIMESTAMP),
    timestamps(_WITH_T),
    timestamps(_WITH_FRACTION),
    timestamps(_WITH_ZONE, "UTC"),
    *written_timestamps("-"),
)
