"""VARCHAR and BLOB columns: a sorted dictionary with narrow codes while that is small, else slices of Arrow's bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from tqp.core.datatypes import VARCHAR, DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.schema import ColumnEstimates, ColumnFacts
from tqp.data.arrow_buffers import AnyArray, BoolArray, tensor_of, validity_of, values_view
from tqp.data.column import Column
from tqp.data.encoding.column_facts import BLOCK, ascends, scale_distinct, spread
from tqp.data.encoding.integers import joined_validity, narrowest
from tqp.data.encoding.string_views import as_binary, encode_views, strings_of_views, take_rows
from tqp.data.string_buffers import is_utf8, strings_of

#: Rows that are all looked at to tell how many strings are distinct, and rows that are looked at where there are more.
_ALL, _SAMPLE = 10_000, 4_096
_MAX_ENTRIES = 1_000_000
#: Up to this many rows a dictionary costs next to nothing, and gives group-bys and joins of dimension tables dense keys.
_SMALL_TABLE = 4_096


def encode_strings(name: str, chunks: Sequence[pa.Array], data_type: DataType) -> Column:
    """A Column on the CPU from string or binary arrays of any kind (all of one type), dictionary arrays included.

    Raises ExecutionError for VARCHAR that is not UTF-8, which neither Arrow nor Parquet readers look at.
    """
    column = _encoded(name, chunks, data_type)
    if data_type.kind is TypeKind.VARCHAR and column.pool is not None and not is_utf8(column.pool):
        raise ExecutionError(
            f'column "{name}" holds text that is not UTF-8; cast it to binary before registering the table, or decode it'
        )
    return column


def _encoded(name: str, chunks: Sequence[pa.Array], data_type: DataType) -> Column:
    num_rows = sum(len(chunk) for chunk in chunks)
    if num_rows and pa.types.is_dictionary(chunks[0].type):
        cleaned = [_clean_dictionary(chunk) for chunk in chunks]
        column = _dictionary_column(name, cleaned, data_type, min(max(num_rows // 2, 1), _MAX_ENTRIES))
        if column is not None:
            return column
        chunks = [as_binary(chunk.dictionary).take(chunk.indices) for chunk in chunks]
    distinct, is_unique, sample = _estimate_distinct(chunks, num_rows)
    limit = num_rows if num_rows <= _SMALL_TABLE else min(num_rows // 8, _MAX_ENTRIES)
    if num_rows and distinct <= limit:
        encoded = encode_views(chunks, sample, limit) if num_rows > _SMALL_TABLE else None
        if encoded is not None:
            return _column_of_codes(name, *encoded, joined_validity(chunks), data_type)
        chunks = [as_binary(chunk) for chunk in chunks]
        column = _dictionary_column(name, list(map(pc.dictionary_encode, chunks)), data_type, limit)
        if column is not None:
            return column
    validity = joined_validity(chunks)
    pool = strings_of_views(chunks)
    if pool is None:
        pool = strings_of(name, [as_binary(chunk) for chunk in chunks], validity)
    facts, estimates = ColumnFacts(is_unique=is_unique), ColumnEstimates(distinct)
    return Column(data_type, num_rows, None, tensor_of(validity), pool, facts=facts, estimates=estimates)


def dictionary_codes(name: str, array: pa.Array) -> torch.Tensor:
    """For each row of a string or binary array, its place among the array's distinct values in byte order; int64 [n]."""
    if len(array) == 0:
        return torch.empty(0, dtype=torch.int64)
    column = _dictionary_column(name, [pc.dictionary_encode(as_binary(array))], VARCHAR, len(array))
    assert column is not None and column.values is not None
    return column.values.long()


def _dictionary_column(
    name: str, chunks: Sequence[pa.Array], data_type: DataType, limit: int
) -> Column | None:
    """The column of clean dictionary arrays (see `_clean_dictionary`) with one sorted dictionary of the entries in use.

    None if those are more than `limit`.
    """
    chunks = pa.chunked_array(chunks).unify_dictionaries().chunks
    dictionary = chunks[0].dictionary
    validity = joined_validity(chunks)
    used = np.zeros(len(dictionary), np.bool_)
    for indices, valid in _index_blocks(chunks):
        used[indices if valid is None else indices[valid]] = True
    num_entries = int(np.count_nonzero(used))
    if num_entries > limit:
        return None
    order = pc.array_sort_indices(dictionary).to_numpy()
    order = order[used[order]]
    rank = np.zeros(max(len(dictionary), 1), narrowest(0, max(num_entries - 1, 0)))
    rank[order] = np.arange(num_entries)
    num_rows = sum(len(chunk) for chunk in chunks)
    codes = np.empty(num_rows, rank.dtype)
    position = 0
    for indices, valid in _index_blocks(chunks):
        safe = indices if valid is None else np.where(valid, indices, 0)
        part = rank[safe]
        if valid is not None:
            part[~valid] = 0
        codes[position : position + len(part)] = part
        position += len(part)
    # Codes under NULL must index something, even where every row is NULL.
    entries = dictionary.take(pa.array(order)) if num_entries else pa.array([b""], pa.large_binary())
    return _column_of_codes(name, codes, entries, validity, data_type)


def _column_of_codes(
    name: str, codes: AnyArray, entries: pa.Array, validity: BoolArray | None, data_type: DataType
) -> Column:
    """The column with an ascending dictionary of `entries`, all of which come in valid rows, if there is one."""
    num_valid = len(codes) if validity is None else int(np.count_nonzero(validity))
    num_entries = min(len(entries), num_valid)
    facts = ColumnFacts(
        is_unique=num_entries == num_valid,
        is_sorted=validity is None and ascends(codes),
        dictionary_size=len(entries),
    )
    pool, estimates = strings_of(name, [entries], None), ColumnEstimates(float(num_entries))
    return Column(data_type, len(codes), tensor_of(codes), tensor_of(validity), pool, True, facts, estimates)


def _clean_dictionary(chunk: pa.DictionaryArray) -> pa.DictionaryArray:
    """The chunk with a dictionary of large_binary entries without NULL or duplicates, which Arrow allows."""
    dictionary = as_binary(chunk.dictionary)
    if dictionary.null_count or pc.count_distinct(dictionary).as_py() < len(dictionary):
        return pc.dictionary_encode(dictionary.take(chunk.indices))
    return pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), dictionary)


def _index_blocks(chunks: Sequence[pa.DictionaryArray]) -> list[tuple[AnyArray, BoolArray | None]]:
    """(indices int32 [k], validity [k] or None) of consecutive blocks; views."""
    blocks = []
    for chunk in chunks:
        indices, validity = values_view(chunk.indices, np.int32), validity_of(chunk.indices)
        for start in range(0, len(chunk), BLOCK):
            stop = start + BLOCK
            blocks.append((indices[start:stop], None if validity is None else validity[start:stop]))
    return blocks


def _estimate_distinct(chunks: Sequence[pa.Array], num_rows: int) -> tuple[float, bool, pa.Array]:
    """(distinct values estimated from a sample, whether they are all known to be distinct, those of the sample)."""
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
    return estimate, len(rows) == num_rows and len(counts) == len(sample), found.field("values")
