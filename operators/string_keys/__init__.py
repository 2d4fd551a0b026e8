"""Strings as integers: for sorting, grouping and joins.

| integers | what of the strings they keep | for | file |
|---|---|---|---|
| packed | equality and order: all bits in which the rows differ, if 63 hold them | grouping, medians and extremes | `operators/string_keys/pack.py` |
| first bits | order, up to ties: the first 63 bits in which rows differ | ORDER BY; kept with a table's column | `operators/string_keys/first_bits.py` |
| ranks | equality and order: places in a sort | where they do not fit 63 bits; new dictionaries | `operators/string_keys/codes.py` |
| dictionary codes | equality: numbers of distinct values, or places in a dictionary that is there | grouping, and joins with a dictionary | `operators/string_keys/codes.py` |
| byte numbers | equality with the strings of one set | string joins | `operators/string_keys/byte_numbers.py` |
| hashes | equality, which has to be verified | string joins and grouping where nothing else fits; partitions | `operators/string_keys/hash.py` |

Columns of tables are encoded in `tqp/data/encoding`: dictionaries (`strings.py`) and, of large ones, their order
(`dictionary_order.py`).
"""
