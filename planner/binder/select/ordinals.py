"""`ORDER BY 2`, `GROUP BY 1`: whole numbers that name a column of SELECT, and constants that name none."""

from __future__ import annotations

from sqlglot import exp

from tqp.core.datatypes import BIGINT, INTEGER
from tqp.core.errors import BindError
from tqp.planner.binder.expressions.literals import signed_number
from tqp.planner.functions.type_rules import integer_literal_type
from tqp.planner.parse import head_span, span_of

_CONSTANTS = (exp.Literal, exp.ByteString, exp.Null, exp.Boolean)


def ordinal(node: exp.Expr, columns: int, clause: str) -> int | None:
    """The place, from 0, of the column that the number names; None for what is no number, or one beyond BIGINT.

    Raises BindError for numbers out of range and, in ORDER BY, for other literals, which would order nothing.
    """
    if clause == "ORDER BY" and isinstance(
        node, exp.PositionalColumn
    ):  # #2 is a column of SELECT there, as 2 is
        node = node.this
    literal, negative = signed_number(node)
    number = int(literal.name) if literal is not None and literal.name.isdigit() else None
    position = -number if negative and number is not None else number
    if position is not None and integer_literal_type(position) in (INTEGER, BIGINT):
        if not 1 <= position <= columns:
            raise BindError(
                f"{clause} {position}: there are {columns} columns, numbered from 1", head_span(node)
            )
        return position - 1
    if clause == "ORDER BY" and (literal is not None or isinstance(node.unnest(), _CONSTANTS)):
        raise _no_effect(node, "name a column by its number")
    return None


def refuse_constant(node: exp.Expr) -> None:
    """Raise BindError for a constant as a key inside an aggregate, where only a whole number may order nothing."""
    literal, _ = signed_number(node)
    if not literal.name.isdigit() if literal is not None else isinstance(node.unnest(), _CONSTANTS):
        raise _no_effect(node, "name a column")


def _no_effect(node: exp.Expr, instead: str) -> BindError:
    return BindError(f"ORDER BY a constant has no effect; leave it out, or {instead}", span_of(node))
