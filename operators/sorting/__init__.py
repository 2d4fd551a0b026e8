"""ORDER BY, whole and of the first rows only.

Sort keys become bits that compare as SQL does (`operators/sorting/sort_bits.py`): floats ordered as integers, strings by the bits
in which rows differ, read where they lie. The first 32 bits sort all rows by radix; rows that tie are sorted by the next
ones, until none tie (`operators/sorting/sort.py`). Up to 1,024 rows are sorted by all keys in one call instead. Many rows are first distributed over ranges of the first key, by splitters of a
sample (`operators/sorting/sort_ranges.py`); workers sort the ranges and gather their columns, each within the caches.
With a limit, a batch much larger than that keeps only
the rows that may come into the first k (`operators/sorting/top_rows.py`): those whose first key does not come after a bound,
which is a value of a sample in the first batch and then the k-th of the rows that any worker has seen.

A table's column of strings that queries order by, in the table's order, is kept as integers too
(`operators/string_keys/first_bits.py`): the bits in which its strings differ, as many of the first bytes as have 63. They are the
first key and the strings, from there on, the second, of which only those that tie are read. They are made when the first
such query runs. Without a limit the bytes of a table's strings are put in order by the workers, range by range; then a
result goes to Arrow without a copy.
"""
