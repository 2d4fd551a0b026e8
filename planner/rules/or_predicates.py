"""Rewrites of OR: what it implies about some columns alone, its common conjuncts, IN lists."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tqp.core.datatypes import BOOLEAN
from tqp.planner.algebra.expressions import (
    Call,
    Constant,
    Expression,
    InList,
    Literal,
    Parameter,
    column_ids,
    conjunction,
    conjuncts,
)


def branches_of(part: Expression) -> tuple[Expression, ...]:
    """Split at top-level ORs."""
    if isinstance(part, Call) and part.function == "or":
        return tuple(branch for argument in part.arguments for branch in branches_of(argument))
    return (part,)


def implied_by_branches(part: Expression, available: Collection[int]) -> list[Expression]:
    """What an OR that also reads other columns implies about the `available` ones: an OR of each branch's share.

    (a = 1 and b = 2) or (a = 3 and b = 4) implies a = 1 or a = 3.
    """
    branches = branches_of(part)
    if len(branches) < 2:
        return []
    shares = []
    for branch in branches:
        share = tuple(
            piece for piece in conjuncts(branch) if (ids := column_ids(piece)) and ids <= set(available)
        )
        if not share:
            return []
        shares.append(conjunction(share))
    return list(conjuncts(any_of(shares)))


def any_of(branches: Sequence[Expression]) -> Expression:
    """The OR of the branches: repeats dropped, common conjuncts factored out, equalities of one column as a list."""
    branches = list(dict.fromkeys(piece for branch in branches for piece in branches_of(branch)))
    common = [
        piece
        for piece in conjuncts(branches[0])
        if all(piece in conjuncts(branch) for branch in branches[1:])
    ]
    rest = []
    for branch in branches:
        own = tuple(piece for piece in conjuncts(branch) if piece not in common)
        if not own:  # a or (a and b) is a
            return conjunction(tuple(common))
        rest.append(conjunction(own))
    rest = _with_lists(rest)
    combined = rest[0] if len(rest) == 1 else Call("or", tuple(rest), BOOLEAN)
    return conjunction((*common, *conjuncts(combined)))


def _with_lists(branches: list[Expression]) -> list[Expression]:
    """x = 1 or x = 2 or x in (3, 4) becomes x in (1, 2, 3, 4), at the place of the first."""
    values: dict[Expression, dict[Constant, None]] = {}
    for branch in branches:
        operand, listed = _list_of(branch)
        values.setdefault(operand, {}).update(dict.fromkeys(listed))
    result: dict[Expression, None] = {}
    for branch in branches:
        operand, listed = _list_of(branch)
        if listed and len(values[operand]) > 1:
            branch = InList(operand, tuple(values[operand]))
        result[branch] = None
    return list(result)


def _list_of(branch: Expression) -> tuple[Expression, tuple[Constant, ...]]:
    """What is looked for in which constants; in none, where that is not what the branch does."""
    match branch:
        case Call(function="equal", arguments=(operand, Literal() | Parameter() as constant)) if (
            constant != Literal(None, constant.data_type) and not isinstance(operand, Literal)
        ):
            return operand, (constant,)
        case InList():
            return branch.input, branch.values
    return branch, ()
