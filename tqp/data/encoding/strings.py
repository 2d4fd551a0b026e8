"""VARCHAR and BLOB columns: narrow codes into a dictionary where values repeat, else slices of Arrow's bytes.

The entries of a small dictionary are sorted. Those of a large one stand as they came: `dictionary_order.py` has their order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from tqp.core.datatypes import VARCHAR, DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.schema import ColumnEstimates, ColumnFacts
from tqp.data.arrow_buffers import AnyArray, BoolArray, tensor_of, validity_of, values_view
from tqp.data.column import Column
from tqp.data.encoding.column_facts import BLOCK, SAMPLE, ascends, frequent_places, scale_distinct, spread
from tqp.data.encoding.dictionary_order import parts_by_range, sorted_places
from tqp.data.encoding.integers import joined_parts, joined_validity, narrowest
from tqp.data.encoding.string_views import as_binary, encode_few, strings_of_views, take_rows
from tqp.data.sharing import WORTH_SHARING, share, threads_at_work
from tqp.data.string_buffers import is_utf8, strings_of
from tqp.data.strings import Strings

#: Rows that are all looked at to tell how many strings are distinct, and rows that are looked at where there are more.
_ALL, _SAMPLE = 10_000, 4_096
#: Rows for each entry of a dictionary at least, and for each of one of long strings: of these a row has so many bytes in the mean.
#: Shorter ones are packed into integers and grouped several times while they would be encoded once.
_ROWS, _ROWS_OF_LONG, _LONG = 8, 2, 32
#: Entries at most, of a dictionary of short strings.
_MAX_ENTRIES = 1_000_000
#: Up to so many entries are sorted at once: that takes 4 ms at most.
_SORTED = 16_384
#: Up to this many rows a dictionary costs a few milliseconds once, even where all values differ, and gives the group-bys, sorts and
#: joins of each query that reads a dimension table dense keys.
_SMALL_TABLE = 32_768
#: Up to so many distinct strings, pieces of a chunk have dictionaries of their own, so that threads share them; of so many rows.
_FEW_ENTRIES, _PIECE = 1_024, 262_144


def encode_strings(
    name: str, chunks: Sequence[pa.Array], data_type: DataType, *, are_distinct: bool = False
) -> Column:
    """A Column on the CPU from string or binary arrays of any kind (all of one type), dictionary arrays included.

    `are_distinct`: whether no dictionary is known to hold an entry twice, which takes a hash table to find out. Raises ExecutionError for VARCHAR that is not UTF-8, which neither Arrow nor Parquet readers look at.
    """
    column = _encoded(name, chunks, data_type, are_distinct)
    if column.pool is not None:
        check_text(name, column.pool, data_type)
    return column


def check_text(name: str, strings: Strings, data_type: DataType) -> None:
    """Raises ExecutionError for VARCHAR that is not UTF-8."""
    if data_type.kind is TypeKind.VARCHAR and not is_utf8(strings):
        raise ExecutionError(
            f'column "{name}" holds text that is not UTF-8; cast it to binary before registering the table, or decode it'
        )


def _encoded(name: str, chunks: Sequence[pa.Array], data_type: DataType, are_distinct: bool) -> Column:
    num_rows = sum(len(chunk) for chunk in chunks)
    if num_rows and pa.types.is_dictionary(chunks[0].type):
        limit = min(max(num_rows // 2, 1), _MAX_ENTRIES)
        column = _dictionary_column(name, chunks, data_type, limit, are_distinct=are_distinct)
        if column is not None:
            return column
        chunks = [as_binary(chunk.dictionary).take(chunk.indices) for chunk in chunks]
    if 0 < num_rows <= _SMALL_TABLE:
        whole = _coded(pa.chunked_array(chunks))
        column = _dictionary_column(name, [whole], data_type, num_rows, are_exact=True)
        assert column is not None
        return column
    estimates, is_unique, sample, mean = _estimate(chunks, num_rows, data_type)
    distinct = estimates.distinct_count or 0.0
    limit = num_rows // _ROWS_OF_LONG if mean >= _LONG else min(num_rows // _ROWS, _MAX_ENTRIES)
    if num_rows and distinct <= limit:
        encoded = encode_few(chunks, sample, limit)
        if encoded is not None:
            codes, entries = encoded
            return _column_of_codes(name, codes, entries, joined_validity(chunks), data_type)
        coded = share(_coded, _pieces(chunks, num_rows, distinct))
        column = _dictionary_column(name, coded, data_type, limit, are_exact=True)
        if column is not None:
            return column
    validity = joined_validity(chunks)
    pool = strings_of_views(chunks)
    if pool is None:
        pool = strings_of(name, [as_binary(chunk) for chunk in chunks], validity)
    facts = ColumnFacts(is_unique=is_unique)
    return Column(data_type, num_rows, None, tensor_of(validity), pool, facts=facts, estimates=estimates)


def _pieces(chunks: Sequence[pa.Array], num_rows: int, distinct: float) -> list[pa.ChunkedArray]:
    """Consecutive rows that have a dictionary of their own: one for each thread, as their entries are merged afterwards."""
    size = _PIECE
    if distinct > _FEW_ENTRIES:
        size = max(-(-num_rows // threads_at_work()), WORTH_SHARING)
    whole = pa.chunked_array(chunks)
    return [whole.slice(start, size) for start in range(0, num_rows, size)]


def _coded(piece: pa.ChunkedArray) -> pa.DictionaryArray:
    found = pc.dictionary_encode(pa.chunked_array(map(as_binary, piece.chunks))).chunks
    indices = pa.concat_arrays([chunk.indices for chunk in found])
    return pa.DictionaryArray.from_arrays(indices, found[-1].dictionary, safe=False)


def dictionary_codes(name: str, array: pa.Array) -> torch.Tensor:
    """For each row of a string or binary array, its place among the array's distinct values in byte order; int64 [n]."""
    if len(array) == 0:
        return torch.empty(0, dtype=torch.int64)
    coded = [pc.dictionary_encode(as_binary(array))]
    column = _dictionary_column(name, coded, VARCHAR, len(array), are_exact=True, sorts=True)
    assert column is not None and column.values is not None
    return column.values.long()


