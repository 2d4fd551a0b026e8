"""Times of day, with a zone or without: what a clock shows, and the times with a zone that are made of that.

A TIME is microseconds since midnight; `tqp.core.zoned_times` says how a TIME WITH TIME ZONE is stored.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core import zoned_times
from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.time_limits import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers.elementwise import floor_remainder, truncate_divide
from tqp.operators.numbers.logic import any_true


def clock_of(values: Tensor, data_type: DataType) -> Tensor:
    """Microseconds since the local midnight of times, int64 [n]."""
    values = values.to(torch.int64)
    clock: Tensor = zoned_times.clock_of_stored(values) if data_type.kind is TypeKind.TIME_TZ else values
    return clock


def offset_of(values: Tensor, data_type: DataType) -> Tensor:
    """Seconds east of UTC, int64 [n]; zeros of a TIME."""
    values = values.to(torch.int64)
    if data_type.kind is not TypeKind.TIME_TZ:
        return torch.zeros_like(values)
    offset: Tensor = zoned_times.offset_of_stored(values)
    return offset


def with_clock(values: Tensor, clock: Tensor) -> Tensor:
    """Times with the zones of `values` and other microseconds since midnight, int64 [n]."""
    made: Tensor = zoned_times.stored_time(clock, zoned_times.offset_of_stored(values.to(torch.int64)))
    return made


def in_universal_time(clock: Tensor) -> Tensor:
    """Times with the offset of UTC, of any microseconds, which go around the clock: int64 [n]."""
    made: Tensor = zoned_times.stored_time(floor_remainder(clock, MICROSECONDS_PER_DAY), 0)
    return made


def _universal_clock(values: Tensor) -> Tensor:
    """What a clock in UTC shows, as a TIME, int64 [n]: 24:00:00 is 00:00:00."""
    clock = zoned_times.universal_clock_of_stored(values.to(torch.int64))
    return floor_remainder(clock, MICROSECONDS_PER_DAY)


def _at_offset(interval: Tensor, values: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """The times as clocks show them whose offset an interval [n, 3] or [1, 3] is; its months and days do not count.

    Raises ExecutionError for an offset of 16 hours or more.
    """
    shift = interval[..., 2]
    offset = truncate_divide(shift.contiguous(), MICROSECONDS_PER_SECOND)
    beyond = offset.abs() > zoned_times.LAST_OFFSET
    if any_true(beyond if validity is None else beyond & validity):
        raise ExecutionError("Timezone offset out of range: it is less than 16 hours")
    clock = floor_remainder(
        _universal_clock(values) + floor_remainder(shift, MICROSECONDS_PER_DAY), MICROSECONDS_PER_DAY
    )
    made: Tensor = zoned_times.stored_time(
        clock, offset.clamp(-zoned_times.LAST_OFFSET, zoned_times.LAST_OFFSET)
    )
    return made


CLOCK_KERNELS: dict[str, Overload] = {
    "timezone_of_time": lambda argument_types, result_type: Kernel(_at_offset, checks=True),
    "universal_clock": lambda argument_types, result_type: Kernel(_universal_clock),
    "timetz_byte_comparable": lambda argument_types, result_type: Kernel(
        lambda values: values.to(torch.int64)
    ),
}
