"""Which values of a column the build side of a join has: by two comparisons where its keys are all those of a range.

Days of a month or a year have numbers in a row, and so have the rows of many a table: comparing a value with both ends takes a
quarter of what packing it as a key and looking that up does.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.joins.pairs import ask_with_arrays
from tqp.operators.joins.perfect_hash_join import MembershipBuild
from tqp.operators.memory.arrays import Array, as_array
from tqp.operators.rows.keys import Part, pack

#: Rows for which it is worth to look at all keys that there may be, up to so many.
_MANY_ROWS, _MOST_KEYS = 65_536, 1 << 20


def values_in_build(values: Tensor, validity: Tensor | None, part: Part, build: Any) -> Tensor:
    """bool [n]: has the build side a row with the key? `values`: integers [n] that `part`, which has no NULL, packs into keys."""
    if is_host(values):
        return torch.from_numpy(values_in_build_array(as_array(values), as_array(validity), part, build))
    found: Tensor = build.contains(pack([(values, validity)], [part]), validity)
    return found


def values_in_build_array(values: Array, validity: Array | None, part: Part, build: Any) -> Array:
    """As `values_in_build`, of arrays."""
    keys = _range_of_keys(build) if values.shape[0] >= _MANY_ROWS else None
    if keys is None:
        found: Array = ask_with_arrays(build, "contains", pack([(values, validity)], [part]), validity)
        return found
    first, end = keys
    found = values >= first + part[0]
    found &= values < end + part[0]
    if validity is not None:
        found &= validity
    return found


def _range_of_keys(build: Any) -> tuple[int, int] | None:
    """[first, end) if these are the keys of the build side; None if they are others, or that takes long to tell."""
    if not isinstance(build, MembershipBuild) or build.table.shape[0] > _MOST_KEYS:
        return None
    present = build.table.numpy()
    first = int(present.argmax()) if present.shape[0] else 0
    end = present.shape[0] - int(present[::-1].argmax()) if present.any() else first
    return (first, end) if present[first:end].all() else None
