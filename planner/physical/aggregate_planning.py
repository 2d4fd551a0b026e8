"""Decisions about group-bys: how keys are packed into one code, and how rows find their group."""

from __future__ import annotations

from dataclasses import dataclass

from tqp.core.backends import Backend
from tqp.core.datatypes import BIGINT
from tqp.planner.algebra.derived import derived
from tqp.planner.algebra.expressions import ColumnRef, Expression
from tqp.planner.algebra.field_facts import key_codes
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.ranges import within
from tqp.planner.physical.algorithm_choice import Choice, PhysicalOptions
from tqp.planner.physical.dictionary_encoded_keys import encode_keys
from tqp.planner.physical.plan import GroupAlgorithm, KeyPacking, KeyPart, PhysicalPlan

_ALWAYS_DIRECT = 65_536
_LARGEST_DIRECT = 1 << 27
_LARGEST_WORD = 2**63 - 1
#: Accumulators that stay in the caches, about.
_CACHED_ACCUMULATORS = 1 << 20
#: Accumulators for each of the codes that could take their place, from which on these do.
_SPARSE = 8
#: Sorting a row costs about as much as clearing and reading this many accumulators.
_ACCUMULATORS_PER_SORTED_ROW = 4.0
#: From so many rows in a group on, looking each up in a table of all groups costs less than collecting it.
_ROWS_PER_HASHED_GROUP = 8.0


def _part(key: Expression, fields: FieldsById) -> KeyPart | None:
    codes = key_codes(key, fields)
    if codes is None or (key.data_type.is_integer_like and not within(value_range(key, fields), BIGINT)):
        return None
    return KeyPart(*codes)


def most_direct_groups(input_rows: float) -> float:
    """The accumulators that take no longer than sorting so many rows."""
    return min(_LARGEST_DIRECT, _ACCUMULATORS_PER_SORTED_ROW * input_rows)


@dataclass(frozen=True)
class GroupSituation:
    """What the choice depends on; `groups` is an estimate."""

    keys: tuple[Expression, ...]
    input: PhysicalPlan
    groups: float
    options: PhysicalOptions

    @derived
    def parts(self) -> list[KeyPart | None]:
        """How each key is packed by its value; None of one whose range is not known, or of no such type."""
        return [_part(key, self.input.field_facts) for key in self.keys]

    @derived
    def packing(self) -> KeyPacking | None:
        """The keys as one integer, by their values, NULL being code 0 of a nullable part; None if 63 bits are too few."""
        return KeyPacking.of(self.parts)

    @derived
    def encoded(self) -> KeyPacking | None:
        """The keys as one integer, by dictionaries of table columns."""
        if not self.options.is_on("direct_aggregate"):
            return None
        known, most = self.input.field_facts, most_direct_groups(self.input.estimated_rows)
        return encode_keys(self.keys, self.parts, known, self.input, most, self.options)

    @derived
    def word(self) -> KeyPacking | None:
        """The keys as one integer of any size: by their values, or several by dictionaries of table columns where these are too wide."""
        if (
            self.packing is not None
            or len(self.keys) == 1
            or not self.options.is_on("dictionary_encoded_keys")
        ):
            return self.packing
        return encode_keys(
            self.keys, self.parts, self.input.field_facts, self.input, _LARGEST_WORD, self.options
        )

    @property
    def is_small(self) -> bool:
        """Are there so few keys that no other way can be better?"""
        return self.packing is not None and self.packing.size <= _ALWAYS_DIRECT

    @property
    def is_dense(self) -> bool:
        """Do accumulators for all keys take no longer than sorting the rows?"""
        if self.is_small or self.packing is None:
            return self.is_small
        most = most_direct_groups(self.input.estimated_rows)
        return self.packing.size <= most and not self.is_sparse

    @property
    def is_sparse(self) -> bool:
        """Are accumulators for all keys far more than the caches hold, while those for the codes of their values are not?"""
        if self.packing is None or self.packing.size <= _CACHED_ACCUMULATORS:
            return False
        return self.encoded is not None and _SPARSE * self.encoded.size <= self.packing.size

    @property
    def is_clustered(self) -> bool:
        """Does the input come in order of the only key?"""
        if len(self.keys) != 1 or self.is_small or not isinstance(self.keys[0], ColumnRef):
            return False
        field = self.input.field_facts.get(self.keys[0].id)
        return field is not None and field.facts.is_sorted and not field.nullable

    @property
    def hashes(self) -> bool:
        """Are there few groups, each known by one word?"""
        types = [key.data_type for key in self.keys]
        is_number = len(types) == 1 and (
            types[0].is_float or (types[0].is_integer_like and within(types[0].bounds, BIGINT))
        )
        few = _ROWS_PER_HASHED_GROUP * self.groups <= self.input.estimated_rows
        if not few or self.options.backend is not Backend.HOST:
            return False
        return is_number or self.word is not None


DICTIONARY_ENCODED_KEYS: Choice[GroupSituation, GroupAlgorithm] = Choice(
    GroupAlgorithm.DIRECT, "dictionary_encoded_keys", lambda group: group.encoded is not None
)
#: In order of preference.
GROUP_CHOICES: tuple[Choice[GroupSituation, GroupAlgorithm], ...] = (
    Choice(GroupAlgorithm.SINGLE, None, lambda group: not group.keys),
    Choice(GroupAlgorithm.CLUSTERED, "clustered_aggregate", lambda group: group.is_clustered),
    Choice(GroupAlgorithm.DIRECT, "direct_aggregate", lambda group: group.is_dense),
    DICTIONARY_ENCODED_KEYS,
    Choice(GroupAlgorithm.HASH, "hash_aggregate", lambda group: group.hashes),
    Choice(GroupAlgorithm.SORT, None, lambda group: True),
)
