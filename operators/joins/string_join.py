"""String join: one string key. Numbers take the place of the strings where the bytes of the build rows allow it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.joins.hash_join import Workers, build_hash
from tqp.operators.joins.pairs import BuildNulls, JoinBuild, Membership, build_nulls, first_by_row
from tqp.operators.joins.perfect_hash_join import build_membership, build_perfect_hash
from tqp.operators.joins.sort_join import build_sorted
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.string_keys.byte_numbers import StringNumbers, number_strings
from tqp.operators.string_keys.hash import hash64
from tqp.operators.strings.compare import equal
from tqp.operators.strings.layout import take as take_strings

#: Numbers up to which a table of them is always small enough, and entries of a larger one for each build row.
_FREE_ENTRIES, _ENTRIES_PER_ROW = 1 << 20, 8


@dataclass(frozen=True, slots=True)
class EncodedStrings:
    """A build on the numbers of the strings (see `StringNumbers`), which tell all that there is to tell."""

    numbers: StringNumbers
    build: Membership | JoinBuild
    nulls: BuildNulls

    @property
    def unique(self) -> bool:
        return self._join.unique

    def matches(self, keys: Strings, validity: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All pairs (probe_rows, build_rows) with equal keys, ordered by probe row, then build row."""
        return self._join.matches(self.numbers.number(keys, validity))

    def contains(self, keys: Strings, validity: Tensor | None = None) -> Tensor:
        """bool [n]: has the probe row a match?"""
        return self.build.contains(self.numbers.number(keys, validity))

    def first_match(self, keys: Strings, validity: Tensor | None = None) -> Tensor:
        """int32 [n]: the first build row that matches, or -1."""
        return self._join.first_match(self.numbers.number(keys, validity))

    @property
    def _join(self) -> JoinBuild:
        return self.build  # type: ignore[return-value]  # of a bare set only `contains` is asked


@dataclass(frozen=True, slots=True)
class HashedStrings:
    """A build on hashes; pairs with equal hashes are compared."""

    strings: Strings
    build: JoinBuild
    nulls: BuildNulls
    unique: ClassVar[bool] = False

    def matches(self, keys: Strings, validity: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All pairs (probe_rows, build_rows) with equal keys, ordered by probe row, then build row."""
        probe_rows, build_rows = self.build.matches(hash64(keys), validity)
        same = equal(take_strings(keys, probe_rows), take_strings(self.strings, build_rows))
        kept = row_indices(same)
        return take(probe_rows, kept), take(build_rows, kept)

    def contains(self, keys: Strings, validity: Tensor | None = None) -> Tensor:
        """bool [n]: has the probe row a match?"""
        return self.first_match(keys, validity) >= 0

    def first_match(self, keys: Strings, validity: Tensor | None = None) -> Tensor:
        """int32 [n]: the first build row that matches, or -1.

        It is nearly always the first one with the hash; only of other strings with that hash all are looked at.
        """
        found = self.build.first_match(hash64(keys), validity)
        hits = row_indices(found >= 0)
        differ = ~equal(take_strings(keys, hits), take_strings(self.strings, take(found, hits)))
        if not any_true(differ):
            return found
        others = take(hits, row_indices(differ))
        pairs = self.matches(take_strings(keys, others))
        return found.index_copy(0, others, first_by_row(*pairs, others.shape[0]).to(found.dtype))


def build_strings(
    strings: Strings, validity: Tensor | None, workers: Workers, *, existence_only: bool = False
) -> EncodedStrings | HashedStrings:
    """The build rows by their string; NULL rows are left out. With `existence_only`, `contains` is all that is asked.

    By number in a table where the numbers are not many more than the rows, else by number in a hash table, else by hash.
    """
    nulls = build_nulls(strings.lengths, validity)
    valid = strings if validity is None else take_strings(strings, row_indices(validity))
    numbers = number_strings(valid, workers.map)
    if numbers is None:
        return HashedStrings(strings, _by_word(hash64(strings), validity, workers), nulls)
    codes = numbers.number(strings, validity, workers.map)
    if numbers.size > max(_FREE_ENTRIES, _ENTRIES_PER_ROW * valid.num_rows):
        return EncodedStrings(numbers, _by_word(codes, validity, workers), nulls)
    in_table = build_membership if existence_only else build_perfect_hash
    return EncodedStrings(numbers, in_table(codes, numbers.size + 1, validity), nulls)


def _by_word(words: Tensor, validity: Tensor | None, workers: Workers) -> JoinBuild:
    if is_host(words):
        return build_hash(words.to(torch.int64), validity, workers)
    return build_sorted(words, validity)
