"""string_agg: the strings of each group, or of all rows, one after the other, with a separator between them."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.data.strings import Strings
from tqp.operators.groups.aggregates import count_by_group
from tqp.operators.rows.batches import pool_rows
from tqp.operators.rows.keys import is_ascending, narrow, sort_codes
from tqp.operators.rows.selection import compose_selected, row_indices, take, take_selected
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
    rows, ends = _group_by_group(group_ids, num_groups, validity)
    begins = torch.cat([ends.new_zeros(1), ends[:-1]])
    return _joined(strings, rows, begins, ends, separator)


def join_entries_of_groups(
    entries: Strings,
    codes: Tensor,
    group_ids: Tensor,
    num_groups: int,
    validity: Tensor | None,
    separator: str,
) -> Strings:
    """As `join_groups`, of the entries of a dictionary that the codes, integers [n], name."""
    rows, ends = _group_by_group(group_ids, num_groups, validity)
    begins = torch.cat([ends.new_zeros(1), ends[:-1]])
    codes = take_selected(codes, rows)
    if entries.num_rows <= codes.shape[0]:
        return _joined_entries(entries, codes, begins, ends, separator)
    return _joined(pool_rows(entries, codes), None, begins, ends, separator)


def _group_by_group(
    group_ids: Tensor, num_groups: int, validity: Tensor | None
) -> tuple[Tensor | None, Tensor]:
    """The valid rows of group after group, int64 [m], None: all as they come; and where each group ends among them."""
    rows = None if validity is None else row_indices(validity)
    group_ids = take_selected(group_ids, rows)
    ends = count_by_group(group_ids, num_groups).cumsum(0)
    if is_ascending(group_ids):
        return rows, ends
    order = sort_codes(narrow(group_ids, num_groups))[1]
    return compose_selected(rows, order), ends


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
    shared = distinct_slices(strings, None)
    if shared is not None:
        numbers, slices = shared
        return _joined_entries(slices, take_selected(numbers, order), begins, ends, separator)
    strings = strings if order is None else take_strings(strings, order)
    return _runs_of(compact(_separated(strings, separator)), begins, ends, separator)


def _joined_entries(
    entries: Strings, numbers: Tensor, begins: Tensor, ends: Tensor, separator: str
) -> Strings:
    """As `join_runs`, of the numbered entries, each of which is joined to the separator once."""
    if numbers.dtype not in (torch.int32, torch.int64):
        numbers = numbers.to(torch.int32)
    return _runs_of(compact_rows(_separated(entries, separator), numbers), begins, ends, separator)


def _separated(strings: Strings, separator: str) -> Strings:
    """Every string with a separator before it."""
    if not separator or not strings.num_rows:
        return strings
    return join([from_list([separator], strings.starts.device), strings])


def _runs_of(written: Strings, begins: Tensor, ends: Tensor, separator: str) -> Strings:
    """Of strings one behind the other, each with a separator before it, what lies between the first and the last of a run."""
    before = len(separator.encode())
    total = written.starts.new_full((1,), written.data.shape[0])
    bytes_before = torch.cat([written.starts, total])
    starts, stops = take(bytes_before, begins), take(bytes_before, ends)
    lengths = (stops - starts - before).clamp(min=0)
    if lengths.shape[0] and int(lengths.max()) > _INT32_MAX:
        raise ExecutionError("string_agg makes a string longer than 2 GiB, the limit of one string")
    return Strings((starts + before) * (ends > begins), lengths.to(torch.int32), written.data)
