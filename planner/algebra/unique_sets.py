"""Column sets that identify a row, and what matching on keys follows from them."""

from __future__ import annotations

from collections.abc import Iterable

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef, Expression
from tqp.planner.algebra.join_keys import JoinKeys
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.algebra.value_ranges import value_range

#: Sets of column ids no two rows agree on (NULLs being equal). The empty set: there is at most one row.
UniqueSets = frozenset[frozenset[int]]

ONE_ROW: UniqueSets = frozenset((frozenset(),))
_MOST_UNIQUE_SETS = 8


def unique_columns(fields: Iterable[Field]) -> UniqueSets:
    """The columns of a table that are unique and never NULL, each a set."""
    return frozenset(
        frozenset((field.id,)) for field in fields if field.facts.is_unique and not field.nullable
    )


def renamed_sets(
    sets: UniqueSets, outputs: Iterable[Expression | Field], fields: Iterable[Field]
) -> UniqueSets:
    """Those of the sets whose columns all pass through as bare references, by the ids they have afterwards."""
    renamed = {
        output.id: field.id
        for output, field in zip(outputs, fields, strict=True)
        if isinstance(output, ColumnRef | Field)
    }
    return frozenset(
        frozenset(renamed[identifier] for identifier in unique)
        for unique in sets
        if all(identifier in renamed for identifier in unique)
    )


def few(sets: Iterable[frozenset[int]]) -> UniqueSets:
    """The smallest few, in a fixed order."""
    return frozenset(sorted(sets, key=lambda ids: (len(ids), sorted(ids)))[:_MOST_UNIQUE_SETS])


def all_find_one(keys: JoinKeys, fields: Fields, others: Fields, rows: int | None) -> bool:
    """True if each row with these fields has exactly one partner among `rows` rows of `others`: they hold every key there can be."""
    if len(keys.left) != 1 or keys.residual:
        return False
    (left,), (right,) = keys.left, keys.right
    field = others.get(right.id) if isinstance(right, ColumnRef) else None
    if field is None or field.nullable or not field.facts.is_unique:
        return False
    asked, known = value_range(left, fields), value_range(right, others)
    if asked is None or known is None or nullable(left, fields):
        return False
    return known[1] - known[0] + 1 == rows and known[0] <= asked[0] and asked[1] <= known[1]
