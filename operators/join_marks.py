"""Marks of IN for join builds whose matches had to be compared first (hashed keys)."""

from __future__ import annotations

from torch import Tensor

from tqp.operators.join_pairs import Membership


def marks_of_found(build: Membership, found: Tensor, validity: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """(values, validity) of `x IN (build)` where `found`, bool [n], tells which x are; `validity` is that of x.

    Nothing is IN an empty set, NULL included. Else, where x is NULL, or where the set holds a NULL but not x: NULL.
    """
    if build.nulls.is_empty:
        return found, None
    if build.nulls.has_null:
        return found, found  # a NULL x is not found either
    return found, validity
