"""Literals, interval literals, type names and parameters."""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from tqp.core.arguments import check_text, list_elements
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
    TIME_TZ,
    TIMESTAMP,
    TIMESTAMP_TZ,
    UBIGINT,
    UHUGEINT,
    UUID,
    VARCHAR,
)
from tqp.core.datatypes import decimal as decimal_type
from tqp.core.errors import BindError
from tqp.core.unsigned_128 import LAST_UNSIGNED, stored_unsigned
from tqp.core.uuids import stored_uuid
from tqp.core.zoned_times import clock_of_time, stored_of_time
from tqp.planner.algebra.expressions import Expression, Literal
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.nested.given import list_given, mapping_given
from tqp.planner.functions.type_rules import SourceLiteral, integer_literal_type
from tqp.planner.parse import Span, head_span

_NUMBER = re.compile(r"(?P<whole>[\d_]*)(?:(?P<point>\.)(?P<fraction>[\d_]*))?(?P<exponent>[eE][+-]?\d+)?")


def bind_number(text: str, span: Span | None, negative: bool = False) -> Literal:
    """Whole numbers are INTEGER, BIGINT, HUGEINT or UHUGEINT; with a point DECIMAL; with an exponent DOUBLE."""
    sign = -1 if negative else 1
    if span is None and text.startswith("0."):
        text = text[1:]  # .5, which sqlglot makes 0.5, has one digit
    match = _NUMBER.fullmatch(text)
    if match is None:
        try:
            value = int(text, 0)
        except ValueError:
            raise BindError(f'"{text}" is not a number', span) from None
        return _whole_number(sign * value)
    digits = text.replace("_", "")
    if match["exponent"]:
        return Literal(sign * float(digits), DOUBLE)
    whole, fraction = match["whole"].replace("_", ""), (match["fraction"] or "").replace("_", "")
    if match["point"] is None:
        return _whole_number(sign * int(whole))
    precision = len(whole) + len(fraction)
    if not 1 <= precision <= 38:
        return Literal(sign * float(digits), DOUBLE)
    return Literal(sign * int(whole + fraction), decimal_type(precision, len(fraction)))


def _whole_number(value: int) -> Literal:
    data_type = integer_literal_type(value)
    if data_type == DOUBLE:
        return Literal(float(value), DOUBLE)
    return SourceLiteral(stored_unsigned(value) if data_type == UHUGEINT else value, data_type)


def signed_number(node: exp.Expr) -> tuple[exp.Literal | None, bool]:
    """The number under minus signs and parentheses, None if there is another thing, and whether it is negative."""
    signs: list[exp.Expr] = []
    while isinstance(node, (exp.Neg, exp.Paren)) and _NO_NUMBER not in node.meta:
        signs.append(node)
        node = node.this
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        return node, sum(isinstance(sign, exp.Neg) for sign in signs) % 2 == 1
    for sign in signs:
        sign.meta[_NO_NUMBER] = True
    return None, False


#: Key in the meta of signs and parentheses around another thing: whoever binds it asks at each of them.
_NO_NUMBER = "no_number"


def bind_placeholder(context: BindContext, node: exp.Placeholder) -> Expression:
    """`?`, `$1`, `$name`: the value given for it, as a literal; where none is, that of the variable of the name."""
    variable = variable_for(context, node)
    if variable is not None:
        return variable
    value, label = given_value(context, node)
    return literal_of(value, label, head_span(node))


def variable_for(context: BindContext, node: exp.Expr) -> Literal | None:
    """The variable that `$name` means, which no value is given for; None if it is no such parameter."""
    if not isinstance(node, exp.Placeholder):
        return None
    key, values = context.parameter_keys[node.meta["start"]], context.parameters
    if not isinstance(key, str) or (isinstance(values, Mapping) and key in values):
        return None
    return context.catalog.lookup_variable(key)


def given_value(context: BindContext, node: exp.Placeholder) -> tuple[Any, str]:
    """The value given for a placeholder, and how messages call it. Raises BindError where there is none."""
    key = context.parameter_keys[node.meta["start"]]
    span = head_span(node)
    values = context.parameters
    label = f"${key}"
    if isinstance(values, Mapping):
        name = str(key)
        if name not in values:
            given = ", ".join(sorted(values)) or "none"
            raise BindError(f"no value for the parameter {label} (given: {given})", span)
        context.used_parameters.add(name)
        return values[name], label
    if isinstance(key, str):
        raise BindError(f'the parameter {label} has a name: pass params={{"{key}": ...}}', span)
    if values is None or not 1 <= key <= len(values):
        given_count = 0 if values is None else len(values)
        raise BindError(f"no value for the parameter {label}: {given_count} given", span)
    context.used_parameters.add(key)
    return values[key - 1], label


def check_unread_placeholders(context: BindContext, tree: exp.Expr) -> None:
    """Placeholders in CTEs that nobody reads, and so nobody binds, need values too, and use them."""
    if not context.used_parameters.issuperset(context.parameter_keys.values()):
        for node in tree.find_all(exp.Placeholder):
            bind_placeholder(context, node)


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
    elements = list_elements(value)
    if elements is not None:
        return list_given((literal_of(each, label, span) for each in elements), label, span)
    if isinstance(value, Mapping):
        return mapping_given(value, [literal_of(each, label, span) for each in value.values()], label, span)
    if value is None or type(value).__name__ in _MISSING:
        return Literal(None, NULL)
    if isinstance(value, bool):
        return Literal(value, BOOLEAN)
    if isinstance(value, int):
        for data_type in (INTEGER, BIGINT, UBIGINT, HUGEINT):
            low, high = data_type.bounds
            if low <= value <= high:
                return Literal(value, data_type)
        if 0 <= value <= LAST_UNSIGNED:
            return Literal(stored_unsigned(value), UHUGEINT)
        raise BindError(f"the value of {label} does not fit a HUGEINT or UHUGEINT; pass it as a float", span)
    if isinstance(value, float):
        return Literal(value, DOUBLE)
    if isinstance(value, str):
        check_text(f"the value of {label}", value)
        return SourceLiteral(value, VARCHAR)
    if isinstance(value, decimal.Decimal):
        return _decimal_literal(value, label, span)
    if isinstance(value, uuid.UUID):
        return Literal(stored_uuid(value.int), UUID)
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
        if value.tzinfo is None:
            return Literal(clock_of_time(value), TIME)
        stored = stored_of_time(value)
        if stored is None:
            raise BindError(
                f"{label}: the time {value} has no known offset from UTC of less than 16 hours", span
            )
        return Literal(stored, TIME_TZ)
    if isinstance(value, datetime.timedelta):
        return Literal((0, value.days, value.seconds * 1_000_000 + value.microseconds), INTERVAL)
    raise BindError(
        f"the value of {label} is a {type(value).__name__}; parameters may be None, bool, int, float, str, bytes, "
        "Decimal, UUID, date, datetime, time, timedelta, and lists (also as arrays and tensors) and dicts of these",
        span,
    )
