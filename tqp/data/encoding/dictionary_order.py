"""The order of a dictionary whose entries are stored as they came: made when a query first asks for it, kept with the column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.data.arrow_buffers import AnyArray
from tqp.data.column import Column
from tqp.data.encoding.integers import narrowest
from tqp.data.encoding.string_views import as_binary
from tqp.data.sharing import WORTH_SHARING, share, threads_at_work
from tqp.data.string_buffers import string_array
from tqp.data.strings import Strings

#: Values that are looked at for each part, to tell parts of about one size.
_SAMPLE = 64


@dataclass(frozen=True, slots=True)
class DictionaryOrder:
    """`ranks`: integers [k], the place of each entry among all; `entries`: these in order, over the same bytes."""

    KEPT: ClassVar[str] = "order of dictionary"

    ranks: Tensor
    entries: Strings

    @property
    def nbytes(self) -> int:
        """Without the bytes of the strings, which are the column's."""
        return self.ranks.nbytes + self.entries.starts.nbytes + self.entries.lengths.nbytes


def dtype_of_ranks(num_entries: int) -> torch.dtype:
    """How wide the ranks of so many entries are."""
    return torch.from_numpy(np.empty(0, narrowest(0, max(num_entries - 1, 0)))).dtype


def order_of_dictionary(column: Column) -> DictionaryOrder:
    """That of a column whose pool is a dictionary."""
    pool = column.pool
    assert pool is not None
    entries = Column(column.data_type, pool.num_rows, None, None, pool)
    order = sorted_places(as_binary(string_array(entries)))
    ranks = np.empty(len(order), narrowest(0, max(len(order) - 1, 0)))
    ranks[order] = np.arange(len(order))
    places = torch.from_numpy(order).to(pool.starts.device)
    in_order = Strings(pool.starts[places], pool.lengths[places], pool.data)
    return DictionaryOrder(torch.from_numpy(ranks).to(pool.starts.device), in_order)


def sorted_places(values: pa.Array) -> AnyArray:
    """The places of large_binary values, none NULL, in the order of these: int64 [n]; parts of the range are shared among threads."""
    [parts] = parts_by_range([values])
    if len(parts) == 1:
        whole: AnyArray = pc.array_sort_indices(values).to_numpy().astype(np.int64)
        return whole

    def ordered(rows: AnyArray) -> AnyArray:
        found: AnyArray = pc.array_sort_indices(values.take(pa.array(rows))).to_numpy()
        return rows[found]

    return np.concatenate(share(ordered, parts))


def parts_by_range(arrays: Sequence[pa.Array]) -> list[list[AnyArray]]:
    """Of each array of large_binary values the rows of each part, int64 ascending; all values of a part are less than those of the next.

    As many parts as threads are at work, of about one size if the first array is like the others; one of few values.
    """
    parts = threads_at_work() if sum(map(len, arrays)) >= WORTH_SHARING else 1
    if parts == 1:
        return [[np.arange(len(array))] for array in arrays]
    longest = max(arrays, key=len)
    places = np.linspace(0, len(longest) - 1, parts * _SAMPLE).astype(np.int64)
    sample = longest.take(pa.array(places)).unique()
    sample = sample.take(pc.array_sort_indices(sample))
    pivots = [sample[len(sample) * part // parts] for part in range(1, parts)]

    def rows(array: pa.Array) -> list[AnyArray]:
        numbers = np.zeros(len(array), np.int16)
        for pivot in pivots:
            numbers += pc.greater_equal(array, pivot).to_numpy(zero_copy_only=False)
        return [np.flatnonzero(numbers == part) for part in range(parts)]

    return share(rows, arrays)
