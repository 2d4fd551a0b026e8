"""string_agg: the strings of each group, or of all rows, one after the other, with a separator between them."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.data.strings import Strings
from tqp.operators.groups.aggregates import count_by_group
from tqp.operators.rows.keys import is_ascending, narrow, sort_codes
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.string_keys.codes import distinct_slices
from tqp.operators.strings.build import join
from tqp.operators.strings.layout import compact, compact_rows, from_list
from tqp.operators.strings.layout import take as take_strings

_INT32_MAX = 2**31 - 1


def join_groups(
    strings: Strings, group_ids: Tensor, num_groups: int, validity: Tensor | None, separator: str
) -> Strings:
    """The valid strings of each group in row order: [num_groups]; of an empty group the empty string.

    Raises ExecutionError for more than 2 GiB.
    """
    if validity is not None:
        rows = row_indices(validity)
        strings, group_ids = take_strings(strings, rows), take(group_ids, rows)
    counts = count_by_group(group_ids, num_groups)
    order = None if is_ascending(group_ids) else sort_codes(narrow(group_ids, num_groups))[1]
    ends = counts.cumsum(0)
    return _joined(strings, order, ends - counts, ends, separator)


def join_all(strings: Strings, validity: Tensor | None, separator: str) -> Strings:
    """The valid strings of all rows in row order: one string, or none where no row is valid. What batches come to joins likewise.

    Raises ExecutionError for more than 2 GiB.
    """
    if validity is not None:
        strings = take_strings(strings, row_indices(validity))
    ends = torch.tensor([strings.num_rows] if strings.num_rows else [], dtype=torch.int64)
    ends = ends.to(strings.starts.device)
    return join_runs(strings, torch.zeros_like(ends), ends, separator)


def join_runs(strings: Strings, begins: Tensor, ends: Tensor, separator: str) -> Strings:
    """The strings `begins` to `ends` (exclusive, int64 [k]) with a separator between them: [k]; of no string the empty one.

    Runs may overlap: all strings stand in one buffer, of which each result is a part. Raises ExecutionError for more than 2 GiB.
    """
    return _joined(strings, None, begins, ends, separator)


def _joined(strings: Strings, order: Tensor | None, begins: Tensor, ends: Tensor, separator: str) -> Strings:
    """As `join_runs`, of the strings in an order, int64 [n]; None: as they come."""
    # every row with a separator before it: a run is what lies between the first and the last of its rows
    before, separated = len(separator.encode()), from_list([separator], strings.starts.device)
    shared = distinct_slices(strings, None)
    if shared is not None:  # each slice is joined once
        numbers, slices = shared
        order = numbers if order is None else take(numbers, order)
        written = compact_rows(join([separated, slices]) if before else slices, order)
    else:
        strings = strings if order is None else take_strings(strings, order)
        written = compact(join([separated, strings]) if before and strings.num_rows else strings)
    total = written.starts.new_full((1,), written.data.shape[0])
    bytes_before = torch.cat([written.starts, total])
    starts, stops = take(bytes_before, begins), take(bytes_before, ends)
    lengths = (stops - starts - before).clamp(min=0)
    if lengths.shape[0] and int(lengths.max()) > _INT32_MAX:
        raise ExecutionError("string_agg makes a string longer than 2 GiB, the limit of one string")
    return Strings((starts + before) * (ends > begins), lengths.to(torch.int32), written.data)
