"""`Lists` and `Structs`: vectors of nested values, the form in which they live in tensors, at rest and in flight.

What holds one type is stored in one way, whatever its values (`element_dtype`), so that vectors of one type can always be
joined and chosen between. Kernels over them live in `tqp.operators.nested`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, Union

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.process.memory_budget import reserve
from tqp.data.backend import is_host
from tqp.data.repeats import repeated
from tqp.data.strings import Strings

#: So many places int32 holds.
_INT32_PLACES = 1 << 31


class Vector(NamedTuple):
    """Values inside of nested ones, and which of them are there.

    `values`: a tensor [n, ...] of the type's `element_dtype`, `Strings`, `Lists` or `Structs`. `validity`: bool [n], or
    None where none is NULL.
    """

    values: Values
    validity: Tensor | None


class Lists(NamedTuple):
    """n lists as slices of one vector of elements.

    Slices may overlap, repeat and stand in any order, so that taking rows moves no elements. A list that is NULL has any
    length: whoever reads elements asks the validity first.
    """

    starts: Tensor  # int64 [n], into `elements`
    lengths: Tensor  # int64 [n]
    elements: Vector

    @property
    def num_rows(self) -> int:
        return self.starts.shape[0]


class Structs(NamedTuple):
    """n structs: a vector for each field, one at least. A field of a struct that is NULL is NULL or any value."""

    fields: tuple[Vector, ...]

    @property
    def num_rows(self) -> int:
        return count_of(self.fields[0].values)


Nested: TypeAlias = Lists | Structs
#: What is no single tensor.
COMPOUND = (Strings, Lists, Structs)
Values: TypeAlias = Union[Tensor, Strings, "Lists", "Structs"]


def count_of(values: Values) -> int:
    """How many rows there are."""
    return values.shape[0] if isinstance(values, Tensor) else values.num_rows


def element_dtype(data_type: DataType) -> torch.dtype | None:
    """How values of a type that is no text and not nested are stored inside of nested ones.

    Integer-like types have the narrowest dtype that holds all values of the type; None: they need two words, int64 [n, 2].
    """
    if data_type.is_integer_like:
        low, high = data_type.bounds
        fitting = (
            dtype for dtype in _INTEGERS if torch.iinfo(dtype).min <= low and high <= torch.iinfo(dtype).max
        )
        return next(fitting, None)
    return _OTHER_DTYPES[data_type.kind]


_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)
_OTHER_DTYPES = {
    TypeKind.NULL: torch.int8,
    TypeKind.BOOLEAN: torch.bool,
    TypeKind.FLOAT: torch.float32,
    TypeKind.DOUBLE: torch.float64,
    TypeKind.INTERVAL: torch.int64,
    TypeKind.ARRAY: torch.float32,
}


def take(values: Values, rows: Tensor) -> Values:
    """The given rows (int32 or int64 [m]) of any values; of lists and strings, no element is moved."""
    if isinstance(values, Tensor):
        return torch.index_select(values, 0, rows)
    if isinstance(values, Structs):
        return Structs(tuple(take_vector(field, rows) for field in values.fields))
    starts = torch.index_select(values.starts, 0, rows)
    lengths = torch.index_select(values.lengths, 0, rows)
    if isinstance(values, Lists):
        return Lists(starts, lengths, values.elements)
    return Strings(starts, lengths, values.data)


def take_vector(vector: Vector, rows: Tensor) -> Vector:
    """The given rows of values and of what tells which are there."""
    validity = None if vector.validity is None else torch.index_select(vector.validity, 0, rows)
    return Vector(take(vector.values, rows), validity)


def cut(values: Values, start: int, stop: int) -> Values:
    """Rows start to stop (exclusive) of any values, as views."""
    if isinstance(values, Tensor):
        return values[start:stop]
    if isinstance(values, Structs):
        return Structs(tuple(cut_vector(field, start, stop) for field in values.fields))
    return values._replace(starts=values.starts[start:stop], lengths=values.lengths[start:stop])


def cut_vector(vector: Vector, start: int, stop: int) -> Vector:
    """Rows start to stop (exclusive) of values and of what tells which are there, as views."""
    return Vector(
        cut(vector.values, start, stop), None if vector.validity is None else vector.validity[start:stop]
    )


def flattened(lists: Lists, validity: Tensor | None = None) -> tuple[Vector, Tensor]:
    """The elements of all lists that are there, one list after the other, and how many each has (int64 [n])."""
    lengths = lists.lengths if validity is None else lists.lengths * validity
    if is_host(lengths) and _follow_each_other(lists.starts.numpy(), lengths.numpy()):
        start = int(lists.starts[0])
        return cut_vector(lists.elements, start, start + int(lengths.sum())), lengths
    return take_slices(lists.elements, lists.starts, lengths), lengths


def _follow_each_other(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> bool:
    """Is there one list at least, and begins each where that before it ends?"""
    if starts.shape[0] == 0 or starts[-1] - starts[0] != lengths[:-1].sum():  # less to read than all places
        return False
    return bool((starts[:-1] + lengths[:-1] == starts[1:]).all())


def take_slices(vector: Vector, starts: Tensor, lengths: Tensor, step: Tensor | None = None) -> Vector:
    """The values of slices, one slice after the other; see `element_places`."""
    return take_vector(vector, element_places(starts, lengths, count_of(vector.values), step))


def element_places(starts: Tensor, lengths: Tensor, count: int, step: Tensor | None = None) -> Tensor:
    """[sum of lengths]: starts[0], starts[0] + 1, ..., then the same of the next list. Raises ResourceError for too many.

    Of `count` elements: int32 where that holds their places, as half of the bytes take half of the time, else int64.
    `step`: int64 [n] or [1], by which the places of a list go on instead.
    """
    total = int(lengths.sum())
    reserve(2 * 8 * total)  # lists that overlap may have more elements than there are anywhere
    dtype = torch.int32 if count <= _INT32_PLACES else torch.int64
    # from one place to the next it is a step, or a jump to the start of the next list that has elements
    jumps = starts.clone()
    if step is None:
        moves = torch.ones(total + 1, dtype=dtype, device=starts.device)
        jumps[:1] -= 1
        jumps[1:] -= (starts + lengths)[:-1]
    else:
        if step.shape[0] == 1:
            moves = step.to(dtype).repeat(total + 1)
        else:
            moves = torch.zeros(total + 1, dtype=dtype, device=starts.device)
            moves[:total] = repeated(step, lengths, total)
        jumps -= step
        jumps[1:] -= (starts + (lengths - 1) * step)[:-1]
    moves.scatter_add_(0, lengths.cumsum(0) - lengths, jumps.to(dtype))
    return torch.cumsum(moves[:total], 0, dtype=dtype, out=moves[:total])


def tensors_in(values: Values | None) -> list[Tensor]:
    """Every tensor that the values consist of."""
    if values is None:
        return []
    if isinstance(values, Tensor):
        return [values]
    found = [] if isinstance(values, Structs) else [values.starts, values.lengths]
    if isinstance(values, Strings):
        return [*found, values.data]
    for vector in values.fields if isinstance(values, Structs) else (values.elements,):
        found += tensors_in(vector.values) + ([] if vector.validity is None else [vector.validity])
    return found


def mapped(values: Values, function: Callable[[Tensor], Tensor]) -> Values:
    """The values with what the function makes of every tensor in them."""
    if isinstance(values, Tensor):
        return function(values)
    if isinstance(values, Strings):
        return type(values)(*map(function, values))
    if isinstance(values, Structs):
        return Structs(tuple(_mapped_vector(field, function) for field in values.fields))
    return Lists(function(values.starts), function(values.lengths), _mapped_vector(values.elements, function))


def _mapped_vector(vector: Vector, function: Callable[[Tensor], Tensor]) -> Vector:
    return Vector(
        mapped(vector.values, function), None if vector.validity is None else function(vector.validity)
    )
