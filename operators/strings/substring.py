"""Characters of each row from one place to another: substring, left and right."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.rows.batches import common_rows
from tqp.operators.strings.characters import Bounds, is_ascii, slice_characters, slice_same_characters
from tqp.operators.strings.graphemes import slice_graphemes
from tqp.operators.strings.layout import broadcast

#: No string has this many characters: positions are cut to it so that adding to them cannot overflow.
_FAR = 1 << 40


def substring(strings: Strings, start: Tensor, count: Tensor | None = None) -> Strings:
    """substring(strings, start[, count]) as DuckDB has it: `start` from 1, or negative from the end; a negative
    `count` takes characters before `start`. Both int64 [n] or 0-d.
    """
    if is_host(strings.starts) and start.numel() == 1 and (count is None or count.numel() == 1):
        begin = int(_near(start)) - 1
        end = _FAR if count is None else begin + int(_near(count))
        if -1 <= begin <= end:
            return slice_same_characters(strings, max(begin, 0), max(end, 0))
    return slice_characters(_as_many(strings, start, count), _bounds_of_substring(start, count))


def substring_grapheme(strings: Strings, start: Tensor, count: Tensor | None = None) -> Strings:
    """As `substring`, of what a reader sees as characters."""
    return slice_graphemes(_as_many(strings, start, count), _bounds_of_substring(start, count))


def _bounds_of_substring(start: Tensor, count: Tensor | None) -> Bounds:
    position_from_one = _near(start)
    wanted = None if count is None else _near(count)

    def bounds(characters: Tensor) -> tuple[Tensor, Tensor]:
        begin = torch.where(position_from_one < 0, position_from_one + characters, position_from_one - 1)
        if wanted is None:
            return begin, characters
        end = begin + wanted
        return torch.minimum(begin, end), torch.maximum(begin, end)

    return bounds


def left(strings: Strings, count: Tensor) -> Strings:
    """The first `count` characters, or all but the last -`count`."""
    if is_host(strings.starts) and count.numel() == 1:
        return slice_same_characters(strings, 0, int(_near(count)))
    return slice_characters(_as_many(strings, count), _bounds_of_left(count))


def left_grapheme(strings: Strings, count: Tensor) -> Strings:
    """As `left`, of what a reader sees as characters."""
    return slice_graphemes(_as_many(strings, count), _bounds_of_left(count))


def _bounds_of_left(count: Tensor) -> Bounds:
    wanted = _near(count)

    def bounds(characters: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros_like(characters), torch.where(wanted < 0, wanted + characters, wanted)

    return bounds


def right(strings: Strings, count: Tensor) -> Strings:
    """The last `count` characters, or all but the first -`count`."""
    if is_host(strings.starts) and count.numel() == 1 and not is_ascii(strings):
        number = int(_near(count))
        return (
            slice_same_characters(strings, -number, None) if number else slice_same_characters(strings, 0, 0)
        )
    return slice_characters(_as_many(strings, count), _bounds_of_right(count))


def right_grapheme(strings: Strings, count: Tensor) -> Strings:
    """As `right`, of what a reader sees as characters."""
    return slice_graphemes(_as_many(strings, count), _bounds_of_right(count))


def _bounds_of_right(count: Tensor) -> Bounds:
    wanted = _near(count)

    def bounds(characters: Tensor) -> tuple[Tensor, Tensor]:
        return torch.where(wanted < 0, -wanted, characters - wanted), characters

    return bounds


def _near(number: Tensor) -> Tensor:
    return number.to(torch.int64).clamp(-_FAR, _FAR)


def _as_many(strings: Strings, *others: Tensor | None) -> Strings:
    """`strings`, its one row repeated where another argument has more, or none."""
    return broadcast(strings, common_rows(each.numel() for each in others if each is not None))
