"""Joins as the algebra sees them: the kinds, and a condition split into equality keys and a residual."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

from tqp.core.datatypes import BIGINT, DataType
from tqp.core.frozen import dataclass
from tqp.planner.algebra.expressions import Call, Cast, ColumnRef, Expression, column_ids
from tqp.planner.functions.conditions import ORDERINGS, UPPER
from tqp.planner.functions.ranges import within


class JoinType(Enum):
    """The rows a join puts out. `left` is the preserved side of LEFT, SEMI, ANTI, MARK and SINGLE.

    A cross join is INNER with condition TRUE. Joins are never RIGHT, as the binder swaps their inputs: ASOF joins are, which
    have no mirror image, and physical joins whose preserved side is built.
    """

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"  # left rows with at least one match
    ANTI = "anti"  # left rows without a match
    # NOT IN: left rows where the condition is false (not NULL) for every right row
    NULL_AWARE_ANTI = "null-aware anti"
    MARK = "mark"  # every left row, plus a boolean column: any match (true), unknown (NULL), none (false)
    SINGLE = "single"  # LEFT, and an ExecutionError where a left row has more than one match


#: Join types that ask whether a right row matches, not which: their output holds columns of the left side only.
LEFT_ONLY = (JoinType.SEMI, JoinType.ANTI, JoinType.NULL_AWARE_ANTI, JoinType.MARK)
#: Join types for which a condition that is NULL and one that is false differ.
THREE_VALUED = (JoinType.MARK, JoinType.NULL_AWARE_ANTI)
#: Join types whose output holds the columns of both inputs.
TWO_SIDED = (JoinType.INNER, JoinType.LEFT, JoinType.RIGHT, JoinType.FULL, JoinType.SINGLE)
#: Join types whose output holds right rows without a match.
KEEPS_RIGHT = (JoinType.RIGHT, JoinType.FULL)
#: Join types that drop left rows without a match.
DROPS_LEFT = (JoinType.INNER, JoinType.RIGHT, JoinType.SEMI)


@dataclass(frozen=True, slots=True)
class JoinKeys:
    """`left[i] = right[i]` (or IS NOT DISTINCT FROM, where `null_equal[i]`) for all i, and every part of `residual`."""

    left: tuple[Expression, ...]
    right: tuple[Expression, ...]
    null_equal: tuple[bool, ...]
    residual: tuple[Expression, ...]

    def swapped(self) -> JoinKeys:
        """With the sides exchanged."""
        return JoinKeys(self.right, self.left, self.null_equal, self.residual)


def is_two_sided(parts: Iterable[Expression], left_ids: Collection[int], right_ids: Collection[int]) -> bool:
    """Do some parts bound an expression of one side from below by the other side, and some from above?"""
    left_is_less = {
        (part.function in UPPER) == _within(first_ids, left_ids)
        for part in parts
        if isinstance(part, Call) and part.function in ORDERINGS
        for first_ids, second_ids in [[column_ids(side) for side in part.arguments]]
        if first_ids and second_ids
        if _within(first_ids, left_ids)
        and _within(second_ids, right_ids)
        or _within(first_ids, right_ids)
        and _within(second_ids, left_ids)
    }
    return len(left_is_less) == 2


def is_word(data_type: DataType) -> bool:
    """Has each value of the type a word of 64 bits that is as great as the value is?"""
    return data_type.is_float or (data_type.is_integer_like and within(data_type.bounds, BIGINT))


def key_column(key: Expression) -> int | None:
    """The column whose values a key maps one to one: a bare reference, or one below casts that lose nothing."""
    while isinstance(key, Cast) and _is_injective(key):
        key = key.input
    return key.id if isinstance(key, ColumnRef) else None


def _within(ids: frozenset[int], all_ids: Collection[int]) -> bool:
    return all(identifier in all_ids for identifier in ids)


def _is_injective(cast: Cast) -> bool:
    """Integers and decimals to integers and decimals of no smaller scale: exact, or an error."""
    source, target = cast.input.data_type, cast.data_type
    exact = (source.is_integer or source.is_decimal) and (target.is_integer or target.is_decimal)
    return not cast.is_try and exact and target.scale >= source.scale
