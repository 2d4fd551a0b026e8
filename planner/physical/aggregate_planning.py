"""Decisions about group-bys: how keys are packed into one code, and how rows find their group."""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.backends import Backend
from tqp.core.datatypes import TypeKind
from tqp.planner.algebra.expressions import ColumnRef, Expression, literal_labels
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.null_facts import nullable
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.physical.plan import GroupAlgorithm, KeyPacking, KeyPart

_ALWAYS_DIRECT = 65_536
_LARGEST_DIRECT = 1 << 27
_LARGEST_PACKED = 1 << 63
_INT64 = (-(2**63), 2**63 - 1)
#: Sorting a row costs about as much as clearing and reading this many accumulators.
_ACCUMULATORS_PER_SORTED_ROW = 4.0
#: From so many rows in a group on, looking each up in a table of all groups costs less than collecting it.
_ROWS_PER_HASHED_GROUP = 8.0


def pack_group_keys(keys: Sequence[Expression], fields: FieldsById) -> KeyPacking | None:
    """A packing of the keys, NULL being code 0 of a nullable part; None if a range is unknown or 63 bits too few.

    A bare dictionary-encoded string, and a CASE between literals, is packed by its dictionary code, a boolean as 0 and 1.
    """
    parts: list[KeyPart] = []
    size = 1
    for part in key_parts(keys, fields):
        if part is None:
            return None
        size *= part.span
        if size >= _LARGEST_PACKED:
            return None
        parts.append(part)
    return KeyPacking(tuple(parts), size) if parts else None


def key_parts(keys: Sequence[Expression], fields: FieldsById) -> list[KeyPart | None]:
    """How each key is packed by its value; None of one whose range is not known, or of no such type."""
    return [_part(key, fields) for key in keys]


def _part(key: Expression, fields: FieldsById) -> KeyPart | None:
    can_be_null = nullable(key, fields)
    if key.data_type.is_integer_like:
        known = value_range(key, fields)
        if known is None or known[0] < _INT64[0] or known[1] > _INT64[1]:
            return None
        return KeyPart(known[0], known[1] - known[0] + 1 + can_be_null, can_be_null)
    if key.data_type.kind is TypeKind.BOOLEAN:
        return KeyPart(0, 2 + can_be_null, can_be_null)
    if labels := literal_labels(key):
        return KeyPart(0, len(labels) + can_be_null, can_be_null)
    field = fields.get(key.id) if isinstance(key, ColumnRef) else None
    if field is None or not field.data_type.is_string or field.statistics.dictionary_size is None:
        return None
    return KeyPart(0, max(1, field.statistics.dictionary_size) + can_be_null, can_be_null)


def choose_grouping(
    keys: Sequence[Expression],
    fields: FieldsById,
    packing: KeyPacking | None,
    input_rows: float,
    groups: float,
    backend: Backend,
    disabled_rules: frozenset[str],
) -> GroupAlgorithm:
    """DIRECT while the key range is small against the rows, CLUSTERED on a sorted key, HASH for few groups, else SORT."""
    if not keys:
        return GroupAlgorithm.SINGLE
    small = packing is not None and packing.size <= _ALWAYS_DIRECT
    if len(keys) == 1 and not small and "clustered_aggregate" not in disabled_rules:
        key = keys[0]
        field = fields.get(key.id) if isinstance(key, ColumnRef) else None
        if field is not None and field.statistics.is_sorted and not field.nullable:
            return GroupAlgorithm.CLUSTERED
    dense = packing is not None and packing.size <= most_direct_groups(input_rows)
    if (small or dense) and "direct_aggregate" not in disabled_rules:
        return GroupAlgorithm.DIRECT
    one_word = packing is not None or (len(keys) == 1 and _is_integer(keys[0]))
    few = _ROWS_PER_HASHED_GROUP * groups <= input_rows
    if one_word and few and backend is Backend.HOST and "hash_aggregate" not in disabled_rules:
        return GroupAlgorithm.HASH
    return GroupAlgorithm.SORT


def most_direct_groups(input_rows: float) -> float:
    """The accumulators that take no longer than sorting so many rows."""
    return min(_LARGEST_DIRECT, _ACCUMULATORS_PER_SORTED_ROW * input_rows)


def _is_integer(key: Expression) -> bool:
    """Is it a number of 64 bits?"""
    if not key.data_type.is_integer_like:
        return False
    low, high = key.data_type.bounds
    return _INT64[0] <= low and high <= _INT64[1]
