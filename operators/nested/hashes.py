"""hash(): the 64 bits that DuckDB makes of a value of any type, NULL included, and of several values in a row.

Integers, and the bits of floats, are mixed; texts are multiplied together eight bytes at a time. What values have come to is mixed with
each that follows: argument by argument, within structs field by field, within lists element by element. An empty list, and one that is
NULL, changes nothing that stands before it. Integers of up to 32 bits are mixed without a sign.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.time_limits import DAYS_PER_MONTH
from tqp.core.zoned_times import OFFSET_BITS, clock_of_stored
from tqp.data.bits import packed_bits
from tqp.data.nested import Lists, Structs, Values, Vector, count_of, take
from tqp.data.strings import Strings
from tqp.data.unsigned_words import words_of
from tqp.operators.kernel import Kernel, NullRule, Overload
from tqp.operators.nested.layout import device_of
from tqp.operators.numbers import wide
from tqp.operators.numbers.comparisons import interval_order
from tqp.operators.numbers.logic import combine_validity
from tqp.operators.rows.batches import common_rows
from tqp.operators.rows.selection import row_indices
from tqp.operators.string_keys.pack import signed
from tqp.operators.strings.layout import from_arrow, to_arrow
from tqp.operators.strings.words import WORD, words

_NULL = signed(0xBF58476D1CE4E5B9)
_FACTOR = signed(0xD6E8FEB86659FD93)
_FACTOR_OF_LENGTH = signed(0xC6A4A7935BD1E995)
_SEED = 0xE17A1465
_LOW_BITS = 2**32 - 1
#: The NaN that stands for all of them.
_NAN = {torch.float32: 0x7FC00000, torch.float64: 0x7FF8000000000000}
#: DECIMALs of so many digits have 32 bits in DuckDB, and of so many 64.
_DIGITS_OF_32_BITS, _DIGITS_OF_64_BITS = 9, 18


def hashes(types: Sequence[DataType], *pairs: tuple[Values, Tensor | None]) -> tuple[Tensor, None]:
    """The hash of each row of columns (values, validity) of these types, int64 [n, 2]; a literal has one row."""
    num_rows = common_rows(_count(values) for values, _ in pairs)
    combined: Tensor | None = None
    for pair, each in zip(pairs, types, strict=True):
        combined = _hashes(combined, Vector(*pair), each, num_rows)
    assert combined is not None
    return wide.from_unsigned(combined), None


def _count(values: Values) -> int:
    return 1 if isinstance(values, Tensor) and values.dim() == 0 else count_of(values)


def _folded(words: Tensor) -> Tensor:
    return (words ^ ((words >> 32) & _LOW_BITS)) * _FACTOR


def _mixed(words: Tensor) -> Tensor:
    mixed = _folded(_folded(words))
    return mixed ^ ((mixed >> 32) & _LOW_BITS)


def _combined(before: Tensor | None, hashed: Tensor) -> Tensor:
    return hashed if before is None else _folded(before) ^ hashed


def _hashes(before: Tensor | None, vector: Vector, data_type: DataType, count: int) -> Tensor:
    """int64 [count]: the hashes of values, or what these make of the hashes `before` them; a literal is of all rows."""
    values, validity = vector
    if isinstance(values, Lists):
        return _of_lists(before, vector, data_type.element, count)
    if isinstance(values, Structs):
        for field, each in zip(values.fields, data_type.children, strict=True):
            both = Vector(field.values, combine_validity(field.validity, validity))
            before = _hashes(before, both, each, count)
        assert before is not None
        return before
    if data_type.kind is TypeKind.ARRAY:
        assert isinstance(values, Tensor)
        made = before
        for part in values.reshape(-1, values.shape[-1]).unbind(1):
            made = _combined(made, _mixed(_float_bits(part)).expand(count))
        assert made is not None
        unchanged = torch.full_like(made, _NULL) if before is None else before
        return made if validity is None else torch.where(validity.reshape(-1), made, unchanged)
    if data_type.kind is TypeKind.NULL:
        hashed = torch.full((count,), _NULL, dtype=torch.int64, device=device_of(values))
    elif isinstance(values, Strings):
        hashed = _of_texts(values, data_type).expand(count)
    else:
        hashed, *others = map(_mixed, _words(values, data_type))
        for other in others:
            hashed = hashed ^ other
        hashed = hashed.expand(count)
    if validity is not None:
        hashed = torch.where(validity.reshape(-1), hashed, _NULL)
    return _combined(before, hashed)


def _of_lists(before: Tensor | None, vector: Vector, element: DataType, count: int) -> Tensor:
    """Of the elements in turn, as many steps as the longest list has elements.

    Where there is none, that of NULL, or what was before.
    """
    lists, validity = vector
    assert isinstance(lists, Lists)
    of_elements = _hashes(None, lists.elements, element, count_of(lists.elements.values))
    lengths = (lists.lengths if validity is None else lists.lengths * validity).expand(count)
    starts, is_first = lists.starts.expand(count), before is None
    result = torch.full_like(lengths, _NULL) if before is None else before.clone()
    place, rows = 0, row_indices(lengths > 0)
    while rows.shape[0]:
        each = torch.index_select(of_elements, 0, torch.index_select(starts, 0, rows) + place)
        so_far = None if is_first and not place else torch.index_select(result, 0, rows)
        result.index_copy_(0, rows, _combined(so_far, each))
        place += 1
        rows = torch.index_select(rows, 0, row_indices(torch.index_select(lengths, 0, rows) > place))
    return result


def _of_texts(strings: Strings, data_type: DataType) -> Tensor:
    """Of the bytes that DuckDB stores."""
    if data_type.kind is TypeKind.BIT:
        packed = packed_bits(to_arrow(strings))
        strings = from_arrow(packed, strings.starts.device)
    result = _SEED ^ (strings.lengths.to(torch.int64) * _FACTOR_OF_LENGTH)
    offset, rows = 0, row_indices(strings.lengths > 0)
    while rows.shape[0]:
        taken = take(strings, rows)
        assert isinstance(taken, Strings)
        word = words(taken, offset)
        result.index_copy_(0, rows, (torch.index_select(result, 0, rows) ^ word) * _FACTOR)
        offset += WORD
        rows = torch.index_select(rows, 0, row_indices(torch.index_select(strings.lengths, 0, rows) > offset))
    return _mixed(result)


def _float_bits(values: Tensor) -> Tensor:
    """The bits of floats, int64 [n]: of both zeros the same, and of every NaN."""
    values = torch.where(values == 0, 0.0, values)
    bits = values.view(torch.int32 if values.dtype is torch.float32 else torch.int64).to(torch.int64)
    bits = torch.where(torch.isnan(values), _NAN[values.dtype], bits)
    return bits & _LOW_BITS if values.dtype is torch.float32 else bits


def _words(values: Tensor, data_type: DataType) -> list[Tensor]:
    """What of a number is mixed, int64 [n] each."""
    kind = data_type.kind
    if kind is TypeKind.INTERVAL:
        return _interval_words(values.reshape(-1, 3))
    if data_type.is_float:
        return [_float_bits(values.reshape(-1).contiguous())]
    if kind is TypeKind.UHUGEINT:
        return list(words_of(values).unbind(1))
    digits = data_type.precision if data_type.is_decimal else 0
    if kind in (TypeKind.HUGEINT, TypeKind.UUID) or digits > _DIGITS_OF_64_BITS:
        return list(wide.widen(values).unbind(1))
    whole = values[:, 1] if wide.is_wide(values) else values.to(torch.int64).reshape(-1)
    if kind is TypeKind.TIME_TZ:
        return [(clock_of_stored(whole) << OFFSET_BITS) | (whole & ((1 << OFFSET_BITS) - 1))]
    is_short = digits <= _DIGITS_OF_32_BITS if digits else kind in _SHORT
    return [whole & _LOW_BITS if is_short else whole]


#: Types whose values DuckDB mixes as 32 bits.
_SHORT = frozenset(
    (
        *(TypeKind.BOOLEAN, TypeKind.TINYINT, TypeKind.SMALLINT, TypeKind.INTEGER),
        *(TypeKind.UTINYINT, TypeKind.USMALLINT, TypeKind.UINTEGER),
        *(TypeKind.DATE, TypeKind.ENUM),
    )
)


def _interval_words(intervals: Tensor) -> list[Tensor]:
    """Days, months and microseconds, with no more of the shorter ones than make one of the longer."""
    days, clock = interval_order(intervals).unbind(1)
    months = torch.div(days, DAYS_PER_MONTH, rounding_mode="floor")
    return [days - months * DAYS_PER_MONTH, months, clock]


def _resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    return Kernel(
        lambda *pairs: hashes(argument_types, *pairs), NullRule.CUSTOM, accepts_wide=True, any_width=True
    )


HASH_KERNELS: dict[str, Overload] = {"hash": _resolve}
