"""Python values as constants of SQL."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Mapping
from typing import Any

from tqp.core.arguments import check_text, list_elements
from tqp.core.errors import BindError
from tqp.core.keywords import quoted_text
from tqp.core.zoned_times import stored_of_time

#: pandas' own values for NULL, by the name of their class.
_MISSING = ("NAType", "NaTType")
_MAX_DIGITS = 38
_LEAST, _GREATEST = -(2**127), 2**128 - 1


def constant(value: Any) -> str:
    """SQL text that means the value, and nothing else, in the type that it has as a parameter; an integer in the type of its digits.

    A list, tuple or array is a list of SQL, a dict with texts for keys a STRUCT, and with others a MAP. Raises BindError for a
    value that SQL cannot say.

    >>> for value in (None, 1.5, "it's", decimal.Decimal("1.20"), datetime.date(2024, 1, 1), [1, {"a": True}]):
    ...     print(constant(value))
    NULL
    1.5e0
    'it''s'
    CAST('1.20' AS DECIMAL(3, 2))
    DATE '2024-01-01'
    [1, {'a': TRUE}]
    """
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 and not isinstance(value, float):
        value = _python_value(value)
    if value is None or type(value).__name__ in _MISSING:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        if not _LEAST <= value <= _GREATEST:
            raise BindError(f"{value} does not fit a HUGEINT or UHUGEINT; give it as a float")
        return str(int(value))
    if isinstance(value, float):
        return _float(float(value))
    if isinstance(value, str):
        check_text("the value", value)
        return quoted_text(str(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "'" + "".join(f"\\x{byte:02X}" for byte in bytes(value)) + "'::BLOB"
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, uuid.UUID):
        return f"'{value}'::UUID"
    if isinstance(value, Mapping):
        return _mapping(value)
    elements = list_elements(value)
    return _temporal(value) if elements is None else f"[{', '.join(map(constant, elements))}]"


def _python_value(value: Any) -> Any:
    """What a NumPy scalar, or a tensor of no dimension, holds."""
    if type(value).__name__ in ("datetime64", "timedelta64"):
        found = value.item()
        return value.astype(f"{type(value).__name__}[us]").item() if isinstance(found, int) else found
    return value.item()


def _float(value: float) -> str:
    if not math.isfinite(value):
        return "'NaN'::DOUBLE" if math.isnan(value) else f"'{'-' * (value < 0)}Infinity'::DOUBLE"
    text = repr(value)
    return text if "e" in text else f"{text}e0"  # with an exponent it is a DOUBLE, no DECIMAL


def _decimal(value: decimal.Decimal) -> str:
    if value.is_snan():
        raise BindError("the value is a signaling NaN")
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return f"'{value}'::FLOAT"
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale + (scale > len(digits)))
    if precision > _MAX_DIGITS:
        return _float(float(value))
    return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"


def _temporal(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            return f"TIMESTAMP '{datetime.datetime.isoformat(value, ' ', 'microseconds')}'"
        utc = datetime.datetime.isoformat(value.astimezone(datetime.UTC), " ", "microseconds")
        return f"TIMESTAMPTZ '{utc}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, datetime.time):
        if value.tzinfo is not None and stored_of_time(value) is None:
            raise BindError(f"the time {value} has no known offset from UTC of less than 16 hours")
        return f"{'TIME' if value.tzinfo is None else 'TIMETZ'} '{value.isoformat()}'"
    if isinstance(value, datetime.timedelta):
        microseconds = value.seconds * 1_000_000 + value.microseconds
        return f"INTERVAL '{value.days} days {microseconds} microseconds'"
    raise BindError(
        f"a {type(value).__name__} is no value of SQL; it has None, bool, int, float, str, bytes, Decimal, UUID, date, "
        "datetime, time, timedelta, and lists and dicts of these"
    )


def _mapping(value: Mapping[Any, Any]) -> str:
    pairs = ", ".join(f"{constant(key)}: {constant(each)}" for key, each in value.items())
    if not value or not all(isinstance(key, str) for key in value):
        return f"MAP {{{pairs}}}"
    return f"{{{pairs}}}"
