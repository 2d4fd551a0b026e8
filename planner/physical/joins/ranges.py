"""Range joins: which inequalities of a join without keys become bounds that sorted build rows are searched by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tqp.core.datatypes import BIGINT
from tqp.planner.algebra.expressions import Call, Expression, column_ids
from tqp.planner.algebra.join_keys import THREE_VALUED, JoinKeys
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import JoinType
from tqp.planner.algebra.may_raise import shielded
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.conditions import MIRRORED, ORDERINGS, UPPER
from tqp.planner.functions.ranges import within
from tqp.planner.physical.plan import Bound

# Nanoseconds, rounded; only their ratios matter.
_SORT = 100.0  # a build row
_SEARCH = 60.0  # a probe row, for each bound
_SECOND = 200.0  # a probe row, for a bound on a second key


def split_bounds(
    keys: JoinKeys, join_type: JoinType, probe: FieldsById, build: FieldsById
) -> tuple[tuple[Bound, ...], JoinKeys]:
    """The bounds of a join without equalities, and the keys with the rest of the residual; no bounds if there cannot be any.

    All bounds but the last are on one build key; the last one may be on another. Where NULL and false differ, the condition
    has to be one that never is NULL.
    """
    if keys.left:
        return (), keys
    fields = {**probe, **build}
    if join_type in THREE_VALUED and any(nullable(part, fields) for part in keys.residual):
        return (), keys
    found = [
        (part, bound)
        for position, part in enumerate(keys.residual)
        if (bound := _bound(part, keys.residual[:position], probe, build)) is not None
    ]
    chosen = _choose([bound for _, bound in found])
    taken = [part for part, bound in found if any(bound is other for other in chosen)]
    rest = tuple(part for part in keys.residual if not any(part is other for other in taken))
    return chosen, replace(keys, residual=rest)


def bounds_cost(bounds: Sequence[Bound], probe_rows: float, build_rows: float) -> float:
    """Estimated nanoseconds of a join by bounds."""
    second = _SECOND * (bounds[-1].build != bounds[0].build)
    return build_rows * _SORT + probe_rows * (_SEARCH * len(bounds) + second)


def _choose(bounds: Sequence[Bound]) -> tuple[Bound, ...]:
    """The bounds on a key that has both a lower and an upper one; or those on one key and one on another."""
    if not bounds:
        return ()
    by_key: dict[Expression, list[Bound]] = {}
    for bound in bounds:
        by_key.setdefault(bound.build, []).append(bound)
    for group in by_key.values():
        if len({bound.comparison in UPPER for bound in group}) == 2:
            return tuple(group)
    # Sorted by a key with an upper bound, the rows to search begin where the other key first reaches its lower bound.
    groups = sorted(by_key.values(), key=lambda group: group[0].comparison not in UPPER)
    return (*groups[0], *(group[0] for group in groups[1:2]))


def _bound(
    part: Expression, before: Sequence[Expression], probe: FieldsById, build: FieldsById
) -> Bound | None:
    if not isinstance(part, Call) or part.function not in ORDERINGS:
        return None
    first, second = part.arguments
    if not _are_comparable(first, second):
        return None
    for comparison, build_key, probe_key in (
        (part.function, first, second),
        (MIRRORED[part.function], second, first),
    ):
        if _is_of(build_key, build) and _is_of(probe_key, probe):
            fields = {**probe, **build}
            if _fits(build_key, fields) and _fits(probe_key, fields):
                return Bound(
                    comparison, shielded(probe_key, before, probe), shielded(build_key, before, build)
                )
    return None


def _is_of(expression: Expression, fields: FieldsById) -> bool:
    """Is the expression one of columns, all of them of one side?"""
    ids = column_ids(expression)
    return bool(ids) and all(identifier in fields for identifier in ids)


def _are_comparable(first: Expression, second: Expression) -> bool:
    """Do the two compare as their integers, or as their floats, do?"""
    data_type = first.data_type
    if data_type.is_integer and second.data_type.is_integer:
        return True
    return data_type == second.data_type and (data_type.is_integer_like or data_type.is_float)


def _fits(expression: Expression, fields: FieldsById) -> bool:
    """Has each value a word of 64 bits?"""
    if expression.data_type.is_float:
        return True
    return within(value_range(expression, fields) or expression.data_type.bounds, BIGINT)
