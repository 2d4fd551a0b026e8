"""Move, join, repeat and choose values of any form, nested ones among them: what concerns where they lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import BOOLEAN, DataType, TypeKind
from tqp.data.nested import (
    Lists,
    Structs,
    Values,
    Vector,
    count_of,
    cut_vector,
    flattened,
    take,
)
from tqp.data.strings import Strings
from tqp.operators.memory import allocation
from tqp.operators.memory.allocation import Map
from tqp.operators.numbers import logic
from tqp.operators.rows.selection import take_padded
from tqp.operators.strings import layout as string_layout


def take_selected_values(values: Values, rows: Tensor | None) -> Values:
    """The given rows, or all of them."""
    return values if rows is None else take(values, rows)


def take_padded_values(values: Values, rows: Tensor) -> Values:
    """The given rows; any value, which may be NULL, where a row is -1 or there are no values at all."""
    if isinstance(values, Tensor):
        return take_padded(values, rows)
    if isinstance(values, Structs):
        return Structs(tuple(_take_padded_vector(field, rows) for field in values.fields))
    if values.num_rows:
        return take(values, rows.clamp(min=0))
    none = torch.zeros(rows.shape[0], dtype=torch.int64, device=rows.device)
    return values._replace(starts=none, lengths=none.to(values.lengths.dtype))


def _take_padded_vector(vector: Vector, rows: Tensor) -> Vector:
    validity = None if vector.validity is None else take_padded(vector.validity, rows)
    return Vector(take_padded_values(vector.values, rows), validity)


def take_padded_vector(vector: Vector, rows: Tensor) -> tuple[Values, Tensor]:
    """The given rows of a vector and their validity: False where a row is -1."""
    taken = _take_padded_vector(vector, rows)
    present = rows >= 0
    return taken.values, present if taken.validity is None else present & taken.validity


def take_where(vector: Vector, rows: Tensor, inside: Tensor) -> tuple[Values, Tensor]:
    """The given rows of a vector and their validity: False where a row (int64 [m], which may change) is not inside, wherever it lies."""
    count = count_of(vector.values)
    rows = rows.clamp_(0, max(count - 1, 0))
    values = take_padded_values(vector.values, rows) if count == 0 else take(vector.values, rows)
    return values, inside if vector.validity is None else inside & take_padded(vector.validity, rows)


def every_row(values: Values, num_rows: int) -> Values:
    """One row as `num_rows` of them; other values are returned as they are."""
    if count_of(values) != 1 or num_rows == 1:
        return values
    if isinstance(values, Tensor):
        return values.expand(num_rows, *values.shape[1:])
    if isinstance(values, Structs):
        return Structs(tuple(every_row_of(field, num_rows) for field in values.fields))
    return values._replace(starts=values.starts.expand(num_rows), lengths=values.lengths.expand(num_rows))


def every_row_of(vector: Vector, num_rows: int) -> Vector:
    """As `every_row`, of a vector."""
    validity = vector.validity
    if validity is not None and validity.shape[0] == 1:
        validity = validity.expand(num_rows)
    return Vector(every_row(vector.values, num_rows), validity)


def concatenate(parts: Sequence[Any], workers: Map | None = None) -> Any:
    """The rows of all parts, which are of one type, in order; lists over the same elements share them. At least one part."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if isinstance(first, Tensor):
        return allocation.concatenate([part.contiguous() for part in parts], workers)
    if isinstance(first, Strings):
        return string_layout.concatenate(parts)
    if isinstance(first, Structs):
        fields = zip(*(part.fields for part in parts), strict=True)
        return Structs(tuple(concatenate_vectors(each) for each in fields))
    parts = over_same_elements(parts)
    return Lists(
        torch.cat([part.starts for part in parts]),
        torch.cat([part.lengths for part in parts]),
        parts[0].elements,
    )


def concatenate_vectors(parts: Sequence[Vector]) -> Vector:
    """As `concatenate`, of vectors."""
    validity = None
    if any(part.validity is not None for part in parts):
        validity = torch.cat([validity_of(part) for part in parts])
    return Vector(concatenate([part.values for part in parts]), validity)


def interleaved(parts: Sequence[Vector]) -> Vector:
    """The first rows of all parts, which are of one type and length, then the second ones, and so on. At least one part."""
    joined = concatenate_vectors(parts)
    return _transposed(joined, len(parts)) if len(parts) > 1 else joined


def _transposed(vector: Vector, count: int) -> Vector:
    validity = None if vector.validity is None else _transposed_rows(vector.validity, count)
    return Vector(_transposed_values(vector.values, count), validity)


def _transposed_values(values: Values, count: int) -> Values:
    if isinstance(values, Tensor):
        return _transposed_rows(values, count)
    if isinstance(values, Structs):
        return Structs(tuple(_transposed(field, count) for field in values.fields))
    starts, lengths = (_transposed_rows(each, count) for each in (values.starts, values.lengths))
    if isinstance(values, Lists):
        return Lists(starts, lengths, values.elements)
    return Strings(starts, lengths, values.data)


