"""Python objects as Arrow arrays: one type that holds them all without a loss, the one DuckDB finds, or an error."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tqp.core.errors import BindError, Error
from tqp.core.zoned_times import stored_of_time
from tqp.data.arrow_buffers import pack_bits
from tqp.data.arrow_types import HUGEINT_ARRAY, ZONED_TIME_ARRAY

_INT64_LIMIT, _UINT64_LIMIT, _INT128_LIMIT = 2**63, 2**64, 2**127
#: DATE has 32 bits.
_MAX_DAYS = 2**31 - 1
_SIMPLE_TYPES = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime.date: pa.date32(),
}
_MISSING_TYPES = ("NoneType", "NaTType", "NAType")
#: The first that a type is a subclass of says what its values are: a bool is no number, a datetime no date.
_KINDS: tuple[tuple[Any, str], ...] = (
    ((bool, np.bool_), "boolean"),
    (np.datetime64, "numpy moment"),
    (np.timedelta64, "numpy duration"),
    ((int, np.integer), "integer"),
    ((float, np.floating), "float"),
    (decimal.Decimal, "decimal"),
    (str, "text"),
    ((bytes, bytearray, memoryview), "bytes"),
    (datetime.datetime, "timestamp"),
    (datetime.date, "date"),
    (datetime.time, "time"),
    (datetime.timedelta, "duration"),
    (uuid.UUID, "identifier"),
    ((enum.Enum, os.PathLike), "text"),
)


def arrow_of_objects(values: Iterable[Any], where: str) -> pa.Array:
    """The values as one Arrow array; None, NaN and what pandas has for a missing value are NULL.

    Integers beyond 64 bits make HUGEINT, with fractions DOUBLE; decimals with floats DOUBLE; dates with timestamps
    TIMESTAMP; members of an enumeration and paths text. `where`: which column, for messages.
    Times of which some have a zone are TIMETZ, those without in UTC.
    Raises BindError for values of no common type.
    """
    values = list(values)
    quick = _array_of_one_type(values)
    if quick is not None:
        return quick
    items = [None if _is_missing(value) else value for value in values]
    kinds = {_kind_of(kind) for kind in {type(item) for item in items if item is not None}}
    try:
        return _array_of(items, kinds)
    except Error as error:
        raise type(error)(f"{where}: {error.message}") from None
    except UnicodeEncodeError as error:
        raise BindError(
            f"{where} holds text with {error.object[error.start]!r}, which is half of a character and not valid Unicode"
        ) from None
    except (pa.ArrowException, TypeError, ValueError, OverflowError, decimal.DecimalException) as error:
        raise BindError(
            f"{where} cannot be read: {error}; give it values of one type, for example with .astype(str)"
        ) from error


def _array_of_one_type(values: list[Any]) -> pa.Array | None:
    """The array where all values are of one simple type, or None; None if that is not so, or a value does not fit."""
    types = set(map(type, values)) - {type(None)}
    [arrow_type] = [_SIMPLE_TYPES.get(python_type) for python_type in types] if len(types) == 1 else [None]
    if arrow_type is None:
        return None
    try:
        made = pa.array(values, arrow_type, from_pandas=True)
    except (pa.ArrowException, ValueError, OverflowError):
        return None
    return made if made.null_count < len(made) else None


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return True
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    return isinstance(value, (np.datetime64, np.timedelta64)) and bool(np.isnat(value))


def _kind_of(python_type: type) -> str:
    for types, kind in _KINDS:
        if issubclass(python_type, types):
            return kind
    return python_type.__name__


def _array_of(items: list[Any], kinds: set[str]) -> pa.Array:
    for accepted, make in _MAKERS:
        if kinds <= accepted:
            return make(items)
    if len(kinds) == 1 and kinds <= {"list", "tuple", "ndarray", "dict"}:
        return pa.array(items, from_pandas=True)  # whose type may be one that tqp does not have
    if len(kinds) == 1:
        raise BindError(
            f"cannot read values of type {next(iter(kinds))}; make them text, for example with .astype(str)"
        )
    raise BindError(
        f"values of several kinds ({', '.join(sorted(kinds))}) have no type in common; give it values of one type, for"
        " example with .astype(str)"
    )


def _mapped(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    return [None if item is None else function(item) for item in items]


def _integers(items: list[Any]) -> pa.Array:
    numbers = _mapped(int, items)
    present = [number for number in numbers if number is not None]
    low, high = min(present), max(present)
    if low >= -_INT64_LIMIT and high < _INT64_LIMIT:
        return pa.array(numbers, pa.int64())
    if low >= 0 and high < _UINT64_LIMIT:
        return pa.array(numbers, pa.uint64())
    return hugeint_array(numbers)


def hugeint_array(numbers: Sequence[int | None], where: str = "") -> pa.Array:
    """Integers of 128 bits. Raises BindError for one beyond them; `where`: which column, for its message.

    >>> hugeint_array([2**100, None]).storage.to_pylist()
    [Decimal('1267650600228229401496703205376'), None]
    """
    words = np.zeros((len(numbers), 2), np.uint64)
    for row, number in enumerate(numbers):
        if number is None:
            continue
        if not -_INT128_LIMIT <= number < _INT128_LIMIT:
            raise BindError(
                f"{where}{': ' * bool(where)}the integer {number} needs more than 128 bits, which HUGEINT does not have"
            )
        words[row] = number & (2**64 - 1), (number >> 64) & (2**64 - 1)
    valid = np.array([number is not None for number in numbers])
    # From buffers: 39 digits are one more than Arrow has decimals of.
    storage = pa.Array.from_buffers(
        HUGEINT_ARRAY.storage_type, len(numbers), [pack_bits(valid), pa.py_buffer(words)]
    )
    return pa.ExtensionArray.from_storage(HUGEINT_ARRAY, storage)


def _floats(items: list[Any]) -> pa.Array:
    if all(item is None or isinstance(item, np.float32) for item in items):
        return pa.array(_mapped(float, items), pa.float32())
    return pa.array(_mapped(float, items), pa.float64())


def _decimals(items: list[Any]) -> pa.Array:
    decimals = _mapped(
        lambda item: item if isinstance(item, decimal.Decimal) else decimal.Decimal(int(item)), items
    )
    if any(item is not None and item.is_infinite() for item in decimals):
        raise BindError("an infinite Decimal is no DECIMAL; make the values floats")
    return pa.array(decimals)


def _text(item: Any) -> str:
    if isinstance(item, str):  # also a member of an enumeration of texts
        return str.__str__(item)
    return os.fspath(item) if isinstance(item, os.PathLike) else str(item)


def _bytes(items: list[Any]) -> pa.Array:
    return pa.array(
        _mapped(lambda item: item.encode() if isinstance(item, str) else bytes(item), items), pa.binary()
    )


def _timestamps(items: list[Any]) -> pa.Array:
    moments = _mapped(
        lambda item: (
            item
            if isinstance(item, datetime.datetime)
            else datetime.datetime.combine(item, datetime.time.min)
        ),
        items,
    )
    aware = {item.tzinfo is not None for item in moments if item is not None}
    if len(aware) > 1:
        raise BindError("timestamps with and without a time zone cannot be in one column")
    zone = "UTC" if aware == {True} else None
    # pandas' timestamps have nanoseconds, which Python's have not.
    if any(getattr(item, "nanosecond", 0) for item in moments):
        return pa.array(
            _mapped(lambda item: item.value if hasattr(item, "value") else None, moments), pa.int64()
        ).cast(pa.timestamp("ns", zone))
    return pa.array(_mapped(_plain_moment, moments), pa.timestamp("us", zone))


def _plain_moment(item: Any) -> Any:
    return item.to_pydatetime() if hasattr(item, "to_pydatetime") else item


def _times(items: list[Any]) -> pa.Array:
    if not any(item is not None and item.tzinfo is not None for item in items):
        return pa.array(items, pa.time64("us"))
    stored = pa.array(_mapped(_stored_time, items), pa.int64())
    return pa.ExtensionArray.from_storage(ZONED_TIME_ARRAY, stored)


def _stored_time(time: datetime.time) -> int:
    stored = stored_of_time(time)
    if stored is None:
        raise BindError(f"the time {time} has no known offset from UTC of less than 16 hours")
    return stored


def _durations(items: list[Any]) -> pa.Array:
    """INTERVAL of days and microseconds, the parts of Python's timedelta; what pandas has beyond is cut, as in DuckDB."""
    return pa.array(
        _mapped(lambda item: (0, item.days, (item.seconds * 1_000_000 + item.microseconds) * 1_000), items),
        pa.month_day_nano_interval(),
    )


