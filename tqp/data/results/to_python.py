"""Columns as lists of Python objects, the ones that DuckDB's fetchall gives."""

from __future__ import annotations

import datetime
import decimal
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from tqp.core import time_limits
from tqp.core.datatypes import TICKS_PER_SECOND, DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.unsigned_128 import unsigned_of_stored
from tqp.core.uuids import uuid_of_stored
from tqp.core.zoned_times import clock_of_stored, offset_of_stored
from tqp.data.column import Column, elements_in_order, entries_in_order, fields_of
from tqp.data.nested import Structs
from tqp.data.results.value_text import (
    date_text,
    interval_text,
    time_text,
    time_with_zone_text,
    timestamp_text,
)
from tqp.data.string_buffers import string_array

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_ORDINAL = _EPOCH.toordinal()
_Item = TypeVar("_Item")
#: Default contexts round at 28 digits.
_EXACT = decimal.Context(prec=50)


def python_values(column: Column) -> list[Any]:
    """One object per row; NULL is None. Exact: Decimal for DECIMAL, int of any size for integers.

    DATE is date, TIME time (aware with time zone), timestamps datetime (to the microsecond; aware, in UTC, with time zone), INTERVAL timedelta
    with 30 days a month, BLOB bytes, BIT text of 0 and 1, UUID uuid.UUID, ARRAY a tuple, LIST a list, STRUCT a dict by name (a tuple if its fields have none), MAP a dict,
    of two lists `key` and `value` where its keys are nested, UNION the
    member that there is. Infinite dates and timestamps are the first and last ones that
    Python has, others beyond Python's range their text. Raises ExecutionError for an interval that timedelta cannot hold.
    """
    data_type = column.data_type
    if data_type.kind is TypeKind.NULL:
        return [None] * column.num_rows
    if data_type.is_string:
        strings: list[Any] = string_array(column).to_pylist()
        return strings
    if column.nested is not None:
        return where_valid(column, _nested_values(column))
    values = column.values
    assert values is not None
    if data_type.is_enum:
        positions = values if column.validity is None else values.where(column.validity, -1)
        texts = (*data_type.categories, None)
        return [texts[position] for position in positions.tolist()]
    if column.validity is not None and values.dim() == 1:  # what stands under NULL may be no date
        values = values.masked_fill(~column.validity, 0)
    kind = data_type.kind
    if (calendar := _of_calendar(values, kind)) is not None:
        return where_valid(column, calendar)
    items = storage_values(values)
    if kind is TypeKind.DECIMAL:
        scaled, scale = _EXACT.scaleb, -data_type.scale
        items = [scaled(item, scale) for item in items]
    elif kind is TypeKind.DATE:
        items = [_date(item) for item in items]
    elif kind is TypeKind.TIME:
        items = [_time(item) for item in items]
    elif kind is TypeKind.TIME_TZ:
        items = [_time_with_zone(item) for item in items]
    elif kind in TICKS_PER_SECOND:
        items = [_timestamp(item, kind) for item in items]
    elif kind is TypeKind.INTERVAL:
        items = [_interval(*item) for item in items]
    elif kind is TypeKind.UHUGEINT:
        items = [unsigned_of_stored(item) for item in items]
    elif kind is TypeKind.UUID:
        items = [uuid_of_stored(item) for item in items]
    elif kind is TypeKind.ARRAY:
        items = [tuple(item) for item in items]
    return where_valid(column, items)


def _nested_values(column: Column) -> list[Any]:
    data_type = column.data_type
    if data_type.is_union:
        return member_values(column, lambda _, member: python_values(member))
    if isinstance(column.nested, Structs):
        fields = list(map(python_values, fields_of(column)))
        rows = zip(*fields, strict=True)
        return (
            list(rows)
            if data_type.is_tuple
            else [dict(zip(data_type.names, row, strict=True)) for row in rows]
        )
    if data_type.kind is TypeKind.MAP:
        *parts, lengths = entries_in_order(column)
        lists = map(python_values, parts)
        rows = zip(*(split(each, lengths.tolist()) for each in lists), strict=True)
        if not _is_key(parts[0].data_type):
            return [{"key": keys, "value": values} for keys, values in rows]
        return [dict(zip(keys, values, strict=True)) for keys, values in rows]
    elements, lengths = elements_in_order(column)
    made: list[Any] = split(python_values(elements), lengths.tolist())
    return list(map(tuple, made)) if data_type.kind is TypeKind.ARRAY else made


def _is_key(data_type: DataType) -> bool:
    """Whether Python's values of a type may be the keys of a dict."""
    return all(map(_is_key, data_type.children[1:])) if data_type.is_union else not data_type.is_nested


def member_values(column: Column, values_of: Callable[[str, Column], list[_Item]]) -> list[_Item]:
    """Of each row of a UNION column, what `values_of`, of a name and its column, gives for the member that there is."""
    tag, *members = fields_of(column)
    assert tag.values is not None
    items = list(map(values_of, column.data_type.members, members))
    tags = tag.values if column.validity is None else tag.values * column.validity
    return [items[place][row] for row, place in enumerate(tags.tolist())]


