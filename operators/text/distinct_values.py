"""Functions of text that Python computes, once for each distinct text: from columns to Python values, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.core.process.garbage import collected_later
from tqp.core.text.numbers import ParseFailure
from tqp.data.nested import Values, element_dtype, take
from tqp.data.strings import Strings
from tqp.operators.nested.layout import from_python, take_padded_values
from tqp.operators.numbers import wide
from tqp.operators.rows.batches import common_rows
from tqp.operators.rows.selection import row_indices
from tqp.operators.string_keys.codes import distinct_values
from tqp.operators.strings import layout


def column_of(items: Sequence[Any], codes: Tensor, data_type: DataType) -> tuple[Values, Tensor]:
    """Each row's item, and whether it is not NULL."""
    device = codes.device

    def leaf(values: Sequence[Any], leaf_type: DataType) -> Values:
        if leaf_type.is_string:
            return layout.from_list([_bytes_of(value or "") for value in values], device)
        if leaf_type.kind is TypeKind.INTERVAL:
            triples = [value or (0, 0, 0) for value in values]
            return torch.tensor(triples, dtype=torch.int64, device=device).reshape(len(triples), 3)
        numbers = [0 if value is None else value for value in values]
        dtype = element_dtype(leaf_type) if data_type.is_nested else _plain_dtype(leaf_type)
        if dtype is None:
            return wide.from_ints(numbers, device)
        return torch.tensor(numbers, dtype=dtype, device=device)

    validity = torch.tensor([item is not None for item in items], dtype=torch.bool, device=device)
    return take(from_python(items, data_type, leaf), codes), torch.index_select(validity, 0, codes)


def column_of_texts(
    strings: Strings, validity: Tensor | None, read: Callable[[str], Any], data_type: DataType
) -> tuple[Values, Tensor]:
    """What is read of each text that counts, once of each distinct one, and whether it is not NULL."""
    num_rows, rows, (some,) = rows_that_count([strings], validity)
    codes, texts = distinct(some)
    return column_of(*spread([read(text) for text in texts], codes, rows, num_rows), data_type)


def _bytes_of(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _plain_dtype(data_type: DataType) -> torch.dtype:
    """Of values that are not inside of others."""
    return torch.bool if data_type.kind is TypeKind.BOOLEAN else torch.int64


def rows_that_count(
    columns: Sequence[Any], validity: Tensor | None
) -> tuple[int, Tensor | None, Sequence[Any]]:
    """The number of rows, the rows that count (None: all), and the columns of these rows."""
    num_rows = common_rows(map(size_of, columns))
    rows = None if validity is None else row_indices(validity.expand(num_rows))
    taken: list[Any] = []
    for column in columns:
        if isinstance(column, Strings):
            column = layout.broadcast(column, num_rows) if column.num_rows != num_rows else column
            taken.append(column if rows is None else layout.take(column, rows))
        else:
            column = column.expand(num_rows)
            taken.append(column if rows is None else torch.index_select(column, 0, rows))
    return num_rows, rows, taken


def size_of(column: Strings | Tensor) -> int:
    """How many values there are: 1 of a number without dimensions."""
    if isinstance(column, Strings):
        return column.num_rows
    return column.shape[0] if column.dim() else 1


def spread(items: list[Any], codes: Tensor, rows: Tensor | None, num_rows: int) -> tuple[list[Any], Tensor]:
    """The items of all rows, of those of the rows that count."""
    if rows is None:
        return items, codes
    spread = torch.full((num_rows,), len(items), dtype=torch.int64, device=codes.device)
    return [*items, None], spread.index_copy(0, rows, codes)


def spread_values(
    values: Values, validity: Tensor, rows: Tensor | None, num_rows: int
) -> tuple[Values, Tensor]:
    """The values of all rows, of those of the rows that count (None: all of them): NULL in others."""
    if rows is None:
        return values, validity
    places = torch.full((num_rows,), -1, dtype=torch.int64, device=validity.device)
    places.index_copy_(0, rows, torch.arange(rows.shape[0], device=rows.device))
    valid = torch.zeros(num_rows, dtype=torch.bool, device=validity.device).index_copy_(0, rows, validity)
    return take_padded_values(values, places), valid


def distinct(column: Any) -> tuple[Tensor, list[Any]]:
    """A number for each value, and the texts or numbers by number; floats are distinct by their bits."""
    if isinstance(column, Strings):
        codes, distinct = distinct_values(column)
        return codes, [content.decode() for content in layout.to_list(distinct)]
    if wide.is_wide(column):
        known, codes = torch.unique(column, dim=0, return_inverse=True)
        return codes, wide.to_ints(known)
    is_float = column.is_floating_point()
    words = column.to(torch.float64).view(torch.int64) if is_float else column
    known, codes = torch.unique(words.reshape(-1), return_inverse=True)
    return codes, (known.view(torch.float64) if is_float else known).tolist()


@collected_later()
def of_several(
    function: Callable[..., Any], columns: Sequence[Any], readers: Sequence[Callable[[Any], Any]]
) -> tuple[Tensor, list[Any]]:
    """A function of columns, called once for each combination of their values, each of which is read once.

    Python makes many objects meanwhile, none of them garbage.
    """
    codes: Tensor | None = None
    arguments: list[tuple[Any, ...]] = []
    for column, reader in zip(columns, readers, strict=True):
        own, texts = distinct(column)
        values = [read_by(reader, each) for each in texts]
        if codes is None:
            codes, arguments = own, [(value,) for value in values]
            continue
        pairs, codes = torch.unique(codes * max(len(values), 1) + own, return_inverse=True)
        arguments = [(*arguments[pair // len(values)], values[pair % len(values)]) for pair in pairs.tolist()]
    assert codes is not None
    return codes, [function(*each) for each in arguments]


def read_by(reader: Callable[[Any], Any], text: Any) -> Any:
    """What the reader makes of a text, which raises ExecutionError instead of ParseFailure."""
    try:
        return reader(text)
    except ParseFailure as failure:
        raise ExecutionError(str(failure)) from None


def texts_of_each(
    columns: Sequence[Strings | Tensor],
    write: Callable[..., str],
    readers: Sequence[Callable[[Any], Any]] = (),
) -> Strings:
    """What a function writes of each row's texts or numbers, which is called once for those that are equal.

    `readers`: of each column, as of `of_several`; the values themselves where there are none.
    """
    codes, texts = of_several(write, columns, readers or [same_value] * len(columns))
    return layout.take(layout.from_list(texts, codes.device), codes)


def same_value(value: Any) -> Any:
    """The value: what reads a number that is stored as itself."""
    return value