class _Codes(NamedTuple):
    """A row is the entry of that place in a dictionary: large_binary, distinct, none NULL."""

    indices: AnyArray  # integers [n]; anything under NULL
    validity: BoolArray | None
    dictionary: pa.Array
    first: int  # the number of its first row in the column

    @property
    def rows(self) -> slice:
        return slice(self.first, self.first + len(self.indices))

    def blocks(self) -> Iterator[tuple[slice, AnyArray]]:
        """Some rows after others, and their indices, of NULL too, as int32."""
        for start in range(0, len(self.indices), BLOCK):
            rows = slice(start, start + BLOCK)
            indices = self.indices[rows].astype(np.int32, copy=False)
            yield rows, indices if self.validity is None else indices * self.validity[rows]

    def used(self) -> AnyArray:
        """The places that valid rows have, ascending."""
        seen = np.zeros(len(self.dictionary), np.bool_)
        for start in range(0, len(self.indices), BLOCK):
            rows = slice(start, start + BLOCK)
            indices = self.indices[rows]
            seen[indices if self.validity is None else indices[self.validity[rows]]] = True
            if seen.all():
                break
        return np.flatnonzero(seen)


def _dictionary_column(
    name: str,
    chunks: Sequence[pa.DictionaryArray],
    data_type: DataType,
    limit: int,
    are_exact: bool = False,
    are_distinct: bool = False,
    sorts: bool = False,
) -> Column | None:
    """The column of dictionary arrays with one dictionary of the entries in use; None if those are more than `limit`.

    `are_exact`: as Arrow has just made them, of distinct entries that are all in use. `are_distinct`: of distinct entries. `sorts`: whether it is sorted however many
    entries it has. Raises ExecutionError for a place that a dictionary does not have, as a damaged file may hold.
    """
    parts = share(partial(_codes_of, is_distinct=are_exact or are_distinct), chunks)
    firsts = itertools.accumulate((len(part.indices) for part in parts), initial=0)
    parts = [part._replace(first=first) for part, first in zip(parts, firsts, strict=False)]
    if are_exact and any(len(part.dictionary) > limit for part in parts):
        return None
    merged, places = _merged([part.dictionary for part in parts])
    used = np.full(len(merged), are_exact)

    def mark(number: int) -> bool:
        """Whether all places of a part are in its dictionary."""
        part = parts[number]
        if not _are_places(part):
            return False
        if not used[places[number]].all():
            used[places[number][part.used()]] = True
        return True

    if not are_exact and not all(share(mark, range(len(parts)))):
        raise ExecutionError(f'column "{name}" cannot be read: its codes are not in its dictionary')
    num_entries = int(np.count_nonzero(used))
    if num_entries > limit:
        return None
    is_sorted = sorts or num_entries <= _SORTED
    order = sorted_places(merged) if is_sorted else np.arange(len(merged))
    order = order[used[order]]
    rank = np.zeros(len(merged), narrowest(0, max(num_entries - 1, 0)))
    rank[order] = np.arange(num_entries)
    if is_sorted or num_entries < len(merged):
        merged = merged.take(pa.array(order))
    codes = np.empty(sum(len(part.indices) for part in parts), rank.dtype)

    def write(number: int) -> None:
        part, written = parts[number], codes[parts[number].rows]
        if len(part.dictionary) == 0:  # all are NULL
            written[:] = 0
            return
        ranks = torch.from_numpy(rank[places[number]])
        for rows, indices in part.blocks():
            out = torch.from_numpy(written[rows])
            torch.index_select(ranks, 0, torch.from_numpy(indices), out=out)
        if part.validity is not None:
            written[~part.validity] = 0

    share(write, range(len(parts)))
    # Codes under NULL must index something, even where every row is NULL.
    entries = merged if num_entries else pa.array([b""], pa.large_binary())
    validity = joined_parts([(part.rows, part.validity) for part in parts], len(codes))
    return _column_of_codes(name, codes, entries, validity, data_type, is_sorted)


