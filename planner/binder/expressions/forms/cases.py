"""CASE, and whatever else chooses among values by conditions."""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.datatypes import BOOLEAN
from tqp.planner.algebra.expressions import Call, Case, Expression, Literal
from tqp.planner.binder.expressions.coercion import cast_to, common_type_of, folded
from tqp.planner.parse import Span


def make_case(
    conditions: Sequence[Expression], values: Sequence[Expression], span: Span | None
) -> Expression:
    """CASE; branches that are constantly false go, a constantly true one ends it.

    But it is no constant, which may decide overloads and types, where a branch is none: DuckDB folds it later.
    """
    common = common_type_of((values[-1], *values[:-1]), "CASE", span)  # ELSE decides first, as in DuckDB
    cast = [cast_to(value, common, span) for value in values]
    branches, default = _that_may_be_taken(conditions, cast)
    is_constant = not branches and isinstance(default, Literal)
    if is_constant and not all(isinstance(each, Literal) for each in (*conditions, *cast)):
        return Case(tuple(zip(conditions, cast)), cast[-1], common)
    return Case(tuple(branches), default, common) if branches else default


def null_with(value: Expression, result: Expression, span: Span | None) -> Expression:
    """The result, and NULL where the value is."""
    is_null = folded(Call("is_null", (value,), BOOLEAN, span))
    return make_case([is_null], [Literal(None, result.data_type), result], span)


def _that_may_be_taken(
    conditions: Sequence[Expression], values: Sequence[Expression]
) -> tuple[list[tuple[Expression, Expression]], Expression]:
    """The branches without those that constants decide, and what ELSE gives then."""
    branches: list[tuple[Expression, Expression]] = []
    for condition, value in zip(conditions, values):
        if not isinstance(condition, Literal):
            branches.append((condition, value))
        elif condition.value is True:
            return branches, value
    return branches, values[-1]
