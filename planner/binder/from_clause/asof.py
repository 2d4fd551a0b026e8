"""ASOF JOIN: which parts of its condition are keys, and which inequality tells the nearest row."""

from __future__ import annotations

from collections.abc import Collection

from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import TRUE, Call, Expression, conjunction, conjuncts
from tqp.planner.algebra.join_keys import KEEPS_RIGHT, JoinType
from tqp.planner.algebra.logical_plan import AsofJoin, Filter, LogicalPlan
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.functions.conditions import LOWER, MIRRORED, ORDERINGS
from tqp.planner.parse import Span


def asof_join(
    left: LogicalPlan,
    right: LogicalPlan,
    condition: Expression,
    join_type: JoinType,
    earlier: Collection[int],
    span: Span | None,
) -> AsofJoin:
    """The join of rows with their nearest; `earlier` are the columns of tables before the comma, which `left` may hold.

    Raises BindError for a condition without one inequality between the two sides, UnsupportedError.
    """
    own, others = ({field.id for field in side.schema} for side in (left, right))
    keys: list[tuple[Expression, Expression]] = []
    nearest: list[tuple[str, Expression, Expression]] = []
    of_right: list[Expression] = []
    for part in conjuncts(condition):
        reads = read_ids(part)
        match part:
            case _ if reads <= own:  # where it does not hold, no row on the right has an equal key
                keys.append((part, TRUE))
            case _ if reads <= others:
                of_right.append(part)
            case Call(function, (one, other)) if function == "equal" or function in ORDERINGS:
                if read_ids(one) <= others and read_ids(other) <= own:
                    function, one, other = MIRRORED[function], other, one
                is_between = read_ids(one) <= own and read_ids(other) <= others
                if not is_between or (function != "equal" and read_ids(one) <= set(earlier)):
                    raise UnsupportedError(
                        "this condition of an ASOF JOIN is not supported", part.span or span
                    )
                if function == "equal":
                    keys.append((one, other))
                else:
                    nearest.append((function, one, other))
            case _:
                raise UnsupportedError("this condition of an ASOF JOIN is not supported", span)
    if len(nearest) != 1:
        raise BindError("ASOF JOIN needs one inequality, by which the nearest row is found", span)
    ((function, value, other_value),) = nearest
    keeps_right = join_type in KEEPS_RIGHT
    if keeps_right and (of_right or TRUE in (other for _, other in keys)):
        raise UnsupportedError(
            f"a condition of one side in an ASOF {join_type.value.upper()} JOIN is not supported", span
        )
    return AsofJoin(
        left,
        Filter(right, conjunction(tuple(of_right))) if of_right else right,
        tuple(one for one, _ in keys),
        tuple(other for _, other in keys),
        value,
        other_value,
        from_above=function not in LOWER,
        is_strict=function in ("less", "greater"),
        keeps_left=join_type in (JoinType.LEFT, JoinType.FULL),
        keeps_right=keeps_right,
    )