def _identifiers(items: list[Any]) -> pa.Array:
    content = pa.array(_mapped(lambda item: item.bytes, items), pa.binary(16))
    return pa.ExtensionArray.from_storage(pa.uuid(), content)


def _numpy_values(not_a_time: Any) -> Callable[[list[Any]], pa.Array]:
    def make(items: list[Any]) -> pa.Array:
        return arrow_of_numpy_moments(np.array([not_a_time if item is None else item for item in items]))

    return make


def arrow_of_numpy_moments(values: np.ndarray[Any, Any]) -> pa.Array:
    """datetime64 and timedelta64 of any unit as Arrow: years, months and weeks as days, hours and minutes as seconds.

    Raises BindError for a unit finer than nanoseconds, and for durations in months or years.
    """
    unit = np.datetime_data(values.dtype)[0]
    is_moment = values.dtype.kind == "M"
    if unit in ("ps", "fs", "as") or (not is_moment and unit in ("Y", "M")):
        raise BindError(
            f"cannot read values of type {values.dtype}; convert them, for example with .astype('m8[us]')"
        )
    if unit == "generic":  # nothing but NaT
        return pa.nulls(len(values), pa.timestamp("us") if is_moment else pa.duration("us"))
    if unit in ("Y", "M", "W", "D", "h", "m"):
        wanted = "D" if is_moment and unit in ("Y", "M", "W", "D") else "s"
        converted = values.astype(f"{values.dtype.kind}8[{wanted}]")
        days = converted[~np.isnat(converted)].astype(np.int64)
        is_too_far = wanted == "D" and len(days) and max(-int(days.min()), int(days.max())) > _MAX_DAYS
        if is_too_far or not np.array_equal(converted.astype(values.dtype), values, equal_nan=True):
            raise BindError(f"a value of type {values.dtype} is out of range")
        values = converted
    else:
        # A unit may count several, as in [25s].
        values = values.astype(f"{values.dtype.kind}8[{unit}]", copy=False)
        return with_nulls(values.view(np.int64), np.isnat(values)).view(
            pa.timestamp(unit) if is_moment else pa.duration(unit)
        )
    return pa.array(values)


