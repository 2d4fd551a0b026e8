"""Text of one width in all rows, put together in words of eight bytes: digits, names and marks at fixed places.

A row of numbers and marks is a few integers here, shifted and added up for all rows at once; strings point into the
words, so that a number of fewer digits than its place has just starts later. Functions take tensors, or arrays (see
`arrays`), and the text is ASCII: the highest bit of a word is never set.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.memory import allocation
from tqp.operators.memory.arrays import Array
from tqp.operators.numbers.elementwise import floor_divide
from tqp.operators.rows.selection import take

WORD = 8
_CUT = (1 << 64) - 1

#: A tensor or an array, int64 [n].
Integers = Any


class Run(NamedTuple):
    """`width` bytes of text in each row."""

    words: list[
        Integers | int
    ]  # int64 [n], or one for all rows; eight bytes each, little-endian, zero past the width
    width: int


def literal(text: str) -> Run:
    """The same ASCII text in all rows."""
    raw = text.encode("ascii")
    return Run(
        [int.from_bytes(raw[start : start + WORD], "little") for start in range(0, len(raw), WORD)], len(raw)
    )


def paste(runs: Sequence[Run]) -> Run:
    """One run after the other."""
    words: list[Integers | int] = []
    width = 0
    for run in runs:
        place, shift = divmod(width, WORD)
        shift *= 8
        for offset, word in enumerate(run.words):
            if not shift:
                words.append(word)
                continue
            words[place + offset] = words[place + offset] | _shift_left(word, shift)
            if shift // 8 + run.width - offset * WORD > WORD:
                words.append(word >> (64 - shift))
        width += run.width
    return Run(words, width)


def split(run: Run, place: int) -> tuple[Run, Run]:
    """The first bytes of a run, up to a place, and the others."""
    index, shift = divmod(place, WORD)
    before, behind = run.words[:index], run.words[index:]
    if shift:
        shift *= 8
        before = [*before, behind[0] & ((1 << shift) - 1)]
        following: list[Integers | int] = [*behind[1:], 0]
        behind = [
            word >> shift | _shift_left(after, 64 - shift)
            for word, after in zip(behind, following, strict=True)
        ]
    width = run.width - place
    return Run(before, place), Run(behind[: -(-width // WORD)], width)


def _shift_left(word: Integers | int, shift: int) -> Integers | int:
    return (word << shift) & _CUT if isinstance(word, int) else word << shift


@lru_cache
def _four_digits() -> Array:
    """The digits of 0 to 9999, four bytes each: int64 [10000]."""
    numbers = np.arange(10_000)
    table = np.zeros(10_000, np.int64)
    for place in range(4):
        table |= (numbers // 10 ** (3 - place) % 10 + ord("0")) << (8 * place)
    return table


def table_of(texts: Sequence[str]) -> Array:
    """Texts of at most eight bytes as words: int64 [m]."""
    return np.array([int.from_bytes(text.encode("ascii"), "little") for text in texts], np.int64)


def look_up(table: Integers, codes: Integers) -> Integers:
    """The entries of a table of words, int64 [m], that codes from 0 name; of a code of none any."""
    if isinstance(codes, np.ndarray):
        return table.take(codes, mode="clip")
    codes = codes.to(torch.int64).clamp(0, len(table) - 1)
    return take(torch.as_tensor(table).to(codes.device), codes)


def digits(values: Integers, width: int) -> Run:
    """Integers from 0 to 10**width - 1 with leading zeros."""
    if width > WORD:
        high = floor_divide(values, 10**WORD)
        return paste([digits(high, width - WORD), digits(values - high * 10**WORD, WORD)])
    if width <= 4:
        word = look_up(_four_digits(), values)
        return Run([word >> (8 * (4 - width)) if width < 4 else word], width)
    high = floor_divide(values, 10_000)
    word = look_up(_four_digits(), high) | (look_up(_four_digits(), values - high * 10_000) << 32)
    return Run([word >> (8 * (WORD - width)) if width < WORD else word], width)


def digit_counts(values: Integers, most: int, fewest: int = 1) -> Integers:
    """How many digits each of the integers from 0 to 10**most - 1 has, but at least so many: int8 [n]."""
    least = max(fewest, len(str(int(values.min())))) if values.shape[0] else fewest
    on_host = isinstance(values, np.ndarray)
    counts = np.zeros(values.shape, np.int8) if on_host else torch.zeros_like(values, dtype=torch.int8)
    counts += least
    for power in range(least, most):
        counts += values >= 10**power
    return counts


def width_of(values: Integers) -> int:
    """Digits of the greatest of the integers, none of them negative; 1 without any."""
    return len(str(int(values.max()))) if values.shape[0] else 1


def strings_of(
    run: Run, like: Integers, first: Integers | int = 0, last: Integers | int | None = None
) -> Strings:
    """Bytes first .. last of the run in each row (int [n] each, or the same in all; None: its width).

    `like`: int [n], on whose device, and for whose number of rows, the strings are.
    """
    num_rows, device = like.shape[0], _device(like)
    size = len(run.words)
    matrix = allocation.empty((num_rows, max(size, 1)), torch.int64, device)
    target = matrix.numpy() if isinstance(like, np.ndarray) else matrix
    for column, word in enumerate(run.words):
        target[:, column] = word
    starts = torch.arange(0, num_rows * size * WORD, max(size, 1) * WORD, device=device) if size else None
    if starts is None:
        starts = torch.zeros(num_rows, dtype=torch.int64, device=device)
    stop = run.width if last is None else last
    lengths = _tensor(stop - first, num_rows, device)
    if not (isinstance(first, int) and first == 0):
        starts = starts + _tensor(first, num_rows, device)
    return Strings(starts, lengths, matrix.view(torch.uint8).view(-1))


def _tensor(value: Integers | int, num_rows: int, device: torch.device) -> Tensor:
    if isinstance(value, int):
        return torch.full((num_rows,), value, dtype=torch.int32, device=device)
    return (torch.from_numpy(value) if isinstance(value, np.ndarray) else value).to(torch.int32)


def _device(values: Integers) -> torch.device:
    return values.device if isinstance(values, Tensor) else torch.device("cpu")


def number_strings(
    parts: Sequence[Run],
    like: Integers,
    skipped: Integers | int,
    negative: Integers | None,
    cut: Integers | int = 0,
) -> Strings:
    """The digits of a number, and what follows them, without the first `skipped` bytes and the last `cut`.

    With a minus where it is negative; None: it is nowhere.
    """
    has_signs = negative is not None and bool(negative.any())
    run = paste(
        [literal("0"), *parts] if has_signs else parts
    )  # room for a minus makes many a row a word longer
    strings = strings_of(run, like, skipped + has_signs, run.width - cut)
    if has_signs:
        signs = _tensor(negative, like.shape[0], strings.starts.device)
        rows = signs.to(torch.bool).nonzero().squeeze(1)
        starts = strings.starts - signs
        strings.data[torch.index_select(starts, 0, rows)] = ord("-")
        strings = Strings(starts, strings.lengths + signs, strings.data)
    return strings
