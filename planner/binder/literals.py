"""Literals, interval literals, type names and parameters."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from tqp.core.datatypes import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HUGEINT,
    INTEGER,
    INTERVAL,
    MAX_DECIMAL_PRECISION,
    NULL,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    UBIGINT,
    VARCHAR,
    DataType,
    TypeKind,
    array,
)
from tqp.core.datatypes import decimal as decimal_type
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.binder.arrays import array_literal
from tqp.planner.binder.context import BindContext
from tqp.planner.expressions import Expression, Literal
from tqp.planner.parse import Span, head_span, span_of
from tqp.planner.type_rules import SourceLiteral, integer_literal_type

_NUMBER = re.compile(r"(?P<whole>[\d_]*)(?:(?P<point>\.)(?P<fraction>[\d_]*))?(?P<exponent>[eE][+-]?\d+)?")


def bind_number(text: str, span: Span | None, negative: bool = False) -> Expression:
    """Whole numbers are INTEGER, BIGINT or HUGEINT; with a point DECIMAL; with an exponent DOUBLE."""
    sign = -1 if negative else 1
    if span is None and text.startswith("0."):
        text = text[1:]  # .5, which sqlglot makes 0.5, has one digit
    match = _NUMBER.fullmatch(text)
    if match is None:
        try:
            value = int(text, 0)
        except ValueError:
            raise BindError(f'"{text}" is not a number', span) from None
        return SourceLiteral(sign * value, integer_literal_type(value))
    digits = text.replace("_", "")
    if match["exponent"]:
        return Literal(sign * float(digits), DOUBLE)
    whole, fraction = match["whole"].replace("_", ""), (match["fraction"] or "").replace("_", "")
    if match["point"] is None:
        value = sign * int(whole)
        data_type = integer_literal_type(value)
        return Literal(float(value), DOUBLE) if data_type == DOUBLE else SourceLiteral(value, data_type)
    precision = len(whole) + len(fraction)
    if not 1 <= precision <= 38:
        return Literal(sign * float(digits), DOUBLE)
    return Literal(sign * int(whole + fraction), decimal_type(precision, len(fraction)))


def signed_number(node: exp.Expr) -> tuple[exp.Literal | None, bool]:
    """The number under minus signs and parentheses, None if there is another thing, and whether it is negative."""
    negative = False
    while isinstance(node, (exp.Neg, exp.Paren)):
        negative ^= isinstance(node, exp.Neg)
        node = node.this
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        return node, negative
    return None, negative


_TYPE_KINDS: dict[exp.DType, TypeKind] = {
    exp.DType.BOOLEAN: TypeKind.BOOLEAN,
    exp.DType.TINYINT: TypeKind.TINYINT,
    exp.DType.SMALLINT: TypeKind.SMALLINT,
    exp.DType.INT: TypeKind.INTEGER,
    exp.DType.BIGINT: TypeKind.BIGINT,
    exp.DType.INT128: TypeKind.HUGEINT,
    exp.DType.UTINYINT: TypeKind.UTINYINT,
    exp.DType.USMALLINT: TypeKind.USMALLINT,
    exp.DType.UINT: TypeKind.UINTEGER,
    exp.DType.UBIGINT: TypeKind.UBIGINT,
    exp.DType.FLOAT: TypeKind.FLOAT,
    exp.DType.DOUBLE: TypeKind.DOUBLE,
    exp.DType.TEXT: TypeKind.VARCHAR,
    exp.DType.VARCHAR: TypeKind.VARCHAR,
    exp.DType.CHAR: TypeKind.VARCHAR,
    exp.DType.BPCHAR: TypeKind.VARCHAR,
    exp.DType.VARBINARY: TypeKind.BLOB,
    exp.DType.BLOB: TypeKind.BLOB,
    exp.DType.BINARY: TypeKind.BLOB,
    exp.DType.DATE: TypeKind.DATE,
    exp.DType.TIME: TypeKind.TIME,
    exp.DType.TIMESTAMP: TypeKind.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TypeKind.TIMESTAMP,
    exp.DType.DATETIME: TypeKind.TIMESTAMP,
    exp.DType.TIMESTAMP_S: TypeKind.TIMESTAMP_S,
    exp.DType.TIMESTAMP_MS: TypeKind.TIMESTAMP_MS,
    exp.DType.TIMESTAMP_NS: TypeKind.TIMESTAMP_NS,
    exp.DType.TIMESTAMPTZ: TypeKind.TIMESTAMP_TZ,
    exp.DType.INTERVAL: TypeKind.INTERVAL,
}

#: Elements of an array at most, as in DuckDB.
_MOST_ELEMENTS = 100_000


def bind_type(node: exp.Expr, span: Span | None) -> DataType:
    """A type name in CAST; raises BindError for nonsense and UnsupportedError for types that tqp does not have."""
    if isinstance(node, exp.Interval):
        return INTERVAL
    kind = node.this
    if kind is exp.DType.DECIMAL:
        sizes = [int(parameter.name) for parameter in node.expressions]
        precision = sizes[0] if sizes else 18
        scale = sizes[1] if len(sizes) > 1 else (0 if sizes else 3)
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise BindError(
                f"DECIMAL({precision},{scale}) is out of range: 1 to 38 digits, of which 0 to all after the point",
                span_of(node) or span,
            )
        return decimal_type(precision, scale)
    found = _TYPE_KINDS.get(kind) if isinstance(kind, exp.DType) else None
    if kind is exp.DType.ARRAY and node.args.get("values") and node.expressions[0].this is exp.DType.FLOAT:
        size = node.args["values"][0].name
        if not size.isdigit() or not 1 <= int(size) <= _MOST_ELEMENTS:
            raise BindError(
                f"the size of an array is a number from 1 to {_MOST_ELEMENTS}", span_of(node) or span
            )
        return array(int(size))
    if found is None:
        name = node.sql("duckdb").replace("UINT128", "UHUGEINT")
        raise UnsupportedError(f"the type {name} is not supported", span_of(node) or span)
    return DataType(found)


def bind_placeholder(context: BindContext, node: exp.Placeholder) -> Expression:
    """`?`, `$1`, `$name`: the value given for it, as a literal."""
    key = _parameter_key(context, node)
    span = head_span(node)
    values = context.parameters
    label = f"${key}"
    if isinstance(values, Mapping):
        name = str(key)
        if name not in values:
            given = ", ".join(sorted(values)) or "none"
            raise BindError(f"no value for the parameter {label} (given: {given})", span)
        context.used_parameters.add(name)
        return literal_of(values[name], label, span)
    if isinstance(key, str):
        raise BindError(f'the parameter {label} has a name: pass params={{"{key}": ...}}', span)
    if values is None or not 1 <= key <= len(values):
        given_count = 0 if values is None else len(values)
        raise BindError(f"no value for the parameter {label}: {given_count} given", span)
    context.used_parameters.add(key)
    return literal_of(values[key - 1], label, span)


def check_unread_placeholders(context: BindContext, tree: exp.Expr) -> None:
    """Placeholders in CTEs that nobody reads, and so nobody binds, need values too, and use them."""
    if "?" in context.query or "$" in context.query:
        for node in tree.find_all(exp.Placeholder):
            if _parameter_key(context, node) not in context.used_parameters:
                bind_placeholder(context, node)


def _parameter_key(context: BindContext, node: exp.Placeholder) -> int | str:
    text = node.args.get("this")
    if text is None:
        if context.placeholder_numbers is None:
            root = node.root()
            starts = sorted(
                each.meta["start"] for each in root.find_all(exp.Placeholder) if each.args.get("this") is None
            )
            context.placeholder_numbers = {start: number for number, start in enumerate(starts, 1)}
        return context.placeholder_numbers[node.meta["start"]]
    name = text.name if isinstance(text, exp.Expr) else str(text)
    return int(name) if name.isdigit() else name


def literal_of(value: Any, label: str, span: Span | None) -> Expression:
    """A Python value as a literal of the type DuckDB gives it."""
    if (
        hasattr(value, "item")
        and getattr(value, "ndim", 0) == 0
        and not isinstance(value, (int, float, str, bytes))
    ):
        value = value.item()  # NumPy scalars and 0-d tensors
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Literal(bytes(value), BLOB)
    if getattr(value, "ndim", 0) == 1:
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return array_literal(value, label, span)
    if value is None or type(value).__name__ in _MISSING:
        return Literal(None, NULL)
    if isinstance(value, bool):
        return Literal(value, BOOLEAN)
    if isinstance(value, int):
        for data_type in (INTEGER, BIGINT, UBIGINT, HUGEINT):
            low, high = data_type.bounds
            if low <= value <= high:
                return Literal(value, data_type)
        raise BindError(f"the value of {label} does not fit a HUGEINT; pass it as a float", span)
    if isinstance(value, float):
        return Literal(value, DOUBLE)
    if isinstance(value, str):
        return SourceLiteral(value, VARCHAR)
    if isinstance(value, decimal.Decimal):
        return _decimal_literal(value, label, span)
    return _temporal_literal(value, label, span)


#: pandas' own values for NULL, by the name of their class.
_MISSING = ("NAType", "NaTType")


def _decimal_literal(value: decimal.Decimal, label: str, span: Span | None) -> Expression:
    """A DECIMAL of the digits, with one before the point where all are after it; DOUBLE where those are more than 38."""
    if value.is_snan():
        raise BindError(f"the value of {label} is a signaling NaN", span)
    if not value.is_finite():
        return Literal(float(value), FLOAT)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = len(digits) + max(exponent, 0)
    precision = scale + 1 if scale > precision else precision
    if precision > MAX_DECIMAL_PRECISION:
        return Literal(float(value), DOUBLE)
    unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    return Literal(-unscaled if sign else unscaled, decimal_type(precision, scale))


_EPOCH = datetime.date(1970, 1, 1)


def _temporal_literal(value: Any, label: str, span: Span | None) -> Expression:
    if isinstance(value, datetime.datetime):
        zoned = value.tzinfo is not None
        start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC if zoned else None)
        ticks = (value - start) // datetime.timedelta(microseconds=1)
        return Literal(ticks, TIMESTAMP_TZ if zoned else TIMESTAMP)
    if isinstance(value, datetime.date):
        return Literal((value - _EPOCH).days, DATE)
    if isinstance(value, datetime.time):
        if value.tzinfo is not None:
            raise UnsupportedError(f"{label}: a time with a time zone is not supported", span)
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return Literal(seconds * 1_000_000 + value.microsecond, TIME)
    if isinstance(value, datetime.timedelta):
        return Literal((0, value.days, value.seconds * 1_000_000 + value.microseconds), INTERVAL)
    raise BindError(
        f"the value of {label} is a {type(value).__name__}; parameters may be None, bool, int, float, str, bytes, "
        "Decimal, date, datetime, time, timedelta, or a list of numbers (also as an array or tensor)",
        span,
    )