def _codes_of(chunk: pa.DictionaryArray, is_distinct: bool) -> _Codes:
    """Those of one array, as the first of a column."""
    dictionary = as_binary(chunk.dictionary)
    if not is_distinct and (dictionary.null_count or pc.count_distinct(dictionary).as_py() < len(dictionary)):
        chunk = pc.dictionary_encode(dictionary.take(chunk.indices))
        dictionary = chunk.dictionary
    indices = values_view(chunk.indices, chunk.indices.type.to_pandas_dtype())
    return _Codes(indices, validity_of(chunk.indices), dictionary, 0)


def narrow_codes(chunk: pa.Array) -> pa.Array:
    """A dictionary array with indices as narrow as its dictionary allows; any other array as it is.

    Lets a reader keep the pieces of a long column small until all of them are there. Raises ArrowInvalid for an index that is far
    beyond the dictionary.
    """
    if not pa.types.is_dictionary(chunk.type):
        return chunk
    indices, width = chunk.indices, narrowest(0, len(chunk.dictionary))
    if indices.null_count:
        narrow = indices.cast(pa.from_numpy_dtype(width))
    else:
        values = values_view(indices, indices.type.to_pandas_dtype())
        if len(values) and not 0 <= values.min() <= values.max() < len(chunk.dictionary):
            return chunk  # whoever reads it says what is wrong
        narrow = pa.array(values.astype(width))
    return pa.DictionaryArray.from_arrays(narrow, chunk.dictionary, safe=False)