def split(items: list[Any], lengths: list[int]) -> list[list[Any]]:
    """The first so many items, then so many of the next, and so on."""
    ends = [*itertools.accumulate(lengths)]
    return [items[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def where_valid(column: Column, items: list[Any]) -> list[Any]:
    """The items, None in rows of the column that are NULL."""
    if column.validity is None:
        return items
    return [item if valid else None for item, valid in zip(items, column.validity.tolist(), strict=True)]


def stored_values(column: Column) -> list[Any]:
    """One constant per row, as `Literal` holds it; NULL is None. Nested values are tuples."""
    if column.data_type.is_string:
        return python_values(column)
    if column.data_type.kind is TypeKind.NULL:
        return [None] * column.num_rows
    if isinstance(column.nested, Structs):
        items: list[Any] = list(zip(*map(stored_values, fields_of(column)), strict=True))
    elif column.nested is not None:
        elements, lengths = elements_in_order(column)
        items = list(map(tuple, split(stored_values(elements), lengths.tolist())))
    else:
        assert column.values is not None
        items = [tuple(item) if isinstance(item, list) else item for item in storage_values(column.values)]
    return where_valid(column, items)


def storage_values(values: Tensor) -> list[Any]:
    """Stored numbers as Python objects, a wide pair (high, low) as one integer."""
    items: list[Any] = values.tolist()
    if values.dim() == 2 and values.shape[1] == 2 and not values.is_floating_point():
        return [(high << 64) + (low & (2**64 - 1)) for high, low in items]
    return items


def _of_calendar(values: Tensor, kind: TypeKind) -> list[Any] | None:
    """Dates and timestamps as NumPy makes them, many at a time; None of other types, and where some are not in Python's years."""
    if kind is not TypeKind.DATE and kind not in TICKS_PER_SECOND:
        return None
    values = values.to(torch.int64)
    if kind is TypeKind.DATE:
        unit, days = "datetime64[D]", values
    else:
        days = torch.div(values, TICKS_PER_SECOND[kind] * time_limits.SECONDS_PER_DAY, rounding_mode="floor")
        unit = _UNITS[TICKS_PER_SECOND[kind]]
    ends = values.abs() == time_limits.INFINITE_TICK  # of nanoseconds a year that Python has
    if not values.shape[0] or bool(((days <= _FIRST_DAY) | (days >= _LAST_DAY) | ends).any()):
        return None
    if kind is TypeKind.TIMESTAMP_NS:  # they are cut towards zero, as DuckDB does
        values = torch.div(values, 1000, rounding_mode="trunc")
    items: list[Any] = values.cpu().numpy().astype(unit).tolist()
    return [item.replace(tzinfo=datetime.UTC) for item in items] if kind is TypeKind.TIMESTAMP_TZ else items


#: By ticks in a second.
_UNITS = {1: "datetime64[s]", 10**3: "datetime64[ms]", 10**6: "datetime64[us]", 10**9: "datetime64[us]"}
_FIRST_DAY, _LAST_DAY = (day.toordinal() - _EPOCH_ORDINAL for day in (datetime.date.min, datetime.date.max))


def _date(days: int) -> datetime.date | str:
    if abs(days) == time_limits.INFINITE_DAY:
        return datetime.date.max if days > 0 else datetime.date.min
    try:
        return datetime.date.fromordinal(days + _EPOCH_ORDINAL)
    except (ValueError, OverflowError):
        return date_text(days)


def _time(microseconds: int) -> datetime.time | str:
    if not 0 <= microseconds < time_limits.MICROSECONDS_PER_DAY:
        return time_text(microseconds)  # 24:00:00, which Python does not have
    return (_EPOCH + datetime.timedelta(microseconds=microseconds)).time()


def _time_with_zone(stored: int) -> datetime.time | str:
    time, offset = _time(clock_of_stored(stored)), datetime.timedelta(seconds=offset_of_stored(stored))
    if isinstance(time, str):
        return time_with_zone_text(stored)
    return time.replace(tzinfo=datetime.timezone(offset))


def _timestamp(ticks: int, kind: TypeKind) -> datetime.datetime | str:
    per_second = TICKS_PER_SECOND[kind]
    epoch = _EPOCH_UTC if kind is TypeKind.TIMESTAMP_TZ else _EPOCH
    if abs(ticks) == time_limits.INFINITE_TICK:
        end = datetime.datetime.max if ticks > 0 else datetime.datetime.min
        return end.replace(tzinfo=epoch.tzinfo)
    microseconds = abs(ticks) * 1_000_000 // per_second  # nanoseconds are cut towards zero, as DuckDB does
    try:
        return epoch + datetime.timedelta(microseconds=microseconds if ticks >= 0 else -microseconds)
    except OverflowError:
        return timestamp_text(ticks, kind)


def _interval(months: int, days: int, microseconds: int) -> datetime.timedelta:
    try:
        return datetime.timedelta(days=30 * months + days, microseconds=microseconds)
    except OverflowError:
        text = interval_text(months, days, microseconds)
        raise ExecutionError(
            f"Python's timedelta cannot hold the interval {text}; cast it to VARCHAR"
        ) from None
