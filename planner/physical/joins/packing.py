"""The keys of a join: packed into one integer, fewer of them, without NULLs that cannot match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tqp.core.datatypes import BIGINT, BOOLEAN
from tqp.core.frozen import dataclass
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression
from tqp.planner.algebra.join_keys import THREE_VALUED, JoinKeys, JoinType
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.ranges import Range, Ranges, within
from tqp.planner.physical.joins.costs import OFFSET, TABLE_ENTRY, is_dense
from tqp.planner.physical.plan import KeyPacking, KeyPart

#: Entries that a table may have too many, to save subtracting the least key of each row.
_FREE_ENTRIES = 1 << 12
_LARGEST_PACKED = (1 << 62) - 1
#: Build rows that share the one key that stands for several, at most: each is a pair, for which the others are compared.
MOST_CANDIDATES = 16.0


def single_key(keys: JoinKeys, position: int) -> JoinKeys:
    """The key at one position, alone."""
    return JoinKeys((keys.left[position],), (keys.right[position],), (keys.null_equal[position],), ())


def dense_span(
    keys: JoinKeys, probe: FieldsById, build: FieldsById, dictionaries: Mapping[int, int], rows: float
) -> int | None:
    """The size of a packing of the keys if a table of that size pays for joins of about so many rows."""
    packing = pack_join_keys(keys, probe, build, dictionaries, None)
    return packing.size if packing is not None and fits_table(packing, rows) else None


def fits_table(packing: KeyPacking, rows: float) -> bool:
    """Does a table over the packed keys pay for joins of about so many rows?

    One of several keys has to pay against that of a single key, whose entries are fewer and stay in the caches.
    """
    return is_dense(packing.size, rows, 0.0, OFFSET if len(packing.parts) > 1 else TABLE_ENTRY)


@dataclass(frozen=True)
class KeyAlone:
    """One of several keys, if pairs were found by it alone."""

    candidates: float  # build rows that share a value of it, on average
    pairs: float  # of a probe row, expected
    span: int | None  # its range, if dense
    saved: float  # by a runtime filter on it


def reduce_keys(keys: JoinKeys, alone: Sequence[KeyAlone], worth: float) -> JoinKeys:
    """One dense key instead of several that are not dense together; the other equalities become residual.

    `worth`: how many pairs of a probe row cost as much as hashing all keys.
    """
    usable = [
        position
        for position, key in enumerate(alone)
        if key.span is not None
        and key.candidates <= MOST_CANDIDATES
        and (key.saved or key.pairs <= worth)
        and not keys.null_equal[position]
    ]
    if not usable:
        return keys
    best = min(usable, key=lambda at: (-alone[at].saved, alone[at].pairs))
    rest = tuple(
        Call("is_not_distinct_from" if null_equal else "equal", (left, right), BOOLEAN)
        for position, (left, right, null_equal) in enumerate(
            zip(keys.left, keys.right, keys.null_equal, strict=True)
        )
        if position != best
    )
    return JoinKeys((keys.left[best],), (keys.right[best],), (False,), rest + keys.residual)


def pack_join_keys(
    keys: JoinKeys,
    probe: FieldsById,
    build: FieldsById,
    dictionaries: Mapping[int, int],
    filtered: Sequence[Range] | None,
) -> KeyPacking | None:
    """A packing that covers the values of both sides, and the `filtered` ranges where a runtime filter looks keys up.

    Strings are numbered by the dictionary of a table column that is the key of one side, the probe side's if it has one;
    `dictionaries` gives the sizes by column id.
    A part is nullable only where NULLs match; elsewhere a row with a NULL key is dropped before it is packed.
    """
    parts = []
    for position, (left, right) in enumerate(zip(keys.left, keys.right, strict=True)):
        ranges = [value_range(left, probe), value_range(right, build)]
        if filtered is not None:
            ranges.append(filtered[position])
        free = _FREE_ENTRIES if len(keys.left) == 1 else 0
        parts.append(_part(left, right, keys.null_equal[position], ranges, free, dictionaries))
    return KeyPacking.of(parts, _LARGEST_PACKED)


def _part(
    left: Expression,
    right: Expression,
    null_equal: bool,
    ranges: Ranges,
    free: int,
    dictionaries: Mapping[int, int],
) -> KeyPart | None:
    """One key whose values lie in the `ranges`; from 0 on, as its own code, if that makes no more than `free` more of them."""
    if left.data_type != right.data_type:
        return None
    if left.data_type.is_string:
        columns = (key.id for key in (left, right) if isinstance(key, ColumnRef) and key.id in dictionaries)
        column = next(columns, None)
        return (
            None if column is None else KeyPart(0, dictionaries[column] + 1 + null_equal, null_equal, column)
        )
    known = [pair for pair in ranges if pair is not None]
    if not left.data_type.is_integer_like or len(known) < len(ranges):
        return None
    low, high = min(pair[0] for pair in known), max(pair[1] for pair in known)
    if not within((low, high), BIGINT):
        return None
    if 0 < low <= free and not null_equal:
        low = 0
    return KeyPart(low, high - low + 1 + null_equal, null_equal)


def match_plain_nulls(keys: JoinKeys, join_type: JoinType, probe: FieldsById, build: FieldsById) -> JoinKeys:
    """The keys with IS NOT DISTINCT FROM turned into = where one side is never NULL (then no two NULLs meet).

    Not where NULL and false differ; nor where a probe key may raise, which it does where a build row has a key, be it NULL.
    """
    if not any(keys.null_equal) or join_type in THREE_VALUED:
        return keys
    null_equal = tuple(
        matches and nullable(right, build) and (nullable(left, probe) or may_raise(left, probe))
        for left, right, matches in zip(keys.left, keys.right, keys.null_equal, strict=True)
    )
    return replace(keys, null_equal=null_equal)


def plain_join_type(join_type: JoinType, keys: JoinKeys, probe: FieldsById, build: FieldsById) -> JoinType:
    """ANTI for a NULL_AWARE_ANTI join whose condition is never NULL."""
    if join_type is JoinType.NULL_AWARE_ANTI and not _condition_may_be_null(keys, {**probe, **build}):
        return JoinType.ANTI
    return join_type


def keys_for_three_values(
    join_type: JoinType, keys: JoinKeys, probe: FieldsById, build: FieldsById
) -> JoinKeys:
    """Only keys of which a pair that they do not find cannot make the outcome NULL: all of MARK and NULL_AWARE_ANTI else are compared.

    That is one key alone, any where nothing can be NULL, and those whose comparison never is.
    """
    if join_type not in THREE_VALUED:
        return keys
    fields = {**probe, **build}
    single = len(keys.left) == 1 and not keys.residual and not keys.null_equal[0]
    if single or not _condition_may_be_null(keys, fields):
        return keys
    pairs = [*zip(keys.left, keys.right, keys.null_equal, strict=True)]
    kept = [pair for pair in pairs if pair[2] or not any(nullable(key, fields) for key in pair[:2])]
    compared = tuple(Call("equal", pair[:2], BOOLEAN) for pair in pairs if pair not in kept)
    return JoinKeys(
        tuple(left for left, _, _ in kept),
        tuple(right for _, right, _ in kept),
        tuple(null_equal for _, _, null_equal in kept),
        compared + keys.residual,
    )


def _condition_may_be_null(keys: JoinKeys, fields: FieldsById) -> bool:
    compared = zip((*keys.left, *keys.right), keys.null_equal * 2, strict=True)
    return any(not null_equal and nullable(key, fields) for key, null_equal in compared) or any(
        nullable(part, fields) for part in keys.residual
    )
