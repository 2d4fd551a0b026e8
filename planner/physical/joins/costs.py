"""What joins cost, in nanoseconds a row on one CPU core; only the ratios matter."""

from __future__ import annotations

_PROBE = 3.0
_BUILD = 8.0  # build rows are materialised, probe rows streamed
_SORT = 15.0  # build rows with duplicate keys are sorted behind an offset array
_HASH = 65.0  # hashing, sorting by hash, comparing candidates
_SCATTER = 1.5  # entering a row's value into a table, in look-ups
_HASHED_WORD, _UNIQUE_WORD, _FOUND_WORD = (
    40.0,
    23.0,
    20.0,
)  # build rows and a probe row of a hash join by one integer
_PLACED, _FOUND = 10.0, 8.0  # of an offset-array join
_COMPARED, _COMPARED_AGAIN = 11.0, 4.5  # a pair of it: its second key, and each more
COLLECTED = (
    12.0  # a row of a right join, which all stand in memory before those that no row has met come after them
)
OFFSET = 3.0  # an entry of an offset array
_SEVERAL = 5_000.0  # a build with several rows a key: some ten operations more, however few rows
TABLE_ENTRY = 0.5  # clearing an entry of a table of bools, and the misses that a larger table costs

_ALWAYS_DENSE = 1 << 20
_LARGEST_TABLE = 1 << 28


def side_cost(probe_rows: float, build_rows: float, build_is_unique: bool, span: int | None) -> float:
    """Estimated nanoseconds of an inner join; `span`: how many values the key can take, if it is dense."""
    if build_is_unique:
        return build_rows * _BUILD + probe_rows * _PROBE
    offsets = 0.0 if span is None else span * OFFSET
    return _SEVERAL + build_rows * (_BUILD + _SORT) + probe_rows * _PROBE + offsets


def pairs_worth_a_hash(keys: int, probe_rows: float, build_rows: float, build_is_unique: bool) -> float:
    """Pairs of a probe row by one of several keys, in which the others are compared, that cost as much as hashing one integer of all."""
    hashed = _UNIQUE_WORD if build_is_unique else _HASHED_WORD
    saved = probe_rows * (_FOUND_WORD - _FOUND) + build_rows * (hashed - _PLACED)
    return saved / (max(1.0, probe_rows) * (_COMPARED + (keys - 2) * _COMPARED_AGAIN))


def is_dense(size: int, probe_rows: float, build_rows: float, entry: float = TABLE_ENTRY) -> bool:
    """Does a table over so many keys pay against hashing so many rows?"""
    if size > _LARGEST_TABLE:
        return False
    dense = size * entry + (probe_rows + build_rows) * _PROBE
    return size <= _ALWAYS_DENSE or dense <= (probe_rows + build_rows) * _HASH


def stands_by_key(columns: int, build_rows: float, rows: float) -> bool:
    """True if tables of the build columns by key cost less than one of positions that lead to the build rows.

    They are filled for all build rows, and read once, not twice, for each row of the result.
    """
    return (columns - 1) * build_rows * _SCATTER <= rows
