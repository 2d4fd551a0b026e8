"""Join algorithms: what each builds, and how pairs of rows come out of it.

The build side is materialised, the probe side streamed. A FULL join is a LEFT join that notes which build rows were met, a
RIGHT join an INNER one; the others come after its rows. Unnesting makes joins of types that SQL cannot write: SEMI and ANTI for EXISTS,
NULL_AWARE_ANTI for NOT IN, MARK for a subquery whose truth is a value, SINGLE for a scalar subquery (which raises for a
second row). No subquery is ever run row by row.

| algorithm | when | how | file |
|---|---|---|---|
| perfect-hash | unique keys over a dense range | a table over the range holds the build row | `operators/joins/perfect_hash_join.py` |
| perfect-hash, membership | only existence is asked | a bool for each key | `operators/joins/perfect_hash_join.py` |
| offset-array | duplicate keys over a dense range | build rows sorted by key, an offset for each key; where few of the keys occur, for each of those, and the set of keys | `operators/joins/offset_array_join.py` |
| hash | sparse, wide or composite keys | a hash table of the distinct keys tells each one's number: its row, or, where rows repeat keys, where its rows are among all sorted by hash | `operators/joins/hash_join.py`, `operators/rows/hash_table.py` |
| sort | the same on CUDA | build rows sorted, binary search | `operators/joins/sort_join.py` |
| string | one string without a dictionary | a perfect-hash, offset-array or hash join on numbers that the build rows' bytes give; where these are too many, hashes in a hash table, candidates compared | `operators/joins/string_join.py` |
| range | no equality, but inequalities between an expression of each side (numbers and dates of at most 64 bits) | build rows sorted by one key; a probe row's bounds on it are found by binary search and leave a range of them; a bound on a second key is searched for in a tree of maxima over that range | `operators/joins/range_join.py` |
| nearest | ASOF, by a value of at most 64 bits; keys that are one word, or packed into one | build rows sorted by key and value as one word; binary search | `operators/joins/nearest_join.py` |
| nested loop | neither, or a build side of one row | every pair, a block at a time | `operators/joins/pairs.py` |

Several keys of known range are packed into one integer (`KeyPacking`); others are hashed to 64 bits, and the keys
themselves are compared for each candidate. Conditions that are not equalities are the residual, computed on the
candidates; so are other equalities where one dense key beats hashing all, but an offset-array join compares one of them itself.

A range join (`planner/physical/joins/ranges.py`) takes the bounds of one build key that has a lower and an upper one (a window after each
event), or one bound each on two keys (intervals that contain a point or overlap another); the rest is residual. An inner join
exchanges its sides where that costs less: points in few intervals are sorted, so that each interval is one range. Semi and anti
joins only look at the ends of the ranges. Bounds from both sides tie two relations in the search for a join order where no
equality does, and are taken to match about one row each.

An ASOF join by other values or keys sorts the rows of both sides together (`planner/rules/joins/expand_asof_joins.py`).

A runtime filter uses the build's key set to drop probe rows far below the join, before other joins and group-bys
(`planner/physical/runtime_filters.py`). It is placed where it passed an operator that it saves work; the example has no such
place. Its own perfect-hash join then does not ask again ("all match"). On a table column that is sorted, with several rows
of a value, a filter that keeps few of them goes below the table's other filters, too: it looks up each distinct value
once and counts out the rows of those found (`operators/joins/run_rows.py`). Where the runs of equal values start is found when a
program first wants it, and kept with the encoded column (`tqp/data/encoding/sorted_runs.py`).

**Index joins.** A table that is sorted on the join key has an index on it: the rows of each value, as one table over the
range of values (`tqp/data/encoding/key_index.py`), made when a program first wants it and kept with the encoded column. Where few rows
meet such a table, they look their partners up there, and nothing is built or scanned (`planner/physical/joins/index.py`): a year's
orders find their lines, a few lines find their orders. The table's filters come after the join and see only what was found. The
order of joins counts with it (`JoinGraph.index_cost`).

Where several parts of a plan scan one table under the same runtime filter, its rows are found once and stored for all of
them (`planner/physical/shared_scans.py`). The probe side of an inner join takes over a filter that its build side has on the same
table, so that it may share these rows: a table joined with an aggregate of its own rows, for instance.
"""
