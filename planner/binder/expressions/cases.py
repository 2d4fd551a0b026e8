"""CASE, and whatever else chooses among values by conditions."""

from __future__ import annotations

from collections.abc import Sequence

from tqp.planner.algebra.expressions import Case, Expression, Literal
from tqp.planner.binder.expressions.coercion import cast_to, common_type_of
from tqp.planner.parse import Span


def make_case(
    conditions: Sequence[Expression], values: Sequence[Expression], span: Span | None
) -> Expression:
    """CASE; branches that are constantly false go, a constantly true one ends it.

    But it is no constant NULL, which decides overloads and types, where a branch is no constant: DuckDB folds it later.
    """
    common = common_type_of((values[-1], *values[:-1]), "CASE", span)  # ELSE decides first, as in DuckDB
    cast = [cast_to(value, common, span) for value in values]
    branches: list[tuple[Expression, Expression]] = []
    default = cast[-1]
    for condition, value in zip(conditions, cast):
        if isinstance(condition, Literal):
            if condition.value is True:
                default = value
                break
            continue
        branches.append((condition, value))
    is_null = not branches and isinstance(default, Literal) and default.value is None
    if is_null and not all(isinstance(each, Literal) for each in (*conditions, *cast)):
        return Case(tuple(zip(conditions, cast)), cast[-1], common)
    return Case(tuple(branches), default, common) if branches else default
