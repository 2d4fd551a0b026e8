"""INTERVAL 'text' and INTERVAL amount unit."""

from __future__ import annotations

from tqp.core.datatypes import BIGINT, DOUBLE, INTERVAL, VARCHAR
from tqp.planner.algebra.expressions import Call, Cast, Expression, Literal
from tqp.planner.binder.expressions.coercion import cast_to, folded
from tqp.planner.functions.type_rules import settle
from tqp.planner.parse import Span


def to_interval_cast(amount: Expression, span: Span | None) -> Expression:
    """INTERVAL 'text'."""
    return folded(Cast(settle(amount), INTERVAL, False, span))


def interval_from(unit: str, amount: Expression, span: Span | None) -> Expression:
    """INTERVAL amount unit: fractions of a unit below the second only, as in DuckDB."""
    if not amount.data_type.is_integer:
        amount = cast_to(amount, DOUBLE, span)
        if unit not in ("second", "millisecond"):
            amount = cast_to(folded(Call("trunc", (amount,), DOUBLE, span)), BIGINT, span)
    return folded(Call("to_interval", (Literal(unit, VARCHAR), settle(amount)), INTERVAL, span))
