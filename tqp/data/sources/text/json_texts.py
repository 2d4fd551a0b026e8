"""Texts in JSON files, at any depth, as the dates, times, timestamps and UUIDs that all texts of a key are, in the forms that DuckDB looks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tqp.core.keywords import lower_ascii
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.sources.text.csv_types import Convert, converted, formats_of

#: What leads to a text: the names of a column and of fields in it; an element of a list has the place of the list.
Place = tuple[str, ...]
#: What becomes of the texts in a place.
Change = Callable[[Place, pa.ChunkedArray], pa.ChunkedArray]

_DAY = r"\s*(?P<y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})"
_CLOCK = r"(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2}):(?P<S>[0-9]{2})"
#: Dates: those that begin with the year come first.
_DATES = (
    _DAY + r"\s*",
    r"\s*(?P<y>[0-9]{2})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})\s*",
    r"\s*(?P<d>[0-9]{1,2})-(?P<m>[0-9]{1,2})-(?P<y>[0-9]{4})\s*",
    r"\s*(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})-(?P<y>[0-9]{4})\s*",
)
_TIME = r"\s*(?P<H>[0-9]{1,2}):(?P<M>[0-9]{1,2})(?::(?P<S>[0-9]{1,2})(?:\.(?P<f>[0-9]{0,9}))?)?\s*"
_TIMESTAMP = rf"{_DAY}(?:T|\s+){_CLOCK}\s*"
_WITH_FRACTION = rf"{_DAY}\s+{_CLOCK}\.(?P<f>[0-9]{{1,6}})\s*"
_WITH_ZONE = rf"{_DAY}(?:T|\s+){_CLOCK}(?:\.(?P<f>[0-9]{{1,6}}))?(?P<z>Z|[-+][0-9]{{2}}(?::?[0-9]{{2}})?)\s*"
_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_FIRST_OF_CENTURY = 69
_MICROSECONDS_OF_DAY = 86_400_000_000


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
    dates = _OF_DATES if options.date_format is None else ()
    timestamps = _OF_TIMESTAMPS if options.timestamp_format is None else ()
    return (*formats_of(options), *dates, _times, *timestamps, _uuids)


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


def _parts(form: str, texts: pa.ChunkedArray) -> dict[str, pa.ChunkedArray] | None:
    """The named parts of texts that all have this form; None where one has not."""
    found = pc.extract_regex(texts, f"^{form}$")
    if found.null_count != texts.null_count:
        return None
    combined = found.combine_chunks()
    names = [field.name for field in combined.type]
    return {name: pa.chunked_array([values]) for name, values in zip(names, combined.flatten(), strict=True)}


def _day(parts: dict[str, pa.ChunkedArray]) -> pa.ChunkedArray:
    """The text of a date as Arrow reads it. Of a year of two digits, those from 69 on are in the twentieth century, as for strptime."""
    year = parts["y"]
    if pc.max(pc.utf8_length(year)).as_py() == 2:
        is_old = pc.greater_equal(year.cast(pa.int32()), _FIRST_OF_CENTURY)
        year = pc.binary_join_element_wise(pc.if_else(is_old, "19", "20"), year, "")
    return pc.binary_join_element_wise(year, _two_digits(parts["m"]), _two_digits(parts["d"]), "-")


def _two_digits(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_lpad(numbers, 2, "0")


def _dates(form: str, texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    parts = _parts(form, texts)
    return None if parts is None else _day(parts).cast(pa.date32())


def _plain_dates(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return texts.cast(pa.date32())


def _times(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    parts = _parts(_TIME, texts)
    if (
        parts is None
        or pc.any(pc.and_(pc.equal(parts["S"], ""), pc.less(pc.utf8_length(parts["M"]), 2))).as_py()
    ):
        return None
    hours, minutes, seconds = (
        pc.if_else(pc.equal(parts[key], ""), "0", parts[key]).cast(pa.int64()) for key in "HMS"
    )
    fraction = pc.utf8_rpad(pc.utf8_slice_codeunits(parts["f"], 0, 6), 6, "0").cast(pa.int64())
    clock = pc.add(pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60), seconds)
    values = pc.add(pc.multiply(clock, 1_000_000), fraction)
    fits = (
        pc.less_equal(values, _MICROSECONDS_OF_DAY),
        pc.less(minutes, 60),
        pc.less(seconds, 60),
    )
    if any(pc.all(each).as_py() is False for each in fits):
        return None
    return values.cast(pa.time64("us"), safe=False)


def _timestamps(form: str, zone: str | None, texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    parts = _parts(form, texts)
    if parts is None:
        return None
    clock = pc.binary_join_element_wise(_two_digits(parts["H"]), parts["M"], parts["S"], ":")
    if "f" in parts:
        point = pc.if_else(pc.equal(parts["f"], ""), "", ".")
        clock = pc.binary_join_element_wise(clock, point, parts["f"], "")
    moments = pc.binary_join_element_wise(_day(parts), clock, " ")
    if zone is not None:
        moments = pc.binary_join_element_wise(moments, parts["z"], "")
    return moments.cast(pa.timestamp("us", zone))


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


_OF_DATES: tuple[Convert, ...] = (_plain_dates, *(partial(_dates, form) for form in _DATES))
_OF_TIMESTAMPS: tuple[Convert, ...] = (
    partial(_timestamps, _TIMESTAMP, None),
    partial(_timestamps, _WITH_FRACTION, None),
    partial(_timestamps, _WITH_ZONE, "UTC"),
)