def _merged(dictionaries: Sequence[pa.Array]) -> tuple[pa.Array, list[AnyArray]]:
    """One dictionary with the entries of all, and for each of them the places there of its entries."""
    if len(dictionaries) <= 1:
        whole = dictionaries[0] if dictionaries else pa.array([], pa.large_binary())
        return whole, [np.arange(len(whole), dtype=np.int32)]
    rows = parts_by_range(dictionaries)
    found = [np.empty(len(each), np.int32) for each in dictionaries]

    def merge(part: Sequence[AnyArray]) -> pa.Array:
        """The entries of a part, of which there are these rows of each dictionary; their places among themselves go to `found`."""
        taken = [each.take(pa.array(places)) for each, places in zip(dictionaries, part, strict=True)]
        merged = pc.dictionary_encode(pa.concat_arrays(taken))
        indices, first = values_view(merged.indices, np.int32), 0
        for number, places in enumerate(part):
            found[number][places] = indices[first : first + len(places)]
            first += len(places)
        return merged.dictionary

    parts = list(zip(*rows, strict=True))  # of each the rows of each dictionary
    merged = share(merge, parts)
    for part, first in zip(parts[1:], itertools.accumulate(map(len, merged[:-1])), strict=True):
        for number, places in enumerate(part):
            found[number][places] += first
    return pa.concat_arrays(merged), found


def _are_places(part: _Codes) -> bool:
    indices = part.indices if part.validity is None else part.indices[part.validity]
    return len(indices) == 0 or (indices.min() >= 0 and indices.max() < len(part.dictionary))


def _column_of_codes(
    name: str,
    codes: AnyArray,
    entries: pa.Array,
    validity: BoolArray | None,
    data_type: DataType,
    is_sorted: bool = True,
) -> Column:
    """The column with a dictionary of `entries`, all of which come in valid rows, if there is one."""
    num_valid = len(codes) if validity is None else int(np.count_nonzero(validity))
    num_entries = min(len(entries), num_valid)
    facts = ColumnFacts(
        is_unique=num_entries == num_valid,
        is_sorted=is_sorted and validity is None and ascends(codes),
        dictionary_size=len(entries),
    )
    pool = strings_of(name, [entries], None)
    rows = spread(len(codes), SAMPLE)
    counts = np.bincount(codes[rows] if validity is None else codes[rows[validity[rows]]])
    frequent = _frequent(entries, counts, len(rows), data_type) if num_entries < num_valid else ()
    estimates = ColumnEstimates(float(num_entries), frequent)
    values = tensor_of(codes), tensor_of(validity)
    return Column(data_type, len(codes), *values, pool, True, is_sorted, facts, estimates)


def _estimate(
    chunks: Sequence[pa.Array], num_rows: int, data_type: DataType
) -> tuple[ColumnEstimates, bool, pa.Array, float]:
    """(estimates by a sample, whether all values are known to be distinct, those of the sample, bytes of a row in the mean)."""
    rows = spread(num_rows, _ALL if num_rows <= _ALL else _SAMPLE)
    samples, start = [], 0
    for chunk in chunks:
        stop = start + len(chunk)
        first, last = np.searchsorted(rows, (start, stop))
        samples.append(as_binary(take_rows(chunk, rows[first:last] - start)))
        start = stop
    sample = pa.chunked_array(samples, pa.large_binary()).drop_null()
    found = sample.value_counts()
    counts = found.field("counts").to_numpy()
    scaled_rows = num_rows * len(sample) / max(len(rows), 1)
    estimate = scale_distinct(len(counts), int(np.count_nonzero(counts == 1)), len(sample), scaled_rows)
    values, is_unique = found.field("values"), len(rows) == num_rows and len(counts) == len(sample)
    frequent = () if is_unique else _frequent(values, counts, len(rows), data_type)
    mean = (pc.sum(pc.binary_length(sample)).as_py() or 0) / max(len(rows), 1)
    return ColumnEstimates(estimate, frequent), is_unique, values, mean


def _frequent(
    values: pa.Array, counts: AnyArray, num_rows: int, data_type: DataType
) -> tuple[tuple[str | bytes, float], ...]:
    """The frequent ones of the values, which so many of `num_rows` hold, and the share of each."""
    places = frequent_places(counts)
    # whether it is UTF-8 is asked of the whole column, later
    texts = [
        text.decode(errors="replace") if data_type == VARCHAR else text
        for text in values.take(pa.array(places)).to_pylist()
    ]
    return tuple(zip(texts, (counts[places] / num_rows).tolist(), strict=True))
