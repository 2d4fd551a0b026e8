"""Tensors on a device as columns, encoded there: the host reads bounds and counts of them, never values.

What is found is what `encode_column` finds of the same values on the CPU, estimates of distinct values apart.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.schema import ColumnEstimates, ColumnFacts, Statistics
from tqp.data.column import Column
from tqp.data.encoding.column_facts import SAMPLE, Sample, scale_distinct, statistics_of_sample

#: Kinds of values for which torch has few operations; int64 holds them all.
_WIDENED = (torch.uint16, torch.uint32)
#: 64 bits without a sign may need two words; this the host does.
LEFT_TO_THE_HOST = (torch.uint64,)
_NARROW = (torch.int8, torch.int16, torch.int32)


def encode_on_device(values: Tensor, data_type: DataType) -> Column:
    """The column of booleans, integers or floats [n] without NULLs, or of arrays, float32 [n, size]."""
    num_rows = values.shape[0]
    if values.dtype in (torch.float16, torch.bfloat16):
        values = values.float()
    if values.dim() == 2:
        return Column(data_type, num_rows, values.contiguous())
    if values.dtype is torch.bool:
        return Column(data_type, num_rows, values, estimates=ColumnEstimates(2.0))
    if values.dtype.is_floating_point:
        sample = _sampled(values) if num_rows else Sample(0, 0, 0)
        distinct = scale_distinct(sample.distinct, sample.singletons, sample.size, num_rows)
        return Column(data_type, num_rows, values, estimates=ColumnEstimates(distinct))
    if values.dtype in _WIDENED:
        values = values.to(torch.int64)
    if not num_rows:
        none = ColumnFacts(is_unique=True, is_sorted=True)
        return Column(data_type, 0, values.to(torch.int8), facts=none, estimates=ColumnEstimates(0.0))
    facts, estimates = _integer_statistics(values)
    low, high = facts.minimum, facts.maximum
    assert low is not None and high is not None
    fitting = (dtype for dtype in _NARROW if torch.iinfo(dtype).min <= low and high <= torch.iinfo(dtype).max)
    narrow = values.to(next(fitting, torch.int64))
    return Column(data_type, num_rows, narrow, facts=facts, estimates=estimates)


def _integer_statistics(values: Tensor) -> Statistics:
    steps = (values[1:] < values[:-1]).sum(), (values[1:] != values[:-1]).sum()
    found = [values.min().to(torch.int64), values.max().to(torch.int64), *steps]
    minimum, maximum, descents, changes = torch.stack(found).tolist()
    num_rows = values.shape[0]
    if not descents:
        runs = changes + 1
        facts = ColumnFacts(minimum, maximum, is_unique=runs == num_rows, is_sorted=True)
        return facts, ColumnEstimates(float(runs))

    def count_dense(span: int) -> int:
        seen = torch.zeros(span, dtype=torch.bool, device=values.device)
        seen[values.to(torch.int64) - minimum] = True
        return int(seen.sum())

    return statistics_of_sample((minimum, maximum), _sampled(values), num_rows, num_rows, count_dense)


def _sampled(values: Tensor) -> Sample:
    """What rows in regular steps tell, but for the frequent values."""
    sample = values[:: -(-values.shape[0] // SAMPLE)].sort().values
    is_first = torch.ones(sample.shape[0] + 1, dtype=torch.bool, device=values.device)
    is_first[1:-1] = sample[1:] != sample[:-1]
    counts = torch.stack([is_first[:-1].sum(), (is_first[:-1] & is_first[1:]).sum()])
    distinct, singletons = counts.tolist()
    return Sample(distinct, singletons, sample.shape[0])