def with_nulls(values: np.ndarray[Any, Any], is_null: np.ndarray[Any, Any]) -> pa.Array:
    """Numbers [n] as Arrow over the same memory where they lie one after the other, NULL where `is_null` [n].

    Arrow can find NaN and NaT by itself, by copying value for value.
    """
    return pa.array(values, mask=is_null) if is_null.any() else pa.array(values)


#: Which kinds of values may come together, and what makes an array of them; the first that covers all does.
_MAKERS: tuple[tuple[set[str], Callable[[list[Any]], pa.Array]], ...] = (
    (set(), lambda items: pa.nulls(len(items))),
    ({"boolean"}, lambda items: pa.array(_mapped(bool, items), pa.bool_())),
    ({"integer"}, _integers),
    ({"integer", "float"}, _floats),
    ({"integer", "decimal"}, _decimals),
    ({"integer", "float", "decimal"}, _floats),
    ({"text"}, lambda items: pa.array(_mapped(_text, items), pa.string())),
    ({"text", "bytes"}, _bytes),
    ({"date"}, lambda items: pa.array(items, pa.date32())),
    ({"date", "timestamp"}, _timestamps),
    ({"time"}, _times),
    ({"duration"}, _durations),
    ({"identifier"}, _identifiers),
    ({"numpy moment"}, _numpy_values(np.datetime64("NaT"))),
    ({"numpy duration"}, _numpy_values(np.timedelta64("NaT"))),
)
