"""Group ids and aggregates.

| algorithm | when | group id |
|---|---|---|
| single | no keys | 0 |
| direct | the packed key range is small against the rows | the packed key |
| clustered | one key and the input is sorted on it | the number of the run (`operators/rows/runs.py`); runs are joined across batches |
| direct, by number | a key of a table's column: integers far apart, at least eight rows for each value, or strings of 32 bytes and more in the mean without a dictionary, at least two; a quarter of the table's rows or more are grouped | packed as above, with the number of the value in place of the value; see below |
| hash | one key or packed key of any range, expected to have few groups against the rows | the number that a hash table of the groups gives the key (`operators/rows/hash_table.py`): accumulators cover the groups that there are, not the table's places; the groups of several workers are joined at the end |
| sort | anything else | rows are collected, keys numbered at the end, through a table over their range, a hash table or a sort (`operators/groups/group_ids.py`); distinct values found so too (`operators/groups/distinct_pairs.py`) |

Where all rows are one group, the graph itself reduces each column of a batch to one value as soon as it is computed, so that
no column waits for the others; of doubles that a CASE chooses, it adds up what each branch gives and chooses nothing. All but the last fold each batch into accumulators (`FoldGroups` in `tqp/runtime/breakers/aggregate.py`, `HashGroups` in
`hash_groups.py`). Whatever the algorithm, the rows are collected first (`CollectGroups`) where an aggregate has no state that
merges (DISTINCT, median, extremes of strings without a dictionary), and for sums of floats over more than 131,072
direct groups, which would need accumulators for every batch. Where direct groups are few, moments merge
(`MomentStates` in `operators/groups/moments.py`), and of each batch the rows that `first`, `arg_min` and their kin choose are kept, to choose among them at the end;
of more groups rows are collected, as partitions stay in the caches. DISTINCT values from a range that is small against the rows do
fold: each single or direct group keeps a set of them, a bool for each possible value (`operators/groups/distinct_sets.py`). `tqp/runtime/lowering/aggregates.py` says of which accumulators
an aggregate consists and how its result is made from them; `avg` is a sum and a count, and shares them with other
aggregates. Integer sums and counts of direct groups whose value ranges allow it share the bits of one int64 accumulator
(`operators/groups/packed_sums.py`); few groups have up to 128 of these each, of which the rows take turns.

**Dictionaries of values** (`planner/physical/dictionary_encoded_keys.py`, `tqp/data/encoding/value_dictionary.py`) are what a dictionary is to strings of few values, for integers,
dates, timestamps and decimals that lie far apart and for long strings that are many: the distinct values of a column (of integers
ascending; of strings, a row that holds each), and for each row the code of its own, as narrow as their number
allows. The first query that groups by such a column has them made, when it is planned; they are kept with the encoded
column, four bytes a row at most. A row is then grouped by one look at an accumulator, whatever the key, and several keys can be
packed. Rows that were put beside the table have no codes and are collected.

Products are not formed row by row where factors have few values (`planner/physical/factored_sums.py`): sum(price * (1 - discount) *
(1 + tax)) by status is made of the sums of price by status, discount and tax. `EXPLAIN` says by which columns rows are grouped
"until sums are multiplied"; the program then has no call for the factors at all, as their values are worked out when the
query is planned, and sums over the same column share one accumulator. In the same way the sum and the extremes of a column
of few values are made of how many rows of each group have each value, up to 65,536 counts.

`CollectGroups` (`tqp/runtime/breakers/collect_groups.py`) distributes many rows, batch by batch, over up to 64 partitions
by a hash of their keys (or the low bits of dense ones), and packs strings into integers as it reads them for that; when all rows are there the workers group the partitions. Dense keys
need no numbers for their groups: each reduction has a table over the range of the keys, and the groups that have rows are kept.

A column that the keys determine (`reduce_group_keys`) is not reduced at all if it is stored somewhere, as a column of a
join's build side or of the source: each group keeps the number of one such row, and the column is gathered from there
when somebody reads it, after a top-k for instance.

A filter right below a single or direct group-by decides batch by batch (`Stream.select`): where it drops much, rows are
gathered as ever; where it keeps most, all rows are computed and the mask goes along, and the rows it drops fall into
one group more than there are, or add zero.
"""