def _transposed_rows(rows: Tensor, count: int) -> Tensor:
    """Of `count` parts of rows one after the other."""
    made = rows.new_empty((rows.shape[0] // count, count, *rows.shape[1:]))
    made.transpose(0, 1).copy_(rows.reshape(made.transpose(0, 1).shape))  # a fifth of a transposed copy
    return made.flatten(0, 1)


def validity_of(vector: Vector) -> Tensor:
    """bool [n]: which of the values are there."""
    if vector.validity is not None:
        return vector.validity
    return torch.ones(count_of(vector.values), dtype=torch.bool, device=device_of(vector.values))


def device_of(values: Values) -> torch.device:
    """Where the values are."""
    while isinstance(values, Structs):
        values = values.fields[0].values
    return values.device if isinstance(values, Tensor) else values.starts.device


def over_same_elements(parts: Sequence[Lists]) -> Sequence[Lists]:
    """The lists as slices of one vector: of parts over several ones, each is copied once."""
    by_elements: dict[int, list[int]] = {}
    for position, part in enumerate(parts):
        by_elements.setdefault(_identity(part.elements), []).append(position)
    if len(by_elements) == 1:
        return parts
    moved: list[Lists] = list(parts)
    vectors: list[Vector] = []
    offset = 0
    for positions in by_elements.values():
        if len(positions) == 1:
            moved[positions[0]] = compact(parts[positions[0]])
        elements = moved[positions[0]].elements
        for position in positions:
            moved[position] = moved[position]._replace(starts=moved[position].starts + offset)
        vectors.append(elements)
        offset += count_of(elements.values)
    joined = concatenate_vectors(vectors)
    return [part._replace(elements=joined) for part in moved]


def _identity(vector: Vector) -> int:
    """The same for vectors that are one, under whatever wrapping."""
    values: Any = vector.values
    while isinstance(values, Structs):
        values = values.fields[0].values
    return id(values if isinstance(values, Tensor) else values.starts)


def compact(lists: Lists) -> Lists:
    """The same lists with just their elements, in row order; with those between the first and the last one where these are about as many."""
    total = int(lists.lengths.sum()) if lists.num_rows else 0
    if 0 < total < count_of(lists.elements.values):
        first, last = int(lists.starts.min()), int((lists.starts + lists.lengths).max())
        lists = Lists(lists.starts - first, lists.lengths, cut_vector(lists.elements, first, last))
    if 2 * total >= count_of(lists.elements.values):
        return lists
    elements, lengths = flattened(lists)
    return Lists(lengths.cumsum(0) - lengths, lengths, elements)


def choose(conditions: Sequence[Tensor], values: Sequence[Values], default: Values) -> Values:
    """CASE: in each row the value of the first true condition (bool [n]), else `default`. Values have n rows or one."""
    num_rows = max(condition.numel() for condition in conditions)
    chosen: Values = _choose(conditions, [every_row(each, num_rows) for each in (*values, default)])
    return chosen


def _choose(conditions: Sequence[Tensor], values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, Tensor):
        return logic.choose(list(conditions), list(values[:-1]), values[-1])
    if isinstance(first, Strings):
        return string_layout.choose(conditions, values[:-1], values[-1])
    if isinstance(first, Structs):
        fields = zip(*(each.fields for each in values), strict=True)
        return Structs(tuple(_choose_vector(conditions, each) for each in fields))
    lists = over_same_elements(values)
    starts, lengths = ([getattr(each, part) for each in lists] for part in ("starts", "lengths"))
    return Lists(_choose(conditions, starts), _choose(conditions, lengths), lists[0].elements)


def _choose_vector(conditions: Sequence[Tensor], vectors: Sequence[Vector]) -> Vector:
    validity = None
    if any(each.validity is not None for each in vectors):
        validity = _choose(conditions, [validity_of(each) for each in vectors])
    return Vector(_choose(conditions, [each.values for each in vectors]), validity)


def from_python(items: Sequence[Any], data_type: DataType, leaf: Callable[..., Any]) -> Values:
    """Python storage values of a nested type, None for NULL, as one row each.

    `leaf(items, data_type)`: values of other types, in the form that they have inside of nested ones.
    """
    if not data_type.is_nested:
        made: Values = leaf(items, data_type)
        return made
    device = leaf([], BOOLEAN).device
    if data_type.has_fields:
        width = len(data_type.children)
        rows = [item or (None,) * width for item in items]
        fields = ([row[place] for row in rows] for place in range(width))
        return Structs(
            tuple(
                _vector_of_python(field, each, leaf, device)
                for field, each in zip(fields, data_type.children, strict=True)
            )
        )
    lengths = torch.tensor([len(item or ()) for item in items], dtype=torch.int64)
    elements = [element for item in items for element in item or ()]
    starts = lengths.cumsum(0) - lengths
    vector = _vector_of_python(elements, data_type.element, leaf, device)
    return Lists(starts.to(device), lengths.to(device), vector)


def _vector_of_python(
    items: Sequence[Any], data_type: DataType, leaf: Callable[..., Any], device: torch.device
) -> Vector:
    validity = None
    if None in items or data_type.kind is TypeKind.NULL:
        validity = torch.tensor([item is not None for item in items], dtype=torch.bool, device=device)
    return Vector(from_python(items, data_type, leaf), validity)
