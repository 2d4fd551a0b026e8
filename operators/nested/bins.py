"""Histograms over given bins, and bins of equal width."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.errors import ExecutionError
from tqp.core.histograms import float_bins, instant_bins, integer_bins, other_bin
from tqp.data.nested import Lists, Structs, Values, Vector, count_of, element_dtype, flattened, take_vector
from tqp.data.nested import take as take_values
from tqp.data.strings import Strings
from tqp.operators.groups.aggregates import count_by_group, sum_by_group
from tqp.operators.groups.group_ids import group_ids_of_columns
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.nested.elements import list_rows, lists_of
from tqp.operators.nested.functions import words_of
from tqp.operators.nested.layout import concatenate, every_row
from tqp.operators.nested.maps import checked_maps
from tqp.operators.numbers import wide
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.batches import common_rows
from tqp.operators.rows.selection import row_indices, take
from tqp.operators.sorting.sort import SortColumn, sort_columns, sort_rows
from tqp.operators.strings import layout as string_layout


def binned_histograms(
    maps: Lists, bins: Lists, validity: Tensor | None, *, key_type: DataType, exact: bool
) -> Lists:
    """For each row a map of its bins, in their order and each once, to how many values they hold.

    `maps`: how often each value occurs; `bins`: lists of values, and `validity` where there are any. A bin holds the values up to
    it that no lesser bin holds; of `exact` ones, what equals it. All others are in a last bin, if there are any and the type has one.
    Raises ExecutionError for bins that are NULL, where there are values.
    """
    is_asked = maps.lengths > 0
    if validity is not None and any_true(is_asked & ~validity):
        raise ExecutionError("the bins of a histogram must not be NULL")
    ends, lengths = flattened(bins, is_asked)
    if ends.validity is not None and not bool(ends.validity.all()):
        raise ExecutionError("a bin of a histogram must not be NULL")
    entries, distinct = flattened(maps)
    assert isinstance(entries.values, Structs)
    keys, counts = entries.values.fields
    assert isinstance(counts.values, Tensor)
    given = _without_nan(keys.values, exact)
    values = concatenate([given, ends.values])
    groups = torch.cat([list_rows(distinct), list_rows(lengths)])
    is_end = torch.arange(groups.shape[0], device=groups.device) >= count_of(given)
    held = torch.zeros_like(groups).masked_scatter_(~is_end, counts.values[:, 1])
    totals = sum_by_group(held, groups, maps.num_rows)
    chosen, in_bins = _counted(values, groups, held, is_end, totals, key_type, exact)
    of_bins = take(groups, chosen)
    others = totals - sum_by_group(in_bins, of_bins, maps.num_rows)
    made = _with_others(take_values(values, chosen), of_bins, in_bins, others, key_type)
    return checked_maps(made, key_type=key_type)


def _without_nan(values: Values, exact: bool) -> Values:
    """NaN is in the first bin, as in DuckDB, and equals none."""
    if not isinstance(values, Tensor) or not values.is_floating_point() or exact:
        return values
    return torch.where(values.isnan(), -torch.inf, values)


def _counted(
    values: Values,
    groups: Tensor,
    held: Tensor,
    is_end: Tensor,
    totals: Tensor,
    key_type: DataType,
    exact: bool,
) -> tuple[Tensor, Tensor]:
    """The rows of the bins, group by group in their order, and how many values each holds, int64 each."""
    assert isinstance(values, Tensor | Strings)
    order = sort_rows(
        [SortColumn(groups), *sort_columns(values, None, False, False), SortColumn(is_end.to(torch.int8))]
    )
    runs, _, num_runs = group_ids_of_columns([groups, *words_of(values, None, key_type)])
    sorted_runs = take(runs, order)
    is_last = torch.ones_like(is_end)
    is_last[:-1] = sorted_runs[1:] != sorted_runs[:-1]
    places = row_indices(take(is_end, order) & is_last)
    chosen = take(order, places)
    if exact:
        of_runs = sum_by_group(held, runs, num_runs)
        in_bins = take(of_runs, take(runs, chosen))
        if isinstance(values, Tensor) and values.is_floating_point():
            in_bins = in_bins.masked_fill(take(values, chosen).isnan(), 0)
        return chosen, in_bins
    # what comes before the bin, less what comes before the one before it, or before its group
    so_far = take(held, order).cumsum(0)
    up_to = take(so_far, places)
    of_bins = take(groups, chosen)
    before = take(totals.cumsum(0) - totals, of_bins)
    before[1:] = torch.where(of_bins[1:] == of_bins[:-1], up_to[:-1], before[1:])
    return chosen, up_to - before


def _with_others(ends: Values, groups: Tensor, in_bins: Tensor, others: Tensor, key_type: DataType) -> Lists:
    """Maps of the bins, and of one for all others where there are any."""
    num_groups, marker = others.shape[0], other_bin(key_type)
    if marker is not None:
        rest = row_indices(others > 0)
        ends = concatenate([ends, every_row(_one_value(marker, key_type, groups.device), rest.shape[0])])
        in_bins, groups = torch.cat([in_bins, take(others, rest)]), torch.cat([groups, rest])
    order = groups.argsort(stable=True)
    counts = Vector(wide.from_narrow(take(in_bins, order)), None)
    entries = Structs((take_vector(Vector(ends, None), order), counts))
    return lists_of(count_by_group(groups, num_groups), entries, None)


def _one_value(value: float | str | bytes, data_type: DataType, device: torch.device) -> Values:
    """A constant as one row, in the form that it has inside of nested values."""
    if isinstance(value, str | bytes):
        return string_layout.from_list([value], device)
    dtype = element_dtype(data_type)
    if dtype is None:
        return wide.from_ints([int(value)], device)
    return torch.tensor([value], dtype=dtype, device=device)


def _equal_width(
    low: Tensor,
    high: Tensor,
    count: Tensor,
    is_nice: Tensor,
    *,
    compute: Callable[..., list[Any]],
    validity: Tensor | None = None,
) -> Lists:
    """The ends of the bins of each row, int64 or float64, which `compute` makes in Python; raises ExecutionError."""
    columns = (low, high, count, is_nice)
    num_rows = common_rows(each.reshape(-1).shape[0] for each in columns)
    asked = [True] * num_rows if validity is None else validity.expand(num_rows).tolist()
    rows = zip(asked, *(each.reshape(-1).expand(num_rows).tolist() for each in columns), strict=True)
    found = [compute(*given) if is_asked else [] for is_asked, *given in rows]
    lengths = torch.tensor([len(each) for each in found], dtype=torch.int64, device=low.device)
    dtype = torch.float64 if low.is_floating_point() else torch.int64
    ends = torch.tensor([end for each in found for end in each], dtype=dtype, device=low.device)
    return lists_of(lengths, ends, None)


def _resolve_equal_width(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    if result_type.element.is_timestamp:
        compute: Callable[..., list[Any]] = instant_bins
    else:
        compute = float_bins if result_type.element.is_float else integer_bins
    return Kernel(partial(_equal_width, compute=compute), checks=True)


BIN_KERNELS: dict[str, Overload] = {"equi_width_bins": _resolve_equal_width}
