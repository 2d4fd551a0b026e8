"""Sizes as text for people: bytes in units (`format_bytes`), and a bar of a number's place in a range (`bar`)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers.wide import raise_where
from tqp.operators.strings.build import join
from tqp.operators.strings.layout import from_list, take
from tqp.operators.text.number_format import format_integers


def _format_bytes(numbers: Tensor, factor: int, units: Sequence[str]) -> Strings:
    """Integers [n] in the largest unit that they reach, with one digit behind the point, cut off from whole units below it."""
    numbers = numbers.to(torch.int64).reshape(-1)
    size, unit = torch.ones_like(numbers), torch.zeros_like(numbers)
    for power in range(1, len(units) + 1):
        reaches = torch.div(numbers, factor**power, rounding_mode="trunc") != 0
        size, unit = torch.where(reaches, factor**power, size), torch.where(reaches, power, unit)
    whole = torch.div(numbers, size, rounding_mode="trunc")
    below = torch.div(size, factor, rounding_mode="floor").clamp(min=1)
    rest = torch.div((numbers - whole * size).abs(), below, rounding_mode="floor")
    tenth = torch.div(rest * 10, torch.div(size, below, rounding_mode="floor"), rounding_mode="floor")
    endings = [" bytes", " byte", *[""] * 8, *(f".{digit} {name}" for name in units for digit in range(10))]
    is_one = (unit == 0) & ((numbers == 1) | (numbers == -1))
    return join(
        [format_integers(whole), take(from_list(endings, numbers.device), unit * 10 + tenth + is_one)]
    )


_WIDEST, _USUAL_WIDTH = 1_000, 80.0
_FULL, _PARTS = "\u2588", ("", *(chr(0x2590 - eighths) for eighths in range(1, 8)))


def _bar(
    number: Tensor,
    low: Tensor,
    high: Tensor,
    width: Tensor | None = None,
    *,
    validity: Tensor | None = None,
) -> Strings:
    """A bar as long, of `width` characters, as the number lies between the two others, in eighths; blanks behind it.

    float64 [n] each. Raises ExecutionError for a width that is none from 1 to 1000, and for ranges without end.
    """
    if width is None:
        width = torch.full_like(number, _USUAL_WIDTH)
    numbers = [each.to(torch.float64).reshape(-1) for each in (number, low, high, width)]
    number, low, high, width = torch.broadcast_tensors(*numbers)  # type: ignore[no-untyped-call]
    is_width = (width >= 1) & (width <= _WIDEST)
    raise_where(~is_width, f"bar(): the width must be from 1 to {_WIDEST}", validity)
    width = torch.where(is_width, width, 1.0)
    length = torch.where(number >= high, width, width * (number - low) / (high - low))
    is_empty = number.isnan() | low.isnan() | high.isnan() | (number <= low)
    length = torch.where(is_empty, 0.0, length)
    is_finite = length.isfinite()
    raise_where(~is_finite, "bar(): the bar's length must be finite", validity)
    length = torch.where(is_finite, length, 0.0)
    whole = length.to(torch.int64)
    eighths = ((length - whole) * 8).to(torch.int64)
    blanks = (width.to(torch.int64) - whole - eighths.clamp(max=1)).clamp(min=0)
    parts = take(from_list(_PARTS, width.device), eighths)
    return join([_repeated(_FULL, whole), parts, _repeated(" ", blanks)])


def _repeated(character: str, counts: Tensor) -> Strings:
    """One character up to 1000 times: slices of one buffer."""
    longest = from_list([character * _WIDEST], counts.device)
    return Strings(torch.zeros_like(counts), (counts * len(character.encode())).to(torch.int32), longest.data)


def _sizes(factor: int, units: str) -> Overload:
    kernel = Kernel(lambda numbers: _format_bytes(numbers, factor, units.split()))
    return lambda argument_types, result_type: kernel


SIZE_KERNELS: dict[str, Overload] = {
    "format_bytes": _sizes(1024, "KiB MiB GiB TiB PiB"),
    "format_decimal_bytes": _sizes(1000, "kB MB GB TB PB"),
    "bar": lambda argument_types, result_type: Kernel(_bar, checks=True),
}
