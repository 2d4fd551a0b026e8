"""Write values as DuckDB prints them: anything to VARCHAR."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.data.strings import Strings
from tqp.operators.numbers.unsigned_wide import format_unsigned
from tqp.operators.strings.build import join
from tqp.operators.strings.layout import from_list, take
from tqp.operators.text.number_format import format_decimals, format_floats, format_integers
from tqp.operators.text.time_format import (
    format_dates,
    format_intervals,
    format_times,
    format_times_with_zone,
    format_timestamps,
)
from tqp.operators.text.uuids import format_uuids

Formatter = Callable[[Tensor], Strings]


def formatter(source: DataType) -> Formatter | None:
    """The function that writes a tensor of values of a type as Strings [n]; None if the type has no text."""
    if source.is_integer:
        return format_integers
    if source.kind is TypeKind.UHUGEINT:
        return format_unsigned
    if source.is_decimal:
        return lambda values: format_decimals(values, source)
    if source.is_float:
        return format_floats
    if source.is_timestamp:
        return lambda values: format_timestamps(values, source)
    by_kind: dict[TypeKind, Formatter] = {
        TypeKind.BOOLEAN: format_booleans,
        TypeKind.DATE: format_dates,
        TypeKind.TIME: format_times,
        TypeKind.TIME_TZ: format_times_with_zone,
        TypeKind.INTERVAL: format_intervals,
        TypeKind.UUID: format_uuids,
        TypeKind.ARRAY: _format_arrays,
    }
    return by_kind.get(source.kind)


def format_booleans(values: Tensor) -> Strings:
    """'true' or 'false'."""
    truth = values.reshape(-1).to(torch.int32)
    return Strings(5 * truth.to(torch.int64), 5 - truth, from_list(["falsetrue"], values.device).data)


def _format_arrays(values: Tensor) -> Strings:
    size = values.shape[-1]
    numbers = format_floats(values)
    first = torch.arange(values.reshape(-1, size).shape[0], device=values.device) * size
    columns = [take(numbers, first + index) for index in range(size)]
    comma = from_list([", "], values.device)
    parts = [from_list(["["], values.device)]
    for index, column in enumerate(columns):
        parts += [comma, column] if index else [column]
    return join([*parts, from_list(["]"], values.device)])
