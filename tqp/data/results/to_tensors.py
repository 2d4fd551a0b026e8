"""Columns as tensors of the dtype that their logical type suggests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor

from tqp.core.arguments import unique_names
from tqp.core.datatypes import TypeKind
from tqp.core.errors import BindError, ExecutionError
from tqp.data.column import Column
from tqp.data.division import divide_by
from tqp.data.encoding.strings import dictionary_codes
from tqp.data.nested import Lists, flattened
from tqp.data.results.to_arrow import column_to_arrow
from tqp.data.unsigned_words import words_of

#: Torch has few operations on wider unsigned integers, so those leave in the next signed type.
_DTYPES: dict[TypeKind, torch.dtype] = {
    TypeKind.NULL: torch.int8,
    TypeKind.BOOLEAN: torch.bool,
    TypeKind.TINYINT: torch.int8,
    TypeKind.SMALLINT: torch.int16,
    TypeKind.INTEGER: torch.int32,
    TypeKind.UTINYINT: torch.uint8,
    TypeKind.USMALLINT: torch.int32,
    TypeKind.FLOAT: torch.float32,
    TypeKind.DOUBLE: torch.float64,
    TypeKind.DATE: torch.int32,
    TypeKind.ARRAY: torch.float32,
}

Decimals = Literal["float", "scaled"]
StringsAs = Literal["error", "codes"]


def column_tensor(
    name: str, column: Column, decimals: Decimals = "float", strings: StringsAs = "error"
) -> Tensor:
    """The values of one column on its device, without a copy where storage and answer agree; see `Result.to_torch`.

    Raises ExecutionError for strings and UUIDs unless these are asked for as codes, for times with a zone, and for integers
    beyond 64 bits.
    """
    if decimals not in ("float", "scaled"):
        raise BindError(f'to_torch(decimals={decimals!r}): choose "float" or "scaled"')
    if strings not in ("error", "codes"):
        raise BindError(f'to_torch(strings={strings!r}): choose "error" or "codes"')
    data_type = column.data_type
    if data_type.is_string or data_type.is_enum or data_type.kind is TypeKind.UUID:
        if strings == "error":
            raise ExecutionError(
                f'column "{name}" is {data_type}, which has no tensor form; leave it out of the query or call'
                ' to_torch(strings="codes")'
            )
        if data_type.is_enum and column.values is not None:
            return column.values.long()
        codes = dictionary_codes(name, column_to_arrow(name, column))
        return codes.to(column.tensors()[0].device)
    if data_type.kind is TypeKind.ARRAY and data_type.is_nested:
        matrix = _matrix(column)
        if matrix is not None:
            return matrix
    if data_type.kind is TypeKind.TIME_TZ:
        raise ExecutionError(
            f'column "{name}" is {data_type}, which has no tensor form; cast it to TIME in the query'
        )
    if data_type.is_nested:
        raise ExecutionError(
            f'column "{name}" is {data_type}, which has no tensor form; unnest it or read its fields in the query'
        )
    assert column.values is not None
    if data_type.is_decimal and decimals == "float":
        return decimal_to_double(column.values, data_type.scale)
    if data_type.kind is TypeKind.UHUGEINT:
        words = words_of(column.values)
        return _narrow(name, column, words, words[:, 0] < 0)
    if data_type.is_integer_like and column.values.dim() == 2:
        return _narrow(name, column, column.values)
    return column.values.to(_DTYPES.get(data_type.kind, torch.int64))


def tensors_by_name(
    names: Iterable[str],
    columns: Iterable[Column],
    decimals: Decimals = "float",
    strings: StringsAs = "error",
) -> dict[str, Tensor]:
    """A tensor for each column, and its validity under `name__validity` where it contains NULL; see `Result.to_torch`."""
    tensors: dict[str, Tensor] = {}
    for name, column in zip(unique_names(names), columns, strict=True):
        tensors[name] = column_tensor(name, column, decimals, strings)
        if column.validity is not None and not bool(column.validity.all()):
            tensors[f"{name}__validity"] = column.validity
    return tensors


def decimal_to_double(values: Tensor, scale: int) -> Tensor:
    """float64 [n] from scaled integers [n] or wide pairs [n, 2]; rounded where 53 bits do not suffice."""
    if values.dim() == 2:
        high, low = values.unbind(1)
        unsigned_low = low.double() + (low < 0) * 2.0**64
        doubles = high.double() * 2.0**64 + unsigned_low
        # Small negative numbers would lose their digits against 2^64.
        doubles = torch.where(high == low >> 63, low.double(), doubles)
    else:
        doubles = values.double()
    return divide_by(doubles, 10.0**scale) if scale else doubles


def _matrix(column: Column) -> Tensor | None:
    """An ARRAY of numbers, [n, size], rows that are NULL being zeros; None where an element is NULL or no single number."""
    element, size, lists = column.data_type.element, column.data_type.size, column.nested
    assert isinstance(lists, Lists)
    elements, _ = flattened(lists, column.validity)
    has_null = elements.validity is not None and not bool(elements.validity.all())
    if has_null or not (element.is_integer or element.is_float):
        return None
    assert isinstance(elements.values, Tensor)
    if elements.values.dim() > 1:
        return None
    dtype = _DTYPES.get(element.kind, torch.int64)
    made = torch.zeros(column.num_rows, size, dtype=dtype, device=elements.values.device)
    rows = slice(None) if column.validity is None else column.validity
    made[rows] = elements.values.to(dtype).reshape(-1, size)
    return made


def _narrow(name: str, column: Column, words: Tensor, beyond: Tensor | None = None) -> Tensor:
    """int64 [n] of words with a sign, int64 [n, 2], but for those that are `beyond` them."""
    high, low = words.unbind(1)
    is_outside = high != low >> 63
    if beyond is not None:
        is_outside |= beyond
    if column.validity is not None:
        is_outside &= column.validity
    if is_outside.any():
        raise ExecutionError(
            f'column "{name}" ({column.data_type}) holds an integer beyond 64 bits, which no tensor dtype has; cast it to'
            " DOUBLE in the query"
        )
    return low.contiguous()
