"""Window functions over rows sorted by partition and order: boundaries, frames, ranks, values and aggregates of frames.

All calls of a block that agree in PARTITION BY and ORDER BY share one sort (`tqp/runtime/breakers/windows.py`). Where partitions and
groups of peers begin is where neighbours differ (`partitions.py`); ranks are differences of these places (`ranking.py`). The frame
of a row is a range of rows, or up to three with EXCLUDE (`frames.py`); bounds of RANGE are searched among words of partition and key
(`value_bounds.py`).

| aggregate | frame | how |
|---|---|---|
| any, DISTINCT included | the whole partition | as GROUP BY has it (`operators/groups/`), partitions being groups |
| count, bool_and, bool_or, sums and averages of integers and decimals | any | two places of one running sum, in 128 bits as limbs of 32 |
| min, max | from the start of the partition | one running extreme, the number of the partition in front of the values |
| min, max | any other | two overlapping tables: the extremes of 1, 2, 4, ... rows from each row on |
| sums of floats | any | as those of integers, where two of 64 bits hold all bits of each value and sum (`fixed_point.py`) |
| other sums of floats, products, variances | from the start of the partition | a scan that merges rows two by two (`running.py`) |
| other sums of floats, products, variances | any other | running sums of blocks, from where blocks meet in the frame in both directions (`block_sums.py`) |
| DISTINCT | from the start of the partition, or to its end | as above, of the first or last row with each value |
| any other, ORDER BY inside included | any other | as GROUP BY has it, the rows of each frame being a group, 2 million rows at once or fewer |

Where only rows up to a rank are wanted, most others are dropped before the sort (`first_rows.py`). Aggregates of whole partitions of
many rows do not come here: they are a GROUP BY that is joined with the rows (`planner/rules/aggregate_partitions.py`).

Values other than numbers are compared by their places in a sort of them. No step loops over rows or partitions; those of tables and
blocks are as many as the longest frame has bits.
"""
