"""The table of what makes dates of pieces and text, and names and text of dates: make_date, dayname, strftime, ..."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.strings import layout as string_layout
from tqp.operators.temporal import dates
from tqp.operators.temporal.epochs import timestamp_of_ticks
from tqp.operators.temporal.make_dates import make_date, make_time, make_timestamp
from tqp.operators.text.strftime import DAY_NAMES, MONTH_NAMES, strftime
from tqp.operators.text.strptime import strptime, try_strptime

# ---- names ---------------------------------------------------------------------------------------------------------


def _resolve_name(names: tuple[str, ...], index: Callable[[Tensor], Tensor]) -> Overload:
    """The name of each day's `index`: Strings that share one small buffer; NULL for infinite dates."""

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        (data_type,) = argument_types
        if not (data_type.is_timestamp or data_type.kind is TypeKind.DATE):
            return None

        def name_of(values: Tensor) -> tuple[Strings, Tensor | None]:
            positions = dates.by_day(dates.days_of(values, data_type).reshape(-1), index)
            table = string_layout.from_list(names, values.device)
            return string_layout.take(table, positions), dates.finite_validity(values, data_type)

        return Kernel(name_of, returns_validity=True)

    return resolve


def _month_position(days: Tensor) -> Tensor:
    return dates.civil_from_days(days)[1] - 1


# ---- text by a pattern -----------------------------------------------------------------------------------------------


def _resolve_format(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    data_type = argument_types[0]
    if not (data_type.is_timestamp or data_type.kind is TypeKind.DATE):
        return None

    return Kernel(partial(strftime, data_type=data_type), constant_arguments=frozenset({1}))


def _resolve_parse(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    if argument_types[0].kind is not TypeKind.VARCHAR or result_type.kind is not TypeKind.TIMESTAMP:
        return None
    return Kernel(strptime, constant_arguments=frozenset({1}), checks=True)


def _resolve_try_parse(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    return Kernel(try_strptime, constant_arguments=frozenset({1}), returns_validity=True)


# ---- pieces and numbers ----------------------------------------------------------------------------------------------


def _resolve_make_date(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    """Of year, month and day, or of the days since 1970."""
    return (
        Kernel(make_date, checks=True)
        if len(argument_types) > 1
        else Kernel(lambda days: days.to(torch.int64))
    )


def _resolve_make_timestamp(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    return Kernel(make_timestamp if len(argument_types) > 1 else timestamp_of_ticks, checks=True)


FORMAT_KERNELS: dict[str, Overload] = {
    "make_date": _resolve_make_date,
    "make_time": lambda argument_types, result_type: Kernel(make_time, checks=True),
    "make_timestamp": _resolve_make_timestamp,
    "dayname": _resolve_name(DAY_NAMES, dates.day_of_week),
    "monthname": _resolve_name(MONTH_NAMES, _month_position),
    "strftime": _resolve_format,
    "strptime": _resolve_parse,
    "try_strptime": _resolve_try_parse,
}
